"""Rows, weights and priors that break careless arithmetic, met by every method."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import iclda
from iclda import AutoLDA, NoUnlabeledRowsWarning
from iclda._core.problem import Problem
from iclda.methods import FITTED, FURTHER, METHODS
from tests.helpers.changes import assert_finite, assert_same_fit

METHODS_BY_NAME = {method.name: method for method in (*FITTED, *FURTHER)}
CLASSIFIERS = {name: method.classifier for name, method in METHODS_BY_NAME.items()} | {
    f"{method.name}-proportions": lambda method=method, **settings: method.classifier(
        proportions="labeled", **settings
    )
    for method in METHODS
    if "proportions" in method.parameters and method.name != "iclda"
}
SUPERVISED = {
    name for name, method in METHODS_BY_NAME.items() if not method.uses_unlabeled
}
CLASSIFIERS["auto"] = lambda priors=None, **_: AutoLDA(
    priors=priors, shrinkage=None, methods=["supervised", "self-learning"]
)
WITH_ONE_VARIANCE = {
    name for name, make in CLASSIFIERS.items() if make()._needs.problem.has_one_variance
}
# In the units of the columns: constant ones are known like others.
IN_USERS_UNITS = WITH_ONE_VARIANCE | {"sda"}
# Not of any covariance: columns count, even if they repeat others.
COUNTING_REPEATED_COLUMNS = {"sda"} | {
    name for name, make in CLASSIFIERS.items() if make()._needs.problem is not Problem
}

every_classifier = pytest.mark.parametrize("name", CLASSIFIERS)
# Logistic regression, a member of the average, depends on the units, and shrinkage is
# its default.
unit_free = pytest.mark.parametrize(
    "name", [n for n in CLASSIFIERS if n not in {"average", "ensemble"}]
)
# The others have coefficients.
every_linear = pytest.mark.parametrize(
    "name", [n for n in CLASSIFIERS if n != "ensemble"]
)
semi_supervised = pytest.mark.parametrize(
    "name", [n for n in CLASSIFIERS if n not in SUPERVISED]
)

TRUE = np.arange(40) % 2
X = np.random.default_rng(0).standard_normal((40, 3)) + np.outer(TRUE, [2.5, 0.0, -1.0])
Y = np.where(np.arange(40) < 16, TRUE, -1)
WIDE = np.random.default_rng(1).standard_normal((40, 60))
WEIGHTS = np.array([1, 2, 3, 1, 1, 2, 4, 1] * 5)


def classifier(name, **settings):
    made = CLASSIFIERS[name](**settings)
    return made.set_params(n_starts=4) if name == "iclda-proportions" else made


def takes(name, parameter):
    return parameter in CLASSIFIERS[name]().get_params()


def fit(name, rows=X, y=Y, weights=None, **settings):
    return classifier(name, **settings).fit(rows, y, weights)


def tolerance(name):
    """How alike fits of equal data are: iterations end near the maximum."""
    if name in ("em", "average", "pessimistic"):
        return 1e-8
    is_exact = name != "iclda" and name in {method.name for method in METHODS}
    return 1e-10 if is_exact else 1e-7


def assert_same(model, other, name, rows=X, others=X):
    found = model.predict_proba(rows)
    expected = other.predict_proba(others)
    assert_allclose(found, expected, rtol=0, atol=tolerance(name))


WAY_OUT = re.compile(r"label more rows|pass shrinkage|rescale", re.IGNORECASE)


def fit_or_clear_error(name, rows, y):
    """Finite numbers, or an error with a way out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model = fit(name, rows, y)
        except ValueError as error:
            assert WAY_OUT.search(str(error)), error  # noqa: PT017
            return
    assert_finite(model, np.asarray(rows, dtype=float))


@unit_free
@pytest.mark.parametrize("value", [0.0, 0.1, -1e9, 1e200])
def test_13_a_constant_column_has_no_weight_and_is_named(name, value):
    wide = pd.DataFrame(
        np.insert(X, 1, value, axis=1), columns=["a", "always", "b", "c"]
    )
    # The variance of a constant column is known there too.
    if name in IN_USERS_UNITS:
        model = fit(name, wide)
    else:
        with pytest.warns(UserWarning, match="column 'always' is constant") as caught:
            model = fit(name, wide)
        assert len(caught) == 1
    without = fit(name)
    tol = tolerance(name)
    assert_allclose(model.coef_[:, 1], 0, atol=1e-12)
    assert_array_equal(model.predict(wide), without.predict(X))
    # Whose variance is the mean over all columns.
    if name not in WITH_ONE_VARIANCE:
        assert_allclose(
            np.delete(model.coef_, 1, axis=1), without.coef_, rtol=tol, atol=tol
        )
        assert_same(model, without, name, wide)


