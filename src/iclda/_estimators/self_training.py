"""Self-training linear discriminant analysis."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from .._core.gaussian import Gaussians
from .._core.problem import summarize_rows
from .._core.solvers import Outcome
from .._core.solvers.self_train import SelfTraining, self_train
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

    def _fit_all_rows(self, data: FitInputs) -> Gaussians:
        problem = data.problem(None)  # for what the rows are like
        check_spread(data, problem.feature_variances(problem.moments.covariance))
        self._diagnosis.warn_of_shift(problem)
        rows, weights = data.unlabeled.sample(self.max_rows, 0)
        unlabeled = data.frame.apply(rows), weights
        most = problem.rounds(self.max_iter)
        train = partial(self_train, threshold=self.threshold, max_iter=most)
        if data.space is not None and self.shrinkage == "auto":
            found = self._train_in_own_spaces(data, unlabeled, train)
        else:
            found = self._train(data, unlabeled, train)
        self.n_iter_, self.n_added_, self.n_passes_ = found.n_iter, found.n_added, 1
        self.converged_ = found.outcome is Outcome.CONVERGED
        if not self.converged_:
            warn(
                f"{type(self).__name__} {found.outcome.value}: rows are still added after "
                f"{most} rounds. {advice_to_continue(problem, self.max_iter)}",
                category=ConvergenceWarning,
            )
        return found.model

    def _train(
        self, data: FitInputs, unlabeled: tuple[Array, Array], train: Callable[..., SelfTraining]
    ) -> SelfTraining:
        # Refused and warned of as the supervised fit is, from which it starts.
        self._fit_labeled_rows(data)
        summary = data.labeled

        def fit(rows: Array, codes: AnyArray, weights: Array) -> Gaussians:
            nonlocal summary
            summary = summarize_rows(rows, codes, weights, len(data.labels.classes))
            how = summary, lambda: (rows, codes, weights), data.frame, data.n_left_out
            self.shrinkage_, shrunk = shrink_rows(self.shrinkage, *how)
            model, rank = fit_labeled(data.frame, summary, data.log_priors, shrunk)
            self.rank_ = rank + (data.n_left_out if shrunk is not None else 0)
            return model

        found = train(fit, data.labeled_rows(), unlabeled)
        return replace(found, model=self._lifted(found.model, summary, data))

    def _train_in_own_spaces(
        self, data: FitInputs, unlabeled: tuple[Array, Array], train: Callable[..., SelfTraining]
    ) -> SelfTraining:
        """Every round in a space of its own, of few rows whose classes are shrunk anew."""
        assert data.space is not None
        restore = partial(data.space.restore, reduced=data.frame)
        has_warned = False

        def fit(rows: Array, codes: AnyArray, weights: Array) -> Gaussians:
            nonlocal has_warned
            member = type(self)(priors=self.priors, shrinkage=self.shrinkage)
            member._uses_unlabeled_rows = False
            self._pass_on(member)
            source = rows, data.labels.classes[codes], weights, None, None
            inputs = member._inputs(*source, reset=True, uses_unlabeled=False)
            self._pass_on(member)  # names of columns, which the rows have lost
            with warnings.catch_warnings():
                if has_warned:
                    warnings.simplefilter("ignore")
                model = member._fit_labeled_rows(inputs)
            has_warned = True
            self.shrinkage_, self.rank_ = member.shrinkage_, member.rank_
            return model

        rows, codes, weights = data.labeled_rows()
        labeled = restore(rows), codes, weights
        place: Any = lambda model, rows: model.frame.apply(rows)  # noqa: E731
        return train(fit, labeled, (restore(unlabeled[0]), unlabeled[1]), place=place)

    def _note_supervised(self, model: Gaussians, data: FitInputs) -> None:
        self.n_iter_, self.n_added_, self.n_passes_, self.converged_ = 1, 0, 0, True
