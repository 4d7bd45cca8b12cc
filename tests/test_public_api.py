"""What the package promises to its users: names, docstrings, defaults, attributes."""

import doctest
import inspect
import re
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import iclda
from iclda import AutoLDA, model_selection, plots, rows, tabular
from iclda.methods import FITTED, FURTHER
from iclda.model_selection import _rows_to_label, _scores, _splitters
from tests.helpers.docstrings import (
    assert_parameters_are_documented,
    bare_signature,
    entries,
    parameters_of,
)

NAMES = [*{method.class_name: None for method in (*FITTED, *FURTHER)}, "AutoLDA"]
WRAPPERS = ["OpenSetClassifier"]
FUNCTIONS = ["compare", "load_model", "save_model"]
MESSAGES = [
    *("BrokenCellWarning", "ColumnError", "DegenerateFitWarning", "FitError"),
    "NoUnlabeledRowsWarning",
    *("NotConvergedWarning", "NothingLearnedWarning", "ParameterError"),
]
OPTIONAL = [
    "pandas",
    "polars",
    "pyarrow",
    "skops",
    "torch",
    "dask",
    "matplotlib",
    "onnx",
]
every_classifier = pytest.mark.parametrize(
    "classifier", [getattr(iclda, name) for name in NAMES]
)
every_class = pytest.mark.parametrize(
    "classifier", [getattr(iclda, name) for name in [*NAMES, *WRAPPERS]]
)


ROOT = Path(__file__).parents[1]
TRUE = np.repeat([0, 1, 2], 10)
X = np.random.default_rng(0).standard_normal((30, 2)) + 2 * np.eye(3)[TRUE][:, :2]
DATA = pd.DataFrame(X, columns=["a", "b"]), np.where(np.arange(30) % 3 > 0, TRUE, -1)


def unfitted(classifier):
    """The classifier; AutoLDA with a method that has all of its attributes."""
    return classifier(methods=["average"]) if classifier is AutoLDA else classifier()


@cache
def fit(classifier):
    """The fitted classifier, and what it held before."""
    estimator = unfitted(classifier)
    before = dict(vars(estimator))
    return estimator.fit(*DATA), before


def test_the_package_exports_the_classifiers_model_files_and_messages():
    assert sorted(iclda.__all__) == sorted([*NAMES, *WRAPPERS, *FUNCTIONS, *MESSAGES])
    for name in [*NAMES, *MESSAGES]:
        assert inspect.isclass(getattr(iclda, name))


def public_classes():
    """The classes that users make, of all modules that list their names."""
    modules = [iclda, model_selection, plots, tabular]
    members = [getattr(module, name) for module in modules for name in module.__all__]
    return [
        each
        for each in dict.fromkeys(members)
        if inspect.isclass(each) and not issubclass(each, Exception)
    ]


@pytest.mark.parametrize("class_", public_classes(), ids=lambda each: each.__name__)
def test_the_error_of_an_unknown_parameter_names_the_class_that_was_called(class_):
    with pytest.raises(TypeError, match=rf"^{class_.__name__}\b"):
        class_(unknown_parameter=1)


@every_classifier
def test_the_docstring_lists_the_parameters_with_their_defaults(classifier):
    assert_parameters_are_documented(classifier)
    assert {each.kind for each in parameters_of(classifier)} == {
        inspect.Parameter.KEYWORD_ONLY
    }
    # For type checkers.
    assert inspect.signature(classifier.fit).return_annotation == "Self"


@every_classifier
def test_every_public_attribute_is_documented(classifier):
    fitted, _ = fit(classifier)
    names = [
        name for name in dir(fitted) if name.endswith("_") and not name.startswith("_")
    ]
    # Older versions of scikit-learn list what another chosen method would have, too.
    public = {name for name in names if hasattr(fitted, name)}
    assert public == set(entries(classifier, "Attributes"))


@every_classifier
def test_attributes_have_the_documented_shapes(classifier):
    fitted, _ = fit(classifier)
    sizes = {
        "n_classes": 3,
        "n_features": 2,
        "n_unlabeled": 10,
        "n_labeled": 20,
        "1": 1,
        "n_iter_": getattr(fitted, "n_iter_", None),
    }
    for name, text in entries(classifier, "Attributes").items():
        shapes = [
            tuple(sizes[size] for size in re.split(r",\s*", inner.strip(", ")))
            for inner in re.findall(r"\(([^)]+)\)", text)
        ]
        if shapes:
            shape = np.shape(getattr(fitted, name))
            assert shape in shapes or (shape == () and "float" in text), name


