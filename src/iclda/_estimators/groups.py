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
from .._messages import FitError, plural
from .._rows.kinds import in_memory
from .._rows.views import STANDARDIZE, Standardization
from .fit import supervised_fit
from .fit_inputs import Arguments, FitInputs, Needs, prepare, prepare_opened
from .labels import check_lengths, is_missing, plain
from .other_rows import OFFSET, adapt_gaussians
from .rows_reader import RowSource, RowsReader

# Offsets that rows do not determine are below this share of the largest eigenvalue.
_RANK_TOLERANCE = 1e-10
# Stands in for the weight of a group without weight.
_TINY = 1e-300


def prepare_groups(
    reader: RowsReader, arguments: Arguments, needs: Needs, groups: Sequence[Any]
) -> tuple[FitInputs, dict[Any, Array]]:
    """Return the inputs of a fit without group offsets, and the offset of each group.

    ``groups`` are the group of every row of X, and that of every row of X_unlabeled.
    """
    inputs = prepare(reader, arguments, needs)
    labels = inputs.labels
    names, codes = _group_codes(inputs.opened, groups)
    parts = [np.asarray(source.X, dtype=np.float64) for source in inputs.opened]
    # All rows, those of X first, about their mean.
    rows = np.concatenate(parts)
    rows -= rows.mean(axis=0)
    weights = np.concatenate([_weights_of(source) for source in inputs.sources])
    n_further = len(rows) - len(parts[0])
    is_labeled = np.append(labels.is_labeled, np.zeros(n_further, dtype=bool))
    is_unlabeled = np.append(labels.is_marker, np.ones(n_further, dtype=bool))
    offsets = _labeled_offsets(
        rows[is_labeled],
        labels.labeled_codes,
        codes[is_labeled],
        weights[is_labeled],
        len(names),
    )
    weight_of_group = np.bincount(codes, weights * (is_labeled | is_unlabeled))
    weights_unlabeled = weights * is_unlabeled
    if weights_unlabeled.any():
        rows -= offsets[codes]
        fitted = _supervised_inputs(inputs, rows[: len(parts[0])])
        further = _further_offsets(rows, codes, weights_unlabeled, fitted, len(names))
        # They count by the share of the weight of a group that is unlabeled.
        share = np.bincount(codes, weights_unlabeled) / np.maximum(
            weight_of_group, _TINY
        )
        offsets = offsets + further * share[:, None]
    offsets = offsets - weight_of_group @ offsets / weight_of_group.sum()

    starts = np.cumsum([len(part) for part in parts[:-1]])
    opened = [
        replace(source, X=part - offsets[of_part])
        for source, part, of_part in zip(
            inputs.opened, parts, np.split(codes, starts), strict=True
        )
    ]
    with warnings.catch_warnings():
        # Those of the labels were given above.
        warnings.simplefilter("ignore")
        without_offsets = prepare_opened(opened, inputs.arguments, needs)
    return without_offsets, dict(zip(map(plain, names), offsets, strict=True))


def _group_codes(
    opened: Sequence[RowSource], groups: Sequence[Any]
) -> tuple[AnyArray, AnyArray]:
    """Return the distinct groups, and the code of the group of every row."""
    if [each is None for each in groups] != [False, len(opened) == 1]:
        raise ValueError(
            "groups must have the group of every row of X, and groups_unlabeled that "
            "of every row of X_unlabeled, if there are any: pass both, or neither."
        )
    arrays = []
    for source, values in zip(opened, groups, strict=False):
        if not source.is_in_memory:
            raise ValueError(
                f"{source.request.name} is read from its source or lies on a device, "
                "and offsets of groups are subtracted from rows in memory: pass an "
                "array of NumPy, or subtract the offsets first."
            )
        array = np.asarray(in_memory(values))
        check_lengths(**{source.request.name: source.X, "groups": array})
        if array.ndim != 1:
            raise ValueError(
                "groups must have one value for every row of "
                f"{source.request.name}, got an array of shape {array.shape}."
            )
        is_known = [not is_missing(value) for value in array.tolist()]
        if not all(is_known):
            raise ValueError(
                f"The groups of {source.request.name} have no value in row "
                f"{is_known.index(False)}: name one, or leave the row out."
            )
        arrays.append(array)
    try:
        names, codes = np.unique(np.concatenate(arrays), return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"groups must be of one kind, all numbers or all text: {error}."
        ) from None
    if not 1 < len(names) < len(codes):
        raise ValueError(
            "groups must have two values or more, which several rows share, got "
            f"{len(names):,} in {plural(len(codes), 'row')}: pass the speaker or the "
            "instrument of each row, or leave groups out."
        )
    return names, codes


def _labeled_offsets(
    rows: Array, codes: AnyArray, groups: AnyArray, weights: Array, n_groups: int
) -> Array:
    """Return offsets (G, d) by least squares, from rows whose classes are known.

    A row is the mean of its class plus the offset of its group. With the weight N of
    every group in every class, and its shares P in the columns of N, the normal
    equations without the class means are (diag(N 1) - P N') offsets = sums of the rows
    by group - P (sums of the rows by class). Groups without such rows get 0.
    """
    index = np.arange(len(rows))
    by_group = csr_array((weights, (groups, index)), shape=(n_groups, len(rows)))
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
    return np.asarray(inverse @ (by_group @ rows - shares @ (by_class @ rows)))


def _supervised_inputs(inputs: FitInputs, rows: Array) -> FitInputs:
    """Return the inputs of a supervised fit to the rows of X without offsets."""
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
    return prepare_opened([replace(inputs.opened[0], X=rows)], arguments, needs)


def _further_offsets(
    rows: Array, codes: AnyArray, weights: Array, fitted: FitInputs, n_groups: int
) -> Array:
    """Return the offsets (G, d) by which a supervised fit adapts to unlabeled rows."""
    view = fitted.view
    assert isinstance(view, Standardization)
    gaussians = supervised_fit(fitted.problem).model
    request = fitted.opened[0].request
    offsets = np.zeros((n_groups, rows.shape[1]))
    for group in np.unique(codes[weights > 0]):
        of_group = (codes == group) & (weights > 0)
        source = RowSource(rows[of_group], request, weights=weights[of_group])
        _, adaptation = adapt_gaussians(source.viewed(view), gaussians, OFFSET)
        offsets[group] = adaptation.offset * view.scale
    return offsets


def _weights_of(source: RowSource) -> Array:
    """Return the weights of all rows of a source."""
    return np.ones(source.n_rows) if source.weights is None else source.weights
