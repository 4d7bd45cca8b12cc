"""Toy problems of the playground: a few labeled points, many unlabeled ones of known class."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..datasets import make_gaussians, make_violated_gaussians
from ..datasets.gaussians import Sample

N_UNLABELED = 1_000
LARGEST_COORDINATE = 4.5  # on the page
DECIMALS = 3  # of coordinates, so that a link holds them exactly


@dataclass(frozen=True)
class Toy:
    """A problem in the plane, with its name, title and sentence on the page."""

    name: str
    title: str
    sentence: str
    draw: Callable[[int, np.random.Generator], Sample]
    n_classes: int = 2
    n_labeled: int = 5  # of each class


def _ring(n_classes: int) -> Callable[[int, np.random.Generator], Sample]:
    """Return a function that draws Gaussians of equal spread around a circle."""
    angles = math.pi / 2 + 2 * math.pi * np.arange(n_classes) / n_classes
    centers = 2.0 * np.column_stack([np.cos(angles), np.sin(angles)])

    def draw(n: int, rng: np.random.Generator) -> Sample:
        y = rng.integers(n_classes, size=n, dtype=np.int64)
        return centers[y] + 0.75 * rng.standard_normal((n, 2)), y

    return draw


def _moons(n: int, rng: np.random.Generator) -> Sample:
    from sklearn.datasets import make_moons

    X, y = make_moons(n, noise=0.12, random_state=int(rng.integers(2**31)))
    return 2.0 * (X - [0.5, 0.25]), y.astype(np.int64)


def _rare(n: int, rng: np.random.Generator) -> Sample:
    """Draw two Gaussians; one row in eight is of the second class."""
    y = (rng.random(n) < 1 / 8).astype(np.int64)
    return np.array([[-0.7, -0.4], [1.5, 1.2]])[y] + 0.8 * rng.standard_normal((n, 2)), y


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
    Toy("three", "Three classes", "Three clusters around a circle.", _ring(3), 3),
    Toy("four", "Four classes", "Four clusters, three labeled points of each.", _ring(4), 4, 3),
    Toy("moons", "Two moons", "Classes that no straight line separates.", _moons),
    Toy(
        "rare",
        "A rare class",
        "One unlabeled point in eight is of class B, half of the labeled ones are.",
        _rare,
    ),
)


def draw_toy_scene(name: str, seed: int, n_unlabeled: int = N_UNLABELED) -> dict[str, Any]:
    """Draw labeled and unlabeled points of a toy problem, as the page holds them."""
    toy = next((toy for toy in PROBLEMS if toy.name == name), None)
    if toy is None:
        raise ValueError(
            f"Unknown toy problem {name!r}. There are: {', '.join(t.name for t in PROBLEMS)}."
        )
    rng = np.random.default_rng([seed, *name.encode()])
    X, y = toy.draw(n_unlabeled + 20 * toy.n_classes * toy.n_labeled, rng)
    placed = np.round(np.clip(X, -LARGEST_COORDINATE, LARGEST_COORDINATE), DECIMALS)
    points = [[*row, code] for row, code in zip(placed.tolist(), y.tolist(), strict=True)]
    firsts = [np.flatnonzero(y == code)[: toy.n_labeled] for code in range(toy.n_classes)]
    labeled = np.concatenate(firsts)
    others = np.setdiff1d(np.arange(len(y)), labeled)[:n_unlabeled]
    return {"labeled": [points[i] for i in labeled], "unlabeled": [points[i] for i in others]}
