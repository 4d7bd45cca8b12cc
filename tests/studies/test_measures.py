import numpy as np
from numpy.testing import assert_allclose

from iclda.studies.measures import (
    bins_of,
    brier_score,
    calibration_error,
)

RNG = np.random.default_rng(0)
PROBABILITIES = RNG.dirichlet([1, 1, 1], 200)
CODES = RNG.integers(3, size=200)


def test_the_brier_score_of_sure_answers_is_the_error():
    sure = np.eye(3)[PROBABILITIES.argmax(axis=1)]
    assert_allclose(brier_score(sure, CODES), np.mean(sure.argmax(axis=1) != CODES))


def test_the_brier_score_of_two_classes_is_the_mean_squared_error_of_one_of_them():
    share = PROBABILITIES[:, 0]
    both, codes = np.column_stack([1 - share, share]), CODES % 2
    assert_allclose(brier_score(both, codes), np.mean((share - codes) ** 2))


def test_bins_hold_every_row():
    bins = bins_of(PROBABILITIES, CODES)
    assert bins[:, 0].sum() == 200
    assert_allclose(bins[:, 1].sum(), PROBABILITIES.max(axis=1).sum())
    assert bins[:, 2].sum() == (PROBABILITIES.argmax(axis=1) == CODES).sum()


def test_probabilities_that_come_true_as_often_as_they_say_are_calibrated():
    stated = np.array([[0.75, 0.25]] * 4)
    assert_allclose(calibration_error(bins_of(stated, np.array([0, 0, 0, 1]))), 0)
    assert_allclose(calibration_error(bins_of(stated, np.array([0, 1, 1, 1]))), 0.5)
    assert_allclose(calibration_error(bins_of(np.eye(2), np.array([0, 0]))), 0.5)
