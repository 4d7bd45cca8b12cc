"""The paper's own numbers, as data: means and spreads behind its tables and its curves."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import hypot, sqrt

TABLE_REPEATS, CURVE_REPEATS = 20, 500
# The columns of the paper's tables, in its order.
PUBLISHED_METHODS = ("LDA", "LDAoracle", "MCLDA", "EMLDA", "SLLDA", "ICLDA")
# What Table I prints: one too many for every set but WDBC (the class was counted in).
PRINTED_FEATURES = {
    "BCI": 118,
    "Haberman": 4,
    "Ionosphere": 33,
    "Parkinsons": 20,
    "Pima": 9,
    "SPECT": 23,
    "SPECTF": 45,
    "Sonar": 61,
    "Transfusion": 4,
    "WDBC": 30,
}


@dataclass(frozen=True)
class PublishedCell:
    """One cell of a published table: mean and standard deviation over the repeats."""

    dataset: str
    method: str
    measure: str
    mean: float
    sd: float
    repeats: int = TABLE_REPEATS


@dataclass(frozen=True)
class PublishedPoint:
    """One point of a published curve.

    ``n_labeled`` is what the paper states; its code drew two more.
    """

    dataset: str
    n_labeled: int
    n_unlabeled: int
    method: str
    measure: str
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
def published_cells() -> dict[tuple[str, str, str], PublishedCell]:
    """Published cells by (data set, published method, measure)."""
    cells = (
        PublishedCell(
            line["dataset"],
            line["method"],
            line["measure"],
            float(line["mean"]),
            float(line["sd"]),
        )
        for line in _read("tables.csv")
    )
    return {(cell.dataset, cell.method, cell.measure): cell for cell in cells}


@cache
def published_points() -> dict[tuple[str, int, str, str], PublishedPoint]:
    """Published points by (data set, number of unlabeled rows, published method, measure)."""
    points = (
        PublishedPoint(
            line["dataset"],
            int(line["n_labeled"]),
            int(line["n_unlabeled"]),
            line["method"],
            line["measure"],
            float(line["mean"]),
            float(line["se"]),
        )
        for line in _read("curves.csv")
    )
    return {(p.dataset, p.n_unlabeled, p.method, p.measure): p for p in points}


def z_score(mean: float, sd: float | None, n: int, published: PublishedCell) -> float | None:
    """Difference of two means in units of its standard error; None where that is unknown."""
    if sd is None or n < 2:
        return None
    error = hypot(sd / sqrt(n), published.sd / sqrt(published.repeats))
    return (mean - published.mean) / error if error > 0 else None


def _read(name: str) -> list[dict[str, str]]:
    text = files("iclda.studies.paper").joinpath("published", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
