"""Which rows of a table are labeled, which are unlabeled, and which are to judge by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Labels a class, and the least number of labels in all that goes with each.
MIN_LABELS = {2: 10, 4: 20, 8: 50, 16: 100}
MIN_LABELS_OF_A_CLASS = 2
MAX_UNLABELED_ROWS = 1_000
MAX_NEW_ROWS = 2_000
# With fewer new rows, differences of 8 points are within chance.
MIN_NEW_ROWS = 75


@dataclass(frozen=True)
class Draw:
    """Indices of rows."""

    labeled: np.ndarray
    unlabeled: np.ndarray
    new: np.ndarray

    @property
    def train(self) -> np.ndarray:
        return np.concatenate([self.labeled, self.unlabeled])

    def labels(self, codes: np.ndarray) -> np.ndarray:
        """Labels of the rows in ``train``, -1 where a row is unlabeled."""
        unknown = np.full(len(self.unlabeled), -1)
        return np.concatenate([codes[self.labeled], unknown])


def number_of_labels(labels_a_class: int, n_classes: int) -> int:
    """Return how many labels a draw has in all."""
    return max(labels_a_class * n_classes, MIN_LABELS[labels_a_class])


def numbers_of_rows(n_rows: int, n_labels: int) -> tuple[int, int]:
    """Return how many of the other rows are unlabeled, and how many are left."""
    n_others = max(0, n_rows - n_labels)
    n_unlabeled = min(MAX_UNLABELED_ROWS, n_others // 2)
    return n_unlabeled, n_others - n_unlabeled


def measured_labels(codes: np.ndarray) -> dict[int, int]:
    """Return labels a class -> labels in all, where enough new rows are left."""
    sizes = np.bincount(codes)
    if sizes.min() < MIN_LABELS_OF_A_CLASS:
        return {}
    found = {}
    for labels_a_class in MIN_LABELS:
        n_labels = number_of_labels(labels_a_class, len(sizes))
        n_new = numbers_of_rows(len(codes), n_labels)[1]
        if n_new >= MIN_NEW_ROWS:
            found[labels_a_class] = n_labels
    return found


def draw_rows(
    codes: np.ndarray, n_labels: int, seed: int, n_most_new: int | None = MAX_NEW_ROWS
) -> Draw:
    """Draw rows to label at random, at least two of each class; and other rows.

    Where the first rows of a random order have two of each class, they are labeled.
    Otherwise the last of them make room for the first rows of the missing classes.
    """
    order = np.random.default_rng([seed, n_labels]).permutation(len(codes))
    classes = np.unique(codes)
    sure = np.concatenate(
        [order[codes[order] == k][:MIN_LABELS_OF_A_CLASS] for k in classes]
    )
    others = order[~np.isin(order, sure)]
    n_drawn = n_labels - len(sure)
    labeled = np.concatenate([sure, others[:n_drawn]])
    n_unlabeled = numbers_of_rows(len(codes), n_labels)[0]
    unlabeled, new = np.split(others[n_drawn:], [n_unlabeled])
    return Draw(labeled, unlabeled, new[:n_most_new])
