"""Corrected tests of splits, Holm's adjustment, bins, the rule that chooses."""

from math import inf, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from iclda._statistics import (
    LEAST_TESTED,
    BaseRate,
    ErrorEstimate,
    corrected_standard_error,
    corrected_t_test,
    error_interval,
    estimate_as_json,
    estimate_error,
    holm,
    mean_interval,
    row_losses,
    safest_choice,
)

VALUES = [1.0, 2.5, 3.0, 4.5, 2.0]


def test_the_corrected_t_test_agrees_with_the_formula_by_hand():
    # mean 2, variance 2/3 x 1 = (1 + 1 + 0 + 0) / 3, factor 1/4 + 1/9
    t, p = corrected_t_test([1.0, 3.0, 2.0, 2.0], 1 / 9)
    assert t == pytest.approx(2 / sqrt((1 / 4 + 1 / 9) * 2 / 3))
    assert p == pytest.approx(2 * stats.t.sf(t, 3))


@pytest.mark.parametrize(
    ("differences", "answer"),
    [([0.0, 0.0], (0.0, 1.0)), ([-1.0, -1.0], (-inf, 0.0))],
)
def test_the_corrected_t_test_answers_where_there_is_no_spread(differences, answer):
    assert corrected_t_test(differences, 0.1) == answer


def test_without_the_correction_error_and_interval_are_those_of_a_mean():
    assert corrected_standard_error(VALUES) == pytest.approx(stats.sem(VALUES))
    expected = stats.ttest_1samp(VALUES, 0).confidence_interval(0.9)
    assert_allclose(mean_interval(VALUES, 0.9), expected)


def test_holm_agrees_with_a_computation_by_hand():
    # 4 x 0.01 = 0.04; 3 x 0.011 = 0.033, raised to 0.04; 2 x 0.03 = 0.06; 1 x 0.5
    assert holm([0.03, 0.01, 0.5, 0.011]) == pytest.approx([0.06, 0.04, 0.5, 0.04])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("n_wrong", "n_rows"), [(0, 20), (1, 27), (9, 178), (20, 20), (5, 10)]
)
def test_the_interval_of_an_error_is_the_exact_binomial_one(n_wrong, n_rows):
    exact = stats.binomtest(n_wrong, n_rows).proportion_ci(0.9, "exact")
    assert error_interval(n_wrong, n_rows) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize(
    ("error", "high", "brier", "learned"),
    [(0.1, 0.3, 0.1, "clear"), (0.3, 0.5, 0.1, "unclear"), (0.5, 0.6, 0.3, "nothing")],
)
def test_a_method_is_judged_by_what_the_most_frequent_class_would_get(
    error, high, brier, learned
):
    base = BaseRate.of_counts({"rare": 4, "common": 6})
    assert (base.majority, base.error, base.brier) == (
        "common",
        0.4,
        pytest.approx(0.24),
    )
    assert base.judge(error, high, brier) == learned
    assert BaseRate.of_counts({"a": 9}).judge(0.5, 0.6, 0.5) == "unclear"
    assert (
        base.judge(0.4, 0.5, 0.2) == "unclear"
    )  # probabilities that say something all the same


def test_a_clearly_lower_loss_is_chosen_however_risky():
    losses = np.array([[0.5] * 20, [0.4] * 20, [0.1] * 20])
    assert safest_choice(losses, np.zeros((3, 20))) == 2


def test_a_loss_within_half_a_standard_error_of_the_lowest_gives_the_safer_one():
    noise = np.resize([0.3, -0.3], 20)  # a standard error of 0.069
    is_wrong = np.repeat([[0.3], [0.2]], 20, axis=1)
    assert safest_choice(np.array([0.5 + noise, np.full(20, 0.47)]), is_wrong) == 0
    assert safest_choice(np.array([0.5 + noise, np.full(20, 0.46)]), is_wrong) == 1


def test_of_candidates_without_a_wrong_row_the_surest_is_not_the_best():
    losses = np.array([np.resize([0.0, 0.02], 20), np.full(20, 0.0004)])
    assert safest_choice(losses, np.zeros((2, 20))) == 0
    assert safest_choice(np.add(losses, [[0.02], [0.0]]), np.zeros((2, 20))) == 1
    assert safest_choice(losses, np.repeat([[0.05], [0.0]], 20, axis=1)) == 1


def test_a_candidate_that_failed_is_never_chosen():
    losses = np.array([[np.nan] * 10, [0.9] * 10])
    assert safest_choice(losses, np.zeros_like(losses)) == 1
    with pytest.raises(ValueError, match="All 2 candidates lack losses"):
        safest_choice(np.full((2, 10), np.nan), np.zeros((2, 10)))


def test_losses_are_brier_scores_and_failed_rows_have_none():
    losses, is_wrong = row_losses(
        np.array([[1.0, 0.0], [0.5, 0.5], [np.nan, np.nan]]), [1, 0, 0]
    )
    assert losses[:2].tolist() == [1.0, 0.25]
    assert is_wrong[:2].tolist() == [1.0, 0.0]
    assert np.isnan(losses[2])
    assert np.isnan(is_wrong[2])


def test_choosing_the_best_of_many_that_guess_is_expected_to_guess():
    """The lowest of 30 shares of heads is far below one half.

    What is expected of it is not.
    """
    draws = [np.random.default_rng(seed).integers(0, 2, (30, 40)) for seed in range(20)]
    lowest = [is_wrong.mean(axis=1).min() for is_wrong in draws]
    expected = [
        estimate_error(is_wrong * 1.0, is_wrong * 1.0).error for is_wrong in draws
    ]
    assert np.mean(lowest) < 0.35
    assert 0.45 < np.mean(expected) < 0.6


def test_the_interval_spans_those_of_all_candidates_between_which_chance_decides():
    first = np.resize([1.0, 0.0, 0.0, 0.0], 40)
    second = np.resize([0.0, 1.0, 0.0, 0.0, 0.0], 40)
    both = np.array([first, second])
    found = estimate_error(both, both)
    assert found.low <= error_interval(second.sum(), 40)[0]
    assert found.high >= error_interval(first.sum(), 40)[1]
    far = np.array([first, np.ones(40)])
    assert estimate_error(far, far).high < 0.5


def test_estimates_name_error_interval_and_rows():
    text = "about 12 % of new rows wrong, 4.2 % to 27 % "
    text += "(90 % interval from 1,234 labeled rows)"
    assert str(ErrorEstimate(0.125, 0.042, 0.27, 1_234)) == text
    assert estimate_as_json(ErrorEstimate(0.125, 0.042, 0.27, 40))["n_rows"] == 40


def test_too_few_rows_have_no_estimate():
    losses = np.zeros((2, LEAST_TESTED - 1))
    assert estimate_error(losses, losses) is None
