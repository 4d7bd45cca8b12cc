"""Plan of a comparison: a table, what was asked for, and the folds that follow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, inf
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import AnyArray
from ..._messages import Hint, Text, say
from ...methods import Method, Shrinkage
from ...tabular.checks import first_copies
from ...tabular.column_types import kinds_of
from ...tabular.label_error import why_withheld
from ...tabular.table import Table
from ..measures import BRIER, DECIDING
from .contestants import bad_parameter
from .splits import Splits

# Random divisions into folds, unless fits take long.
DEFAULT_REPEATS = 10
# Folds of a division, unless a class has fewer labels.
_DEFAULT_FOLDS = 10

_ONE_LABEL = (
    "Class {name!r} has 1 labeled row. A comparison needs 2 of every class, one to "
    "train on and one to test: label more rows. `iclda fit` needs only one."
)
_BAD_FOLDS = (
    "{given} must lie between 2 and {most}, the number of labeled rows of class "
    "{name!r}: every fold tests a row of every class."
)
_ALL_LABELED = (
    "All {n_labels:,} rows are labeled, so there are no unlabeled rows to learn from. "
    "Pass {few}, for example, to hide the other labels, {@unlabeled} if a value of the "
    "target marks unlabeled rows, or {@unlabeled_file}."
)
_BAD_N_LABELED = (
    "{given} must lie between {least}, one label of each class, and {most:,}, so that "
    "some training rows have labels to hide ({n_labels:,} labels in {n_folds} folds)."
)


_BAD_MEASURE = "{given} is not a measure that can decide: choose one of {names}."
_BAD_TIME = (
    "{given} is not a time: pass seconds, or a number with a unit, such as 60s or 5m."
)
# A time limit: digits and a unit, seconds without one.
_TIME = re.compile(r"(\d+(?:\.\d+)?) ?([smh]?)")
_SECONDS_OF_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class ComparisonPlan:
    """What to compare, on which table, into which folder.

    Attributes
    ----------
    table : Table
        The rows and their labels.
    out : Path
        Folder that keeps every fit.
    methods, shrinkages, repeats, folds : optional
        As the user passed them. Those that are None are chosen by the size of the
        table.
    n_labeled : int or None
        Labels to keep in every split; the others are hidden. None keeps all.
    seed : int
        All splits and random starts follow from it.
    jobs : int
        Number of processes.
    command : str
        The command as it was typed, for the report.
    reading : mapping
        Parameters that the table was read with.
    is_fast : bool
        Whether to make few repeats, and to leave out the slowest method.
    time : float or None
        Seconds after which no further repeat begins; None is no limit.
    measure : str
        The measure that decides what is recommended.
    """

    table: Table
    out: Path
    methods: tuple[Method, ...] | None = None
    shrinkages: tuple[Shrinkage, ...] | None = None
    repeats: int | None = None
    folds: int | None = None
    n_labeled: int | None = None
    seed: int = 0
    jobs: int = 1
    command: str = ""
    reading: Mapping[str, Any] = field(default_factory=dict)
    is_fast: bool = False
    time: float | None = None
    measure: str = BRIER

    @cached_property
    def splits(self) -> Splits:
        """The folds; ValueError where the labels do not allow them."""
        return Splits(
            y=self.table.labels,
            n_folds=choose_n_folds(self),
            n_repeats=self.repeats or DEFAULT_REPEATS,
            n_labeled=self.n_labeled,
            seed=self.seed,
            always_train=self.table.is_chosen if self.table.n_chosen else None,
            first_copies=self.copies,
        )

    @cached_property
    def copies(self) -> AnyArray:
        """Index of the first copy of every row of the table."""
        # Cells that hold lists or records cannot be compared. This call refuses them.
        kinds_of(self.table.features)
        return first_copies(self.table.features, self.table.labels)


def check_measure(name: str | None) -> str:
    """Return the measure that decides, by default the first one."""
    if name is None:
        return DECIDING[0]
    if name not in DECIDING:
        names = ", ".join(DECIDING)
        raise bad_parameter(_BAD_MEASURE, "measure", name, names=names)
    return name


def parse_time(given: str | float | None) -> float | None:
    """Return a time limit in seconds: a number, or a text such as "60s" or "5m"."""
    if given is None:
        return None
    seconds = 0.0
    if not isinstance(given, str):
        seconds = float(given)
    elif found := _TIME.fullmatch(given.strip()):
        seconds = float(found[1]) * _SECONDS_OF_UNITS[found[2]]
    if not 0 < seconds < inf:
        raise bad_parameter(_BAD_TIME, "time", given)
    return seconds


def choose_n_folds(plan: ComparisonPlan) -> int:
    """Return the number of folds.

    ValueError unless every class can be trained on and tested, and some rows are
    unlabeled.
    """
    table = plan.table
    # Copies of a row are one row: they cannot be in training and in test rows at once.
    is_distinct = table.is_labeled & (plan.copies == np.arange(len(plan.copies)))
    counts = Counter(table.labels[is_distinct].tolist())
    rarest = min(table.classes, key=counts.__getitem__)
    n_rarest = counts[rarest]
    n_labels = counts.total()

    # A fold tests a row of every class, and another one has to be left for training.
    if n_rarest < 2:
        raise ValueError(say(_ONE_LABEL, name=rarest))
    if plan.folds is not None and not 2 <= plan.folds <= n_rarest:
        raise bad_parameter(_BAD_FOLDS, "folds", plan.folds, most=n_rarest, name=rarest)
    # Only rows that were labeled at random can be tested: enough of them are needed.
    reason = why_withheld(table) if table.n_chosen else ""
    if reason:
        raise ValueError(Text("The error of methods cannot be compared: ", reason, "."))
    n_random = int(table.is_random.sum())
    n_folds = plan.folds or min(_DEFAULT_FOLDS, n_rarest, n_random)

    _check_some_unlabeled(plan, n_labels, n_folds)
    return n_folds


def _check_some_unlabeled(plan: ComparisonPlan, n_labels: int, n_folds: int) -> None:
    """Raise ValueError unless some rows of every split train without a label.

    ``n_labels`` is the number of distinct labeled rows.
    """
    table = plan.table
    if plan.n_labeled is None:
        if table.is_labeled.all():
            few = Hint("n_labeled", 30)
            raise ValueError(say(_ALL_LABELED, n_labels=n_labels, few=few))
        return
    # The largest fold leaves the fewest labels for training.
    n_training = n_labels - ceil(n_labels / n_folds)
    if not len(table.classes) <= plan.n_labeled < n_training:
        raise bad_parameter(
            _BAD_N_LABELED,
            "n_labeled",
            plan.n_labeled,
            least=len(table.classes),
            most=n_training - 1,
            n_labels=n_labels,
            n_folds=n_folds,
        )
