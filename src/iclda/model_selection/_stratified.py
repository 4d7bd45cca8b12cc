"""Which labeled rows, or groups of them, are tested: counts and random numbers in, choices out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from .._core.types import AnyArray
from .._estimators.labels import Labels, plain, split_marker
from ._masking import is_whole

# Groups are assigned greedily: some orders leave a class without training rows, most do not.
_ATTEMPTS = 30
_NO_LABELED_GROUP = -1


def _check_class_sizes(labels: Labels, n_needed: int, who_needs: str, use: str) -> AnyArray:
    """Labeled rows of every class; ValueError where they are fewer than needed."""
    counts = np.bincount(labels.codes[labels.is_labeled])
    few = np.flatnonzero(counts < n_needed)
    if len(few):
        named = ", ".join(f"class {plain(labels.classes[k])!r} has {counts[k]}" for k in few)
        most = counts.min()
        way_out = f"Pass n_splits={most} or less, label" if most >= 2 else "Label"
        raise ValueError(
            f"{who_needs} {n_needed} labeled rows of every class, one to {use}; {named}. {way_out} "
            "more rows, or mark the rows of a class as unlabeled to do without it."
        )
    return counts


def fold_of_rows(labels: Labels, n_folds: int, rng: np.random.RandomState) -> AnyArray:
    """Fold of every labeled row: folds differ by at most one row, in all and in every class."""
    _check_class_sizes(labels, n_folds, f"n_splits={n_folds} folds need", "test in each")
    codes = labels.codes[labels.is_labeled]
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(len(codes), dtype=int)
    # Which folds get a row more than others is random too.
    folds[order] = rng.permutation(n_folds)[np.arange(len(codes)) % n_folds]
    return folds


def tested_rows(labels: Labels, test_size: float, rng: np.random.RandomState) -> AnyArray:
    """Labeled rows to test, in proportion to the classes, but neither none nor all of a class."""
    counts = _check_class_sizes(labels, 2, "A split needs", "train on and one to test")
    codes = labels.codes[labels.is_labeled]
    n_tested = _n_tested(test_size, counts)
    exact = n_tested * counts / counts.sum()
    n_of_class = np.floor(exact).astype(int)
    by_remainder = np.lexsort([rng.permutation(len(counts)), np.round(n_of_class - exact, 9)])
    n_of_class[by_remainder[: n_tested - n_of_class.sum()]] += 1
    is_tested = np.zeros(len(codes), dtype=bool)
    for k, n in enumerate(np.clip(n_of_class, 1, counts - 1)):
        is_tested[rng.permutation(np.flatnonzero(codes == k))[:n]] = True
    return is_tested


def _n_tested(test_size: float, counts: AnyArray) -> int:
    """Number of labeled rows to test: a whole number, or a share of those counted by class."""
    n_labeled, n_classes = int(counts.sum()), len(counts)
    if not is_whole(test_size):
        return ceil(test_size * n_labeled)
    most = n_labeled - n_classes
    if n_classes <= test_size <= most:
        return int(test_size)
    raise ValueError(
        f"test_size={test_size} of {n_labeled} labeled rows must leave a row of each of "
        f"{n_classes} classes on either side: pass {n_classes} to {most}, or label more rows."
    )


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
    """Groups that hold labeled rows; ValueError unless every class is labeled in two of them.

    ``groups`` has an entry for every row, which may be missing for unlabeled ones.
    """
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
    found = LabeledGroups(names[used], codes, counts[used])
    n_groups = (found.counts > 0).sum(axis=0)
    k = int(n_groups.argmin())
    if n_groups[k] < 2:
        only = plain(found.names[np.argmax(found.counts[:, k] > 0)])
        raise ValueError(
            f"All {found.counts[:, k].sum()} labeled rows of class {plain(labels.classes[k])!r} "
            f"are in group {only!r}, so that none is left to train on when it is tested: label "
            "rows of the class in another group, or split without groups."
        )
    return found


def fold_of_groups(groups: LabeledGroups, n_folds: int, rng: np.random.RandomState) -> AnyArray:
    """Fold of every group. Every fold gets one; classes are spread as evenly as groups allow."""
    counts, n_groups = groups.counts, len(groups.names)
    if n_groups < n_folds:
        raise ValueError(
            f"n_splits={n_folds} folds need at least {n_folds} groups with labeled rows, got "
            f"{n_groups}: pass n_splits={n_groups} or less, or label rows of more groups."
        )

    def assign(attempt: int) -> tuple[AnyArray, AnyArray]:
        folds = _assign_groups(counts, n_folds, rng, large_first=attempt == 0)
        return folds, np.array([counts[folds == fold].sum(axis=0) for fold in range(n_folds)])

    return _best(assign, groups, f"n_splits={n_folds} folds", "another n_splits")


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


def tested_groups(groups: LabeledGroups, test_size: float, rng: np.random.RandomState) -> AnyArray:
    """Groups with about a share of the labeled rows of every class."""
    counts = groups.counts
    share = _n_tested(test_size, counts.sum(axis=0)) / int(counts.sum())

    def draw(_: int) -> tuple[AnyArray, AnyArray]:
        is_tested = _draw_groups(counts, share, rng)
        return is_tested, counts[is_tested].sum(axis=0)[None]

    return _best(draw, groups, f"test_size={test_size}", "a smaller test_size")


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


def _best(
    draw: Callable[[int], tuple[AnyArray, AnyArray]], groups: LabeledGroups, what: str, other: str
) -> AnyArray:
    """The first draw in which every class trains and is tested, or else one in which all train.

    ``draw`` returns a choice, and its labeled rows by test and class.
    """
    totals, best, fewest_untested = groups.counts.sum(axis=0), None, np.inf
    for attempt in range(_ATTEMPTS):
        choice, tested = draw(attempt)
        n_untested = int((tested == 0).sum())
        if (tested < totals).all() and n_untested < fewest_untested:
            best, fewest_untested = choice, n_untested
        if fewest_untested == 0:
            break
    if best is None:
        raise ValueError(
            f"No way was found to test {what} in whole groups ({len(groups.names)} with labeled "
            "rows) without taking all labeled rows of some class from training: label rows of the "
            f"rare classes in more groups, or try {other}."
        )
    return best
