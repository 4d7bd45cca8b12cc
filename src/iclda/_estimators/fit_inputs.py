"""From the arguments of ``fit`` to a problem of the core.

``prepare(reader, arguments, needs)`` opens and checks what the user passed
(``Arguments``), as far as a classifier needs it (``Needs``), and returns
``FitInputs``: labels, labeled and unlabeled rows, priors, proportions, and the frame in
which sums are formed. ``FitInputs.problem`` is what a solver gets. Nothing here knows a
classifier: whatever depends on one is a value of ``Needs`` or ``Arguments``.

Few rows of many features are reduced to coordinates in the space that they span; what
is fitted in these is lifted by ``FitInputs.space``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from .._core import AnyArray, Array
from .._core.frame import LARGEST_SPREAD, SMALLEST_SPREAD, Frame, frame_of
from .._core.labelsums import GivenLabels
from .._core.moments import Moments, no_moments
from .._core.problem import LabeledRows, LabeledSummary, Problem, summarize_labeled
from .._core.rows import Rows
from .._core.rowspace import FeatureSpace, RowSpace, row_space
from .._core.solvers.supervised import estimated_shrinkage, pooled_shrinkage
from .._messages import (
    BrokenCell,
    BrokenCellWarning,
    ColumnError,
    FitError,
    ParameterError,
    describe_broken,
    say,
    warn,
)
from .._rows.chained import ChainedRows
from .._rows.checks import column_of
from .._rows.kinds import in_memory, is_device_array
from .._rows.memory import MemoryRows
from .._rows.views import Bounds, UnitLength, View, chained, steps_of
from .averaging import LearnedShares, learn_shares
from .labels import (
    LEARNED,
    Labels,
    as_column,
    check_lengths,
    check_marks,
    check_weights,
    encode_labels,
    resolve_priors,
    resolve_proportions,
    shape_of,
)
from .rows_reader import RowSource, RowsReader, as_read
from .views import AUTO_VIEW, find_bounds, find_view, have_network_features

# The frame is chosen from this many labeled rows, and as many unlabeled ones.
_FRAME_ROWS = 4096
# With this many features or more, fewer rows than features are fitted in the space that
# they span.
MIN_WIDE_FEATURES = 256
# A fit holds at least this many matrices of features x features, and as many of classes
# x features.
_MATRICES_HELD = 8
# Memory is not checked for matrices that take less than this.
_UNCHECKED_BYTES = 2**30
# Smallest share that the labeled rows of a class may have in the weight of all rows.
_MIN_CLASS_SHARE = 1e-12
# A shrinkage of 1 would leave nothing to learn.
_MAX_AUTOMATIC_SHRINKAGE = 0.99


@dataclass(frozen=True)
class Needs:
    """What a classifier needs of the rows it is fitted to.

    Attributes
    ----------
    problem : type
        The form of its classes: ``Problem``, or a subclass for another form of the
        covariance, such as ``SphericalProblem``.
    unlabeled_rows : bool
        Whether it learns from unlabeled rows.
    labeled_rows : bool
        Whether it uses the labeled rows one by one (``Problem.labeled_rows``), and not
        only their sums.
    all_features : bool
        Whether it has to be fitted in all features, even if there are fewer rows. So it
        is where the form of the covariance depends on the axes: fewer rows than
        features are rotated otherwise.
    users_units : bool
        Whether it depends on the units of the features even without shrinkage.
    positive_priors : bool
        Whether a class with a prior of 0 leaves it without a likelihood.
    labeled_covariance : bool
        Whether its covariance comes from labeled rows alone. Automatic shrinkage is
        then that for these rows.
    raw_rows : bool
        Whether it takes rows as they are, and leaves views to the classifiers that it
        fits.
    learned_proportions : bool
        Whether the shares of the classes are learned first if ``proportions="auto"``.
    supervised : str
        The classifier that equals it if there are no unlabeled rows, as a warning
        names it; another form of the covariance has another one.
    """

    problem: type[Problem] = Problem
    unlabeled_rows: bool = True
    labeled_rows: bool = False
    all_features: bool = False
    users_units: bool = False
    positive_priors: bool = False
    labeled_covariance: bool = False
    raw_rows: bool = False
    learned_proportions: bool = True
    supervised: str = "SupervisedLDA"


@dataclass(frozen=True)
class Arguments:
    """What the user passed to ``fit``, and the parameters that say how to read it.

    ``name`` is the class name of the classifier, for messages. ``view`` may also be
    the view of an earlier fit.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    X_unlabeled: Any = None
    sample_weight_unlabeled: Any = None
    name: str = ""
    unlabeled: Any = -1
    priors: Any = None
    shrinkage: Any = None
    proportions: Any = None
    view: str | View | None = None
    unlabeled_weight: float = 1.0

    def with_parameters(self, classifier: Any) -> Arguments:
        """Return the arguments with the name and the parameters of a classifier."""
        values = {
            each.name: getattr(classifier, each.name)
            for each in fields(self)
            if hasattr(classifier, each.name)
        }
        return replace(self, **{**values, "name": type(classifier).__name__})

    @property
    def learns_proportions(self) -> bool:
        """Whether the user asked to learn the shares of the classes."""
        return isinstance(self.proportions, str) and self.proportions == LEARNED


