"""Self-training for linear discriminant analysis."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from .._core.gaussian import Gaussians
from .._core.problem import LabeledSummary, Problem, summarize_rows
from .._core.solvers.alternate import SelfTraining, self_train
from .._core.solvers.stopping import Limits
from .._core.solvers.supervised import fit_labeled, shrink_rows
from .._core.types import AnyArray, Array
from .base import AT_LEAST_ONE, Fit, LinearClassifier, LinearGaussianClassifier
from .inputs import RowSource
from .prepare import FitInputs, Passed, check_spread, prepare


@dataclass(kw_only=True, eq=False, repr=False)
class SelfTrainingLDA(LinearGaussianClassifier):
    """Add the unlabeled rows that the fit is sure of to the labeled ones, refit, repeat.

    A row keeps the label it was given, and rows that the fit is never sure of are left out. With
    ``shrinkage="auto"`` it is scikit-learn's ``SelfTrainingClassifier`` around its LDA.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates them.
    shrinkage : float in [0, 1) or "auto", default=None
        Share of the mean variance of all rows on the diagonal of the covariance; "auto" between
        that of Ledoit and Wolf for the labeled rows and that of Chen et al. for all rows.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. None or NaN: a missing y is unlabeled.
    threshold : float in [0, 1], default=0.75
        Probability from which on a row is added.
    max_rows : int, default=20000
        Of more unlabeled rows a random sample of this size is used.
    max_iter : int, default=1000
        Largest number of rounds.
    n_jobs : int, default=None
        Threads that read the unlabeled rows: None is 1 unless a joblib.parallel_config says
        otherwise, -1 is all cores. The fit does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    priors_ : ndarray of shape (n_classes,)
        Class priors used to predict.
    class_weights_ : ndarray of shape (n_classes,)
        Share of the weight in every class, labels and self-given labels together.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance within classes.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the linear scores; for two classes, of the log odds of the second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Their intercepts.
    n_added_ : int
        Number of unlabeled rows that were added.
    n_iter_ : int
        Number of fits.
    n_passes_ : int
        Number of times all unlabeled rows were read.
    converged_ : bool
        Whether no further row could be added.
    outcome_ : str
        How the iteration ended: "converged", or a reason listed in ``NotConvergedWarning``.
    shrinkage_ : float or ndarray of shape (n_classes,)
        Shrinkage used; of every class if it is "auto".
    rank_ : int
        Rank of the covariance of all rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has string column names.

    Examples
    --------
    >>> from iclda import SelfTrainingLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [5.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> SelfTrainingLDA().fit(X, y).means_.ravel().round(2)
    array([0.75, 5.25])
    """

    _own_constraints: ClassVar[dict[str, Any]] = {
        "threshold": [Interval(Real, 0, 1, closed="both")],
        "max_rows": AT_LEAST_ONE,
    }

    threshold: float = 0.75
    max_rows: int = 20_000
    max_iter: int = 1000
    n_jobs: int | None = None

    def _fit_all_rows(self, inputs: FitInputs) -> Fit:
        problem = inputs.problem(Problem, None)  # for what the rows are like
        check_spread(inputs, inputs.space.variances(problem.moments.covariance))
        self._diagnosis.warn_of_shift(problem, inputs.space)
        limits = Limits(problem.rounds(self.max_iter))
        is_narrow = inputs.space.n_left_out > 0 and self.shrinkage == "auto"
        train = self._train_in_own_spaces if is_narrow else self._train
        fit, end = train(inputs, limits)
        fit = replace(
            fit, outcome=end.outcome, detail=f"rows are still added after {end.n_iter} rounds"
        )
        outcome = LinearClassifier._judge(self, problem, fit)
        counts = {"n_iter_": end.n_iter, "n_added_": end.n_added, "n_passes_": 1}
        return replace(fit, attributes={**fit.attributes, **counts, **self._ending(outcome)})

    def _train(self, inputs: FitInputs, limits: Limits) -> tuple[Fit, SelfTraining]:
        # Errors and warnings are those of the supervised fit, from which it starts.
        last, variance = self._fit_labeled_rows(inputs), None
        frame, n_left_out = inputs.frame, inputs.space.n_left_out

        def refit(rows: Array, codes: AnyArray, weights: Array) -> Gaussians:
            nonlocal last, variance
            labeled = summarize_rows(rows, codes, weights, len(inputs.labels.classes))
            used, within = shrink_rows(
                self.shrinkage, labeled, lambda: (rows, codes, weights), frame, n_left_out
            )
            model, rank = fit_labeled(frame, labeled, inputs.log_priors, within)
            rank += n_left_out if within is not None else 0
            last = Fit(model, {"shrinkage_": used, "rank_": rank})
            variance = inputs.variance_left_out(labeled, used)
            return model

        rows, weights = inputs.unlabeled.sample(self.max_rows, 0)
        unlabeled = frame.apply(rows), weights
        end = self_train(refit, inputs.labeled_rows(), unlabeled, self.threshold, limits)
        return self._lifted(last, inputs, variance), end

    def _train_in_own_spaces(self, inputs: FitInputs, limits: Limits) -> tuple[Fit, SelfTraining]:
        """Every round in a space of its own, of few rows whose classes are shrunk anew."""
        space, classes = inputs.space, inputs.labels.classes
        settings = replace(self._settings(), uses_unlabeled=False)
        last = None

        def refit(rows: Array, codes: AnyArray, weights: Array) -> Gaussians:
            nonlocal last
            source = RowSource(rows, inputs.passed.source.request, None)
            with warnings.catch_warnings():
                if last is not None:
                    warnings.simplefilter("ignore")  # once, not once a round
                last = self._fit_labeled_rows(
                    prepare(Passed(source, classes[codes], weights), settings)
                )
            model: Gaussians = last.model
            return model

        def restored(u: Array) -> Array:
            return space.frame.restore(space.points(u))

        held, codes, weights = inputs.labeled_rows()
        rows, more = inputs.unlabeled.sample(self.max_rows, 0)
        end = self_train(
            refit,
            (restored(held), codes, weights),
            (restored(inputs.frame.apply(rows)), more),
            self.threshold,
            limits,
            place=lambda model, rows: model.frame.apply(rows),
        )
        assert last is not None
        return last, end

    def _supervised_attributes(self, model: Gaussians, labeled: LabeledSummary) -> dict[str, Any]:
        return {"n_added_": 0}
