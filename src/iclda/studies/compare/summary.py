"""From results to scores of contestants, and to paired differences from the supervised one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite, sqrt

import numpy as np
from scipy import stats

from ..resampling import LEVEL, corrected_t_test, holm
from .contestants import SUPERVISED, Contestant
from .results import COMPARISON, N_BINS, Bins, Result, calibration_error, read_bins

ERROR, BRIER, CALIBRATION, LOSS, HIDDEN = (
    "error",
    "brier",
    "calibration",
    "loss",
    "error_hidden",
)
MEASURES = (ERROR, BRIER, CALIBRATION, LOSS, HIDDEN)
_TESTED = (ERROR, BRIER, LOSS)
_TIE = 1e-12
Values = dict[tuple[int, int], tuple[float, int]]  # by repeat and fold: value, test rows


@dataclass(frozen=True)
class Score:
    """A measure of a contestant over its complete repeats; ``se`` knows that splits overlap."""

    method: str
    measure: str
    mean: float | None
    se: float | None
    share_worse_than_supervised: float | None
    repeats: int


@dataclass(frozen=True)
class Difference:
    """A contestant less the supervised one, paired by split; Holm's correction over contestants."""

    method: str
    measure: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    detectable: float  # a difference of this size would just have been significant

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, or an empty string for no clear difference."""
        if not self.p_holm < LEVEL:
            return ""
        return "better" if self.difference < 0 else "worse"


@dataclass(frozen=True)
class Outcome:
    """All numbers of a comparison."""

    baseline: str | None  # the best supervised contestant
    scores: tuple[Score, ...]
    differences: tuple[Difference, ...]
    best: Mapping[str, str]  # of every method that has numbers, the contestant that did best

    def score(self, method: str, measure: str) -> Score | None:
        """The score of a contestant, if it has one."""
        found = (s for s in self.scores if (s.method, s.measure) == (method, measure))
        return next(found, None)

    def difference(self, method: str, measure: str) -> Difference | None:
        """The difference of a contestant, if it has one."""
        found = (d for d in self.differences if (d.method, d.measure) == (method, measure))
        return next(found, None)

    def mean(self, method: str | None, measure: str) -> float | None:
        """The mean of a contestant, if it has one."""
        score = self.score(method, measure) if method else None
        return score.mean if score else None


def summarize(
    results: Iterable[Result], contestants: Sequence[Contestant], n_folds: int
) -> Outcome:
    """Scores and differences of all contestants in the comparison."""
    by_method: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        if result.experiment == COMPARISON and result.failure is None:
            by_method[result.method].append(result)
    names = [contestant.name for contestant in contestants]
    means = {name: _means(by_method[name], n_folds) for name in names}
    best = _best_variants(contestants, means)
    baseline = best.get(SUPERVISED)
    scores = [
        _score(name, measure, by_method, baseline, n_folds)
        for name in names
        for measure in MEASURES
    ]
    rivals = [contestant.name for contestant in contestants if not contestant.is_supervised]
    differences = [
        difference
        for measure in _TESTED
        for difference in _differences(measure, rivals, baseline, by_method, n_folds)
    ]
    shown = tuple(score for score in scores if score.mean is not None or score.measure == ERROR)
    return Outcome(baseline, shown, tuple(differences), best)


def _means(results: Sequence[Result], n_folds: int) -> tuple[float, float]:
    """Error and Brier score, infinite where there are none: what variants are ranked by."""
    found = []
    for measure in (ERROR, BRIER):
        values = list(repeat_values(results, measure, n_folds).values())
        found.append(round(fsum(values) / len(values), 12) if values else float("inf"))
    return found[0], found[1]


def _best_variants(
    contestants: Sequence[Contestant], means: Mapping[str, tuple[float, float]]
) -> dict[str, str]:
    """Of every method that has numbers, the lowest error, then the lowest Brier score."""
    best: dict[str, str] = {}
    for contestant in contestants:
        if means[contestant.name][0] == float("inf"):
            continue
        known = best.get(contestant.method.name)
        if known is None or means[contestant.name] < means[known]:
            best[contestant.method.name] = contestant.name
    return best


def repeat_values(results: Sequence[Result], measure: str, n_folds: int) -> dict[int, float]:
    """Value of every complete repeat, folds weighted by their test rows."""
    if measure == CALIBRATION:
        return _by_repeat(results, n_folds, lambda folds: calibration_error(pooled(folds)))
    finite = [result for result in results if _is_number(getattr(result, measure))]

    def mean(folds: Sequence[Result]) -> float:
        total = sum(fold.n_test for fold in folds)
        return fsum(fold.n_test * getattr(fold, measure) for fold in folds) / total

    return _by_repeat(finite, n_folds, mean)


def _by_repeat(
    results: Sequence[Result], n_folds: int, value: Callable[[Sequence[Result]], float]
) -> dict[int, float]:
    repeats: dict[int, list[Result]] = defaultdict(list)
    for result in sorted(results, key=lambda result: (result.repeat, result.part)):
        repeats[result.repeat].append(result)
    return {number: value(folds) for number, folds in repeats.items() if len(folds) == n_folds}


def pooled(results: Iterable[Result]) -> Bins:
    """Bins of the test rows of several results together."""
    return sum((read_bins(result.bins) for result in results), np.zeros((N_BINS, 3)))


def _is_number(value: float | None) -> bool:
    return value is not None and isfinite(value)


def _score(
    name: str,
    measure: str,
    by_method: Mapping[str, Sequence[Result]],
    baseline: str | None,
    n_folds: int,
) -> Score:
    values = repeat_values(by_method[name], measure, n_folds)
    if not values:
        return Score(name, measure, None, None, None, 0)
    supervised = repeat_values(by_method[baseline], measure, n_folds) if baseline else {}
    shared = values.keys() & supervised.keys()
    n_worse = sum(values[k] > supervised[k] + _TIE * max(1, abs(supervised[k])) for k in shared)
    return Score(
        name,
        measure,
        mean=fsum(values.values()) / len(values),
        se=_standard_error(by_method[name], measure, n_folds, values),
        share_worse_than_supervised=n_worse / len(shared) if shared else None,
        repeats=len(values),
    )


def _standard_error(
    results: Sequence[Result], measure: str, n_folds: int, values: Mapping[int, float]
) -> float | None:
    """After Nadeau and Bengio, from splits; the calibration error exists for repeats only."""
    numbers = list(values.values())
    if measure != CALIBRATION:
        splits = _split_values(results, measure)
        numbers = _weighted({split: value for split, (value, _) in splits.items()}, splits)
    return _corrected_error(numbers, n_folds) if len(numbers) > 1 else None


def _corrected_error(numbers: Sequence[float], n_folds: int) -> float:
    return sqrt((1 / len(numbers) + overlap(n_folds)) * float(np.var(numbers, ddof=1)))


def overlap(n_folds: int) -> float:
    """Test rows over training rows, counting those of known label: unlabeled ones never change."""
    return 1 / (n_folds - 1)


def _split_values(results: Sequence[Result], measure: str) -> Values:
    """Value and number of test rows of every split that has one."""
    return {
        (result.repeat, result.part): (getattr(result, measure), result.n_test)
        for result in sorted(results, key=lambda result: (result.repeat, result.part))
        if _is_number(getattr(result, measure))
    }


def _weighted(numbers: Mapping[tuple[int, int], float], splits: Values) -> list[float]:
    """Numbers of splits times their test rows: their plain mean is then the mean of all rows."""
    size = fsum(splits[split][1] for split in numbers) / max(len(numbers), 1)
    return [number * splits[split][1] / size for split, number in numbers.items()]


def _differences(
    measure: str,
    rivals: Sequence[str],
    baseline: str | None,
    by_method: Mapping[str, Sequence[Result]],
    n_folds: int,
) -> list[Difference]:
    supervised = _split_values(by_method[baseline], measure) if baseline else {}
    paired = {}
    for name in rivals:
        ours = _split_values(by_method[name], measure)
        shared = {s: ours[s][0] - supervised[s][0] for s in ours if s in supervised}
        if len(shared) > 1:
            paired[name] = _weighted(shared, ours)
    tests = {name: corrected_t_test(d, overlap(n_folds)) for name, d in paired.items()}
    adjusted = dict(zip(tests, holm([p for _, p in tests.values()]), strict=True))
    return [
        _difference(name, measure, paired[name], (p, adjusted[name]), n_folds, len(tests))
        for name, (_, p) in tests.items()
    ]


def _difference(
    name: str,
    measure: str,
    values: Sequence[float],
    p_values: tuple[float, float],
    n_folds: int,
    n_tests: int,
) -> Difference:
    n, mean = len(values), fsum(values) / len(values)
    se = _corrected_error(values, n_folds)
    reach = float(stats.t.ppf(1 - LEVEL / 2, n - 1)) * se
    detectable = float(stats.t.ppf(1 - LEVEL / 2 / n_tests, n - 1)) * se
    return Difference(name, measure, mean, mean - reach, mean + reach, *p_values, detectable)
