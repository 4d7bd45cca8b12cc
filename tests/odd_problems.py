"""Odd problems: what tables of the world hold, and what random generators seldom draw."""

import warnings
from dataclasses import dataclass

import numpy as np

KINDS = (
    "normal",
    "normal",
    "heavy tails",
    "integer",
    "binary",
    "tied",
    "one-hot",
    "constant",
    "constant but one",
    "collinear",
    "duplicate",
    "class",
)


@dataclass(frozen=True)
class OddProblem:
    """A recipe: equal recipes give equal rows."""

    kinds: tuple[str, ...]  # of the columns
    scales: tuple[int, ...]  # powers of ten, one a column
    offsets: tuple[float, ...]  # in units of the column
    n_classes: int = 2
    n_labeled: int = 10
    n_unlabeled: int = 20
    weights: tuple[int, int] | None = None  # smallest and largest power of ten
    shrinkage: float | str | None = None
    separation: float = 2.0
    seed: int = 0

    def draw(self):
        """Rows, labels (-1: unlabeled) and weights or None."""
        rng = np.random.default_rng(self.seed)
        n = self.n_labeled + self.n_unlabeled
        classes = rng.integers(self.n_classes, size=n)
        first = min(self.n_classes, self.n_labeled)
        classes[:first] = np.arange(first)
        X = np.empty((n, len(self.kinds)))
        for j, kind in enumerate(self.kinds):
            X[:, j] = _column(kind, X[:, :j], classes, self, rng)
        X = (X + self.offsets) * 10.0 ** np.array(self.scales, dtype=float)
        y = np.where(np.arange(n) < self.n_labeled, classes, -1)
        order = rng.permutation(n)
        weights = None if self.weights is None else 10.0 ** rng.uniform(*self.weights, size=n)
        return X[order], y[order], weights


def _column(kind, before, classes, problem, rng):
    n = len(classes)
    normal = rng.standard_normal(n) + problem.separation * rng.standard_normal(99)[classes]
    if kind in ("collinear", "duplicate") and before.shape[1]:
        mix = rng.standard_normal(before.shape[1]) if kind == "collinear" else 1.0
        return (
            before @ np.broadcast_to(mix, before.shape[1]) if kind == "collinear" else before[:, -1]
        )
    return {
        "heavy tails": lambda: rng.standard_cauchy(n) ** 3,
        "integer": lambda: np.round(3 * normal),
        "binary": lambda: (normal > 0).astype(float),
        "tied": lambda: np.round(normal),
        "one-hot": lambda: (rng.integers(5, size=n) == 0).astype(float),
        "constant": lambda: np.ones(n),
        "constant but one": lambda: (np.arange(n) == n - 1).astype(float),
        "class": lambda: (classes == 0).astype(float),
    }.get(kind, lambda: normal)()


def random_problem(rng):
    """A problem of the kind that hypothesis draws, for hunts without it."""
    d = int(rng.choice([1, 2, 3, 5, 10, 40]))
    K = int(rng.choice([2, 3, 5, 25], p=[0.4, 0.3, 0.2, 0.1]))
    wide = rng.random() < 0.4
    far = rng.random() < 0.3
    return OddProblem(
        kinds=tuple(rng.choice(KINDS, size=d).tolist()),
        scales=tuple(
            rng.integers(-140, 141, size=d).tolist()
            if wide
            else rng.integers(-6, 7, size=d).tolist()
        ),
        offsets=tuple((10.0 ** rng.integers(0, 16, size=d)).tolist()) if far else (0.0,) * d,
        n_classes=K,
        n_labeled=int(K * rng.choice([1, 2, 3, 10])),
        n_unlabeled=int(rng.choice([0, 1, 5, 30, 100, 500], p=[0.05, 0.05, 0.2, 0.4, 0.2, 0.1])),
        weights=[None, None, (-3, 3), (-90, 90), (89, 90), (-90, -89)][rng.integers(6)],
        shrinkage=[None, None, 0.1, "auto", 1e-9, 0.99][rng.integers(6)],
        separation=float(rng.choice([0.0, 2.0, 50.0])),
        seed=int(rng.integers(1000)),
    )


def fit_oddly(classifier, problem):
    """The fitted model or the ValueError, and the warnings."""
    X, y, weights = problem.draw()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = classifier(shrinkage=problem.shrinkage).fit(X, y, weights)
        except ValueError as error:
            found = error
    return found, caught
