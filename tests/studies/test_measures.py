"""The table of measures, and values of folds and repeats."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import (
    balanced_accuracy_score,
    confusion_matrix,
    roc_auc_score,
)

from iclda.studies.measures import (
    MEASURES,
    PAPER_MEASURES,
    Confusion,
    Measure,
    Predictions,
    compute_measures,
    count_confusion,
    mean_confusion,
    ranking_losses,
    verdict,
    weights_of_classes,
    write_confusion,
)
from iclda.studies.page import arrow

PROBABILITIES = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
PREDICTIONS = Predictions(
    truth=np.array([0, 0, 1]),
    is_wrong=np.array([False, True, False]),
    probabilities=PROBABILITIES,
    log_likelihood=np.array([-1.0, -2.0, -3.0]),
    log_likelihood_labeled=np.array([-4.0]),
)


def test_measures_of_the_paper_have_its_names_and_values():
    assert list(PAPER_MEASURES) == ["error", "nll", "nll_labeled"]
    found = compute_measures(PREDICTIONS, PAPER_MEASURES)
    assert found == pytest.approx({"error": 1 / 3, "nll": 2.0, "nll_labeled": 4.0})


def test_a_classifier_without_a_density_has_no_loss():
    bare = Predictions(PREDICTIONS.truth, PREDICTIONS.is_wrong, PROBABILITIES)
    assert compute_measures(bare, PAPER_MEASURES) == pytest.approx({"error": 1 / 3})


def test_the_brier_score_agrees_with_a_computation_by_hand():
    # (0.2^2 + 0.6^2 + 0.3^2) / 3
    assert MEASURES["brier"].function(PREDICTIONS) == pytest.approx(0.49 / 3)


def test_the_balanced_error_is_the_mean_of_the_errors_of_the_classes():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60) % 3
    predicted = rng.integers(0, 3, 60)
    weights = weights_of_classes(np.bincount(truth))
    given = Predictions(
        truth, truth != predicted, np.eye(3)[predicted], class_weights=weights
    )
    expected = 1 - balanced_accuracy_score(truth, predicted)
    assert MEASURES["balanced"].function(given) == pytest.approx(expected)
    assert MEASURES["auc"].function(given) is None
    # A class that is not among the rows does not count.
    assert weights_of_classes(np.array([4, 0, 4])).tolist() == [1, 0, 1]


@pytest.mark.parametrize("n_values", [3, 1000])
def test_the_area_under_the_curve_is_that_of_sklearn_for_either_class(n_values):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 40)
    # With few values there are ties.
    scores = np.round(rng.random(40) * n_values) / n_values
    probabilities = np.stack([1 - scores, scores], axis=1)
    expected = roc_auc_score(truth, scores)
    given = Predictions(truth, truth == 2, probabilities)
    assert MEASURES["auc"].function(given) == pytest.approx(expected)
    losses = ranking_losses(probabilities, truth)
    for code in (0, 1):
        assert 1 - losses[truth == code].mean() == pytest.approx(expected)
    assert ranking_losses(probabilities, np.zeros(40, int)) is None


@pytest.mark.parametrize(
    ("lower_is_better", "difference", "found"),
    [
        (True, -0.1, ("better", "\N{BLACK DOWN-POINTING TRIANGLE}")),
        (True, 0.1, ("worse", "\N{BLACK UP-POINTING TRIANGLE}")),
        (False, 0.1, ("better", "\N{BLACK UP-POINTING TRIANGLE}")),
        (False, -0.1, ("worse", "\N{BLACK DOWN-POINTING TRIANGLE}")),
    ],
)
def test_verdicts_follow_the_direction_of_a_measure(lower_is_better, difference, found):
    measure = Measure("m", "m", "M", "a measure", lower_is_better=lower_is_better)
    said = verdict(difference, 0.01, measure)
    assert (said, arrow(said, measure)) == found
    assert verdict(difference, 0.05, measure) == ""


@pytest.fixture
def codes():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [60, 30, 10])
    return truth, np.where(rng.random(100) < 0.2, rng.integers(0, 3, 100), truth)


def test_the_matrix_and_its_errors_are_those_of_scikit_learn(codes):
    counts = count_confusion(*codes, 3)
    assert_allclose(counts, confusion_matrix(*codes))
    found = Confusion(("a", "b", "c"), counts)
    assert found.error == pytest.approx(np.mean(codes[0] != codes[1]))
    assert found.balanced_error == pytest.approx(1 - balanced_accuracy_score(*codes))
    assert found.base.error == pytest.approx(0.4)
    assert found.base.majority == "a"
    assert found.is_uneven
    assert [each.n_rows for each in found.by_class] == [60, 30, 10]
    assert all(each.low <= each.error <= each.high for each in found.by_class)


def test_counts_of_repeats_are_means_over_the_same_rows(codes):
    counts = count_confusion(*codes, 3)
    same = mean_confusion([write_confusion(counts)] * 5, ["a", "b", "c"], 5)
    assert_allclose(same.counts, counts)
    assert mean_confusion([], ["a", "b"], 5) is None
