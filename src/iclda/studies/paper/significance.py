"""Which differences of the tables count: the paper's two rules, and the one of today."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum, isfinite

from scipy import stats

from ..cells import TABLES, Row
from ..resampling import LEVEL, corrected_t_test, holm
from .published import PUBLISHED_METHODS, published_cells

BASELINE, ORACLE = "LDA", "LDAoracle"
CONTESTANTS = ("MCLDA", "EMLDA", "SLLDA", "ICLDA")


@dataclass(frozen=True)
class Summary:
    """What Welch's test needs to know of one cell."""

    mean: float
    sd: float
    n: int


@dataclass(frozen=True)
class Contest:
    """The best of the four semi-supervised methods against another column."""

    winner: str
    opponent: str
    p: float

    @property
    def is_won(self) -> bool:
        """Significantly better than the opponent."""
        return self.p < LEVEL


@dataclass(frozen=True)
class UnderlineCheck:
    """A winner of the paper: against the column its script took, and against the runner-up."""

    dataset: str
    measure: str
    as_published: Contest
    against_runner_up: Contest

    @property
    def survives(self) -> bool:
        """Underlined in the paper, and rightly."""
        return self.as_published.is_won and self.against_runner_up.is_won


@dataclass(frozen=True)
class Comparison:
    """A method against LDA on one data set, paired by split; ``p_holm`` is over the table."""

    dataset: str
    method: str
    measure: str
    difference: float  # mean over splits of method - LDA
    t: float
    p: float
    p_holm: float
    n_splits: int

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, or an empty string for no significant difference."""
        if not self.p_holm < LEVEL:
            return ""
        return "better" if self.difference < 0 else "worse"


def welch(a: Summary, b: Summary) -> float:
    """Two-sided p-value of Welch's t-test, from means and standard deviations."""
    if a.n < 2 or b.n < 2:
        return 1.0
    if a.sd == b.sd == 0:
        return float(a.mean == b.mean)
    result = stats.ttest_ind_from_stats(a.mean, a.sd, a.n, b.mean, b.sd, b.n, equal_var=False)
    return float(result.pvalue)


def bold(summaries: Mapping[str, Summary]) -> frozenset[str]:
    """Methods significantly better than LDA by Welch's test (the paper's bold print)."""
    baseline = summaries.get(BASELINE)
    if baseline is None:
        return frozenset()
    return frozenset(
        method
        for method, summary in summaries.items()
        if method not in (BASELINE, ORACLE)
        and summary.mean < baseline.mean
        and welch(summary, baseline) < LEVEL
    )


def contest_with_runner_up(summaries: Mapping[str, Summary]) -> Contest | None:
    """The best semi-supervised method against the second best: what underlining should mean."""
    ranked = _ranked(summaries)
    if len(ranked) < 2:
        return None
    winner, runner_up = ranked[:2]
    return Contest(winner, runner_up, welch(summaries[winner], summaries[runner_up]))


def contest_of_the_paper(summaries: Mapping[str, Summary]) -> Contest | None:
    """The best semi-supervised method against the column that the paper's script took.

    The script counted the winner's place among the four semi-supervised columns and read that
    place in the table of all six, whose first two are LDA and LDAoracle: the opponent is the
    column two to the left of the winner.
    """
    ranked = _ranked(summaries)
    if not ranked:
        return None
    winner = ranked[0]
    opponent = PUBLISHED_METHODS[CONTESTANTS.index(winner)]
    if opponent not in summaries:
        return None
    return Contest(winner, opponent, welch(summaries[winner], summaries[opponent]))


def _ranked(summaries: Mapping[str, Summary]) -> list[str]:
    present = [method for method in CONTESTANTS if method in summaries]
    return sorted(present, key=lambda method: summaries[method].mean)


def check_published_underlines(measure: str) -> list[UnderlineCheck]:
    """For each published data set: the underlining of the paper, and what is left of it."""
    by_dataset: dict[str, dict[str, Summary]] = defaultdict(dict)
    for cell in published_cells().values():
        if cell.measure == measure:
            by_dataset[cell.dataset][cell.method] = Summary(cell.mean, cell.sd, cell.repeats)
    checks = []
    for dataset, summaries in sorted(by_dataset.items(), key=lambda item: item[0].casefold()):
        wrong, right = contest_of_the_paper(summaries), contest_with_runner_up(summaries)
        if wrong is not None and right is not None:
            checks.append(UnderlineCheck(dataset, measure, wrong, right))
    return checks


def compare_with_baseline(rows: Iterable[Row], measure: str) -> list[Comparison]:
    """Every method against LDA on every data set, paired by split, Holm over the table."""
    splits = _values_by_split(rows, measure)
    raw = []
    for dataset, method in sorted(splits, key=lambda key: (key[0].casefold(), key[1])):
        if method in (BASELINE, ORACLE):
            continue
        ours, baseline = splits[dataset, method], splits.get((dataset, BASELINE), {})
        shared = sorted(ours.keys() & baseline.keys())
        if len(shared) < 2:
            continue
        differences = [ours[split][0] - baseline[split][0] for split in shared]
        ratio = fsum(ours[split][1] for split in shared) / len(shared)
        t, p = corrected_t_test(differences, ratio)
        raw.append((dataset, method, fsum(differences) / len(shared), t, p, len(shared)))
    adjusted = holm([p for *_, p, _ in raw])
    return [
        Comparison(dataset, method, measure, difference, t, p, p_holm, n)
        for (dataset, method, difference, t, p, n), p_holm in zip(raw, adjusted, strict=True)
    ]


def _values_by_split(
    rows: Iterable[Row], measure: str
) -> dict[tuple[str, str], dict[tuple[int, int], tuple[float, float]]]:
    """By (data set, method), then by (repeat, fold): the value, and test over training rows."""
    splits: dict[tuple[str, str], dict[tuple[int, int], tuple[float, float]]] = defaultdict(dict)
    for row in rows:
        value = getattr(row, measure)
        if row.experiment == TABLES and row.failure is None and _is_number(value):
            ratio = row.n_test / (row.n_labeled + row.n_unlabeled)
            splits[row.dataset, row.method][row.repeat, row.part] = (value, ratio)
    return splits


def _is_number(value: float | None) -> bool:
    return value is not None and isfinite(value)
