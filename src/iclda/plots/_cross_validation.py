"""Scores of several classifiers on the same splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import AnyArray, Array

_LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class SplitScores:
    """Scores by classifier, in the same order of splits.

    ``ratio`` is the mean number of test rows for each labeled training row. ``n_repeats`` is None
    where splits are no folds of repeats.
    """

    scores: dict[str, Array]
    ratio: float
    n_repeats: int | None

    def of_units(self) -> dict[str, Array]:
        """Scores of repeats, means over their folds; of splits where there are no repeats."""
        if self.n_repeats is None:
            return self.scores
        shape = (self.n_repeats, -1)
        return {name: one.reshape(shape).mean(axis=1) for name, one in self.scores.items()}


def cross_validate_all(
    estimators: Mapping[str, Any],
    X: Any,
    y: Any,
    cv: Any,
    n_repeats: int,
    random_state: Any,
    **settings: Any,
) -> SplitScores:
    """Cross-validate classifiers; an int ``cv`` is a number of folds of the labeled rows."""
    from sklearn.model_selection import check_cv, cross_validate
    from sklearn.utils import check_random_state

    from .._estimators.labels import split_marker
    from ..model_selection import SemiSupervisedKFold
    from ..model_selection._masking import marker_of

    marker = marker_of(next(iter(estimators.values())))
    is_repeated = isinstance(cv, int)
    if is_repeated:
        seed = int(check_random_state(random_state).randint(_LARGEST_SEED))
        cv = SemiSupervisedKFold(cv, n_repeats=n_repeats, unlabeled=marker, random_state=seed)
    splits = list(check_cv(cv).split(X, y))
    scores = {
        str(name): cross_validate(one, X, y, cv=splits, **settings)["test_score"]
        for name, one in estimators.items()
    }
    ratio = _tested_to_trained(splits, ~split_marker(y, marker)[1])
    return SplitScores(scores, ratio, n_repeats if is_repeated else None)


def _tested_to_trained(splits: Sequence[tuple[AnyArray, AnyArray]], is_labeled: AnyArray) -> float:
    # Unlabeled rows are the same in every split, and make none of them differ.
    return float(np.mean([len(test) / is_labeled[train].sum() for train, test in splits]))
