"""From what the user passes to ``fit`` to a problem of the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from ._core.frame import LARGEST_SPREAD, SMALLEST_SPREAD, Frame, frame_of
from ._core.labelsums import GivenLabels
from ._core.problem import LabeledSummary, Problem, summarize_labeled
from ._core.rows import Rows
from ._core.shrinkage import ledoit_wolf
from ._core.types import AnyArray, Array
from ._inputs import check_weights, column_name, read_table
from ._labels import Labels, encode_labels, plain, resolve_priors
from ._rows.chain import ChainedRows
from ._rows.memory import MemoryRows
from ._rows.open import in_memory
from ._sources import Source, open_source

_PILOT_ROWS = 4096
_LARGEST_AUTO = 0.99  # a shrinkage of 1 would leave nothing to learn


@dataclass(frozen=True)
class LabeledRows:
    """The labeled rows, which are few, in memory; not copied if they are there already."""

    X: AnyArray
    codes: AnyArray
    weights: Array | None
    is_member: AnyArray | None  # None: all rows of X

    @property
    def rows(self) -> MemoryRows:
        return MemoryRows(self.X, self.weights, self.is_member)

    def members(self) -> tuple[AnyArray, AnyArray, Array]:
        """Rows, codes and weights of the members alone."""
        index = slice(None) if self.is_member is None else self.is_member
        codes = self.codes[index]
        weights = np.ones(len(codes)) if self.weights is None else self.weights[index]
        return self.X[index], codes, weights


def _labeled_rows(source: Source, labels: Labels, weights: Array | None) -> LabeledRows:
    X, is_member = source.in_memory(labels.is_labeled)
    if is_member is None:
        kept = labels.is_labeled
        weights = None if weights is None else weights[kept]
        return LabeledRows(X, labels.codes[kept], weights, None)
    return LabeledRows(X, labels.codes, weights, is_member)


@dataclass(frozen=True)
class TrainingData:
    """Checked rows, labels and weights of one call of ``fit``."""

    labels: Labels
    labeled_part: LabeledRows
    unlabeled: Rows
    every_unlabeled: Rows | None  # those of weight 0 too; None unless all rows are in memory
    log_priors: Array | None
    frame: Frame
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


def prepare(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    X_unlabeled: Any,
    sample_weight_unlabeled: Any,
    *,
    unlabeled_weight: float = 1.0,
    needs_positive_priors: bool = False,
) -> TrainingData:
    """Check everything that was passed to ``fit``; sets n_features_in_ and feature_names_in_."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            f"Rows without a label carry y = {plain(estimator.unlabeled)!r}."
        )
    y, sample_weight = read_table(in_memory(y), "y"), in_memory(sample_weight)
    sample_weight_unlabeled = in_memory(sample_weight_unlabeled)
    # Unlabeled rows may be many: where all of them enter the moments, these show NaN and infinity.
    is_weighted = sample_weight is not None or sample_weight_unlabeled is not None
    is_summed = estimator._uses_unlabeled_rows and not is_weighted
    source = open_source(estimator, X, reset=True, is_summed_later=is_summed)
    sources = [source]
    _check_length(source.n_rows, y)
    weights = check_weights(sample_weight, source.n_rows, "sample_weight")
    is_counted = None if weights is None else weights > 0
    labels = encode_labels(y, estimator.unlabeled, is_counted)
    priors = resolve_priors(estimator.priors, labels.classes, estimator.unlabeled)
    if needs_positive_priors and priors is not None and not np.all(priors > 0):
        never = labels.classes[priors == 0].tolist()
        raise ValueError(
            f"priors gives 0 to {never}, which has labeled rows: {type(estimator).__name__} "
            "maximizes their likelihood, which would be 0. Give it a small positive prior."
        )
    is_unlabeled = labels.is_marker if is_counted is None else labels.is_marker & is_counted
    parts = [source.rows(weights, is_unlabeled)]
    every = [source.rows(None, labels.is_marker)]
    if X_unlabeled is not None:
        more = open_source(
            estimator, X_unlabeled, reset=False, name="X_unlabeled", is_summed_later=is_summed
        )
        sources.append(more)
        more_weights = None
        if sample_weight_unlabeled is not None:
            more_weights = check_weights(
                sample_weight_unlabeled, more.n_rows, "sample_weight_unlabeled"
            )
        parts.append(more.rows(more_weights, None if more_weights is None else more_weights > 0))
        every.append(more.rows())
    elif sample_weight_unlabeled is not None:
        raise ValueError(
            "sample_weight_unlabeled weighs the rows of X_unlabeled, which was not passed; "
            "sample_weight weighs all rows of X, labeled or not."
        )
    unlabeled = ChainedRows(parts, source.n_features, unlabeled_weight)
    labeled = _labeled_rows(source, labels, weights)
    pilot = [replace(labeled, weights=None).rows.sample(_PILOT_ROWS, 0)[0]]
    if estimator._uses_unlabeled_rows:
        pilot.append(unlabeled.sample(_PILOT_ROWS, 0)[0])

    def find_non_finite() -> None:
        for one in sources:
            one.check_finite()

    if not all(np.isfinite(rows).all() for rows in pilot):
        find_non_finite()
    is_in_memory = all(one.backend is None for one in sources)
    with np.errstate(divide="ignore"):
        log_priors = None if priors is None else np.log(priors)
    return TrainingData(
        labels=labels,
        labeled_part=labeled,
        unlabeled=unlabeled,
        every_unlabeled=ChainedRows(every, source.n_features) if is_in_memory else None,
        log_priors=log_priors,
        frame=frame_of(np.concatenate(pilot)),
        find_non_finite=find_non_finite,
    )


def check_spread(estimator: Any, frame: Frame, variances: Array) -> None:
    """ValueError for a column whose variance no float64 can hold."""
    spread = np.sqrt(variances) * frame.scale
    is_fine = (spread == 0) | ((spread >= SMALLEST_SPREAD) & (spread <= LARGEST_SPREAD))
    if not is_fine.all():
        column = int(np.argmin(is_fine))
        where = column_name(column, getattr(estimator, "feature_names_in_", None))
        found = f"{spread[column]:.3g}" if np.isfinite(spread[column]) else "too large to square"
        raise ValueError(
            f"The standard deviation of {where} is {found}, and must lie between "
            f"{SMALLEST_SPREAD:g} and {LARGEST_SPREAD:g} for its variance to be a number: "
            "rescale the column (sklearn.preprocessing.StandardScaler)."
        )


def _overflow_is_checked_later() -> np.errstate:
    # The frame is chosen from a sample: an entry far beyond it overflows, and check_spread says so.
    return np.errstate(over="ignore", invalid="ignore")


def _check_length(n_rows: int, y: Any) -> None:
    n_labels = _num_samples(y)
    if n_labels != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"y has {n_labels} labels."
        )
