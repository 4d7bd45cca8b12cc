"""Labels taken away."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from iclda._estimators.labels import encode_labels
from iclda.model_selection import mask_labels

a_search = settings(deadline=None, max_examples=30, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def masked(draw):
    """Labels with some unlabeled rows, numbers that can be kept of them, and a seed."""
    counts = draw(st.lists(st.integers(2, 10), min_size=2, max_size=5))
    y = np.r_[
        np.repeat(np.arange(len(counts)), counts), np.full(draw(st.integers(0, 9)), -1)
    ]
    y = draw(st.permutations(y.tolist()).map(np.array))
    min_per_class = draw(st.integers(1, min(counts)))
    n_labeled = draw(st.integers(min_per_class * len(counts), sum(counts)))
    return y, n_labeled, min_per_class, draw(seeds)


@a_search
@given(case=masked())
def test_the_rows_kept_have_their_labels_and_all_others_the_marker(case):
    y, n_labeled, min_per_class, seed = case
    before = y.copy()
    found = mask_labels(y, n_labeled, min_per_class, seed)
    is_kept = found != -1
    assert is_kept.sum() == n_labeled
    assert_array_equal(found[is_kept], y[is_kept])
    assert np.bincount(found[is_kept], minlength=y.max() + 1).min() >= min_per_class
    assert_array_equal(found, mask_labels(y, n_labeled, min_per_class, seed))
    assert found.dtype == y.dtype
    assert_array_equal(y, before)


@a_search
@given(case=masked())
def test_fewer_labels_are_among_more(case):
    y, n_labeled, min_per_class, seed = case
    most = (y != -1).sum()
    few = mask_labels(y, n_labeled, min_per_class, seed) != -1
    assert (few <= (mask_labels(y, most, min_per_class, seed) != -1)).all()
    if n_labeled < most:
        assert (few <= (mask_labels(y, n_labeled + 1, min_per_class, seed) != -1)).all()


def test_beyond_the_guaranteed_rows_all_rows_are_alike():
    # 1 row of 20 is of class 1 and always kept; of class 0 every row has the same
    # chance.
    y = np.r_[np.zeros(19, int), 1]
    kept = np.mean(
        [mask_labels(y, 11, random_state=seed) != -1 for seed in range(500)], axis=0
    )
    assert kept[-1] == 1
    assert np.abs(kept[:-1] - 10 / 19).max() < 5 * np.sqrt(0.25 / 500)


@pytest.mark.parametrize(
    ("y", "marker", "dtype"),
    [
        ([0, 1, 0, 1], -1, np.int64),
        ([0, 1, 0, 1], np.nan, np.float64),
        (np.array([0, 1, 0, 1], np.uint8), -1, np.int16),
        (np.array([0, 1, 0, 1], np.uint8), 9, np.uint8),
        (np.array([2**53 + 1, 1] * 2, np.uint64), -1, object),
        (["a", "b", "a", "b"], "unlabeled", np.dtype("<U9")),
        (["a", "b", "a", "b"], -1, object),
        (pd.Series(["a", "b", "a", "b"], dtype="category"), pd.NA, object),
        (pd.Series([0, 1, 0, 1], dtype="Int64", index=list("wxyz")), -1, np.int64),
        (pl.Series(["a", "b", "a", "b"]), None, object),
        ([True, False, True, False], None, object),
    ],
    ids=str,
)
def test_the_result_holds_marker_and_classes_as_they_are(y, marker, dtype):
    found = mask_labels(y, 2, random_state=0, unlabeled=marker)
    assert found.dtype == dtype
    labels = encode_labels(found, marker)
    original = encode_labels(y, marker)
    assert_array_equal(labels.classes, original.classes)
    assert_array_equal(
        labels.codes[labels.is_labeled], original.codes[labels.is_labeled]
    )
    assert labels.is_labeled.sum() == 2


def test_too_few_or_too_many_labels_are_refused_with_the_limits():
    y = np.array(["a"] * 5 + ["b"] * 3)
    with pytest.raises(
        ValueError, match=r"n_labeled=3 must lie between 4 \(min_per_class=2 of"
    ):
        mask_labels(y, 3, 2)
    with pytest.raises(
        ValueError, match=r"n_labeled=9 .* and 8, the number of labeled rows"
    ):
        mask_labels(y, 9)
    with pytest.raises(
        ValueError, match="min_per_class=4, but only 3 labeled rows of class 'b'"
    ):
        mask_labels(y, 8, 4)
