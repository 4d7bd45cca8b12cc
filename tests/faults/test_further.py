"""Faults met by the classifiers that the other modules leave out: the further family, and AutoLDA.

The methods come from the registry, so that a new one is tested without a line here.
"""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from iclda import AutoLDA
from iclda.methods import FURTHER, METHODS, VARIANTS

CLASSIFIERS = {method.name: method.classifier for method in (*VARIANTS, *FURTHER)}
CLASSIFIERS |= {
    f"{method.name}-proportions": lambda method=method, **settings: method.classifier(
        proportions="labeled", **settings
    )
    for method in METHODS
    if "proportions" in method.takes and not method.is_searched
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


def classifier(name, *, unlabeled=-1, **settings):
    made = CLASSIFIERS[name](**settings).set_params(unlabeled=unlabeled)
    return made.set_params(n_starts=4) if "n_starts" in made.get_params() else made


def fit(name, rows=X, y=Y, weights=None, **settings):
    return classifier(name, **settings).fit(rows, y, weights)


def assert_finite(model, rows):
    fitted = {key: value for key, value in vars(model).items() if key.endswith("_")}
    for method in ("decision_function", "predict_log_proba", "transform", "score_samples"):
        if hasattr(model, method):
            fitted[method] = getattr(model, method)(rows)
    for key, value in fitted.items():
        if isinstance(value, (float, np.ndarray)) and np.asarray(value).dtype.kind == "f":
            assert np.isfinite(value).all(), key
    probabilities = model.predict_proba(rows)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)


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


@every_classifier
def test_1_without_any_label_the_error_counts_the_rows(name):
    with pytest.raises(ValueError, match=r"all 40 rows carry the marker unlabeled='\?'"):
        fit(name, y=["?"] * 40, unlabeled="?")


@semi_supervised
def test_2_without_unlabeled_rows_one_warning_names_the_supervised_fit(name):
    message = r"got no unlabeled rows: the fit equals \w+'s"
    with pytest.warns(UserWarning, match=message) as caught:
        model = fit(name, X[:16], Y[:16])
    assert len(caught) == 1
    assert_finite(model, X)


@every_classifier
def test_3_one_label_a_class_has_a_finite_fit_or_a_clear_error(name):
    fit_or_clear_error(name, X, np.where(np.arange(40) < 2, TRUE, -1))


@with_priors
@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ({0: 0.5, 1: 0.3, "x": 0.2}, r"with labeled rows, \[.*\], got \[0, 1, 'x'\]"),
        ({0: 0.5, 1: 0.4, -1: 0.1}, r"with labeled rows, \[.*\], got \[0, 1, -1\]"),
        ([-0.1, 1.1], "must be at least 0"),
        ([0.5, 0.75], "add up to 1.25"),
    ],
    ids=["4 unseen class", "11 marker", "27 negative", "27 sum"],
)
def test_27_priors_that_are_none_are_refused(name, priors, message):
    with pytest.raises(ValueError, match=message):
        fit(name, priors=priors)


@with_priors
def test_27_a_tiny_prior_is_finite(name):
    assert_finite(fit(name, priors=[1e-300, 1.0]), X)


@every_classifier
def test_5_one_labeled_class_is_refused_and_the_marker_explained(name):
    with pytest.raises(ValueError, match=r"1 class \(1\) in 8 labeled rows.*unlabeled=None"):
        fit(name, y=np.where(Y == 1, 1, -1))


@every_classifier
def test_7_to_9_classes_may_be_anything_and_keep_their_type(name):
    expected = fit(name).predict(X)
    text = np.where(Y < 0, "?", np.array(["ham", "spam"])[Y])
    assert_array_equal(fit(name, y=text, unlabeled="?").predict(X) == "spam", expected == 1)
    missing = np.where(Y < 0, np.nan, Y)
    with pytest.raises(ValueError, match=r"missing .* for 24 of 40 rows.*unlabeled=np.nan"):
        fit(name, y=missing)
    assert_array_equal(fit(name, y=missing, unlabeled=np.nan).predict(X), expected)
    small = fit(name, y=Y.astype(np.int8))
    assert small.predict(X).dtype == small.classes_.dtype == np.int8


@every_classifier
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(Y == 1, 0.25, Y), "Unknown label type: continuous"),
        (Y[:28], "X has 40 rows, y has 28 labels"),
        (np.column_stack([Y, Y]), r"1d array, got an array of shape \(40, 2\)"),
    ],
    ids=["continuous", "short", "2-d"],
)
def test_10_what_is_no_y_is_refused(name, y, message):
    with pytest.raises(ValueError, match=message):
        fit(name, y=y)