@dataclass(frozen=True)
class FitInputs:
    """Rows, labels and weights of one call of ``fit``, checked.

    Attributes
    ----------
    arguments : Arguments
    needs : Needs
    opened : tuple of RowSource
        X and, if it was passed, X_unlabeled, as they were opened.
    sources : tuple of RowSource
        The same with their weights, scaled and reduced as for the fit; their members
        are the unlabeled rows.
    labels : Labels
    labeled_source : RowSource
        The labeled rows: in memory, or on their device if they are many.
    codes : (n,), of all rows of ``labeled_source``
    unlabeled : Rows
    log_priors : (K,), optional
    proportions : (K, 2), optional
        Least and largest shares of the classes in the unlabeled weight.
    frame : Frame
    space : FeatureSpace
        All features or, for few rows of many features, the space that they span.
    bounds : Bounds or None
        How broken numbers are moved, with the view "auto".
    view : View or None
        How rows are mapped before they are fitted, the bounds among it.
    is_network : bool
        Whether the rows were taken for features of a network.
    """

    arguments: Arguments
    needs: Needs
    opened: tuple[RowSource, ...]
    sources: tuple[RowSource, ...]
    labels: Labels
    labeled_source: RowSource
    codes: AnyArray
    unlabeled: Rows
    log_priors: Array | None
    proportions: Array | None
    frame: Frame
    space: FeatureSpace
    bounds: Bounds | None
    view: View | None
    is_network: bool

    @property
    def feature_names(self) -> AnyArray | None:
        """Names of the features that are fitted; None if they have none."""
        names = self.opened[0].request.feature_names
        if self.view is None or self.view.keeps_columns:
            return names
        return np.array([f"{i} of the view" for i in range(self.view.n_features)])

    @property
    def n_labeled(self) -> int:
        return len(self.labels.labeled_codes)

    @property
    def uses_unlabeled(self) -> bool:
        """Whether there are unlabeled rows to learn from."""
        return self.needs.unlabeled_rows and self.unlabeled.n_rows > 0

    @property
    def lacks_unlabeled(self) -> bool:
        """Whether a classifier that learns from unlabeled rows got none."""
        return self.needs.unlabeled_rows and self.unlabeled.n_rows == 0

    @property
    def every_unlabeled(self) -> Rows | None:
        """Unlabeled rows with those of weight 0; None unless all rows are arrays."""
        if not all(each.is_held for each in self.sources):
            return None
        parts = [each.every_row for each in self.sources]
        return ChainedRows(parts, len(self.frame.scale))

    @cached_property
    def labeled(self) -> LabeledSummary:
        """Sums of the labeled rows, in frame coordinates."""
        labels = GivenLabels(self.codes, len(self.labels.classes))
        with overflow_is_checked_later():
            return summarize_labeled(self.labeled_source.rows, labels, self.frame)

    @cached_property
    def labeled_rows(self) -> LabeledRows:
        """The labeled rows in memory, with their codes and weights."""
        index = self.codes >= 0
        held = self.labeled_source.held(index)
        weights = np.ones(len(held.X)) if held.weights is None else held.weights
        return LabeledRows(held.X, self.codes[index], weights)

    @property
    def problem(self) -> Problem:
        """What a solver gets.

        Its shrinkage is a number, and its proportions are known. If there are no
        unlabeled rows, it is a problem of the labeled rows alone.
        """
        learned = self.learned_shares
        if learned is None:
            return self._given_problem
        return replace(
            self._given_problem, proportions=learned.proportions, start=learned.start
        )

    @cached_property
    def learned_shares(self) -> LearnedShares | None:
        """Shares of the classes among the unlabeled rows, if they are to be learned."""
        is_wanted = self.needs.learned_proportions and self.arguments.learns_proportions
        if not (is_wanted and self.uses_unlabeled):
            return None
        return learn_shares(self._given_problem, self.labeled_rows)

    @cached_property
    def _given_problem(self) -> Problem:
        """The problem with the proportions that the user gave, if any."""
        shrinkage = self.arguments.shrinkage
        if not self.uses_unlabeled:
            return self._labeled_problem(shrinkage)
        # Automatic shrinkage needs the moments of the problem: it is 0 until then.
        problem = self.needs.problem(
            frame=self.frame,
            labeled=self.labeled,
            unlabeled=self.unlabeled,
            log_priors=self.log_priors,
            shrinkage=0.0 if shrinkage == "auto" else float(shrinkage or 0.0),
            unlabeled_moments=self._unlabeled_moments(),
            n_left_out=self.space.n_left_out,
            proportions=self.proportions,
            labeled_rows=self.labeled_rows if self.needs.labeled_rows else None,
            has_network_features=self._keeps_neighbors,
        )
        # Unweighted rows in memory were not searched for NaN and infinity when they
        # were opened, because the sums of all rows show them.
        with overflow_is_checked_later():
            moments = problem.moments
        if not np.isfinite(moments.scatter).all():
            find_non_finite(self.sources)
        if shrinkage != "auto":
            return problem
        moments_of_all = None if self.needs.labeled_covariance else moments
        automatic = automatic_shrinkage(
            self.labeled, self.frame, self.space.n_left_out, moments_of_all
        )
        return replace(problem, shrinkage=automatic)

    @property
    def _keeps_neighbors(self) -> bool:
        """Whether rows are features of a network that the view leaves as they are."""
        steps = () if self.view is None else steps_of(self.view)
        is_kept = all(isinstance(step, (Bounds, UnitLength)) for step in steps)
        return self.is_network and is_kept

    def _unlabeled_moments(self) -> Moments:
        with overflow_is_checked_later():
            return self.unlabeled.moments(self.frame)

    def _labeled_problem(self, shrinkage: float | str | None) -> Problem:
        """Return the problem of the labeled rows alone."""
        n_left_out = self.space.n_left_out
        if shrinkage == "auto":
            shrinkage = automatic_shrinkage(self.labeled, self.frame, n_left_out)
        return self.needs.problem(
            frame=self.frame,
            labeled=self.labeled,
            unlabeled=ChainedRows([], len(self.frame.scale)),
            log_priors=self.log_priors,
            shrinkage=float(shrinkage or 0.0),
            unlabeled_moments=no_moments(len(self.frame.scale)),
            n_left_out=n_left_out,
        )


