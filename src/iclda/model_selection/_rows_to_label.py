"""Which unlabeled rows to label next."""

from __future__ import annotations

import heapq
import warnings
from typing import Any

import numpy as np
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

# Unlabeled rows to choose from: this number, or so many for each label if that is
# more ...
_SAMPLED_ROWS = 4_096
_SAMPLED_ROWS_PER_LABEL = 4
# ... up to this number, whose pairs take a gigabyte. As many labeled rows are used.
_MAX_SAMPLED_ROWS = 11_585
# Largest number of rows to choose.
_MAX_CHOSEN_ROWS = 8_192
# Smallest doubt about the class of a row, so that every row has some weight.
_MIN_DOUBT = 1e-3
# Rows of known classes rarely have a smaller p-value.
_P_VALUE_OF_UNKNOWN = 0.05


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

    The chosen rows represent all rows: one by one, the row is chosen that raises their
    coverage most. A row is covered by the nearest row that is labeled or chosen, from 0
    to 1, by a Gaussian kernel that narrows as there are more labels. Rows are scaled to
    length 1 if they are features of a network. Once there are labels, rows are weighted
    by the doubt of a fit (``AverageLDA``) about them, 1 minus the margin of the two
    most probable classes, to a power that grows with the number of labels of a class
    from 0, with one label, to 1.

    Of many unlabeled rows a sample of 4,096, or of four for each label, is looked at.

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
    array([3, 1, 6])
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
    if unknown and codes.max(initial=-1) >= 1:
        weights = _weights_of_unknown(rows, codes[index])
    else:
        weights = _weights(rows, codes[index])
    rows = _in_range(rows)
    if are_network_features(rows):
        scale = UnitLength(rows.mean(axis=0))
        rows = scale(rows)
    chosen = _choose(rows, is_labeled[index], weights, n)
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
    largest = min(n_open, _MAX_CHOSEN_ROWS)
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
    """Return a mask of the unlabeled and labeled rows to look at."""
    unlabeled = np.flatnonzero(~is_labeled)
    wanted = max(_SAMPLED_ROWS, _SAMPLED_ROWS_PER_LABEL * n)
    n_drawn = min(wanted, _MAX_SAMPLED_ROWS, len(unlabeled))
    if n_drawn < len(unlabeled):
        unlabeled = rng.choice(unlabeled, n_drawn, replace=False)
    labeled = rng.permutation(np.flatnonzero(is_labeled))
    labeled = labeled[:_MAX_SAMPLED_ROWS]
    is_drawn = np.zeros(len(is_labeled), dtype=bool)
    is_drawn[unlabeled] = True
    is_drawn[labeled] = True
    return is_drawn


def _weights(rows: Array, codes: AnyArray) -> Array:
    """Return how much every row is worth: the doubt about its class to some power.

    Doubt is 1 minus the margin of the two most probable classes of a fit. The fewer
    labels of a class there are, the more this misleads: the power is the share of the
    labels that are not the first one of a class. All weights are 1 if fewer than two
    classes are known.
    """
    n_classes = codes.max(initial=-1) + 1
    if n_classes < 2:
        return np.ones(len(rows))
    with warnings.catch_warnings():
        # Labels are few, which the caller is about to change.
        warnings.simplefilter("ignore")
        fitted = _unfitted_average().fit(rows, codes)
        shares = np.sort(fitted.predict_proba(rows), axis=1)
    doubts = 1 - (shares[:, -1] - shares[:, -2])
    power = 1 - n_classes / np.count_nonzero(codes >= 0)
    return np.maximum(doubts, _MIN_DOUBT) ** power


def _weights_of_unknown(rows: Array, codes: AnyArray) -> Array:
    """Return weights that are 1 for rows that resemble no class.

    Those of others fall with the square of their p-values.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        novelty = _unfitted_average().fit(rows, codes).novelty(rows)
    return np.minimum((_P_VALUE_OF_UNKNOWN / (1 - novelty)) ** 2, 1.0)


def _in_range(rows: Array) -> Array:
    """Return rows divided by a power of two, so that all values are between -1 and 1.

    Squares of very large or small values would overflow or vanish. No digit is lost.
    """
    _, exponent = np.frexp(np.abs(rows).max())
    return np.ldexp(rows, -exponent)


def _choose(rows: Array, is_labeled: AnyArray, weights: Array, n: int) -> AnyArray:
    """Return the positions of the ``n`` chosen rows, the most valuable one first.

    A row is covered by the nearest labeled or chosen one, from 0 (far) to 1 (equal), by
    a Gaussian kernel. Its squared width is half the mean squared distance of two rows
    or, with labels, of a row to the nearest labeled one. The next row is the one that
    raises the weighted sum of the coverage of unlabeled rows most. So equal rows count
    as one as long as there are others.
    """
    unlabeled = np.flatnonzero(~is_labeled)
    weights = weights[unlabeled]
    # Far from zero, distances would lose their digits.
    rows = rows - rows.mean(axis=0)
    distances = _squared_distances(rows[unlabeled], rows[unlabeled])
    to_nearest = np.full(len(unlabeled), np.inf)
    mean_distance = distances.mean()
    if is_labeled.any():
        to_labeled = _squared_distances(rows[unlabeled], rows[is_labeled])
        to_nearest = to_labeled.min(axis=1)
        # The more labels there are, the closer a row must be to count as covered.
        mean_distance = to_nearest.mean()
    # It is zero if all rows are equal.
    width = mean_distance / 2 or 1.0
    covered = np.exp(-to_nearest / width)
    # In place, because there are many pairs.
    distances /= -width
    nearness = np.exp(distances, out=distances)

    def gain_of(i: int) -> float:
        # Rows that are nearest to each other gain the same. Of rounded gains, the first
        # is chosen whatever the order of summation.
        return float(np.float32(weights @ np.maximum(nearness[i] - covered, 0)))

    # A gain can only fall while rows are covered: one computed before is a bound. A
    # heap has the smallest entry first, which is the largest bound.
    heap = [(-gain_of(i), i) for i in range(len(unlabeled))]
    heapq.heapify(heap)
    chosen: list[int] = []
    while len(chosen) < n:
        _, i = heapq.heappop(heap)
        entry = (-gain_of(i), i)
        if heap and entry > heap[0]:
            heapq.heappush(heap, entry)
            continue
        chosen.append(i)
        covered = np.maximum(covered, nearness[i])
    return unlabeled[chosen]


def _squared_distances(rows: Array, others: Array) -> Array:
    """Return the squared distance of every row to every other one."""
    distances = rows @ others.T
    distances *= -2
    distances += (rows**2).sum(axis=1)[:, None]
    distances += (others**2).sum(axis=1)
    # Rounding may make some negative.
    return np.maximum(distances, 0, out=distances)
