"""Scorers that leave unlabeled rows out, and scores by the number of rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from .._core import AnyArray, Array
from .._estimators.labels import (
    Labels,
    check_lengths,
    encode_labels,
    plain,
    split_marker,
    warn_of_unseen,
)
from .._held_out import attempt_fits
from .._messages import NoUnlabeledRowsWarning
from . import _splitters
from ._splitters import (
    LARGEST_SEED,
    OrderedSplit,
    SemiSupervisedKFold,
    final_step,
    marker_of,
    order_split,
)

# Numbers of unlabeled rows of a default curve, besides 0, and the smallest of them.
_N_DEFAULT_SIZES = 6
_SMALLEST_DEFAULT_SIZE = 10
_LOG_LIKELIHOOD = "log_likelihood"


def semi_supervised_scorer(
    scoring: str | Callable[..., float] = "accuracy", *, unlabeled: Any = "auto"
) -> SemiSupervisedScorer:
    """Make a scorer that leaves unlabeled rows out and scores the others as usual.

    Use it wherever a split may test unlabeled rows, as those of scikit-learn's
    splitters do: scikit-learn's own scorers take the marker for one more class, and
    count every unlabeled row as an error, without a warning. The splitters of this
    module test no unlabeled row, so that plain scorers can be used with them.

    Parameters
    ----------
    scoring : str or callable, default="accuracy"
        Name of a scikit-learn scorer, a scorer ``f(estimator, X, y)``, or
        "log_likelihood": the mean log of prior times density of the true class, for the
        classifiers of this package.
    unlabeled : object, default="auto"
        Marker of unlabeled rows in y. "auto": that of the estimator, also inside a
        pipeline or a search; -1 if it has no parameter ``unlabeled``.

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
    if scoring == _LOG_LIKELIHOOD:
        return SemiSupervisedScorer(mean_log_likelihood, _LOG_LIKELIHOOD, unlabeled)
    if isinstance(scoring, str):
        return SemiSupervisedScorer(get_scorer(scoring), scoring, unlabeled)
    if not callable(scoring):
        raise ValueError(
            "scoring must be the name of a scorer or a function of estimator, X and y, "
            f"got {scoring!r}. For several scores pass a dict of scorers made one by "
            "one."
        )
    return SemiSupervisedScorer(scoring, name_of_scoring(scoring), unlabeled)


def name_of_scoring(scoring: Any) -> str:
    """Return the name of a scorer, to be shown."""
    if isinstance(scoring, str):
        return scoring
    return getattr(scoring, "__name__", repr(scoring))


