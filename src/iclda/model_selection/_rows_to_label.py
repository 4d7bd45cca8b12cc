"""Which unlabeled rows to label next."""

from __future__ import annotations

import heapq
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from sklearn.utils import check_random_state

from .._core import AnyArray, Array
from .._estimators.labels import check_lengths, split_marker
from .._estimators.rows_reader import RowsReader
from .._messages import plural
from .._rows.checks import check_finite
from .._rows.kinds import in_memory
from .._rows.network_features import are_network_features
from .._rows.views import UnitLength
from ..methods import find_method
from ._splitters import is_whole

# Unlabeled rows that are clustered: this number, or so many for each label if that is
# more ...
_SAMPLED_ROWS = 4_096
_SAMPLED_ROWS_PER_LABEL = 4
# ... up to this number, whose distances take a gigabyte. As many labeled rows are used.
_MAX_CLUSTERED_ROWS = 16_384
# Smallest doubt about the class of a row, so that every row has some weight.
_MIN_DOUBT = 1e-3
# Rows of known classes rarely have a smaller p-value.
_P_VALUE_OF_UNKNOWN = 0.05
# Smallest gain of a split, so that equal rows are split, too.
_MIN_GAIN = 1e-300


def rows_to_label(
    X: Any,
    n: int,
    y: Any = None,
    *,
    pending: Any = (),
    unlabeled: Any = -1,
    unknown: bool = False,
    random_state: Any = None,
) -> AnyArray:
    """Choose the rows whose labels are worth most.

    Without labels the chosen rows represent all rows: the rows, scaled to length 1 if
    there are 64 features or more, are joined into ``n`` clusters (Ward), and the row
    nearest to the mean of each is chosen. With labels, rows are weighted by the doubt
    of a fit (``AverageLDA``) about them, 1 minus the margin of the two most probable
    classes, and clusters are split until ``n`` of them hold no label.

    Of many unlabeled rows a sample of 4,096, or of four for each label, is clustered.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows, labeled and unlabeled; or a source of rows: files, arrays on a device,
        Dask.
    n : int
        Number of rows to label, at most 8,192.
    y : array-like of shape (n_samples,), default=None
        Class of every row of X, or the marker ``unlabeled``. None: no row is labeled.
    pending : array-like of int, default=()
        Indices of rows that are being labeled: they are not chosen again, and what they
        represent counts as covered.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. A missing y, None or NaN, is always unlabeled.
    unknown : bool, default=False
        Whether rows that resemble none of the classes come first: their ``novelty``
        takes the place of the doubt. It needs labels of two classes.
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
    # Rows are read as the classifier that judges them reads them.
    reader = RowsReader(_unfitted_average())
    source = reader.open(X, is_first=True)
    is_labeled, codes = _labels(y, unlabeled, source.n_rows)
    # A pending row has no class yet, but what it represents is covered.
    is_labeled[_indices(pending, source.n_rows)] = True
    _check_number(n, is_labeled, unlabeled)

    rng = check_random_state(0 if random_state is None else random_state)
    is_drawn = _draw_rows(is_labeled, n, rng)
    # From here on, rows are those drawn, and ``index`` has their indices in X.
    index = np.flatnonzero(is_drawn)
    rows = np.asarray(source.held(is_drawn).X, dtype=np.float64)
    check_finite(rows, "X", reader.feature_names, index=index)
    doubts = _doubts(rows, codes[index])
    if unknown and codes.max(initial=-1) >= 1:
        doubts = _weights_of_unknown(rows, codes[index])
    if are_network_features(rows):
        scale = UnitLength(rows.mean(axis=0))
        rows = scale(rows)
    chosen = _choose(rows, is_labeled[index], doubts, n)
    return index[chosen]


def _unfitted_average() -> Any:
    """Return the classifier whose doubt about the rows counts."""
    return find_method("average").load_class()()


def _labels(y: Any, unlabeled: Any, n_rows: int) -> tuple[AnyArray, AnyArray]:
    """Return whether each row is labeled, and its class code, -1 without a label."""
    codes = np.full(n_rows, -1)
    if y is None:
        return codes >= 0, codes
    y = in_memory(y)
    check_lengths(X=range(n_rows), y=y)
    present, is_marker = split_marker(y, unlabeled)
    codes[~is_marker] = np.unique(present, return_inverse=True)[1]
    return ~is_marker, codes


def _indices(pending: Any, n_rows: int) -> AnyArray:
    """Return indices of rows as integers; anything else raises ValueError."""
    given = np.atleast_1d(in_memory(pending))
    # Of another type, such as a mask, all values are wrong.
    wrong = given
    if given.dtype.kind in "iu":
        wrong = given[(given < 0) | (given >= n_rows)]
    if wrong.size:
        raise ValueError(
            "pending must hold indices of rows, integers from 0 to "
            f"{n_rows - 1:,}, got {wrong.ravel()[:3].tolist()}: numpy.flatnonzero "
            "turns a mask into them."
        )
    return given.astype(int)


def _check_number(n: Any, is_labeled: AnyArray, unlabeled: Any) -> None:
    """Raise ValueError unless ``n`` rows can be chosen; pending ones are labeled."""
    n_open = int(np.count_nonzero(~is_labeled))
    largest = min(n_open, _MAX_CLUSTERED_ROWS // 2)
    if is_whole(n) and 1 <= int(n) <= largest:
        return
    way_out = f"ask for 1 to {largest:,}"
    if not n_open:
        way_out = (
            f"none is left to label. unlabeled={unlabeled!r} marks rows without a "
            "label in y"
        )
    raise ValueError(
        f"n must be a whole number of rows to label, got {n!r}: {n_open:,} of "
        f"{plural(len(is_labeled), 'row')} are neither labeled nor pending, so "
        f"{way_out}."
    )


def _draw_rows(is_labeled: AnyArray, n: int, rng: np.random.RandomState) -> AnyArray:
    """Return a mask of the unlabeled and labeled rows to cluster."""
    unlabeled = np.flatnonzero(~is_labeled)
    wanted = max(_SAMPLED_ROWS, _SAMPLED_ROWS_PER_LABEL * n)
    n_drawn = min(wanted, _MAX_CLUSTERED_ROWS, len(unlabeled))
    if n_drawn < len(unlabeled):
        unlabeled = rng.choice(unlabeled, n_drawn, replace=False)
    labeled = rng.permutation(np.flatnonzero(is_labeled))
    labeled = labeled[:_MAX_CLUSTERED_ROWS]
    is_drawn = np.zeros(len(is_labeled), dtype=bool)
    is_drawn[unlabeled] = True
    is_drawn[labeled] = True
    return is_drawn


def _doubts(rows: Array, codes: AnyArray) -> Array:
    """Return 1 minus the margin of the two most probable classes of every row.

    It is 1 if fewer than two classes are known.
    """
    doubts = np.ones(len(rows))
    if codes.max(initial=-1) < 1:
        return doubts
    with warnings.catch_warnings():
        # Labels are few, which the caller is about to change.
        warnings.simplefilter("ignore")
        fitted = _unfitted_average().fit(rows, codes)
        shares = np.sort(fitted.predict_proba(rows), axis=1)
    margins = shares[:, -1] - shares[:, -2]
    return np.maximum(1 - margins, _MIN_DOUBT)


def _weights_of_unknown(rows: Array, codes: AnyArray) -> Array:
    """Return weights that are 1 for rows that resemble no class.

    Those of others fall with the square of their p-values.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        novelty = _unfitted_average().fit(rows, codes).novelty(rows)
    return np.minimum((_P_VALUE_OF_UNKNOWN / (1 - novelty)) ** 2, 1.0)


