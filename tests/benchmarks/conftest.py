"""The benchmarks are programs beside the package: tests import their modules from there."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