class SemiSupervisedScorer:
    """Scorer that :func:`semi_supervised_scorer` makes."""

    def __init__(self, scorer: Callable[..., float], name: str, unlabeled: Any) -> None:
        self._scorer = scorer
        self.__name__ = name
        self._unlabeled = unlabeled
        self._request: MetadataRequest | None = None

    def __call__(
        self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None
    ) -> float:
        """Score the labeled rows; weights are cut to them."""
        check_lengths(X=X, y=y_true, sample_weight=sample_weight)
        marker = marker_of(estimator, self._unlabeled)
        present, is_marker = split_marker(y_true, marker)
        if not present.size:
            raise ValueError(
                f"A score needs labeled rows, and all {len(is_marker)} rows carry the "
                f"marker {plain(marker)!r}: split with SemiSupervisedKFold, or label "
                "some of them."
            )
        classes = getattr(estimator, "classes_", None)
        if classes is not None:
            warn_of_unseen(present, np.asarray(classes), y_true, marker)
        # A function without sample_weight is called without it if there are none.
        weights: dict[str, Any] = {}
        if sample_weight is not None:
            weights["sample_weight"] = np.asarray(sample_weight)[~is_marker]
        labeled = _safe_indexing(X, np.flatnonzero(~is_marker))
        return float(self._scorer(estimator, labeled, present, **weights))

    def set_score_request(self, **requests: Any) -> SemiSupervisedScorer:
        """Request metadata where routing is on, for example ``sample_weight=True``.

        Parameters
        ----------
        requests : dict
            Name of the metadata -> True, False, None or another name, as for
            scikit-learn's scorers.

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
        # scikit-learn calls this if routing is off. A plain function tells by its
        # parameters.
        accepts = getattr(self._scorer, "_accept_sample_weight", None)
        if accepts is not None:
            return accepts()
        return "sample_weight" in signature(self._scorer).parameters

    def __repr__(self) -> str:
        marker = plain(self._unlabeled)
        return f"semi_supervised_scorer({self.__name__!r}, unlabeled={marker!r})"


def mean_log_likelihood(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None
) -> float:
    """Return the mean log of prior times density of the true class.

    The classifier may be the last step of a pipeline.
    """
    final, before = final_step(estimator)
    if not hasattr(final, "log_likelihood"):
        raise TypeError(
            f"scoring={_LOG_LIKELIHOOD!r} needs a classifier of this package, the last "
            f"step of a pipeline or by itself; {type(final).__name__} has no method "
            "log_likelihood. Use neg_log_loss, which needs predict_proba only."
        )
    log_likelihoods = final.log_likelihood(before(X), y)
    return float(np.average(log_likelihoods, weights=sample_weight))


@dataclass(frozen=True)
class LearningCurve:
    """Scores of a classifier at several numbers of unlabeled, or of labeled, rows.

    Attributes
    ----------
    varied : str
        What varies between the points: "n_unlabeled" or "n_labeled".
    sizes : ndarray of shape (n_points,)
        Those numbers, ascending.
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
        """Mean score of every point, over the splits that could be fitted.

        NaN if none could.
        """
        finite = np.ma.masked_invalid(self.scores)
        return finite.mean(axis=1).filled(np.nan)

    @property
    def standard_error(self) -> Array:
        """Standard error of ``mean``, as if splits were independent.

        NaN below two splits.
        """
        finite = np.ma.masked_invalid(self.scores)
        errors = finite.std(axis=1, ddof=1) / np.sqrt(finite.count(axis=1))
        return errors.filled(np.nan)


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
    unlabeled: Any = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> LearningCurve:
    """Score a classifier trained on growing numbers of unlabeled, or of labeled, rows.

    In every split the training rows are put in random order once. A point takes the
    first ``n_labeled`` labeled rows with their labels and, of all other training rows,
    the first ``n_unlabeled`` without. Larger numbers add rows to those of smaller ones,
    and a row whose label is not used is an unlabeled row. Only labeled rows are scored,
    the same ones at every point. Two classifiers see the same rows if ``random_state``
    is the same int: their scores are paired.

    Parameters
    ----------
    estimator : classifier
        Cloned for every fit.
    X : array-like of shape (n_samples, n_features)
        Rows, labeled and unlabeled.
    y : array-like of shape (n_samples,)
        Class of every row, or the marker.
    n_unlabeled : int or array-like of int, default=None
        Numbers of unlabeled rows to train on. None takes all of them if ``n_labeled``
        varies; otherwise 0 and six numbers up to all.
    n_labeled : int or array-like of int, default=None
        Numbers of labeled rows to train on; None takes all. Only one of the two may
        vary.
    groups : array-like of shape (n_samples,), default=None
        Groups for the splitter.
    cv : int, splitter or iterable, default=5
        An int is the number of folds of :class:`SemiSupervisedKFold`.
    scoring : str or callable, default=None
        As for scikit-learn's ``learning_curve``; None takes the classifier's own
        ``score``.
    min_per_class : int, default=1
        Smallest number of labeled rows of every class.
    unlabeled : object, default="auto"
        Marker of unlabeled rows in y. "auto": that of the estimator, also inside a
        pipeline; -1 if it has no parameter ``unlabeled``.
    n_jobs : int, default=None
        Number of processes, as in scikit-learn.
    random_state : int, RandomState instance or None, default=None
        For the folds, if ``cv`` is an int, and for the order of the training rows.

    Returns
    -------
    curve : LearningCurve
        Sizes, scores of every point and split, mean and standard error. The score of a
        fit that failed is NaN, with one warning for all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from iclda import SelfLearningLDA
    >>> from iclda.model_selection import semi_supervised_learning_curve
    >>> rng = np.random.default_rng(0)
    >>> classes = np.arange(200) % 2
    >>> X = rng.normal(size=(200, 2)) + 2 * classes[:, None]
    >>> y = np.where(np.arange(200) < 40, classes, -1)
    >>> curve = semi_supervised_learning_curve(
    ...     SelfLearningLDA(), X, y, n_unlabeled=[10, 160], random_state=0
    ... )
    >>> curve.sizes, curve.scores.shape
    (array([ 10, 160]), (2, 5))
    """
    marker = marker_of(estimator, unlabeled)
    check_lengths(X=X, y=y, groups=groups)
    labels = encode_labels(y, marker)
    _splitters.check_count("min_per_class", min_per_class, 1)
    rng = check_random_state(random_state)
    if _splitters.is_whole(cv):
        seed = rng.randint(LARGEST_SEED)
        cv = SemiSupervisedKFold(cv, unlabeled=marker, random_state=seed)
    indices = list(check_cv(cv).split(X, y, groups))
    splits = _order_splits(labels, indices, min_per_class, rng)
    n_guaranteed = min_per_class * len(labels.classes)
    points = _points(n_labeled, n_unlabeled, splits, n_guaranteed)

    fit_and_score = partial(
        _fit_and_score,
        estimator=estimator,
        X=X,
        y=_splitters.write_marker(y, labels.is_labeled, marker),
        truth=labels.classes[labels.codes],
        marker=_splitters.storable(marker),
        scorer=check_scoring(estimator, scoring=scoring),
    )
    # All splits of a point follow each other, so that results fold into a matrix.
    cases = [(split, *point) for point in points for split in splits]
    # As in scikit-learn, a fit may fail for any reason, and the others are shown.
    results = attempt_fits(fit_and_score, cases, caught=Exception, n_jobs=n_jobs)
    _warn_of_failures(results)
    scores = [np.nan if isinstance(each, Exception) else each for each in results]
    counts = [split.sizes(*point) for split, *point in cases]
    n_labeled_used, n_unlabeled_used = np.transpose(counts)

    shape = (len(points), len(splits))
    # If neither number varies, the only point is one of unlabeled rows.
    varied = "n_labeled" if np.ndim(n_labeled) else "n_unlabeled"
    return LearningCurve(
        varied=varied,
        sizes=np.array([getattr(point, varied) for point in points]),
        scores=np.reshape(scores, shape),
        n_labeled=np.reshape(n_labeled_used, shape),
        n_unlabeled=np.reshape(n_unlabeled_used, shape),
        score_name=name_of_scoring("score" if scoring is None else scoring),
    )


