"""Fits without the offsets of groups."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclda import (
    AutoLDA,
    ExpectationMaximizationLDA,
    FitError,
    SupervisedLDA,
)
from iclda.datasets import load_vowels

RNG = np.random.default_rng(7)
N_ROWS = 300
Y = np.arange(N_ROWS) % 3
MEANS = np.array([[0.0, 0, 0], [4, 0, 1], [0, 4, 0]])
X = RNG.normal(size=(N_ROWS, 3)) + MEANS[Y]
# Groups with very different class shares.
GROUPS = (RNG.random(N_ROWS) < np.array([0.1, 0.5, 0.9])[Y]).astype(int)
OFFSETS = np.array([[10.0, -5, 3], [-7, 2, 0]])


def test_offsets_of_groups_change_nothing_but_the_mean_however_uneven_classes_are():
    plain = SupervisedLDA().fit(X, Y, groups=GROUPS)
    moved = SupervisedLDA().fit(X + OFFSETS[GROUPS], Y, groups=GROUPS)
    assert_allclose(moved.covariance_, plain.covariance_)
    differences = plain.means_ - plain.means_[0]
    assert_allclose(moved.means_ - moved.means_[0], differences)
    assert_allclose(
        moved.group_offsets_[0] - moved.group_offsets_[1],
        OFFSETS[0] - OFFSETS[1] + plain.group_offsets_[0] - plain.group_offsets_[1],
    )


def test_the_weighted_mean_of_all_offsets_is_zero():
    weights = RNG.uniform(0.5, 2, N_ROWS)
    labels = np.where(np.arange(N_ROWS) < 150, Y, -1)
    fitted = ExpectationMaximizationLDA().fit(
        X + OFFSETS[GROUPS], labels, weights, groups=GROUPS
    )
    offsets = np.array([fitted.group_offsets_[k] for k in (0, 1)])
    assert_allclose(weights @ offsets[GROUPS], 0, atol=1e-8)


def test_rows_without_labels_show_the_offset_of_their_group():
    labels = np.where(np.arange(N_ROWS) < 150, Y, -1)
    speakers = np.array([f"speaker {k}" for k in GROUPS])
    far = X[150:] + 50
    fitted = ExpectationMaximizationLDA().fit(
        X + OFFSETS[GROUPS],
        labels,
        X_unlabeled=far,
        groups=speakers,
        groups_unlabeled=np.full(150, "another"),
    )
    expected = SupervisedLDA().fit(X, Y)
    offset = fitted.group_offsets_["another"]
    own = offset - fitted.group_offsets_["speaker 0"]
    assert_allclose(own, 50 - OFFSETS[0], atol=1)
    assert_allclose(fitted.covariance_, expected.covariance_, atol=0.25)
    adapted = fitted.adapt(far)
    assert adapted.score(far, Y[150:]) > 0.9


def test_a_fit_without_groups_forgets_those_of_an_earlier_one():
    fitted = SupervisedLDA().fit(X, Y, groups=GROUPS)
    fitted.fit(X, Y)
    assert not hasattr(fitted, "group_offsets_")


def test_the_default_takes_groups():
    labels = np.where(np.arange(N_ROWS) < 60, Y, -1)
    fitted = AutoLDA().fit(X + 5 * OFFSETS[GROUPS], labels, groups=GROUPS)
    back = X + np.mean(5 * OFFSETS[GROUPS], axis=0)
    assert fitted.adapt(back).score(back, Y) > 0.9


def test_new_speakers_vowels_are_recognized_as_in_the_documentation():
    rows, vowels, speakers, is_new = load_vowels()
    train = rows[~is_new], vowels[~is_new]

    def wrong(classifier):
        n_wrong = 0
        for speaker in np.unique(speakers[is_new]):
            own = speakers == speaker
            adapted = classifier.adapt(rows[own])
            assert adapted.adaptation_.is_kept
            n_wrong += (adapted.predict(rows[own]) != vowels[own]).sum()
        return n_wrong / is_new.sum()

    plain = SupervisedLDA(shrinkage=0.3).fit(*train)
    with_groups = SupervisedLDA(shrinkage=0.3).fit(*train, groups=speakers[~is_new])
    assert 1 - SupervisedLDA().fit(*train).score(
        rows[is_new], vowels[is_new]
    ) == pytest.approx(0.556, abs=5e-4)
    assert wrong(plain) == pytest.approx(0.444, abs=5e-4)
    assert wrong(with_groups) <= 0.43


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.arange(N_ROWS), "got 300 in 300 rows"),
        (np.zeros(N_ROWS), "got 1 in 300 rows"),
        (np.where(np.arange(N_ROWS) == 4, np.nan, GROUPS), "no value in row 4"),
        (GROUPS[1:], "inconsistent numbers"),
        (
            GROUPS[:, None],
            r"one value for every row of X, .*\(300, 1",
        ),
        (np.where(GROUPS == 1, "a", GROUPS.astype(object)), "all numbers or all text"),
    ],
)
def test_groups_that_are_none_are_errors(groups, message):
    with pytest.raises(ValueError, match=message):
        SupervisedLDA().fit(X, Y, groups=groups)


def test_groups_of_all_rows_or_of_none_are_needed():
    labels = np.where(np.arange(N_ROWS) < 60, Y, -1)
    with pytest.raises(ValueError, match="pass both, or neither"):
        ExpectationMaximizationLDA().fit(X, labels, X_unlabeled=X, groups=GROUPS)
    with pytest.raises(ValueError, match="pass both, or neither"):
        ExpectationMaximizationLDA().fit(X, labels, groups_unlabeled=GROUPS)


def test_groups_without_a_class_in_common_are_an_error():
    with pytest.raises(FitError, match="no class in common"):
        SupervisedLDA().fit(X, Y, groups=Y)


def test_rows_read_from_files_have_no_groups(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(ValueError, match="read from its source"):
        SupervisedLDA().fit(str(tmp_path / "rows.npy"), Y, groups=GROUPS)
