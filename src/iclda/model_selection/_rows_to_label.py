"""Which unlabeled rows to label next."""

from __future__ import annotations

import heapq
import warnings
from numbers import Integral
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from sklearn.utils import check_random_state

from .._core import AnyArray, Array
from .._estimators.labels import check_lengths, split_marker
from .._estimators.rows_reader import RowsReader
from .._messages import plural
from .._rows.backends import MANY_FEATURES, UnitLength, check_finite, in_memory
from ..methods import find_method

_ROWS_SAMPLED = 4_096  # unlabeled rows that are clustered
_ROWS_SAMPLED_A_LABEL = 4  # of the sample, if that is more
_MOST_CLUSTERED = (
    16_384  # unlabeled rows, whose distances take a gigabyte, or labeled ones
)
_LEAST_DOUBT = 1e-3  # of a row: none is without any weight


def rows_to_label(
    X: Any,
    n: int,
    y: Any = None,
    *,
    pending: Any = (),
    unlabeled: Any = -1,
    random_state: Any = None,
) -> AnyArray:
    """Choose the rows whose labels are worth most.

    Without labels they represent all rows: the rows, scaled to length 1 if there are 64 features
    or more, are joined into ``n`` clusters (Ward), and the row nearest to the mean of each is
    chosen. With labels, rows count by the doubt of a fit (``AverageLDA``) to them, 1 minus the
    margin of the two most probable classes, and clusters are split until ``n`` of them hold no
    label.

    Of many unlabeled rows a sample of 4,096, or of four for each label, is clustered.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows, labeled and unlabeled; or a source of rows: files, arrays on a device, Dask.
    n : int
        Number of rows to label, at most 8,192.
    y : array-like of shape (n_samples,), default=None
        Class of every row of X, or the marker ``unlabeled``. None: no row is labeled.
    pending : array-like of int, default=()
        Indices of rows that are being labeled: they are not chosen again, and what they represent
        counts as covered.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. None or NaN: a missing y is unlabeled.
    random_state : int, RandomState instance or None, default=None
        Draws the sample. None is a fixed seed: the same rows give the same choice.

    Returns
    -------
    rows : ndarray of shape (n,)
        Indices of unlabeled rows of X, in the order in which to label them.

    Examples
    --------
    >>> from iclda.model_selection import rows_to_label
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.3], [9.0]]
    >>> rows_to_label(X, 3)
    array([1, 4, 6])
    """
    reader = RowsReader(find_method("average").load_class()())
    source = reader.open(X, is_first=True)
    is_labeled, codes = _labels(y, unlabeled, source.n_rows)
    is_labeled[_indices(pending, source.n_rows)] = True
    open_rows = np.flatnonzero(~is_labeled)
    _check_number(n, len(open_rows), len(is_labeled), unlabeled)
    size = min(
        max(_ROWS_SAMPLED, _ROWS_SAMPLED_A_LABEL * n), _MOST_CLUSTERED, len(open_rows)
    )
    rng = check_random_state(0 if random_state is None else random_state)
    drawn = (
        open_rows
        if size == len(open_rows)
        else rng.choice(open_rows, size, replace=False)
    )
    is_held = np.zeros(len(is_labeled), dtype=bool)
    is_held[drawn] = True
    is_held[rng.permutation(np.flatnonzero(is_labeled))[:_MOST_CLUSTERED]] = True
    index = np.flatnonzero(is_held)
    rows = np.asarray(source.held(is_held).X, dtype=np.float64)
    check_finite(rows, "X", reader.feature_names, index=index)
    doubts = _doubts(rows, codes[index])
    if rows.shape[1] >= MANY_FEATURES:
        rows = UnitLength(rows.mean(axis=0))(rows)
    return index[_choose(rows, is_labeled[index], doubts, n)]


def _labels(y: Any, unlabeled: Any, n_rows: int) -> tuple[AnyArray, AnyArray]:
    """Whether each row is labeled, and its class code, -1 without a label."""
    codes = np.full(n_rows, -1)
    if y is None:
        return codes >= 0, codes
    y = in_memory(y)
    check_lengths(X=range(n_rows), y=y)
    present, is_marker = split_marker(y, unlabeled)
    codes[~is_marker] = np.unique(present, return_inverse=True)[1]
    return ~is_marker, codes


