"""The numbers that the paper published, and the difference of a mean from them.

``data/tables.csv`` has the cells of its tables, ``data/curves.csv`` the points of its
learning curves.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import hypot, sqrt

from ...datasets import BENCHMARKS
from .design import PUBLISHED_EM, PUBLISHED_METHODS, TABLE_REPEATS

# Numbers of features that the paper's Table I prints. They are one too high for every
# set except WDBC, because the column of classes was counted.
PRINTED_FEATURES = {
    name: benchmark.n_features + (name != "WDBC")
    for name, benchmark in BENCHMARKS.items()
}


@dataclass(frozen=True)
class PublishedMean:
    """A published mean, its standard error, and in tables its standard deviation.

    All are None for a number that the paper does not have. ``marks`` is what the tables
    print the number in: "bold", "bold underlined", or "" for neither (see ``marks``).
    """

    mean: float | None = None
    se: float | None = None
    sd: float | None = None
    marks: str = ""


def counterpart_of(method: str) -> str:
    """Return the published column that a method is compared with, "" if there is none.

    The published column EMLDA has the faults of its code. It is compared with the EM
    that repeats them; EM as the text of the paper defines it has no counterpart.
    """
    if method == PUBLISHED_EM:
        return "EMLDA"
    if method in PUBLISHED_METHODS and method != "EMLDA":
        return method
    return ""


@cache
def read_cells() -> dict[tuple[str, str, str], PublishedMean]:
    """Read the cells of the tables, by data set, column and measure."""
    cells = {}
    for line in _read_lines("tables.csv"):
        key = line["dataset"], line["method"], line["measure"]
        # The paper prints standard deviations over its repeats.
        sd = float(line["sd"])
        se = sd / sqrt(TABLE_REPEATS)
        cells[key] = PublishedMean(float(line["mean"]), se, sd, line["marks"])
    return cells


@cache
def read_points() -> dict[tuple[str, int, str, str], PublishedMean]:
    """Read the curves, by data set, number of unlabeled rows, column and measure."""
    points = {}
    for line in _read_lines("curves.csv"):
        n_unlabeled = int(line["n_unlabeled"])
        key = line["dataset"], n_unlabeled, line["method"], line["measure"]
        points[key] = PublishedMean(float(line["mean"]), float(line["se"]))
    return points


def _read_lines(name: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath("data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def z_score(
    mean: float | None, se: float | None, published: PublishedMean
) -> float | None:
    """Return the difference from a published mean in standard errors of both means.

    None if a number is missing, or both standard errors are zero.
    """
    if mean is None or se is None or published.mean is None or published.se is None:
        return None
    combined_se = hypot(se, published.se)
    return (mean - published.mean) / combined_se if combined_se else None
