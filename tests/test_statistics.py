"""Corrected tests of splits, Holm's adjustment, and probabilities in bins."""

from math import inf, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from iclda._statistics import (
    BaseRate,
    bin_sums,
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


def test_without_the_correction_it_is_the_paired_t_test():
    a, b = [1.0, 2.5, 3.0, 4.5], [0.5, 2.0, 3.5, 3.0]
    ours = corrected_t_test([x - y for x, y in zip(a, b, strict=True)], 0.0)
    assert ours == pytest.approx(tuple(stats.ttest_rel(a, b)))


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


def test_sums_of_bins_can_be_added():
    rng = np.random.default_rng(0)
    predicted, edges = rng.uniform(size=50), np.linspace(0, 1, 5)
    is_true = rng.uniform(size=50) < predicted
    parts = [bin_sums(predicted[rows], is_true[rows], edges) for rows in (slice(20), slice(20, 50))]
    assert_allclose(sum(parts), bin_sums(predicted, is_true, edges))
    assert sum(parts)[:, 0].sum() == 50


@pytest.mark.parametrize(("n_wrong", "n_rows"), [(0, 20), (1, 27), (9, 178), (20, 20), (5, 10)])
def test_the_interval_of_an_error_is_the_exact_binomial_one(n_wrong, n_rows):
    exact = stats.binomtest(n_wrong, n_rows).proportion_ci(0.9, "exact")
    assert error_interval(n_wrong, n_rows) == pytest.approx((exact.low, exact.high))


def test_no_error_in_twenty_rows_means_up_to_fourteen_percent():
    assert error_interval(0, 20) == pytest.approx((0.0, 0.139), abs=1e-3)
    assert error_interval(0, 0) == (0.0, 1.0)
    assert error_interval(2, 20)[1] < error_interval(2.5, 20)[1] < error_interval(3, 20)[1]


@pytest.mark.parametrize(
    ("error", "high", "brier", "learned"),
    [(0.1, 0.3, 0.1, "clear"), (0.3, 0.5, 0.1, "unclear"), (0.5, 0.6, 0.3, "nothing")],
)
def test_a_method_is_judged_by_what_the_most_frequent_class_would_get(error, high, brier, learned):
    base = BaseRate.of_counts({"rare": 4, "common": 6})
    assert (base.majority, base.error, base.brier) == ("common", 0.4, pytest.approx(0.24))
    assert base.judge(error, high, brier) == learned
    assert base.judge(0.4, 0.5, 0.2) == "unclear"  # probabilities that say something all the same
