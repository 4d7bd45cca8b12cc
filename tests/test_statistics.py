"""Corrected tests of splits, Holm's adjustment, and probabilities in bins."""

from math import inf, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from iclda._statistics import (
    BaseRate,
    corrected_standard_error,
    corrected_t_test,
    error_interval,
    finite_means,
    holm,
    mean_interval,
)

VALUES = [1.0, 2.5, 3.0, 4.5, 2.0]


def test_the_corrected_t_test_agrees_with_the_formula_by_hand():
    # mean 2, variance 2/3 x 1 = (1 + 1 + 0 + 0) / 3, factor 1/4 + 1/9
    t, p = corrected_t_test([1.0, 3.0, 2.0, 2.0], 1 / 9)
    assert t == pytest.approx(2 / sqrt((1 / 4 + 1 / 9) * 2 / 3))
    assert p == pytest.approx(2 * stats.t.sf(t, 3))


@pytest.mark.parametrize(
    ("differences", "answer"),
    [([0.0, 0.0], (0.0, 1.0)), ([-1.0, -1.0], (-inf, 0.0)), ([3.0], (0.0, 1.0)), ([], (0.0, 1.0))],
)
def test_the_corrected_t_test_answers_where_there_is_no_spread(differences, answer):
    assert corrected_t_test(differences, 0.1) == answer


def test_without_the_correction_error_and_interval_are_those_of_a_mean():
    assert corrected_standard_error(VALUES) == pytest.approx(stats.sem(VALUES))
    expected = stats.ttest_1samp(VALUES, 0).confidence_interval(0.9)
    assert_allclose(mean_interval(VALUES, 0.9), expected)


def test_a_corrected_interval_excludes_zero_where_the_corrected_test_is_significant():
    _, p = corrected_t_test(VALUES, 0.3)
    assert mean_interval(VALUES, 1 - p, 0.3)[0] == pytest.approx(0, abs=1e-12)


def test_holm_agrees_with_a_computation_by_hand():
    # 4 x 0.01 = 0.04; 3 x 0.011 = 0.033, raised to 0.04; 2 x 0.03 = 0.06; 1 x 0.5
    assert holm([0.03, 0.01, 0.5, 0.011]) == pytest.approx([0.06, 0.04, 0.5, 0.04])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_means_leave_out_what_is_not_finite():
    scores = np.array([[0.5, np.nan, 0.7], [np.inf, 0.4, 0.6], [np.nan, 0.4, np.nan], [np.nan] * 3])
    mean, error = finite_means(scores)
    assert_allclose(mean, [0.6, 0.5, 0.4, np.nan])
    assert_allclose(error, [0.1, 0.1, np.nan, np.nan])


@pytest.mark.parametrize(("n_wrong", "n_rows"), [(0, 20), (1, 27), (9, 178), (20, 20), (5, 10)])
def test_the_interval_of_an_error_is_the_exact_binomial_one(n_wrong, n_rows):
    exact = stats.binomtest(n_wrong, n_rows).proportion_ci(0.9, "exact")
    assert error_interval(n_wrong, n_rows) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize(
    ("error", "high", "brier", "learned"),
    [(0.1, 0.3, 0.1, "clear"), (0.3, 0.5, 0.1, "unclear"), (0.5, 0.6, 0.3, "nothing")],
)
def test_a_method_is_judged_by_what_the_most_frequent_class_would_get(error, high, brier, learned):
    base = BaseRate.of_counts({"rare": 4, "common": 6})
    assert (base.majority, base.error, base.brier) == ("common", 0.4, pytest.approx(0.24))
    assert base.judge(error, high, brier) == learned
    assert base.judge(0.4, 0.5, 0.2) == "unclear"  # probabilities that say something all the same
