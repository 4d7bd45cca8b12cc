from itertools import combinations

import numpy as np
import pytest

from iclda import AutoLDA
from iclda.datasets import load_fashion_features
from iclda.model_selection import rows_to_label
from tests.helpers.row_sources import SOURCES


@pytest.fixture(scope="module")
def features():
    X, y = load_fashion_features()
    return X[:1000], y[:1000]


def clusters(n_each=20, n_features=3, seed=0):
    """Five round clusters, and the cluster of every row."""
    rng = np.random.default_rng(seed)
    y = np.arange(5 * n_each) % 5
    return 20 * rng.standard_normal((5, n_features))[y] + rng.standard_normal(
        (len(y), 3)
    ), y


def test_the_first_rows_are_one_of_each_cluster():
    X, y = clusters()
    assert sorted(y[rows_to_label(X, 5)]) == [0, 1, 2, 3, 4]


def test_rows_with_a_label_are_covered_and_never_chosen():
    X, y = clusters()
    labels = np.where((y < 3) & (np.arange(len(y)) < 15), y, -1)
    chosen = rows_to_label(X, 2, labels)
    assert sorted(y[chosen]) == [3, 4]
    everything = rows_to_label(X, int((labels == -1).sum()), labels)
    assert sorted(everything) == np.flatnonzero(labels == -1).tolist()


def test_rows_that_are_being_labeled_are_covered_and_not_chosen_again():
    X, y = clusters()
    pending = np.flatnonzero(y < 3)[:15]
    assert sorted(y[rows_to_label(X, 2, pending=pending)]) == [3, 4]
    labels = np.where(np.arange(len(y)) == 99, y, -1)
    others = rows_to_label(X, len(y) - 16, labels, pending=pending)
    assert sorted([*others, *pending, 99]) == list(range(len(y)))


def pairwise_nearness(X, covering=()):
    """The kernel of all pairs of rows, some of which are labeled or pending."""
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    mean_distance = distances.mean()
    if len(covering):
        to_nearest = distances[:, covering].min(axis=1)
        mean_distance = np.delete(to_nearest, covering).mean()
    return np.exp(-2 * distances / mean_distance)


@pytest.mark.parametrize("pending", [[], [3, 8, 50]])
@pytest.mark.parametrize("seed", range(4))
def test_every_row_raises_the_coverage_most(seed, pending):
    X = np.random.default_rng(seed).standard_normal((60, 3))
    nearness = pairwise_nearness(X, pending)
    is_open = ~np.isin(np.arange(60), pending)
    covered = nearness[:, pending].max(axis=1, initial=0)
    for row in rows_to_label(X, 20, pending=pending):
        gains = np.maximum(nearness - covered, 0).sum(axis=1)
        assert is_open[row]
        assert gains[row] == pytest.approx(gains[is_open].max(), rel=1e-6)
        is_open[row] = False
        covered = np.maximum(covered, nearness[row])


@pytest.mark.parametrize("seed", range(4))
def test_few_chosen_rows_cover_nearly_what_any_could(seed):
    # The gain of a row falls with what is covered, so that the greedy choice has at
    # least 1 - 1 / e of the largest coverage.
    X = np.random.default_rng(seed).standard_normal((14, 2))
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    nearness = np.exp(-distances / distances.mean())
    best = max(
        nearness[[*some]].max(axis=0).sum() for some in combinations(range(14), 3)
    )
    chosen = rows_to_label(X, 3)
    assert nearness[chosen].max(axis=0).sum() >= (1 - 1 / np.e) * best


def test_units_and_offsets_do_not_matter():
    X, _ = clusters()
    chosen = rows_to_label(X, 30)
    np.testing.assert_array_equal(rows_to_label(1e-3 * X, 30), chosen)
    np.testing.assert_array_equal(rows_to_label(X + 1e5, 30), chosen)


@pytest.mark.parametrize("exponent", [-600, 600])
@pytest.mark.parametrize("n_features", [2, 70])
def test_squares_that_overflow_or_vanish_do_not_matter(exponent, n_features):
    # These are exact multiples.
    X = np.random.default_rng(0).standard_normal((60, n_features))
    y = np.where(np.arange(60) < 12, np.arange(60) % 2, -1)
    for labels in (None, y):
        chosen = rows_to_label(np.ldexp(X, exponent), 4, labels)
        np.testing.assert_array_equal(chosen, rows_to_label(X, 4, labels))


def test_doubt_does_not_count_as_long_as_every_class_has_one_label():
    X, y = clusters()
    first = [np.flatnonzero(y == k)[0] for k in range(5)]
    labels = np.full(len(y), -1)
    labels[first] = y[first]
    chosen = rows_to_label(X, 10, labels)
    np.testing.assert_array_equal(chosen, rows_to_label(X, 10, pending=first))