def _order_splits(
    labels: Labels,
    indices: Sequence[tuple[Any, Any]],
    min_per_class: int,
    rng: np.random.RandomState,
) -> list[OrderedSplit]:
    """Put the training rows of every split in random order."""
    seeds = rng.randint(LARGEST_SEED, size=len(indices))
    splits = []
    for (train, test), seed in zip(indices, seeds, strict=True):
        split = order_split(
            labels, np.asarray(train), np.asarray(test), min_per_class, seed
        )
        splits.append(split)
    return splits


class _Point(NamedTuple):
    """Numbers of rows to train on; None stands for all."""

    n_labeled: int | None
    n_unlabeled: int | None


def _points(
    n_labeled: Any, n_unlabeled: Any, splits: list[OrderedSplit], least: int
) -> list[_Point]:
    """Return the points of a curve.

    ``least`` is the number of labeled rows guaranteed to all classes together.
    """
    if np.ndim(n_labeled) and np.ndim(n_unlabeled):
        raise ValueError(
            f"n_labeled={n_labeled!r} and n_unlabeled={n_unlabeled!r} both hold "
            "several numbers: vary one, and give one number, or None for all rows, as "
            "the other."
        )
    # Every split must have the rows of every point.
    most_labels = min(len(split.labeled) for split in splits)
    labeled = _check_sizes("n_labeled", n_labeled, least, most_labels)
    # At the last point the most labels are used, and the fewest rows are unlabeled.
    n_used = labeled[-1]
    most_unlabeled = min(
        len(split.train) - len(split.labeled[:n_used]) for split in splits
    )
    unlabeled = _check_sizes("n_unlabeled", n_unlabeled, 0, most_unlabeled)
    if n_unlabeled is None and not np.ndim(n_labeled):
        unlabeled = _default_sizes(most_unlabeled)
    return [_Point(*sizes) for sizes in product(labeled, unlabeled)]


