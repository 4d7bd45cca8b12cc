"""One split with its training rows in the order in which they get labels; for learning curves.

Not exported, but open to the rest of the package: `iclda compare` draws the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core.types import AnyArray
from .._estimators.labels import Labels, plain
from ._masking import labeling_order


@dataclass(frozen=True)
class Part:
    """One split: training rows that have labels, in the order they get them; all; test rows."""

    labeled: AnyArray
    everyone: AnyArray
    test: AnyArray

    def take(self, n_labeled: int | None, n_unlabeled: int | None) -> tuple[AnyArray, AnyArray]:
        """Rows to train on in ascending order, and which of them keep their labels.

        Rows of smaller numbers are among those of larger ones. Rows whose labels are not used are
        unlabeled rows like the others.
        """
        labeled = self.labeled[:n_labeled]
        unlabeled = self.everyone[~np.isin(self.everyone, labeled)][:n_unlabeled]
        rows = np.sort(np.concatenate([labeled, unlabeled]))
        return rows, np.isin(rows, labeled)


def arrange(labels: Labels, train: AnyArray, test: AnyArray, min_per_class: int, seed: int) -> Part:
    """A split with its training rows in random order; unlabeled rows are not tested."""
    rng = np.random.RandomState(seed)
    codes = labels.codes[train]
    counts = np.bincount(codes[codes >= 0], minlength=len(labels.classes))
    k = int(counts.argmin())
    if counts[k] < min_per_class:
        raise ValueError(
            f"min_per_class={min_per_class}, but a split trains on {counts[k]} labeled rows of "
            f"class {plain(labels.classes[k])!r}: pass a smaller min_per_class or a cv that tests "
            "fewer rows, or label more rows of it."
        )
    labeled = train[labeling_order(codes, min_per_class, rng)]
    return Part(labeled, rng.permutation(train), test[labels.is_labeled[test]])
