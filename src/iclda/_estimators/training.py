"""From what the user passes to ``fit`` to a problem of the core."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._core.frame import LARGEST_SPREAD, SMALLEST_SPREAD, Frame, frame_of
from .._core.labelsums import GivenLabels
from .._core.moments import Moments
from .._core.problem import LabeledSummary, Problem, Rows, summarize_labeled
from .._core.rowspace import RowSpace, class_row_space, row_space
from .._core.solvers.supervised import diagonal_targets, ledoit_wolf, oracle_approximating
from .._core.types import AnyArray, Array
from .._messages import ColumnError, Hint, ParameterError, Text
from .._rows.backends import in_memory, is_device_array
from .._rows.base import column_of
from .._rows.memory import ChainedRows
from .inputs import RowSource, check_is_read, check_weights
from .labels import Labels, check_lengths, encode_labels, resolve_priors
from .proportions import labeled_proportions, resolve_proportions

_PILOT_ROWS = 4096
WIDE = 256  # features, from which fewer rows than features are fitted in their own space
_MATRICES = 8  # of features x features and of classes x features that a fit holds at least
_LARGEST_RATIO = 1e100  # of standard deviations that shrinkage brings together
_SMALLEST_SHARE = 1e-12  # of a class; one row among as many is no row
_SHRINKAGE_ADDS = Text(Hint("shrinkage"), " adds the same variance to both")
_LARGEST_AUTO = 0.99  # a shrinkage of 1 would leave nothing to learn


@dataclass(frozen=True)
class Part:
    """Rows of one argument of ``fit``: all, or members."""

    source: RowSource
    weights: Array | None = None
    is_member: AnyArray | None = None

    @property
    def rows(self) -> Rows:
        """Members of positive weight."""
        is_member = self.is_member
        if self.weights is not None:
            is_counted = self.weights > 0
            is_member = is_counted if is_member is None else is_member & is_counted
        return self.source.rows(self.weights, is_member)

    @property
    def every_row(self) -> Rows:
        """All members, without their weights."""
        return self.source.rows(None, self.is_member)


@dataclass(frozen=True)
class FitInputs:
    """Checked rows, labels and weights of one call of ``fit``."""

    labels: Labels
    labeled_part: Part  # in memory, or on its device if there are many rows
    codes: AnyArray  # of all rows of its source
    unlabeled: Rows
    every_unlabeled: Rows | None  # those of weight 0 too; None unless all rows are in memory
    log_priors: Array | None
    frame: Frame
    feature_names: AnyArray | None
    find_non_finite: Callable[[], None]  # ValueError that names row and column, if there is one
    space: RowSpace | None = None  # that rows are coordinates in, of few rows of many features
    proportions: Array | str | None = None  # of the classes among the unlabeled rows

    @property
    def n_left_out(self) -> int:
        """Directions of the features in which no row varies, and that rows have no place for."""
        return 0 if self.space is None else self.space.n_left_out

    @property
    def feature_frame(self) -> Frame:
        return self.frame if self.space is None else self.space.frame

    @cached_property
    def labeled(self) -> LabeledSummary:
        labels = GivenLabels(self.codes, len(self.labels.classes))
        with overflow_is_checked_later():
            return summarize_labeled(self.labeled_part.rows, labels, self.frame)

    def labeled_rows(self) -> tuple[Array, AnyArray, Array]:
        """Labeled rows in frame coordinates, their codes and weights."""
        source, weights = self.labeled_part.source, self.labeled_part.weights
        index = self.codes >= 0
        rows = source.X[index] if source.backend is None else source.in_memory(index).X
        weights = np.ones(len(rows)) if weights is None else weights[index]
        return self.frame.apply(rows), self.codes[index], weights

    def problem(self, shrinkage: float | str | None, *, rests_on_labels: bool = False) -> Problem:
        """The semi-supervised problem; ``rests_on_labels``: of a fit made of labeled rows alone."""
        proportions = self.proportions
        if isinstance(proportions, str):
            proportions = labeled_proportions(self.labeled.counts)
        problem = Problem(
            frame=self.frame,
            labeled=self.labeled,
            unlabeled=self.unlabeled,
            log_priors=self.log_priors,
            shrinkage=0.0 if shrinkage == "auto" else float(shrinkage or 0.0),
            space=self.space,
            proportions=proportions,
        )
        with overflow_is_checked_later():
            moments = problem.moments
        if not np.isfinite(moments.scatter).all():
            self.find_non_finite()
        if shrinkage != "auto":
            return problem
        found = replace(problem, shrinkage=self._automatic(moments, rests_on_labels))
        vars(found)["moments"] = moments  # which took a pass
        return found

    def _automatic(self, moments: Moments, rests_on_labels: bool) -> float:
        """Between the shrinkage of a covariance of the labeled rows and of one of all rows.

        A covariance within classes is known better than from the labeled rows, and not as well as
        if all rows were labeled. Shrinkage falls with the number of rows: the geometric mean is
        that of the geometric mean of both numbers.
        """
        rows, _, weights = self.labeled_rows()
        units = self.frame.scale / self.frame.scale.max()
        found = ledoit_wolf(rows * units, weights, self.n_left_out)
        if not rests_on_labels:
            covariance = moments.covariance * units[:, None] * units
            found = math.sqrt(
                found * oracle_approximating(covariance, moments.weight, self.n_left_out)
            )
        return min(found, _LARGEST_AUTO)


@dataclass(frozen=True)
class FitSettings:
    """What ``prepare`` needs to know of a classifier."""

    name: str  # of its class, for messages
    priors: Any
    unlabeled: Any
    unlabeled_weight: float
    uses_unlabeled: bool
    needs_positive_priors: bool
    shrinkage: Any = None
    proportions: Any = None
    may_narrow: bool = False  # whether few rows of many features may be fitted in their own space


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
    names = source.request.feature_names
    check_lengths(X=range(source.n_rows), y=y)
    weights = check_weights(sample_weight, source.n_rows, "sample_weight")
    is_counted = None if weights is None else weights > 0
    labels = encode_labels(y, settings.unlabeled, is_counted)
    priors = resolve_priors(settings.priors, labels.classes, settings.unlabeled)
    if settings.needs_positive_priors:
        _check_positive(priors, labels)
    proportions = resolve_proportions(settings.proportions, labels.classes)
    is_plain = sample_weight_unlabeled is None and _are_plain(weights, labels)
    source, further, space = _narrowed(source, further, labels, settings, is_plain=is_plain)
    parts = [Part(source, weights, labels.is_marker)]
    if further is not None:
        # Without weights rows need not be counted, which may take a pass.
        given = in_memory(sample_weight_unlabeled)
        n_further = 0 if given is None else further.n_rows
        weights_unlabeled = check_weights(given, n_further, "sample_weight_unlabeled")
        parts.append(Part(further, weights_unlabeled))
    if not settings.uses_unlabeled:  # NaN and infinity are errors, as in scikit-learn
        for part in parts:
            is_there = part.is_member is None or part.is_member.any()
            if is_there and part.source.backend is not None:  # in memory they were looked at
                part.source.check_finite()
    n_features = source.request.n_features or 0
    _check_memory(n_features, len(labels.classes), settings.name)
    unlabeled = ChainedRows([part.rows for part in parts], n_features, settings.unlabeled_weight)
    labeled, codes = _labeled_part(source, labels, weights)
    pilot = [labeled.every_row.sample(_PILOT_ROWS, 0)[0]]
    if settings.uses_unlabeled:
        pilot.append(unlabeled.sample(_PILOT_ROWS, 0)[0])

    def find_non_finite() -> None:
        for part in parts:
            part.source.check_finite()

    if not all(np.isfinite(rows).all() for rows in pilot):
        find_non_finite()
    # Rows of weight 0 too, unless it takes more than a look into memory to list them.
    is_at_hand = all(part.source.is_at_hand for part in parts)
    every = ChainedRows([part.every_row for part in parts], n_features) if is_at_hand else None
    with np.errstate(divide="ignore"):
        log_priors = None if priors is None else np.log(priors)
    return FitInputs(
        labels=labels,
        labeled_part=labeled,
        codes=codes,
        unlabeled=unlabeled,
        every_unlabeled=every,
        log_priors=log_priors,
        frame=frame_of(np.concatenate(pilot)),
        feature_names=names,
        find_non_finite=find_non_finite,
        space=space,
        proportions=proportions,
    )


def _are_plain(weights: Array | None, labels: Labels) -> bool:
    """Whether all labeled rows weigh 1 and no row weighs nothing."""
    return weights is None or bool((weights[labels.is_labeled] == 1).all() and (weights > 0).all())


def _check_memory(n_features: int, n_classes: int, name: str) -> None:
    """ValueError for a problem whose matrices the memory of this machine cannot hold."""
    needed = _MATRICES * 8.0 * (n_features**2 + n_features * n_classes)
    if needed > 2**30 and needed > (there_is := _most_memory()):
        raise ValueError(
            f"{name} needs about {needed / 2**30:.3g} GiB for {n_features:,} features and "
            f"{n_classes:,} classes, and there are {there_is / 2**30:.3g} GiB: leave features out, "
            "or project the rows first (sklearn.decomposition.PCA)."
        )


def _most_memory() -> float:
    """Bytes that this process can have at most, as far as the system says."""
    limits = [np.inf]
    if hasattr(os, "sysconf"):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        import resource  # where there is sysconf

        limits += [limit for limit in resource.getrlimit(resource.RLIMIT_AS)[:1] if limit > 0]
    group = Path("/sys/fs/cgroup/memory.max")  # of a container
    if group.exists() and (text := group.read_text().strip()).isdigit():
        limits.append(int(text))
    return min(limits)


def _narrowed(
    source: RowSource,
    further: RowSource | None,
    labels: Labels,
    settings: FitSettings,
    *,
    is_plain: bool,
) -> tuple[RowSource, RowSource | None, RowSpace | None]:
    """Few rows of many features as coordinates in the space they span; all others as they are."""
    space = None
    if settings.may_narrow and is_plain:
        space = _find_space(source, further, labels, settings)
    if space is None:
        return source, further, None
    return _along(space, source), None if further is None else _along(space, further), space


def _find_space(
    source: RowSource, further: RowSource | None, labels: Labels, settings: FitSettings
) -> RowSpace | None:
    """The space of few rows of many features, in memory; None for all others."""
    sources = [source] if further is None else [source, further]
    if any(each.backend is not None or each.X.dtype.kind not in "biuf" for each in sources):
        return None
    n_features = source.X.shape[1]
    if n_features < WIDE or sum(len(each.X) for each in sources) >= n_features:
        return None
    rows = np.concatenate([each.X for each in sources], dtype=np.float64)
    if not np.isfinite(rows).all():
        return None  # to be named where rows are summed
    is_labeled = np.flatnonzero(labels.is_labeled)
    # The supervised fit, and any fit without unlabeled rows.
    if not settings.uses_unlabeled or len(is_labeled) == len(rows):
        rows, codes = rows[is_labeled], labels.codes[is_labeled]
        # Classes of one row each have no spread: all labeled rows set the scale then.
        if settings.shrinkage == "auto" and len(rows) > len(labels.classes):
            frame, weights = frame_of(rows), np.ones(len(rows))
            shrinkages, targets = diagonal_targets(frame.apply(rows), codes, weights)
            targets *= frame.scale**2 / len(rows)
            return class_row_space(rows, frame, shrinkages, targets)
    is_shrunk = settings.shrinkage == "auto" or bool(settings.shrinkage)
    return row_space(rows, frame_of(rows), is_shrunk=is_shrunk)


def _along(space: RowSpace, source: RowSource) -> RowSource:
    """Rows as coordinates in a space."""
    request = replace(source.request, n_features=space.basis.shape[1], feature_names=None)
    return replace(source, X=space.coordinates(source.X), request=request)


def _labeled_part(
    source: RowSource, labels: Labels, weights: Array | None
) -> tuple[Part, AnyArray]:
    """The labeled rows, and the codes of all rows of their source."""
    kept, codes = labels.is_labeled, labels.codes
    is_large = is_device_array(source.X) and kept.sum() > _PILOT_ROWS
    if source.backend is None or is_large:
        return Part(source, weights, kept), codes
    return Part(source.in_memory(kept), None if weights is None else weights[kept]), codes[kept]


def check_spread(inputs: FitInputs, variances: Array, terms: str = "") -> None:
    """ValueError for a column whose variance, with further terms, no float64 can hold."""
    with overflow_is_checked_later():  # an overflow may have left NaN, or a negative variance
        spread = np.sqrt(variances) * inputs.feature_frame.scale
    is_fine = (spread == 0) | ((spread >= SMALLEST_SPREAD) & (spread <= LARGEST_SPREAD))
    if not is_fine.all():
        column = int(np.argmin(is_fine))
        where = column_of(column, inputs.feature_names)
        found = f"{spread[column]:.3g}" if np.isfinite(spread[column]) else "too large to square"
        raise ColumnError(
            Text(
                "The standard deviation of ",
                where,
                terms,
                f" is {found}, and must lie between {SMALLEST_SPREAD:g} and {LARGEST_SPREAD:g} for "
                "its variance to be a number: rescale the column",
                Hint("drop", text=" (sklearn.preprocessing.StandardScaler)", kind="or column"),
                ".",
            ),
            column=where.label,
        )


def check_units(
    inputs: FitInputs, variances: Array, weight: float, reason: str | Text = _SHRINKAGE_ADDS
) -> None:
    """ValueError for a column next to nothing beside another, where one variance is in all.

    The mean variance in units of the smaller column would overflow.
    """
    scale = inputs.feature_frame.scale
    spread = np.sqrt(variances) * scale
    # A constant has no unit of its own: what is added, times the weight, must be a number in that
    # of its frame.
    units = np.where(spread > 0, spread, scale * np.sqrt(_LARGEST_RATIO / max(weight, 1)) / 100)
    small, large = int(units.argmin()), int(spread.argmax())
    if spread[large] / units[small] > _LARGEST_RATIO:
        where, beside = (column_of(j, inputs.feature_names) for j in (small, large))
        raise ColumnError(
            Text(
                "The standard deviation of ",
                where,
                f" is {spread[small]:.3g}, that of ",
                beside,
                f" {spread[large]:.3g}, and ",
                reason,
                ", so they must not differ by a factor of more than "
                f"{_LARGEST_RATIO:g}: rescale the columns",
                Hint("drop", text=" (sklearn.preprocessing.StandardScaler)", kind="or column"),
                ".",
            ),
            column=where.label,
        )


def check_shares(inputs: FitInputs, shares: Array) -> None:
    """ValueError for a class whose labeled rows weigh next to nothing beside all rows."""
    if shares.min() < _SMALLEST_SHARE:
        name = inputs.labels.classes[[int(shares.argmin())]].tolist()[0]
        raise ValueError(
            f"The labeled rows of class {name!r} hold {shares.min():.3g} of the weight of all "
            f"rows, and must hold at least {_SMALLEST_SHARE:g}: give rows weights of similar size, "
            "or leave those of the class out by weight 0."
        )


def overflow_is_checked_later() -> np.errstate:
    # The frame is chosen from a sample: an entry far beyond it overflows, and check_spread says so.
    return np.errstate(over="ignore", invalid="ignore")


def _check_positive(priors: Array | None, labels: Labels) -> None:
    if priors is not None and not np.all(priors > 0):
        never = labels.classes[priors == 0].tolist()
        raise ParameterError(
            Text(
                Hint("priors"),
                f" gives 0 to {never}, which has labeled rows: the fit maximizes "
                "their likelihood, which would be 0. Give it a small positive prior.",
            ),
            parameter="priors",
            value=priors.tolist(),
        )