def _default_sizes(largest: int) -> list[int]:
    """Return 0 and further numbers of unlabeled rows, whose ratios are about equal."""
    if largest == 0:
        raise ValueError(
            "There are no unlabeled rows to vary: y labels every row, and "
            "n_labeled=None uses all labels. Pass a number, such as n_labeled=20: the "
            "other rows then count as unlabeled."
        )
    smallest = min(_SMALLEST_DEFAULT_SIZE, largest)
    sizes = np.geomspace(smallest, largest, _N_DEFAULT_SIZES)
    return sorted({0, *sizes.round().astype(int).tolist()})


def _check_sizes(name: str, given: Any, least: int, largest: int) -> list[Any]:
    """Return one or several whole numbers in ascending order; None stays None."""
    if given is None:
        return [None]
    sizes = np.unique(given)
    if not sizes.size or sizes.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must hold whole numbers, for example [0, 10, 100], got {given!r}."
        )
    wrong = sizes[(sizes < least) | (sizes > largest)]
    if len(wrong):
        kind = name.removeprefix("n_")
        # Only labeled rows have a smallest number.
        reason = ""
        if least:
            reason = f", and {least} are the fewest with min_per_class rows per class"
        raise ValueError(
            f"{name}={wrong[0]} must lie between {least} and {largest}: every split "
            f"can train on {largest} {kind} rows{reason}."
        )
    return sizes.tolist()


def _fit_and_score(
    split: OrderedSplit,
    n_labeled: int | None,
    n_unlabeled: int | None,
    *,
    estimator: Any,
    X: Any,
    y: AnyArray,
    truth: AnyArray,
    marker: Any,
    scorer: Any,
) -> float:
    """Fit to given numbers of rows of a split, and score its test rows.

    ``truth`` holds the classes of labeled rows; the dtype of ``y`` can hold the marker.
    """
    rows, is_labeled = split.take(n_labeled, n_unlabeled)
    # Indexing makes a copy, in which labels are hidden.
    y = y[rows]
    y[~is_labeled] = marker
    with warnings.catch_warnings():
        if is_labeled.all():
            # A point without unlabeled rows is intended.
            warnings.simplefilter("ignore", NoUnlabeledRowsWarning)
        fitted = clone(estimator).fit(_safe_indexing(X, rows), y)
        # Test rows have the classes that they were given, not those that are hidden.
        test = _safe_indexing(X, split.test)
        return float(scorer(fitted, test, truth[split.test]))


def _warn_of_failures(results: Sequence[float | Exception]) -> None:
    """Warn once if some fits failed; raise the first error if all did."""
    failed = [each for each in results if isinstance(each, Exception)]
    if len(failed) == len(results):
        raise failed[0]
    if failed:
        first = failed[0]
        warnings.warn(
            f"{len(failed)} of {len(results)} fits failed and have the score NaN. The "
            f"first error was {type(first).__name__}: {first}",
            FitFailedWarning,
            stacklevel=3,
        )
