"""What the module promises to its users: names, docstrings, the page about it."""

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

from iclda import model_selection
from iclda.model_selection import _rows_to_label, _scores, _splitters

NAMES = model_selection.__all__
CALLED = [name for name in NAMES if name != "LearningCurve"]  # that is a result
DOCUMENTS = Path(__file__).parents[2] / "docs"


def test_the_page_lists_what_the_module_exports():
    page = (DOCUMENTS / "model_selection.md").read_text()
    assert len(CALLED) == 5
    assert all(f"`{name}` |" in page for name in CALLED)


def test_importing_the_module_imports_nothing_optional():
    code = (
        "import sys, sklearn.model_selection; before = set(sys.modules); "
        "import iclda.model_selection; print(*set(sys.modules) - before)"
    )
    added = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pandas", "polars", "matplotlib", "iclda._estimators.base"} & set(
        added.stdout.split()
    )


@pytest.mark.parametrize("module", [_rows_to_label, _scores, _splitters])
def test_the_examples_of_the_docstrings_run(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
