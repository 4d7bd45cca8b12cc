"""A classifier that chooses its method by cross-validation on the labeled rows."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._core import AnyArray, Array
from .._cost import (
    AUTO_BUDGET,
    MAX_CLASSES_OF_ENSEMBLE,
    ProblemSize,
    affordable,
    is_search_slow,
    limit_starts,
    without_free_search,
)
from .._error_estimate import (
    MIN_TESTED_ROWS,
    BaseRate,
    ErrorEstimate,
    estimate_final_error,
    first_choice,
    row_losses,
)
from .._held_out import (
    NO_FOLD,
    draw_labeled,
    merge_copies,
    predict_held_out,
    stratified_folds,
)
from .._messages import FitError, NoUnlabeledRowsWarning, ParameterError, plural, say
from .._system import one_thread_if_small
from ..methods import FITTED, Method, default_rank, find_method
from .base import BaseClassifier
from .diagnosis import (
    GainBounds,
    warn_if_nothing_learned,
    warn_of_no_unlabeled,
)
from .fit_inputs import (
    FitInputs,
    Needs,
    find_non_finite,
    prepare_opened,
)
from .labels import FREE, plain
from .linear_model import LinearModel
from .views import AUTO_VIEW

# Folds and repeats of the cross-validation, as in `iclda compare --fast`.
_N_FOLDS = 10
_N_REPEATS = 3
# If searches take seconds, there are fewer folds and one repeat.
_N_FOLDS_OF_SLOW_SEARCH = 5
# With more tested rows than this, one repeat is enough.
_MAX_REPEATED_ROWS = 500
# Methods are compared on samples of at most this many rows ...
_MAX_TRIAL_LABELED_ROWS = 2_000
_MAX_TRIAL_UNLABELED_ROWS = 1_000
# ... with at most this many entries, labeled and unlabeled rows each ...
_MAX_TRIAL_ENTRIES = 2**19
# ... but of at least this many rows, however many features they have.
_MIN_TRIAL_ROWS = 100

# The reason for a choice without a comparison.
_UNCOMPARED = (
    ": labels of chosen rows are not a random sample, so methods were not compared, "
    "and this is the default"
)


@dataclass(frozen=True)
class Trial:
    """Rows on which methods are compared.

    Features have one unit in common, which is proportional to that of the user.
    """

    labeled: Array
    codes: AnyArray
    weights: Array
    unlabeled: Array
    weights_unlabeled: Array

    @property
    def n_classes(self) -> int:
        return int(self.codes.max()) + 1

    @property
    def n_features(self) -> int:
        return int(self.labeled.shape[1])

    @property
    def size(self) -> ProblemSize:
        n_rows = len(self.labeled) + len(self.unlabeled)
        return ProblemSize(n_rows, self.n_features, self.n_classes)

    @property
    def is_slow(self) -> bool:
        """Whether every start of a search takes seconds."""
        return is_search_slow(self.n_classes, self.n_features, AUTO_BUDGET)

    @property
    def tested(self) -> AnyArray:
        """Indices of the rows to test; a row alone in its class always trains."""
        rows_in_own_class = np.bincount(self.codes)[self.codes]
        return np.flatnonzero(rows_in_own_class > 1)

    @property
    def n_folds(self) -> int:
        """Folds of the tested rows, at most one for each row of the rarest class."""
        codes = self.codes[self.tested]
        # Taken row by row: a class without tested rows would have a count of 0.
        rows_in_own_class = np.bincount(codes)[codes]
        n_rarest = int(rows_in_own_class.min())
        n_affordable = _N_FOLDS_OF_SLOW_SEARCH if self.is_slow else _N_FOLDS
        return min(n_affordable, n_rarest)

    @property
    def n_repeats(self) -> int:
        is_long = self.is_slow or len(self.tested) > _MAX_REPEATED_ROWS
        return 1 if is_long else _N_REPEATS

    def draw_folds(self, rng: np.random.RandomState) -> AnyArray:
        """Draw the fold of every labeled row."""
        folds = np.full(len(self.codes), NO_FOLD)
        tested = self.tested
        folds[tested] = stratified_folds(self.codes[tested], self.n_folds, rng)
        return folds

    def predict(self, classifier: Any, train: AnyArray, test: AnyArray) -> Array:
        """Fit to some labeled rows and all unlabeled ones, and predict other rows.

        Returns the probabilities of all classes.
        """
        rows = np.concatenate([self.labeled[train], self.unlabeled])
        codes = np.concatenate([self.codes[train], np.full(len(self.unlabeled), -1)])
        weights = np.concatenate([self.weights[train], self.weights_unlabeled])
        # Weights of 1 would change nothing but rounding, and take time.
        given = None if (weights == 1).all() else weights
        model = classifier.fit(rows, codes, sample_weight=given)
        probabilities = np.zeros((len(test), self.n_classes))
        probabilities[:, model.classes_] = model.predict_proba(self.labeled[test])
        return probabilities


def draw_trial(inputs: FitInputs, seed: int) -> Trial:
    """Take the rows on which methods are compared, or samples if there are many."""
    # In the frame all features have about the same spread. These factors restore their
    # ratios, on which shrinkage depends, and keep large units from overflowing.
    frame = inputs.frame
    common_units = frame.scale / frame.scale.max()
    rows, codes, weights = inputs.labeled_rows
    max_rows = max(_MIN_TRIAL_ROWS, _MAX_TRIAL_ENTRIES // rows.shape[1])

    # 1. Draw labeled rows of positive weight, and merge copies.
    n_labeled = min(_MAX_TRIAL_LABELED_ROWS, max_rows)
    candidates = np.flatnonzero(weights > 0)
    drawn = draw_labeled(codes, candidates, n_labeled, seed)
    labeled = merge_copies(frame.apply(rows)[drawn], codes[drawn], weights[drawn])

    # 2. Draw unlabeled rows.
    n_unlabeled = min(_MAX_TRIAL_UNLABELED_ROWS, max_rows)
    unlabeled, unlabeled_weights = inputs.unlabeled.sample(n_unlabeled, seed)
    return Trial(
        labeled.rows * common_units,
        labeled.codes,
        labeled.weights,
        frame.apply(unlabeled) * common_units,
        unlabeled_weights,
    )


def cross_validate(
    trial: Trial, classifiers: Sequence[Any], seed: int
) -> list[Array | FitError]:
    """Return the losses of the tested rows under every classifier, and their errors.

    Each result is an array of shape (2, tested rows), the means over the repeats of
    ``row_losses``; or the error of a classifier that cannot be fitted to these rows.
    Unlabeled rows always train.
    """
    rng = check_random_state(seed)
    repeats = [trial.draw_folds(rng) for _ in range(trial.n_repeats)]
    return [_mean_losses(trial, classifier, repeats) for classifier in classifiers]


def _mean_losses(
    trial: Trial, classifier: Any, repeats: Sequence[AnyArray]
) -> Array | FitError:
    """Return the losses and errors of the tested rows, as means over repeats."""
    predict = partial(trial.predict, classifier)
    codes = trial.codes[trial.tested]
    means = np.zeros((2, len(codes)))
    for folds in repeats:
        probabilities = predict_held_out(predict, folds)
        if isinstance(probabilities, FitError):
            return probabilities
        losses = np.array(row_losses(probabilities, codes))
        means += losses / len(repeats)
    return means


@dataclass(frozen=True)
class Choice:
    """The method to fit, the reason for it, and the error to expect of it."""

    method: Method
    why: str
    n_tested: int
    losses: dict[str, float] = field(default_factory=dict)
    estimate: ErrorEstimate | None = None


def choose_method(
    inputs: FitInputs, methods: Sequence[Method], shrinkage: Any, seed: int
) -> Choice:
    """Compare methods, the preferred first, and choose by ``first_choice``."""
    trial = draw_trial(inputs, seed)
    n_tested = len(trial.tested)
    methods = _worth_comparing(methods, trial, inputs)
    if n_tested < MIN_TESTED_ROWS:
        rows = plural(inputs.n_labeled, "labeled row")
        why = f": {rows} are too few to compare methods, so this is the default"
        return Choice(methods[0], why, n_tested)

    # Fit every method without the labels of each fold.
    classifiers = _trial_classifiers(methods, trial, inputs, shrinkage, seed)
    with one_thread_if_small(trial.n_features):
        results = cross_validate(trial, classifiers, seed)
    fitted: list[Method] = []
    losses_of_fitted: list[Array] = []
    for method, result in zip(methods, results, strict=True):
        if not isinstance(result, FitError):
            fitted.append(method)
            losses_of_fitted.append(result)
    if not fitted:
        return Choice(methods[0], ": every fit of the cross-validation failed", 0)

    # Brier scores and mistakes, each (methods, tested rows).
    losses, is_wrong = np.stack(losses_of_fitted, axis=1)
    chosen = first_choice(losses, is_wrong)
    means = losses.mean(axis=1).tolist()
    is_best = chosen == int(np.argmin(means))
    estimate = estimate_final_error(
        losses,
        is_wrong,
        np.bincount(trial.codes),
        trial.n_folds,
        _share_of_unlabeled(trial, inputs),
        seed,
    )
    names = [method.name for method in fitted]
    return Choice(
        method=fitted[chosen],
        why=_why_chosen(len(methods), n_tested, is_best),
        n_tested=n_tested,
        losses=dict(zip(names, means, strict=True)),
        estimate=estimate,
    )


def _worth_comparing(
    methods: Sequence[Method], trial: Trial, inputs: FitInputs
) -> Sequence[Method]:
    """Leave out methods that take minutes, or that cannot do better than others."""
    if not len(trial.unlabeled):
        # All semi-supervised methods would give the supervised fit.
        supervised = [each for each in methods if not each.uses_unlabeled]
        methods = supervised or methods[:1]
    methods = affordable(methods, trial.size, AUTO_BUDGET)
    if _trial_proportions(inputs) is None:
        methods = without_free_search(methods, inputs.n_labeled, trial.n_features)
    return methods


def _trial_classifiers(
    methods: Sequence[Method],
    trial: Trial,
    inputs: FitInputs,
    shrinkage: Any,
    seed: int,
) -> list[Any]:
    """Return an unfitted classifier of every method, for the rows of a trial."""
    priors = None if inputs.log_priors is None else np.exp(inputs.log_priors)
    classifiers = []
    for method in methods:
        classifier = method.classifier(
            shrinkage=shrinkage,
            priors=priors,
            proportions=_trial_proportions(inputs),
            seed=seed,
        )
        if "view" in classifier.get_params():
            classifier.set_params(view=inputs.arguments.view)
        limit_starts(classifier, trial.n_classes, trial.n_features, AUTO_BUDGET)
        classifiers.append(classifier)
    return classifiers


def _trial_proportions(inputs: FitInputs) -> Any:
    """Return the proportions for rows whose classes are codes.

    Those of the labels, and learned ones, differ from fold to fold.
    """
    given = inputs.arguments.proportions
    return given if isinstance(given, str) else inputs.proportions


def _why_chosen(n_methods: int, n_tested: int, is_best: bool) -> str:
    """Return the end of the sentence that names the chosen method."""
    if n_methods == 1:
        return ""
    if is_best:
        return f": it was the best of {n_methods} methods on {n_tested:,} labeled rows"
    return (
        f": {n_tested:,} labels cannot tell the best of {n_methods} methods apart, and "
        "this one comes first in the default order"
    )


def _tests_itself(method: Method, inputs: FitInputs) -> bool:
    """Return whether a fit of a method holds out labels, and states its own error."""
    if method.name == "average":
        # Without unlabeled rows it is a supervised fit.
        return inputs.unlabeled.n_rows > 0
    return method.name == "ensemble"


def _tested_by_itself(choice: Choice, fitted: Any) -> Choice:
    """Return the choice of a method with the error that the method states."""
    losses = {} if fitted.loss_ is None else {choice.method.name: fitted.loss_}
    return replace(
        choice,
        n_tested=fitted.n_tested_,
        losses=losses,
        estimate=_estimate_of(fitted),
    )


def _estimate_of(fitted: Any) -> ErrorEstimate | None:
    """Return the error that a fitted classifier states, if it does."""
    if fitted.error_ is None:
        return None
    low, high = fitted.error_interval_
    return ErrorEstimate(fitted.error_, low, high, fitted.n_tested_)


def _share_of_unlabeled(trial: Trial, inputs: FitInputs) -> float:
    """Return the share of the unlabeled rows in a trial, where more of them help.

    With few features they hardly do, and the share counts as 1.
    """
    if not inputs.is_network or not len(trial.unlabeled):
        return 1.0
    return len(trial.unlabeled) / inputs.unlabeled.n_rows


def _inputs_for(chosen: Any, inputs: FitInputs) -> FitInputs:
    """Return the inputs as a chosen classifier takes them."""
    arguments = inputs.arguments.with_parameters(chosen)
    return prepare_opened(inputs.opened, arguments, chosen._needs, known=inputs)


def _estimator_has(name: str) -> Callable[[Any], bool]:
    """Return a check whether the chosen classifier has a method."""

    def check(self: Any) -> bool:
        # This raises the AttributeError that names what is missing.
        getattr(self.estimator_, name)
        return True

    return check


def _of_estimator(name: str) -> Any:
    """Return a property that is the fitted attribute of ``estimator_``."""
    return property(lambda self: getattr(self.estimator_, name))


@dataclass(kw_only=True, eq=False, repr=False)
class AutoLDA(BaseClassifier):
    """The default: what suits the rows, with an estimate of its error.

    A table is fitted by ``SemiSupervisedEnsemble``, a mixture over views and over
    classifiers of other kinds. Its columns may have any units: there is nothing to
    standardize. Features of a network are fitted by ``AverageLDA``: at least 64 columns
    of measurements in about one unit, which is how they are told from a table.

    With ``methods`` these are compared by cross-validation on the labeled rows; all
    unlabeled rows train every time. A labeled row that occurs several times is tested
    once, by fits to none of its copies. Of the methods whose Brier score is within two
    standard errors of the lowest, or within 0.02 with no more wrong rows, the first in
    this order is fitted to all rows: the ensemble, the average, then self-training,
    pessimistic, supervised, EM, implicitly constrained, self-learning and moment
    constrained LDA. The order comes from errors on many tables. Methods are not
    compared if fewer than 8 labeled rows can be tested (those of classes with two
    labels or more); the first in the order is fitted then. With ``proportions`` the
    choice is among the methods that take them.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates
        them.
    shrinkage : float in [0, 1) or "auto", default="auto"
        Shrinkage of every method, as their own parameter; None for none. With a number
        a table is fitted by ``AverageLDA``, since the ensemble has no such parameter.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. A missing y, None or NaN, is always unlabeled.
    view : str, default="auto"
        View of the chosen method, as its own parameter: "auto", "standardize",
        "whiten", "normalize", "kernel" or "whitened-kernel"; None for rows as they are.
        With another view than "auto" a table is fitted by ``AverageLDA``, as is one of
        more than 500 classes.
    proportions : array-like, dict, "labeled", "equal", "auto" or "free", default=None
        Shares of the unlabeled rows that the classes get. The methods to choose from
        are then those that have this parameter. "free" is for labels of rows that were
        chosen instead of drawn at random: ``AverageLDA`` does not use their shares, and
        the default is fitted without a comparison and without an estimate of the
        error, which such labels do not support.
    methods : sequence of str, default=None
        Names of the methods to choose from, such as "supervised" and "iclda"; None for
        the default.
    random_state : int, RandomState instance or None, default=None
        Draws folds and starts. None is a fixed seed: the same data give the same fit.
    n_jobs : int, default=None
        Threads that read the unlabeled rows: None is 1 unless a joblib.parallel_config
        says otherwise, -1 is all cores. The fit does not depend on it.

    Attributes
    ----------
    estimator_ : classifier
        The classifier of the chosen method, fitted to all rows.
    method_ : str
        Name of the chosen method.
    reason_ : str
        What was chosen and why, in one sentence.
    error_ : float or None
        Share of new rows that get a wrong class, corrected for the choice (bootstrap
        bias corrected cross-validation); None with fewer than 8 labels to test, or 3 a
        class on average.
    error_interval_ : tuple of two floats or None
        Its 90 % interval.
    base_rate_ : float
        Share of the labeled rows that get a wrong class if all of them get the most
        frequent one. A ``NothingLearnedWarning`` says if ``error_`` is not below it.
    n_tested_ : int
        Number of labeled rows behind it.
    losses_ : dict
        Mean Brier score of every method in cross-validation; empty with too few labels.
    loss_ : float or None
        That of the chosen method.
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    held_out_probabilities_ : ndarray of shape (n_labeled, n_classes) or None
        That of the chosen method, if it is the ensemble or the average.
    calibration_ : Calibration or None
        How the held-out labels correct probabilities, for ``class_shares``.
    priors_ : ndarray of shape (n_classes,)
        Class priors used to predict. This and what follows is there if the chosen
        method has Gaussian classes, which an ensemble has not.
    class_weights_ : ndarray of shape (n_classes,)
        Share of the weight in every class.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance within classes.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the linear scores; for two classes, of the log odds of the
        second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts of the linear scores.
    shrinkage_ : float
        Shrinkage used.
    rank_ : int
        Rank of the covariance of all rows.
    view_ : View or None
        The fitted view. Coefficients, means and covariance are those of mapped rows.
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
    ('ensemble', None)
    """

    # The method that is chosen may have further needs.
    _needs = Needs(positive_priors=True, all_features=True, raw_rows=True)
    _own_constraints: ClassVar[dict[str, Any]] = {"methods": ["array-like", None]}

    shrinkage: Any = "auto"
    view: str | None = AUTO_VIEW
    proportions: Any = None
    methods: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    def _fit_inputs(self, inputs: FitInputs) -> None:
        methods = self._methods(inputs)
        seed = self._seed()
        tests_itself = len(methods) == 1 and _tests_itself(methods[0], inputs)
        if self._has_free_proportions or tests_itself:
            why = _UNCOMPARED if len(methods) > 1 else self._why_default(inputs)
            choice = Choice(methods[0], why, n_tested=0)
        else:
            choice = choose_method(inputs, methods, self.shrinkage, seed)
        self.estimator_ = self._fit_chosen(choice.method, inputs, seed)
        if tests_itself:
            choice = _tested_by_itself(choice, self.estimator_)
        self._store_choice(choice)

        # Codes are those of all rows of a source: -1 stands for the unlabeled ones.
        labeled = inputs.labels.classes[inputs.codes[inputs.codes >= 0]]
        base = BaseRate.of_counts(Counter(map(plain, labeled)))
        self.base_rate_ = base.error
        if choice.estimate is not None:
            warn_if_nothing_learned(base, choice.estimate, choice.losses[self.method_])

    def _why_default(self, inputs: FitInputs) -> str:
        """Return what the rows were taken for, if that decided on the method."""
        if self.methods is not None:
            return ""
        if inputs.is_network:
            return (
                f", the default on features of a network: the {self.n_features_in_} "
                "columns are numbers in one unit (if they are a table, ask for the "
                "method ensemble)"
            )
        return ", the default on tables" if self._takes_ensemble(inputs) else ""

    def _takes_ensemble(self, inputs: FitInputs) -> bool:
        """Whether the ensemble has all parameters given, and takes so many classes."""
        is_plain = self.shrinkage == "auto" and self.view == AUTO_VIEW
        return is_plain and len(inputs.labels.classes) <= MAX_CLASSES_OF_ENSEMBLE

    @property
    def _has_free_proportions(self) -> bool:
        return isinstance(self.proportions, str) and self.proportions == FREE

    def _store_choice(self, choice: Choice) -> None:
        shrunk = ""
        if self.shrinkage and "shrinkage" in choice.method.parameters:
            shrunk = " with shrinkage, which steadies it where labels are few"
        self.method_ = choice.method.name
        self.reason_ = f"Chose {choice.method.title}{shrunk}{choice.why}."
        self.losses_ = choice.losses
        self.loss_ = choice.losses.get(self.method_)
        self.n_tested_ = choice.n_tested
        estimate = choice.estimate
        self.error_ = None if estimate is None else estimate.error
        self.error_interval_ = None
        if estimate is not None:
            self.error_interval_ = (estimate.low, estimate.high)

    def _fit_chosen(self, method: Method, inputs: FitInputs, seed: int) -> Any:
        """Return the classifier of a method, fitted to all rows."""
        chosen = self._unfitted(method, seed)
        # Opening X sets these in ``fit``, and the chosen classifier does not open it.
        chosen.n_features_in_ = self.n_features_in_
        if inputs.feature_names is not None:
            chosen.feature_names_in_ = self.feature_names_in_

        if not method.uses_unlabeled and inputs.every_unlabeled is not None:
            # Other methods notice NaN when they sum the unlabeled rows.
            find_non_finite(inputs.sources)
        if inputs.unlabeled.n_rows == 0:
            name = type(self).__name__
            warn_of_no_unlabeled(name, self.unlabeled, chosen._needs.supervised)
        with warnings.catch_warnings():
            # It would name the chosen classifier, which the user did not call.
            warnings.simplefilter("ignore", NoUnlabeledRowsWarning)
            chosen._fit_inputs(_inputs_for(chosen, inputs))
        return chosen

    def _unfitted(self, method: Method, seed: int) -> Any:
        """Return the classifier of a method with the parameters that both have."""
        chosen = method.classifier(
            shrinkage=self.shrinkage,
            priors=self.priors,
            proportions=self.proportions,
            seed=seed,
        )
        own = chosen.get_params(deep=False)
        for name in ("view", "unlabeled", "n_jobs"):
            if name in own:
                chosen.set_params(**{name: getattr(self, name)})
        return chosen

    @property
    def _model_(self) -> LinearModel:
        model: LinearModel = self.estimator_._model_
        return model

    classes_ = _of_estimator("classes_")
    priors_ = _of_estimator("priors_")
    class_weights_ = _of_estimator("class_weights_")
    means_ = _of_estimator("means_")
    covariance_ = _of_estimator("covariance_")
    coef_ = _of_estimator("coef_")
    intercept_ = _of_estimator("intercept_")
    shrinkage_ = _of_estimator("shrinkage_")
    view_ = _of_estimator("view_")
    held_out_probabilities_ = _of_estimator("held_out_probabilities_")
    rank_ = _of_estimator("rank_")
    adaptation_ = _of_estimator("adaptation_")
    calibration_ = _of_estimator("calibration_")

    @property
    def _array_attribute(self) -> str:
        name: str = self.estimator_._array_attribute
        return name

    # Methods of the chosen classifier. Those that only Gaussian classes have raise an
    # AttributeError if another one was chosen.

    def decision_function(self, X: Any) -> Array:
        """``decision_function`` of ``estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Log posteriors up to a constant in each row; for two classes, log odds of
            the second.
        """
        self._check_ready(X, "decision_function")
        scores: Array = self.estimator_.decision_function(X)
        return scores

    @available_if(_estimator_has("adapt"))
    def adapt(
        self, X: Any, sample_weight: Any = None, *, change: str = "offset"
    ) -> Self:
        """A copy with ``adapt`` of ``estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of one new source, or a source of rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        change : {"offset", "shares", "both"}, default="offset"
            What may differ from the training rows.

        Returns
        -------
        adapted : AutoLDA
            A fitted classifier, with ``adaptation_``.
        """
        adapted = copy(self)
        adapted.estimator_ = self.estimator_.adapt(X, sample_weight, change=change)
        return adapted

    @available_if(_estimator_has("novelty"))
    def novelty(self, X: Any) -> Array:
        """``novelty`` of ``estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or a source of rows.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            Higher for rows that are less like any known class.
        """
        novelty: Array = self.estimator_.novelty(X)
        return novelty

    @available_if(_estimator_has("transform"))
    def transform(self, X: Any) -> Array:
        """``transform`` of ``estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        X_new : ndarray of shape (n_samples, min(n_classes - 1, n_features))
            Coordinates along the directions that separate the classes best.
        """
        projected: Array = self.estimator_.transform(X)
        return projected

    @available_if(_estimator_has("score_samples"))
    def score_samples(self, X: Any) -> Array:
        """``score_samples`` of ``estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log density of every row, whatever its class.
        """
        log_density: Array = self.estimator_.score_samples(X)
        return log_density

    @available_if(_estimator_has("log_likelihood"))
    def log_likelihood(self, X: Any, y: Any) -> Array:
        """``log_likelihood`` of ``estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            Log of the prior times the density of its own class, for every row.
        """
        log_likelihood: Array = self.estimator_.log_likelihood(X, y)
        return log_likelihood

    @available_if(_estimator_has("gain_bounds"))
    def gain_bounds(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_unlabeled: Any = None,
        sample_weight_unlabeled: Any = None,
    ) -> GainBounds:
        """``gain_bounds`` of ``estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows that were passed to ``fit``.
        y : array-like of shape (n_samples,)
            Class of every row of X, or the marker ``unlabeled``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows of X.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Further unlabeled rows.
        sample_weight_unlabeled : array-like of shape (n_unlabeled,), default=None
            Weights of the rows of X_unlabeled.

        Returns
        -------
        bounds : GainBounds
            Worst and best change from supervised LDA.
        """
        bounds: GainBounds = self.estimator_.gain_bounds(
            X,
            y,
            sample_weight,
            X_unlabeled=X_unlabeled,
            sample_weight_unlabeled=sample_weight_unlabeled,
        )
        return bounds

    @available_if(_estimator_has("to_sklearn"))
    def to_sklearn(self) -> Any:
        """``to_sklearn`` of ``estimator_``.

        Returns
        -------
        classifier : object
            A fitted classifier of scikit-learn, perhaps in a pipeline.
        """
        return self.estimator_.to_sklearn()

    @available_if(_estimator_has("to_onnx"))
    def to_onnx(self, *, dtype: Any = "float64") -> Any:
        """``to_onnx`` of ``estimator_``.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default="float64"
            Type of the rows and of the probabilities.

        Returns
        -------
        model : onnx.ModelProto
            The same classifier as an ONNX graph.
        """
        return self.estimator_.to_onnx(dtype=dtype)

    @property
    def error_estimate(self) -> ErrorEstimate | None:
        """Error, interval and rows as one value that prints as a sentence, or None."""
        check_is_fitted(self)
        return _estimate_of(self)

    def _methods(self, inputs: FitInputs) -> list[Method]:
        """Return the methods to choose from, the preferred first.

        ParameterError if there are none.
        """
        if self.methods is not None:
            named = [find_method(str(name)) for name in self.methods]
            # Each method once, in the order in which they are named.
            chosen = list(dict.fromkeys(named))
        elif inputs.is_network or not self._takes_ensemble(inputs):
            chosen = [find_method("average")]
        else:
            chosen = [find_method("ensemble")]
        if not chosen:
            message = say(
                "{@methods} must name at least one method, got {given}.", given=chosen
            )
            raise ParameterError(message, parameter="methods", value=self.methods)
        if self.proportions is not None and not self._has_free_proportions:
            chosen = self._with_proportions(chosen)
        return sorted(chosen, key=lambda method: default_rank(method.name))

    def _with_proportions(self, methods: Sequence[Method]) -> list[Method]:
        """Return the methods that take proportions; ParameterError if none does."""
        chosen = [each for each in methods if "proportions" in each.parameters]
        if chosen:
            return chosen
        takers = [each.name for each in FITTED if "proportions" in each.parameters]
        message = say(
            "{@proportions} is for {takers} only, and the method is {names}: leave it "
            "out.",
            takers=", ".join(takers),
            names=", ".join(each.name for each in methods),
        )
        raise ParameterError(message, parameter="proportions", value=self.proportions)

    def _seed(self) -> int:
        if self.random_state is None or isinstance(self.random_state, Integral):
            return int(self.random_state or 0)
        return int(check_random_state(self.random_state).randint(2**16))