def automatic_shrinkage(
    labeled: LabeledSummary,
    frame: Frame,
    n_left_out: int,
    moments: Moments | None = None,
) -> float:
    """Return the shrinkage for ``shrinkage="auto"``.

    Without ``moments``, it is the shrinkage for the labeled rows. With the ``moments``
    of all rows, it is the geometric mean of that and of the shrinkage for all rows: the
    covariance within classes is then known better than from the labeled rows alone, but
    not as well as if all rows were labeled. Since shrinkage falls with the number of
    rows, the geometric mean is the shrinkage for a number of rows between the two.
    """
    with overflow_is_checked_later():
        shrinkage = pooled_shrinkage(labeled, frame, n_left_out)
        if moments is not None:
            units = frame.scale / frame.scale.max()
            covariance = moments.covariance * units[:, None] * units
            of_all = estimated_shrinkage(covariance, moments.weight, n_left_out)
            shrinkage = math.sqrt(shrinkage * of_all)
    return min(shrinkage, _MAX_AUTOMATIC_SHRINKAGE)


def find_non_finite(sources: Iterable[RowSource]) -> None:
    """Raise a ValueError that names the first NaN or infinity, if there is one."""
    for source in sources:
        source.check_finite()


def prepare(
    reader: RowsReader, arguments: Arguments, needs: Needs, *, is_first: bool = True
) -> FitInputs:
    """Open and check what was passed to ``fit``.

    With ``is_first`` the reader notes the features of X; otherwise they must be those
    of an earlier fit.
    """
    weights_unlabeled = arguments.sample_weight_unlabeled
    if arguments.X_unlabeled is None and weights_unlabeled is not None:
        raise ValueError(
            "sample_weight_unlabeled weighs the rows of X_unlabeled, which was not "
            "passed; sample_weight weighs all rows of X, labeled or not."
        )
    # If all rows enter the moments, NaN and infinity are found there.
    is_weighted = arguments.sample_weight is not None or weights_unlabeled is not None
    is_summed_later = needs.unlabeled_rows and not is_weighted
    opened = [
        reader.open(arguments.X, is_first=is_first, is_summed_later=is_summed_later)
    ]
    if arguments.X_unlabeled is not None:
        opened.append(
            reader.open(
                arguments.X_unlabeled, "X_unlabeled", is_summed_later=is_summed_later
            )
        )
    arguments = replace(arguments, y=as_column(as_read(in_memory(arguments.y), "y")))
    inputs = prepare_opened(opened, arguments, needs)
    has_others = arguments.X_unlabeled is not None
    marks = check_marks(
        inputs.labels, arguments.unlabeled, arguments.name, has_others=has_others
    )
    warn(*marks)
    return inputs


