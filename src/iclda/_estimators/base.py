"""Base classes of the classifiers: fit, predict, score.

A classifier is one function, ``_solve(problem) -> Fit``, and one value, ``_needs``,
which says what it needs of the rows. The base class does the rest, in four steps:
``prepare`` turns the arguments of ``fit`` into ``FitInputs`` and a ``Problem``;
``_solve`` fits the problem, or the labeled rows alone if there are no others; the
outcome is judged and warnings are shown; and the fitted model is stored in the user's
units, as a ``LinearModel`` that predicts, and as attributes.
"""

from __future__ import annotations

from collections.abc import Callable
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
from .._core.rowspace import LogLikelihood
from .._core.solvers import Limits, Outcome
from .._core.solvers.supervised import gains_over, supervised_reference
from .._messages import plural, warn
from .._rows import backend_of
from .._rows.kinds import in_memory, is_device_array
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
)
from .linear_model import GaussianModel, LeastSquaresModel, LinearModel, moved_like
from .predictions import RowFunction
from .rows_reader import RowsReader

_FitMethod = TypeVar("_FitMethod", bound=Callable[..., Any])

AT_LEAST_ONE = [Interval(Integral, 1, 2**63 - 1, closed="both")]
# Python's integers may be too large for a float.
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
    "normalize": [StrOptions({"auto"}), "boolean"],
    "unlabeled": "no_validation",
    "unlabeled_weight": [Interval(Real, 0, MAX_REAL_PARAMETER, closed="right")],
    "max_iter": AT_LEAST_ONE,
    "tol": [Interval(Real, 0, MAX_REAL_PARAMETER, closed="both")],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}


def _validated(fit: _FitMethod) -> _FitMethod:
    """Check the parameters first; scikit-learn's own decorator has no types."""
    checked: _FitMethod = _fit_context(prefer_skip_nested_validation=True)(fit)
    return checked


