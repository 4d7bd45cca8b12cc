"""From the rows of the learning curves to points, beside the published ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import fsum, hypot, isfinite, sqrt
from pathlib import Path

from ..cells import CURVES, EXTRA_METHODS, METHODS, Row
from ..page import csv_text
from .published import PublishedPoint, published_name, published_points

CURVE_MEASURES = ("error", "nll", "nll_labeled")


@dataclass(frozen=True)
class Point:
    """Mean and standard error over the repeats whose fit succeeded."""

    dataset: str
    n_unlabeled: int
    method: str
    measure: str
    mean: float
    se: float | None
    repeats: int


@dataclass(frozen=True)
class PointComparison:
    """A point, the published one, and their difference in combined standard errors."""

    point: Point
    published: PublishedPoint
    z: float


def summarize_curves(rows: Iterable[Row]) -> list[Point]:
    """Points of all curves, by data set, measure, method and number of unlabeled rows."""
    values: dict[tuple[str, str, str, int], dict[int, float]] = defaultdict(dict)
    for row in rows:
        if row.experiment != CURVES or row.failure is not None:
            continue
        for measure in CURVE_MEASURES:
            value = getattr(row, measure)
            if value is not None and isfinite(value):
                values[row.dataset, measure, row.method, row.part][row.repeat] = value
    return [
        _point(key, [value for _, value in sorted(values[key].items())])
        for key in sorted(values, key=_place)
    ]


def _place(key: tuple[str, str, str, int]) -> tuple[str, int, int, str, int]:
    dataset, measure, method, n_unlabeled = key
    known = METHODS + EXTRA_METHODS
    rank = known.index(method) if method in known else len(known)
    return dataset.casefold(), CURVE_MEASURES.index(measure), rank, method, n_unlabeled


def _point(key: tuple[str, str, str, int], values: list[float]) -> Point:
    dataset, measure, method, n_unlabeled = key
    n = len(values)
    mean = fsum(values) / n
    se = sqrt(fsum((v - mean) ** 2 for v in values) / (n - 1) / n) if n > 1 else None
    return Point(dataset, n_unlabeled, method, measure, mean, se, n)


def compare_with_published(points: Iterable[Point]) -> list[PointComparison]:
    """The points that the paper has too, each with the difference to it."""
    comparisons = []
    for point in points:
        name = published_name(point.method) or ""
        published = published_points().get((point.dataset, point.n_unlabeled, name, point.measure))
        if published is None or point.se is None:
            continue
        error = hypot(point.se, published.se)
        if error > 0:
            z = (point.mean - published.mean) / error
            comparisons.append(PointComparison(point, published, z))
    return comparisons


def points_csv(points: Iterable[Point]) -> str:
    """All points, one a line."""
    names = [field.name for field in fields(Point)]
    return csv_text(names, ([getattr(point, name) for name in names] for point in points))


def comparison_csv(comparisons: Iterable[PointComparison]) -> str:
    """All compared points, one a line."""
    header = ["dataset", "n_unlabeled", "method", "measure", "mean", "se", "repeats"]
    header += ["published_mean", "published_se", "z"]
    lines = (
        [
            *(getattr(c.point, name) for name in header[:7]),
            c.published.mean,
            c.published.se,
            c.z,
        ]
        for c in comparisons
    )
    return csv_text(header, lines)


def write_curves(out: Path, rows: Iterable[Row]) -> list[Path]:
    """Write points.csv and comparison.csv under ``out``/curves; the paths written."""
    folder = out / "curves"
    folder.mkdir(parents=True, exist_ok=True)
    points = summarize_curves(rows)
    contents = {
        "points.csv": points_csv(points),
        "comparison.csv": comparison_csv(compare_with_published(points)),
    }
    for name, text in contents.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in contents]
