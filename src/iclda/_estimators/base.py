"""Base classes of the classifiers: fit, predict, score.

A classifier is one function, ``_solve(problem) -> Fit``, and one value, ``_needs``,
which says what it needs of the rows. The base class does the rest, in four steps:
``prepare`` turns the arguments of ``fit`` into ``FitInputs`` and a ``Problem``;
``_solve`` fits the problem, or the labeled rows alone if there are no others; the
outcome is judged and warnings are shown; and the fitted model is stored in the user's
units, as a ``LinearModel`` that predicts, and as attributes. ``AutoLDA`` and the
ensemble fit other classifiers instead of a problem: they override ``_fit_inputs``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn import get_config
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._core import AnyArray, Array
from .._core.gaussian import Gaussians
from .._core.problem import Problem
from .._core.rowspace import FeatureSpace, LogLikelihood
from .._core.solvers import Limits, Outcome
from .._core.solvers.supervised import gains_over, supervised_reference
from .._messages import plural, say, warn
from .._rows import backend_of
from .._rows.kinds import in_memory, is_device_array
from .._rows.views import VIEWS, without_bounds
from .diagnosis import (
    GainBounds,
    NotConvergedWarning,
    check_labeled_span,
    check_lost_class,
    check_span,
    check_unlabeled_mean,
    unbounded_warning,
    warn_of_no_unlabeled,
)
from .export import to_onnx, to_sklearn
from .fit import Fit
from .fit_inputs import (
    Arguments,
    FitInputs,
    Needs,
    check_shares,
    check_spread,
    prepare,
)
from .groups import prepare_groups
from .labels import (
    EQUAL,
    FREE,
    LABELED,
    LEARNED,
    check_classes,
    check_lengths,
    check_weights,
    encode_known_classes,
    plain,
    split_marker,
    unknown_class_error,
    warn_of_unseen,
)
from .linear_model import GaussianModel, LeastSquaresModel, LinearModel, moved_like
from .novelty import KnownRows, NoveltyModel
from .other_rows import (
    OFFSET,
    Adaptation,
    Calibration,
    ClassShareEstimate,
    adapt_gaussians,
    estimate_class_shares,
)
from .predictions import RowFunction
from .rows_reader import RowsReader
from .views import AUTO_VIEW

_FitMethod = TypeVar("_FitMethod", bound=Callable[..., Any])

AT_LEAST_ONE = [Interval(Integral, 1, 2**63 - 1, closed="both")]
# A larger integer of Python is a valid ``Real``, but may overflow as a float.
MAX_REAL_PARAMETER = 1e300
_CONSTRAINTS: dict[str, Any] = {
    "priors": ["array-like", dict, None],
    "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left"), None],
    "proportions": [
        "array-like",
        dict,
        StrOptions({LABELED, EQUAL, LEARNED, FREE}),
        None,
    ],
    "view": [StrOptions({AUTO_VIEW, *VIEWS}), None],
    "unlabeled": "no_validation",
    "unlabeled_weight": [Interval(Real, 0, MAX_REAL_PARAMETER, closed="right")],
    "max_iter": AT_LEAST_ONE,
    "tol": [Interval(Real, 0, MAX_REAL_PARAMETER, closed="both")],
    "random_state": ["random_state"],
    # joblib counts negative numbers from the number of cores, and has no 0.
    "n_jobs": [
        Interval(Integral, 1, None, closed="left"),
        Interval(Integral, None, -1, closed="right"),
        None,
    ],
}


def _validated(fit: _FitMethod) -> _FitMethod:
    """Check the parameters first; scikit-learn's own decorator has no types."""
    checked: _FitMethod = _fit_context(prefer_skip_nested_validation=True)(fit)
    return checked


