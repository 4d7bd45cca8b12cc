"""Scores of contestants, differences from the supervised one, and learning curves.

Stored fits are first arranged in grids: the values of a contestant by repeat and fold.
Scores are means over complete repeats; differences are tested fold by fold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any

import numpy as np

from ... import _statistics
from ..._core import Array
from ..._error_estimate import error_interval
from .. import measures
from ..measures import BRIER, COMPARISON_MEASURES, ERROR, LEVEL
from ..store import FitResult
from .contestants import SUPERVISED, Contestant
from .settings import ComparisonSettings
from .splits import LABELED_CURVE, REPEATED_FOLDS, UNLABELED_CURVE

CURVE_MEASURES = (ERROR, BRIER)
# The field of a ``SplitCurvePoint`` that varies along a curve.
VARIED_COUNTS = {UNLABELED_CURVE: "n_unlabeled", LABELED_CURVE: "n_labeled"}
# Relative differences up to this size are rounding: the values are tied.
_TIE_TOLERANCE = 1e-12
# Means are rounded to this many decimals before they are ranked, so that ties stay
# ties.
_RANK_DECIMALS = 12


@dataclass(frozen=True)
class Score:
    """A measure of a contestant over its complete repeats.

    Attributes
    ----------
    method, measure : str
        Names of the contestant and of the measure.
    mean : float or None
        Mean over repeats; None if no repeat is complete.
    se : float or None
        Standard error of the mean, corrected for training sets that overlap.
    share_worse_than_supervised : float or None
        Share of the repeats in which the contestant was worse than the supervised one.
    repeats : int
        Number of complete repeats.
    low, high : float or None
        90 % interval; None for other measures than the error.
    n_rows : int or None
        Number of tested rows that the interval rests on.
    """

    method: str
    measure: str
    mean: float | None
    se: float | None
    share_worse_than_supervised: float | None
    repeats: int
    low: float | None = None
    high: float | None = None
    n_rows: int | None = None

    @property
    def n_worse(self) -> int | None:
        """Repeats in which the contestant was worse than the supervised one."""
        share = self.share_worse_than_supervised
        return None if share is None else round(share * self.repeats)


@dataclass(frozen=True)
class Difference:
    """The mean difference of a contestant from the supervised one, split by split.

    ``p_holm`` and the interval from ``low`` to ``high`` are corrected for the number of
    contestants by Holm's method: the interval excludes 0 exactly where the difference
    is clear.
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
        """``better``, ``worse``, or "" if the difference is not clear."""
        measure = COMPARISON_MEASURES[self.measure]
        return measures.verdict(self.difference, self.p_holm, measure)


@dataclass(frozen=True)
class ComparisonSummary:
    """Scores of all contestants, and their differences from the baseline.

    Attributes
    ----------
    baseline : str or None
        The best supervised contestant; None if none could be fitted.
    scores, differences : tuple
        One for every contestant and measure.
    best : mapping
        The best contestant of every method that has numbers.
    repeats : mapping
        Values of all repeats, by contestant and measure.
    measure : str
        The measure that decides what is recommended.
    """

    baseline: str | None
    scores: tuple[Score, ...]
    differences: tuple[Difference, ...]
    best: Mapping[str, str]
    repeats: Mapping[tuple[str, str], Array] = field(compare=False)
    measure: str = BRIER

    @property
    def main(self) -> str:
        """The measure that the answer speaks of."""
        return main_measure(self.measure)

    def score(self, method: str | None, measure: str) -> Score | None:
        """Return the score of a contestant, if there is one."""
        return _find(self.scores, method, measure)

    def difference(self, method: str, measure: str) -> Difference | None:
        """Return the difference of a contestant from the baseline, if there is one."""
        return _find(self.differences, method, measure)

    def mean(self, method: str | None, measure: str) -> float | None:
        """Return the mean of a measure, None if there is none."""
        score = self.score(method, measure)
        return score.mean if score else None

    def rank(self, method: str) -> tuple[float, ...]:
        """Return a sort key by the measure that decides: the lowest is the best."""
        return _rank(self.repeats, method, _decisive_measures(self.measure))

    def order(self, method: str) -> tuple[float, ...]:
        """Return a sort key by the measure that the answer speaks of."""
        return _rank(self.repeats, method, _decisive_measures(self.main))

    def verdict(self, method: str, measure: str) -> str:
        """Return ``better`` or ``worse`` than the baseline, or ""."""
        difference = self.difference(method, measure)
        return difference.verdict if difference else ""


