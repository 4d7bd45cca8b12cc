"""From what the user passes to ``fit`` to a problem of the core.

``Passed`` is what was passed, ``FitInputs`` the rows with everything checked, and ``problem`` makes
the problem of them. Few rows of many features are reduced here to coordinates in the space that
they span; what is fitted in these is lifted by ``FitInputs.space``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._core import AnyArray, Array
from .._core.frame import LARGEST_SPREAD, SMALLEST_SPREAD, Frame, frame_of
from .._core.labelsums import GivenLabels
from .._core.moments import Moments
from .._core.problem import Kind, LabeledSummary, summarize_labeled
from .._core.rows import Rows
from .._core.rowspace import FeatureSpace, RowSpace, row_space
from .._core.solvers.supervised import (
    oracle_approximating,
    pooled_shrinkage,
    shrink_labeled,
    target_of_labeled,
)
from .._messages import ColumnError, FitError, ParameterError, say
from .._rows.chained import ChainedRows
from .._rows.checks import column_of
from .._rows.kinds import in_memory, is_device_array
from .._rows.unit_length import UnitLength
from .inputs import RowSource, check_is_read, check_weights
from .labels import (
    FREE,
    LEARNED,
    Labels,
    check_lengths,
    encode_labels,
    resolve_priors,
    resolve_proportions,
)

_PILOT_ROWS = 4096  # labeled rows, and unlabeled ones, that the frame is chosen from
WIDE = (
    256  # features, from which fewer rows than features are fitted in their own space
)
_MATRICES = (
    8  # of features x features and of classes x features that a fit holds at least
)
_FAR_FROM_ZERO = 0.25  # squared length of the mean of rows over their variance
_SMALLEST_SHARE = 1e-12  # of a class in the weight of all rows
_LARGEST_AUTO = 0.99  # a shrinkage of 1 would leave nothing to learn


@dataclass(frozen=True)
class Passed:
    """Arguments of ``fit``: opened rows, labels and weights as they were given."""

    source: RowSource
    y: Any
    sample_weight: Any = None
    further: RowSource | None = None
    sample_weight_unlabeled: Any = None


@dataclass(frozen=True)
class FitInputs:
    """Rows, labels and weights of one call of ``fit``, checked."""

    passed: Passed
    sources: tuple[RowSource, ...]  # of all rows; members are the unlabeled ones
    labels: Labels
    labeled_source: RowSource  # in memory, or on its device if there are many rows
    codes: AnyArray  # of all rows of ``labeled_source``
    unlabeled: Rows
    log_priors: Array | None
    frame: Frame
    space: FeatureSpace  # of all features; of few rows of many features the space they span
    proportions: Array | str | None = None  # of the classes among the unlabeled rows
    unit: UnitLength | None = None  # how rows are scaled

    @property
    def feature_names(self) -> AnyArray | None:
        return self.passed.source.request.feature_names

    @property
    def learns_proportions(self) -> bool:
        return isinstance(self.proportions, str) and self.proportions == LEARNED

    @property
    def ignores_labeled_shares(self) -> bool:
        """Whether the shares of the classes among the labels say nothing about other rows."""
        return isinstance(self.proportions, str) and self.proportions == FREE

    @property
    def n_labeled(self) -> int:
        return int(self.labels.is_labeled.sum())

    @property
    def every_unlabeled(self) -> Rows | None:
        """Unlabeled rows, those of weight 0 too; None unless all rows are in memory."""
        if not all(
            each.backend is None or is_device_array(each.X) for each in self.sources
        ):
            return None
        return ChainedRows(
            [each.every_row for each in self.sources], len(self.frame.scale)
        )

    @cached_property
    def labeled(self) -> LabeledSummary:
        labels = GivenLabels(self.codes, len(self.labels.classes))
        with overflow_is_checked_later():
            return summarize_labeled(self.labeled_source.rows, labels, self.frame)

    def labeled_rows(self) -> tuple[Array, AnyArray, Array]:
        """Labeled rows in frame coordinates, their codes and weights."""
        index = self.codes >= 0
        held = self.labeled_source.held(index)
        weights = np.ones(len(held.X)) if held.weights is None else held.weights
        return self.frame.apply(held.X), self.codes[index], weights

    def problem(
        self,
        kind: type[Kind],
        shrinkage: float | str | None,
        *,
        rests_on_labels: bool = False,
    ) -> Kind:
        """The semi-supervised problem; ``rests_on_labels``: of a fit made of labeled rows alone."""
        is_free = self.learns_proportions or self.ignores_labeled_shares
        proportions = None if is_free else self.proportions
        if isinstance(proportions, str):
            shares = self.labeled.counts / self.labeled.counts.sum()
            proportions = np.column_stack([shares, shares])
        with overflow_is_checked_later():
            problem = kind(
                frame=self.frame,
                labeled=self.labeled,
                unlabeled=self.unlabeled,
                log_priors=self.log_priors,
                shrinkage=0.0 if shrinkage == "auto" else float(shrinkage or 0.0),
                unlabeled_moments=self.unlabeled.moments(self.frame),
                n_left_out=self.space.n_left_out,
                proportions=proportions,
            )
            moments = problem.moments
        if not np.isfinite(moments.scatter).all():
            find_non_finite(self.sources)
        if shrinkage != "auto":
            return problem
        return replace(
            problem, shrinkage=self._automatic(None if rests_on_labels else moments)
        )

    def _automatic(self, moments: Moments | None = None) -> float:
        """Shrinkage for the labeled rows; its geometric mean with that for all rows, if given.

        A covariance within classes is known better than from the labeled rows, and not as well as
        if all rows were labeled. Shrinkage falls with the number of rows: the geometric mean is
        that of the geometric mean of both numbers.
        """
        n_left_out = self.space.n_left_out
        with overflow_is_checked_later():
            shrinkage = pooled_shrinkage(self.labeled, self.frame, n_left_out)
            if moments is not None:
                units = self.frame.scale / self.frame.scale.max()
                covariance = moments.covariance * units[:, None] * units
                of_all = oracle_approximating(covariance, moments.weight, n_left_out)
                shrinkage = math.sqrt(shrinkage * of_all)
        return min(shrinkage, _LARGEST_AUTO)

    def shrink_labeled(
        self, shrinkage: float | str | None
    ) -> tuple[float, Array | None]:
        """Shrinkage used, and the shrunk scatter within classes of the labeled rows."""
        used = self._automatic() if shrinkage == "auto" else float(shrinkage or 0.0)
        if used == 0:
            return used, None
        return used, shrink_labeled(
            self.labeled, used, self.frame, self.space.n_left_out
        )

    def variance_left_out(
        self, labeled: LabeledSummary, shrinkage: float
    ) -> float | None:
        """Variance of a supervised fit, with the shrinkage used, where no row varies."""
        if not self.space.n_left_out or shrinkage == 0:
            return None
        target = (
            target_of_labeled(labeled, self.frame, self.space.n_left_out)
            / labeled.weight
        )
        return float(shrinkage * (target * self.frame.scale**2)[0])


def find_non_finite(sources: Iterable[RowSource]) -> None:
    """Raise a ValueError that names row and column of NaN or infinity, if there is one."""
    for each in sources:
        each.check_finite()


def prepare(
    passed: Passed,
    classifier: Any,
    unit: UnitLength | None = None,
    *,
    is_fitted: bool = False,
) -> FitInputs:
    """Check labels, weights and priors that were passed to ``fit`` with the opened rows.

    The parameters are those of ``classifier``. ``unit`` is how rows are scaled; by default the
    classifier decides. ``is_fitted``: all rows are read, in the space of its features.
    """
    source, further = passed.source, passed.further
    uses_unlabeled = is_fitted or classifier._uses_unlabeled_rows
    y, n_rows = check_is_read(in_memory(passed.y), "y"), source.n_rows
    check_lengths(X=range(n_rows), y=y)
    weights = check_weights(in_memory(passed.sample_weight), n_rows, "sample_weight")
    labels = encode_labels(
        y, classifier.unlabeled, None if weights is None else weights > 0
    )
    log_priors = _log_priors(classifier, labels.classes)
    sources = [replace(source, weights=weights, is_member=labels.is_marker)]
    if further is not None:
        # Without weights rows need not be counted, which may take a pass.
        given = in_memory(passed.sample_weight_unlabeled)
        n_further = 0 if given is None else further.n_rows
        given = check_weights(given, n_further, "sample_weight_unlabeled")
        sources.append(replace(further, weights=given))
    if unit is None and classifier._is_normalized:
        unit = unit_length(sources)
    sources = [_scaled(each, unit) for each in sources]
    space = None
    if classifier._can_narrow and not is_fitted:
        space = _find_space(
            sources,
            labels,
            shrinkage=classifier.shrinkage,
            uses_unlabeled=uses_unlabeled,
        )
    if space is not None:
        sources = [_along(space, each) for each in sources]
    if not uses_unlabeled:  # NaN and infinity are errors, as in scikit-learn
        for each in sources:
            if each.backend is not None and (
                each.is_member is None or each.is_member.any()
            ):
                each.check_finite()  # rows in memory were looked at
    n_features = sources[0].request.n_features or 0
    _check_memory(n_features, len(labels.classes), type(classifier).__name__)
    factor = getattr(classifier, "unlabeled_weight", 1.0)
    unlabeled = ChainedRows([each.rows for each in sources], n_features, factor)
    labeled, codes = _labeled_source(sources[0], labels)
    pilot = [labeled.every_row.sample(_PILOT_ROWS, 0)[0]]
    if uses_unlabeled:
        pilot.append(unlabeled.sample(_PILOT_ROWS, 0)[0])
    if not all(np.isfinite(rows).all() for rows in pilot):
        find_non_finite(sources)
    frame = frame_of(np.concatenate(pilot))
    return FitInputs(
        passed=passed,
        sources=tuple(sources),
        labels=labels,
        labeled_source=labeled,
        codes=codes,
        unlabeled=unlabeled,
        log_priors=log_priors,
        frame=frame,
        space=FeatureSpace(frame) if space is None else replace(space, reduced=frame),
        proportions=resolve_proportions(
            getattr(classifier, "proportions", None), labels.classes
        ),
        unit=unit,
    )


def unit_length(sources: list[RowSource]) -> UnitLength:
    """Scale rows to length 1, about their mean if that is far from zero."""
    every = [replace(each, is_member=None).rows for each in sources]
    rows = ChainedRows(every, sources[0].request.n_features or 0)
    pilot, weights = rows.sample(_PILOT_ROWS, 0)
    with overflow_is_checked_later():
        if rows.n_rows <= len(pilot):  # all of them
            mean = weights @ pilot / weights.sum()
            variance = float(
                weights @ (pilot - mean) ** 2 @ np.ones(len(mean)) / weights.sum()
            )
        else:
            frame = frame_of(pilot)
            moments = rows.moments(frame)
            mean = frame.restore(moments.mean)
            variance = float((np.diag(moments.covariance) * frame.scale**2).sum())
        is_far = mean @ mean > _FAR_FROM_ZERO * variance
    if not np.isfinite(variance):
        find_non_finite(sources)
    return UnitLength(mean if is_far else np.zeros_like(mean))


def _scaled(source: RowSource, unit: UnitLength | None) -> RowSource:
    """Rows to be scaled as they are read; fewer rows than features are scaled at once."""
    if unit is None:
        return source
    if source.backend is None and len(source.X) < source.X.shape[1]:
        return replace(source, X=unit(np.asarray(source.X, dtype=np.float64)))
    return replace(source, request=replace(source.request, unit=unit))


def _log_priors(classifier: Any, classes: AnyArray) -> Array | None:
    priors = resolve_priors(classifier.priors, classes)
    if priors is None:
        return None
    if classifier._needs_positive_priors and not np.all(priors > 0):
        raise ParameterError(
            say(
                "{@priors} gives 0 to {never}, which has labeled rows: the fit maximizes their "
                "likelihood, which would be 0. Give it a small positive prior.",
                never=classes[priors == 0].tolist(),
            ),
            parameter="priors",
            value=priors.tolist(),
        )
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(priors))


def _labeled_source(source: RowSource, labels: Labels) -> tuple[RowSource, AnyArray]:
    """The labeled rows, and the codes of all rows of their source."""
    kept = labels.is_labeled
    is_large = is_device_array(source.X) and kept.sum() > _PILOT_ROWS
    if source.backend is None or is_large:
        return replace(source, is_member=kept), labels.codes
    return source.held(kept), labels.codes[kept]


def _check_memory(n_features: int, n_classes: int, name: str) -> None:
    """Raise a ValueError if the matrices of a problem do not fit into memory."""
    needed = _MATRICES * 8.0 * (n_features**2 + n_features * n_classes)
    if needed > 2**30 and needed > (available := _most_memory()):
        raise FitError(
            f"{name} needs about {needed / 2**30:.3g} GiB for {n_features:,} features and "
            f"{n_classes:,} classes, and there are {available / 2**30:.3g} GiB: leave features "
            "out, or project the rows first (sklearn.decomposition.PCA)."
        )


def _most_memory() -> float:
    """Bytes that this process can have at most, as far as the system says."""
    if not hasattr(os, "sysconf"):
        return np.inf
    import resource  # where there is sysconf

    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    limits += [
        limit for limit in resource.getrlimit(resource.RLIMIT_AS)[:1] if limit > 0
    ]
    group = Path("/sys/fs/cgroup/memory.max")  # of a container
    if group.exists() and (text := group.read_text().strip()).isdigit():
        limits.append(int(text))
    return min(limits)


def _find_space(
    sources: list[RowSource], labels: Labels, *, shrinkage: Any, uses_unlabeled: bool
) -> RowSpace | None:
    """The space of few rows of many features, in memory; None for all others.

    All rows count and labeled ones have weight 1.
    """
    if any(
        each.backend is not None or each.X.dtype.kind not in "biuf" for each in sources
    ):
        return None
    n_features, weights = sources[0].X.shape[1], sources[0].weights
    if n_features < WIDE or sum(len(each.X) for each in sources) >= n_features:
        return None
    is_labeled = np.flatnonzero(labels.is_labeled)
    has_weights = weights is not None and (
        (weights[is_labeled] != 1).any() or not weights.all()
    )
    if has_weights or any(each.weights is not None for each in sources[1:]):
        return None
    rows = np.concatenate([each.X for each in sources], dtype=np.float64)
    if not np.isfinite(rows).all():
        return None  # to be named where rows are summed
    # The supervised fit, and any fit without unlabeled rows.
    if not uses_unlabeled or len(is_labeled) == len(rows):
        rows = rows[is_labeled]
    return row_space(rows, frame_of(rows), is_shrunk=bool(shrinkage))


def _along(space: RowSpace, source: RowSource) -> RowSource:
    """Replace rows by their coordinates in a space."""
    request = replace(
        source.request, n_features=space.basis.shape[1], feature_names=None
    )
    return replace(source, X=space.coordinates(source.X), request=request)


def check_spread(inputs: FitInputs, variances: Array, terms: str = "") -> None:
    """Raise a ValueError if squares of a column, with further terms, might overflow or vanish."""
    with (
        overflow_is_checked_later()
    ):  # an overflow may have left NaN, or a negative variance
        spread = np.sqrt(variances) * inputs.space.frame.scale
    is_fine = (spread == 0) | ((spread >= SMALLEST_SPREAD) & (spread <= LARGEST_SPREAD))
    if not is_fine.all():
        index = int(np.argmin(is_fine))
        column = column_of(index, inputs.feature_names)
        is_finite = np.isfinite(spread[index])
        raise ColumnError(
            say(
                "The standard deviation of {column}{terms} is {spread}, and must lie between "
                "{least:g} and {largest:g}: rescale the column.",
                column=column,
                terms=terms,
                spread=f"{spread[index]:.3g}" if is_finite else "too large to square",
                least=SMALLEST_SPREAD,
                largest=LARGEST_SPREAD,
            ),
            column=column.label,
        )


def check_shares(inputs: FitInputs, shares: Array) -> None:
    """Raise a ValueError if the labeled rows of a class weigh next to nothing beside all rows."""
    if shares.min() < _SMALLEST_SHARE:
        name = inputs.labels.classes[[int(shares.argmin())]].tolist()[0]
        raise FitError(
            f"The labeled rows of class {name!r} hold {shares.min():.3g} of the weight of all "
            f"rows, and must hold at least {_SMALLEST_SHARE:g}: give rows weights of similar size, "
            "or leave those of the class out by weight 0."
        )


def overflow_is_checked_later() -> np.errstate:
    # The frame is chosen from a sample: an entry far beyond it overflows, and check_spread says so.
    return np.errstate(over="ignore", invalid="ignore")
