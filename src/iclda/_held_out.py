"""Predictions of labeled rows by fits without their labels: the cross-validation.

Labeled rows are divided into folds, and the rows of each fold are predicted by a fit
that does not know their labels:

    folds = stratified_folds(codes, 5, check_random_state(0))
    probabilities = predict_held_out(fit_and_predict, folds)

A row that occurs several times is tested once, by fits to none of its copies
(``find_copies``).

What such predictions say of the error on new rows is the subject of
``_error_estimate.py``. Fits are run by one loop, ``attempt_fits``. It returns an error
that a fit raises on purpose (``FitError``) as a value, so that a caller who compares
methods can go on without the one that failed; any other error is a mistake and is
raised.

Studies have a loop of their own (``studies/engine.py``): every fit of theirs is stored,
and an interrupted run continues.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from math import prod
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from ._core import AnyArray, Array
from ._messages import FitError
from ._rows import unreported

_Fitted = TypeVar("_Fitted")
Failure = TypeVar("Failure", bound=Exception)

# The fold of rows that are never tested: they train every fit.
NO_FOLD = -1

# Equal rows are copies if at most this many pairs of equal rows are expected by chance.
_MAX_EXPECTED_PAIRS = 0.01

# This many distinct rows do not occur equally often by chance.
_MIN_DISTINCT_ROWS = 10


class Split(NamedTuple):
    """Indices of the rows whose labels a fit may use, and of the rows to predict."""

    train: AnyArray
    test: AnyArray


def splits_of(folds: AnyArray) -> list[Split]:
    """Return the split of every fold; ``folds`` has the fold of every row."""
    splits = []
    for fold in np.unique(folds[folds != NO_FOLD]):
        is_test = folds == fold
        train = np.flatnonzero(~is_test)
        test = np.flatnonzero(is_test)
        splits.append(Split(train, test))
    return splits


def attempt_fits(
    fit: Callable[..., _Fitted],
    cases: Iterable[tuple[Any, ...]],
    *,
    caught: type[Failure],
    n_jobs: int | None = 1,
) -> list[_Fitted | Failure]:
    """Call a function for every case; return its results, or the errors it raised.

    A case is a tuple of arguments, such as a ``Split``. Errors of another class than
    ``caught`` are raised.
    """
    if n_jobs == 1:
        # Small fits take hardly longer than what joblib adds to each.
        return [_attempt(fit, case, caught) for case in cases]
    jobs = (delayed(_attempt)(fit, case, caught) for case in cases)
    return list(Parallel(n_jobs=n_jobs)(jobs))


def _attempt(
    fit: Callable[..., _Fitted], case: tuple[Any, ...], caught: type[Failure]
) -> _Fitted | Failure:
    try:
        return fit(*case)
    except caught as error:
        return error


def predict_held_out(
    fit_and_predict: Callable[[AnyArray, AnyArray], AnyArray], folds: AnyArray
) -> AnyArray | FitError:
    """Predict the rows of every fold by a fit without their labels.

    Parameters
    ----------
    fit_and_predict : callable
        Takes the indices of a ``Split``, and returns an array with a prediction for
        every row to test. Its warnings are not shown, because the fit to all rows
        repeats what matters, and neither is its progress.
    folds : ndarray of shape (n_rows,)
        Fold of every row, or ``NO_FOLD``.

    Returns
    -------
    predictions : ndarray of shape (n_tested, ...) or FitError
        Predictions of the rows that have a fold, in their order; or the error of the
        first fold that could not be fitted.
    """
    splits = splits_of(folds)
    with warnings.catch_warnings(), unreported():
        warnings.simplefilter("ignore")
        results = attempt_fits(fit_and_predict, splits, caught=FitError)
    predictions = []
    for result in results:
        if isinstance(result, FitError):
            return result
        predictions.append(result)
    # Predictions come fold by fold: put them into the order of the rows.
    rows = np.concatenate([split.test for split in splits])
    order = np.argsort(rows)
    return np.concatenate(predictions)[order]


def stratified_folds(
    codes: AnyArray, n_folds: int, rng: np.random.RandomState
) -> AnyArray:
    """Draw folds that differ by at most one row, in all and in every class."""
    # Rows in a random order within their class are dealt to the folds in turn. The
    # dealing goes on from class to class, so that folds are alike in all rows, too.
    n_rows = len(codes)
    shuffled = rng.permutation(n_rows)
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    # Which folds get a row more than others is random too.
    fold_of_turn = rng.permutation(n_folds)
    turns = np.arange(n_rows) % n_folds
    folds = np.empty(n_rows, dtype=int)
    folds[order] = fold_of_turn[turns]
    return folds


def shuffled_folds(n_rows: int, n_folds: int, rng: np.random.Generator) -> AnyArray:
    """Draw folds that differ by at most one row, whatever the classes are."""
    return rng.permutation(n_rows) % n_folds


def ranked_folds(codes: AnyArray, keys: Array, max_folds: int) -> AnyArray:
    """Deal the rows of every class to folds in the order of their keys.

    Nothing is drawn: the folds do not depend on the order of the rows, and rows with
    equal keys are in one fold. Classes with a single key have no fold.
    """
    folds = np.full(len(codes), NO_FOLD)
    for code in np.unique(codes):
        of_class = np.flatnonzero(codes == code)
        _, ranks = np.unique(keys[of_class], return_inverse=True)
        if ranks.max() > 0:
            folds[of_class] = ranks % max_folds
    return folds


def draw_labeled(
    codes: AnyArray, candidates: AnyArray, max_rows: int, seed: int
) -> AnyArray:
    """Draw at most ``max_rows`` of the candidates, with at least one of every class."""
    if len(candidates) <= max_rows:
        return candidates
    shuffled = np.random.default_rng(seed).permutation(candidates)
    # The first one of every class, then others.
    _, firsts = np.unique(codes[shuffled], return_index=True)
    others = np.delete(shuffled, firsts)
    ordered = np.concatenate([shuffled[firsts], others])
    return ordered[:max_rows]


def find_copies(keys: AnyArray, columns: Iterable[AnyArray]) -> AnyArray:
    """Return the index of the first copy of every row; its own if it has no copies.

    A row must not be tested by a fit to its copy. ``keys`` are equal where rows and
    their labels are; ``columns`` has, for every column, how often each of its values
    occurs. Equal rows are copies if independent columns would hardly make any two rows
    equal, or if all rows occur equally often, as in a table that was written twice.
    """
    # Equal rows have one number, and ``counts`` says how many rows have it.
    _, numbers, counts = np.unique(keys, return_inverse=True, return_counts=True)
    n_rows = len(keys)
    own = np.arange(n_rows)
    if len(counts) == n_rows:
        return own
    n_tables = _times_written(counts)
    if n_tables == 1 and _expected_pairs(columns, n_rows) > _MAX_EXPECTED_PAIRS:
        return own
    # Six equal rows of a table that was written three times are two rows with three
    # copies each: only groups of ``n_copies`` equal rows are copies.
    n_copies = n_tables if n_tables > 1 else n_rows
    # In this order equal rows follow each other, the earlier ones first.
    order = np.argsort(numbers, kind="stable")
    starts = np.cumsum(counts) - counts
    rank_among_equal = own - np.repeat(starts, counts)
    rank_among_copies = rank_among_equal % n_copies
    first = np.empty(n_rows, dtype=int)
    first[order] = order[own - rank_among_copies]
    return first


def _times_written(counts: AnyArray) -> int:
    """Return how often a table was written, if every row occurs a multiple of that.

    ``counts`` is how often each distinct row occurs. Few distinct rows say nothing: the
    answer is once.
    """
    if len(counts) < _MIN_DISTINCT_ROWS:
        return 1
    return int(np.gcd.reduce(counts))


def _expected_pairs(columns: Iterable[AnyArray], n_rows: int) -> float:
    """Return how many pairs of rows would be equal by chance in independent columns."""
    # Two rows agree in a column with the sum of the squared shares of its values.
    chance = prod(float(np.square(counts / n_rows).sum()) for counts in columns)
    return chance * n_rows * (n_rows - 1) / 2


class DistinctRows(NamedTuple):
    """Labeled rows without copies, their codes, and the weights of all copies.

    ``positions`` has, for every row with its copies, the position of the row that
    stayed.
    """

    rows: Array
    codes: AnyArray
    weights: Array
    positions: AnyArray


def merge_copies(rows: Array, codes: AnyArray, weights: Array) -> DistinctRows:
    """Return every labeled row once."""
    # Adding 0.0 turns -0.0 into 0.0, so that equal numbers have equal bytes.
    cells = np.ascontiguousarray(np.column_stack([codes, rows]) + 0.0)
    bytes_of_row = np.dtype((np.void, cells.strides[0]))
    keys = cells.view(bytes_of_row).ravel()
    value_counts = (np.unique(column, return_counts=True)[1] for column in rows.T)
    first = find_copies(keys, value_counts)
    # The first copy of a row stays, with the weights of all.
    kept = np.unique(first)
    summed_weights = np.bincount(first, weights)
    positions = np.searchsorted(kept, first)
    return DistinctRows(rows[kept], codes[kept], summed_weights[kept], positions)