def prepare_opened(
    opened: Sequence[RowSource],
    arguments: Arguments,
    needs: Needs,
    *,
    known: FitInputs | None = None,
) -> FitInputs:
    """Check the labels, weights, priors and proportions of opened rows.

    The rows are mapped by the view and reduced to the space that they span, where that
    is called for, and the frame is chosen. ``known`` are inputs of the same rows, if
    there are any: bounds, and what the rows were taken for, are theirs.
    """
    # Labels, and what the user says of the classes.
    labels, weights = _labels_and_weights(arguments, opened[0].n_rows)
    log_priors = _log_priors(arguments.priors, labels.classes, needs)
    shares = _shares_of_labels(labels, weights)
    proportions = resolve_proportions(arguments.proportions, labels.classes, shares)

    # The rows that the fit reads. The view comes before the reduction: it takes all
    # features, and the span is that of the mapped rows.
    sources = _weighted_sources(opened, arguments, labels, weights)
    bounds = _bounds_of(sources, arguments, known)
    broken_cells = _broken_cells(bounds, sources)
    # Rows in memory were looked at once, which is faster than in every pass.
    are_whole = not broken_cells and all(each.is_in_memory for each in sources)
    if bounds is not None and not are_whole:
        sources = [source.viewed(bounds) for source in sources]
    is_network = have_network_features(sources) if known is None else known.is_network
    learned = None
    if not needs.raw_rows:
        learned = find_view(arguments.view, sources, is_network=is_network)
    if learned is not None:
        sources = [source.viewed(learned) for source in sources]
    keeps_units = needs.users_units or bool(arguments.shrinkage)
    space = _find_space(sources, labels, needs, keeps_units=keeps_units)
    if space is not None:
        sources = [_along(space, source) for source in sources]
    if not needs.unlabeled_rows:
        _check_unread_rows(sources)

    # How they are summed: labeled rows, unlabeled rows, and the frame of both.
    n_features = sources[0].n_features
    if not (needs.raw_rows and _can_reduce(sources, labels)):
        # Otherwise the classifiers that it fits reduce the rows, or check the memory.
        _check_memory(n_features, len(labels.classes), arguments.name)
    unlabeled = ChainedRows(
        [source.rows for source in sources], n_features, arguments.unlabeled_weight
    )
    labeled_source, codes = _labeled_source(sources[0], labels)
    frame = _find_frame(labeled_source, unlabeled, sources, needs)
    # Of rows that are read from elsewhere, the labeled ones are in memory.
    if not sources[0].is_in_memory:
        index = np.flatnonzero(labels.is_labeled)
        broken_cells += _broken_cells(bounds, [labeled_source], index)
    if broken_cells and known is None:
        warn(BrokenCellWarning(describe_broken(broken_cells)))
    return FitInputs(
        arguments=arguments,
        needs=needs,
        opened=tuple(opened),
        sources=tuple(sources),
        labels=labels,
        labeled_source=labeled_source,
        codes=codes,
        unlabeled=unlabeled,
        log_priors=log_priors,
        proportions=proportions,
        frame=frame,
        space=FeatureSpace(frame) if space is None else replace(space, reduced=frame),
        bounds=bounds,
        view=chained(bounds, learned),
        is_network=is_network,
    )


