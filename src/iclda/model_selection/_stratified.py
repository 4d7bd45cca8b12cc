"""Which labeled rows, or groups of them, are tested: counts and random numbers in, choices out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import AnyArray
from .._estimators.labels import Labels, plain, split_marker

# Groups are assigned greedily: some orders leave a class without training rows, most do not.
_ATTEMPTS = 30
_NO_LABELED_GROUP = -1


def fold_of_rows(codes: AnyArray, n_folds: int, rng: np.random.RandomState) -> AnyArray:
    """Fold of every row: folds differ by at most one row, in all and in every class."""
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(len(codes), dtype=int)
    # Which folds get a row more than others is random too.
    folds[order] = rng.permutation(n_folds)[np.arange(len(codes)) % n_folds]
    return folds


def tested_rows(codes: AnyArray, n_tested: int, rng: np.random.RandomState) -> AnyArray:
    """Rows to test, in proportion to the classes, but neither none nor all of a class."""
    counts = np.bincount(codes)
    exact = n_tested * counts / counts.sum()
    n_of_class = np.floor(exact).astype(int)
    by_remainder = np.lexsort([rng.permutation(len(counts)), np.round(n_of_class - exact, 9)])
    n_of_class[by_remainder[: n_tested - n_of_class.sum()]] += 1
    is_tested = np.zeros(len(codes), dtype=bool)
    for k, n in enumerate(np.clip(n_of_class, 1, counts - 1)):
        is_tested[rng.permutation(np.flatnonzero(codes == k))[:n]] = True
    return is_tested


@dataclass(frozen=True)
class LabeledGroups:
    """Groups with labeled rows.

    ``codes`` has the index of its group for every row, labeled or not; -1 where the row has no
    group or its group no labeled row. ``counts`` holds labeled rows by group and class.
    """

    names: AnyArray
    codes: AnyArray
    counts: AnyArray

    def contains(self, is_chosen: AnyArray) -> AnyArray:
        """Which rows belong to the chosen groups."""
        return (self.codes != _NO_LABELED_GROUP) & is_chosen[self.codes]


def find_labeled_groups(groups: Any, labels: Labels) -> LabeledGroups:
    """Groups that hold labeled rows; ``groups`` has one entry a row, maybe none if unlabeled."""
    present, is_absent = split_marker(groups, None, name="groups")
    lacking = np.flatnonzero(is_absent & labels.is_labeled)
    if len(lacking):
        raise ValueError(
            f"groups is missing (None or NaN) for {len(lacking)} labeled rows, first for row "
            f"{int(lacking[0])}. Only unlabeled rows may lack a group: name a group for every "
            "labeled row, one of its own if it belongs to none."
        )
    names, present_codes = np.unique(present, return_inverse=True)
    counts = np.zeros((len(names), len(labels.classes)), dtype=int)
    is_labeled = labels.is_labeled[~is_absent]
    np.add.at(counts, (present_codes[is_labeled], labels.codes[labels.is_labeled]), 1)
    used = np.flatnonzero(counts.sum(axis=1))
    index = np.full(len(names), _NO_LABELED_GROUP)
    index[used] = np.arange(len(used))
    codes = np.full(len(labels.codes), _NO_LABELED_GROUP)
    codes[~is_absent] = index[present_codes]
    return LabeledGroups(names[used], codes, counts[used])


def check_two_groups(classes: AnyArray, groups: LabeledGroups) -> None:
    """Every class is labeled in two groups, one to train on while the other is tested."""
    n_groups = (groups.counts > 0).sum(axis=0)
    k = int(n_groups.argmin())
    if n_groups[k] < 2:
        only = plain(groups.names[np.argmax(groups.counts[:, k] > 0)])
        raise ValueError(
            f"All {groups.counts[:, k].sum()} labeled rows of class {plain(classes[k])!r} are in "
            f"group {only!r}, so that none is left to train on when it is tested: label rows of "
            "the class in another group, or split without groups."
        )


def fold_of_groups(counts: AnyArray, n_folds: int, rng: np.random.RandomState) -> AnyArray | None:
    """Fold of every group, ``counts`` its labeled rows by class; None if a class cannot train.

    Every fold gets a group. Classes are spread as evenly as whole groups allow.
    """

    def assign(attempt: int) -> tuple[AnyArray, AnyArray]:
        folds = _assign_groups(counts, n_folds, rng, large_first=attempt == 0)
        return folds, np.array([counts[folds == fold].sum(axis=0) for fold in range(n_folds)])

    return _best(assign, counts.sum(axis=0))


def _assign_groups(
    counts: AnyArray, n_folds: int, rng: np.random.RandomState, *, large_first: bool
) -> AnyArray:
    """Each group goes to the fold that has least of its classes, then fewest rows."""
    shares = counts / counts.sum(axis=0)
    order = rng.permutation(len(counts))
    if large_first:  # the small ones then level out what these leave uneven
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

    def draw(_: int) -> tuple[AnyArray, AnyArray]:
        is_tested = _draw_groups(counts, share, rng)
        return is_tested, counts[is_tested].sum(axis=0)[None]

    return _best(draw, counts.sum(axis=0))


def _draw_groups(counts: AnyArray, share: float, rng: np.random.RandomState) -> AnyArray:
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


def _best(draw: Callable[[int], tuple[AnyArray, AnyArray]], totals: AnyArray) -> AnyArray | None:
    """The first draw in which every class trains and is tested, or else one in which all train.

    ``draw`` returns a choice and the labeled rows by test and class; ``totals`` are those by class.
    """
    best, fewest_untested = None, np.inf
    for attempt in range(_ATTEMPTS):
        choice, tested = draw(attempt)
        n_untested = int((tested == 0).sum())
        if (tested < totals).all() and n_untested < fewest_untested:
            best, fewest_untested = choice, n_untested
        if fewest_untested == 0:
            break
    return best
