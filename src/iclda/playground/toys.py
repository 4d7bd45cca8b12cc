"""Toy problems of the playground: points in the plane to begin with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..datasets import make_gaussians, make_violated_gaussians
from ..datasets._gaussians import LabeledSample

# The page shows coordinates up to this size ...
LARGEST_COORDINATE = 4.5
# ... with so many decimals that a link holds them exactly.
DECIMALS = 3
N_UNLABELED = 1_000
# Share of the rows that are of the rare class.
_RARE_SHARE = 1 / 8
# Further rows drawn for every labeled point, so that a rare class has enough of them.
_ROWS_PER_LABELED_POINT = 20


@dataclass(frozen=True)
class Toy:
    """A problem in the plane, with its name, title and sentence on the page.

    ``draw`` draws a number of rows. ``n_labeled`` of each class are labeled.
    """

    name: str
    title: str
    sentence: str
    draw: Callable[[int, np.random.Generator], LabeledSample]
    n_classes: int = 2
    n_labeled: int = 5


def _ring(n_classes: int) -> Callable[[int, np.random.Generator], LabeledSample]:
    """Return a function that draws Gaussians of equal spread around a circle."""
    # The first class is at the top.
    angles = math.pi / 2 + 2 * math.pi * np.arange(n_classes) / n_classes
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    centers = 2.0 * directions

    def draw(n: int, rng: np.random.Generator) -> LabeledSample:
        y = rng.integers(n_classes, size=n, dtype=np.int64)
        X = centers[y] + 0.75 * rng.standard_normal((n, 2))
        return X, y

    return draw


def _moons(n: int, rng: np.random.Generator) -> LabeledSample:
    from sklearn.datasets import make_moons

    seed = int(rng.integers(2**31))
    X, y = make_moons(n, noise=0.12, random_state=seed)
    # Around zero, and as large as the other problems.
    X = 2.0 * (X - [0.5, 0.25])
    return X, y.astype(np.int64)


def _rare(n: int, rng: np.random.Generator) -> LabeledSample:
    """Draw two Gaussians, with few rows of the second class."""
    is_rare = rng.random(n) < _RARE_SHARE
    y = is_rare.astype(np.int64)
    centers = np.array([[-0.7, -0.4], [1.5, 1.2]])
    X = centers[y] + 0.8 * rng.standard_normal((n, 2))
    return X, y


PROBLEMS = (
    Toy(
        "between",
        "Clusters that help",
        "The paper's toy problem: the boundary runs between two clusters.",
        make_gaussians,
    ),
    Toy(
        "across",
        "Clusters that mislead",
        "The paper's other toy problem: the same clusters, and a boundary across both.",
        make_violated_gaussians,
    ),
    Toy(
        "three",
        "Three classes",
        "Three clusters around a circle.",
        _ring(3),
        n_classes=3,
    ),
    Toy(
        "four",
        "Four classes",
        "Four clusters, three labeled points of each.",
        _ring(4),
        n_classes=4,
        n_labeled=3,
    ),
    Toy("moons", "Two moons", "Classes that no straight line separates.", _moons),
    Toy(
        "rare",
        "A rare class",
        "One unlabeled point in eight is of class B, half of the labeled ones are.",
        _rare,
    ),
)


def draw_toy_scene(
    toy: Toy, seed: int, n_unlabeled: int = N_UNLABELED
) -> dict[str, Any]:
    """Draw labeled and unlabeled points of a toy problem, as the page holds them."""
    rng = np.random.default_rng([seed, *toy.name.encode()])
    n_further = _ROWS_PER_LABELED_POINT * toy.n_classes * toy.n_labeled
    X, y = toy.draw(n_unlabeled + n_further, rng)
    shown = np.clip(X, -LARGEST_COORDINATE, LARGEST_COORDINATE)
    coordinates = np.round(shown, DECIMALS).tolist()
    codes = y.tolist()
    points = [[*row, code] for row, code in zip(coordinates, codes, strict=True)]

    # The first rows of every class are labeled.
    by_class = [
        np.flatnonzero(y == code)[: toy.n_labeled] for code in range(toy.n_classes)
    ]
    labeled = np.concatenate(by_class)
    others = np.setdiff1d(np.arange(len(y)), labeled)[:n_unlabeled]
    return {
        "labeled": [points[i] for i in labeled],
        "unlabeled": [points[i] for i in others],
    }