def main_measure(measure: str) -> str:
    """Return the measure that an answer speaks of, by the one that decides.

    Brier scores decide in place of errors, which tie too often: people mean the error.
    """
    return ERROR if measure == BRIER else measure


def _decisive_measures(measure: str) -> list[str]:
    """Return the measures by which contestants are ranked, the first one first."""
    return list(dict.fromkeys([measure, BRIER, ERROR]))


def _find(records: Iterable[Any], method: str | None, measure: str) -> Any:
    for record in records:
        if record.method == method and record.measure == measure:
            return record
    return None


@dataclass(frozen=True)
class _Grid:
    """Fits of a contestant: arrays of shape (repeats, folds), NaN for a missing fit.

    Attributes
    ----------
    n_test : ndarray
        Numbers of test rows.
    values : mapping of ndarray
        Values of every measure.
    """

    n_test: Array
    values: Mapping[str, Array]

    @classmethod
    def empty(cls, n_repeats: int, n_folds: int) -> _Grid:
        """Return a grid without fits."""
        shape = (n_repeats, n_folds)
        values = {measure: np.full(shape, np.nan) for measure in COMPARISON_MEASURES}
        return cls(np.full(shape, np.nan), values)

    @property
    def n_folds(self) -> int:
        return self.n_test.shape[1]

    def add(self, fit: FitResult) -> None:
        split = (fit.repeat, fit.part)
        self.n_test[split] = fit.n_test
        for measure, values in self.values.items():
            values[split] = fit.number(measure)

    def by_repeat(self, measure: str) -> Array:
        """Return the value of every repeat, NaN for an incomplete one.

        Folds are weighted by their test rows, so that every row counts the same.
        """
        weighted = self.n_test * self.values[measure]
        return weighted.sum(axis=1) / self.n_test.sum(axis=1)

    def weighted_splits(self, values: Array) -> Array:
        """Return finite values of splits, each times its share of the test rows.

        The plain mean of these is the mean over all test rows.
        """
        is_finite = np.isfinite(values)
        weights = self.n_test[is_finite]
        if not weights.size:
            return weights
        return values[is_finite] * weights / weights.mean()


def _grids(
    results: Iterable[FitResult], names: Sequence[str], n_folds: int
) -> dict[str, _Grid]:
    """Arrange the fits of the comparison in a grid for every contestant."""
    fits = [
        result
        for result in results
        if result.experiment == REPEATED_FOLDS
        and result.failure is None
        and result.method in names
    ]
    n_repeats = 1 + max((fit.repeat for fit in fits), default=-1)
    grids = {name: _Grid.empty(n_repeats, n_folds) for name in names}
    for fit in fits:
        grids[fit.method].add(fit)
    return grids


def summarize_comparison(
    results: Iterable[FitResult],
    contestants: Sequence[Contestant],
    n_folds: int,
    measure: str = BRIER,
) -> ComparisonSummary:
    """Return scores and differences of all contestants in the comparison.

    ``measure`` is the one that decides.
    """
    grids = _grids(results, [contestant.name for contestant in contestants], n_folds)
    repeats = {
        (name, each): grid.by_repeat(each)
        for name, grid in grids.items()
        for each in COMPARISON_MEASURES
    }
    best = _best_contestants(contestants, repeats, measure)
    baseline = best.get(SUPERVISED)

    scores = []
    for (name, each), values in repeats.items():
        # Without a baseline no contestant is worse than it.
        supervised = np.full(len(values), np.nan)
        if baseline is not None:
            supervised = repeats[baseline, each]
        score = _score(name, each, values, supervised, grids[name])
        # Every contestant has a score of its error, which shows if all its fits failed.
        if score.mean is not None or each == ERROR:
            scores.append(score)

    differences = []
    if baseline is not None:
        rivals = [
            contestant.name
            for contestant in contestants
            if contestant.method.uses_unlabeled or contestant.method.is_outside
        ]
        for each in COMPARISON_MEASURES:
            differences += _differences(each, rivals, grids, baseline)
    return ComparisonSummary(
        baseline, tuple(scores), tuple(differences), best, repeats, measure
    )


