"""The average of several fits of linear discriminant analysis."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from .._core.gaussian import Gaussians
from .._core.problem import LabeledSummary
from .._core.rowspace import RowSpace
from .._core.solvers.supervised import average, average_in
from .._messages import DegenerateFitWarning
from ..methods import find_method
from .base import Fit, LinearGaussianClassifier
from .diagnosis import warn
from .prepare import FitInputs

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
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates them.
    shrinkage : float in [0, 1) or "auto", default=None
        Share of the mean variance of all rows on the diagonal of the covariance; "auto" between
        that of Ledoit and Wolf for the labeled rows and that of Chen et al. for all rows.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. None or NaN: a missing y is unlabeled.
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
        Share of the weight in every class: the mean of those of the four fits.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance within classes.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the linear scores; for two classes, of the log odds of the second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Their intercepts.
    n_iter_ : int
        Number of steps of all fits.
    n_passes_ : int
        Number of times all unlabeled rows were read, by all fits.
    converged_ : bool
        Whether all fits converged.
    shrinkage_ : float
        Shrinkage of EM; that of the others is their own if it is "auto".
    rank_ : int
        Rank of the covariance of all rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has string column names.

    Examples
    --------
    >>> from iclda import AverageLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [5.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> AverageLDA().fit(X, y).means_.ravel().round(2)
    array([0.69, 5.31])
    """

    _needs_positive_priors = True

    n_jobs: int | None = None

    @property
    def _can_narrow(self) -> bool:  # type: ignore[override]
        return self.shrinkage != "auto"  # which gives every fit units of its own

    def _fit_all_rows(self, inputs: FitInputs) -> Fit:
        shared = {"shrinkage": self.shrinkage, "priors": self.priors}
        members = [find_method(name).classifier(**shared) for name in AVERAGED]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", DegenerateFitWarning)  # of one fit, not of the average
            for member in members:
                self._copy_shared(member)
                member._fit_inputs(inputs)
        # Once, not once a fit.
        warn(*{str(each.message): each.message for each in caught}.values())
        models, space = [member._gaussians_ for member in members], inputs.space
        if isinstance(space, RowSpace):
            model = average_in(space, models, inputs.log_priors)
        else:
            model = average(models, inputs.log_priors)
        attributes = {
            "shrinkage_": members[0].shrinkage_,
            "rank_": members[0].rank_,
            "n_iter_": sum(getattr(member, "n_iter_", 0) for member in members),
            "n_passes_": sum(getattr(member, "n_passes_", 0) for member in members),
            "converged_": all(getattr(member, "converged_", True) for member in members),
        }
        return Fit(model, attributes)

    def _supervised_attributes(self, model: Gaussians, labeled: LabeledSummary) -> dict[str, Any]:
        return {"n_iter_": 1, "converged_": True}
