"""Random draws of labels are hardly ever said to come from elsewhere."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from iclda import SelfLearningLDA
from iclda.datasets import BENCHMARKS, load_benchmark
from iclda.model_selection import mask_labels
from iclda.tabular.checks import WARNING, check_shift

pytestmark = pytest.mark.slow

DRAWS = [(n_labels, seed) for n_labels in (20, 60) for seed in range(20)]
LARGEST_SHARE = 0.02


def tables():
    """Yield rows and classes of real tables, and nearly constant columns."""
    for name in BENCHMARKS:
        found = load_benchmark(name)
        yield found.X, found.y
    yield load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    is_filled = rng.random((2_000, 100)) < rng.uniform(0.002, 0.05, 100)
    yield is_filled * rng.lognormal(size=(2_000, 100)), rng.integers(0, 3, 2_000)


def is_warned(X, y, X_unlabeled=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classifier = SelfLearningLDA(max_iter=1, shrinkage=0.1)
        classifier.fit(X, y, X_unlabeled=X_unlabeled)
    return any("come from elsewhere" in str(each.message) for each in caught)


def test_a_fit_to_a_random_draw_of_labels_is_hardly_ever_warned_of():
    found = []
    for X, y in tables():
        for n_labels, seed in DRAWS:
            marked = mask_labels(y, n_labels, 2, random_state=seed, unlabeled=None)
            found.append(is_warned(X, marked))
    assert len(found) == 12 * len(DRAWS)
    assert np.mean(found) <= LARGEST_SHARE


def test_a_comparison_of_a_random_draw_is_hardly_ever_warned_of():
    found = []
    for X, _ in tables():
        rows = pd.DataFrame(X).rename(columns=str)
        for n_labels, seed in DRAWS:
            order = np.random.default_rng(seed).permutation(len(rows))
            labeled, unlabeled = order[:n_labels], order[n_labels:]
            (remark,) = check_shift(rows.iloc[labeled], rows.iloc[unlabeled])
            found.append(remark.level == WARNING)
    assert np.mean(found) <= LARGEST_SHARE


def test_a_column_in_another_unit_is_always_warned_of():
    for X, y in tables():
        X = np.asarray(X, dtype=float)
        order = np.random.default_rng(0).permutation(len(X))
        labeled, unlabeled = order[:60], order[60:]
        # The column that varies most is measured from another zero.
        moved = X[unlabeled].copy()
        column = int(X.std(axis=0).argmax())
        moved[:, column] += 3 * X[:, column].std() + np.ptp(X[labeled, column])
        assert is_warned(X[labeled], np.asarray(y)[labeled], moved)
