"""Confusion matrices, and the errors, intervals and base rate that follow from them."""

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
_UNEVEN = 2  # ratio of class sizes from which the balanced error is shown
_MOST_CLASSES = 12  # of a matrix on a terminal


@dataclass(frozen=True)
class ClassError:
    """Error of the rows of one class, with its interval."""

    name: str
    n_rows: int
    n_wrong: float  # a mean over repeats may have a fraction
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Confusion:
    """Numbers of rows by true class (down) and predicted class, shape (K, K).

    For several repeats on the same rows they are means over the repeats.
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
        """Errors of the classes that have rows."""
        errors = []
        for name, row, n_right in zip(self.classes, self.counts, np.diag(self.counts), strict=True):
            n_rows, n_wrong = round(float(row.sum())), float(row.sum() - n_right)
            if n_rows:
                ends = error_interval(round(n_wrong), n_rows, LEVEL_OF_INTERVALS)
                errors.append(ClassError(name, n_rows, n_wrong, n_wrong / n_rows, *ends))
        return errors

    @property
    def balanced_error(self) -> float:
        """Mean of the errors of the classes."""
        return float(np.mean([each.error for each in self.by_class]))

    @property
    def is_uneven(self) -> bool:
        """Whether classes differ so much in size that the balanced error says more."""
        sizes = [each.n_rows for each in self.by_class]
        return len(sizes) > 1 and max(sizes) >= _UNEVEN * min(sizes)

    @property
    def base(self) -> BaseRate:
        """Error of the most frequent class for all rows."""
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
    """Count rows by codes of their true and predicted class, shape (K, K)."""
    flat = np.bincount(truth * n_classes + predicted, minlength=n_classes**2)
    return np.asarray(flat.reshape(n_classes, n_classes))


def write_confusion(counts: AnyArray) -> str:
    """Write counts above zero as JSON: codes of true and predicted class, number of rows."""
    return json.dumps([[i, j, int(counts[i, j])] for i, j in np.argwhere(counts).tolist()])


def mean_confusion(
    texts: Iterable[str], classes: Sequence[str], n_repeats: int
) -> Confusion | None:
    """Mean over repeats on the same rows; ``texts`` are by ``write_confusion``. None if empty."""
    counts = np.zeros((len(classes), len(classes)))
    for text in texts:
        for true, predicted, n_rows in json.loads(text):
            counts[true, predicted] += n_rows
    return Confusion(tuple(classes), counts / max(n_repeats, 1)) if counts.any() else None


def class_error_lines(confusion: Confusion) -> list[str]:
    """Format the errors by class as a table."""
    rows = [["class", "rows", "wrong", "error", "90 % interval"]]
    for each in confusion.by_class:
        counts = rows_text(each.n_rows), rows_text(each.n_wrong)
        rows.append([each.name, *counts, f"{each.error:.1%}", f"{each.low:.1%} to {each.high:.1%}"])
    return align(rows, "lrrrr")


def confusion_lines(confusion: Confusion) -> list[str]:
    """Format the matrix as a table, true classes down; empty if it would be too wide."""
    classes = confusion.classes
    if len(classes) > _MOST_CLASSES:
        return []
    counts = zip(classes, confusion.counts.tolist(), strict=True)
    rows = [[name, *map(rows_text, row)] for name, row in counts]
    return align([["true \\ predicted", *classes], *rows], "l" + "r" * len(classes))