@dataclass(kw_only=True, eq=False, repr=False)
class LinearClassifier(ClassifierMixin, BaseEstimator):
    """Base class of classifiers with linear scores."""

    _needs: ClassVar[Needs] = Needs()
    # Rules for parameters that no other classifier has.
    _own_constraints: ClassVar[dict[str, Any]] = {}

    priors: Any = None
    shrinkage: Any = None
    unlabeled: Any = -1

    def _solve(self, problem: Problem) -> Fit:
        """Fit a prepared problem. Nothing is stored.

        Without unlabeled rows the problem is one of the labeled rows alone, and its fit
        the supervised one.
        """
        raise NotImplementedError

    @property
    def _parameter_constraints(self) -> dict[str, Any]:
        known = {**_CONSTRAINTS, **self._own_constraints}
        return {name: known[name] for name in self.get_params(deep=False)}

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
    ) -> Self:
        """Fit to labeled and unlabeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, labeled and unlabeled; or a source of rows: files, arrays on a device,
            Dask.
        y : array-like of shape (n_samples,)
            Class of every row of X, or the marker ``unlabeled``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows of X. Weight 2 counts like the row twice, weight 0 like
            no row. Only ratios of weights matter, but for ``shrinkage="auto"`` and the
            average, to which they are numbers of rows.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Further unlabeled rows, with the same features; or a source of rows.
        sample_weight_unlabeled : array-like of shape (n_unlabeled,), default=None
            Weights of the rows of X_unlabeled.

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
        earlier = dict(vars(self))
        try:
            inputs = prepare(
                RowsReader(self), arguments.with_parameters(self), self._needs
            )
            self._fit_inputs(inputs)
        except BaseException:
            # Never a mixture of two fits: the earlier one stays, or none.
            self.__dict__.clear()
            self.__dict__.update(earlier)
            raise
        return self

    def _fit_inputs(self, inputs: FitInputs) -> None:
        """Solve the problem of prepared inputs, judge the fit, and store it."""
        problem = inputs.problem
        if self._needs.unlabeled_rows and not inputs.uses_unlabeled:
            name = type(self).__name__
            warn_of_no_unlabeled(name, self.unlabeled, self._needs.supervised)
        self._check_problem(problem, inputs)
        fit = self._completed(self._solve(problem), problem, inputs)
        outcome = self._judge(problem, fit, inputs)
        self._store(replace(fit, outcome=outcome), inputs)
        self.__dict__.update(moved_like(inputs.arguments.X, vars(self)))

    def _check_problem(self, problem: Problem, inputs: FitInputs) -> None:
        """Raise errors and show warnings about rows before they are fitted."""
        space = inputs.space
        names = inputs.feature_names
        variances = space.variances(problem.moments.covariance)
        check_spread(variances, space.frame, names)
        labeled_shares = problem.labeled.counts / problem.moments.weight
        check_shares(inputs.labels.classes, labeled_shares)
        warn(*check_unlabeled_mean(problem, space, names))

    def _completed(self, fit: Fit, problem: Problem, inputs: FitInputs) -> Fit:
        """Return a fit in all features, with the attributes that all fits have."""
        attributes: dict[str, Any] = {"rank_": problem.rank, **fit.attributes}
        outcome = fit.outcome
        if self._needs.unlabeled_rows and not inputs.uses_unlabeled:
            attributes["n_passes_"] = 0
            if hasattr(self, "max_iter"):
                attributes["n_iter_"] = 1
                outcome = Outcome.CONVERGED
        elif inputs.learned_shares is not None:
            attributes["n_passes_"] += inputs.learned_shares.n_passes
        model = fit.model
        if isinstance(model, Gaussians):
            attributes.setdefault("shrinkage_", problem.shrinkage)
            variance = fit.variance_left_out
            if fit.labeled_span is None:
                variance = problem.target_variance
            model = inputs.space.model(model, variance)
            for name, value in fit.attributes.items():
                if isinstance(value, LogLikelihood):
                    attributes[name] = value.lifted(model, fit.model)
        return replace(fit, model=model, attributes=attributes, outcome=outcome)

    def _judge(self, problem: Problem, fit: Fit, inputs: FitInputs) -> Outcome | None:
        """Return the outcome of a fit, and warn of what is wrong with it."""
        name = type(self).__name__
        names = inputs.feature_names
        can_shrink = "shrinkage" in self.get_params(deep=False)
        if fit.labeled_span is None:
            variances = inputs.space.variances(problem.moments.covariance)
            warn(*check_span(variances, fit.attributes["rank_"], names))
        else:
            variances = inputs.space.variances(inputs.labeled.moments.covariance)
            warn(
                *check_labeled_span(
                    name,
                    fit.labeled_span,
                    variances,
                    names,
                    n_labeled=inputs.n_labeled,
                    is_shrunk=self.shrinkage is not None,
                    can_shrink=can_shrink,
                )
            )

        outcome = fit.outcome
        if _is_unbounded(problem, fit):
            warn(
                unbounded_warning(
                    name, problem, fit.model, names, can_shrink=can_shrink
                )
            )
            outcome = Outcome.UNBOUNDED
        elif outcome not in (None, Outcome.CONVERGED):
            outcome = self._warn_not_converged(problem, fit)

        # The warning advises to pass proportions.
        is_free = getattr(self, "proportions", FREE) is None
        if is_free and inputs.uses_unlabeled and fit.labeled_span is None:
            class_weights = fit.model.class_weights
            classes = inputs.labels.classes
            warn(*check_lost_class(name, problem, class_weights, classes))
        return outcome

    def _warn_not_converged(self, problem: Problem, fit: Fit) -> Outcome:
        """Warn that an iteration stopped early, and return what stopped it."""
        outcome = fit.outcome
        assert outcome is not None
        sentence: str = fit.detail
        if hasattr(self, "max_iter"):
            n_iter = fit.attributes["n_iter_"]
            # Without a limit of the user, one more round would have been wanted.
            wanted = self.max_iter or n_iter + 1
            is_short = outcome in (Outcome.MAX_ITERATIONS, Outcome.NOT_FOUND)
            if problem.rounds(wanted) < wanted and is_short:
                outcome = Outcome.MANY_CLASSES
            limit = self.max_iter or f"None, which allowed {n_iter} steps"
            passes = plural(fit.attributes["n_passes_"], "pass", "passes")
            detail = f"{fit.detail} after {plural(n_iter, 'step')} and {passes}"
            sentence = outcome.describe(detail, limit, getattr(self, "tol", None))
        message = f"{type(self).__name__} {sentence}"
        warn(NotConvergedWarning(message, outcome=outcome.name.lower()))
        return outcome

    def _store(self, fit: Fit, inputs: FitInputs) -> None:
        """Set the fitted attributes, in the user's units."""
        classes = inputs.labels.classes
        center = None if inputs.unit is None else inputs.unit.center
        model: LinearModel
        if isinstance(fit.model, Gaussians):
            model = GaussianModel(classes, center, fit.model)
        else:
            model = LeastSquaresModel(classes, center, fit.model, inputs.frame)
        attributes = {**fit.attributes, **model.fitted_attributes()}
        if fit.outcome is not None:
            attributes["converged_"] = fit.outcome is Outcome.CONVERGED
            attributes["outcome_"] = fit.outcome.name.lower()
        if hasattr(self, "normalize"):
            attributes["center_"] = center
        # An earlier fit may have left a covariance that this one does not form.
        self.__dict__.pop("covariance_", None)
        self.__dict__.update(attributes, classes_=classes, _model_=model)

    # Predictions.

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _check_ready(self, X: Any, method: str) -> None:
        check_is_fitted(self)
        if not get_config()["array_api_dispatch"]:
            return
        if is_device_array(X) or backend_of(X) is None:
            try:
                from sklearn.utils._array_api import check_same_namespace
            except ImportError:
                # Before scikit-learn 1.9 there was no such rule.
                return
            check_same_namespace(X, self, attribute="coef_", method=method)

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

    def _numbers_and_codes(
        self, X: Any, y: Any, function: RowFunction
    ) -> tuple[Array, AnyArray]:
        """Return numbers of all rows, in memory, and the codes of their classes."""
        y = in_memory(y)
        numbers = np.array(in_memory(RowsReader(self).apply(X, function)))
        check_lengths(X=numbers, y=y)
        return numbers, encode_known_classes(y, self.classes_, self.unlabeled)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows classified correctly; unlabeled rows are left out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes, or the marker.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        check_is_fitted(self)
        present, is_marker = split_marker(in_memory(y), self.unlabeled)
        weights = check_weights(
            in_memory(sample_weight), len(is_marker), "sample_weight"
        )
        is_scored = ~is_marker if weights is None else ~is_marker & (weights > 0)
        present = present[is_scored[~is_marker]]
        if not present.size:
            raise ValueError(
                f"score needs labeled rows, and all {len(is_marker)} rows carry the "
                f"marker {self.unlabeled!r} or have weight 0."
            )
        check_classes(present)
        if (present.dtype.kind in "biuf") != (self.classes_.dtype.kind in "biuf"):
            raise unknown_class_error(present[0], self.classes_)
        predicted = np.asarray(in_memory(self.predict(X)))
        check_lengths(X=predicted, y=is_marker)
        scored_weights = None if weights is None else weights[is_scored]
        is_right = present == predicted[is_scored]
        return float(np.average(is_right, weights=scored_weights))


