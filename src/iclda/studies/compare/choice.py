"""What the rule of ``_advice`` chooses among contestants, and the error to expect of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..._advice import ErrorEstimate, estimate_error, safest_choice
from ..._core.types import Array
from ..store import FitResult
from .plan import COMPARISON, Contestant

_MOST_ROWS = 20_000  # more change nothing


@dataclass(frozen=True)
class Recommendation:
    """The contestant to use, that of the lowest loss, and the best of this package's own."""

    chosen: Contestant
    lowest: Contestant
    own: Contestant | None
    estimate: ErrorEstimate | None
    n_rows: int


def recommend(
    results: Iterable[FitResult], contestants: Sequence[Contestant]
) -> Recommendation | None:
    """Apply the rule to all eligible contestants; None if none was fitted in every split."""
    ordered = sorted((each for each in contestants if each.is_eligible), key=lambda c: c.risk)
    losses, is_wrong = losses_of_rows(results, [each.name for each in ordered])
    is_known = np.atleast_1d(np.isfinite(losses).all(axis=1))
    if not (losses.size and is_known.any()):
        return None
    own = [k for k, each in enumerate(ordered) if is_known[k] and not each.method.is_outside]
    means = np.where(is_known, losses.mean(axis=1), np.inf)
    return Recommendation(
        chosen=ordered[safest_choice(losses, is_wrong)],
        lowest=ordered[int(means.argmin())],
        own=ordered[own[safest_choice(losses[own], is_wrong[own])]] if own else None,
        estimate=estimate_error(losses, is_wrong),
        n_rows=losses.shape[1],
    )


def losses_of_rows(results: Iterable[FitResult], names: Sequence[str]) -> tuple[Array, Array]:
    """Mean Brier score and share of wrong classes of every tested row: (contestants, rows).

    NaN for contestants that lack a split of those that any of them has.
    """
    sums: dict[str, dict[int, list[float]]] = {name: {} for name in names}
    cells: dict[str, set[tuple[int, int]]] = {name: set() for name in names}
    for result in results:
        if result.experiment == COMPARISON and result.method in sums and "rows" in result.values:
            cells[result.method].add((result.repeat, result.part))
            for index, loss, wrong in json.loads(result.values["rows"]):
                total = sums[result.method].setdefault(index, [0.0, 0.0, 0.0])
                total[0] += loss
                total[1] += wrong
                total[2] += 1
    all_cells = set().union(*cells.values()) if cells else set()
    complete = [name for name in names if all_cells and cells[name] == all_cells]
    index = sorted(sums[complete[0]])[:_MOST_ROWS] if complete else []
    found = np.full((2, len(names), len(index)), np.nan)
    for k, name in enumerate(names):
        if name in complete:
            table = np.array([sums[name][row] for row in index])
            found[:, k] = (table[:, :2] / table[:, 2:]).T
    return found[0], found[1]
