"""Experiments, methods and numbers of the paper, and its rule for underlines."""

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
from ..measures import LEVEL, Measure, paper_measures

TABLES, CURVES = "tables", "curves"  # the two experiments
TABLE_REPEATS, CURVE_REPEATS, N_FOLDS = 20, 500, 10
GAUSSIAN, VIOLATED = TOYS = ("2DGaussian", "2DGaussianViolated")
PUBLISHED_CURVES = (GAUSSIAN, "Parkinsons", "Pima", "Sonar")
# The columns of the paper's tables, in its order.
PUBLISHED_METHODS = ("LDA", "LDAoracle", "MCLDA", "EMLDA", "SLLDA", "ICLDA")
BASELINE, ORACLE, *CONTESTANTS = PUBLISHED_METHODS
PUBLISHED_EM = "EMLDA-as-published"  # EM with the faults of the published numbers
_ORDER = (*PUBLISHED_METHODS[:4], PUBLISHED_EM, *PUBLISHED_METHODS[4:])
METHOD_NAMES = tuple(dict.fromkeys((*_ORDER, *(method.paper_name for method in methods.METHODS))))
EXTRA_METHODS = ("sklearn-SelfTraining", "sklearn-LabelSpreading")
FURTHER_METHODS = ("AVLDA", *(method.paper_name for method in methods.FURTHER))
EVERY_METHOD = METHOD_NAMES + FURTHER_METHODS + EXTRA_METHODS
# What Table I prints: one too many for every set but WDBC (the class was counted in).
PRINTED_FEATURES = {name: each.n_features + (name != "WDBC") for name, each in BENCHMARKS.items()}


def table_measures() -> dict[str, Measure]:
    """Measures of the tables, by their names in the paper's results."""
    return {name: each for name, each in paper_measures().items() if not each.is_only_on_curves}


def method_rank(method: str) -> tuple[int, str]:
    """Sort key of methods: the order of the tables, unknown ones last."""
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
    """Mean and standard error of one point of a published curve."""

    mean: float
    se: float


def counterpart_of(method: str) -> str:
    """The published column that a method is compared with, empty where there is none.

    The published EMLDA column is not what the text defines, so that EMLDA has no counterpart.
    """
    columns = {name: name for name in PUBLISHED_METHODS} | {PUBLISHED_EM: "EMLDA", "EMLDA": ""}
    return columns.get(method, "")


@cache
def read_cells() -> dict[tuple[str, str, str], MeanOfRepeats]:
    """Published cells by (data set, column, measure)."""
    cells = {}
    for line in _read("tables.csv"):
        key = line["dataset"], line["method"], line["measure"]
        cells[key] = MeanOfRepeats(float(line["mean"]), float(line["sd"]), TABLE_REPEATS)
    return cells


@cache
def read_points() -> dict[tuple[str, int, str, str], PublishedPoint]:
    """Published points by (data set, number of unlabeled rows, column, measure)."""
    points = {}
    for line in _read("curves.csv"):
        key = line["dataset"], int(line["n_unlabeled"]), line["method"], line["measure"]
        points[key] = PublishedPoint(float(line["mean"]), float(line["se"]))
    return points


def _read(name: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath("published", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def mean_and_variance(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Mean and variance of values, None where there are too few."""
    n = len(values)
    if n == 0:
        return None, None
    mean = fsum(values) / n
    return mean, fsum((value - mean) ** 2 for value in values) / (n - 1) if n > 1 else None


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
    """Two-sided p-value of Welch's t-test."""
    if a.n < 2 or b.n < 2:
        return 1.0
    if a.sd == b.sd == 0:
        return float(a.mean == b.mean)
    result = stats.ttest_ind_from_stats(a.mean, a.sd, a.n, b.mean, b.sd, b.n, equal_var=False)
    return float(result.pvalue)


# In the functions below lower means are better.


def contest_with_runner_up(means: Mapping[str, MeanOfRepeats]) -> Contest | None:
    """Test the best semi-supervised method against the second best, as underlines should."""
    ranked = _ranked(means)
    return _contest(means, *ranked[:2]) if len(ranked) > 1 else None


def contest_of_the_paper(means: Mapping[str, MeanOfRepeats]) -> Contest:
    """Test the best semi-supervised method against the column that the paper's script took.

    The script counted the winner's place among the four semi-supervised columns and read that
    place in the table of all six, whose first two are LDA and LDAoracle: the opponent is the
    column two to the left of the winner.
    """
    winner = _ranked(means)[0]
    return _contest(means, winner, PUBLISHED_METHODS[CONTESTANTS.index(winner)])


def _ranked(means: Mapping[str, MeanOfRepeats]) -> list[str]:
    present = [method for method in CONTESTANTS if method in means]
    return sorted(present, key=lambda method: means[method].mean)


def _contest(means: Mapping[str, MeanOfRepeats], winner: str, opponent: str) -> Contest:
    return Contest(winner, opponent, welch(means[winner], means[opponent]))


def check_published_underlines(measure: str) -> list[UnderlineCheck]:
    """Check the underline of every published data set against the true runner-up."""
    by_dataset: dict[str, dict[str, MeanOfRepeats]] = defaultdict(dict)
    for (dataset, method, published), mean in read_cells().items():
        if published == measure:
            by_dataset[dataset][method] = mean
    checks = []
    for dataset, means in sorted(by_dataset.items(), key=lambda item: item[0].casefold()):
        right = contest_with_runner_up(means)
        if right is not None:
            checks.append(UnderlineCheck(dataset, contest_of_the_paper(means), right))
    return checks