def _indices(pending: Any, n_rows: int) -> AnyArray:
    """Indices of rows as integers; ValueError for anything else."""
    found = np.atleast_1d(in_memory(pending))
    bad = found[(found < 0) | (found >= n_rows)] if found.dtype.kind in "iu" else found
    if bad.size:
        raise ValueError(
            f"pending must hold indices of rows, integers from 0 to {n_rows - 1:,}, got "
            f"{bad.ravel()[:3].tolist()}: numpy.flatnonzero turns a mask into them."
        )
    return found.astype(int)


def _check_number(n: Any, n_open: int, n_rows: int, unlabeled: Any) -> None:
    most = min(n_open, _MOST_CLUSTERED // 2)
    is_whole = isinstance(n, Integral) and not isinstance(n, bool)
    if not is_whole or not 1 <= int(n) <= most:
        marker = f"none is left to label. unlabeled={unlabeled!r} marks rows without a label in y"
        raise ValueError(
            f"n must be a whole number of rows to label, got {n!r}: {n_open:,} of "
            f"{plural(n_rows, 'row')} are neither labeled nor pending, so "
            f"{f'ask for 1 to {most:,}' if n_open else marker}."
        )


def _doubts(rows: Array, codes: AnyArray) -> Array:
    """1 minus the margin of the two most probable classes; 1 where no two classes are known."""
    doubts = np.ones(len(rows))
    if codes.max(initial=-1) < 1:
        return doubts
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # labels are few, which the caller is about to change
        fitted = find_method("average").load_class()().fit(rows, codes)
        shares = np.sort(fitted.predict_proba(rows), axis=1)
    return np.maximum(1 - (shares[:, -1] - shares[:, -2]), _LEAST_DOUBT)


def _choose(rows: Array, is_labeled: AnyArray, doubts: Array, n: int) -> AnyArray:
    """Positions of the ``n`` chosen rows; equal rows count as one while there are others."""
    distinct, firsts, copies = np.unique(
        rows, axis=0, return_index=True, return_inverse=True
    )
    has_label = np.zeros(len(distinct), dtype=bool)
    has_label[copies.ravel()[is_labeled]] = True
    if (~has_label).sum() <= n:
        others = np.setdiff1d(np.flatnonzero(~is_labeled), firsts[~has_label])
        return np.concatenate([firsts[~has_label], others])[:n]
    doubts = np.where(has_label, 0.0, doubts[firsts])
    chosen = []
    for own in _clusters_without_labels(distinct, has_label, doubts, n):
        center = doubts[own] @ distinct[own] / doubts[own].sum()
        nearest = own[((distinct[own] - center) ** 2).sum(axis=1).argmin()]
        chosen.append((-doubts[own].sum(), nearest))
    return np.array([firsts[nearest] for _, nearest in sorted(chosen)])


def _clusters_without_labels(
    rows: Array, has_label: AnyArray, doubts: Array, n: int
) -> list[AnyArray]:
    """Split all rows in two, and parts of them, until ``n`` parts hold no label.

    The tree is Ward's. The part to be split is that whose split lowers the squared distances to
    the means of the parts most, times the mean doubt of its rows.
    """
    n_rows, merges = len(rows), linkage(rows, "ward")
    children = merges[:, :2].astype(int)
    n_labels, doubt = (
        np.concatenate([each, np.zeros(n_rows - 1)]) for each in (has_label, doubts)
    )
    for k, pair in enumerate(children, start=n_rows):
        n_labels[k], doubt[k] = n_labels[pair].sum(), doubt[pair].sum()
    gains = np.zeros(2 * n_rows - 1)  # a single row is not split
    gains[n_rows:] = np.maximum(
        merges[:, 2] ** 2 * doubt[n_rows:] / merges[:, 3], 1e-300
    )
    root = 2 * n_rows - 2
    parts, n_open = [(-gains[root], root)], int(n_labels[root] == 0)
    while n_open < n:
        _, part = heapq.heappop(parts)
        for child in children[part - n_rows]:
            heapq.heappush(parts, (-gains[child], int(child)))
        n_open += int(
            (n_labels[children[part - n_rows]] == 0).sum() - (n_labels[part] == 0)
        )
    owners = np.full(
        2 * n_rows - 1, -1
    )  # the open part that a node of the tree belongs to
    owners[[part for _, part in parts if n_labels[part] == 0]] = np.arange(n_open)
    for node in range(root, n_rows - 1, -1):
        if owners[node] >= 0:
            owners[children[node - n_rows]] = owners[node]
    return [np.flatnonzero(owners[:n_rows] == part) for part in range(n_open)]
