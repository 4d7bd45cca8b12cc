"""The benchmarks are programs beside the package: tests import their modules."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
