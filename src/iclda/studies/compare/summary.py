"""Scores of contestants, paired differences from the supervised one, and learning curves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any

import numpy as np

from ... import _statistics
from ..._core import Array
from .. import measures
from ..measures import BRIER, COMPARISON_MEASURES, ERROR, LEVEL
from ..store import FitResult
from .plan import (
    COMPARISON,
    LABELED_CURVE,
    SUPERVISED,
    UNLABELED_CURVE,
    ComparisonSettings,
    Contestant,
)

DECISIVE = BRIER, ERROR  # losses first: counts of wrong rows tie too often to decide by
CURVE_MEASURES = ERROR, BRIER
VARIED = {UNLABELED_CURVE: "n_unlabeled", LABELED_CURVE: "n_labeled"}
_TIE = 1e-12  # relative differences below this are none
Grid = Mapping[
    str, Array
]  # by stored measure, and n_test: (repeats, folds), NaN where missing


@dataclass(frozen=True)
class Score:
    """A measure of a contestant over its complete repeats; ``se`` allows for overlapping splits."""

    method: str
    measure: str
    mean: float | None
    se: float | None
    share_worse_than_supervised: float | None
    repeats: int
    low: float | None = None  # of an error: its 90 % interval,
    high: float | None = None
    n_rows: int | None = None  # and the rows behind it

    @property
    def n_worse(self) -> int | None:
        """Repeats in which the contestant was worse than the supervised one."""
        share = self.share_worse_than_supervised
        return None if share is None else round(share * self.repeats)


@dataclass(frozen=True)
class Difference:
    """A contestant less the supervised one, paired by split; Holm's correction over contestants.

    The interval has it too, so that it excludes 0 exactly where the difference is clear.
    """

    method: str
    measure: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, or an empty string for no clear difference."""
        return measures.verdict(
            self.difference, self.p_holm, COMPARISON_MEASURES[self.measure]
        )


@dataclass(frozen=True)
class ComparisonSummary:
    """Scores of all contestants, and their differences to the baseline."""

    baseline: str | None  # the best supervised contestant
    scores: tuple[Score, ...]
    differences: tuple[Difference, ...]
    best: Mapping[
        str, str
    ]  # for every method that has numbers, the contestant that did best
    repeats: Mapping[tuple[str, str], Array] = field(
        compare=False
    )  # by contestant and measure

    def score(self, method: str | None, measure: str) -> Score | None:
        return _find(self.scores, method, measure)

    def difference(self, method: str, measure: str) -> Difference | None:
        return _find(self.differences, method, measure)

    def mean(self, method: str | None, measure: str) -> float | None:
        score = self.score(method, measure)
        return score.mean if score else None

    def rank(self, method: str) -> tuple[float, ...]:
        """Means of the decisive measures, infinite where there are none: the lowest is best."""
        return _rank(self.repeats, method)

    def verdict(self, method: str, measure: str) -> str:
        """``better`` or ``worse`` than the baseline, or an empty string."""
        difference = self.difference(method, measure)
        return difference.verdict if difference else ""


def _find(records: Iterable[Any], method: str | None, measure: str) -> Any:
    return next(
        (r for r in records if (r.method, r.measure) == (method, measure)), None
    )


def summarize_comparison(
    results: Iterable[FitResult], contestants: Sequence[Contestant], n_folds: int
) -> ComparisonSummary:
    """Scores and differences of all contestants in the comparison."""
    fits: dict[str, list[FitResult]] = {
        contestant.name: [] for contestant in contestants
    }
    for result in results:
        is_compared = result.experiment == COMPARISON and result.failure is None
        if is_compared and result.method in fits:
            fits[result.method].append(result)
    n_repeats = 1 + max(
        (r.repeat for group in fits.values() for r in group), default=-1
    )
    grids = {name: _grid(fits[name], (n_repeats, n_folds)) for name in fits}
    repeats = {
        (name, m): _repeat_values(grids[name], m)
        for name in fits
        for m in COMPARISON_MEASURES
    }

    best: dict[str, str] = {}
    for contestant in contestants:
        name, method = contestant.name, contestant.method.name
        rank = _rank(repeats, name)
        if rank[0] < inf and (
            method not in best or rank < _rank(repeats, best[method])
        ):
            best[method] = name
    baseline = best.get(SUPERVISED)
    scores = []
    for (name, measure), values in repeats.items():
        supervised = repeats.get((baseline or "", measure), np.full(n_repeats, np.nan))
        score = _score(name, measure, values, supervised, grids[name])
        if score.mean is not None or measure == ERROR:
            scores.append(score)
    rivals = [
        c.name for c in contestants if c.method.uses_unlabeled or c.method.is_outside
    ]
    differences = [
        difference
        for measure in COMPARISON_MEASURES
        if baseline
        for difference in _differences(measure, rivals, grids, baseline)
    ]
    return ComparisonSummary(baseline, tuple(scores), tuple(differences), best, repeats)


def _rank(repeats: Mapping[tuple[str, str], Array], name: str) -> tuple[float, ...]:
    """Means of the decisive measures, rounded so that ties stay ties."""
    known = [COMPARISON_MEASURES[m].sign * _finite(repeats[name, m]) for m in DECISIVE]
    return tuple(
        round(float(values.mean()), 12) if values.size else inf for values in known
    )


def overlap(n_folds: int) -> float:
    """Test rows over training rows of known label; unlabeled ones are in every training set."""
    return 1 / (n_folds - 1)