def _bounds_of(
    sources: Sequence[RowSource], arguments: Arguments, known: FitInputs | None
) -> Bounds | None:
    """Return the bounds of the columns with the view "auto"; None with any other."""
    if not isinstance(arguments.view, str) or arguments.view != AUTO_VIEW:
        return None
    return find_bounds(sources) if known is None else known.bounds


def _broken_cells(
    bounds: Bounds | None, sources: Iterable[RowSource], index: AnyArray | None = None
) -> list[BrokenCell]:
    """Return the numbers that the bounds move in sources that are in memory.

    ``index`` has the indices of the rows of a source; None: they are all rows.
    """
    cells: list[BrokenCell] = []
    if bounds is None:
        return cells
    for source in sources:
        if not source.is_in_memory:
            continue
        name = source.request.name
        row_numbers = np.arange(len(source.X)) if index is None else index
        is_counted = None if source.weights is None else source.weights > 0
        for tile in MemoryRows(source.X, is_member=is_counted).tiles():
            for row, column in bounds.find_broken(tile.rows):
                where = f"row {row_numbers[tile.indices][row]} of {name}"
                label = column_of(column, source.request.feature_names)
                cells.append(BrokenCell(where, label, tile.rows[row, column]))
    return cells


def _labels_and_weights(
    arguments: Arguments, n_rows: int
) -> tuple[Labels, Array | None]:
    """Return the labels and the weights of the rows of X, checked."""
    check_lengths(X=range(n_rows), y=arguments.y)
    given = in_memory(arguments.sample_weight)
    shape = shape_of(given)
    if given is not None and not isinstance(given, Real) and len(shape) != 1:
        way_out = "Unlabeled rows are passed by name: X_unlabeled=..."
        if shape == (n_rows, 1):
            way_out = "Pass a 1-d array."
        raise ValueError(
            f"sample_weight must hold one number for each of the {n_rows} rows, got "
            f"{f'shape {shape}' if shape else type(given).__name__}. {way_out}"
        )
    weights = check_weights(given, n_rows, "sample_weight")
    is_counted = None if weights is None else weights > 0
    labels = encode_labels(arguments.y, arguments.unlabeled, is_counted, arguments.name)
    return labels, weights


def _weighted_sources(
    opened: Sequence[RowSource],
    arguments: Arguments,
    labels: Labels,
    weights: Array | None,
) -> list[RowSource]:
    """Return the opened rows with their weights; members are the unlabeled rows."""
    sources = [replace(opened[0], weights=weights, is_member=labels.is_marker)]
    # X_unlabeled, all of whose rows are unlabeled.
    for further in opened[1:]:
        further_weights = in_memory(arguments.sample_weight_unlabeled)
        # Rows are counted only if there are weights, since counting may take a pass.
        n_rows = 0 if further_weights is None else further.n_rows
        checked = check_weights(further_weights, n_rows, "sample_weight_unlabeled")
        sources.append(replace(further, weights=checked))
    return sources


