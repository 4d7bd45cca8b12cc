"""The toy figure: unlabeled rows that help, and unlabeled rows that mislead."""

from __future__ import annotations

import numpy as np

from ..._core.gaussian import Gaussians
from ..._core.labelsums import Rule
from ..._core.types import AnyArray, Array
from ..._rows.memory import MemoryRows
from ...datasets import make_gaussians, make_violated_gaussians
from ..resampling import rng_of
from .methods import Training, expectation_maximization, implicit_labels, supervised
from .toy_panels import ToyPanel

N_ROWS, N_LABELED, VARIANCE = 1000, 10, 0.6


def toy_panels(seed: int) -> list[ToyPanel]:
    """Two rows of three panels: supervised boundary, labels of ICLDA, labels of EMLDA."""
    return [
        panel
        for name, make in (("between", make_gaussians), ("across", make_violated_gaussians))
        for panel in _row_of_panels(*make(N_ROWS, rng_of(seed, "toy", name), VARIANCE), seed)
    ]


def _row_of_panels(X: Array, codes: AnyArray, seed: int) -> list[ToyPanel]:
    training = _training(X, codes, seed)
    rows = training.rows
    y = np.concatenate([training.codes, np.full(len(training.X_unlabeled), -1)])
    rule, model = implicit_labels(training)
    soft = expectation_maximization(training)
    fits = {
        "ICLDA": (model, _shares(rule, training, rows)),
        "EMLDA": (soft, _shares(soft.score_rule(), training, rows)),
    }
    panels = [ToyPanel("Labels and LDA", rows, y, _boundary(supervised(training)))]
    for title, (fitted, shares) in fits.items():
        panels.append(ToyPanel(title, rows, y, _boundary(fitted), shares))
    return panels


def _training(X: Array, codes: AnyArray, seed: int) -> Training:
    """Five labeled rows of each class, as in the figure of the paper; all others unlabeled."""
    each = N_LABELED // 2
    labeled = np.concatenate([np.flatnonzero(codes == c)[:each] for c in (0, 1)])
    others = np.setdiff1d(np.arange(len(codes)), labeled)
    return Training(X[labeled], codes[labeled], X[others], codes[others], 2, seed)


def _shares(rule: Rule, training: Training, rows: Array) -> Array:
    """Share of the second class of every row; labeled rows have the one they were given."""
    shares = MemoryRows(rows).responsibilities(rule, training.problem.frame)[:, 1]
    shares[: len(training.codes)] = training.codes
    return shares


def _boundary(model: Gaussians) -> tuple[Array, float]:
    coef, intercept = model.linear_scores
    return coef[1] - coef[0], float(intercept[1] - intercept[0])