def test_equal_rows_are_chosen_in_turn():
    assert sorted(rows_to_label(np.ones((6, 2)), 4)) == [0, 1, 2, 3]


def test_copies_count_once():
    X, _ = clusters(n_each=4)
    copied = np.concatenate([X, np.repeat(X[:1], 100, axis=0)])
    chosen = rows_to_label(copied, 10)
    assert len(np.unique(copied[chosen], axis=0)) == 10
    assert len(set(rows_to_label(copied, 50))) == 50


def test_doubtful_rows_count_more_once_there_are_labels():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 2))
    y = (X[:, 0] > 0).astype(int)
    labels = np.full(400, -1)
    labels[rows_to_label(X, 10)] = y[rows_to_label(X, 10)]
    chosen = rows_to_label(X, 20, labels)
    assert np.abs(X[chosen, 0]).mean() < np.abs(X[labels == -1, 0]).mean()


# Some draws have no row of some classes.
@pytest.mark.filterwarnings("ignore:score counts .* rows as wrong:UserWarning")
def test_chosen_rows_beat_random_ones(features):
    X, y = features
    chosen = rows_to_label(X, 10)

    def accuracy(rows):
        labels = np.full(len(y), "", dtype=y.dtype)
        labels[rows] = y[rows]
        return AutoLDA(unlabeled="").fit(X, labels).score(X, y)

    rng = np.random.default_rng(0)
    draws = [accuracy(rng.choice(len(y), 10, replace=False)) for _ in range(4)]
    assert accuracy(chosen) > np.mean(draws) + 0.05


@pytest.mark.parametrize("kind", SOURCES)
def test_any_source_of_rows_gives_the_same_choice(kind, tmp_path):
    X, y = clusters()
    labels = np.where(np.arange(len(y)) < 6, y, -1)
    source = SOURCES[kind](X, tmp_path)
    np.testing.assert_array_equal(
        rows_to_label(source, 4, labels), rows_to_label(X, 4, labels)
    )


def test_of_many_rows_a_sample_is_clustered_and_the_choice_is_repeated():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 4))
    one = rows_to_label(X, 7)
    two = rows_to_label(X, 7)
    np.testing.assert_array_equal(one, two)
    assert len(set(one) - set(rows_to_label(X, 7, random_state=1))) > 0


@pytest.mark.parametrize("n", [0, -1, 101, 2.5, True, "3", None])
def test_a_number_of_rows_that_cannot_be_is_refused(n):
    with pytest.raises(ValueError, match="n must be a whole number of rows to label"):
        rows_to_label(clusters()[0], n)


def test_no_row_left_to_label_is_said():
    X, y = clusters()
    with pytest.raises(ValueError, match=r"none is left to label\. unlabeled='' marks"):
        rows_to_label(X, 1, y, unlabeled="")


@pytest.mark.parametrize("pending", [[0, 100], [-1], [1.5], [True, False], None, ["a"]])
def test_rows_being_labeled_that_are_no_indices_are_refused(pending):
    with pytest.raises(
        ValueError,
        match=r"pending must hold indices of rows, integers from 0 to 99, got \[[^0]",
    ):
        rows_to_label(clusters()[0], 1, pending=pending)


def test_labels_of_one_class_and_of_another_length(features):
    X, y = clusters()
    labels = np.where(np.arange(len(y)) == 0, 0, -1)
    assert y[rows_to_label(X, 4, labels)].tolist() != [0, 0, 0, 0]
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        rows_to_label(X, 1, labels[:-1])
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        rows_to_label(X, 1)


def test_rows_of_unknown_classes_come_first_if_that_is_asked_for():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 4
    X = rng.normal(size=(600, 6)) + 5 * np.eye(4, 6)[y]
    # The last class, a tenth of the unlabeled rows, has no label.
    is_kept = (y < 3) | (np.arange(600) % 3 == 0)
    X, y = X[is_kept], y[is_kept]
    labels = np.where((y < 3) & (np.arange(len(y)) < 100), y, -1)
    chosen = rows_to_label(X, 10, labels, unknown=True)
    assert (labels[chosen] == -1).all()
    assert np.mean(y[chosen] == 3) >= 0.8


def test_without_two_classes_no_row_is_of_an_unknown_one():
    X, y = clusters()
    labels = np.where(np.arange(len(y)) < 2, 0, -1)
    expected = rows_to_label(X, 5, labels)
    assert rows_to_label(X, 5, labels, unknown=True).tolist() == expected.tolist()