def _is_unbounded(problem: Problem, fit: Fit) -> bool:
    """Return whether the likelihood that an iteration maximizes has no maximum."""
    is_iterative = fit.outcome is not None and fit.labeled_span is None
    if not is_iterative or not isinstance(fit.model, Gaussians):
        return False
    is_stopped = fit.outcome is Outcome.UNBOUNDED
    return is_stopped or fit.model.is_floored or problem.is_unbounded


@dataclass(kw_only=True, eq=False, repr=False)
class LinearGaussianClassifier(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, LinearClassifier
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

        Compared with ``SupervisedLDA`` of the same priors and ``shrinkage_``, fitted to
        the labeled rows. Five passes over the unlabeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows that were passed to ``fit``, labeled and unlabeled; or a source of
            rows.
        y : array-like of shape (n_samples,)
            Class of every row of X, or the marker ``unlabeled``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows of X.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Further unlabeled rows; or a source of rows.
        sample_weight_unlabeled : array-like of shape (n_unlabeled,), default=None
            Weights of the rows of X_unlabeled.

        Returns
        -------
        bounds : GainBounds
            ``worst``, ``best`` and ``expected`` change of the log likelihood of all
            rows per unit of weight, the last under the fit's own posteriors;
            ``disagreement``, the share of the unlabeled rows that the two classify
            differently; ``sentence``, all of that in words.
        """
        self._check_ready(X, "gain_bounds")
        model = self._model_
        arguments = Arguments(X, y, sample_weight, X_unlabeled, sample_weight_unlabeled)
        as_fitted = replace(
            arguments.with_parameters(self),
            shrinkage=self.shrinkage_,
            proportions=None,
            normalize=model.unit or False,
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

    @cached_property
    def covariance_(self) -> Array:
        """Covariance within classes; of few rows of many features formed when used."""
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
            ``X @ coef_.T + intercept_``, for rows that are scaled if those of the fit
            were: log posterior up to a constant of the row. With more than two classes
            and rows far from the origin (1,000 standard deviations) it is another
            constant, about the overall mean, which keeps the digits.
        """
        self._check_ready(X, "decision_function")
        return RowsReader(self).apply(X, self._model_.decisions())

    def transform(self, X: Any) -> Array:
        """Project on the directions that separate the classes best.

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
        """Number of columns of ``transform``, as scikit-learn asks for it."""
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
        """Log of prior times density of its own class, for every row.

        The loss of the paper is minus its mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            One number a row.
        """
        check_is_fitted(self)
        joint, codes = self._numbers_and_codes(X, y, self._model_.log_joint())
        return joint[np.arange(len(joint)), codes]

    def to_sklearn(self) -> Any:
        """The same classifier as one of scikit-learn, which predicts without iclda.

        Returns
        -------
        classifier : sklearn.discriminant_analysis.LinearDiscriminantAnalysis
            Fitted, with equal classes, probabilities and ``transform``; in a pipeline
            after the scaling of rows, if they are scaled. With more than two classes
            ``decision_function`` differs by a constant of the row: it is about the
            overall mean. It does not center rows: features 1e8 times their spread from
            zero lose 8 digits.
        """
        check_is_fitted(self)
        return to_sklearn(self, self._model_)

    def to_onnx(self, *, dtype: Any = "float64") -> Any:
        """The same classifier as an ONNX graph. Needs the extra ``onnx``.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default="float64"
            Type of the rows, and of the probabilities. Between them it computes in
            double.

        Returns
        -------
        model : onnx.ModelProto
            Input "X", outputs "label" and "probabilities"; ``SerializeToString`` gives
            the bytes that runtimes read. Version, classes and feature names are in its
            metadata.
        """
        check_is_fitted(self)
        return to_onnx(self, self._model_, dtype)