REPEATED = {
    "duplicate": X[:, 0],
    "sum": X @ [1.0, 2.0, -3.0],
    "other units": 1e6 * X[:, 1] + 5.0,
    "tiny": -1e-9 * X[:, 2],
}


@unit_free
@pytest.mark.filterwarnings("ignore:Rows span 3 of 4 dimensions")
@pytest.mark.parametrize("column", REPEATED.values(), ids=REPEATED)
def test_15_a_collinear_column_leaves_a_finite_fit_and_no_other_prediction(
    name, column
):
    wide = np.column_stack([X, column])
    model = fit(name, wide)
    assert_finite(model, wide)
    if name not in COUNTING_REPEATED_COLUMNS:
        assert model.rank_ == 3
        found = model.predict_proba(wide)
        expected = fit(name).predict_proba(X)
        assert_allclose(found, expected, rtol=0, atol=max(1e-8, tolerance(name)))


@pytest.mark.parametrize(
    "name", [n for n in CLASSIFIERS if n not in SUPERVISED | {"ensemble"}]
)
def test_the_classifier_that_a_warning_names_has_the_fit_without_unlabeled_rows(name):
    is_labeled = Y >= 0
    rows = X[is_labeled], Y[is_labeled]
    with pytest.warns(NoUnlabeledRowsWarning) as caught:
        model = fit(name, *rows)
    named = re.search(r"the fit equals that of (\w+)", str(caught[0].message))[1]
    supervised = getattr(iclda, named)()
    if name in {"auto", "average"}:
        supervised.set_params(view="standardize")
    shrinkage = getattr(model, "shrinkage_", 0)
    if shrinkage:
        supervised.set_params(shrinkage=shrinkage)
    expected = supervised.fit(*rows)
    assert_allclose(model.predict_proba(X), expected.predict_proba(X), rtol=1e-12)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-12, atol=1e-14)


@every_linear
def test_16_an_offset_of_1e8_keeps_the_coefficients(name):
    moved = fit(name, X + 1e8)
    centered = fit(name)
    assert_allclose(moved.coef_, centered.coef_, rtol=1e-6)


@every_linear
@pytest.mark.parametrize("offset", [1e8, 1e12, -1e15])
def test_17_an_offset_costs_no_more_than_the_rounding_of_the_rows(name, offset):
    far = 8.0 * X + offset
    # Exact: what rounding has left of the rows.
    near = far - offset
    moved = fit(name, far)
    centered = fit(name, near)
    tol = tolerance(name)
    assert_allclose(moved.coef_, centered.coef_, rtol=tol, atol=tol)
    assert_same(moved, centered, name, far, near)
    assert_finite(moved, far)


@unit_free
@pytest.mark.parametrize(
    "scales", [(1e-40, 1.0, 1e40), (1e40, 1.0, 1e-40), (1e-6, 1e6, 1.0)]
)
def test_18_units_of_the_features_change_no_prediction(name, scales):
    if name in IN_USERS_UNITS:
        fit_or_clear_error(name, X * scales, Y)
    else:
        model = fit(name, X * scales)
        assert_finite(model, X * scales)
        assert_same(model, fit(name), name, X * scales)


@every_classifier
@pytest.mark.parametrize("far", [1e6, 1e100])
def test_19_rows_far_from_all_training_rows_get_probabilities(name, far):
    assert_finite(fit(name), far * X)


PROBLEMS = {
    "one label a class": (X, np.where(np.arange(40) < 2, TRUE, -1)),
    "60 features": (WIDE, np.where(np.arange(40) < 6, TRUE, -1)),
    "a column that gives the classes away": (np.column_stack([X, TRUE]), Y),
    "one feature": (X[:, :1], Y),
    "two rows": (X[:2], [0, 1]),
    "two equal rows": ([[1.0, 2.0]] * 2, [0, 1]),
    "three rows": (X[:3], [0, 1, -1]),
    "half way": ([[0.0], [1.0], [0.5]], [0, 1, -1]),
    "only equal rows": (np.ones((6, 2)), [0, 1, 0, 1, -1, -1]),
    "only equal rows of many classes": (np.ones((9, 2)), [0, 1, 2, 3, 0, 1, 2, 3, -1]),
    "equal labeled rows": (np.r_[np.ones((4, 3)), X[:9]], [0, 1, 0, 1] + 9 * [-1]),
    "equal unlabeled rows": (np.r_[X[:9], np.ones((9, 3))], [*Y[:9], *[-1] * 9]),
    "more features than rows": (
        np.random.default_rng(1).normal(size=(6, 9)),
        [0, 1, 0, 1, -1, -1],
    ),
    "as many rows as dimensions": (X[:4], [0, 1, -1, -1]),
}


