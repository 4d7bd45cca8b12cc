"""The base rate, the rule that chooses a method, and the error that it states."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from iclda._error_estimate import (
    MIN_TESTED_ROWS,
    BaseRate,
    ErrorEstimate,
    error_interval,
    estimate_error,
    estimate_error_of_all_labels,
    estimate_final_error,
    first_choice,
    row_losses,
)


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
    assert base.majority == "common"
    assert base.error == 0.4
    assert base.brier == pytest.approx(0.24)
    assert base.judge(error, high, brier) == learned
    assert BaseRate.of_counts({"a": 9}).judge(0.5, 0.6, 0.5) == "unclear"
    # Probabilities may say something although no error is lower.
    assert base.judge(0.4, 0.5, 0.2) == "unclear"


def test_a_clearly_lower_loss_is_chosen_however_risky():
    losses = np.array([[0.5] * 20, [0.4] * 20, [0.1] * 20])
    assert first_choice(losses, np.zeros((3, 20))) == 2


def test_a_method_that_is_not_clearly_better_does_not_replace_the_default():
    # The standard error is 0.069.
    noise = np.resize([0.3, -0.3], 20)
    is_wrong = np.repeat([[0.3], [0.2]], 20, axis=1)
    assert first_choice(np.array([0.5 + noise, np.full(20, 0.37)]), is_wrong) == 0
    assert first_choice(np.array([0.5 + noise, np.full(20, 0.35)]), is_wrong) == 1


def test_of_candidates_without_a_wrong_row_the_surest_is_not_the_best():
    losses = np.array([np.resize([0.0, 0.02], 20), np.full(20, 0.0004)])
    assert first_choice(losses, np.zeros((2, 20))) == 0
    assert first_choice(np.add(losses, [[0.02], [0.0]]), np.zeros((2, 20))) == 1
    assert first_choice(losses, np.repeat([[0.05], [0.0]], 20, axis=1)) == 1


def test_losses_are_brier_scores_and_mistakes_count_one():
    probabilities = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    losses, is_wrong = row_losses(probabilities, np.array([1, 0, 1]))
    assert losses.tolist() == [1.0, 0.25, 0.0625]
    assert is_wrong.tolist() == [1.0, 0.0, 0.0]


def test_probabilities_that_are_not_finite_are_a_mistake_and_not_a_loss():
    with pytest.raises(ValueError, match="probabilities that are not finite numbers"):
        row_losses(np.array([[np.nan, np.nan]]), np.array([0]))


def test_choosing_the_best_of_many_that_guess_is_expected_to_guess():
    # The lowest of 30 shares of heads is far below one half.
    lowest = []
    expected = []
    for seed in range(20):
        is_wrong = np.random.default_rng(seed).integers(0, 2, (30, 40)).astype(float)
        lowest.append(is_wrong.mean(axis=1).min())
        expected.append(estimate_error(is_wrong, is_wrong).error)
    assert np.mean(lowest) < 0.35
    assert 0.45 < np.mean(expected) < 0.6


def test_the_interval_spans_those_of_all_candidates_between_which_chance_decides():
    first = np.resize([1.0, 0.0, 0.0, 0.0], 40)
    second = np.resize([0.0, 1.0] + [0.0] * 8, 40)
    both = np.array([first, second])
    estimate = estimate_error(both, both)
    assert estimate.low <= error_interval(second.sum(), 40)[0]
    assert estimate.high >= error_interval(first.sum(), 40)[1]
    far = np.array([first, np.ones(40)])
    assert estimate_error(far, far).high < 0.5


def test_estimates_name_error_interval_and_rows():
    estimate = ErrorEstimate(0.125, 0.042, 0.27, 1_234)
    text = (
        "about 12 % of new rows wrong, 4.2 % to 27 % (90 % interval from 1,234 labeled "
        "rows)"
    )
    assert str(estimate) == text
    stated = {"error": 0.125, "low": 0.042, "high": 0.27, "n_rows": 1_234}
    assert estimate.to_json() == {**stated, "text": text}


def test_too_few_rows_have_no_estimate():
    losses = np.zeros((2, MIN_TESTED_ROWS - 1))
    assert estimate_error(losses, losses) is None


def test_the_lower_end_allows_for_what_more_rows_may_gain():
    losses = np.array([np.resize([1.0, 0.0, 0.0, 0.0], 40)])
    plain = estimate_error(losses, losses)
    n_labels = np.array([20, 20])
    final = estimate_final_error(losses, losses, n_labels, 4, share_of_unlabeled=1.0)
    assert final.low == pytest.approx(plain.low * sqrt(3 / 4))
    sampled = estimate_final_error(losses, losses, n_labels, 4, share_of_unlabeled=0.01)
    assert sampled.low < final.low
    assert final.high == sampled.high == plain.high


def test_two_labels_a_class_are_too_few_for_an_estimate():
    losses = np.zeros((1, 12))
    n_labels = np.full(6, 2)
    assert estimate_final_error(losses, losses, n_labels, 2, 1.0) is None


def test_rows_drawn_at_random_give_the_interval_of_their_mistakes():
    is_wrong = np.arange(20) < 5
    estimate = estimate_error_of_all_labels(is_wrong, n_labels=100, n_folds=5)
    low, high = error_interval(5, 20)
    assert estimate.error == 0.25
    assert estimate.high == high
    assert estimate.low == pytest.approx(low * sqrt(0.96))
