"""One fit of a learning curve: some rows with labels, some without, a score of others."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sklearn import get_config
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from .._core.types import AnyArray
from .._estimators.labels import Labels
from .._messages import NoUnlabeledRowsWarning
from ._masking import storable
from ._rows import cut
from .parts import Part


@dataclass(frozen=True)
class Result:
    """Score of a fit, the numbers of rows it trained on, warnings, and its error if it failed."""

    score: float
    n_labeled: int
    n_unlabeled: int
    warned: list[tuple[type[Warning], str]]
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
        score, failure = float("nan"), None
        with _recorded() as records:
            try:
                score = self._score(self._fit(rows, is_labeled), part.test)
            except Exception as error:
                if self.error_score == "raise":
                    raise
                score, failure = float(self.error_score), error
        warned = [(record.category, str(record.message)) for record in records]
        if is_labeled.all():  # asked for by n_unlabeled=0
            warned = [found for found in warned if not issubclass(found[0], NoUnlabeledRowsWarning)]
        n_labeled = int(is_labeled.sum())
        return Result(score, n_labeled, len(rows) - n_labeled, warned, failure)

    def _fit(self, rows: AnyArray, is_labeled: AnyArray) -> Any:
        y = self.y[rows]
        y[~is_labeled] = storable(self.marker)
        params = cut(self.fit_params, rows, len(self.y))
        return clone(self.estimator).fit(_safe_indexing(self.X, rows), y, **params)

    def _score(self, fitted: Any, test: AnyArray) -> float:
        y = self.labels.classes[self.labels.codes[test]]
        params = cut(self.score_params, test, len(self.y))
        return float(self.scorer(fitted, _safe_indexing(self.X, test), y, **params))


@contextmanager
def _recorded() -> Iterator[list[warnings.WarningMessage]]:
    """Keep warnings to tell them once for all fits.

    Python's filters belong to the process: two threads that set them aside would mix them up, so
    that in threads warnings go their usual way.
    """
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        yield records


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
