"""One fit of a learning curve: some rows with labels, some without, a score of others."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from sklearn import get_config
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from .._core.types import AnyArray
from .._labels import Labels
from ._masking import storable
from ._rows import cut
from ._sizes import Part


@dataclass(frozen=True)
class Result:
    """Score of a fit, the numbers of rows it trained on, and what went wrong if it failed."""

    score: float
    n_labeled: int
    n_unlabeled: int
    error: Exception | None = None


@dataclass(frozen=True)
class Task:
    """Fits and scores a part at given numbers of rows. ``y`` can hold the marker."""

    estimator: Any
    scorer: Callable[..., float]
    X: Any
    y: AnyArray
    labels: Labels
    marker: Any
    fit_params: Mapping[str, Any]
    score_params: Mapping[str, Any]
    error_score: float | str

    def __call__(self, part: Part, n_labeled: int | None, n_unlabeled: int | None) -> Result:
        """Fit and score."""
        rows, is_labeled = part.take(n_labeled, n_unlabeled)
        counts = int(is_labeled.sum()), int((~is_labeled).sum())
        try:
            return Result(self._score(self._fit(rows, is_labeled), part.test), *counts)
        except Exception as error:
            if self.error_score == "raise":
                raise
            return Result(float(self.error_score), *counts, error)

    def _fit(self, rows: AnyArray, is_labeled: AnyArray) -> Any:
        y = self.y[rows]
        y[~is_labeled] = storable(self.marker)
        params = cut(self.fit_params, rows, len(self.y))
        with _no_unlabeled_rows_asked_for() if is_labeled.all() else nullcontext():
            return clone(self.estimator).fit(_safe_indexing(self.X, rows), y, **params)

    def _score(self, fitted: Any, test: AnyArray) -> float:
        y = self.labels.classes[self.labels.codes[test]]
        params = cut(self.score_params, test, len(self.y))
        return float(self.scorer(fitted, _safe_indexing(self.X, test), y, **params))


@contextmanager
def _no_unlabeled_rows_asked_for() -> Iterator[None]:
    """Silence the warning of a classifier that gets none."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\w+ got no unlabeled rows")
        yield


def routed(
    estimator: Any, scorer: Any, params: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Arguments of ``fit`` and of the scorer, as they request them where routing is on."""
    if "X_unlabeled" in params:
        raise ValueError(
            "params holds X_unlabeled, but a learning curve chooses unlabeled rows from X: append "
            "them to X, with the marker in y."
        )
    if not params or not get_config()["enable_metadata_routing"]:
        return params, {}
    router = (
        MetadataRouter(owner="semi_supervised_learning_curve")
        .add(estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        .add(scorer=scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
    )
    requested = process_routing(router, "fit", **params)
    return requested.estimator.fit, requested.scorer.score
