"""From what the user passes to ``fit`` to a problem of the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from .._core.frame import LARGEST_SPREAD, SMALLEST_SPREAD, Frame, frame_of
from .._core.labelsums import GivenLabels
from .._core.problem import LabeledSummary, Problem, Rows, summarize_labeled
from .._core.solvers.supervised import ledoit_wolf
from .._core.types import AnyArray, Array
from .._messages import ColumnError, Hint, ParameterError, Text
from .._rows.backends import in_memory, is_device_array
from .._rows.base import column_of
from .._rows.memory import ChainedRows, MemoryRows
from .inputs import RowSource, check_is_read, check_weights
from .labels import Labels, encode_labels, resolve_priors

_PILOT_ROWS = 4096
_LARGEST_AUTO = 0.99  # a shrinkage of 1 would leave nothing to learn


@dataclass(frozen=True)
class LabeledRows:
    """The labeled rows of X: in memory, or on their device if they are many."""

    source: RowSource
    X: AnyArray | None  # None: on the device
    codes: AnyArray
    weights: Array | None
    is_member: AnyArray | None  # None: all rows of X

    @property
    def rows(self) -> Rows:
        if self.X is None:
            return self.source.rows(self.weights, self.is_member)
        return MemoryRows(self.X, self.weights, self.is_member)

    def members(self) -> tuple[AnyArray, AnyArray, Array]:
        """Rows, codes and weights of the members alone, in memory."""
        index = slice(None) if self.is_member is None else self.is_member
        codes = self.codes[index]
        weights = np.ones(len(codes)) if self.weights is None else self.weights[index]
        if self.X is None:
            assert self.is_member is not None
            return self.source.in_memory(self.is_member)[0], codes, weights
        return self.X[index], codes, weights


def _labeled_rows(source: RowSource, labels: Labels, weights: Array | None) -> LabeledRows:
    kept, codes = labels.is_labeled, labels.codes
    if is_device_array(source.X) and kept.sum() > _PILOT_ROWS:
        return LabeledRows(source, None, codes, weights, kept)
    X, is_member = source.in_memory(kept)
    if is_member is None:
        codes, weights = codes[kept], None if weights is None else weights[kept]
    return LabeledRows(source, X, codes, weights, is_member)


@dataclass(frozen=True)
class FitInputs:
    """Checked rows, labels and weights of one call of ``fit``."""

    labels: Labels
    labeled_part: LabeledRows
    unlabeled: Rows
    every_unlabeled: Rows | None  # those of weight 0 too; None unless all rows are in memory
    log_priors: Array | None
    frame: Frame
    feature_names: AnyArray | None
    find_non_finite: Callable[[], None]  # ValueError that names row and column, if there is one

    @cached_property
    def labeled(self) -> LabeledSummary:
        labels = GivenLabels(self.labeled_part.codes, len(self.labels.classes))
        with _overflow_is_checked_later():
            return summarize_labeled(self.labeled_part.rows, labels, self.frame)

    def labeled_rows(self) -> tuple[Array, AnyArray, Array]:
        """Labeled rows in frame coordinates, their codes and weights."""
        rows, codes, weights = self.labeled_part.members()
        return self.frame.apply(rows), codes, weights

    def problem(self, shrinkage: float | str | None) -> Problem:
        """The semi-supervised problem; ``"auto"`` is Ledoit and Wolf's on the labeled rows."""
        if shrinkage == "auto":
            rows, _, weights = self.labeled_rows()
            units = self.frame.scale / self.frame.scale.max()
            shrinkage = min(ledoit_wolf(rows * units, weights), _LARGEST_AUTO)
        problem = Problem(
            frame=self.frame,
            labeled=self.labeled,
            unlabeled=self.unlabeled,
            log_priors=self.log_priors,
            shrinkage=float(shrinkage or 0.0),
        )
        with _overflow_is_checked_later():
            moments = problem.moments
        if not np.isfinite(moments.scatter).all():
            self.find_non_finite()
        return problem


@dataclass(frozen=True)
class FitSettings:
    """What ``prepare`` needs to know of a classifier."""

    name: str  # of its class, for messages
    priors: Any
    unlabeled: Any
    unlabeled_weight: float
    uses_unlabeled: bool
    needs_positive_priors: bool


