"""Confusion matrix of predictions, and what follows from it: errors by class, and a base rate."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import AnyArray, Array
from .._statistics import BaseRate, error_interval
from .page import align, rows_text

LEVEL_OF_INTERVALS = 0.9
_UNEVEN = 2  # times the rarest class, from which the error of the classes alike is worth a line
_MOST_CLASSES = 12  # of a matrix on a terminal


@dataclass(frozen=True)
class ClassError:
    """Rows of one class, how many of them got another, and the interval of that share."""

    name: str
    n_rows: int
    n_wrong: float  # a mean over repeats may have a fraction
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Confusion:
    """Rows by their class and the class they were given: (K, K), true classes down.

    Over several repeats on the same rows, counts are means over the repeats.
    """

    classes: tuple[str, ...]
    counts: Array

    @property
    def n_rows(self) -> int:
        return round(float(self.counts.sum()))

    @property
    def n_wrong(self) -> float:
        return float(self.counts.sum() - np.trace(self.counts))

    @property
    def error(self) -> float:
        return self.n_wrong / self.n_rows

    @property
    def interval(self) -> tuple[float, float]:
        return error_interval(round(self.n_wrong), self.n_rows, LEVEL_OF_INTERVALS)

    @property
    def by_class(self) -> list[ClassError]:
        """Classes that have rows."""
        found = []
        for name, row, right in zip(self.classes, self.counts, np.diag(self.counts), strict=True):
            n_rows = round(float(row.sum()))
            if n_rows:
                n_wrong = float(row.sum() - right)
                ends = error_interval(round(n_wrong), n_rows, LEVEL_OF_INTERVALS)
                found.append(ClassError(name, n_rows, n_wrong, n_wrong / n_rows, *ends))
        return found

    @property
    def balanced_error(self) -> float:
        """Mean of the errors of the classes: each counts alike."""
        return float(np.mean([each.error for each in self.by_class]))

    @property
    def is_uneven(self) -> bool:
        """Whether classes differ so much in size that the balanced error says more."""
        sizes = [each.n_rows for each in self.by_class]
        return len(sizes) > 1 and max(sizes) >= _UNEVEN * min(sizes)

    @property
    def base(self) -> BaseRate:
        """What can be had without looking at any column."""
        sizes = self.counts.sum(axis=1).tolist()
        return BaseRate.of_counts(dict(zip(self.classes, sizes, strict=True)))

    def to_json(self) -> dict[str, Any]:
        low, high = self.interval
        return {
            "n_rows": self.n_rows,
            "n_wrong": round(self.n_wrong, 6),
            "error": self.error,
            "error_low": low,
            "error_high": high,
            "interval": LEVEL_OF_INTERVALS,
            "balanced_error": self.balanced_error,
            "base_rate": self.base.error,
            "majority": self.base.majority,
            "by_class": [vars(each) for each in self.by_class],
            "confusion": {
                name: dict(zip(self.classes, row, strict=True))
                for name, row in zip(self.classes, self.counts.tolist(), strict=True)
            },
        }


def count_confusion(truth: AnyArray, predicted: AnyArray, n_classes: int) -> AnyArray:
    """(K, K) numbers of rows by codes of the class that they have and the class they got."""
    flat = np.bincount(truth * n_classes + predicted, minlength=n_classes**2)
    return np.asarray(flat.reshape(n_classes, n_classes))


def write_confusion(counts: AnyArray) -> str:
    """Counts above zero as JSON: code of the class, code of the class given, number of rows."""
    places = np.argwhere(counts)
    return json.dumps([[int(i), int(j), int(counts[i, j])] for i, j in places])


def mean_confusion(
    texts: Iterable[str], classes: Sequence[str], n_repeats: int
) -> Confusion | None:
    """Of the cells of some repeats on the same rows; None if no cell has counts."""
    counts = np.zeros((len(classes), len(classes)))
    for text in texts:
        for true, given, n_rows in json.loads(text):
            counts[true, given] += n_rows
    return Confusion(tuple(classes), counts / max(n_repeats, 1)) if counts.any() else None


def class_error_lines(confusion: Confusion) -> list[str]:
    """Errors by class as a table of text."""
    rows = [["class", "rows", "wrong", "error", "90 % interval"]]
    for each in confusion.by_class:
        ends = f"{each.low:.1%} to {each.high:.1%}"
        rows.append(
            [each.name, f"{each.n_rows:,}", rows_text(each.n_wrong), f"{each.error:.1%}", ends]
        )
    return align(rows, "lrrrr")


def confusion_lines(confusion: Confusion) -> list[str]:
    """The matrix as text, true classes down; nothing if it would be too wide."""
    classes = confusion.classes
    if len(classes) > _MOST_CLASSES:
        return []
    rows = [["true \\ predicted", *classes]]
    for name, row in zip(classes, confusion.counts, strict=True):
        rows.append([name, *map(rows_text, row.tolist())])
    return align(rows, "l" + "r" * len(classes))