def _best_contestants(
    contestants: Sequence[Contestant],
    repeats: Mapping[tuple[str, str], Array],
    measure: str,
) -> dict[str, str]:
    """Return the contestant of the lowest rank of every method that has values."""
    decisive = _decisive_measures(measure)
    best: dict[str, str] = {}
    by_rank = sorted(
        contestants, key=lambda rival: _rank(repeats, rival.name, decisive)
    )
    for contestant in by_rank:
        has_values = _rank(repeats, contestant.name, decisive)[0] < inf
        if has_values:
            # The first contestant of a method is its best.
            best.setdefault(contestant.method.name, contestant.name)
    return best


def _rank(
    repeats: Mapping[tuple[str, str], Array], name: str, measures: Sequence[str]
) -> tuple[float, ...]:
    """Return means of measures, infinite without values; the lowest are the best."""
    means = []
    for measure in measures:
        values = _finite(repeats[name, measure])
        values = COMPARISON_MEASURES[measure].sign * values
        mean = round(float(values.mean()), _RANK_DECIMALS) if values.size else inf
        means.append(mean)
    return tuple(means)


def overlap(n_folds: int) -> float:
    """Return the ratio of test rows to labeled training rows.

    Tests and standard errors need it to correct for training sets that overlap.
    Unlabeled rows do not count, since they are the same in all training sets.
    """
    return 1 / (n_folds - 1)


def _finite(values: Array) -> Array:
    return values[np.isfinite(values)]


def _score(
    name: str, measure: str, values: Array, supervised: Array, grid: _Grid
) -> Score:
    """Score a contestant by its values and the supervised ones, by repeat."""
    complete = _finite(values)
    if not complete.size:
        return Score(name, measure, None, None, None, repeats=0)
    mean = float(complete.mean())

    # The correction for training sets that overlap is one of splits, not of repeats.
    split_values = grid.weighted_splits(grid.values[measure])
    se = _statistics.corrected_standard_error(split_values, overlap(grid.n_folds))
    score = Score(
        method=name,
        measure=measure,
        mean=mean,
        se=se if isfinite(se) else None,
        share_worse_than_supervised=_share_worse(measure, values, supervised),
        repeats=len(complete),
    )
    if measure != ERROR:
        return score

    # Every complete repeat tests the same rows; an incomplete one sums to NaN.
    n_rows = int(np.nanmax(grid.n_test.sum(axis=1)))
    # Rounding may put the mean of an error just outside of 0 to 1.
    n_wrong = min(max(mean, 0.0), 1.0) * n_rows
    low, high = error_interval(n_wrong, n_rows)
    return replace(score, low=low, high=high, n_rows=n_rows)


def _share_worse(measure: str, values: Array, supervised: Array) -> float | None:
    """Return the share of repeats in which values are worse than the supervised ones.

    None if no repeat has both.
    """
    # Relative to values above 1, and absolute below, as rounding errors are.
    excess = (values - supervised) / np.maximum(1, np.abs(supervised))
    excess = _finite(COMPARISON_MEASURES[measure].sign * excess)
    if not excess.size:
        return None
    return float((excess > _TIE_TOLERANCE).mean())


