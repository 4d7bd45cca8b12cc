"""Odd problems: what tables hold, and what random generators seldom draw."""

from dataclasses import dataclass

import numpy as np

# Columns by kind: a function of numbers around class centers, the classes and a
# generator.
KINDS = {
    "normal": lambda normal, classes, rng: normal,
    "heavy tails": lambda normal, classes, rng: rng.standard_cauchy(len(normal)) ** 3,
    "integer": lambda normal, classes, rng: np.round(3 * normal),
    "binary": lambda normal, classes, rng: 1.0 * (normal > 0),
    "tied": lambda normal, classes, rng: np.round(normal),
    "one-hot": lambda normal, classes, rng: (
        1.0 * (rng.integers(5, size=len(normal)) == 0)
    ),
    "constant": lambda normal, classes, rng: np.ones(len(normal)),
    "constant but one": lambda normal, classes, rng: (
        1.0 * (np.arange(len(normal)) == 0)
    ),
    "class": lambda normal, classes, rng: 1.0 * (classes == 0),
    # Made of all columns before it, and of the one before it.
    "collinear": None,
    "duplicate": None,
}


@dataclass(frozen=True)
class OddProblem:
    """A recipe: equal recipes give equal rows.

    Columns have kinds, scales and offsets: powers of ten, offsets in units of the
    column, and none if empty. Weights are given by their smallest and largest power.
    """

    kinds: tuple[str, ...]
    scales: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    n_classes: int = 2
    n_labeled: int = 10
    n_unlabeled: int = 20
    weights: tuple[int, int] | None = None
    shrinkage: float | str | None = None
    separation: float = 2.0
    seed: int = 0

    def draw(self):
        """Rows, labels (-1: unlabeled), and weights or None."""
        rng = np.random.default_rng(self.seed)
        n_rows = self.n_labeled + self.n_unlabeled
        classes = rng.integers(self.n_classes, size=n_rows)
        classes[: self.n_classes] = np.arange(self.n_classes)[:n_rows]
        y = np.where(np.arange(n_rows) < self.n_labeled, classes, -1)
        X = np.empty((n_rows, len(self.kinds)))
        for j, kind in enumerate(self.kinds):
            X[:, j] = self._column(kind, X[:, :j], classes, rng)
        X += np.power(10.0, self.offsets) if self.offsets else 0.0
        X *= np.power(10.0, self.scales)
        weights = None
        if self.weights is not None:
            weights = 10.0 ** rng.uniform(*self.weights, size=n_rows)
        order = rng.permutation(n_rows)
        return X[order], y[order], weights

    def _column(self, kind, before, classes, rng):
        centers = self.separation * rng.standard_normal(self.n_classes)
        normal = centers[classes] + rng.standard_normal(len(classes))
        if KINDS[kind] is not None:
            return KINDS[kind](normal, classes, rng)
        if before.shape[1] == 0:
            return normal
        if kind == "duplicate":
            return before[:, -1]
        return before @ rng.standard_normal(before.shape[1])