@every_classifier
@pytest.mark.parametrize(("rows", "y"), PROBLEMS.values(), ids=PROBLEMS)
def test_24_a_small_problem_has_a_finite_fit_or_a_clear_error(name, rows, y):
    fit_or_clear_error(name, rows, y)


@every_classifier
@pytest.mark.parametrize("among", ["labeled", "all"])
def test_14_a_column_may_be_constant_in_one_class(name, among):
    rows = X.copy()
    rows[(Y if among == "labeled" else TRUE) == 0, 2] = 4.0
    assert_finite(fit(name, rows), rows)


SETTINGS = [{}, {"shrinkage": 0.1}, {"shrinkage": "auto"}, {"priors": [0.3, 0.7]}]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (name, each)
        for name in CLASSIFIERS
        for each in SETTINGS
        if all(takes(name, parameter) for parameter in each)
        # Folds differ.
        and name != "auto"
    ],
)
def test_25_a_weight_counts_like_repeating_the_row(name, settings):
    weighted = fit(name, weights=WEIGHTS, **settings)
    repeated = fit(
        name, np.repeat(X, WEIGHTS, axis=0), np.repeat(Y, WEIGHTS), **settings
    )
    assert_same_fit(weighted, repeated, tolerance(name))


@every_classifier
def test_26_weight_zero_counts_like_no_row(name):
    rows = X.copy()
    weights = np.where(np.isin(np.arange(40), [1, 2, 30, 31]), 0, WEIGHTS)
    rows[[2, 30]] = 1e6
    is_kept = weights > 0
    kept = fit(name, X[is_kept], Y[is_kept], weights[is_kept])
    assert_same_fit(fit(name, rows, weights=weights), kept, 1e-12)


@every_classifier
def test_26_unlabeled_rows_whose_weight_is_lost_in_the_sum_are_no_warning(name):
    # Few labels, as only a fit to these is suspected to have lost a class.
    rows = X[10:]
    y = Y[10:]
    assert_finite(fit(name, rows, y, np.where(y < 0, 1e-42, 1.0)), rows)


@pytest.mark.parametrize(
    "name",
    [name for name in CLASSIFIERS if takes(name, "priors") and name != "ensemble"],
)
@pytest.mark.parametrize("tiny", [1e-300, 5e-324])
def test_27_a_tiny_prior_is_finite(name, tiny):
    model = fit(name, priors=[tiny, 1.0])
    assert_array_equal(model.priors_, [np.exp(np.log(tiny)), 1.0])
    assert_finite(model, X)


@every_classifier
@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6, 1e9])
def test_28_perfect_separation_leaves_probabilities(name, distance):
    rows = X + np.outer(TRUE, [distance, 0.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The 16 labeled rows are too few")
        try:
            model = fit(name, rows)
        except ValueError as error:
            assert name.startswith(("average", "moment", "pessimistic"))
            assert re.search("span 2 of 3 dimensions|do not vary within", str(error))  # noqa: PT017
            return
    assert_finite(model, rows)
    assert_array_equal(model.predict(rows), TRUE)


ELSEWHERE = {
    "a little shift": (X + 0.5, None),
    "shift": (X + 1e3, "seem to come from elsewhere"),
    "extra cluster": (
        np.r_[X, X + np.array([40, -60, 5])],
        "seem to come from elsewhere",
    ),
    "one class only": (X[TRUE == 0], None),
    "one point": (np.zeros((20, 3)), None),
}


@semi_supervised
@pytest.mark.parametrize(("unlabeled", "diagnosis"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_29_unlabeled_rows_from_elsewhere_are_diagnosed_when_far(
    name, unlabeled, diagnosis
):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = classifier(name).fit(X[:16], Y[:16], X_unlabeled=unlabeled)
    assert_finite(model, np.r_[X, unlabeled])
    messages = [
        str(each.message)
        for each in caught
        if not issubclass(each.category, ConvergenceWarning)
    ]
    # Auto chose the supervised fit.
    if name == "auto" or diagnosis is None:
        assert messages == []
    else:
        (message,) = messages
        assert diagnosis in message
        assert "Compare with supervised LDA" in message


@every_classifier
def test_30_the_order_of_rows_and_of_classes_changes_no_fit(name):
    expected = fit(name)
    order = np.random.default_rng(1).permutation(40)
    # Draws folds of rows.
    if name != "auto":
        found = fit(name, X[order], Y[order]).predict_proba(X)
        assert_allclose(found, expected.predict_proba(X), atol=1e-6)
    swapped = fit(name, y=np.where(Y < 0, -1, 1 - Y))
    assert_allclose(
        swapped.predict_proba(X)[:, ::-1], expected.predict_proba(X), atol=1e-6
    )
