"""Base classes of the classifiers: fit, predict, score.

A classifier is one function, ``_solve(problem) -> Fit``. The base class prepares the problem, calls
it, and stores the fit.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
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
from .._core.frame import Frame
from .._core.gaussian import Gaussians
from .._core.labelsums import LinearRule
from .._core.problem import LabeledSummary, Problem
from .._core.rowspace import LogLikelihood
from .._core.solvers import Limits, Outcome
from .._core.solvers.supervised import fit_labeled, gains_over, supervised_reference
from .._messages import FitError, plural, say, warn
from .._rows import backend_of
from .._rows.kinds import in_memory, is_device_array
from .._rows.places import place_of
from .._rows.unit_length import MANY_FEATURES
from . import predictions
from .diagnosis import (
    GainBounds,
    NotConvergedWarning,
    check_lost_class,
    check_span,
    check_unlabeled_mean,
    unbounded_warning,
    warn_of_no_unlabeled,
)
from .export import to_onnx, to_sklearn
from .inputs import RowReader, check_weights
from .labels import (
    EQUAL,
    FREE,
    LABELED,
    LEARNED,
    check_classes,
    check_lengths,
    plain,
    split_marker,
)
from .prepare import FitInputs, Passed, check_shares, check_spread, prepare

_FitMethod = TypeVar("_FitMethod", bound=Callable[..., Any])
AT_LEAST_ONE = [Interval(Integral, 1, 2**63 - 1, closed="both")]
LARGEST_PARAMETER = 1e300  # Python's integers may be too large for a float
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
    "unlabeled_weight": [Interval(Real, 0, LARGEST_PARAMETER, closed="right")],
    "max_iter": AT_LEAST_ONE,
    "tol": [Interval(Real, 0, LARGEST_PARAMETER, closed="both")],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}


@dataclass(frozen=True)
class Fit:
    """Result of ``_solve`` of a classifier."""

    model: Any  # Gaussians; of least squares the coefficients (K, 1 + rank)
    attributes: Mapping[str, Any] = field(
        default_factory=dict
    )  # fitted attributes by their names
    outcome: Outcome | None = None  # None: the fit has a closed form
    detail: str = ""  # what was still to be done where the iteration stopped
    rule: Any = None  # that labels unlabeled rows

    @classmethod
    def of_solution(
        cls,
        model: Any,
        solution: Any,
        detail: str,
        *,
        rule: Any = None,
        **attributes: Any,
    ) -> Fit:
        """The fit of an iteration, with its counts and its outcome."""
        counts = {"n_iter_": solution.n_iter, "n_passes_": solution.n_passes}
        return cls(model, {**counts, **attributes}, solution.outcome, detail, rule)


def _validated(fit: _FitMethod) -> _FitMethod:
    """Check the parameters first; scikit-learn's own decorator has no types."""
    checked: _FitMethod = _fit_context(prefer_skip_nested_validation=True)(fit)
    return checked


