"""What all classifiers share: fit, predict and score, written once."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import cleandoc
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
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from .._core.frame import Frame
from .._core.gains import gains_over
from .._core.gaussian import Gaussians
from .._core.labelsums import LinearRule
from .._core.problem import LabeledSummary, Problem
from .._core.rowspace import objective_shift
from .._core.solvers import Outcome
from .._core.solvers.supervised import (
    fit_labeled,
    shrink_rows,
    supervised_reference,
    target_of_labeled,
)
from .._core.types import AnyArray, Array
from .._messages import Hint, NoUnlabeledRowsWarning, Text
from .._packages import site
from .._rows.backends import backend_of, in_memory, is_device_array, is_lazy
from .diagnosis import Diagnosis, advice_to_continue, warn, warn_of_single_labels
from .export import to_onnx, to_sklearn
from .gains import GainBounds, bounds_of
from .inputs import RowReader, check_is_read, check_shape, check_weights, take_rows
from .labels import are_comparable, check_classes, check_lengths, plain, split_marker
from .predictions import (
    linear_scores,
    log_joint,
    log_posteriors,
    logsumexp,
    most_probable,
    posteriors,
    scores,
)
from .proportions import LABELED
from .training import FitInputs, FitSettings, check_shares, check_spread, check_units, prepare

Fit = TypeVar("Fit", bound=Callable[..., Any])
AT_LEAST_ONE = [Interval(Integral, 1, 2**63 - 1, closed="both")]
LARGEST = 1e300  # numbers, since Python's integers may be too large for a float
_CONSTRAINTS: dict[str, Any] = {
    "priors": ["array-like", dict, None],
    "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left"), None],
    "proportions": ["array-like", dict, StrOptions({LABELED}), None],
    "unlabeled": "no_validation",
    "unlabeled_weight": [Interval(Real, 0, LARGEST, closed="right")],
    "max_iter": AT_LEAST_ONE,
    "tol": [Interval(Real, 0, LARGEST, closed="both")],
    "random_state": ["random_state"],
    "n_jobs": [
        Interval(Integral, 1, None, closed="left"),
        Interval(Integral, None, -1, closed="right"),
        None,
    ],
}
_ENTRY = re.compile(r"^(\w+) : .*(?:\n    .*)*", re.MULTILINE)
_NAMES = re.compile(r"^\w+(?:, \w+)*$", re.MULTILINE)


def constraints(*names: str, **own: Any) -> dict[str, Any]:
    """What parameters may be: those of all classifiers, others of these names, and its own."""
    return {name: _CONSTRAINTS[name] for name in ("priors", "shrinkage", "unlabeled", *names)} | own


def _validated(fit: Fit) -> Fit:
    """Parameters are checked before; scikit-learn's own decorator has no types."""
    checked: Fit = _fit_context(prefer_skip_nested_validation=True)(fit)
    return checked


def warn_of_no_unlabeled(name: str, unlabeled: Any, supervised: str = "SupervisedLDA") -> None:
    """A semi-supervised classifier has labeled rows only."""
    warn(
        NoUnlabeledRowsWarning(
            f"{name} got no unlabeled rows: the fit equals {supervised}'s. Mark rows by "
            f"y = {plain(unlabeled)!r}, or pass X_unlabeled.",
            estimator=name,
        )
    )


