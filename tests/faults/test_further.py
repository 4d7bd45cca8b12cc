"""Numbers that break careless arithmetic, and the classifiers that other modules leave out.

The methods come from the registry, so that a new one is tested without a line here. What all
classifiers share, checks of rows, labels, weights and priors, is tested with the others.
"""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from changes import assert_finite
from iclda import AutoLDA
from iclda.methods import FITTED, FURTHER, METHODS

CLASSIFIERS = {method.name: method.classifier for method in (FITTED[-1], *FURTHER)}
CLASSIFIERS |= {
    f"{method.name}-proportions": lambda method=method, **settings: method.classifier(
        proportions="labeled", **settings
    )
    for method in METHODS
    if "proportions" in method.parameters and method.name != "iclda"
}
IGNORES_UNLABELED = {method.name for method in FURTHER if not method.uses_unlabeled}
TAKES_PRIORS = {
    name for name, make in CLASSIFIERS.items() if make().get_params().get("priors", 0) is None
}
CLASSIFIERS["auto"] = lambda priors=None, **_: AutoLDA(
    priors=priors, shrinkage=None, methods=["supervised", "self-learning"]
)
TAKES_PRIORS.add("auto")
# In the units of the columns: these count like others, even if they repeat them.
IN_USERS_UNITS = {name for name in CLASSIFIERS if "nearest-mean" in name} | {"sda"}

every_classifier = pytest.mark.parametrize("name", CLASSIFIERS)
with_priors = pytest.mark.parametrize("name", sorted(TAKES_PRIORS))
semi_supervised = pytest.mark.parametrize(
    "name", [name for name in CLASSIFIERS if name not in IGNORES_UNLABELED]
)

TRUE = np.arange(40) % 2
X = np.random.default_rng(0).standard_normal((40, 3)) + np.outer(TRUE, [2.5, 0.0, -1.0])
Y = np.where(np.arange(40) < 16, TRUE, -1)
WIDE = np.random.default_rng(1).standard_normal((40, 60))


def classifier(name, *, unlabeled=-1, **settings):
    made = CLASSIFIERS[name](**settings).set_params(unlabeled=unlabeled)
    return made.set_params(n_starts=4) if "n_starts" in made.get_params() else made


def fit(name, rows=X, y=Y, weights=None, **settings):
    return classifier(name, **settings).fit(rows, y, weights)


def assert_same(model, other, rows=X, others=None, tol=1e-7):
    found, expected = (
        model.predict_proba(rows),
        other.predict_proba(rows if others is None else others),
    )
    assert_allclose(found, expected, rtol=0, atol=tol)