def _grid(results: Sequence[FitResult], shape: tuple[int, int]) -> Grid:
    grid = {name: np.full(shape, np.nan) for name in (*COMPARISON_MEASURES, "n_test")}
    for result in results:
        place = result.repeat, result.part
        grid["n_test"][place] = result.n_test
        for name in COMPARISON_MEASURES:
            grid[name][place] = result.number(name)
    return grid


def _repeat_values(grid: Grid, measure: str) -> Array:
    """Value of every repeat, folds weighted by their test rows; NaN for an incomplete one."""
    n_test = grid["n_test"]
    return (n_test * grid[measure]).sum(axis=1) / n_test.sum(axis=1)


def _finite(values: Array) -> Array:
    return values[np.isfinite(values)]


def _weighted(values: Array, n_test: Array) -> Array:
    """Finite values of splits times their test rows: the plain mean is then that of all rows."""
    is_known = np.isfinite(values)
    weights = n_test[is_known]
    return values[is_known] * weights / weights.mean() if weights.size else weights


def _score(
    name: str, measure: str, values: Array, supervised: Array, grid: Grid
) -> Score:
    """Score of a contestant by its values in the repeats, beside those of the supervised one."""
    known = _finite(values)
    if not known.size:
        return Score(name, measure, None, None, None, 0)
    excess = (values - supervised) / np.maximum(1, np.abs(supervised))
    excess = _finite(COMPARISON_MEASURES[measure].sign * excess)
    share = float((excess > _TIE).mean()) if excess.size else None
    splits = _weighted(grid[measure], grid["n_test"])
    se = _statistics.corrected_standard_error(splits, overlap(grid["n_test"].shape[1]))
    mean = float(known.mean())
    score = Score(name, measure, mean, se if isfinite(se) else None, share, len(known))
    if measure != ERROR:
        return score
    n_rows = int(np.nanmax(grid["n_test"].sum(axis=1)))
    low, high = _statistics.error_interval(
        min(max(mean, 0.0), 1.0) * n_rows, n_rows, _statistics.CONFIDENCE
    )
    return replace(score, low=low, high=high, n_rows=n_rows)


def _differences(
    measure: str, rivals: Sequence[str], grids: Mapping[str, Grid], baseline: str
) -> list[Difference]:
    supervised = grids[baseline][measure]
    ratio = overlap(supervised.shape[1])
    paired = {
        name: _weighted(grids[name][measure] - supervised, grids[name]["n_test"])
        for name in rivals
    }
    paired = {name: values for name, values in paired.items() if len(values) > 1}
    p_values = [
        _statistics.corrected_t_test(values, ratio)[1] for values in paired.values()
    ]
    corrected, differences = _statistics.holm(p_values), []
    for (name, values), p, p_holm in zip(
        paired.items(), p_values, corrected, strict=True
    ):
        # At the level that Holm's method gives this test: zero is outside if the mark is set.
        level = LEVEL * p / p_holm if p_holm else LEVEL
        low, high = _statistics.mean_interval(values, 1 - level, ratio)
        mean = float(values.mean())
        differences.append(Difference(name, measure, mean, low, high, p, p_holm))
    return differences


@dataclass(frozen=True)
class SplitCurvePoint:
    """Mean over the splits of a learning curve."""

    curve: str  # what varies: UNLABELED_CURVE or LABELED_CURVE
    n_labeled: int
    n_unlabeled: int
    method: str
    measure: str
    mean: float
    se: float | None  # over splits, as if these were independent
    splits: int

    @property
    def size(self) -> int:
        """The number of rows that varies."""
        return int(getattr(self, VARIED[self.curve]))


def split_curve_points(
    results: Sequence[FitResult], methods: Sequence[str], settings: ComparisonSettings
) -> list[SplitCurvePoint]:
    """Points of both curves, including that of the comparison.

    The curve of labeled rows leaves it out where curves use fewer unlabeled rows than there are.
    """
    compared = {
        UNLABELED_CURVE: settings.n_unlabeled,
        LABELED_CURVE: settings.size.n_labeled,
    }
    points = []
    for curve, n_rows in compared.items():
        n_splits = 1 + max(
            (r.repeat for r in results if r.experiment == curve), default=-1
        )
        n_compared = (
            n_splits if curve == UNLABELED_CURVE or not settings.is_capped else 0
        )
        groups: dict[tuple[str, int], list[FitResult]] = defaultdict(list)
        for r in results:
            if r.failure is None and r.method in methods:
                if r.experiment == curve:
                    groups[r.method, r.part].append(r)
                elif (
                    r.experiment == COMPARISON
                    and r.repeat * settings.folds + r.part < n_compared
                ):
                    groups[r.method, n_rows].append(r)
        order = sorted(groups, key=lambda key: (methods.index(key[0]), key[1]))
        points += [
            _point(curve, m, groups[key]) for key in order for m in CURVE_MEASURES
        ]
    return points


def _point(curve: str, measure: str, fits: Sequence[FitResult]) -> SplitCurvePoint:
    """Mean over a method's fits of one size."""
    values = [fit.values[measure] for fit in fits]
    se = _statistics.corrected_standard_error(values)
    return SplitCurvePoint(
        curve=curve,
        n_labeled=int(np.median([fit.n_labeled for fit in fits])),
        n_unlabeled=int(np.median([fit.n_unlabeled for fit in fits])),
        method=fits[0].method,
        measure=measure,
        mean=float(np.mean(values)),
        se=se if isfinite(se) else None,
        splits=len(fits),
    )