@every_classifier
@pytest.mark.parametrize("n_features", [12, 60])
def test_12_more_features_than_labels_have_a_finite_fit_or_a_clear_error(name, n_features):
    rows = np.random.default_rng(1).standard_normal((40, n_features))
    fit_or_clear_error(name, rows, np.where(np.arange(40) < 6, TRUE, -1))


@every_classifier
def test_13_a_constant_column_has_no_weight_and_is_named(name):
    wide = pd.DataFrame(np.insert(X, 1, 0.1, axis=1), columns=["a", "always", "b", "c"])
    with pytest.warns(UserWarning, match="column 'always' is constant") as caught:
        model = fit(name, wide)
    assert len(caught) == 1
    assert_allclose(model.coef_[:, 1], 0, atol=1e-12)
    assert_array_equal(model.predict(wide), fit(name).predict(X))


@every_classifier
def test_14_a_column_may_be_constant_in_one_class(name):
    rows = X.copy()
    rows[TRUE == 0, 2] = 4.0
    assert_finite(fit(name, rows), rows)


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
@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_19_a_column_whose_variance_is_no_number_is_named(name, scale):
    with pytest.raises(ValueError, match=r"standard deviation of column 1 is .*rescale"):
        fit(name, X * [1.0, scale, 1.0])


@every_classifier
@pytest.mark.parametrize("far", [1e6, 1e100])
def test_19_rows_far_from_all_training_rows_get_probabilities(name, far):
    assert_finite(fit(name), far * X)


@every_classifier
@pytest.mark.parametrize("row", [3, 35], ids=["labeled", "unlabeled"])
@pytest.mark.parametrize(("value", "shown"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_20_an_entry_that_is_no_number_is_named_by_row_and_column(name, row, value, shown):
    rows = X.copy()
    rows[row, 2] = value
    with pytest.raises(ValueError, match=rf"contains {shown}, first in row {row}, column 2"):
        fit(name, rows)


@every_classifier
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
def test_21_and_22_narrow_numbers_are_summed_in_float64(name, dtype):
    rows = np.clip(np.round(20 * X) + 100, 0, 127).astype(dtype)
    wide = rows.astype(np.float64)
    assert_same(fit(name, rows), fit(name, wide), rows, wide, tol=1e-9)


@every_classifier
def test_23_a_column_of_text_is_named(name):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(b="red")
    with pytest.raises(ValueError, match="column 'b' holds text, for example 'red'"):
        fit(name, frame)


SMALL = {
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
@pytest.mark.parametrize(("rows", "y"), SMALL.values(), ids=SMALL)
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
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(40), "is zero for all 40 rows"),
        (np.r_[np.ones(39), -2.5], r"got -2\.5 in row 39"),
        (np.where(Y == 1, 1e-14, 1.0), r"rows of class 1 hold .* at least 1e-12"),
    ],
    ids=["zero", "negative", "tiny"],
)
def test_26_weights_that_are_none_are_refused(name, weights, message):
    with pytest.raises(ValueError, match=message):
        fit(name, weights=weights)


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
    is_told = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    assert model.converged_ == (not is_told)
    assert_finite(model, rows)


@every_classifier
def test_32_a_column_that_gives_the_classes_away_leaves_a_finite_fit_or_a_clear_error(name):
    fit_or_clear_error(name, np.column_stack([X, TRUE]), Y)


@every_classifier
def test_33_the_layout_of_arrays_changes_no_result_and_no_input(name):
    rows = np.asfortranarray(X)[::-1].astype(">f8")
    y = Y[::-1]
    before = rows.tobytes(), y.tobytes()
    rows.flags.writeable = False
    model = fit(name, rows, y)
    assert_same(model, fit(name, np.array(rows, dtype=float, order="C"), y.copy()), tol=1e-9)
    assert (rows.tobytes(), y.tobytes()) == before


@every_classifier
def test_34_columns_in_another_order_are_refused(name):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = fit(name, frame)
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[["b", "a", "c"]])


@every_classifier
def test_35_sparse_rows_are_refused_with_the_way_out(name):
    with pytest.raises(TypeError, match=r"Sparse data was passed.*toarray"):
        fit(name, scipy.sparse.csr_array(X))
