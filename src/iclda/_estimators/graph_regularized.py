"""Semi-supervised discriminant analysis by a graph of neighbors."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import diags_array
from sklearn.neighbors import kneighbors_graph
from sklearn.utils._param_validation import Interval

from .._core import Array
from .._core.problem import Problem
from .._core.solvers.supervised import fit_labeled
from .base import AT_LEAST_ONE, MAX_REAL_PARAMETER, LinearGaussianClassifier
from .fit import Fit, LabeledSpan, supervised_fit
from .fit_inputs import Needs, check_spread, overflow_is_checked_later


@dataclass(kw_only=True, eq=False, repr=False)
class SemiSupervisedDiscriminantAnalysis(LinearGaussianClassifier):
    """Discriminant analysis whose directions vary little between neighbors (SDA).

    Directions maximize the scatter between the labeled classes relative to S_t + alpha
    X L X' + beta I (Cai, He and Han, 2007), with S_t the total scatter of the labeled
    rows and L the Laplacian of a graph that joins every row, labeled or not, to its
    nearest neighbors. ``transform`` gives these directions. Rows are classified in them
    as LDA does, with the scatter S_w + alpha X L X' + beta I within classes. Distances
    are in the units of the features: scale them first if their units differ. All rows
    are held in memory.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates
        them.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. A missing y, None or NaN, is always unlabeled.
    view : str, default=None
        Map of the rows, learned without labels, before the fit: "standardize" divides
        columns by their standard deviation, "whiten" also makes them uncorrelated,
        "normalize" scales rows to length 1, "kernel" and "whitened-kernel" give
        features in which curved boundaries are linear. "auto" bounds broken numbers,
        then normalizes features of a network and standardizes tables. None leaves rows
        as they are.
    n_neighbors : int, default=5
        Number of neighbors: two rows are joined if one is among those of the other.
        Equal rows count as one, with the weight of all.
    alpha : float, default=0.1
        Weight of the graph.
    beta : float, default=0.1
        Weight of the identity, in squared units of the features.
    n_jobs : int, default=None
        Threads that read the unlabeled rows: None is 1 unless a joblib.parallel_config
        says otherwise, -1 is all cores. The fit does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    priors_ : ndarray of shape (n_classes,)
        Class priors used to predict.
    class_weights_ : ndarray of shape (n_classes,)
        Share of the labeled weight in every class.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance within the labeled classes, with the terms of ``alpha`` and ``beta``.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the linear scores; for two classes, of the log odds of the
        second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts of the linear scores.
    shrinkage_ : float
        0: ``beta`` takes its place.
    n_passes_ : int
        Number of times all unlabeled rows were summed; once more they are read to be
        held.
    rank_ : int
        Number of features.
    view_ : View or None
        The fitted view. Coefficients, means and covariance are those of mapped rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has string column names.

    References
    ----------
    D. Cai, X. He and J. Han, "Semi-supervised discriminant analysis", IEEE
    International Conference on Computer Vision, 2007.

    Examples
    --------
    >>> from iclda import SemiSupervisedDiscriminantAnalysis
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [9.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> clf = SemiSupervisedDiscriminantAnalysis(n_neighbors=2).fit(X, y)
    >>> clf.predict([[2.0], [4.0]])
    array([0, 1])
    """

    _needs = Needs(labeled_rows=True, all_features=True)
    _own_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": AT_LEAST_ONE,
        "alpha": [Interval(Real, 0, MAX_REAL_PARAMETER, closed="both")],
        "beta": [Interval(Real, 0, MAX_REAL_PARAMETER, closed="right")],
    }

    shrinkage: None = field(init=False, default=None)
    n_neighbors: int = 5
    alpha: float = 0.1
    beta: float = 0.1
    n_jobs: int | None = None

    def _solve(self, problem: Problem) -> Fit:
        if not problem.has_unlabeled_rows:
            return supervised_fit(problem, can_shrink=False)
        assert problem.labeled_rows is not None
        frame = problem.frame
        labeled = problem.labeled
        # All rows in memory: a sample as large as their number has every one.
        rows, _, weights = problem.labeled_rows
        n_unlabeled = problem.unlabeled.n_rows
        other_rows, other_weights = problem.unlabeled.sample(n_unlabeled, 0)
        u = np.concatenate([frame.apply(rows), frame.apply(other_rows)])
        all_weights = np.concatenate([weights, other_weights])

        # S_w + alpha X L X' + beta I, in frame coordinates.
        with overflow_is_checked_later():
            roughness = self._roughness(u, all_weights, frame.scale)
            within = labeled.within + self.alpha * roughness
            ridge = self.beta / frame.scale**2
            within = within + np.diag(ridge)
            variances = np.diag(within) / labeled.weight
        names = getattr(self, "feature_names_in_", None)
        check_spread(variances, frame, names, " with the terms of alpha and beta")
        model, rank = fit_labeled(frame, labeled, problem.log_priors, within)
        attributes = {"shrinkage_": 0.0, "rank_": rank, "n_passes_": 1}
        # The term of beta determines every direction.
        span = LabeledSpan(len(within), len(within))
        return Fit(model, attributes, labeled_span=span)

    def _roughness(self, u: Array, weights: Array, scale: Array) -> Array:
        """X L X' in the frame: half the sum of squared differences of joined pairs."""
        # 1. Merge equal rows, which would be the neighbors of each other, into one with
        # the weight of all. Rows of weight 0 do not count.
        distinct, copies = np.unique(u, axis=0, return_inverse=True)
        summed_weights = np.bincount(copies.ravel(), weights, len(distinct))
        is_counted = summed_weights > 0
        u = distinct[is_counted]
        weights = np.asarray(summed_weights[is_counted], dtype=float)

        # 2. Join two rows if one is among the neighbors of the other. One common factor
        # changes no neighbor and keeps squares from overflowing.
        n_rows, n_features = u.shape
        n_neighbors = min(self.n_neighbors, n_rows - 1)
        if n_neighbors == 0:
            return np.zeros((n_features, n_features))
        common_factor = scale / scale.max()
        nearest = kneighbors_graph(u * common_factor, n_neighbors)
        joined = nearest.maximum(nearest.T)

        # 3. Weight every pair by the product of the weights of its rows.
        graph = joined.multiply(weights).multiply(weights[:, None]).tocsr()
        degrees = np.asarray(graph.sum(axis=1)).ravel()
        laplacian = diags_array(degrees) - graph
        return np.asarray(u.T @ (laplacian @ u))
