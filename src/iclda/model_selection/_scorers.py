"""Scorers that leave unlabeled rows out."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object
from sklearn.utils.validation import _check_method_params

from .._estimators.labels import check_lengths, plain, split_marker
from ._splitters import marker_of

_LOG_LIKELIHOOD = "log_likelihood"


def semi_supervised_scorer(
    scoring: str | Callable[..., float] = "accuracy", *, unlabeled: Any = "auto"
) -> SemiSupervisedScorer:
    """Make a scorer that leaves unlabeled rows out and scores the others as usual.

    It is needed where a split may test unlabeled rows: scikit-learn's own scorers take the marker
    for one more class, and count every unlabeled row as an error. The splitters of this module test
    no unlabeled row, so that plain scorers can be used with them.

    Parameters
    ----------
    scoring : str or callable, default="accuracy"
        Name of a scikit-learn scorer, a scorer ``f(estimator, X, y)``, or "log_likelihood": the
        mean log of prior times density of the true class, for the classifiers of this package.
    unlabeled : object, default="auto"
        Marker of unlabeled rows in y. "auto": that of the estimator, also inside a pipeline or a
        search; -1 where it has no parameter ``unlabeled``.

    Returns
    -------
    scorer : SemiSupervisedScorer
        To be passed as ``scoring``, or called as ``scorer(estimator, X, y)``.

    Examples
    --------
    >>> from iclda import SupervisedLDA
    >>> from iclda.model_selection import semi_supervised_scorer
    >>> X, y = [[0.0], [1.0], [5.0], [6.0], [2.0]], ["a", "a", "b", "b", None]
    >>> clf = SupervisedLDA(unlabeled=None).fit(X, y)
    >>> semi_supervised_scorer("balanced_accuracy")(clf, X, y)
    1.0
    """
    if isinstance(scoring, str):
        scorer = mean_log_likelihood if scoring == _LOG_LIKELIHOOD else get_scorer(scoring)
        return SemiSupervisedScorer(scorer, scoring, unlabeled)
    if not callable(scoring):
        raise ValueError(
            f"scoring must be the name of a scorer or a function of estimator, X and y, got "
            f"{scoring!r}. For several scores pass a dict of scorers made one by one."
        )
    return SemiSupervisedScorer(scoring, name_of_scoring(scoring), unlabeled)


def name_of_scoring(scoring: Any) -> str:
    """Return the name of a scorer, to be shown."""
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", repr(scoring))


class SemiSupervisedScorer:
    """Scorer that :func:`semi_supervised_scorer` makes."""

    def __init__(self, scorer: Callable[..., float], name: str, unlabeled: Any) -> None:
        self._scorer = scorer
        self.__name__ = name
        self._unlabeled = unlabeled
        self._request: MetadataRequest | None = None

    def __call__(
        self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None, **metadata: Any
    ) -> float:
        """Score the labeled rows; weights and other metadata are cut to them."""
        check_lengths(X=X, y=y_true, sample_weight=sample_weight)
        marker = marker_of(estimator, self._unlabeled)
        present, is_marker = split_marker(y_true, marker)
        if not present.size:
            raise ValueError(
                f"A score needs labeled rows, and all {len(is_marker)} rows carry the marker "
                f"{plain(marker)!r}: split with SemiSupervisedKFold, or label some of them."
            )
        if sample_weight is not None:
            metadata["sample_weight"] = sample_weight
        kept = np.flatnonzero(~is_marker)
        metadata = _check_method_params(X, metadata, kept)
        return float(self._scorer(estimator, _safe_indexing(X, kept), present, **metadata))

    def set_score_request(self, **requests: Any) -> SemiSupervisedScorer:
        """Request metadata where routing is on, for example ``sample_weight=True``.

        Parameters
        ----------
        requests : dict
            Name of the metadata -> True, False, None or another name, as of scikit-learn's scorers.

        Returns
        -------
        self : SemiSupervisedScorer
            The same scorer.
        """
        self._request = MetadataRequest(owner=self)
        for name, alias in requests.items():
            self._request.score.add_request(param=name, alias=alias)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata that the scorer requests.

        Returns
        -------
        routing : MetadataRequest
            Those of ``set_score_request``, or else those of the scorer inside.
        """
        return get_routing_for_object(self._request or self._scorer)

    def _accept_sample_weight(self) -> bool:
        # Called by scikit-learn where routing is off.
        accepts = getattr(self._scorer, "_accept_sample_weight", None)
        return accepts() if accepts else "sample_weight" in signature(self._scorer).parameters

    def __repr__(self) -> str:
        return f"semi_supervised_scorer({self.__name__!r}, unlabeled={plain(self._unlabeled)!r})"


def mean_log_likelihood(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the mean log of prior times density of the true class, also of a pipeline."""
    final, before = final_step(estimator)
    if not hasattr(final, "log_likelihood"):
        raise TypeError(
            f"scoring={_LOG_LIKELIHOOD!r} needs a classifier of this package, the last step of a "
            f"pipeline or by itself; {type(final).__name__} has no method log_likelihood. Use "
            "neg_log_loss, which needs predict_proba only."
        )
    return float(np.average(final.log_likelihood(before(X), y), weights=sample_weight))


def final_step(estimator: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the classifier at the end of a pipeline or search, and the transformation before."""
    if hasattr(estimator, "best_estimator_"):
        return final_step(estimator.best_estimator_)
    if not hasattr(estimator, "steps"):
        return estimator, lambda X: X
    final, inner = final_step(estimator.steps[-1][1])
    if len(estimator.steps) == 1:
        return final, inner
    before = estimator[:-1]
    return final, lambda X: inner(before.transform(X))