def _choose(rows: Array, is_labeled: AnyArray, doubts: Array, n: int) -> AnyArray:
    """Return the positions of the ``n`` chosen rows.

    Equal rows count as one as long as there are others.
    """
    # The position of the first copy of every distinct row, and of every row the number
    # of its distinct row.
    distinct, firsts, numbers = np.unique(
        rows, axis=0, return_index=True, return_inverse=True
    )
    has_label = np.zeros(len(distinct), dtype=bool)
    has_label[numbers.ravel()[is_labeled]] = True
    n_distinct_unlabeled = int((~has_label).sum())
    if n_distinct_unlabeled <= n:
        # All of them are chosen, and then further copies.
        unlabeled = firsts[~has_label]
        others = np.setdiff1d(np.flatnonzero(~is_labeled), unlabeled)
        return np.concatenate([unlabeled, others])[:n]

    # Nothing is in doubt where a label is known.
    doubts = np.where(has_label, 0.0, doubts[firsts])
    chosen = []
    for members in _clusters_without_labels(distinct, has_label, doubts, n):
        doubt_in_cluster = doubts[members].sum()
        nearest = _nearest_to_mean(distinct[members], doubts[members])
        chosen.append((-doubt_in_cluster, members[nearest]))
    # Clusters with more doubt come first.
    return np.array([firsts[number] for _, number in sorted(chosen)])