def _shares_of_labels(labels: Labels, weights: Array | None) -> Array:
    """Return the shares of the classes in the labeled weight."""
    labeled_weights = None if weights is None else weights[labels.is_labeled]
    counts = np.bincount(labels.labeled_codes, labeled_weights)
    return np.asarray(counts / counts.sum())


def _log_priors(priors: Any, classes: AnyArray, needs: Needs) -> Array | None:
    """Return the logarithms of the priors that the user gave, or None."""
    values = resolve_priors(priors, classes)
    if values is None:
        return None
    if needs.positive_priors and not np.all(values > 0):
        raise ParameterError(
            say(
                "{@priors} gives 0 to {never}, which has labeled rows: the fit "
                "maximizes their likelihood, which would be 0. Give it a small "
                "positive prior.",
                never=classes[values == 0].tolist(),
            ),
            parameter="priors",
            value=values.tolist(),
        )
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))


def _check_unread_rows(sources: Iterable[RowSource]) -> None:
    """Raise a ValueError for NaN or infinity in rows that the fit does not read.

    scikit-learn does the same. Rows in memory were checked when they were opened.
    """
    for source in sources:
        has_members = source.is_member is None or source.is_member.any()
        if has_members and not source.is_in_memory:
            source.check_finite()


def _labeled_source(source: RowSource, labels: Labels) -> tuple[RowSource, AnyArray]:
    """Return the labeled rows, and the codes of all rows of their source."""
    is_labeled = labels.is_labeled
    # Many labeled rows stay on their device. Those of other sources are taken into
    # memory, so that files and clusters are read only once for them.
    is_many = len(labels.labeled_codes) > _FRAME_ROWS
    is_large = is_device_array(source.X) and is_many
    if source.is_in_memory or is_large:
        return replace(source, is_member=is_labeled), labels.codes
    # They stay as they are, and are mapped when they are used: a warning shows them.
    as_given = replace(source, request=replace(source.request, view=None))
    held = as_given.held(is_labeled)
    return replace(held, request=source.request), labels.labeled_codes


def _find_frame(
    labeled_source: RowSource,
    unlabeled: Rows,
    sources: Sequence[RowSource],
    needs: Needs,
) -> Frame:
    """Choose the frame from samples of the rows that the fit uses."""
    samples = [labeled_source.every_row.sample(_FRAME_ROWS, 0)[0]]
    if needs.unlabeled_rows:
        samples.append(unlabeled.sample(_FRAME_ROWS, 0)[0])
    if not all(np.isfinite(rows).all() for rows in samples):
        find_non_finite(sources)
    return frame_of(np.concatenate(samples))


def _check_memory(n_features: int, n_classes: int, name: str) -> None:
    """Raise a FitError if there is not enough memory for the matrices of a fit."""
    # Numbers in double precision have 8 bytes.
    needed = _MATRICES_HELD * 8.0 * (n_features**2 + n_features * n_classes)
    if needed <= _UNCHECKED_BYTES:
        return
    available = _available_memory()
    if needed > available:
        raise FitError(
            f"{name} needs about {needed / 2**30:.3g} GiB for {n_features:,} features "
            f"and {n_classes:,} classes, and there are {available / 2**30:.3g} GiB: "
            "leave features out, or project the rows first "
            "(sklearn.decomposition.PCA)."
        )


def _available_memory() -> float:
    """Return the bytes that this process can have, as far as the system says."""
    if not hasattr(os, "sysconf"):
        return np.inf
    # This module of Python exists only where ``sysconf`` does.
    import resource

    # The smallest of the memory of the machine, the limit of the process, and that of
    # its container.
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    # A negative number stands for no limit.
    if address_space > 0:
        limits.append(address_space)
    container_limit = Path("/sys/fs/cgroup/memory.max")
    if container_limit.exists():
        text = container_limit.read_text().strip()
        # Without a limit the file says max.
        if text.isdigit():
            limits.append(int(text))
    return min(limits)