def fit_or_clear_error(name, rows, y, **settings):
    """A model, or None after an error with a way out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model = fit(name, rows, y, **settings)
        except ValueError as error:
            assert re.search(r"label more rows|pass shrinkage|rescale", str(error), re.IGNORECASE)  # noqa: PT017
            return
    assert_finite(model, np.asarray(rows, dtype=float))


@with_priors
def test_27_a_tiny_prior_is_finite(name):
    assert_finite(fit(name, priors=[1e-300, 1.0]), X)


@every_classifier
def test_13_a_constant_column_has_no_weight_and_is_named(name):
    wide = pd.DataFrame(np.insert(X, 1, 0.1, axis=1), columns=["a", "always", "b", "c"])
    with pytest.warns(UserWarning, match="column 'always' is constant") as caught:
        model = fit(name, wide)
    assert len(caught) == 1
    assert_allclose(model.coef_[:, 1], 0, atol=1e-12)
    assert_array_equal(model.predict(wide), fit(name).predict(X))


@every_classifier
def test_15_a_collinear_column_leaves_a_finite_fit_and_no_other_prediction(name):
    wide = np.column_stack([X, X @ [1.0, 2.0, -3.0]])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Rows span 3 of 4 dimensions")
        model = fit(name, wide)
    assert_finite(model, wide)
    if name not in IN_USERS_UNITS:
        assert_same(model, fit(name), wide, X)


@every_classifier
@pytest.mark.parametrize("offset", [1e8, 1e12])
def test_17_an_offset_costs_no_more_than_the_rounding_of_the_rows(name, offset):
    far = 8.0 * X + offset
    near = far - offset  # exact
    assert_same(fit(name, far), fit(name, near), far, near)


@every_classifier
@pytest.mark.parametrize("scales", [(1e-150, 1.0, 1e150), (1e-6, 1e6, 1.0)])
def test_18_units_of_the_features_change_no_prediction(name, scales):
    if name in IN_USERS_UNITS:
        fit_or_clear_error(name, X * scales, Y)
    else:
        assert_same(fit(name, X * scales), fit(name), X * scales, X)


@every_classifier
@pytest.mark.parametrize("far", [1e6, 1e100])
def test_19_rows_far_from_all_training_rows_get_probabilities(name, far):
    assert_finite(fit(name), far * X)


PROBLEMS = {
    "one label a class": (X, np.where(np.arange(40) < 2, TRUE, -1)),
    "12 features": (WIDE[:, :12], np.where(np.arange(40) < 6, TRUE, -1)),
    "60 features": (WIDE, np.where(np.arange(40) < 6, TRUE, -1)),
    "a column constant in one class": (np.column_stack([X, X[:, 0] * TRUE]), Y),
    "a column that gives the classes away": (np.column_stack([X, TRUE]), Y),
    "one feature": (X[:, :1], Y),
    "one unlabeled row": (X[:17], Y[:17]),
    "two rows": (X[:2], [0, 1]),
    "two equal rows": ([[1.0, 2.0]] * 2, [0, 1]),
    "three rows": (X[:3], [0, 1, -1]),
    "only equal rows": (np.ones((6, 2)), [0, 1, 0, 1, -1, -1]),
    "equal labeled rows": (np.r_[np.ones((4, 3)), X[:9]], [0, 1, 0, 1] + 9 * [-1]),
    "equal unlabeled rows": (np.r_[X[:9], np.ones((9, 3))], [*Y[:9], *[-1] * 9]),
}


@every_classifier
@pytest.mark.parametrize(("rows", "y"), PROBLEMS.values(), ids=PROBLEMS)
def test_24_a_small_problem_has_a_finite_fit_or_a_clear_error(name, rows, y):
    fit_or_clear_error(name, rows, y)


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "auto"])  # folds differ
def test_25_a_weight_counts_like_repeating_the_row(name):
    weights = np.array([1, 2, 3, 1, 1, 2, 4, 1] * 5)
    repeated = fit(name, np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    assert_same(fit(name, weights=weights), repeated)


@every_classifier
def test_26_weight_zero_counts_like_no_row(name):
    rows, weights = X.copy(), 1.0 + np.arange(40) % 3
    rows[[2, 30]] = 1e6
    weights[[2, 30]] = 0
    is_kept = weights > 0
    kept = fit(name, X[is_kept], Y[is_kept], weights[is_kept])
    assert_same(fit(name, rows, weights=weights), kept, tol=1e-9)


@every_classifier
@pytest.mark.parametrize("distance", [1e2, 1e6])
def test_28_perfect_separation_leaves_probabilities(name, distance):
    rows = X + np.outer(TRUE, [distance, 0.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fit(name, rows)
    assert_finite(model, rows)
    assert_array_equal(model.predict(rows), TRUE)


@semi_supervised
@pytest.mark.parametrize(
    ("unlabeled", "is_far"), [(X + 1e3, True), (X[TRUE == 0], False)], ids=["shift", "one class"]
)
def test_29_unlabeled_rows_from_elsewhere_leave_a_finite_fit(name, unlabeled, is_far):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = classifier(name).fit(X[:16], Y[:16], X_unlabeled=unlabeled)
    assert_finite(model, np.r_[X, unlabeled])
    assert {warning.category for warning in caught} <= {UserWarning, ConvergenceWarning}
    is_told = any("seem to come from elsewhere" in str(warning.message) for warning in caught)
    assert is_told == (is_far and name != "auto")  # which chose the supervised fit


@every_classifier
def test_30_the_order_of_rows_and_of_classes_changes_no_fit(name):
    expected, order = fit(name), np.random.default_rng(1).permutation(40)
    if name != "auto":  # draws folds of rows
        assert_same(fit(name, X[order], Y[order]), expected, tol=1e-6)
    swapped = fit(name, y=np.where(Y < 0, -1, 1 - Y))
    assert_allclose(swapped.predict_proba(X)[:, ::-1], expected.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(
    "name", [name for name in CLASSIFIERS if "max_iter" in CLASSIFIERS[name]().get_params()]
)
def test_31_a_fit_cut_short_is_called_converged_only_without_a_warning(name):
    rows = np.random.default_rng(2).standard_normal((40, 3)) + 0.5 * TRUE[:, None]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = classifier(name).set_params(max_iter=1).fit(rows, Y)
    is_told = any(warning.category is ConvergenceWarning for warning in caught)
    assert model.converged_ == (not is_told)
    assert_finite(model, rows)
