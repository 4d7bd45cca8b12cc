"""Rows, weights and priors that break careless arithmetic."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from iclda import (
    AverageLDA,
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    MomentConstrainedLDA,
    NormalizedLDA,
    NotConvergedWarning,
    SelfLearningLDA,
    SupervisedLDA,
)
from tests.helpers.changes import assert_finite, assert_same_fit
from tests.helpers.problems import (
    by_labeling,
    draw_marked,
    every_classifier,
    semi_supervised,
    whole_family,
)

X, Y, TRUE = draw_marked()


def tolerance(classifier, exact=1e-10):
    """How alike fits of equal data are: iterations end near the maximum."""
    if classifier is ImplicitlyConstrainedLDA:
        return 1e-7
    return 1e-8 if classifier in (AverageLDA, ExpectationMaximizationLDA) else exact


# 12. More features than labeled rows.


def test_12_more_features_than_labels_leave_the_supervised_fit_a_rank_and_one_warning():
    rows, y, _ = draw_marked(n_labeled=3, n_unlabeled=0, n_features=12)
    message = "6 labeled rows are too few, .*span 4 of 5 dimensions.*Label more rows"
    with pytest.warns(UserWarning, match=message) as caught:
        model = SupervisedLDA().fit(rows, y)
    assert len(caught) == 1
    assert model.rank_ == 4
    assert_finite(model, rows)


@every_classifier
@pytest.mark.parametrize("shrinkage", [0.1, "auto"])
def test_12_shrinkage_makes_more_features_than_rows_an_ordinary_problem(
    classifier, shrinkage
):
    rows, y, _ = draw_marked(n_labeled=4, n_unlabeled=8, n_features=30)
    model = classifier(shrinkage=shrinkage).fit(rows, y)
    assert model.rank_ == 30
    assert_finite(model, rows)


# 18. and 19. Units.


@every_classifier
@pytest.mark.parametrize(
    ("scale", "shown"),
    [(1e200, r"\d\.\d*e\+200"), (1e-200, r"\d\.\d*e-200"), (1e-310, "e-31")],
)
def test_19_a_column_whose_variance_is_no_number_is_named_with_its_deviation(
    classifier, scale, shown
):
    rows = X * [1.0, scale, 1.0]
    message = rf"deviation of column 1 is .*{shown}.* between 1e-50 and 1e\+50.*rescale"
    with pytest.raises(ValueError, match=message):
        classifier().fit(rows, Y)


@semi_supervised
def test_19_one_enormous_entry_among_many_rows_is_found(classifier):
    rows = np.random.default_rng(3).standard_normal((12_000, 2))
    rows[11_001, 1] = 1e200
    y = np.where(np.arange(12_000) < 20, np.arange(12_000) % 2, -1)
    with pytest.raises(
        ValueError, match=r"deviation of column 1 is too large.*rescale"
    ):
        classifier().fit(rows, y)


def test_19_a_row_so_far_away_that_its_density_is_none_says_so():
    model = SupervisedLDA().fit(X * 1e-40, Y)
    assert_array_equal(model.score_samples(np.full((1, 3), 1e120)), -np.inf)
    assert_allclose(model.predict_proba(np.full((1, 3), 1e120)).sum(), 1)


# 20. NaN and infinity.


@every_classifier
@pytest.mark.parametrize(
    ("value", "shown"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
@pytest.mark.parametrize("row", [3, 35], ids=["labeled", "unlabeled"])
def test_20_an_entry_that_is_no_number_is_named_by_row_and_column(
    classifier, value, shown, row
):
    rows = X.copy()
    rows[row, 2] = value
    message = rf"contains {shown}, first in row {row}, column 2\. .*drop these rows"
    with pytest.raises(ValueError, match="Input X " + message):
        classifier().fit(rows, Y)
    with pytest.raises(ValueError, match="Input X_unlabeled " + message):
        classifier().fit(X, Y, X_unlabeled=rows)
    with pytest.raises(ValueError, match="Input X " + message):
        classifier().fit(X, Y).predict(rows)


# 21. to 23. Dtypes.


@every_classifier
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_21_float32_rows_are_summed_in_float64(classifier, offset):
    rows = (X + offset).astype(np.float32)
    model = classifier().fit(rows, Y)
    exact = classifier().fit(rows.astype(np.float64), Y)
    assert model.coef_.dtype == model.predict_proba(rows).dtype == np.float64
    assert_same_fit(model, exact, 1e-5)
    assert_allclose(
        model.predict_proba(rows),
        exact.predict_proba(rows.astype(float)),
        rtol=0,
        atol=1e-5,
    )


@every_classifier
@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "int64", "float16"])
def test_22_narrow_integers_do_not_wrap_around(classifier, dtype):
    rows = {"bool": X > 0.5, "uint8": np.clip(np.round(40 * X) + 128, 0, 255)}.get(
        dtype, np.clip(np.round(40 * X), -128, 127)
    )
    narrow = rows.astype(dtype)
    wide = rows.astype(np.float64)
    model = classifier().fit(narrow, Y)
    exact = classifier().fit(wide, Y)
    assert_same_fit(model, exact, 1e-12)
    assert_allclose(
        model.predict_proba(narrow), exact.predict_proba(wide), rtol=0, atol=1e-12
    )


def with_column(values):
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(b=values)


NOT_NUMBERS = {
    "text": (
        with_column("red"),
        "column 'b' holds text, for example 'red'.*TableClassifier",
    ),
    "category": (
        with_column(pd.Categorical(["red"] * 40)),
        "column 'b' holds text.*'red'",
    ),
    "date": (
        with_column(pd.Timestamp("2020-01-31")),
        "column 'b' .*2020-01-31.* into numbers",
    ),
    "zoned": (
        with_column(pd.Timestamp("2020-01-31", tz="UTC")),
        "column 'b' .*2020-01-31",
    ),
    "day": (
        with_column([datetime.date(2020, 1, 31)] * 40),
        "column 'b' .*2020, 1, 31.*real",
    ),
    "duration": (with_column(pd.Timedelta("1D")), "column 'b' holds .*real number"),
    "polars": (
        pl.DataFrame({"a": X[:, 0], "b": ["x"] * 40}),
        "column 'b' holds text.*'x'",
    ),
    "list": (
        [[1.0, 2.0, "red"]] * 40,
        "column 2 holds text, for example 'red'.*TableClassifier",
    ),
    "dates": (
        np.full((40, 3), np.datetime64("2020-01-31")),
        "column 0 .*2020-01-31.*real number",
    ),
    "text array": (
        np.where(np.eye(40, 3), "red", "1"),
        "column 0 holds text, for example 'red'",
    ),
    "gap in a list": (
        [[None, 1.0, 2.0], *X[1:].tolist()],
        "contains NaN, first in row 0, column 0",
    ),
}


@pytest.mark.parametrize(("rows", "message"), NOT_NUMBERS.values(), ids=NOT_NUMBERS)
def test_23_what_holds_no_real_numbers_is_named(rows, message):
    model = SelfLearningLDA().fit(X, Y)
    for call in (lambda: model.fit(rows, Y), lambda: model.score(rows, TRUE)):
        with pytest.raises((ValueError, TypeError), match=message):
            call()


@pytest.mark.parametrize("value", [{"k": 1}, [1, 2], np.void(b"abc")], ids=repr)
def test_23_a_column_of_objects_is_named(value):
    rows = X.astype(object)
    rows[3, 1] = value
    with pytest.raises(
        TypeError, match=r"column 1 holds .*must be a string.* or drop it"
    ):
        SelfLearningLDA().fit(rows, Y)


@pytest.mark.skipif(
    np.finfo(np.longdouble).max == np.finfo(float).max, reason="no longer floats"
)
@whole_family
def test_20_a_long_double_beyond_float64_is_named_without_warnings(classifier):
    model = classifier().fit(X, Y)
    rows = X.astype(np.longdouble)
    assert_array_equal(model.predict(rows), model.predict(X))
    rows[3, 1] = np.longdouble("1e4000")
    for call in (lambda: classifier().fit(rows, Y), lambda: model.predict(rows)):
        with pytest.raises(ValueError, match=r"infinity, first in row 3, column 1"):
            call()


def test_19_an_integer_beyond_float64_is_named_by_its_column():
    model = SelfLearningLDA().fit(X, Y)
    rows = X.astype(object)
    rows[3, 1] = 10**400
    message = (
        r"^X, column 1 holds a number too large for float64.*: rescale the column\.$"
    )
    with pytest.raises(ValueError, match=message):
        SelfLearningLDA().fit(rows, Y)
    with pytest.raises(ValueError, match=message):
        model.predict(rows)


# 24. Small problems.


@pytest.mark.filterwarnings("ignore:SelfLearningLDA. a mix of columns")
def test_24_a_row_half_way_between_two_classes_counts_in_one_of_them():
    # In whitened coordinates three rows are an equilateral triangle: the third is a
    # tie.
    rows = np.array([[0.0, 1.0], [1.0, 1.0], [0.4, 3.0]])
    model = SelfLearningLDA().fit(rows, [0, 1, -1])
    label = model.class_weights_.argmax()
    codes = np.array([0, 1, label])
    assert_allclose(
        model.means_, [rows[codes == k].mean(axis=0) for k in (0, 1)], atol=1e-12
    )
    deviations = rows - model.means_[codes]
    assert_allclose(model.covariance_, deviations.T @ deviations / 3, atol=1e-8)


# 25. and 26. Weights.


@semi_supervised
def test_26_weights_of_unlabeled_rows_count(classifier):
    heavy = classifier().fit(X, Y, np.where(Y < 0, 20.0, 1.0))
    light = classifier().fit(X, Y, np.where(Y < 0, 1e-9, 1.0))
    expected = SupervisedLDA().fit(X, Y).coef_
    # Its limit has the direction only.
    if classifier is NormalizedLDA:
        expected = expected * np.linalg.norm(light.coef_) / np.linalg.norm(expected)
    assert_allclose(light.coef_, expected, rtol=1e-6)
    assert np.abs(heavy.coef_ - light.coef_).max() > 0.1


@every_classifier
@pytest.mark.parametrize("unit", [1e-100, 1e-3, 1e100])
def test_25_the_unit_of_the_weights_changes_nothing(classifier, unit):
    model = classifier().fit(X, Y, np.full(40, unit))
    plain = classifier().fit(X, Y)
    assert_same_fit(model, plain, tolerance(classifier))


BAD_WEIGHTS = {
    "of no label": (
        (Y < 0).astype(float),
        "y labels no row: all 40 rows .* or have weight 0",
    ),
    "zero": (np.zeros(40), r"is zero for all 40 rows: at least one must count"),
    "negative": (
        np.r_[np.ones(39), -2.5],
        r"0, which leaves a row out, .*got -2\.5 in row 39",
    ),
    "NaN": (np.r_[1.0, np.nan, np.ones(38)], "must be 0, .*got nan in row 1"),
    "infinite": (np.r_[np.inf, np.ones(39)], "must be 0, .*got inf in row 0"),
    "text": ([1.0, 2.0, "heavy", *[1.0] * 37], "numbers, got 'heavy' in row 2"),
    "missing": ([1.0, None, *[1.0] * 38], "must hold numbers, got None in row 1"),
    "short": (np.ones(39), r"one number for each of the 40 rows, got shape \(39,\)"),
    "2-d": (
        np.ones((40, 1)),
        r"one number for each of the 40 rows, got shape \(40, 1\)",
    ),
    "masked": (
        np.ma.array(np.ones(40), mask=np.arange(40) == 3),
        "has masked entries: fill them",
    ),
}


@every_classifier
@pytest.mark.parametrize(("weights", "message"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_26_weights_that_are_none_are_refused(classifier, weights, message):
    with pytest.raises(ValueError, match=message):
        classifier().fit(X, Y, weights)
    if not message.startswith("y "):
        with pytest.raises(ValueError, match="sample_weight_unlabeled .*" + message):
            classifier().fit(X, Y, X_unlabeled=X, sample_weight_unlabeled=weights)
    with pytest.raises(
        ValueError, match="weighs the rows of X_unlabeled, which was not passed"
    ):
        classifier().fit(X, Y, sample_weight_unlabeled=weights)


@every_classifier
@pytest.mark.parametrize("tiny", [1e-14, 1e-90])
def test_26_a_class_next_to_nothing_beside_all_rows_is_named(classifier, tiny):
    message = r"rows of class 1 hold .*e-\d+ of the weight of all rows, "
    message += "and must hold at least 1e-12"
    with pytest.raises(ValueError, match=message):
        classifier().fit(X, Y, np.where(Y == 1, tiny, 1.0))
    assert_finite(classifier(shrinkage=0.1).fit(X, Y, np.where(Y == 1, 1e-9, 1.0)), X)


# 27. Priors.

LABELED_LIKELIHOOD = [ExpectationMaximizationLDA, ImplicitlyConstrainedLDA]
NO_LABELED_LIKELIHOOD = [SupervisedLDA, SelfLearningLDA, MomentConstrainedLDA]


@pytest.mark.parametrize("classifier", NO_LABELED_LIKELIHOOD)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("never", [0, 1])
def test_27_a_class_of_prior_zero_is_never_predicted(classifier, n_classes, never):
    rows, y, _ = draw_marked(n_classes=n_classes)
    priors = np.where(np.arange(n_classes) == never, 0.0, 1 / (n_classes - 1))
    model = classifier(priors=priors).fit(rows, y)
    assert never not in model.predict(rows)
    assert_array_equal(model.predict_proba(rows)[:, never], 0)
    log_probabilities = model.predict_log_proba(rows)
    assert_array_equal(log_probabilities[:, never], -np.inf)
    assert np.isfinite(np.delete(log_probabilities, never, axis=1)).all()
    assert np.isfinite(model.score_samples(rows)).all()
    joint = model.log_likelihood(rows[:n_classes], np.arange(n_classes))
    assert_array_equal(np.isneginf(joint), np.arange(n_classes) == never)
    assert not np.isnan(joint).any()


@pytest.mark.parametrize("classifier", LABELED_LIKELIHOOD)
def test_27_prior_zero_of_a_labeled_class_has_no_likelihood_to_maximize(classifier):
    with pytest.raises(
        ValueError, match=r"priors gives 0 to \[1\], .*small positive prior"
    ):
        classifier(priors=[1.0, 0.0]).fit(X, Y)


@every_classifier
@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ([-0.1, 1.1], r"at least 0, got \[-0\.1, 1\.1\] for the classes \[0, 1\]"),
        ([np.nan, 1.0], r"at least 0, got \[nan, 1\.0\] for the classes \[0, 1\]"),
        (
            [0.5, 0.5, 0.0],
            r"hold 2 numbers, one for each of the classes \[0, 1\], got 3",
        ),
        ([[0.5, 0.5]], r"be a number for each class, got \[\[0\.5, 0\.5\]\]"),
        ([0.5, 0.75], r"got \[0\.5, 0\.75\], which add up to 1\.25: divide them"),
        ({0: 0.5, 1: 0.75}, r"got \[0\.5, 0\.75\], which add up to 1\.25: divide them"),
    ],
    ids=["negative", "NaN", "long", "2-d", "sum", "sum of a dict"],
)
def test_27_priors_that_are_none_are_refused(classifier, priors, message):
    with pytest.raises(ValueError, match="priors must .*" + message):
        classifier(priors=priors).fit(X, Y)


# 29. Unlabeled rows from elsewhere.


@pytest.mark.parametrize("n_labeled", [8, 11, 16, 20])
def test_29_a_column_without_spread_among_the_labels_is_no_shift(n_labeled):
    # Rounding gave the constant a spread of 1e-19, and everything was far away by that
    # measure.
    n_rows = n_labeled + 300
    y = np.where(np.arange(n_rows) < n_labeled, np.arange(n_rows) % 3, -1)
    wide = np.random.default_rng(0).normal(size=n_rows) + 3 * (np.arange(n_rows) % 3)
    SelfLearningLDA().fit(np.column_stack([wide, np.arange(n_rows) == n_rows - 1]), y)


@by_labeling
def test_12_more_features_than_rows_are_said_once_with_the_rank(classifier):
    rows, y, _ = draw_marked(n_labeled=4, n_unlabeled=8, n_features=30)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = classifier().fit(rows, y)
    about_rank = [
        w for w in caught if "Rows span 15 of 30 dimensions" in str(w.message)
    ]
    assert len(about_rank) == 1
    assert {w.category for w in caught} <= {UserWarning, NotConvergedWarning}
    assert model.rank_ == 15
    assert_finite(model, rows)


@semi_supervised
def test_29_a_million_unlabeled_rows_for_every_label_leave_a_finite_fit(classifier):
    unlabeled = X[16:]
    weights = np.full(len(unlabeled), 16e6 / len(unlabeled))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = classifier().fit(
            X[:16], Y[:16], X_unlabeled=unlabeled, sample_weight_unlabeled=weights
        )
    assert_finite(model, X)
