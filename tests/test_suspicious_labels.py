"""Labels that look like mistakes: found where they were changed, hardly elsewhere."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine

from iclda import AverageLDA, SemiSupervisedEnsemble
from iclda._suspicious_labels import suspicious_labels

# Draws of the labeled rows.
N_DRAWS = 4


def predictions(n_wrong=0, n_hard=0):
    """Probabilities of 40 rows of each of two classes, all sure but the hard ones.

    The first rows have a label that is wrong, the next ones lie in the overlap.
    """
    codes = np.repeat([0, 1], 40)
    of_first_class = np.concatenate([np.linspace(0.8, 0.99, 40), np.full(40, 0.1)])
    of_first_class[40:] -= np.linspace(0, 0.09, 40)
    of_first_class[:n_wrong] = np.linspace(0.02, 0.03, n_wrong)
    of_first_class[n_wrong : n_wrong + n_hard] = 0.4
    return np.column_stack([of_first_class, 1 - of_first_class]), codes


def test_a_row_in_the_middle_of_another_class_is_listed_and_one_in_the_overlap_is_not():
    assert suspicious_labels(*predictions()).tolist() == []
    assert suspicious_labels(*predictions(n_wrong=3, n_hard=3)).tolist() == [0, 1, 2]


def test_nothing_is_listed_where_the_classes_overlap():
    assert suspicious_labels(*predictions(n_wrong=3, n_hard=8)).tolist() == [0, 1, 2]
    assert suspicious_labels(*predictions(n_wrong=3, n_hard=9)).tolist() == []


def test_nothing_is_listed_where_many_labels_are_contradicted():
    assert len(suspicious_labels(*predictions(n_wrong=12))) > 0
    assert suspicious_labels(*predictions(n_wrong=13)).tolist() == []


@pytest.mark.parametrize(("n_unrecognized", "n_listed"), [(5, 5), (6, 0)])
def test_no_label_is_listed_of_a_class_that_is_not_recognized(n_unrecognized, n_listed):
    """Most rows of a rare class are predicted as the frequent one."""
    probabilities, codes = predictions()
    probabilities = np.vstack(
        [np.tile(probabilities[:1], (100, 1)), probabilities[:50]]
    )
    codes = np.concatenate([np.zeros(100, dtype=int), codes[:50]])
    probabilities[-n_unrecognized:] = [0.999, 0.001]
    assert len(suspicious_labels(probabilities, codes)) == n_listed


def test_no_label_is_listed_for_a_class_that_is_not_recognized():
    probabilities, codes = predictions(n_wrong=2)
    is_kept = np.r_[0:40, 40:49]
    probabilities = probabilities[is_kept]
    codes = codes[is_kept]
    assert suspicious_labels(probabilities, codes).tolist() == [0, 1]
    probabilities[44:] = [0.6, 0.4]
    assert suspicious_labels(probabilities, codes).tolist() == []


def test_the_ten_least_probable_labels_are_listed():
    probabilities, codes = predictions(n_wrong=12)
    backwards = suspicious_labels(probabilities[::-1], codes[::-1])
    assert backwards.tolist() == [79 - row for row in range(10)]


def test_rows_that_were_not_tested_are_not_listed():
    probabilities, codes = predictions(n_wrong=3)
    probabilities[1] = np.nan
    assert suspicious_labels(probabilities, codes).tolist() == [0, 2]
    probabilities[:] = np.nan
    assert suspicious_labels(probabilities, codes).tolist() == []


def test_four_labels_do_not_show_what_a_class_looks_like():
    probabilities, codes = predictions(n_wrong=1)
    for n_rows, listed in ((45, [0]), (44, [])):
        assert suspicious_labels(probabilities[:n_rows], codes[:n_rows]).tolist() == (
            listed
        )


def listed_and_wrong(method, load, seed, n_labeled, n_wrong):
    """Return the rows that are listed, and those whose label was changed."""
    X, truth = load(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(truth))[:600]
    X = X[order]
    labels = truth[order].copy()
    wrong = rng.choice(n_labeled, n_wrong, replace=False)
    n_classes = truth.max() + 1
    labels[wrong] = (labels[wrong] + rng.integers(1, n_classes, n_wrong)) % n_classes
    labels[n_labeled:] = -1
    classifier = method().fit(X, labels)
    listed = suspicious_labels(classifier.held_out_probabilities_, labels[:n_labeled])
    return {*listed.tolist()}, {*wrong.tolist()}


@pytest.mark.parametrize(
    ("load", "n_labeled"), [(load_iris, 100), (load_wine, 100), (load_digits, 300)]
)
def test_most_wrong_labels_are_listed_and_hardly_any_others(load, n_labeled):
    n_found = 0
    n_false_alarms = 0
    for seed in range(N_DRAWS):
        listed, wrong = listed_and_wrong(AverageLDA, load, seed, n_labeled, 5)
        n_found += len(listed & wrong)
        n_false_alarms += len(listed - wrong)
        listed, _ = listed_and_wrong(AverageLDA, load, seed, n_labeled, 0)
        n_false_alarms += len(listed)
    assert n_found >= 2 * N_DRAWS
    assert n_false_alarms <= 3 * N_DRAWS


def test_the_ensemble_finds_wrong_labels():
    listed, wrong = listed_and_wrong(SemiSupervisedEnsemble, load_wine, 0, 100, 5)
    assert len(listed & wrong) >= 3
    assert len(listed - wrong) <= 1