def _find_space(
    sources: Sequence[RowSource], labels: Labels, needs: Needs, *, keeps_units: bool
) -> RowSpace | None:
    """Return the space that few rows of many features span, or None."""
    if needs.all_features or not _can_reduce(sources, labels):
        return None
    labeled = np.flatnonzero(labels.is_labeled)
    rows = np.concatenate([source.X for source in sources], dtype=np.float64)
    if not np.isfinite(rows).all():
        # A later check names the first such number.
        return None
    # The supervised fit, and any fit without unlabeled rows, are of labeled rows alone.
    if not needs.unlabeled_rows or len(labeled) == len(rows):
        rows = rows[labeled]
    return row_space(rows, frame_of(rows), keeps_units=keeps_units)


def _can_reduce(sources: Sequence[RowSource], labels: Labels) -> bool:
    """Return whether rows can be fitted in the space that they span."""
    labeled = np.flatnonzero(labels.is_labeled)
    return _are_few_and_wide(sources) and _can_reduce_weighted(sources, labeled)


def _are_few_and_wide(sources: Sequence[RowSource]) -> bool:
    """Return whether all rows are in memory, and fewer than their many features."""
    for source in sources:
        if not source.is_in_memory or source.X.dtype.kind not in "biuf":
            return False
    n_features = sources[0].X.shape[1]
    n_rows = sum(len(source.X) for source in sources)
    return n_features >= MIN_WIDE_FEATURES and n_rows < n_features


def _can_reduce_weighted(sources: Sequence[RowSource], labeled: AnyArray) -> bool:
    """Return whether the weights of rows allow to reduce them.

    Labeled rows must have weight 1, and no row weight 0. Rows of X_unlabeled must have
    no weights.
    """
    if any(source.weights is not None for source in sources[1:]):
        return False
    weights = sources[0].weights
    if weights is None:
        return True
    return bool(weights.all() and (weights[labeled] == 1).all())


def _along(space: RowSpace, source: RowSource) -> RowSource:
    """Replace rows by their coordinates in a space."""
    n_coordinates = space.basis.shape[1]
    request = replace(source.request, n_features=n_coordinates, feature_names=None)
    return replace(source, X=space.coordinates(source.X), request=request)


def check_spread(
    variances: Array, frame: Frame, feature_names: AnyArray | None, terms: str = ""
) -> None:
    """Raise a ColumnError if the squares of a column might overflow or vanish.

    ``variances`` are in frame coordinates. ``terms`` says for the message what they
    contain besides the variances of the rows.
    """
    # An overflow may have left NaN, or a negative variance.
    with overflow_is_checked_later():
        spread = np.sqrt(variances) * frame.scale
    is_valid = (spread == 0) | (
        (spread >= SMALLEST_SPREAD) & (spread <= LARGEST_SPREAD)
    )
    if is_valid.all():
        return
    index = int(np.argmin(is_valid))
    column = column_of(index, feature_names)
    is_finite = np.isfinite(spread[index])
    raise ColumnError(
        say(
            "The standard deviation of {column}{terms} is {spread}, and must lie "
            "between {least:g} and {largest:g}: rescale the column.",
            column=column,
            terms=terms,
            spread=f"{spread[index]:.3g}" if is_finite else "too large to square",
            least=SMALLEST_SPREAD,
            largest=LARGEST_SPREAD,
        ),
        column=column.label,
    )


def check_shares(classes: AnyArray, shares: Array) -> None:
    """Raise a FitError if the labeled rows of a class have almost none of the weight.

    ``shares`` are theirs in the weight of all rows.
    """
    if shares.min() >= _MIN_CLASS_SHARE:
        return
    rarest = classes[[int(shares.argmin())]].tolist()[0]
    raise FitError(
        f"The labeled rows of class {rarest!r} hold {shares.min():.3g} of the weight "
        f"of all rows, and must hold at least {_MIN_CLASS_SHARE:g}: give rows weights "
        "of similar size, or leave those of the class out by weight 0."
    )


def overflow_is_checked_later() -> np.errstate:
    """Ignore overflow in sums, which ``check_spread`` looks for when they are complete.

    The frame is chosen from a sample, and entries of other rows may be far larger.
    """
    return np.errstate(over="ignore", invalid="ignore")
