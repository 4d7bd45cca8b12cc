"""Groups of rows: which of them hold labeled rows, and of which classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import AnyArray
from .._estimators.labels import Labels, split_marker

_NO_LABELED_GROUP = -1


@dataclass(frozen=True)
class LabeledGroups:
    """Groups with labeled rows.

    ``codes`` has the number of its group for every row, labeled or not; -1 where the row has no
    group or its group no labeled row. ``counts`` holds labeled rows by group and class.
    """

    names: AnyArray
    codes: AnyArray
    counts: AnyArray

    def rows_of(self, is_chosen: AnyArray) -> AnyArray:
        """Which rows belong to the chosen groups."""
        return (self.codes != _NO_LABELED_GROUP) & is_chosen[self.codes]


def find_labeled_groups(groups: Any, labels: Labels) -> LabeledGroups:
    """Number the groups that hold labeled rows, one entry a row. Unlabeled rows may lack one."""
    present, is_absent = split_marker(groups, None, name="groups")
    _require_groups(is_absent, labels)
    all_names, all_codes = np.unique(present, return_inverse=True)
    is_labeled = labels.is_labeled[~is_absent]
    counts = np.zeros((len(all_names), len(labels.classes)), dtype=int)
    np.add.at(counts, (all_codes[is_labeled], labels.codes[labels.is_labeled]), 1)
    used = np.flatnonzero(counts.sum(axis=1))
    number = np.full(len(all_names), _NO_LABELED_GROUP)
    number[used] = np.arange(len(used))
    codes = np.full(len(labels.codes), _NO_LABELED_GROUP)
    codes[~is_absent] = number[all_codes]
    return LabeledGroups(all_names[used], codes, counts[used])


def _require_groups(is_absent: AnyArray, labels: Labels) -> None:
    lacking = np.flatnonzero(is_absent & labels.is_labeled)
    if len(lacking):
        raise ValueError(
            f"groups is missing (None or NaN) for {len(lacking)} labeled rows, first for row "
            f"{int(lacking[0])}. Only unlabeled rows may lack a group: name a group for every "
            "labeled row, one of its own if it belongs to none."
        )