@dataclass(kw_only=True, eq=False, repr=False)
class LinearClassifier(RowReader, ClassifierMixin, BaseEstimator):
    """Base class of classifiers with linear scores."""

    _own_constraints: ClassVar[
        dict[str, Any]
    ] = {}  # of parameters that no other classifier has
    _uses_unlabeled_rows = True
    _needs_positive_priors = False
    _can_narrow = (
        True  # whether few rows of many features may be fitted in their own space
    )
    _supervised_name = (
        "SupervisedLDA"  # the classifier that equals it without unlabeled rows
    )
    _posteriors = staticmethod(
        predictions.posteriors
    )  # probabilities (n, K) from scores
    _log_posteriors = staticmethod(predictions.log_posteriors)

    priors: Any = None
    shrinkage: Any = None
    unlabeled: Any = -1

    @property
    def _parameter_constraints(self) -> dict[str, Any]:
        known = {**_CONSTRAINTS, **self._own_constraints}
        return {name: known[name] for name in self.get_params(deep=False)}

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
            Rows, labeled and unlabeled; or a source of rows: files, arrays on a device, Dask.
        y : array-like of shape (n_samples,)
            Class of every row of X, or the marker ``unlabeled``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows of X. Weight 2 counts like the row twice, weight 0 like no row. Only
            ratios of weights matter, but for ``shrinkage="auto"`` and the average, to which they
            are numbers of rows.
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
                f"{type(self).__name__} requires y to be passed, but the target y is None. Rows "
                f"without a label carry y = {plain(self.unlabeled)!r}."
            )
        earlier = dict(vars(self))
        try:
            passed = self._open_passed(
                X, y, sample_weight, X_unlabeled, sample_weight_unlabeled, reset=True
            )
            self._fit_inputs(prepare(passed, self))
            self._move_fitted(X)
        except BaseException:  # no mixture of two fits: the earlier one stays, or none
            self.__dict__.clear()
            self.__dict__.update(earlier)
            raise
        return self

    def _open_passed(
        self,
        X: Any,
        y: Any,
        weights: Any,
        X_unlabeled: Any,
        weights_unlabeled: Any,
        *,
        reset: bool,
    ) -> Passed:
        """Open the rows that were passed to ``fit``; ``reset`` stores the features."""
        if X_unlabeled is None and weights_unlabeled is not None:
            raise ValueError(
                "sample_weight_unlabeled weighs the rows of X_unlabeled, which was not passed; "
                "sample_weight weighs all rows of X, labeled or not."
            )
        # Where all rows enter the moments, these show NaN and infinity.
        is_weighted = weights is not None or weights_unlabeled is not None
        is_summed = (self._uses_unlabeled_rows or not reset) and not is_weighted
        source, further = self._open(X, reset=reset, is_summed_later=is_summed), None
        if X_unlabeled is not None:
            further = self._open(
                X_unlabeled, name="X_unlabeled", is_summed_later=is_summed
            )
        return Passed(source, y, weights, further, weights_unlabeled)

    def _fit_inputs(self, inputs: FitInputs) -> None:
        self.classes_ = inputs.labels.classes
        self._store_center(inputs)
        if self._uses_unlabeled_rows and inputs.unlabeled.n_rows > 0:
            fit = self._fit_all_rows(inputs)
        else:
            if self._uses_unlabeled_rows:
                warn_of_no_unlabeled(
                    type(self).__name__, self.unlabeled, self._supervised_name
                )
            fit = self._fit_labeled_rows(inputs)
        if fit.outcome is not None and hasattr(self, "max_iter"):
            self.converged_ = fit.outcome is Outcome.CONVERGED
            self.outcome_ = fit.outcome.name.lower()
        for name, value in fit.attributes.items():
            setattr(self, name, value)
        self._store(fit, inputs)

    @property
    def _is_normalized(self) -> bool:
        """Whether rows are scaled to length 1, which only some classifiers do."""
        choice = getattr(self, "normalize", False)
        return (
            self.n_features_in_ >= MANY_FEATURES if choice == "auto" else bool(choice)
        )

    def _store_center(self, inputs: FitInputs) -> None:
        self._center_ = None if inputs.unit is None else inputs.unit.center
        if hasattr(self, "normalize"):
            self.center_ = self._center_

    def _solve(self, problem: Problem) -> Fit:
        """Fit a prepared problem. Nothing is stored."""
        raise NotImplementedError

    def _fit_all_rows(self, inputs: FitInputs) -> Fit:
        raise NotImplementedError

    def _fit_labeled_rows(self, inputs: FitInputs) -> Fit:
        """The supervised fit, of rows that are all labeled or of a supervised classifier."""
        raise NotImplementedError

    def _store(self, fit: Fit, inputs: FitInputs) -> None:
        """Set the attributes that follow from the model."""
        raise NotImplementedError

    def _check_problem(self, problem: Problem, inputs: FitInputs) -> None:
        """Raise errors and show warnings about the rows of a problem."""
        variances, names = (
            inputs.space.variances(problem.moments.covariance),
            self._feature_names,
        )
        check_spread(inputs, variances)
        check_shares(inputs, problem.labeled.counts / problem.moments.weight)
        warn(*check_span(variances, problem.rank, names))
        warn(*check_unlabeled_mean(problem, inputs.space, names))

    def _no_passes(self) -> dict[str, Any]:
        """Counts of a fit without unlabeled rows."""
        return {"n_passes_": 0, **({"n_iter_": 1} if hasattr(self, "max_iter") else {})}

    @property
    def _limits(self) -> Limits:
        return Limits(self.max_iter, getattr(self, "tol", 0.0))

    def _judge(self, problem: Problem, fit: Fit) -> Outcome | None:
        """Return the outcome of a fit, and warn unless it converged."""
        outcome = fit.outcome
        if outcome is None or outcome is Outcome.CONVERGED:
            return outcome
        sentence = fit.detail
        if hasattr(self, "max_iter"):
            most = self.max_iter or fit.attributes["n_iter_"]
            wanted = (
                self.max_iter or most + 1
            )  # whether a round more would have been allowed
            is_short = outcome in (Outcome.MAX_ITERATIONS, Outcome.NOT_FOUND)
            if problem.rounds(wanted) < wanted and is_short:
                outcome = Outcome.MANY_CLASSES
            named = most if self.max_iter else f"None, which allowed {most} steps"
            passes = plural(fit.attributes["n_passes_"], "pass", "passes")
            detail = f"{fit.detail} after {plural(fit.attributes['n_iter_'], 'step')} and {passes}"
            sentence = outcome.describe(detail, named, getattr(self, "tol", None))
        message = f"{type(self).__name__} {sentence}"
        warn(NotConvergedWarning(message, outcome=outcome.name.lower()))
        return outcome

    def _copy_shared(self, other: LinearClassifier) -> None:
        """Copy shared parameters and feature names to another classifier."""
        shared = {"unlabeled": self.unlabeled, "n_jobs": getattr(self, "n_jobs", None)}
        other.set_params(
            **{name: shared[name] for name in shared if hasattr(other, name)}
        )
        other.n_features_in_ = self.n_features_in_
        if self._feature_names is not None:
            other.feature_names_in_ = self.feature_names_in_

    @property
    def _scoring(self) -> tuple[LinearRule, Frame]:
        """Scores of all classes, and the frame of the rows that they take."""
        raise NotImplementedError

    def _discriminant_rule(self) -> LinearRule:
        """Scores of all classes; of two classes, the second's advantage over the first."""
        rule, _ = self._scoring
        if rule.n_classes > 2:
            return rule
        coef, intercept = rule.ahead_of_first
        return replace(rule, coef=coef, intercept=intercept)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _move_fitted(self, X: Any) -> None:
        """Under dispatch, move fitted arrays but ``classes_`` to the library and device of X.

        Without it they are NumPy's, whatever X is. Predictions need neither.
        """
        if not get_config()["array_api_dispatch"] or not is_device_array(X):
            return
        place = place_of(X)
        for name, value in vars(self).items():
            is_number = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
            if is_number and name.endswith("_") and name != "classes_":
                move = place.put if value.dtype.kind == "f" else place.put_as_is
                setattr(self, name, move(value))

    def _check_ready(self, X: Any, method: str) -> None:
        check_is_fitted(self)
        if not get_config()["array_api_dispatch"]:
            return
        if is_device_array(X) or backend_of(X) is None:
            try:
                from sklearn.utils._array_api import check_same_namespace
            except ImportError:  # before scikit-learn 1.9 there was no such rule
                return
            check_same_namespace(X, self, attribute="coef_", method=method)

    def _from_scores(self, X: Any, method: str, function: Callable[[Any], Any]) -> Any:
        """Apply a function to scores (n, K), or to the lead (n, 1) of the second of two classes."""
        self._check_ready(X, method)
        by_rule = predictions.linear_scores(self._discriminant_rule(), self._scoring[1])
        return self._in_blocks(X, by_rule, function)

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
        return self._from_scores(
            X,
            "predict",
            lambda scores: predictions.most_probable(self.classes_, scores),
        )

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
        return self._from_scores(X, "predict_proba", self._posteriors)

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
        return self._from_scores(X, "predict_log_proba", self._log_posteriors)

    def _numbers_and_codes(
        self, X: Any, y: Any, numbers: predictions.Numbers
    ) -> tuple[Array, AnyArray]:
        """Return numbers of all rows, in memory, and the codes of their classes."""
        y = in_memory(y)
        values = np.array(in_memory(self._in_blocks(X, numbers)))
        check_lengths(X=values, y=y)
        present, is_marker = split_marker(y, self.unlabeled)
        if is_marker.any():
            raise ValueError(
                f"y marks {plural(is_marker.sum(), 'row')} as unlabeled ({self.unlabeled!r}), and "
                "the class of every row is needed: leave them out."
            )
        code_of = {label: code for code, label in enumerate(self.classes_.tolist())}
        codes = [code_of.get(label, -1) for label in present.tolist()]
        if -1 in codes:
            raise self._unknown_class(present[codes.index(-1)])
        return values, np.array(codes, dtype=int)

    def _unknown_class(self, label: Any) -> ValueError:
        classes = reprlib.repr(self.classes_.tolist())
        return ValueError(f"y holds {plain(label)!r}, and the classes are {classes}.")

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
                f"score needs labeled rows, and all {len(is_marker)} rows carry the marker "
                f"{self.unlabeled!r} or have weight 0."
            )
        check_classes(present)
        if (present.dtype.kind in "biuf") != (self.classes_.dtype.kind in "biuf"):
            raise self._unknown_class(present[0])
        predicted = np.asarray(in_memory(self.predict(X)))
        check_lengths(X=predicted, y=is_marker)
        scored_weights = None if weights is None else weights[is_scored]
        return float(
            np.average(present == predicted[is_scored], weights=scored_weights)
        )