@dataclass(kw_only=True, eq=False, repr=False)
class LinearClassifier(RowReader, ClassifierMixin, BaseEstimator):
    """A classifier by linear scores, and what fitting and predicting need of it.

    A subclass names the entries below in its docstring, where they are filled in.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates them.
    shrinkage : float in [0, 1) or "auto", default=None
        Share of the mean variance of all rows on the diagonal of the covariance; "auto" between
        that of Ledoit and Wolf for the labeled rows and that of Chen et al. for all rows.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. None or NaN: a missing y is unlabeled.
    proportions : array-like, dict or "labeled", default=None
        Shares of the unlabeled rows that the classes get, in the order of ``classes_``, or class ->
        share; a pair instead of a share is the least and the largest one. "labeled" takes the
        shares of the labeled rows. None leaves them free; with fewer labels than features a free
        fit may give nearly all unlabeled rows to one class.
    n_jobs : int, default=None
        Threads that read the unlabeled rows: None is 1 unless a joblib.parallel_config says
        otherwise, -1 is all cores. The fit does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    priors_ : ndarray of shape (n_classes,)
        Class priors used to predict.
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
        Number of directions in which all rows vary.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has string column names.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = constraints()
    _uses_unlabeled_rows = True
    _needs_positive_priors = False
    _rests_on_labels = False  # its covariance is that of labeled rows, whatever happens to it then
    _can_narrow = True  # fits few rows of many features in their own space

    priors: Any = None
    shrinkage: Any = None
    unlabeled: Any = -1

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        shared, own = LinearClassifier.__doc__, cls.__doc__
        if shared and own:  # there are none in python -OO
            entries = {entry[1]: entry[0] for entry in _ENTRY.finditer(cleandoc(shared))}

            def filled_in(line: re.Match[str]) -> str:
                return "\n".join(entries.get(name, name) for name in line[0].split(", "))

            cls.__doc__ = _NAMES.sub(filled_in, cleandoc(own))

    # The HTML display links to the page of the classifier, where the project has a site.
    @property
    def _doc_link_module(self) -> str:
        return "iclda" if site() else ""

    @property
    def _doc_link_template(self) -> str:
        return site() + "/methods/{page}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"page": type(self).__module__.rpartition(".")[2]}

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
            ratios of weights matter, but for ``shrinkage="auto"``, to which they are numbers of
            rows.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Further unlabeled rows, with the same features; or a source of rows.
        sample_weight_unlabeled : array-like of shape (n_unlabeled,), default=None
            Weights of the rows of X_unlabeled.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        name = type(self).__name__
        if y is None:
            raise ValueError(
                f"{name} requires y to be passed, but the target y is None. Rows without a label "
                f"carry y = {plain(self.unlabeled)!r}."
            )
        source = X, y, sample_weight, X_unlabeled, sample_weight_unlabeled
        earlier = dict(vars(self))
        try:
            data = self._inputs(*source, reset=True, uses_unlabeled=self._uses_unlabeled_rows)
            self._fit_inputs(data, source)
            self._move_fitted(X)
        except BaseException:  # no mixture of two fits: the earlier one stays, or none
            self.__dict__.clear()
            self.__dict__.update(earlier)
            raise
        return self

    def _fit_inputs(self, data: FitInputs, source: tuple[Any, ...] = ()) -> None:
        """Fit to what ``prepare`` returned; ``source`` are the arguments of ``fit``."""
        raise NotImplementedError

    def _pass_on(self, other: LinearClassifier) -> None:
        """Let another classifier, to be fitted to the same inputs, know what this one does."""
        known = {"unlabeled": self.unlabeled, "n_jobs": getattr(self, "n_jobs", None)}
        other.set_params(**{name: known[name] for name in known if hasattr(other, name)})
        other.n_features_in_ = self.n_features_in_
        if self._feature_names is not None:
            other.feature_names_in_ = self.feature_names_in_

    @property
    def _diagnosis(self) -> Diagnosis:
        return Diagnosis(type(self).__name__, self._feature_names)

    @property
    def _frame(self) -> Frame:
        """Of the coordinates in which rules are."""
        raise NotImplementedError

    @property
    def _score_rule(self) -> LinearRule:
        """Scores of all classes."""
        raise NotImplementedError

    def _discriminant_rule(self) -> LinearRule:
        """Scores of all classes; of two classes, the second's advantage over the first."""
        rule = self._score_rule
        if rule.n_classes > 2:
            return rule
        coef, intercept = rule.ahead_of_first
        return replace(rule, coef=coef, intercept=intercept)

    def _inputs(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        X_unlabeled: Any,
        sample_weight_unlabeled: Any,
        *,
        reset: bool,
        uses_unlabeled: bool,
    ) -> FitInputs:
        """What was passed to ``fit``, checked; ``reset`` notes the features."""
        # Where all rows enter the moments, these show NaN and infinity.
        is_weighted = sample_weight is not None or sample_weight_unlabeled is not None
        is_summed = uses_unlabeled and not is_weighted
        source = self._open(X, reset=reset, is_summed_later=is_summed)
        further = None
        if X_unlabeled is not None:
            further = self._open(X_unlabeled, name="X_unlabeled", is_summed_later=is_summed)
        elif sample_weight_unlabeled is not None:
            raise ValueError(
                "sample_weight_unlabeled weighs the rows of X_unlabeled, which was not passed; "
                "sample_weight weighs all rows of X, labeled or not."
            )
        settings = FitSettings(
            type(self).__name__,
            self.priors,
            self.unlabeled,
            getattr(self, "unlabeled_weight", 1.0),
            uses_unlabeled,
            self._needs_positive_priors,
            self.shrinkage,
            getattr(self, "proportions", None),
            may_narrow=reset and self._can_narrow,
        )
        return prepare(source, y, sample_weight, further, sample_weight_unlabeled, settings)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _move_fitted(self, X: Any) -> None:
        """Under dispatch fitted arrays are of the library of X, and where X is, but ``classes_``.

        Without it they are NumPy's, whatever X is. Predictions need neither.
        """
        if not get_config()["array_api_dispatch"] or not is_device_array(X):
            return
        from .._rows.device_sums import place_of

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

    def _from_scores(self, X: Any, function: Callable[[Any], Any]) -> Any:
        """Results of a function of (n, K) scores, or of the second of two classes' lead (n, 1)."""
        by_rule = linear_scores(self._discriminant_rule(), self._frame)
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
        self._check_ready(X, "predict")
        return self._from_scores(X, most_probable(self.classes_))

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
        return self._from_scores(X, posteriors)

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
        return self._from_scores(X, log_posteriors)

    def _codes_of(self, y: Any) -> AnyArray:
        present, is_marker = split_marker(y, self.unlabeled)
        if is_marker.any():
            raise ValueError(
                f"y marks {is_marker.sum()} rows as unlabeled ({self.unlabeled!r}), and the log "
                "likelihood needs the class of every row: leave them out, or use score_samples."
            )
        number = {c: k for k, c in enumerate(self.classes_.tolist())}
        values, codes = np.unique(present, return_inverse=True)
        unknown = [c for c in values.tolist() if c not in number]
        if unknown:
            raise self._unknown_classes(unknown)
        return np.array([number[c] for c in values.tolist()], dtype=int)[codes]

    def _unknown_classes(self, found: list[Any]) -> ValueError:
        classes = reprlib.repr(self.classes_.tolist())
        return ValueError(f"y holds {reprlib.repr(found)}, and the classes are {classes}.")

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
        y, sample_weight = in_memory(y), in_memory(sample_weight)
        is_in_memory = backend_of(X) is None
        if is_in_memory:
            X = check_shape(check_is_read(X))
            check_lengths(X=X, y=y)
        present, is_marker = split_marker(y, self.unlabeled)
        weights = check_weights(sample_weight, len(is_marker), "sample_weight")
        is_scored = ~is_marker if weights is None else ~is_marker & (weights > 0)
        kept, present = np.flatnonzero(is_scored), present[is_scored[~is_marker]]
        if not present.size:
            raise ValueError(
                f"score needs labeled rows, and all {len(is_marker)} rows carry the marker "
                f"{self.unlabeled!r} or have weight 0."
            )
        check_classes(present)
        if not are_comparable(present, self.classes_):
            raise self._unknown_classes(present[:1].tolist())
        if is_in_memory:
            predicted = self.predict(take_rows(X, kept))
        else:
            predicted = np.asarray(in_memory(self.predict(X)))
            check_lengths(X=predicted, y=is_marker)
            predicted = predicted[kept]
        is_right = present == predicted
        return float(np.average(is_right, weights=None if weights is None else weights[kept]))


