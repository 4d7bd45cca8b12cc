"""Fits without the offsets of groups of rows, such as speakers or instruments.

Rows of a group lie at the mean of their class plus the offset of the group:
``prepare_groups`` subtracts the offsets, whose weighted mean is zero. A fitted model is
then one for a source without an offset, and ``adapt`` moves it to others.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import pinvh
from scipy.sparse import csr_array

from .._core import AnyArray, Array
from .._messages import FitError
from .._rows.kinds import in_memory
from .._rows.views import STANDARDIZE, Standardization
from .fit import supervised_fit
from .fit_inputs import Arguments, FitInputs, Needs, prepare, prepare_opened
from .labels import check_lengths, is_missing, plain
from .other_rows import OFFSET, adapt_gaussians
from .rows_reader import RowSource, RowsReader

# Offsets that rows do not determine are below this share of the largest eigenvalue.
_RANK_TOLERANCE = 1e-10


def prepare_groups(
    reader: RowsReader,
    arguments: Arguments,
    needs: Needs,
    groups: Any,
    groups_unlabeled: Any,
) -> tuple[FitInputs, dict[Any, Array]]:
    """Return the inputs of a fit without group offsets, and the offset of each group.

    ``groups`` are those of the rows of X, ``groups_unlabeled`` those of X_unlabeled.
    """
    inputs = prepare(reader, arguments, needs)
    sources = [
        replace(opened, weights=source.weights, is_member=source.is_member)
        for opened, source in zip(inputs.opened, inputs.sources, strict=True)
    ]
    names, codes = _group_codes(sources, [groups, groups_unlabeled])
    labels = inputs.labels
    used = labels.is_labeled
    rows = np.asarray(sources[0].X[used], dtype=np.float64)
    offsets = _labeled_offsets(
        rows - rows.mean(axis=0),
        labels.codes[used],
        codes[0][used],
        _weights_of(sources[0])[used],
        names,
    )
    if inputs.unlabeled.n_rows:
        moved = _without(sources, codes, offsets)
        offsets = offsets + _further_offsets(moved, codes, inputs, len(names))
    opened = _without(inputs.opened, codes, offsets)
    with warnings.catch_warnings():
        # Those of the labels were given above.
        warnings.simplefilter("ignore")
        without_offsets = prepare_opened(opened, arguments, needs)
    return without_offsets, dict(zip(map(plain, names), offsets, strict=True))


def _group_codes(
    sources: Sequence[RowSource], given: Sequence[Any]
) -> tuple[AnyArray, list[AnyArray]]:
    """Return the groups, and the code of the group of every row of each source."""
    arrays = []
    for source, values, name in zip(
        sources, given, ("groups", "groups_unlabeled"), strict=False
    ):
        rows = source.request.name
        if values is None:
            raise ValueError(
                f"{name} must have the group of every row of {rows}, since groups of "
                "the other rows are given, got None."
            )
        if not source.is_in_memory:
            raise ValueError(
                f"{name} needs rows in memory, because their offsets are subtracted "
                f"before the fit, and {rows} is read from its source: pass an array, "
                "or subtract the offsets first."
            )
        array = np.asarray(in_memory(values))
        check_lengths(**{rows: range(source.n_rows), name: array})
        missing = [i for i, value in enumerate(array.tolist()) if is_missing(value)]
        if missing:
            raise ValueError(
                f"{name} has no value in row {missing[0]}: name the group of every "
                "row, or leave the row out."
            )
        arrays.append(array)
    if len(arrays) == 1 and given[1] is not None:
        raise ValueError("groups_unlabeled needs X_unlabeled, which was not passed.")
    names, codes = np.unique(np.concatenate(arrays), return_inverse=True)
    if not 1 < len(names) < len(codes):
        raise ValueError(
            "groups must have at least two values, each for several rows, got "
            f"{len(names):,} in {len(codes):,} rows: pass the speaker or instrument of "
            "each row, or leave groups out."
        )
    return names, np.split(codes, np.cumsum([len(array) for array in arrays[:-1]]))


def _labeled_offsets(
    rows: Array, codes: AnyArray, groups: AnyArray, weights: Array, names: AnyArray
) -> Array:
    """Return offsets (G, d) by least squares, from rows whose classes are known.

    A row is the mean of its class plus the offset of its group. With the weight N of
    every group in every class, and its shares P in the columns of N, the normal
    equations without the class means are (diag(N 1) - P N') offsets = sums of the rows
    by group - P (sums of the rows by class). Groups without such rows get 0.
    """
    index = np.arange(len(rows))
    by_group = csr_array((weights, (groups, index)), shape=(len(names), len(rows)))
    by_class = csr_array((weights, (codes, index)))
    counts = (by_group @ (by_class > 0).T).toarray()
    shares = counts / counts.sum(axis=0)
    weight_of_group = counts.sum(axis=1)
    equations = np.diag(weight_of_group) - shares @ counts.T
    inverse, rank = pinvh(equations, rtol=_RANK_TOLERANCE, return_rank=True)
    # Equal offsets of all groups cannot be told from other class means.
    if rank < np.count_nonzero(weight_of_group) - 1:
        raise FitError(
            "The labeled rows do not tell offsets of groups from differences between "
            "classes, because some groups have no class in common with the others: "
            "label rows of a class in several groups, or leave groups out."
        )
    offsets = inverse @ (by_group @ rows - shares @ (by_class @ rows))
    has_labels = weight_of_group > 0
    mean = weight_of_group @ offsets / weight_of_group.sum()
    return np.asarray(np.where(has_labels[:, None], offsets - mean, 0.0))


def _further_offsets(
    sources: Sequence[RowSource],
    codes: Sequence[AnyArray],
    inputs: FitInputs,
    n_groups: int,
) -> Array:
    """Return what unlabeled rows add to offsets (G, d) that were subtracted already.

    The supervised fit is adapted to the unlabeled rows of each group, if they support
    that. An offset counts by the share of the weight of its group that they have.
    """
    arguments = replace(
        inputs.arguments,
        X_unlabeled=None,
        sample_weight_unlabeled=None,
        priors=None,
        proportions=None,
        shrinkage="auto",
        view=STANDARDIZE,
    )
    needs = Needs(unlabeled_rows=False, all_features=True)
    fitted = prepare_opened(sources[:1], arguments, needs)
    view = fitted.view
    assert isinstance(view, Standardization)
    gaussians = supervised_fit(fitted.problem).model
    labeled_weights = _weights_of(sources[0]) * inputs.labels.is_labeled
    offsets = np.zeros((n_groups, len(view.center)))
    weight_of_group = np.bincount(codes[0], labeled_weights, n_groups)
    for group in range(n_groups):
        rows = []
        weights = []
        for source, of_source in zip(sources, codes, strict=True):
            is_unlabeled = of_source == group
            if source.is_member is not None:
                is_unlabeled = is_unlabeled & source.is_member
            rows.append(source.X[is_unlabeled])
            weights.append(_weights_of(source)[is_unlabeled])
        weight = np.concatenate(weights)
        weight_of_group[group] += weight.sum()
        if not weight.sum() > 0:
            continue
        unlabeled = RowSource(
            np.concatenate(rows), sources[0].request, weights=weight
        ).viewed(view)
        _, adaptation = adapt_gaussians(unlabeled, gaussians, OFFSET)
        share = weight.sum() / weight_of_group[group]
        offsets[group] = adaptation.offset * view.scale * share
    return np.asarray(offsets - weight_of_group @ offsets / weight_of_group.sum())


def _weights_of(source: RowSource) -> Array:
    """Return the weights of all rows of a source."""
    return np.ones(source.n_rows) if source.weights is None else source.weights


def _without(
    sources: Sequence[RowSource], codes: Sequence[AnyArray], offsets: Array
) -> list[RowSource]:
    """Return sources whose rows have no offsets of their groups."""
    return [
        replace(source, X=source.X - offsets[of_source])
        for source, of_source in zip(sources, codes, strict=True)
    ]
