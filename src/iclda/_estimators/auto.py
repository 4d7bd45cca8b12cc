"""A classifier that chooses its method by cross-validation on the labeled rows."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._core import AnyArray, Array
from .._messages import NoUnlabeledRowsWarning, ParameterError, plural, say
from .._rows import unreported
from .._rows.unit_length import MANY_FEATURES
from .._statistics import (
    LEAST_TESTED,
    BaseRate,
    ErrorEstimate,
    estimate_final_error,
    merge_copies,
    row_losses,
    safest_choice,
    warn_if_nothing_learned,
)
from .._system import one_thread_if_small
from ..methods import (
    FITTED,
    FROM_THE_SAFEST,
    Method,
    affordable,
    find_method,
    safety_rank,
    without_free_search,
)
from .base import LinearGaussianClassifier
from .diagnosis import warn_of_no_unlabeled
from .labels import FREE, draw_folds, draw_labeled, plain
from .prepare import WIDE, FitInputs, find_non_finite, prepare

_FOLDS, _REPEATS = 10, 3  # those of `iclda compare --fast`
_SLOW_FOLDS = 5  # and one repeat, where a search takes seconds
_STARTS = 8  # of a search in cross-validation
_MOST_UNLABELED, _MOST_LABELED = 1_000, 2_000  # rows of the cross-validation
_MOST_ENTRIES, _FEWEST = 2**19, 100  # numbers, and rows all the same, of either kind
_MOST_REPEATED = 500  # tested rows: more need no repeats
_SLOW = 150  # unknowns of a search, above which every start takes seconds
_UNCOMPARED = (
    ": labels of rows that were chosen compare no methods, and it is the safest"
)
_MANY = 10  # classes, above which it may do so with fewer


@dataclass(frozen=True)
class Trial:
    """Rows on which methods are compared, in units proportional to those of the user."""

    labeled: Array
    codes: AnyArray
    weights: Array
    unlabeled: Array
    weights_unlabeled: Array

    @property
    def is_slow(self) -> bool:
        """Whether searches take seconds: they are made fewer times, from one start."""
        n_classes = int(self.codes.max()) + 1
        return (
            n_classes > _MANY or (n_classes - 1) * (self.labeled.shape[1] + 1) > _SLOW
        )

    @property
    def tested(self) -> AnyArray:
        """Rows of classes with two labels or more; a single label always trains."""
        return np.flatnonzero(np.bincount(self.codes)[self.codes] > 1)

    @property
    def n_folds(self) -> int:
        codes = self.codes[self.tested]
        most = _SLOW_FOLDS if self.is_slow else _FOLDS
        return min(most, int(np.bincount(codes)[codes].min()))

    def fit(self, classifier: Any, train: AnyArray) -> Any:
        """Fit to some labeled rows and all unlabeled ones."""
        rows = np.concatenate([self.labeled[train], self.unlabeled])
        codes = np.concatenate([self.codes[train], np.full(len(self.unlabeled), -1)])
        weights = np.concatenate([self.weights[train], self.weights_unlabeled])
        given = None if (weights == 1).all() else weights
        return classifier.fit(rows, codes, sample_weight=given)


def draw_trial(inputs: FitInputs, seed: int) -> Trial:
    """All labeled rows and a sample of the unlabeled ones, or samples of both if there are many."""
    units = inputs.frame.scale / inputs.frame.scale.max()
    labeled, codes, weights = inputs.labeled_rows()
    counted = np.flatnonzero(weights > 0)
    n_most = max(_FEWEST, _MOST_ENTRIES // labeled.shape[1])
    n_labeled, n_unlabeled = min(_MOST_LABELED, n_most), min(_MOST_UNLABELED, n_most)
    counted = draw_labeled(codes, counted, n_labeled, seed)
    unlabeled, more = inputs.unlabeled.sample(n_unlabeled, seed)
    unlabeled = inputs.frame.apply(unlabeled) * units
    labeled, codes, weights = merge_copies(
        labeled[counted], codes[counted], weights[counted]
    )
    return Trial(labeled * units, codes, weights, unlabeled, more)


def cross_validate(
    trial: Trial, classifiers: Sequence[Any], seed: int
) -> tuple[Array, Array]:
    """Losses and errors of every tested row under every classifier, means over the repeats.

    (classifiers, tested rows); NaN for a classifier that failed. Unlabeled rows always train.
    """
    tested, codes = trial.tested, trial.codes[trial.tested]
    is_slow, n_folds = trial.is_slow, trial.n_folds
    repeats = 1 if is_slow or len(tested) > _MOST_REPEATED else _REPEATS
    found = np.zeros((2, len(classifiers), len(tested)))
    rng = check_random_state(seed)
    for _ in range(repeats):
        folds = draw_folds(codes, n_folds, rng)
        for fold in (np.flatnonzero(folds == k) for k in range(n_folds)):
            train = np.setdiff1d(np.arange(len(trial.codes)), tested[fold])
            for k, classifier in enumerate(classifiers):
                probabilities = _predict(trial, classifier, train, tested[fold])
                found[:, k, fold] += (
                    np.array(row_losses(probabilities, codes[fold])) / repeats
                )
    return found[0], found[1]


def _predict(trial: Trial, classifier: Any, train: AnyArray, test: AnyArray) -> Array:
    """Probabilities of all classes; NaN where the fit fails."""
    probabilities = np.zeros((len(test), int(trial.codes.max()) + 1))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all rows repeats what matters
            model = trial.fit(classifier, train)
            probabilities[:, model.classes_] = model.predict_proba(trial.labeled[test])
    except ValueError:
        probabilities[:] = np.nan
    return probabilities


@dataclass(frozen=True)
class Choice:
    """The method to fit, why, and the error to expect of it."""

    method: Method
    why: str
    n_tested: int
    losses: dict[str, float] = field(default_factory=dict)
    estimate: ErrorEstimate | None = None


def choose_method(
    inputs: FitInputs, methods: Sequence[Method], shrinkage: Any, seed: int
) -> Choice:
    """Compare methods, the safest first, and choose by the rule of ``_statistics``."""
    trial = draw_trial(inputs, seed)
    n_tested = len(trial.tested)
    if not len(trial.unlabeled):
        # All of them would give the supervised fit.
        methods = [each for each in methods if not each.uses_unlabeled] or methods[:1]
    n_features = trial.labeled.shape[1]
    methods = affordable(methods, n_features)
    if inputs.proportions is None:
        methods = without_free_search(methods, inputs.n_labeled, n_features)
    if n_tested < LEAST_TESTED:
        rows = plural(inputs.n_labeled, "labeled row")
        why = f": {rows} are too few to compare methods on, and it is the safest"
        return Choice(methods[0], why, n_tested)
    priors = None if inputs.log_priors is None else np.exp(inputs.log_priors)
    given = {
        "shrinkage": shrinkage,
        "priors": priors,
        "proportions": inputs.proportions,
    }
    classifiers = [each.classifier(**given, seed=seed) for each in methods]
    for each in classifiers:
        if "normalize" in each.get_params():
            each.set_params(normalize=False)  # the rows of a trial are scaled
        if "n_starts" in each.get_params():
            each.set_params(n_starts=1 if trial.is_slow else _STARTS)
    with unreported(), one_thread_if_small(n_features):
        losses, is_wrong = cross_validate(trial, classifiers, seed)
    means = losses.mean(axis=1)
    if not np.isfinite(means).any():
        return Choice(methods[0], ": every fit of the cross-validation failed", 0)
    chosen = safest_choice(losses, is_wrong)
    if len(methods) == 1:
        why = ""
    elif chosen == int(np.nanargmin(means)):
        why = f": it did best of {len(methods)} methods on {n_tested:,} labeled rows"
    else:
        why = (
            f": on {n_tested:,} labeled rows none of {len(methods)} methods is better by more than "
            "chance explains, and of those that do about as well it is the safest"
        )
    known = {
        m.name: float(v) for m, v in zip(methods, means, strict=True) if np.isfinite(v)
    }
    of_unlabeled = _share_of_unlabeled(trial, inputs)
    estimate = estimate_final_error(
        losses, is_wrong, np.bincount(trial.codes), trial.n_folds, of_unlabeled, seed
    )
    return Choice(methods[chosen], why, n_tested, known, estimate)


def _tested_by_itself(method: Method, fitted: Any) -> Choice:
    """The choice of the average, with the error that it states."""
    losses = {} if fitted.loss_ is None else {method.name: fitted.loss_}
    return Choice(method, "", fitted.n_tested_, losses, _estimate_of(fitted))


def _estimate_of(fitted: Any) -> ErrorEstimate | None:
    if fitted.error_ is None:
        return None
    low, high = fitted.error_interval_
    return ErrorEstimate(fitted.error_, low, high, fitted.n_tested_)


def _share_of_unlabeled(trial: Trial, inputs: FitInputs) -> float:
    """The share of the unlabeled rows that are in a trial, where more of them help much."""
    if trial.labeled.shape[1] < MANY_FEATURES or not len(trial.unlabeled):
        return 1.0
    return len(trial.unlabeled) / inputs.unlabeled.n_rows


@dataclass(kw_only=True, eq=False, repr=False)
class AutoLDA(LinearGaussianClassifier):
    """The method that the labeled rows support, with shrinkage and an estimate of its error.

    The methods are compared by cross-validation on the labeled rows; all unlabeled rows train every
    time. A labeled row that occurs several times is tested once, by fits to none of its copies. Of
    those whose Brier score is within half a standard error of the lowest, or within 0.02
    with no more wrong rows, the safest is fitted to all rows: ``AverageLDA``, then self-training,
    pessimistic, supervised, EM, implicitly constrained, self-learning and moment constrained LDA,
    an order that comes from errors on many tables.
    Methods are not compared if fewer than 8 labeled rows can be tested (those of classes with two
    labels or more); the safest is fitted then. With 64 features or more, as features of a network
    have, it is the average unless ``methods`` names others. With ``proportions`` the choice is
    among those that take them. Shrinkage depends on the units of the columns: standardize them
    first.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates them.
    shrinkage : float in [0, 1) or "auto", default="auto"
        Shrinkage of every method, as their own parameter; None for none.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. None or NaN: a missing y is unlabeled.
    proportions : array-like, dict, "labeled", "equal", "auto" or "free", default=None
        Shares of the unlabeled rows that the classes get. The methods to choose from are then those
        that have this parameter. "free" is for labels of rows that were chosen instead of drawn at
        random: ``AverageLDA`` does not use their shares, and the safest method is fitted without a
        comparison and without an estimate of the error, which such labels do not support.
    methods : sequence of str, default=None
        Names of the methods to choose from, such as "supervised" and "iclda"; None for all, with
        64 features or more for the average alone.
    random_state : int, RandomState instance or None, default=None
        Draws folds and starts. None is a fixed seed: the same data give the same fit.
    normalize : bool or "auto", default="auto"
        Whether rows are scaled to length 1, about their mean if that is far from zero, as suits
        features of a network. "auto": with 64 features or more.
    n_jobs : int, default=None
        Threads that read the unlabeled rows: None is 1 unless a joblib.parallel_config says
        otherwise, -1 is all cores. The fit does not depend on it.

    Attributes
    ----------
    estimator_ : classifier
        The classifier of the chosen method, fitted to all rows.
    method_ : str
        Name of the chosen method.
    reason_ : str
        What was chosen and why, in one sentence.
    error_ : float or None
        Share of new rows that get a wrong class, corrected for the choice (bootstrap bias corrected
        cross-validation); None with fewer than 8 labels to test, or 3 a class on average.
    error_interval_ : tuple of two floats or None
        Its 90 % interval.
    base_rate_ : float
        Share of the labeled rows that get a wrong class if all of them get the most frequent one.
        A ``NothingLearnedWarning`` says if ``error_`` is not below it.
    n_tested_ : int
        Number of labeled rows behind it.
    losses_ : dict
        Mean Brier score of every method in cross-validation; empty with too few labels.
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    priors_ : ndarray of shape (n_classes,)
        Class priors used to predict.
    class_weights_ : ndarray of shape (n_classes,)
        Share of the weight in every class.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance within classes.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the linear scores; for two classes, of the log odds of the second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Their intercepts.
    shrinkage_ : float
        Shrinkage used.
    rank_ : int
        Rank of the covariance of all rows.
    center_ : ndarray or None
        Vector taken from rows before they are scaled to length 1; None if they are not scaled.
        Means, covariance and coefficients are those of the scaled rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has string column names.

    Examples
    --------
    >>> from iclda import AutoLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [9.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> clf = AutoLDA().fit(X, y)
    >>> clf.method_, clf.error_
    ('average', None)
    """

    _needs_positive_priors = True
    _can_narrow = False  # the method that is chosen may
    _own_constraints: ClassVar[dict[str, Any]] = {"methods": ["array-like", None]}

    shrinkage: Any = "auto"
    proportions: Any = None
    methods: Any = None
    random_state: Any = None
    normalize: bool | str = "auto"
    n_jobs: int | None = None

    def _fit_inputs(self, inputs: FitInputs) -> None:
        self._store_center(inputs)
        methods, seed = self._methods(), self._seed()
        # The average tests itself as it weighs its members.
        is_average = [each.name for each in methods] == [
            "average"
        ] and inputs.unlabeled.n_rows > 0
        if inputs.ignores_labeled_shares or is_average:
            choice = Choice(methods[0], _UNCOMPARED if len(methods) > 1 else "", 0)
        else:
            choice = choose_method(inputs, methods, self.shrinkage, seed)
        self._adopt(choice.method, inputs, seed)
        if is_average:
            choice = _tested_by_itself(choice.method, self.estimator_)
        shrunk = (
            " with shrinkage, which steadies it where labels are few"
            if self.shrinkage
            else ""
        )
        self.method_ = choice.method.name
        self.reason_ = f"Chose {choice.method.title}{shrunk}{choice.why}."
        self.losses_, self.n_tested_ = choice.losses, choice.n_tested
        error = choice.estimate
        self.error_ = None if error is None else error.error
        self.error_interval_ = None if error is None else (error.low, error.high)
        labeled = inputs.labels.classes[inputs.codes[inputs.codes >= 0]]
        base = BaseRate.of_counts(Counter(map(plain, labeled)))
        self.base_rate_ = base.error
        if error is not None:
            warn_if_nothing_learned(base, error, choice.losses[self.method_])

    def _adopt(self, method: Method, inputs: FitInputs, seed: int) -> None:
        """Fit the chosen method, and predict as it does."""
        chosen = method.classifier(
            shrinkage=self.shrinkage,
            priors=self.priors,
            proportions=self.proportions,
            seed=seed,
        )
        if "normalize" in chosen.get_params():
            chosen.set_params(normalize=self.normalize)
        self._copy_shared(chosen)
        if not method.uses_unlabeled and inputs.every_unlabeled is not None:
            find_non_finite(
                inputs.sources
            )  # the others notice NaN when they sum the rows
        if inputs.unlabeled.n_rows == 0:
            warn_of_no_unlabeled(
                type(self).__name__, self.unlabeled, chosen._supervised_name
            )
        if self.n_features_in_ >= WIDE:  # in the space of few rows, if it can
            inputs = prepare(inputs.passed, chosen, inputs.unit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoUnlabeledRowsWarning)
            chosen._fit_inputs(inputs)
        self.estimator_, self.classes_ = chosen, chosen.classes_
        self.shrinkage_, self.rank_ = chosen.shrinkage_, chosen.rank_
        self._store_model(chosen._gaussians_)

    @property
    def error_estimate(self) -> ErrorEstimate | None:
        """Error, interval and rows, as one value that reads as a sentence; None if unknown."""
        check_is_fitted(self)
        return _estimate_of(self)

    def _move_fitted(self, X: Any) -> None:
        super()._move_fitted(X)
        self.estimator_._move_fitted(X)

    def _methods(self) -> list[Method]:
        """Methods to choose from, the safest first; ParameterError if there are none."""
        if self.methods is None and self.n_features_in_ >= MANY_FEATURES:
            chosen = [find_method("average")]
        elif self.methods is None:
            chosen = [method for method in FITTED if method.name in FROM_THE_SAFEST]
        else:
            chosen = [*{find_method(str(name)): None for name in self.methods}]
        if not chosen:
            message = say(
                "{@methods} must name at least one method, got {given}.", given=chosen
            )
            raise ParameterError(message, parameter="methods", value=self.methods)
        is_free = isinstance(self.proportions, str) and self.proportions == FREE
        if self.proportions is not None and not is_free:
            names = ", ".join(each.name for each in chosen)
            chosen = [each for each in chosen if "proportions" in each.parameters]
            if not chosen:
                message = say(
                    "{@proportions} is for {takers} only, and the method is {names}: leave it out.",
                    takers=", ".join(
                        m.name for m in FITTED if "proportions" in m.parameters
                    ),
                    names=names,
                )
                raise ParameterError(
                    message, parameter="proportions", value=self.proportions
                )
        return sorted(chosen, key=lambda method: safety_rank(method.name))

    def _seed(self) -> int:
        if self.random_state is None or isinstance(self.random_state, Integral):
            return int(self.random_state or 0)
        return int(check_random_state(self.random_state).randint(2**16))
