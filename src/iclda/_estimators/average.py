"""The average of several fits of linear discriminant analysis."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

from .._core.average import average, average_in
from .._core.gaussian import Gaussians
from .._messages import DegenerateFitWarning
from ..methods import find_method
from .base import LinearGaussianClassifier, constraints
from .diagnosis import warn
from .training import FitInputs

# Few labels do not tell these methods apart: their average is fitted then.
AVERAGED = ("em", "self-training", "pessimistic", "supervised")


@dataclass(kw_only=True, eq=False, repr=False)
class AverageLDA(LinearGaussianClassifier):
    """The average of four fits: EM, self-training, pessimistic and supervised LDA.

    With few labels nothing tells which of them is best, and each of them is far off on some tables.
    The average is that of equally many rows drawn from each of the four models: where they place a
    class differently it is wider, and the probabilities are more careful. It is again a model of
    Gaussian classes with one covariance.

    Parameters
    ----------
    priors, shrinkage, unlabeled, n_jobs

    Attributes
    ----------
    classes_, priors_
    class_weights_ : ndarray of shape (n_classes,)
        Share of the weight in every class: the mean of those of the four fits.
    means_, covariance_, coef_, intercept_
    n_iter_ : int
        Number of steps of all fits.
    n_passes_ : int
        Number of times all unlabeled rows were read, by all fits.
    converged_ : bool
        Whether all fits converged.
    shrinkage_ : float
        Shrinkage of EM; that of the others is their own if it is "auto".
    rank_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from iclda import AverageLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [5.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> AverageLDA().fit(X, y).means_.ravel().round(2)
    array([0.69, 5.31])
    """

    _needs_positive_priors = True
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints("n_jobs")

    n_jobs: int | None = None

    @property
    def _can_narrow(self) -> bool:  # type: ignore[override]
        return self.shrinkage != "auto"  # which gives every fit units of its own

    def _fit_all_rows(self, data: FitInputs) -> Gaussians:
        how = {"shrinkage": self.shrinkage, "priors": self.priors}
        members = [find_method(name).classifier(**how) for name in AVERAGED]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", DegenerateFitWarning)  # of one fit, not of the average
            for member in members:
                self._pass_on(member)
                member._fit_inputs(data)
        for warning in {str(each.message): each for each in caught}.values():
            warn(warning.message, category=warning.category)  # once, not once a fit
        first = members[0]
        self.shrinkage_, self.rank_ = first.shrinkage_, first.rank_
        self.n_iter_ = sum(getattr(member, "n_iter_", 0) for member in members)
        self.n_passes_ = sum(getattr(member, "n_passes_", 0) for member in members)
        self.converged_ = all(getattr(member, "converged_", True) for member in members)
        models = [member._gaussians_ for member in members]
        if data.space is not None:
            return average_in(data.space, data.frame, models, data.log_priors)
        return average(models, data.log_priors)

    def _note_supervised(self, model: Gaussians, data: FitInputs) -> None:
        self.n_iter_, self.n_passes_, self.converged_ = 1, 0, True