@every_classifier
def test_every_public_attribute_is_there_without_unlabeled_rows(classifier):
    X, y = DATA
    is_labeled = y != -1
    if not classifier()._needs.unlabeled_rows:
        fitted = classifier().fit(X[is_labeled], y[is_labeled])
    else:
        with pytest.warns(UserWarning, match="no unlabeled rows"):
            fitted = unfitted(classifier).fit(X[is_labeled], y[is_labeled])
    missing = [
        name for name in entries(classifier, "Attributes") if not hasattr(fitted, name)
    ]
    assert not missing


@every_classifier
def test_fit_writes_only_names_that_end_in_an_underscore(classifier):
    estimator, before = fit(classifier)
    written = set(vars(estimator)) - set(before)
    assert written
    assert all(name.endswith("_") for name in written)
    assert {name: vars(estimator)[name] for name in before} == before


@every_class
def test_every_public_method_documents_its_parameters(classifier):
    for name, method in inspect.getmembers(classifier, inspect.isfunction):
        if name.startswith("_") or not method.__module__.startswith("iclda"):
            continue
        if parameters_of(method):
            assert_parameters_are_documented(method)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (module, name)
        for module in (iclda.rows, iclda.model_selection)
        for name in module.__all__
    ],
)
def test_functions_document_their_parameters_and_stand_in_the_api(module, name):
    function = getattr(module, name)
    assert f"{name}{bare_signature(function)}" in (ROOT / "docs" / "api.md").read_text()
    # A result.
    if name != "LearningCurve":
        assert_parameters_are_documented(function)
    for method_name, method in inspect.getmembers(function, inspect.isfunction):
        is_own = not method_name.startswith("_") and method.__module__.startswith(
            "iclda.model"
        )
        if is_own and parameters_of(method):
            assert_parameters_are_documented(method)


@every_class
def test_every_section_of_the_docstring_is_underlined(classifier):
    lines = inspect.getdoc(classifier).splitlines()
    underlined = [before for before, line in pairwise(lines) if set(line) == {"-"}]
    assert {"Parameters", "Attributes", "Examples"} <= {*underlined}
    assert not [line for line in lines if "--" in line and set(line) != {"-"}]


@every_class
def test_the_examples_of_the_docstring_run(classifier):
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder(recurse=False).find(classifier, globs={}):
        runner.run(example)
    assert runner.tries >= 3
    assert runner.failures == 0


@pytest.mark.parametrize("module", [rows, _rows_to_label, _scores, _splitters])
def test_the_examples_of_the_functions_run(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def run(command):
    finished = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.split()


def test_importing_the_package_imports_nothing_optional():
    # scikit-learn itself imports pandas where it is installed: what counts is what we
    # add.
    before = run(
        "import sys, sklearn.base, sklearn.metrics, scipy.stats; print(*sys.modules)"
    )
    every = "from iclda import *; from iclda import model_selection, plots, rows"
    after = run(f"import sys; {every}; print(*sys.modules)")
    assert "iclda._core.solvers.search" in after
    assert not set(OPTIONAL) & (set(after) - set(before))


def test_the_package_works_without_anything_optional():
    printed = run(f"""
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ImportError(name)

sys.meta_path.insert(0, Refuse())
import iclda

X, y = [[0.0], [1.0], [5.0], [6.0], [2.0]], ["a", "a", "b", "b", None]
for name in {NAMES}:
    print(*getattr(iclda, name)(unlabeled=None).fit(X, y).predict([[0.5], [5.5]]))
""")
    assert printed == ["a", "b"] * len(NAMES)


def test_modules_are_there_after_the_import_of_the_package_but_not_loaded():
    printed = run("""
import sys, iclda
print(*(name in dir(iclda) for name in ("model_selection", "plots", "rows", "tabular")))
names = ("model_selection", "plots", "tabular")
print(*(f"iclda.{name}" in sys.modules for name in names))
print(iclda.plots.ReliabilityDisplay.__name__, iclda.tabular.read_table.__name__)
""")
    assert printed == ["True"] * 4 + ["False"] * 3 + [
        "ReliabilityDisplay",
        "read_table",
    ]