def _nearest_to_mean(rows: Array, weights: Array) -> int:
    """Return the position of the row that is nearest to the weighted mean."""
    center = weights @ rows / weights.sum()
    squared_distances = ((rows - center) ** 2).sum(axis=1)
    return int(squared_distances.argmin())


@dataclass(frozen=True)
class _Tree:
    """Ward's tree of rows, each node of which is a part of them.

    Node i < n_rows is row i, and node n_rows + k joins the two nodes of merge k. The
    last node has all rows.

    Attributes
    ----------
    children : ndarray of shape (n_merges, 2)
        The two nodes of every merge.
    is_unlabeled : ndarray of shape (n_nodes,)
        Whether no row of the node has a label.
    gains : ndarray of shape (n_nodes,)
        How much the squared distances of the rows to the means of their parts fall if
        the node is split, times the mean doubt of its rows, up to a common factor; 0
        for a single row.
    """

    children: AnyArray
    is_unlabeled: AnyArray
    gains: Array

    @classmethod
    def of_rows(cls, rows: Array, has_label: AnyArray, doubts: Array) -> _Tree:
        """Join rows that have labels or not, and doubts, 0 for those with labels."""
        n_rows = len(rows)
        merges = linkage(rows, "ward")
        n_nodes = n_rows + len(merges)
        children = merges[:, :2].astype(int)
        merge_lengths = merges[:, 2]
        n_members = merges[:, 3]

        # A merge comes after those of its two nodes: their sums are known.
        n_labels = np.zeros(n_nodes)
        n_labels[:n_rows] = has_label
        doubt_sums = np.zeros(n_nodes)
        doubt_sums[:n_rows] = doubts
        for node, pair in enumerate(children, start=n_rows):
            n_labels[node] = n_labels[pair].sum()
            doubt_sums[node] = doubt_sums[pair].sum()

        # The squared distances fall by half the squared length of the merge. The factor
        # is the same for all nodes, and left out.
        gains = np.zeros(n_nodes)
        gains_of_merges = merge_lengths**2 * doubt_sums[n_rows:] / n_members
        gains[n_rows:] = np.maximum(gains_of_merges, _MIN_GAIN)
        return cls(children, n_labels == 0, gains)

    @property
    def n_rows(self) -> int:
        return len(self.gains) - len(self.children)

    @property
    def root(self) -> int:
        return len(self.gains) - 1

    def children_of(self, node: int) -> AnyArray:
        """Return the two nodes that a node joins; it is not a single row."""
        return self.children[node - self.n_rows]


def _clusters_without_labels(
    rows: Array, has_label: AnyArray, doubts: Array, n: int
) -> list[AnyArray]:
    """Split all rows in two, and parts of them, until ``n`` parts hold no label.

    The splits are those of Ward's tree. The next part to be split is the one with the
    largest gain. Returns the rows of these ``n`` parts.
    """
    tree = _Tree.of_rows(rows, has_label, doubts)
    # A heap has the smallest entry first, which is the part of the largest gain.
    heap = [(-tree.gains[tree.root], tree.root)]
    n_unlabeled_parts = int(tree.is_unlabeled[tree.root])
    while n_unlabeled_parts < n:
        _, part = heapq.heappop(heap)
        n_unlabeled_parts -= int(tree.is_unlabeled[part])
        for child in tree.children_of(part).tolist():
            heapq.heappush(heap, (-tree.gains[child], child))
            n_unlabeled_parts += int(tree.is_unlabeled[child])
    parts = [part for _, part in heap if tree.is_unlabeled[part]]
    return _rows_of_parts(tree, parts)


def _rows_of_parts(tree: _Tree, parts: list[int]) -> list[AnyArray]:
    """Return the rows of every part, which is given by its node."""
    # Number the parts, and pass the numbers down to their rows.
    number_of = np.full(len(tree.gains), -1)
    number_of[parts] = np.arange(len(parts))
    for node in range(tree.root, tree.n_rows - 1, -1):
        if number_of[node] >= 0:
            number_of[tree.children_of(node)] = number_of[node]
    numbers_of_rows = number_of[: tree.n_rows]
    return [np.flatnonzero(numbers_of_rows == k) for k in range(len(parts))]
