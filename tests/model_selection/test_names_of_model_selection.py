"""What the module promises to its users: names, docstrings, defaults, the page about it."""

import ast
import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from iclda import model_selection
from iclda.model_selection import semi_supervised_scorer

NAMES = [
    "LearningCurve",
    "SemiSupervisedKFold",
    "SemiSupervisedShuffleSplit",
    "mask_labels",
    "semi_supervised_learning_curve",
    "semi_supervised_scorer",
]
CALLED = NAMES[1:]  # a LearningCurve is a result
every_name = pytest.mark.parametrize("name", CALLED)
DOCUMENTS = Path(__file__).parents[2] / "docs"
SECTION = re.compile(r"Parameters\n-+\n(.*?)(?:\n\n\w+\n-+|\Z)", re.DOTALL)


def entries(thing):
    """Name -> type of the parameters that a docstring lists."""
    text = SECTION.search(inspect.getdoc(thing))[1]
    return dict(re.findall(r"^(\w+) : (.+)$", text, re.MULTILINE))


def test_the_module_exports_what_the_page_lists():
    assert sorted(model_selection.__all__) == NAMES
    page = (DOCUMENTS / "model_selection.md").read_text()
    assert all(f"`{name}` |" in page for name in CALLED)


@every_name
def test_docstrings_list_the_parameters(name):
    thing = getattr(model_selection, name)
    assert list(entries(thing)) == list(inspect.signature(thing).parameters)


@every_name
def test_documented_defaults_are_the_defaults(name):
    thing = getattr(model_selection, name)
    written = {
        parameter: re.search(r", default=(.+)$", text) for parameter, text in entries(thing).items()
    }
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.default is parameter.empty:
            assert written[parameter.name] is None
        elif isinstance(parameter.default, (int, float, str, type(None))):
            value = written[parameter.name][1].replace("np.nan", "'nan'")
            assert str(ast.literal_eval(value)) == str(parameter.default)
        else:
            assert written[parameter.name][1] == str(parameter.default)


@pytest.mark.parametrize("name", NAMES)
def test_signatures_in_the_api_are_those_of_the_module(name):
    signature = inspect.signature(getattr(model_selection, name))
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    bare = signature.replace(parameters=parameters, return_annotation=signature.empty)
    assert f"{name}{bare}" in (DOCUMENTS / "api.md").read_text()


@every_name
def test_methods_document_their_parameters(name):
    thing = getattr(model_selection, name)
    for method_name, method in inspect.getmembers(thing, inspect.isfunction):
        if not method_name.startswith("_") and method.__module__.startswith("iclda"):
            signature = [p for p in inspect.signature(method).parameters if p != "self"]
            assert list(entries(method)) == signature, method_name


@every_name
def test_the_examples_of_the_docstring_run(name):
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder(recurse=False).find(
        getattr(model_selection, name), globs={}
    ):
        runner.run(example)
    assert runner.tries >= 2
    assert runner.failures == 0


def test_a_default_marker_shows_where_it_comes_from():
    signature = inspect.signature(semi_supervised_scorer)
    assert repr(signature.parameters["unlabeled"].default) == "<of the estimator>"


def test_importing_the_module_imports_nothing_optional():
    code = (
        "import sys, sklearn.model_selection; before = set(sys.modules); "
        "import iclda.model_selection; print(*set(sys.modules) - before)"
    )
    added = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pandas", "polars", "matplotlib", "iclda._estimators.base"} & set(
        added.stdout.split()
    )