@dataclass(kw_only=True, eq=False, repr=False)
class LinearGaussianClassifier(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, LinearClassifier
):
    """Gaussian classes that share one covariance. Subclasses supply ``_solve``."""

    _problem_kind: ClassVar[type[Problem]] = Problem
    _rests_on_labels = False  # whether its covariance comes from labeled rows alone

    def _fit_all_rows(self, inputs: FitInputs) -> Fit:
        problem = inputs.problem(
            self._problem_kind, self.shrinkage, rests_on_labels=self._rests_on_labels
        )
        self._check_problem(problem, inputs)
        fit = self._lifted(
            self._solve_inputs(problem, inputs), inputs, problem.target_variance
        )
        outcome = self._judge(problem, fit)
        if "proportions" in self.get_params() and self.proportions is None:
            # The warning advises to pass proportions.
            weights, classes = fit.model.class_weights, inputs.labels.classes
            warn(*check_lost_class(type(self).__name__, problem, weights, classes))
        shared = {"shrinkage_": problem.shrinkage, "rank_": problem.rank}
        return replace(fit, attributes={**shared, **fit.attributes}, outcome=outcome)

    def _solve_inputs(self, problem: Problem, inputs: FitInputs) -> Fit:
        """Fit a prepared problem; ``inputs`` are the rows that it was made of."""
        return self._solve(problem)

    def _fit_labeled_rows(self, inputs: FitInputs) -> Fit:
        labeled = inputs.labeled
        variances = inputs.space.variances(labeled.moments.covariance)
        check_spread(inputs, variances)
        check_shares(inputs, labeled.counts / labeled.weight)
        model, shrinkage, rank = self._fit_labeled(inputs, variances)
        attributes: dict[str, Any] = {"shrinkage_": shrinkage, "rank_": rank}
        if self._uses_unlabeled_rows:
            attributes |= {
                **self._no_passes(),
                **self._supervised_attributes(model, labeled),
            }
        fit = Fit(model, attributes, Outcome.CONVERGED, rule=model.score_rule())
        return self._lifted(fit, inputs, inputs.variance_left_out(labeled, shrinkage))

    def _supervised_attributes(
        self, model: Gaussians, labeled: LabeledSummary
    ) -> dict[str, Any]:
        """Attributes of ``_solve`` for a fit without unlabeled rows."""
        return {}

    def _lifted(self, fit: Fit, inputs: FitInputs, variance: float | None) -> Fit:
        """The fit in all features; ``variance`` is that of directions in which no row varies."""
        model = inputs.space.model(fit.model, variance)
        attributes = {
            name: value.lifted(model, fit.model)
            if isinstance(value, LogLikelihood)
            else value
            for name, value in fit.attributes.items()
        }
        return replace(fit, model=model, attributes=attributes)

    def _fit_labeled(
        self, inputs: FitInputs, variances: Array
    ) -> tuple[Gaussians, float, int]:
        """Model of the labeled rows, shrinkage used, and rank."""
        shrinkage, within = inputs.shrink_labeled(self.shrinkage)
        model, rank = fit_labeled(
            inputs.frame, inputs.labeled, inputs.log_priors, within
        )
        n_left_out = inputs.space.n_left_out if shrinkage else 0
        if rank == 0 and model.rank > 0:
            raise FitError(
                say(
                    "The {n} labeled rows do not vary within their classes, which leaves {name} no "
                    "covariance to estimate: label more rows, or pass {@shrinkage}, for example "
                    "0.1.",
                    n=inputs.n_labeled,
                    name=type(self).__name__,
                )
            )
        if rank < model.rank:
            message = say(
                "The {n} labeled rows are too few, or too alike within their classes, for these "
                "columns (they span {rank} of {needed} dimensions): {name} separates them "
                "perfectly, whatever they are, and its probabilities will be 0 or 1. Label more "
                "rows, or pass {another}{@shrinkage}, for example 0.1.",
                n=inputs.n_labeled,
                rank=rank,
                needed=model.rank,
                name=type(self).__name__,
                another="" if self.shrinkage is None else "another ",
            )
            warn(UserWarning(message))
        else:
            warn(*check_span(variances, rank + n_left_out, self._feature_names))
        return model, shrinkage, rank + n_left_out

    def _judge(self, problem: Problem, fit: Fit) -> Outcome | None:
        is_floored = fit.model.is_floored
        if fit.outcome is None or not (
            is_floored or problem.is_unbounded or fit.outcome is Outcome.UNBOUNDED
        ):
            return super()._judge(problem, fit)
        name = type(self).__name__
        warn(unbounded_warning(name, problem, fit.model, self._feature_names))
        return Outcome.UNBOUNDED

    def gain_bounds(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_unlabeled: Any = None,
        sample_weight_unlabeled: Any = None,
    ) -> GainBounds:
        """Worst and best change from supervised LDA to this fit, over all labels of unlabeled rows.

        Compared with ``SupervisedLDA`` of the same priors and ``shrinkage_``, fitted to the labeled
        rows. Five passes over the unlabeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows that were passed to ``fit``, labeled and unlabeled; or a source of rows.
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
            ``worst``, ``best`` and ``expected`` change of the log likelihood of all rows per unit
            of weight, the last under the fit's own posteriors; ``disagreement``, the share of the
            unlabeled rows that the two classify differently; ``sentence``, all of that in words.
        """
        self._check_ready(X, "gain_bounds")
        passed = self._open_passed(
            X, y, sample_weight, X_unlabeled, sample_weight_unlabeled, reset=False
        )
        inputs = prepare(passed, self, is_fitted=True)
        if not np.array_equal(inputs.labels.classes, self.classes_):
            raise ValueError(
                f"y holds the classes {inputs.labels.classes.tolist()}, and the fit has "
                f"{self.classes_.tolist()}: pass the rows and labels that were passed to fit."
            )
        inputs = replace(inputs, frame=self._gaussians_.frame)
        problem = inputs.problem(Problem, self.shrinkage_)
        gains = gains_over(problem, self._gaussians_, supervised_reference(problem))
        return GainBounds(**vars(gains), n_unlabeled=inputs.unlabeled.n_rows)

    def _store(self, fit: Fit, inputs: FitInputs) -> None:
        self._store_model(fit.model)

    def _store_model(self, model: Gaussians) -> None:
        frame = model.frame
        self._gaussians_ = model
        self.priors_ = np.exp(model.log_priors)
        self.class_weights_ = model.class_weights
        self.means_ = frame.restore(model.means)
        self.__dict__.pop("covariance_", None)
        if model.covariance is not None:
            _ = self.covariance_  # formed at once
        if len(self.classes_) == 2:
            rule = self._discriminant_rule().folded(frame)
            self.coef_, self.intercept_ = rule.coef.T.copy(), rule.intercept
        else:
            self.coef_, self.intercept_ = model.linear_scores

    @cached_property
    def covariance_(self) -> Array:
        """Covariance within classes; of few rows of many features formed when it is used."""
        scale = self._gaussians_.frame.scale
        return np.asarray(self._gaussians_.full_covariance() * scale[:, None] * scale)

    @property
    def _variances(self) -> Array:
        """(d,): diagonal of ``covariance_``, which is not formed for it."""
        return np.asarray(self._gaussians_.variances * self._gaussians_.frame.scale**2)

    @property
    def _scoring(self) -> tuple[LinearRule, Frame]:
        return self._gaussians_.score_rule(), self._gaussians_.frame

    def decision_function(self, X: Any) -> Array:
        """Linear scores of every class; for two classes, log odds of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            ``X @ coef_.T + intercept_``, for rows that are scaled if those of the fit were: log
            posterior up to a constant of the row. With more than two classes and rows far from the
            origin (1,000 standard deviations) it is another constant, about the overall mean, which
            keeps the digits.
        """
        self._check_ready(X, "decision_function")
        if len(self.classes_) == 2 or not self._gaussians_.frame.is_foldable:
            return self._from_scores(X, "decision_function", predictions.one_or_all)
        coef, intercept = self._gaussians_.linear_scores
        return self._in_blocks(
            X, predictions.scores(LinearRule(coef.T, intercept, is_soft=True))
        )

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
        model = self._gaussians_
        coef = model.discriminants(self._n_features_out)
        rule = LinearRule(coef, -model.center @ coef, is_soft=True)
        return self._in_blocks(X, predictions.linear_scores(rule, model.frame))

    @property
    def _n_features_out(self) -> int:
        return min(len(self.classes_) - 1, self.n_features_in_)

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
        return self._in_blocks(
            X, predictions.log_joint(self._gaussians_), predictions.logsumexp
        )

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
        joint, codes = self._numbers_and_codes(
            X, y, predictions.log_joint(self._gaussians_)
        )
        return joint[np.arange(len(joint)), codes]

    def to_sklearn(self) -> Any:
        """The same classifier as scikit-learn's own, which predicts without this package.

        Returns
        -------
        classifier : sklearn.discriminant_analysis.LinearDiscriminantAnalysis
            Fitted, with equal classes, probabilities and ``transform``; in a pipeline after the
            scaling of rows, if they are scaled. With more than two classes ``decision_function``
            differs by a constant of the row: it is about the overall mean. It does not center rows:
            features 1e8 times their spread from zero lose 8 digits.
        """
        check_is_fitted(self)
        return to_sklearn(self)

    def to_onnx(self, *, dtype: Any = "float64") -> Any:
        """The same classifier as an ONNX graph. Needs the extra ``onnx``.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default="float64"
            Type of the rows, and of the probabilities. Between them it computes in double.

        Returns
        -------
        model : onnx.ModelProto
            Input "X", outputs "label" and "probabilities"; ``SerializeToString`` gives the bytes
            that runtimes read. Version, classes and feature names are in its metadata.
        """
        check_is_fitted(self)
        return to_onnx(self, dtype)
