"""Self-training linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from .._core.gaussian import Gaussians
from .._core.problem import summarize_rows
from .._core.solvers import Outcome
from .._core.solvers.self_train import self_train
from .._core.solvers.supervised import fit_labeled, shrink_rows
from .._core.types import AnyArray, Array
from .base import AT_LEAST_ONE, LinearGaussianClassifier, constraints
from .diagnosis import advice_to_continue, warn
from .training import FitInputs, check_spread


@dataclass(kw_only=True, eq=False, repr=False)
class SelfTrainingLDA(LinearGaussianClassifier):
    """Add the unlabeled rows that the fit is sure of to the labeled ones, refit, repeat.

    A row keeps the label it was given, and rows that the fit is never sure of are left out. With
    ``shrinkage="auto"`` it is scikit-learn's ``SelfTrainingClassifier`` around its LDA.

    Parameters
    ----------
    priors, shrinkage, unlabeled
    threshold : float in [0, 1], default=0.75
        Probability from which on a row is added.
    max_rows : int, default=20000
        Of more unlabeled rows a random sample of this size is used.
    max_iter : int, default=1000
        Most rounds.
    n_jobs

    Attributes
    ----------
    classes_, priors_
    class_weights_ : ndarray of shape (n_classes,)
        Share of the weight in every class, labels and self-given labels together.
    means_, covariance_, coef_, intercept_
    n_added_ : int
        Number of unlabeled rows that were added.
    n_iter_ : int
        Number of fits.
    n_passes_ : int
        Number of times all unlabeled rows were read.
    converged_ : bool
        Whether no further row could be added.
    shrinkage_ : float or ndarray of shape (n_classes,)
        Shrinkage used; of every class if it is "auto".
    rank_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from iclda import SelfTrainingLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [5.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> SelfTrainingLDA().fit(X, y).means_.ravel().round(2)
    array([0.75, 5.25])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(
        "max_iter",
        "n_jobs",
        threshold=[Interval(Real, 0, 1, closed="both")],
        max_rows=AT_LEAST_ONE,
    )

    threshold: float = 0.75
    max_rows: int = 20_000
    max_iter: int = 1000
    n_jobs: int | None = None

    @property
    def _can_narrow(self) -> bool:  # type: ignore[override]
        return self.shrinkage != "auto"  # that of every class is anew in every round

    def _fit_all_rows(self, data: FitInputs) -> Gaussians:
        problem = data.problem(None)  # for what the rows are like
        check_spread(data, problem.feature_variances(problem.moments.covariance))
        self._diagnosis.warn_of_shift(problem)
        # Refused and warned of as the supervised fit is, from which it starts.
        self._fit_labeled_rows(data)
        rows, weights = data.unlabeled.sample(self.max_rows, 0)
        unlabeled = data.frame.apply(rows), weights

        summary = data.labeled

        def fit(rows: Array, codes: AnyArray, weights: Array) -> Gaussians:
            nonlocal summary
            summary = summarize_rows(rows, codes, weights, len(data.labels.classes))
            how = summary, lambda: (rows, codes, weights), data.frame, data.n_left_out
            self.shrinkage_, shrunk = shrink_rows(self.shrinkage, *how)
            model, rank = fit_labeled(data.frame, summary, data.log_priors, shrunk)
            self.rank_ = rank + (data.n_left_out if shrunk is not None else 0)
            return model

        most = problem.rounds(self.max_iter)
        found = self_train(fit, data.labeled_rows(), unlabeled, self.threshold, most)
        self.n_iter_, self.n_added_, self.n_passes_ = found.n_iter, found.n_added, 1
        self.converged_ = found.outcome is Outcome.CONVERGED
        if not self.converged_:
            warn(
                f"{type(self).__name__} {found.outcome.value}: rows are still added after "
                f"{most} rounds. {advice_to_continue(problem, self.max_iter)}",
                category=ConvergenceWarning,
            )
        return self._lifted(found.model, summary, data)

    def _note_supervised(self, model: Gaussians, data: FitInputs) -> None:
        self.n_iter_, self.n_added_, self.n_passes_, self.converged_ = 1, 0, 0, True
