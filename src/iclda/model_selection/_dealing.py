"""Which labeled rows, or groups of them, are tested: counts and random numbers in, choices out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._core.types import AnyArray

# Groups are dealt out greedily; an unlucky order can strand a class, another order rarely does.
_ATTEMPTS = 30


def fold_of_rows(codes: AnyArray, n_folds: int, rng: np.random.RandomState) -> AnyArray:
    """Fold of every row: folds differ by at most one row, in all and in every class."""
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(len(codes), dtype=int)
    # The folds that get a row more than others are drawn too.
    folds[order] = rng.permutation(n_folds)[np.arange(len(codes)) % n_folds]
    return folds


def tested_rows(codes: AnyArray, n_tested: int, rng: np.random.RandomState) -> AnyArray:
    """Rows to test, in proportion to the classes, but neither none nor all of a class."""
    counts = np.bincount(codes)
    n_of_class = _in_proportion(counts, n_tested, rng)
    is_tested = np.zeros(len(codes), dtype=bool)
    for k, n in enumerate(n_of_class):
        is_tested[rng.permutation(np.flatnonzero(codes == k))[:n]] = True
    return is_tested


def _in_proportion(counts: AnyArray, n_tested: int, rng: np.random.RandomState) -> AnyArray:
    exact = n_tested * counts / counts.sum()
    rounded = np.floor(exact).astype(int)
    n_more = n_tested - rounded.sum()
    by_remainder = np.lexsort([rng.permutation(len(counts)), np.round(rounded - exact, 9)])
    rounded[by_remainder[:n_more]] += 1
    return np.clip(rounded, 1, counts - 1)


def fold_of_groups(counts: AnyArray, n_folds: int, rng: np.random.RandomState) -> AnyArray | None:
    """Fold of every group, ``counts`` its labeled rows by class; None if a class cannot train.

    Every fold gets a group. Classes are spread as evenly as whole groups allow.
    """

    def sizes_of(folds: AnyArray) -> AnyArray:
        return np.array([counts[folds == fold].sum(axis=0) for fold in range(n_folds)])

    return _best(lambda attempt: _dealt(counts, n_folds, rng, attempt), sizes_of, counts)


def _dealt(counts: AnyArray, n_folds: int, rng: np.random.RandomState, attempt: int) -> AnyArray:
    """Each group goes to the fold that has least of its classes, then fewest rows."""
    shares = counts / counts.sum(axis=0)
    order = rng.permutation(len(counts))
    if attempt == 0:  # large groups first: the small ones level out what these leave uneven
        order = order[np.argsort(-counts[order].sum(axis=1), kind="stable")]
    loads, sizes = np.zeros((n_folds, counts.shape[1])), np.zeros(n_folds)
    folds = np.empty(len(counts), dtype=int)
    for group in order:
        overlap = np.round(loads @ shares[group], 9)
        fold = np.lexsort([rng.permutation(n_folds), sizes, overlap])[0]
        folds[group] = fold
        loads[fold] += shares[group]
        sizes[fold] += counts[group].sum()
    return folds


def tested_groups(counts: AnyArray, share: float, rng: np.random.RandomState) -> AnyArray | None:
    """Groups with about a share of the labeled rows of every class; None if one cannot train."""

    def size_of(is_tested: AnyArray) -> AnyArray:
        return counts[is_tested].sum(axis=0)[None]

    return _best(lambda _: _drawn(counts, share, rng), size_of, counts)


def _drawn(counts: AnyArray, share: float, rng: np.random.RandomState) -> AnyArray:
    """In random order each group that brings the classes closer to the share; at least one."""
    shares = counts / counts.sum(axis=0)
    order = rng.permutation(len(counts))
    is_tested = np.zeros(len(counts), dtype=bool)
    lacking = np.full(counts.shape[1], share)
    for group in order:
        rest = lacking - shares[group]
        if np.square(rest).sum() < np.square(lacking).sum():
            is_tested[group] = True
            lacking = rest
    if not is_tested.any():  # every group is too large: one of those that are least so
        is_tested[order[np.square(shares[order] - share).sum(axis=1).round(9).argmin()]] = True
    return is_tested


def _best(
    draw: Callable[[int], AnyArray], sizes_of: Callable[[AnyArray], AnyArray], counts: AnyArray
) -> AnyArray | None:
    """The first draw in which every class trains and is tested, or else one in which all train."""
    totals, found = counts.sum(axis=0), None
    fewest_untested = np.inf
    for attempt in range(_ATTEMPTS):
        drawn = draw(attempt)
        tested = sizes_of(drawn)
        n_untested = int((tested == 0).sum())
        if (tested < totals).all() and n_untested < fewest_untested:
            found, fewest_untested = drawn, n_untested
        if fewest_untested == 0:
            break
    return found
