"""Implicitly constrained linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._core.gaussian import Gaussians
from .._core.problem import Problem
from .._core.solvers.search import maximize_labeled_likelihood
from .._core.solvers.supervised import labeled_log_likelihood
from .._core.types import AnyArray, Array
from .base import AT_LEAST_ONE, LinearGaussianClassifier, constraints
from .predictions import imputed
from .training import FitInputs

_MOST_STORED = 10**6
_WHOLE = 1e-12  # of a row, which a class may lack that does not share it


@dataclass(kw_only=True, eq=False, repr=False)
class ImplicitlyConstrainedLDA(LinearGaussianClassifier):
    """Of all fits that some labeling of the unlabeled rows would give, the likeliest one.

    The labels of the unlabeled rows may be soft; likeliest means highest likelihood of the labeled
    rows. ``gap_`` certifies the fit: no change of labels, of any rows, promises to first order more
    than that. The problem can have several local maxima; the best of many starts is taken.

    Parameters
    ----------
    priors, shrinkage, unlabeled, proportions
    n_starts : int, default=32
        Number of labelings to start from. If a quarter of them lead to one maximum, no more are
        tried. If not, four times as many are drawn, and more are made of the best ones until that
        gains nothing any more.
    max_iter : int, default=200
        Most Newton steps from one start. All steps together cost at most about as much as
        ``max_iter`` reads of all rows.
    tol : float, default=1e-6
        Largest ``gap_`` that counts as converged. Up to some thousands of unlabeled rows the fit is
        more accurate than that at no extra cost.
    random_state : int, RandomState instance or None, default=None
        Draws the starts and, of many rows, the sample they are compared on. None is a fixed seed:
        the same data give the same fit.
    n_jobs

    Attributes
    ----------
    classes_, priors_
    class_weights_ : ndarray of shape (n_classes,)
        Share of the weight in every class, labels and imputed labels together.
    means_, covariance_, coef_, intercept_
    objective_ : float
        Labeled log likelihood per labeled row.
    gap_ : float
        Certificate per labeled row, see above; for many rows maybe a bound that it does not exceed.
    n_iter_ : int
        Number of Newton steps to the best maximum.
    n_passes_ : int
        Number of times the search read all unlabeled rows: moments, sample, path and certificate.
    n_optima_ : int
        Number of distinct local maxima seen.
    converged_ : bool
        Whether ``gap_`` is at most ``tol``.
    responsibilities_ : ndarray of shape (n_unlabeled, n_classes)
        Imputed labels of the unlabeled rows: those of X, then those of X_unlabeled. Stored for
        rows in memory, up to a million entries; ``impute`` gives them for any rows. Up to 20,000
        unlabeled rows (fewer of more than 100 features) and 256 unknowns, (n_classes - 1)
        (n_features + 1), they are, if rounding allows, those of the optimum itself: 0 or 1 but for
        rows that classes share.
    shared_rows_ : ndarray of shape (n_shared,)
        Indices of the rows of ``responsibilities_`` of which no class has all but 1e-12. Where hard
        labels separate all classes, at most (n_classes - 1) (n_features + 1) distinct rows; at an
        optimum inside the set of all labelings, most rows. With more rows than those above also
        the ones in a narrow band along each boundary.
    shrinkage_, rank_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from iclda import ImplicitlyConstrainedLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [9.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> clf = ImplicitlyConstrainedLDA().fit(X, y)
    >>> clf.responsibilities_.shape, bool(clf.gap_ < 1e-6)
    ((4, 2), True)
    """

    _needs_positive_priors = True
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(
        "max_iter", "tol", "random_state", "n_jobs", "proportions", n_starts=AT_LEAST_ONE
    )

    proportions: Any = None
    n_starts: int = 32
    max_iter: int = 200
    tol: float = 1e-6
    random_state: Any = None
    n_jobs: int | None = None

    def _estimate(self, problem: Problem) -> Gaussians:
        found = maximize_labeled_likelihood(
            problem,
            tol=self.tol,
            max_iter=self.max_iter,
            n_starts=self.n_starts,
            seed=self._seed(),
        )
        model = problem.model_of(found.point, found.rule)
        self.objective_ = labeled_log_likelihood(model, problem.labeled) / problem.labeled.weight
        self.gap_ = found.gap
        self.n_iter_, self.n_passes_, self.n_optima_ = found.n_iter, found.n_passes, found.n_optima
        detail = f"gap {found.gap:.2g} after {found.n_passes} passes over the rows"
        self.converged_ = self._judge(problem, model, found.outcome, detail)
        self._imputation_ = found.rule
        return model

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _finish(self, data: FitInputs) -> None:
        self._responsibilities_ = None
        rows = data.every_unlabeled
        if rows is not None and rows.n_rows * len(self.classes_) <= _MOST_STORED:
            self._responsibilities_ = rows.responsibilities(self._imputation_, data.frame)
        if data.space is not None:
            self._imputation_ = data.space.rule(self._imputation_, data.frame)

    def _note_supervised(self, model: Gaussians, data: FitInputs) -> None:
        self.objective_ = labeled_log_likelihood(model, data.labeled) / data.labeled.weight
        self.gap_, self.converged_ = 0.0, True
        self.n_iter_, self.n_passes_, self.n_optima_ = 1, 0, 1
        self._imputation_ = model.score_rule()

    @property
    def responsibilities_(self) -> Array:
        """Imputed labels of the unlabeled rows."""
        check_is_fitted(self)
        stored: Array | None = self._responsibilities_
        if stored is None:
            raise AttributeError(
                "responsibilities_ is stored by fit for arrays in memory, up to a million entries "
                "(unlabeled rows x classes): use impute(X), which gives them for any rows."
            )
        return stored

    @property
    def shared_rows_(self) -> AnyArray:
        """Indices of the unlabeled rows that more than one class shares."""
        shares: Any = self.responsibilities_
        xp = array_namespace(shares)
        return xp.nonzero(xp.max(shares, axis=1) < 1 - _WHOLE)[0]

    def impute(self, X: Any) -> Array:
        """Labels that the fit gives, or would give, to unlabeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        responsibilities : ndarray of shape (n_samples, n_classes)
            Shares of every row in each class.
        """
        self._check_ready(X, "impute")
        return self._in_blocks(X, *imputed(self._imputation_, self._gaussians_.frame))
