"""The paper: its experiments, methods and published numbers; settings that runs store.

``run``, ``summary`` and ``report`` repeat its experiments. ``questions`` runs those on its open
questions, which ``questions.toml`` lists, and ``answers`` draws the answers from their rows.
"""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from math import hypot, sqrt
from typing import Any

from ... import methods
from ...datasets import BENCHMARKS
from ..measures import Measure, paper_measures
from ..store import Store

KIND, QUESTIONS = "paper", "questions"  # of stores
TABLES, CURVES = "tables", "curves"  # the two experiments
TABLE_REPEATS, CURVE_REPEATS, N_FOLDS = 20, 500, 10
GAUSSIAN, VIOLATED = TOYS = ("2DGaussian", "2DGaussianViolated")
PUBLISHED_CURVES = (GAUSSIAN, "Parkinsons", "Pima", "Sonar")
# The columns of the paper's tables, in its order.
PUBLISHED_METHODS = ("LDA", "LDAoracle", "MCLDA", "EMLDA", "SLLDA", "ICLDA")
BASELINE, ORACLE, *_ = PUBLISHED_METHODS
PUBLISHED_EM = "EMLDA-as-published"  # EM with the faults of the published numbers
_ORDER = (*PUBLISHED_METHODS[:4], PUBLISHED_EM, *PUBLISHED_METHODS[4:])
METHOD_NAMES = tuple(
    dict.fromkeys((*_ORDER, *(method.paper_name for method in methods.METHODS)))
)
FURTHER_METHODS = ("AVLDA", *(method.paper_name for method in methods.FURTHER))
EVERY_METHOD = METHOD_NAMES + FURTHER_METHODS
PLAN = tomllib.loads(files(__package__).joinpath("questions.toml").read_text("utf-8"))
EXPERIMENTS: dict[str, dict[str, Any]] = PLAN["experiments"]  # on the open questions
GRID = 61  # shares of an unlabeled row at which the objective of an example is computed
# What Table I prints: one too many for every set but WDBC (the class was counted in).
PRINTED_FEATURES = {
    name: each.n_features + (name != "WDBC") for name, each in BENCHMARKS.items()
}


def n_labeled_of(n_features: int) -> int:
    """The paper's number of labeled rows."""
    return max(2 * n_features, 10)


def table_measures() -> dict[str, Measure]:
    """Measures of the tables, by their names in the paper's results."""
    return {
        name: each
        for name, each in paper_measures().items()
        if not each.is_only_on_curves
    }


def method_rank(method: str) -> tuple[int, str]:
    """Sort key of methods: the order of the tables, unknown ones last."""
    is_known = method in EVERY_METHOD
    return EVERY_METHOD.index(method) if is_known else len(EVERY_METHOD), method


@dataclass(frozen=True)
class PublishedMean:
    """A mean of the paper, its standard error, and the standard deviation that a table prints.

    All are None where the paper has none.
    """

    mean: float | None = None
    se: float | None = None
    sd: float | None = None


def counterpart_of(method: str) -> str:
    """The published column that a method is compared with, empty where there is none.

    The published EMLDA column is not what the text defines, so that EMLDA has no counterpart.
    """
    columns = {name: name for name in PUBLISHED_METHODS} | {
        PUBLISHED_EM: "EMLDA",
        "EMLDA": "",
    }
    return columns.get(method, "")


@cache
def read_cells() -> dict[tuple[str, str, str], PublishedMean]:
    """Published cells by (data set, column, measure)."""
    cells = {}
    for line in _read("tables.csv"):
        key, sd = (line["dataset"], line["method"], line["measure"]), float(line["sd"])
        cells[key] = PublishedMean(float(line["mean"]), sd / sqrt(TABLE_REPEATS), sd)
    return cells


@cache
def read_points() -> dict[tuple[str, int, str, str], PublishedMean]:
    """Published points by (data set, number of unlabeled rows, column, measure)."""
    points = {}
    for line in _read("curves.csv"):
        key = line["dataset"], int(line["n_unlabeled"]), line["method"], line["measure"]
        points[key] = PublishedMean(float(line["mean"]), float(line["se"]))
    return points


def _read(name: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath("published", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def z_score(
    mean: float | None, se: float | None, theirs: PublishedMean
) -> float | None:
    """Difference from a published mean in its standard errors; None where that is unknown."""
    if mean is None or se is None or theirs.mean is None or theirs.se is None:
        return None
    error = hypot(se, theirs.se)
    return (mean - theirs.mean) / error if error else None


@dataclass(frozen=True)
class StoredSettings:
    """Settings of the runs of a folder, stored as JSON by their names beside the rows."""

    seed: int = 0
    data: dict[str, str] = field(default_factory=dict)  # SHA-256 by set
    commands: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = "unknown"
    jobs: int | str = "unknown"
    shapes: dict[str, list[int]] = field(
        default_factory=dict
    )  # rows, features, classes
    origins: dict[str, str] = field(default_factory=dict)
    began: str = "unknown"
    seconds_tables: float = 0.0
    seconds_curves: float = 0.0

    @property
    def seconds(self) -> float:
        return self.seconds_tables + self.seconds_curves


def read_settings(store: Store) -> StoredSettings:
    """Settings of a store; those that it does not have are the defaults."""
    stored, names = store.settings(), [each.name for each in fields(StoredSettings)]
    return StoredSettings(**{name: stored[name] for name in names if name in stored})