def prepare(
    source: RowSource,
    y: Any,
    sample_weight: Any,
    further: RowSource | None,
    sample_weight_unlabeled: Any,
    settings: FitSettings,
) -> FitInputs:
    """Check labels, weights and priors that were passed to ``fit`` with the opened rows."""
    y, sample_weight = check_is_read(in_memory(y), "y"), in_memory(sample_weight)
    _check_length(source.n_rows, y)
    weights = check_weights(sample_weight, source.n_rows, "sample_weight")
    is_counted = None if weights is None else weights > 0
    labels = encode_labels(y, settings.unlabeled, is_counted)
    priors = resolve_priors(settings.priors, labels.classes, settings.unlabeled)
    if settings.needs_positive_priors:
        _check_positive(priors, labels, settings.name)
    parts = [_UnlabeledPart(source, weights, labels.is_marker)]
    if further is not None:
        # Without weights rows need not be counted, which may take a pass.
        given = in_memory(sample_weight_unlabeled)
        n_further = 0 if given is None else further.n_rows
        weights_unlabeled = check_weights(given, n_further, "sample_weight_unlabeled")
        parts.append(_UnlabeledPart(further, weights_unlabeled))
    if not settings.uses_unlabeled:  # NaN and infinity are errors, as in scikit-learn
        for part in parts:
            is_there = part.is_marked is None or part.is_marked.any()
            if is_there and part.source.backend is not None:  # in memory they were looked at
                part.source.check_finite()
    unlabeled = ChainedRows(
        [part.rows for part in parts], source.n_features, settings.unlabeled_weight
    )
    labeled = _labeled_rows(source, labels, weights)
    pilot = [replace(labeled, weights=None).rows.sample(_PILOT_ROWS, 0)[0]]
    if settings.uses_unlabeled:
        pilot.append(unlabeled.sample(_PILOT_ROWS, 0)[0])

    def find_non_finite() -> None:
        for part in parts:
            part.source.check_finite()

    if not all(np.isfinite(rows).all() for rows in pilot):
        find_non_finite()
    # Rows of weight 0 too, unless it takes more than a look into memory to list them.
    every = [part.source.rows(None, part.is_marked) for part in parts if part.source.is_at_hand]
    with np.errstate(divide="ignore"):
        log_priors = None if priors is None else np.log(priors)
    return FitInputs(
        labels=labels,
        labeled_part=labeled,
        unlabeled=unlabeled,
        every_unlabeled=(
            ChainedRows(every, source.n_features) if len(every) == len(parts) else None
        ),
        log_priors=log_priors,
        frame=frame_of(np.concatenate(pilot)),
        feature_names=source.feature_names,
        find_non_finite=find_non_finite,
    )


@dataclass(frozen=True)
class _UnlabeledPart:
    """Unlabeled rows of one argument of ``fit``: all, or those that are marked."""

    source: RowSource
    weights: Array | None
    is_marked: AnyArray | None = None

    @property
    def rows(self) -> Rows:
        """Rows of positive weight."""
        is_member = self.is_marked
        if self.weights is not None:
            is_counted = self.weights > 0
            is_member = is_counted if is_member is None else is_member & is_counted
        return self.source.rows(self.weights, is_member)


def check_spread(inputs: FitInputs, variances: Array) -> None:
    """ValueError for a column whose variance no float64 can hold."""
    spread = np.sqrt(variances) * inputs.frame.scale
    is_fine = (spread == 0) | ((spread >= SMALLEST_SPREAD) & (spread <= LARGEST_SPREAD))
    if not is_fine.all():
        column = int(np.argmin(is_fine))
        where = column_of(column, inputs.feature_names)
        found = f"{spread[column]:.3g}" if np.isfinite(spread[column]) else "too large to square"
        raise ColumnError(
            Text(
                "The standard deviation of ",
                where,
                f" is {found}, and must lie between {SMALLEST_SPREAD:g} and {LARGEST_SPREAD:g} for "
                "its variance to be a number: rescale the column",
                Hint("drop", text=" (sklearn.preprocessing.StandardScaler)", kind="or column"),
                ".",
            ),
            column=where.label,
        )


def _overflow_is_checked_later() -> np.errstate:
    # The frame is chosen from a sample: an entry far beyond it overflows, and check_spread says so.
    return np.errstate(over="ignore", invalid="ignore")


def _check_positive(priors: Array | None, labels: Labels, name: str) -> None:
    if priors is not None and not np.all(priors > 0):
        never = labels.classes[priors == 0].tolist()
        raise ParameterError(
            Text(
                Hint("priors"),
                f" gives 0 to {never}, which has labeled rows: {name} maximizes "
                "their likelihood, which would be 0. Give it a small positive prior.",
            ),
            parameter="priors",
            value=priors.tolist(),
        )


def _check_length(n_rows: int, y: Any) -> None:
    n_labels = _num_samples(y)
    if n_labels != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"y has {n_labels} labels."
        )
