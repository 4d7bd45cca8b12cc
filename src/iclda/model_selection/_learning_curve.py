"""How scores change with the number of unlabeled, or of labeled, rows."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from .._core.types import AnyArray, Array
from .._estimators.labels import Labels, encode_labels
from .._statistics import finite_means
from ._checks import check_count, check_error_score, check_lengths, is_whole
from ._fits import Result, Task, routed
from ._marker import Marker, marker_of
from ._masking import write_marker
from ._sizes import Sizes, resolve_sizes
from ._splitters import SemiSupervisedKFold
from .parts import Part, arrange

_LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class LearningCurve:
    """Scores of a classifier at several numbers of unlabeled, or of labeled, rows.

    Attributes
    ----------
    varied : str
        What differs between the points: "n_unlabeled" or "n_labeled".
    sizes : ndarray of shape (n_points,)
        The numbers asked for, ascending.
    scores : ndarray of shape (n_points, n_splits)
        Score on the labeled test rows, of every point and split.
    n_labeled : ndarray of shape (n_points, n_splits)
        Number of labeled rows trained on.
    n_unlabeled : ndarray of shape (n_points, n_splits)
        Number of unlabeled rows trained on.
    score_name : str
        What the scores are, larger being better.
    """

    varied: str
    sizes: AnyArray
    scores: Array
    n_labeled: AnyArray
    n_unlabeled: AnyArray
    score_name: str

    @property
    def mean(self) -> Array:
        """Mean score of every point, over the splits that could be fitted; NaN if none could."""
        return finite_means(self.scores)[0]

    @property
    def standard_error(self) -> Array:
        """Standard error of ``mean``, as if splits were independent; NaN below two splits."""
        return finite_means(self.scores)[1]


def semi_supervised_learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_unlabeled: Any = None,
    n_labeled: Any = None,
    groups: Any = None,
    cv: Any = 5,
    scoring: Any = None,
    min_per_class: int = 1,
    params: Mapping[str, Any] | None = None,
    unlabeled: Any = Marker.OF_ESTIMATOR,
    error_score: Any = np.nan,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> LearningCurve:
    """Score a classifier trained on more and more unlabeled, or labeled, rows.

    In every split the training rows are put in random order once. A point takes the first
    ``n_labeled`` of the labeled rows with their labels and, of all other training rows, the first
    ``n_unlabeled`` without: larger numbers add rows to those of smaller ones, and a row whose label
    is not used is an unlabeled row like any other. Only labeled rows are scored, the same ones at
    every point. Two classifiers see the same rows if ``random_state`` is the same int, and their
    scores can be subtracted.

    Parameters
    ----------
    estimator : classifier
        Cloned for every fit.
    X : array-like of shape (n_samples, n_features)
        Rows, labeled and unlabeled.
    y : array-like of shape (n_samples,)
        Class of every row, or the marker.
    n_unlabeled : int or array-like of int, default=None
        Numbers of unlabeled rows to train on. None takes all of them if ``n_labeled`` varies;
        otherwise 0 and six numbers up to all.
    n_labeled : int or array-like of int, default=None
        Numbers of labeled rows to train on; None takes all. Only one of the two may vary.
    groups : array-like of shape (n_samples,), default=None
        Groups for the splitter.
    cv : int, splitter or iterable, default=5
        An int is the number of folds of :class:`SemiSupervisedKFold`.
    scoring : str or callable, default=None
        As for scikit-learn's ``learning_curve``; None takes the classifier's own ``score``.
    min_per_class : int, default=1
        Number of labeled rows guaranteed to every class, however few are used.
    params : dict, default=None
        Further arguments of ``fit``, cut to the training rows where they have one entry a row. With
        metadata routing on, they go to ``fit`` and to the scorer as these request.
    unlabeled : object, default=Marker.OF_ESTIMATOR
        Marker of unlabeled rows in y. By default that of the estimator, also inside a pipeline;
        -1 where it has no parameter ``unlabeled``.
    error_score : float or "raise", default=np.nan
        Score of a fit that fails, with one warning for all; "raise" passes the error on.
    n_jobs : int, default=None
        Number of processes, as in scikit-learn.
    random_state : int, RandomState instance or None, default=None
        For the folds, if ``cv`` is an int, and for the order of the training rows.

    Returns
    -------
    curve : LearningCurve
        Sizes, scores of every point and split, mean and standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from iclda import SelfLearningLDA
    >>> from iclda.model_selection import semi_supervised_learning_curve
    >>> rng, y = np.random.default_rng(0), np.arange(200) % 2
    >>> X, y = rng.normal(size=(200, 2)) + 2 * y[:, None], np.where(np.arange(200) < 40, y, -1)
    >>> curve = semi_supervised_learning_curve(
    ...     SelfLearningLDA(), X, y, n_unlabeled=[10, 160], random_state=0
    ... )
    >>> curve.sizes, curve.scores.shape
    (array([ 10, 160]), (2, 5))
    """
    marker = marker_of(estimator, unlabeled)
    check_lengths(X, y, groups)
    labels = encode_labels(y, marker)
    check_count("min_per_class", min_per_class, 1)
    scorer = check_scoring(estimator, scoring=scoring)
    fit_params, score_params = routed(estimator, scorer, params or {})
    rng = check_random_state(random_state)
    if is_whole(cv):
        cv = SemiSupervisedKFold(cv, unlabeled=marker, random_state=rng.randint(_LARGEST_SEED))
    splits = list(check_cv(cv).split(X, y, groups))
    parts = _arranged(splits, labels, min_per_class, rng)
    sizes = resolve_sizes(n_labeled, n_unlabeled, parts, min_per_class * len(labels.classes))
    task = Task(
        estimator=estimator,
        scorer=scorer,
        X=X,
        y=write_marker(y, labels.is_labeled, marker),
        labels=labels,
        marker=marker,
        fit_params=fit_params,
        score_params=score_params,
        error_score=check_error_score(error_score),
    )
    results = Parallel(n_jobs=n_jobs)(
        delayed(task)(part, *point) for point in sizes.points for part in parts
    )
    _tell(results)
    return _gather(results, sizes, _name_of(scoring))


def _arranged(
    splits: list[Any], labels: Labels, min_per_class: int, rng: np.random.RandomState
) -> list[Part]:
    seeds = rng.randint(_LARGEST_SEED, size=len(splits))
    return [
        arrange(labels, np.asarray(train), np.asarray(test), min_per_class, seed)
        for (train, test), seed in zip(splits, seeds, strict=True)
    ]


def _tell(results: list[Result]) -> None:
    """One error if all fits failed, one warning if some did, and one for each kind of warning."""
    failed = [result.error for result in results if result.error is not None]
    if len(failed) == len(results):
        raise failed[0]
    if failed:
        warnings.warn(
            f"{len(failed)} of {len(results)} fits failed and have the score error_score. The "
            f"first error was {type(failed[0]).__name__}: {failed[0]}",
            FitFailedWarning,
            stacklevel=3,
        )
    for category, message, n_fits in _kinds_of_warnings(results):
        warnings.warn(f"In {n_fits} of {len(results)} fits: {message}", category, stacklevel=3)


def _kinds_of_warnings(results: list[Result]) -> list[tuple[type[Warning], str, int]]:
    """Category, first wording and number of fits of warnings that differ in numbers at most."""
    first: dict[tuple[type[Warning], str], str] = {}
    fits: Counter[tuple[type[Warning], str]] = Counter()
    for result in results:
        kinds = {(category, re.sub(r"\d+", "#", text)): text for category, text in result.warned}
        first = {**kinds, **first}
        fits.update(kinds.keys())
    return [(kind[0], first[kind], n_fits) for kind, n_fits in fits.items()]


def _gather(results: list[Result], sizes: Sizes, score_name: str) -> LearningCurve:
    def table(name: str) -> AnyArray:
        return np.array([getattr(result, name) for result in results]).reshape(
            len(sizes.points), -1
        )

    return LearningCurve(
        varied=sizes.varied,
        sizes=sizes.values,
        scores=table("score"),
        n_labeled=table("n_labeled"),
        n_unlabeled=table("n_unlabeled"),
        score_name=score_name,
    )


def _name_of(scoring: Any) -> str:
    if scoring is None:
        return "score"
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", repr(scoring))
