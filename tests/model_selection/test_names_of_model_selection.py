"""What the module promises to its users: names, docstrings, the page about it."""

import doctest
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from docstrings import assert_parameters_are_documented, bare_signature
from iclda import model_selection
from iclda.model_selection import _rows_to_label, _scores, _splitters

NAMES = model_selection.__all__
CALLED = [name for name in NAMES if name != "LearningCurve"]  # that is a result
DOCUMENTS = Path(__file__).parents[2] / "docs"


def test_the_page_lists_what_the_module_exports():
    page = (DOCUMENTS / "model_selection.md").read_text()
    assert len(CALLED) == 6
    assert all(f"`{name}` |" in page for name in CALLED)


@pytest.mark.parametrize("name", CALLED)
def test_docstrings_list_the_parameters_with_their_defaults(name):
    thing = getattr(model_selection, name)
    assert_parameters_are_documented(thing)
    for method_name, method in inspect.getmembers(thing, inspect.isfunction):
        if not method_name.startswith("_") and method.__module__.startswith("iclda"):
            assert_parameters_are_documented(method)


@pytest.mark.parametrize("name", NAMES)
def test_signatures_in_the_api_are_those_of_the_module(name):
    signature = bare_signature(getattr(model_selection, name))
    assert f"{name}{signature}" in (DOCUMENTS / "api.md").read_text()


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