@dataclass(kw_only=True, eq=False, repr=False)
class LinearGaussianClassifier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LinearClassifier):
    """Gaussian classes that share one covariance. Subclasses supply ``_estimate``."""

    def _fit_inputs(self, data: FitInputs, source: tuple[Any, ...] = ()) -> None:
        self.classes_ = data.labels.classes
        if self._uses_unlabeled_rows and data.unlabeled.n_rows > 0:
            model = self._fit_all_rows(data)
        else:
            model = self._fit_labeled_rows(data)
        self._store(model)
        self._finish(data)

    @property
    def _frame(self) -> Frame:
        return self._gaussians_.frame

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
        source = X, y, sample_weight, X_unlabeled, sample_weight_unlabeled
        data = self._inputs(*source, reset=False, uses_unlabeled=True)
        if not np.array_equal(data.labels.classes, self.classes_):
            raise ValueError(
                f"y holds the classes {data.labels.classes.tolist()}, and the fit has "
                f"{self.classes_.tolist()}: pass the rows and labels that were passed to fit."
            )
        data = replace(data, frame=self._gaussians_.frame)
        used = self.shrinkage_
        # "auto" of the supervised fit is one number a class, or 1 where no class varies.
        shared = used if isinstance(used, float) and used < 1 else None
        problem = data.problem(shared)
        shrunk = self._shrink_labeled(data)[1] if shared is None else None
        gains = gains_over(problem, self._gaussians_, supervised_reference(problem, shrunk))
        return bounds_of(gains, data.unlabeled.n_rows)

    def _finish(self, data: FitInputs) -> None:
        """Set what needs the rows and the finished fit."""

    def _estimate(self, problem: Problem) -> Gaussians:
        """Fit a prepared problem, as ``fit`` does after its checks."""
        raise NotImplementedError

    def _note_supervised(self, model: Gaussians, data: FitInputs) -> None:
        """Set what ``_estimate`` would have set, after a fit without unlabeled rows."""

    def _judge(self, problem: Problem, model: Gaussians, outcome: Outcome, detail: str) -> bool:
        """Whether a fit converged; if not, a warning says why."""
        advice = advice_to_continue(problem, self.max_iter, self.tol)
        return self._diagnosis.judge(problem, model, outcome, f"{detail}. {advice}")

    def _problem(self, data: FitInputs) -> Problem:
        return data.problem(self.shrinkage, rests_on_labels=self._rests_on_labels)

    def _check_columns(
        self, data: FitInputs, variances: Array, weight: float, is_shrunk: bool
    ) -> None:
        """ValueError for columns whose units differ too much for one variance in all of them."""
        if is_shrunk:
            check_units(data, variances, weight)

    def _fit_all_rows(self, data: FitInputs) -> Gaussians:
        problem = self._problem(data)
        variances = problem.feature_variances(problem.moments.covariance)
        check_spread(data, variances)
        check_shares(data, problem.labeled.counts / problem.moments.weight)
        self._check_columns(data, variances, problem.moments.weight, problem.shrinkage > 0)
        self._diagnosis.warn_of_span(variances, problem.rank)
        self._diagnosis.warn_of_shift(problem)
        self.shrinkage_: float | Array = problem.shrinkage
        self.rank_ = problem.rank
        model = self._estimate(problem)
        warn_of_single_labels(data.labels, is_supervised=False)
        if getattr(self, "proportions", "none") is None:  # the way out
            classes = data.labels.classes
            self._diagnosis.warn_of_lost_class(problem, model.class_weights, classes)
        return self._of_features(model, problem.feature_model(model))

    def _of_features(self, model: Gaussians, lifted: Gaussians) -> Gaussians:
        """The model of all features, of one in the space of few rows."""
        if lifted is not model and hasattr(self, "objective_"):
            self.objective_ += objective_shift(lifted, model)
        return lifted

    def _fit_labeled_rows(self, data: FitInputs) -> Gaussians:
        if self._uses_unlabeled_rows and data.unlabeled.n_rows == 0:
            warn_of_no_unlabeled(type(self).__name__, self.unlabeled)
        labeled, space = data.labeled, data.space
        covariance = labeled.moments.covariance
        variances = np.diag(covariance) if space is None else space.diagonal(covariance, data.frame)
        check_spread(data, variances)
        check_shares(data, labeled.counts / labeled.weight)
        is_pooled = bool(self.shrinkage) and not (self.shrinkage == "auto" and labeled.has_spread)
        self._check_columns(data, variances, labeled.weight, is_pooled)
        self.shrinkage_, shrunk = self._shrink_labeled(data)
        model, rank = fit_labeled(data.frame, labeled, data.log_priors, shrunk)
        n_left_out = data.n_left_out if np.any(self.shrinkage_) else 0
        n_rows = int(data.labels.is_labeled.sum())
        if rank == 0 and model.rank > 0:
            raise ValueError(
                Text(
                    f"The {n_rows} labeled rows do not vary within their classes, which leaves "
                    f"{type(self).__name__} no covariance to estimate: label more rows, or pass ",
                    Hint("shrinkage"),
                    ", for example 0.1.",
                )
            )
        if rank < model.rank:
            is_shrunk = self.shrinkage is not None
            self._diagnosis.warn_of_few_labels(rank, model.rank, n_rows, is_shrunk=is_shrunk)
        else:
            self._diagnosis.warn_of_span(variances, model.rank + n_left_out)
        self.rank_ = rank + n_left_out
        warn_of_single_labels(data.labels, is_supervised=True)
        self._note_supervised(model, data)
        return self._of_features(model, self._lifted(model, labeled, data))

    def _lifted(self, model: Gaussians, labeled: LabeledSummary, data: FitInputs) -> Gaussians:
        """The model of all features, of labeled rows with ``shrinkage_`` in the space of few."""
        space = data.space
        if space is None:
            return model
        variance = None
        if np.any(self.shrinkage_) and space.class_shrinkages is not None:
            variance = 1.0  # in units of the targets of the classes
        elif np.any(self.shrinkage_):
            target = target_of_labeled(labeled, data.frame, data.n_left_out) / labeled.weight
            variance = float(self.shrinkage_ * (target * data.frame.scale**2)[0])
        return space.model(model, variance)

    def _shrink_labeled(self, data: FitInputs) -> tuple[float | Array, Array | None]:
        """Shrinkage used, and the shrunk scatter within classes of the labeled rows."""
        space = data.space
        if space is not None and space.class_shrinkages is not None:
            rows, codes, _ = data.labeled_rows()
            keep = np.sqrt(1 - space.class_shrinkages)[codes][:, None]
            centered = keep * (rows - data.labeled.means[codes])
            target = np.diag(data.labeled.weight / data.frame.scale**2)
            is_shrunk = float(space.class_shrinkages.any())
            return space.class_shrinkages, centered.T @ centered + is_shrunk * target
        how = data.labeled, data.labeled_rows, data.frame, data.n_left_out
        return shrink_rows(self.shrinkage, *how)

    def _store(self, model: Gaussians) -> None:
        frame = model.frame
        self._gaussians_ = model
        self.priors_ = np.exp(model.log_priors)
        self.class_weights_ = model.class_weights
        self.means_ = frame.restore(model.means)
        self.__dict__.pop("covariance_", None)
        if model.covariance is not None:
            self.covariance_ = self._covariance_of(model)
        if len(self.classes_) == 2:
            rule = self._discriminant_rule().folded(frame)
            self.coef_, self.intercept_ = rule.coef.T.copy(), rule.intercept
        else:
            self.coef_, self.intercept_ = model.linear_scores

    @cached_property
    def covariance_(self) -> Array:
        """Covariance within classes; of few rows of many features formed when it is used."""
        return self._covariance_of(self._gaussians_)

    def _covariance_of(self, model: Gaussians) -> Array:
        scale = model.frame.scale
        return np.asarray(model.full_covariance() * scale[:, None] * scale)

    @property
    def _variances(self) -> Array:
        """(d,): diagonal of ``covariance_``, which is not formed for it."""
        return np.asarray(self._gaussians_.variances * self._gaussians_.frame.scale**2)

    @property
    def _score_rule(self) -> LinearRule:
        return self._gaussians_.score_rule()

    def decision_function(self, X: Any) -> Array:
        """Linear scores of every class; for two classes, log odds of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            ``X @ coef_.T + intercept_``: log posterior up to a constant of the row. Of more than
            two classes far from the origin (1,000 standard deviations), up to another constant,
            about the overall mean, which keeps the digits.
        """
        self._check_ready(X, "decision_function")
        frame = self._gaussians_.frame
        rule = self._discriminant_rule()
        if len(self.classes_) == 2:
            return self._in_blocks(X, linear_scores(rule, frame), lambda lead: lead[:, 0])
        if not frame.is_foldable:
            return self._in_blocks(X, linear_scores(rule, frame))
        coef, intercept = self._gaussians_.linear_scores
        return self._in_blocks(X, scores(LinearRule(coef.T, intercept, is_soft=True)))

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
        container = _get_output_config("transform", self)["dense"]
        if is_lazy(X) and container != "default":
            raise ValueError(
                f"set_output asks transform for {container} tables, which are in memory, and rows "
                "of Dask are transformed where they are: call set_output(transform='default') for "
                "a lazy Dask array, or pass X.compute()."
            )
        model = self._gaussians_
        coef = model.discriminants(self._n_features_out)
        rule = LinearRule(coef, -model.center @ coef, is_soft=True)
        return self._in_blocks(X, linear_scores(rule, model.frame))

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
        return self._in_blocks(X, log_joint(self._gaussians_), logsumexp)

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
        y = in_memory(y)
        if backend_of(X) is None:
            X = check_shape(check_is_read(X))
            check_lengths(X=X, y=y)
        joint = np.asarray(in_memory(self._in_blocks(X, log_joint(self._gaussians_))))
        check_lengths(X=joint, y=y)
        return joint[np.arange(len(joint)), self._codes_of(y)]

    def to_sklearn(self) -> LinearDiscriminantAnalysis:
        """The same classifier as scikit-learn's own, which predicts without this package.

        Returns
        -------
        classifier : sklearn.discriminant_analysis.LinearDiscriminantAnalysis
            Fitted, with equal classes, probabilities and ``transform``. Of more than two classes,
            ``decision_function`` differs by a constant of the row: it is about the overall mean.
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