def _differences(
    measure: str, rivals: Sequence[str], grids: Mapping[str, _Grid], baseline: str
) -> list[Difference]:
    """Test the differences of all rivals from the baseline, fold by fold."""
    supervised = grids[baseline]
    ratio = overlap(supervised.n_folds)
    paired = {}
    for name in rivals:
        grid = grids[name]
        values = grid.values[measure] - supervised.values[measure]
        values = grid.weighted_splits(values)
        # A test needs two values.
        if len(values) > 1:
            paired[name] = values

    p_values = []
    for values in paired.values():
        _, p = _statistics.corrected_t_test(values, ratio)
        p_values.append(p)
    corrected = _statistics.holm(p_values)

    differences = []
    tested = zip(paired.items(), p_values, corrected, strict=True)
    for (name, values), p, p_holm in tested:
        # The interval has the level that Holm's method gives this test: it excludes
        # zero exactly where the corrected p-value is below the common level.
        level = LEVEL * p / p_holm if p_holm else LEVEL
        low, high = _statistics.mean_interval(values, 1 - level, ratio)
        difference = Difference(
            method=name,
            measure=measure,
            difference=float(values.mean()),
            low=low,
            high=high,
            p=p,
            p_holm=p_holm,
        )
        differences.append(difference)
    return differences


@dataclass(frozen=True)
class SplitCurvePoint:
    """A point of a learning curve: a mean over splits.

    Attributes
    ----------
    curve : str
        What varies: ``UNLABELED_CURVE`` or ``LABELED_CURVE``.
    n_labeled, n_unlabeled : int
        Training rows.
    method, measure : str
        Names of the contestant and of the measure.
    mean : float
        Mean over splits.
    se : float or None
        Standard error over splits, as if they were independent.
    splits : int
        Number of splits.
    """

    curve: str
    n_labeled: int
    n_unlabeled: int
    method: str
    measure: str
    mean: float
    se: float | None
    splits: int

    @property
    def size(self) -> int:
        """The number of rows that varies."""
        return self.n_unlabeled if self.curve == UNLABELED_CURVE else self.n_labeled


def split_curve_points(
    results: Sequence[FitResult], methods: Sequence[str], settings: ComparisonSettings
) -> list[SplitCurvePoint]:
    """Return the points of both curves, including that of the comparison.

    The curve of labeled rows leaves out that point if there are more unlabeled rows
    than curves use.
    """
    fitted = [
        result
        for result in results
        if result.failure is None and result.method in methods
    ]
    points = []
    for curve in VARIED_COUNTS:
        # Also of failed fits: a split whose fits all failed is one of the curve.
        split_numbers = {
            result.repeat for result in results if result.experiment == curve
        }
        n_splits = 1 + max(split_numbers, default=-1)
        groups = _fits_by_size(fitted, curve, n_splits, settings)
        order = sorted(groups, key=lambda key: (methods.index(key[0]), key[1]))
        for key in order:
            points += [_point(curve, name, groups[key]) for name in CURVE_MEASURES]
    return points


def _fits_by_size(
    fitted: Iterable[FitResult], curve: str, n_splits: int, settings: ComparisonSettings
) -> dict[tuple[str, int], list[FitResult]]:
    """Return the fits of a curve by contestant and size, those of the comparison too.

    The comparison may have more splits than a curve: only those that the curve has
    count, so that all its points are means over the same splits.
    """
    if curve == UNLABELED_CURVE:
        compared_size = settings.n_unlabeled
        has_compared_point = True
    else:
        compared_size = settings.size.n_labeled
        # Otherwise that point has more unlabeled rows than the others.
        has_compared_point = not settings.is_capped

    groups: dict[tuple[str, int], list[FitResult]] = defaultdict(list)
    for result in fitted:
        if result.experiment == curve:
            groups[result.method, result.part].append(result)
        elif result.experiment == REPEATED_FOLDS and has_compared_point:
            split = result.repeat * settings.folds + result.part
            if split < n_splits:
                groups[result.method, compared_size].append(result)
    return groups


def _point(curve: str, measure: str, fits: Sequence[FitResult]) -> SplitCurvePoint:
    """Return the mean over the fits of a contestant to one size."""
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
