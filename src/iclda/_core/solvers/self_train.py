"""Self-training: rows that a model is sure of are labeled for good, and it is fitted anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..gaussian import Gaussians
from ..types import AnyArray, Array
from . import Limits, Outcome

_HELD_SCORES = 2**22  # 32 MB
Refit = Callable[[Array, AnyArray, Array], Gaussians]  # rows, their codes and weights -> model


@dataclass(frozen=True)
class SelfTraining:
    """The last model, and what led to it."""

    model: Gaussians
    n_iter: int
    n_added: int
    outcome: Outcome


def self_train(
    fit: Refit,
    labeled: tuple[Array, AnyArray, Array],
    unlabeled: tuple[Array, Array],
    threshold: float,
    limits: Limits,
    place: Callable[[Gaussians, Array], Array] = lambda model, rows: rows,
) -> SelfTraining:
    """Fit, add the unlabeled rows whose posterior reaches the threshold, and repeat.

    Rows have codes and weights (labeled) or weights (unlabeled); ``place`` gives them in frame
    coordinates of a model, in which they are by default. A row that was added keeps its label.
    """
    rows, weights = unlabeled
    codes = np.full(len(rows), -1)
    for n_iter in range(1, limits.max_iter + 1):
        is_added = codes >= 0
        parts = zip(labeled, (rows[is_added], codes[is_added], weights[is_added]), strict=True)
        model = fit(*(np.concatenate(part) for part in parts))
        n_added, is_open = int(is_added.sum()), np.flatnonzero(~is_added)
        found, is_sure = _sure(model, place(model, rows[is_open]), threshold)
        if not is_sure.any():
            return SelfTraining(model, n_iter, n_added, Outcome.CONVERGED)
        codes[is_open[is_sure]] = found[is_sure]
    return SelfTraining(model, limits.max_iter, n_added, Outcome.MAX_ITERATIONS)


def _sure(model: Gaussians, rows: Array, threshold: float) -> tuple[AnyArray, AnyArray]:
    """Most probable class of every row, and whether its posterior reaches the threshold."""
    rule = model.score_rule()
    codes, is_sure = np.empty(len(rows), dtype=np.intp), np.empty(len(rows), dtype=bool)
    step = max(1, _HELD_SCORES // len(rule.intercept))
    for begin in range(0, len(rows), step):
        some = slice(begin, begin + step)
        scores = rows[some] @ rule.coef + rule.intercept
        scores -= scores.max(axis=1, keepdims=True)
        codes[some] = scores.argmax(axis=1)
        is_sure[some] = 1 / np.exp(scores).sum(axis=1) >= threshold
    return codes, is_sure
