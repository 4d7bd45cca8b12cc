"""Faults in the data, for the classifiers that are not LDA."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclda import ColumnError, LeastSquaresClassifier, NearestMean
from problems import OTHERS

EVERY = {"nearest-mean": NearestMean, "least-squares": LeastSquaresClassifier, **OTHERS}
every_classifier = pytest.mark.parametrize("classifier", EVERY.values(), ids=EVERY)
semi_supervised = pytest.mark.parametrize("classifier", OTHERS.values(), ids=OTHERS)

RNG = np.random.default_rng(20)
TRUE = np.arange(40) % 2
ROWS = RNG.standard_normal((40, 3)) + 2 * TRUE[:, None]
Y = np.where(np.arange(40) < 16, TRUE, -1)


@every_classifier
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("row", [3, 30])
def test_nan_and_infinity_are_errors_that_name_the_column(classifier, value, row):
    rows = pd.DataFrame(ROWS.copy(), columns=["a", "b", "c"])
    rows.iloc[row, 1] = value
    with pytest.raises(ColumnError, match="'b'"):
        classifier().fit(rows, Y)
    model = classifier().fit(ROWS, Y)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model.predict(rows.to_numpy())


@semi_supervised
def test_one_enormous_entry_is_an_error_that_names_the_column(classifier):
    unlabeled = np.tile(ROWS, (250, 1))
    unlabeled[7_777, 1] = 1e160
    with pytest.raises(ColumnError, match=r"standard deviation of column 1 .*rescale"):
        classifier().fit(ROWS, TRUE, X_unlabeled=unlabeled)


@every_classifier
def test_labels_may_be_anything_and_none_marks_a_row(classifier):
    names = np.array(["no", "yes"], dtype=object)[TRUE]
    y = np.where(Y < 0, None, names)
    model = classifier(unlabeled=None).fit(ROWS, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert_array_equal(model.predict(ROWS) == "yes", classifier().fit(ROWS, Y).predict(ROWS) == 1)
    assert model.score(ROWS, y) > 0.8


@every_classifier
def test_one_class_no_label_and_wrong_lengths_are_refused(classifier):
    with pytest.raises(ValueError, match="at least 2 classes, got 1 class"):
        classifier().fit(ROWS, np.where(Y == 1, -1, Y))
    with pytest.raises(ValueError, match="40 rows"):
        classifier().fit(ROWS, Y[:-1])
    with pytest.raises(ValueError, match="4 features"):
        classifier().fit(ROWS, Y).predict(np.ones((2, 4)))


@every_classifier
def test_a_row_far_from_zero_and_columns_of_all_scales_leave_finite_predictions(classifier):
    rows = ROWS * np.array([1e-8, 1.0, 1e6]) + np.array([0.0, 1e6, 0.0])
    model = classifier().fit(rows, Y)
    found = model.predict_proba(rows)
    assert np.isfinite(found).all()
    assert_allclose(found.sum(axis=1), 1)


@every_classifier
def test_rows_are_not_changed_and_a_second_fit_forgets_the_first(classifier):
    rows, y = ROWS.copy(), Y.copy()
    model = classifier().fit(rows, y)
    before = model.decision_function(ROWS)
    model.fit(ROWS[:, :2], np.where(Y < 0, -1, 1 - Y))
    assert model.n_features_in_ == 2
    assert_allclose(model.fit(rows, y).decision_function(ROWS), before)
    assert_array_equal(rows, ROWS)
    assert_array_equal(y, Y)


@every_classifier
def test_perfectly_separated_classes_are_told_apart(classifier):
    rows = ROWS + np.outer(TRUE, [1e3, 0.0, 0.0])
    model = classifier().fit(rows, Y)
    assert_array_equal(model.predict(rows), TRUE)
    assert np.isfinite(model.coef_).all()