@dataclass(kw_only=True, eq=False, repr=False)
class BaseClassifier(ClassifierMixin, BaseEstimator):
    """Base class of all classifiers: the steps of ``fit``, classes and probabilities.

    A subclass is a dataclass whose fields are its parameters.
    """

    _needs: ClassVar[Needs] = Needs()
    # Rules for the parameters that only this classifier has.
    _own_constraints: ClassVar[dict[str, Any]] = {}
    # Groups that are routed to a splitter stay out of ``fit`` unless it asks for them.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "groups": False,
        "groups_unlabeled": False,
    }

    priors: Any = None
    shrinkage: Any = None
    unlabeled: Any = -1
    view: str | None = None

    def _solve(self, problem: Problem) -> Fit:
        """Fit a prepared problem. Nothing is stored.

        Without unlabeled rows the problem is one of the labeled rows alone, and its fit
        the supervised one.
        """
        raise NotImplementedError

    @property
    def _parameter_constraints(self) -> dict[str, Any]:
        """Rules for all parameters, under the name that scikit-learn looks for."""
        known = {**_CONSTRAINTS, **self._own_constraints}
        return {name: known[name] for name in self.get_params(deep=False)}

    @property
    def _is_iterative(self) -> bool:
        """Whether the user may limit the iterations of a fit."""
        return hasattr(self, "max_iter")

    @property
    def _can_shrink(self) -> bool:
        """Whether a warning may advise to pass ``shrinkage``."""
        return "shrinkage" in self.get_params(deep=False)

    def _limits_of(self, problem: Problem) -> Limits:
        """Return where an iteration on a problem stops, by the user's parameters.

        Without a limit of the user the problem says how many rounds it can afford.
        """
        max_iter = self.max_iter
        if max_iter is None:
            max_iter = problem.default_rounds
        return Limits(max_iter, getattr(self, "tol", 0.0))

    @_validated
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_unlabeled: Any = None,
        sample_weight_unlabeled: Any = None,
        groups: Any = None,
        groups_unlabeled: Any = None,
    ) -> Self:
        """Fit to labeled and unlabeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Labeled and unlabeled rows, or a source of rows: files, an array on a
            device, or a Dask collection.
        y : array-like of shape (n_samples,)
            Class of every row of X, or the marker ``unlabeled``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows of X. A row of weight 2 counts as two rows, one of
            weight 0 as none. Only the ratios of weights matter, except to
            ``shrinkage="auto"`` and ``AverageLDA``, which take them as numbers of rows.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Further unlabeled rows with the same features, or a source of rows.
        sample_weight_unlabeled : array-like of shape (n_unlabeled,), default=None
            Weights of the rows of X_unlabeled.
        groups : array-like of shape (n_samples,), default=None
            Group of every row of X, labeled or not, such as its speaker or instrument;
            rows must be in memory. The offsets of groups are subtracted before the fit,
            which is then one for a source without an offset (``adapt`` moves it to
            another one), and are kept in ``group_offsets_``, group -> (n_features,).
        groups_unlabeled : array-like of shape (n_unlabeled,), default=None
            Groups of the rows of X_unlabeled.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                f"None. Rows without a label carry y = {plain(self.unlabeled)!r}."
            )
        arguments = Arguments(X, y, sample_weight, X_unlabeled, sample_weight_unlabeled)
        arguments = arguments.with_parameters(self)
        earlier = dict(vars(self))
        try:
            reader = RowsReader(self)
            if groups is None and groups_unlabeled is None:
                inputs = prepare(reader, arguments, self._needs)
                self.__dict__.pop("group_offsets_", None)
            else:
                inputs, self.group_offsets_ = prepare_groups(
                    reader, arguments, self._needs, [groups, groups_unlabeled]
                )
            self.__dict__.pop("adaptation_", None)
            self._fit_inputs(inputs)
            self._calibrate(inputs)
        except BaseException:
            # After a failure the classifier is as before, not a mixture of two fits.
            self.__dict__.clear()
            self.__dict__.update(earlier)
            raise
        return self

    def _calibrate(self, inputs: FitInputs) -> None:
        """Set ``calibration_`` where the fit predicted held-out rows."""
        # AutoLDA has it in the classifier that it chose.
        fitted: Any = getattr(self, "estimator_", self)
        if not hasattr(fitted, "held_out_probabilities_"):
            return
        fitted.calibration_ = None
        held_out = in_memory(fitted.held_out_probabilities_)
        if held_out is not None:
            codes = inputs.labels.labeled_codes
            fitted.calibration_ = Calibration.of_held_out(held_out, codes)

    def _fit_inputs(self, inputs: FitInputs) -> None:
        """Solve the problem of prepared inputs, judge the fit, and store it."""
        problem = inputs.problem
        if inputs.lacks_unlabeled:
            name = type(self).__name__
            warn_of_no_unlabeled(name, self.unlabeled, self._needs.supervised)
        self._check_problem(problem, inputs)
        solved = self._solve(problem)
        fit = self._completed(solved, problem, inputs)
        outcome = self._judge(problem, fit, inputs)
        self._store(replace(fit, outcome=outcome), inputs)
        self.__dict__.pop("_novelty_model_", None)
        if isinstance(fit.model, Gaussians):
            self._known_rows_ = KnownRows.of_fit(
                problem, inputs, fit.model.class_weights
            )
        # Fitted arrays of rows on a device are on that device, too.
        self.__dict__.update(moved_like(inputs.arguments.X, vars(self)))

    def _check_problem(self, problem: Problem, inputs: FitInputs) -> None:
        """Raise errors and give warnings about the rows before they are fitted."""
        space = inputs.space
        names = inputs.feature_names
        variances = space.variances(problem.moments.covariance)
        check_spread(variances, space.frame, names)
        labeled_shares = problem.labeled.counts / problem.moments.weight
        check_shares(inputs.labels.classes, labeled_shares)
        warn(*check_unlabeled_mean(problem, space, names))

    def _completed(self, fit: Fit, problem: Problem, inputs: FitInputs) -> Fit:
        """Return the fit with a model of all features and the common attributes."""
        attributes: dict[str, Any] = {"rank_": problem.rank, **fit.attributes}
        outcome = fit.outcome
        if inputs.lacks_unlabeled:
            # The supervised fit takes the place of an iteration, and counts as one.
            attributes["n_passes_"] = 0
            if self._is_iterative:
                attributes["n_iter_"] = 1
                outcome = Outcome.CONVERGED
        elif inputs.learned_shares is not None:
            # Learning the shares of the classes took passes as well.
            attributes["n_passes_"] += inputs.learned_shares.n_passes
        # Least squares are fitted in all features, and without shrinkage.
        if not isinstance(fit.model, Gaussians):
            return replace(fit, attributes=attributes, outcome=outcome)
        attributes.setdefault("shrinkage_", problem.shrinkage)
        completed = replace(fit, attributes=attributes, outcome=outcome)
        return _lifted(completed, problem, inputs.space)

    def _judge(self, problem: Problem, fit: Fit, inputs: FitInputs) -> Outcome | None:
        """Return the outcome of a fit, and warn of what is wrong with it."""
        self._warn_of_ignored_directions(problem, fit, inputs)
        outcome = fit.outcome
        if _is_unbounded(problem, fit):
            # A likelihood without a maximum explains why an iteration did not converge:
            # one warning is enough.
            self._warn_unbounded(problem, fit, inputs)
            outcome = Outcome.UNBOUNDED
        elif outcome not in (None, Outcome.CONVERGED):
            outcome = self._warn_not_converged(problem, fit)
        self._warn_of_lost_class(problem, fit, inputs)
        return outcome

    def _warn_unbounded(self, problem: Problem, fit: Fit, inputs: FitInputs) -> None:
        """Warn that the likelihood has no maximum, and say why."""
        warning = unbounded_warning(
            type(self).__name__,
            problem,
            fit.model,
            inputs.feature_names,
            can_shrink=self._can_shrink,
        )
        warn(warning)

    def _warn_of_lost_class(
        self, problem: Problem, fit: Fit, inputs: FitInputs
    ) -> None:
        """Warn if a class has lost nearly all of its unlabeled rows.

        The warning advises to pass ``proportions``: it is given if the classifier has
        this parameter, and the user has not set it.
        """
        parameters = self.get_params(deep=False)
        has_proportions = "proportions" in parameters
        if not has_proportions or parameters["proportions"] is not None:
            return
        if fit.rests_on_labeled_rows or not inputs.uses_unlabeled:
            return
        name = type(self).__name__
        class_weights = fit.model.class_weights
        classes = inputs.labels.classes
        warn(*check_lost_class(name, problem, class_weights, classes))

    def _warn_of_ignored_directions(
        self, problem: Problem, fit: Fit, inputs: FitInputs
    ) -> None:
        """Warn if the rows on which the fit rests do not span all dimensions."""
        names = inputs.feature_names
        span = fit.labeled_span
        if span is None:
            variances = inputs.space.variances(problem.moments.covariance)
            warn(*check_span(variances, fit.attributes["rank_"], names))
            return
        variances = inputs.space.variances(inputs.labeled.moments.covariance)
        warn(
            *check_labeled_span(
                type(self).__name__,
                span,
                variances,
                names,
                n_labeled=inputs.n_labeled,
                is_shrunk=self.shrinkage is not None,
                can_shrink=self._can_shrink,
            )
        )

    def _warn_not_converged(self, problem: Problem, fit: Fit) -> Outcome:
        """Warn that an iteration stopped early, and return what stopped it."""
        outcome = self._reason_for_stopping(problem, fit)
        sentence: str = fit.detail
        if self._is_iterative:
            n_iter = fit.attributes["n_iter_"]
            limit = self.max_iter or f"None, which allowed {n_iter} steps"
            passes = plural(fit.attributes["n_passes_"], "pass", "passes")
            detail = f"{fit.detail} after {plural(n_iter, 'step')} and {passes}"
            sentence = outcome.describe(detail, limit, getattr(self, "tol", None))
        message = say("{name} {sentence}", name=type(self).__name__, sentence=sentence)
        if self._searches_among_many_maxima(problem):
            message = say(
                "{message} With fewer labels than features there are many maxima, "
                "often none worth finding: pass {@proportions=auto}, or use "
                "PessimisticLDA or AverageLDA.",
                message=message,
            )
        warn(NotConvergedWarning(message, outcome=outcome.name.lower()))
        return outcome

    def _searches_among_many_maxima(self, problem: Problem) -> bool:
        """Return whether a search with few labels goes on without proportions."""
        parameters = self.get_params(deep=False)
        is_search = "n_starts" in parameters
        has_few_labels = problem.labeled.n_rows < problem.whitening.rank
        return is_search and has_few_labels and parameters["proportions"] is None

    def _reason_for_stopping(self, problem: Problem, fit: Fit) -> Outcome:
        """Return what stopped an iteration early.

        A problem of many classes may afford fewer rounds than the user allows: then the
        number of classes is the reason, and a larger ``max_iter`` would not help.
        """
        outcome = fit.outcome
        assert outcome is not None
        ran_out = outcome in (Outcome.MAX_ITERATIONS, Outcome.NOT_FOUND)
        if not (ran_out and self._is_iterative):
            return outcome
        # If max_iter is None, the iteration would have made at least one more step.
        wanted = self.max_iter or fit.attributes["n_iter_"] + 1
        can_afford_wanted = problem.rounds(wanted) >= wanted
        return outcome if can_afford_wanted else Outcome.MANY_CLASSES

    def _store(self, fit: Fit, inputs: FitInputs) -> None:
        """Set the fitted attributes, in the user's units."""
        classes = inputs.labels.classes
        model: LinearModel
        if isinstance(fit.model, Gaussians):
            model = GaussianModel(classes, inputs.view, fit.model)
        else:
            model = LeastSquaresModel(classes, inputs.view, fit.model, inputs.frame)
        attributes = {**fit.attributes, **model.fitted_attributes()}
        if fit.outcome is not None:
            attributes["converged_"] = fit.outcome is Outcome.CONVERGED
            attributes["outcome_"] = fit.outcome.name.lower()
        attributes["view_"] = inputs.view
        # An earlier fit may have left a covariance that this one does not form.
        self.__dict__.pop("covariance_", None)
        self.__dict__.update(attributes, classes_=classes, _model_=model)

    # Predictions.

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    @property
    def _array_attribute(self) -> str:
        """Name of a fitted array, by which the array library of the fit is known."""
        return "coef_"

    def _check_ready(self, X: Any, method: str) -> None:
        """Raise an error if nothing is fitted, or if X is on another device."""
        check_is_fitted(self)
        if not get_config()["array_api_dispatch"]:
            return
        # Files and Dask collections are on no device.
        is_array = is_device_array(X) or backend_of(X) is None
        if not is_array:
            return
        try:
            from sklearn.utils._array_api import check_same_namespace
        except ImportError:
            # Before version 1.9 scikit-learn did not have this check.
            return
        name = self._array_attribute
        # A model file may have left the attribute out.
        if getattr(self, name) is not None:
            check_same_namespace(X, self, attribute=name, method=method)

    def predict(self, X: Any) -> AnyArray:
        """Most probable class of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Classes, in the dtype of ``classes_``.
        """
        self._check_ready(X, "predict")
        return RowsReader(self).apply(X, self._model_.labels())

    def predict_proba(self, X: Any) -> Array:
        """Posterior probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        self._check_ready(X, "predict_proba")
        return RowsReader(self).apply(X, self._model_.probabilities())

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the posterior probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        self._check_ready(X, "predict_log_proba")
        return RowsReader(self).apply(X, self._model_.log_probabilities())

    def _adapt_model(
        self, model: GaussianModel, X: Any, sample_weight: Any, change: str
    ) -> tuple[GaussianModel, Adaptation]:
        """Return a model for the rows of a new source, and what speaks for it."""
        self._check_ready(X, "adapt")
        source = RowsReader(self).open(X)
        weights = in_memory(sample_weight)
        if weights is not None:
            # Rows are counted only if there are weights: counting may take a pass.
            weights = check_weights(weights, source.n_rows, "sample_weight")
        source = replace(source, weights=weights)
        # Numbers far outside of the columns of the fit may be usual in the new source.
        view = without_bounds(model.view)
        if view is not None:
            source = source.viewed(view)
        gaussians, adaptation = adapt_gaussians(source, model.gaussians, change, view)
        return replace(model, gaussians=gaussians, view=view), adaptation

    def _numbers_and_codes(
        self, X: Any, y: Any, function: RowFunction
    ) -> tuple[Array, AnyArray]:
        """Apply a function to every row; return its results and the codes of y.

        Both are in memory.
        """
        y = in_memory(y)
        results = RowsReader(self).apply(X, function)
        # A copy: callers change the numbers.
        numbers = np.array(in_memory(results))
        check_lengths(X=numbers, y=y)
        codes = encode_known_classes(y, self.classes_, self.unlabeled)
        return numbers, codes

    def class_shares(self, X: Any, y: Any = None) -> ClassShareEstimate:
        """Shares of the classes among rows, with 90 % intervals.

        They are those of the mixture under which the rows are most likely, by EM, after
        the probabilities are calibrated by the labels that the fit held out, if it did.
        Intervals cover chance in the rows and in these labels. With labels of some of
        the rows, drawn at random, they are the mean probability plus the mean error on
        these labels, and hold whatever the classifier is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or a source of rows.
        y : array-like of shape (n_samples,), default=None
            Classes of rows that were drawn at random; other rows carry the marker
            ``unlabeled``.

        Returns
        -------
        estimate : ClassShareEstimate
            ``classes``, ``shares``, ``low``, ``high``, ``n_rows``, ``n_random`` and
            ``how``, a sentence.
        """
        self._check_ready(X, "class_shares")
        probabilities = np.asarray(in_memory(self.predict_proba(X)))
        codes = None
        if y is not None:
            known, is_marker = split_marker(in_memory(y), self.unlabeled)
            check_lengths(X=probabilities, y=is_marker)
            codes = np.full(len(is_marker), -1)
            codes[~is_marker] = encode_known_classes(
                known, self.classes_, self.unlabeled
            )
        return estimate_class_shares(self, probabilities, codes)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the labeled rows that are classified correctly.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes; rows that carry the marker ``unlabeled`` are left out. Rows
            of classes that the fit had no label of count as wrong, with a warning.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        check_is_fitted(self)
        # 1. Find the rows to score: those with a label and a weight above 0.
        known, is_marker = split_marker(in_memory(y), self.unlabeled)
        sample_weight = in_memory(sample_weight)
        weights = check_weights(sample_weight, len(is_marker), "sample_weight")
        scored = np.flatnonzero(~is_marker)
        scored_weights = None
        if weights is not None:
            is_counted = weights[scored] > 0
            scored = scored[is_counted]
            known = known[is_counted]
            scored_weights = weights[scored]
        if not known.size:
            raise ValueError(
                f"score needs labeled rows, and all {len(is_marker)} rows carry the "
                f"marker {self.unlabeled!r}, are missing or have weight 0."
            )

        # 2. Check their classes. Without this a comparison of numbers with text would
        # call every row wrong.
        check_classes(known)
        if _are_numbers(known) != _are_numbers(self.classes_):
            raise unknown_class_error(known[0], self.classes_)
        warn_of_unseen(known, self.classes_, in_memory(y), self.unlabeled)

        # 3. Compare them with the predictions.
        predicted = np.asarray(in_memory(self.predict(X)))
        check_lengths(X=predicted, y=is_marker)
        is_right = known == predicted[scored]
        return float(np.average(is_right, weights=scored_weights))


def _are_numbers(classes: AnyArray) -> bool:
    """Return whether classes are numbers, or True and False, and not text."""
    return classes.dtype.kind in "biuf"


def _lifted(fit: Fit, problem: Problem, space: FeatureSpace) -> Fit:
    """Return a fit of Gaussian classes in all features.

    Its log likelihoods become those of the rows in all features.
    """
    # The variance of directions in which no row varies, which have no coordinates.
    variance_left_out = problem.target_variance
    if fit.rests_on_labeled_rows or fit.variance_left_out is not None:
        variance_left_out = fit.variance_left_out
    model = space.model(fit.model, variance_left_out)
    # Log likelihoods of the coordinates lack the terms of these directions.
    attributes = dict(fit.attributes)
    for name, value in attributes.items():
        if isinstance(value, LogLikelihood):
            attributes[name] = value.lifted(model, fit.model)
    return replace(fit, model=model, attributes=attributes)


def _is_unbounded(problem: Problem, fit: Fit) -> bool:
    """Return whether the likelihood that an iteration maximizes has no maximum."""
    is_iterative = fit.outcome is not None and not fit.rests_on_labeled_rows
    if not is_iterative or not isinstance(fit.model, Gaussians):
        return False
    has_ended_unbounded = fit.outcome is Outcome.UNBOUNDED
    return has_ended_unbounded or fit.model.is_floored or problem.is_unbounded


@dataclass(kw_only=True, eq=False, repr=False)
class LinearGaussianClassifier(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseClassifier
):
    """Base class of classifiers with Gaussian classes that share one covariance."""

    def gain_bounds(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_unlabeled: Any = None,
        sample_weight_unlabeled: Any = None,
    ) -> GainBounds:
        """Worst and best change from supervised LDA, over all labels of unlabeled rows.

        The fit is compared with ``SupervisedLDA`` of the same priors and
        ``shrinkage_``, fitted to the labeled rows. It takes five passes over the
        unlabeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The labeled and unlabeled rows that were passed to ``fit``, or a source of
            rows.
        y : array-like of shape (n_samples,)
            Class of every row of X, or the marker ``unlabeled``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows of X.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Further unlabeled rows, or a source of rows.
        sample_weight_unlabeled : array-like of shape (n_unlabeled,), default=None
            Weights of the rows of X_unlabeled.

        Returns
        -------
        bounds : GainBounds
            ``worst``, ``best`` and ``expected`` are changes of the log likelihood of
            all rows per unit of weight, the last one under the posteriors of this fit.
            ``disagreement`` is the share of the unlabeled rows that the two fits
            classify differently. ``sentence`` says all of that in words.
        """
        self._check_ready(X, "gain_bounds")
        model = self._model_
        # The problem of the fit again: its shrinkage and its scaling, in its frame.
        # Bounds are over all labelings, whatever the proportions.
        arguments = Arguments(X, y, sample_weight, X_unlabeled, sample_weight_unlabeled)
        as_fitted = replace(
            arguments.with_parameters(self),
            shrinkage=self.shrinkage_,
            proportions=None,
            view=model.view,
        )
        needs = Needs(all_features=True, positive_priors=self._needs.positive_priors)
        inputs = prepare(RowsReader(self), as_fitted, needs, is_first=False)
        if not np.array_equal(inputs.labels.classes, self.classes_):
            raise ValueError(
                f"y holds the classes {inputs.labels.classes.tolist()}, and the fit "
                f"has {self.classes_.tolist()}: pass the rows and labels that were "
                "passed to fit."
            )
        problem = replace(inputs, frame=model.frame).problem
        gains = gains_over(problem, model.gaussians, supervised_reference(problem))
        return GainBounds(**vars(gains), n_unlabeled=inputs.unlabeled.n_rows)

    def adapt(
        self, X: Any, sample_weight: Any = None, *, change: str = "offset"
    ) -> Self:
        """Return a copy for the rows of another source, such as a speaker or a day.

        The copy is moved by what unlabeled rows of that source show; its coefficients
        stay. What was done is in its attribute ``adaptation_``: the change has to make
        rows that it was not learned from more likely, or else nothing is changed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of one new source, or a source of rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        change : {"offset", "shares", "both"}, default="offset"
            "offset" moves all classes by the difference of the mean of X and that of
            the training rows, which is right if X has the class shares of the training
            rows. "shares" learns the class shares of X by EM, and "both" also learns
            the offset by EM. In a kernel view there is no offset.

        Returns
        -------
        adapted : object
            A fitted classifier of the same class, with ``adaptation_``.
        """
        model, adaptation = self._adapt_model(self._model_, X, sample_weight, change)
        adapted = copy(self)
        adapted.__dict__.update(
            model.fitted_attributes(), _model_=model, view_=model.view
        )
        adapted.__dict__.update(moved_like(X, vars(adapted)), adaptation_=adaptation)
        if change != OFFSET:
            # It corrects probabilities under the earlier shares.
            adapted.__dict__.pop("calibration_", None)
        return adapted

    def novelty(self, X: Any) -> Array:
        """How little every row resembles any of the classes, from 0 to 1.

        The score of a row is its density among all rows of the fit relative to that in
        the nearest class. Its novelty is the share of rows of known classes with a
        lower score, as labeled rows that are held out show them: ``novelty > 0.95``
        flags 5 % of the rows of known classes, and ``1 - novelty`` is a p-value. With
        fewer than 19 labels to hold out it only orders rows, and a warning says so.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or a source of rows.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            Higher for rows that are less like any known class.
        """
        self._check_ready(X, "novelty")
        return RowsReader(self).apply(X, self._novelty_function())

    def _novelty_function(self) -> RowFunction:
        """Return the novelty of rows; a warning says if it is no p-value."""
        self._novelty_model_.warn_unless_calibrated()
        model = self._model_
        # ``adapt`` may have moved the classes.
        moved = self._novelty_model_.moved(model.gaussians.offset)
        # A row with a broken number is unlike all others.
        return moved.function(without_bounds(model.view))

    @cached_property
    def _novelty_model_(self) -> NoveltyModel:
        return self._known_rows_.novelty_model()

    @cached_property
    def covariance_(self) -> Array:
        """Covariance within classes; for wide data it is formed when it is used."""
        return self._model_.covariance

    def decision_function(self, X: Any) -> Array:
        """Linear scores of every class; for two classes, log odds of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            ``X @ coef_.T + intercept_``, where X is scaled if the rows of the fit were.
            These are log posteriors up to a constant in each row. If there are more
            than two classes and the rows lie far from the origin (1,000 standard
            deviations), scores are taken about the overall mean, which changes that
            constant and avoids cancellation.
        """
        self._check_ready(X, "decision_function")
        return RowsReader(self).apply(X, self._model_.decisions())

    def transform(self, X: Any) -> Array:
        """Project onto the directions that separate the classes best.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        X_new : ndarray of shape (n_samples, min(n_classes - 1, n_features))
            Coordinates with unit variance within classes, about the overall mean.
        """
        self._check_ready(X, "transform")
        return RowsReader(self).apply(X, self._model_.discriminants())

    @property
    def _n_features_out(self) -> int:
        """Number of columns of ``transform``, under the name scikit-learn looks for."""
        return int(self._model_.n_components)

    def score_samples(self, X: Any) -> Array:
        """Log density of every row, whatever its class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log of the sum over classes of prior times density.
        """
        self._check_ready(X, "score_samples")
        return RowsReader(self).apply(X, self._model_.log_density())

    def log_likelihood(self, X: Any, y: Any) -> Array:
        """Log of the prior times the density of its own class, for every row.

        The loss in the paper is the negative of the mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            One number for each row.
        """
        check_is_fitted(self)
        joint, codes = self._numbers_and_codes(X, y, self._model_.log_joint())
        return joint[np.arange(len(joint)), codes]

    def to_sklearn(self) -> Any:
        """The same classifier as one of scikit-learn, which predicts without iclda.

        Returns
        -------
        classifier : sklearn.discriminant_analysis.LinearDiscriminantAnalysis
            A fitted classifier with the same classes, probabilities and ``transform``.
            If rows are scaled, it is the last step of a pipeline that scales them. With
            more than two classes its ``decision_function``, which is about the overall
            mean, differs by a constant in each row. It does not center rows: where a
            feature lies 1e8 times its spread from zero, 8 digits are lost.
        """
        check_is_fitted(self)
        return to_sklearn(self, self._model_)

    def to_onnx(self, *, dtype: Any = "float64") -> Any:
        """The same classifier as an ONNX graph. Needs the extra ``onnx``.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default="float64"
            Type of the rows and of the probabilities. The computation between them is
            in double precision.

        Returns
        -------
        model : onnx.ModelProto
            Its input is "X", and its outputs are "label" and "probabilities". The bytes
            that runtimes read come from ``SerializeToString``. The version, the classes
            and the feature names are in its metadata.
        """
        check_is_fitted(self)
        return to_onnx(self, self._model_, dtype)
