"""The paper: its experiments and methods, its numbers as data, and its rules for bold print."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import fsum, hypot

from scipy import stats

from ... import methods
from ...datasets import BENCHMARKS
from ..measures import LEVEL, paper_measures

TABLES, CURVES = "tables", "curves"  # the two experiments
TABLE_REPEATS, CURVE_REPEATS, N_FOLDS = 20, 500, 10
GAUSSIAN, VIOLATED = TOYS = ("2DGaussian", "2DGaussianViolated")
PUBLISHED_CURVES = (GAUSSIAN, "Parkinsons", "Pima", "Sonar")
# The columns of the paper's tables, in its order.
PUBLISHED_METHODS = ("LDA", "LDAoracle", "MCLDA", "EMLDA", "SLLDA", "ICLDA")
BASELINE, ORACLE, *CONTESTANTS = PUBLISHED_METHODS
# EM with the faults of the published numbers is beside EM as defined.
_ORDER = (*PUBLISHED_METHODS[:4], "EMLDA-as-published", *PUBLISHED_METHODS[4:])
METHOD_NAMES = tuple(dict.fromkeys((*_ORDER, *(method.paper_name for method in methods.METHODS))))
EXTRA_METHODS = ("sklearn-SelfTraining", "sklearn-LabelSpreading")
FURTHER_METHODS = ("AVLDA", *(method.paper_name for method in methods.FURTHER))
EVERY_METHOD = METHOD_NAMES + FURTHER_METHODS + EXTRA_METHODS
# What Table I prints: one too many for every set but WDBC (the class was counted in).
PRINTED_FEATURES = {name: each.n_features + (name != "WDBC") for name, each in BENCHMARKS.items()}


def table_measures() -> list[str]:
    """Measures of the tables, by their names in the paper's results."""
    return [name for name, measure in paper_measures().items() if not measure.is_only_on_curves]


def method_rank(method: str) -> tuple[int, str]:
    """Sorts methods in the order of the tables, unknown ones last."""
    is_known = method in EVERY_METHOD
    return EVERY_METHOD.index(method) if is_known else len(EVERY_METHOD), method


@dataclass(frozen=True)
class MeanOfRepeats:
    """Mean and standard deviation of a measure over repeats."""

    mean: float
    sd: float
    n: int


@dataclass(frozen=True)
class PublishedPoint:
    """One point of a published curve.

    ``n_labeled`` is what the paper states; its code drew two more.
    """

    n_labeled: int
    mean: float
    se: float
    repeats: int = CURVE_REPEATS


def published_name(method: str) -> str | None:
    """The published column that a method is compared with, or None where there is none.

    The published EMLDA column is not what the text defines, so that EMLDA has no counterpart.
    """
    if method == "EMLDA-as-published":
        return "EMLDA"
    return method if method in PUBLISHED_METHODS and method != "EMLDA" else None


@cache
def published_cells() -> dict[tuple[str, str, str], MeanOfRepeats]:
    """Published cells by (data set, published method, measure)."""
    return {
        (line["dataset"], line["method"], line["measure"]): MeanOfRepeats(
            float(line["mean"]), float(line["sd"]), TABLE_REPEATS
        )
        for line in _read("tables.csv")
    }


@cache
def published_points() -> dict[tuple[str, int, str, str], PublishedPoint]:
    """Published points by (data set, number of unlabeled rows, published method, measure)."""
    return {
        (line["dataset"], int(line["n_unlabeled"]), line["method"], line["measure"]): (
            PublishedPoint(int(line["n_labeled"]), float(line["mean"]), float(line["se"]))
        )
        for line in _read("curves.csv")
    }


def _read(name: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath("published", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def mean_and_variance(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Mean and variance of values, None where there are too few."""
    n = len(values)
    mean = fsum(values) / n if n else 0.0
    variance = fsum((value - mean) ** 2 for value in values) / (n - 1) if n > 1 else None
    return mean if n else None, variance


def z_score(
    mean: float | None, se: float | None, published_mean: float, published_se: float
) -> float | None:
    """Difference of two means in units of its standard error; None where that is unknown."""
    error = hypot(se or 0.0, published_se)
    if mean is None or se is None or error == 0:
        return None
    return (mean - published_mean) / error


@dataclass(frozen=True)
class Contest:
    """The best of the four semi-supervised methods against another column."""

    winner: str
    opponent: str
    p: float

    @property
    def is_won(self) -> bool:
        return self.p < LEVEL


@dataclass(frozen=True)
class UnderlineCheck:
    """A winner of the paper: against the column its script took, and against the runner-up."""

    dataset: str
    as_published: Contest
    against_runner_up: Contest

    @property
    def survives(self) -> bool:
        """Underlined in the paper, and rightly."""
        return self.as_published.is_won and self.against_runner_up.is_won


def welch(a: MeanOfRepeats, b: MeanOfRepeats) -> float:
    """Two-sided p-value of Welch's t-test, from means and standard deviations."""
    if a.n < 2 or b.n < 2:
        return 1.0
    if a.sd == b.sd == 0:
        return float(a.mean == b.mean)
    result = stats.ttest_ind_from_stats(a.mean, a.sd, a.n, b.mean, b.sd, b.n, equal_var=False)
    return float(result.pvalue)


# In what follows lower means are better.


def bold(means: Mapping[str, MeanOfRepeats]) -> frozenset[str]:
    """Methods significantly better than LDA by Welch's test (the paper's bold print)."""
    baseline = means.get(BASELINE)
    if baseline is None:
        return frozenset()
    return frozenset(
        method
        for method, found in means.items()
        if method not in (BASELINE, ORACLE)
        and found.mean < baseline.mean
        and welch(found, baseline) < LEVEL
    )


def contest_with_runner_up(means: Mapping[str, MeanOfRepeats]) -> Contest | None:
    """The best semi-supervised method against the second best: what underlining should mean."""
    return _contest(means, *_ranked(means)[:2])


def contest_of_the_paper(means: Mapping[str, MeanOfRepeats]) -> Contest | None:
    """The best semi-supervised method against the column that the paper's script took.

    The script counted the winner's place among the four semi-supervised columns and read that
    place in the table of all six, whose first two are LDA and LDAoracle: the opponent is the
    column two to the left of the winner.
    """
    winners = _ranked(means)[:1]
    return _contest(means, *winners, *(PUBLISHED_METHODS[CONTESTANTS.index(w)] for w in winners))


def _ranked(means: Mapping[str, MeanOfRepeats]) -> list[str]:
    present = [method for method in CONTESTANTS if method in means]
    return sorted(present, key=lambda method: means[method].mean)


def _contest(
    means: Mapping[str, MeanOfRepeats], winner: str = "", opponent: str = ""
) -> Contest | None:
    if opponent not in means:
        return None
    return Contest(winner, opponent, welch(means[winner], means[opponent]))


def check_published_underlines(measure: str) -> list[UnderlineCheck]:
    """For each published data set: the underlining of the paper, and what is left of it."""
    by_dataset: dict[str, dict[str, MeanOfRepeats]] = defaultdict(dict)
    for (dataset, method, published), found in published_cells().items():
        if published == measure:
            by_dataset[dataset][method] = found
    checks = []
    for dataset, means in sorted(by_dataset.items(), key=lambda item: item[0].casefold()):
        wrong, right = contest_of_the_paper(means), contest_with_runner_up(means)
        if wrong is not None and right is not None:
            checks.append(UnderlineCheck(dataset, wrong, right))
    return checks
