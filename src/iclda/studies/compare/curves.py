"""Learning curves: error, Brier score and difference in loss against numbers of rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite

import numpy as np

from ..page import csv_text
from .results import COMPARISON, LABELED, UNLABELED, Result
from .summary import BRIER, ERROR, LOSS

LOSS_DIFFERENCE = "loss_difference"  # loss less that of the reference, in the same splits
CURVE_MEASURES = (ERROR, BRIER, LOSS_DIFFERENCE)
_VARIED = {UNLABELED: "n_unlabeled", LABELED: "n_labeled"}


@dataclass(frozen=True)
class Point:
    """Mean over the splits of a curve."""

    curve: str  # what varies: UNLABELED or LABELED
    n_labeled: int
    n_unlabeled: int
    method: str
    measure: str
    mean: float
    se: float | None  # over splits, as if these were independent
    splits: int

    @property
    def size(self) -> int:
        """The number that varies."""
        return int(getattr(self, _VARIED[self.curve]))


def summarize_curves(
    results: Sequence[Result],
    methods: Sequence[str],
    reference: str | None,
    n_folds: int,
    compared: Mapping[str, int],
    *,
    is_capped: bool,
) -> list[Point]:
    """Points of both curves, and on each that of the comparison, which has ``compared`` rows.

    Not so where curves use fewer unlabeled rows than there are, and labeled ones vary.
    """
    points = []
    for curve in (UNLABELED, LABELED):
        shown = [result for result in results if result.experiment == curve]
        n_splits = 1 + max((result.repeat for result in shown), default=-1)
        if curve == UNLABELED or not is_capped:
            shown += [
                result
                for result in results
                if result.experiment == COMPARISON
                and result.repeat * n_folds + result.part < n_splits
            ]
        points += _points(curve, shown, methods, reference, compared[curve])
    return points


def _points(
    curve: str,
    results: Sequence[Result],
    methods: Sequence[str],
    reference: str | None,
    n_compared: int,
) -> list[Point]:
    groups: dict[tuple[str, int], list[Result]] = defaultdict(list)
    for result in results:
        if result.failure is None and result.method in methods:
            planned = result.part if result.experiment == curve else n_compared
            groups[result.method, planned].append(result)
    points = []
    for method in methods:
        for place in sorted(size for name, size in groups if name == method):
            ours = groups[method, place]
            theirs = groups.get((reference or "", place), [])
            points += [
                point
                for measure in CURVE_MEASURES
                if (point := _point(curve, measure, ours, theirs)) is not None
            ]
    return points


def _point(
    curve: str, measure: str, ours: Sequence[Result], theirs: Sequence[Result]
) -> Point | None:
    name = LOSS if measure == LOSS_DIFFERENCE else measure
    values = {_split(result): getattr(result, name) for result in ours}
    if measure == LOSS_DIFFERENCE:
        known = {_split(result): result.loss for result in theirs}
        values = {
            split: value - known[split]
            for split, value in values.items()
            if value is not None and known.get(split) is not None
        }
    numbers = [value for value in values.values() if value is not None and isfinite(value)]
    if not numbers:
        return None
    n = len(numbers)
    return Point(
        curve,
        n_labeled=_typical(ours, "n_labeled"),
        n_unlabeled=_typical(ours, "n_unlabeled"),
        method=ours[0].method,
        measure=measure,
        mean=float(np.mean(numbers)),
        se=float(np.std(numbers, ddof=1) / np.sqrt(n)) if n > 1 else None,
        splits=n,
    )


def _split(result: Result) -> tuple[int, int]:
    return (result.repeat, result.part)


def _typical(results: Sequence[Result], name: str) -> int:
    return int(np.median([getattr(result, name) for result in results]))


def points_csv(points: Iterable[Point]) -> str:
    """All points, one a line."""
    names = [field.name for field in fields(Point)]
    return csv_text(names, ([getattr(point, name) for name in names] for point in points))
