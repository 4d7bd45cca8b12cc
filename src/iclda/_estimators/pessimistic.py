"""Linear discriminant analysis by maximum contrastive pessimistic likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .._core.gaussian import Gaussians
from .._core.problem import Problem
from .._core.solvers.pessimistic import maximize_worst_gain
from .base import LinearGaussianClassifier, constraints
from .training import FitInputs


@dataclass(kw_only=True, eq=False, repr=False)
class PessimisticLDA(LinearGaussianClassifier):
    """Of all models, the one that gains most on supervised LDA under the least favorable labels.

    Maximum contrastive pessimistic likelihood (Loog, 2016): the likelihood of all rows, less that
    of the supervised fit, is maximized for those labels of the unlabeled rows that make the
    difference smallest. The supervised fit itself has difference 0, so that the log likelihood of
    the training rows is at least the supervised one's, whatever the true labels are, up to
    ``gap_``. That says nothing certain of new rows, nor of the error. The problem is convex:
    ``gap_`` certifies that no other model is better by more than that.

    Compared with ``SupervisedLDA`` of the same priors and ``shrinkage_``. With shrinkage both
    likelihoods are less the penalty that shrinkage maximizes, and the guarantee is for those. With
    ``proportions`` it is for labels that have these proportions.

    Parameters
    ----------
    priors
    shrinkage : float in [0, 1) or "auto", default=None
        Share of the mean variance of all rows on the diagonal of the covariance; "auto" by Ledoit
        and Wolf on the labeled rows, on which the fit rests.
    unlabeled, proportions
    max_iter : int, default=200
        Most Newton steps.
    tol : float, default=1e-6
        Largest ``gap_`` that counts as converged. Up to some thousands of unlabeled rows the fit is
        more accurate than that at no extra cost.
    n_jobs

    Attributes
    ----------
    classes_, priors_
    class_weights_ : ndarray of shape (n_classes,)
        Share of the weight in every class, labels and least favorable labels together.
    means_, covariance_, coef_, intercept_
    objective_ : float
        Gain in log likelihood of all rows per row, under the least favorable labels. Whatever the
        labels are it is at least ``objective_ - gap_``, and no model has more than ``objective_``.
    gap_ : float
        Certificate per row, see above.
    n_iter_ : int
        Number of Newton steps.
    n_passes_ : int
        Number of times the search read all unlabeled rows: moments, sample, path and certificate.
    converged_ : bool
        Whether ``gap_`` is at most ``tol``.
    shrinkage_, rank_, n_features_in_, feature_names_in_

    References
    ----------
    M. Loog, "Contrastive pessimistic likelihood estimation for semi-supervised classification",
    IEEE Transactions on Pattern Analysis and Machine Intelligence 38 (3), 2016.

    Examples
    --------
    >>> from iclda import PessimisticLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [9.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> clf = PessimisticLDA().fit(X, y)
    >>> bool(clf.objective_ > 0), bool(clf.gain_bounds(X, y).worst > 0)
    (True, True)
    """

    _needs_positive_priors = True
    _rests_on_labels = True
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(
        "max_iter", "tol", "n_jobs", "proportions"
    )

    proportions: Any = None
    max_iter: int = 200
    tol: float = 1e-6
    n_jobs: int | None = None

    def _estimate(self, problem: Problem) -> Gaussians:
        found = maximize_worst_gain(problem, tol=self.tol, max_iter=self.max_iter)
        model = problem.model_of(found.point, found.rule)
        self.objective_, self.gap_ = found.objective, found.gap
        self.n_iter_, self.n_passes_ = found.n_iter, found.n_passes
        detail = f"gap {found.gap:.2g} after {found.n_passes} passes over the rows"
        self.converged_ = self._judge(problem, model, found.outcome, detail)
        return model

    def _of_features(self, model: Gaussians, lifted: Gaussians) -> Gaussians:
        return lifted  # the objective is a gain, in all directions

    def _note_supervised(self, model: Gaussians, data: FitInputs) -> None:
        self.objective_, self.gap_, self.converged_ = 0.0, 0.0, True
        self.n_iter_, self.n_passes_ = 1, 0
