"""The average of fits that use the unlabeled rows differently, and the class shares it gives.

Three kinds of EM and logistic regression; ``AverageLDA`` predicts by the mean of their scores, and
other classifiers take the class shares among the unlabeled rows from it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse
from scipy.special import logsumexp, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import kneighbors_graph

from .._core import AnyArray, Array
from .._core.frame import mean_variance_in_frame
from .._core.gaussian import Gaussians
from .._core.labelsums import LinearRule
from .._core.problem import LabeledSummary, Problem, summarize_rows
from .._core.solvers.anchored import (
    anchored_em,
    gaussians_of_rule,
    mean_of_rules,
    of_unit_spread,
    refit,
)
from .._rows import unreported
from .._rows.memory import MemoryRows
from .._rows.unit_length import MANY_FEATURES
from .._statistics import estimate_final_error, merge_copies, row_losses
from .._system import one_thread_if_small
from .base import Fit, LinearGaussianClassifier
from .labels import draw_labeled
from .prepare import FitInputs

_ROUNDS = 20  # of EM: more of them change few labels
_ANNEALING = (0.9, 0.7, 0.5)  # shrinkages above the last one, for three rounds each
_FOLDS = 4  # at most, of the labeled rows, whose held-out scores weigh the members
_TESTED_WITH = (1_000, 2_500)  # unlabeled rows of these fits
_TESTED_SIZE = 5e7  # rows x features x classes of these, above which rows are fewer
_LOGISTIC_SIZE = 5e10  # rows x features x classes x rounds of the logistic regression
_LOGISTIC_ROUNDS = (10, 100)
_MOST_LABELED = 10_000  # rows of the logistic regression and of the cross-validation
_SHARPNESS = 20.0  # of the weights: exp(-20 x share of wrong rows)
_NEIGHBORS = 9  # of a row in the graph that labels spread on
_MOST_IN_GRAPH = 2_500  # rows of it without a label, and with one
_SPREADING, _SPREADING_ROUNDS = (
    0.9,
    30,
)  # share that a row takes from its neighbors in a round
_UNTESTED_WEIGHTS = {"em": 2.0, "annealed": 2.0, "labeled shares": 1.0, "logistic": 1.0}
_CAUTION = 20.0  # tested rows at which the weights are half as sharp
_UNTESTED_SURENESS = (
    2.0  # factor of scores of unit spread where no label can be held out
)
_LEAST_COUNT = (
    0.5  # rows of a class, of which the shares of the classes keep all above 0
)
_TESTED_AT_LEAST = 2.0  # weight of that factor, in rows
_UNTESTED = {"error_": None, "error_interval_": None, "loss_": None, "n_tested_": 0}
Labeled = tuple[Array, AnyArray, Array]  # rows in frame coordinates, codes, weights


@dataclass(kw_only=True, eq=False, repr=False)
class AverageLDA(LinearGaussianClassifier):
    """The average of four fits: three kinds of EM, and logistic regression of the labeled rows.

    Made for a handful of labels on features of a frozen network, where no label can be spared to
    choose a method. The scores of four linear classifiers, each scaled to unit spread, are
    averaged: EM; EM whose class sizes among the unlabeled rows approach those among the labels;
    EM whose shrinkage falls from 0.9 in steps; and logistic regression. The class means of the
    first two are drawn to the labeled rows: those of a class of n labels by n / (n + 8). With 64
    features or more these two start from labels that spread to neighbors among the rows. Where
    classes have two labels or more, a cross-validation weighs the four by their errors and sets how
    sure the probabilities are. It is again a model of Gaussian classes with one covariance.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates them.
    shrinkage : float in [0, 1) or "auto", default="auto"
        Share of the mean variance within classes on the diagonal of the covariance, of all EMs;
        "auto" is the geometric mean of those of Chen et al. for the labeled rows, about class
        means, and for all rows. None is 0.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. None or NaN: a missing y is unlabeled.
    proportions : array-like, dict, "labeled", "equal", "auto" or "free", default=None
        Shares of the classes among the unlabeled rows, if they are known; all EMs approach them.
        "auto" is None: the average learns them. "free" leaves out the member that approaches the
        shares among the labels, for labels of rows that were chosen instead of drawn at random.
    normalize : bool or "auto", default="auto"
        Whether rows are scaled to length 1, about their mean if that is far from zero, as suits
        features of a network. "auto": with 64 features or more.
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
        Share of the weight in every class.
    means_ : ndarray of shape (n_classes, n_features)
        Means of the Gaussian classes that have the averaged scores.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance within classes.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the linear scores; for two classes, of the log odds of the second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Their intercepts.
    member_weights_ : dict
        Weight of every member: "em", "annealed", "labeled shares" and "logistic".
    error_ : float or None
        Share of new rows that get a wrong class, from the held-out labels of that
        cross-validation; None with fewer than 8 of them, or 3 a class on average.
    error_interval_ : tuple of two floats or None
        Its 90 % interval.
    loss_ : float or None
        Mean Brier score of the held-out labels.
    n_tested_ : int
        Number of held-out labels.
    n_passes_ : int
        Number of times all unlabeled rows were read.
    shrinkage_ : float
        Shrinkage used.
    rank_ : int
        Rank of the covariance of all rows.
    center_ : ndarray or None
        Vector taken from rows before they are scaled to length 1; None if they are not scaled.
        Means, covariance and coefficients are those of the scaled rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has string column names.

    Examples
    --------
    >>> from iclda import AverageLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [5.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> AverageLDA().fit(X, y).predict([[2.0], [4.0]])
    array([0, 1])
    """

    _needs_positive_priors = True
    _supervised_name = (
        "SupervisedLDA of the same shrinkage and, with many features, scaled rows"
    )

    shrinkage: Any = "auto"
    proportions: Any = None
    normalize: bool | str = "auto"
    n_jobs: int | None = None

    def _solve_inputs(self, problem: Problem, inputs: FitInputs) -> Fit:
        labeled, with_shares = inputs.labeled_rows(), not inputs.ignores_labeled_shares
        with one_thread_if_small(len(problem.moments.mean)):
            average = average_rule(problem, labeled, with_shares=with_shares)
        attributes = {
            "member_weights_": average.member_weights,
            "n_passes_": 1 + average.n_passes,
        }
        if average.held_out is not None and not inputs.ignores_labeled_shares:
            attributes |= _error_attributes(average.held_out, inputs)
        model = gaussians_of_rule(problem, average.rule, problem.shrinkage)
        return Fit(model, {**_UNTESTED, **attributes}, rule=average.rule)

    def _supervised_attributes(
        self, model: Gaussians, labeled: LabeledSummary
    ) -> dict[str, Any]:
        return {"member_weights_": {}, **_UNTESTED}


def _error_attributes(held_out: HeldOut, inputs: FitInputs) -> dict[str, Any]:
    """What held-out labels say of the fit to all rows."""
    labels, n_unlabeled = (
        np.bincount(inputs.codes[inputs.codes >= 0]),
        inputs.unlabeled.n_rows,
    )
    order = np.argsort(
        held_out.losses
    )  # draws of the bootstrap do not depend on that of the rows
    estimate = estimate_final_error(
        held_out.losses[None, order],
        held_out.is_wrong[None, order],
        labels,
        held_out.n_folds,
        # On tables more unlabeled rows hardly help.
        of_unlabeled=1.0 if inputs.unit is None else held_out.n_unlabeled / n_unlabeled,
    )
    found = {"loss_": float(held_out.losses.mean()), "n_tested_": len(held_out.losses)}
    if estimate is None:
        return found
    return {
        **found,
        "error_": estimate.error,
        "error_interval_": (estimate.low, estimate.high),
    }


@dataclass(frozen=True)
class HeldOut:
    """Losses of labeled rows, and whether they are wrong, by averages without their labels."""

    losses: Array
    is_wrong: Array
    n_folds: int
    n_unlabeled: int  # rows of these fits


@dataclass(frozen=True)
class AverageRule:
    """The averaged scores, in frame coordinates, the weights of the members, and passes read."""

    rule: LinearRule
    member_weights: dict[str, float]
    n_passes: int
    held_out: HeldOut | None  # None where no class has two labels


def average_rule(
    problem: Problem, labeled: Labeled, *, with_shares: bool = True
) -> AverageRule:
    """Average the scores of the members, weighed and scaled by held-out labels where there are two.

    ``labeled`` are the labeled rows in frame coordinates, their codes and weights;
    ``with_shares``: whether a member approaches the shares of the classes among them.
    """
    rows, codes, counts = labeled
    kept = draw_labeled(codes, np.flatnonzero(counts > 0), _MOST_LABELED, 0)
    labeled = merge_copies(rows[kept], codes[kept], counts[kept])
    neighbors, codes = _find_neighbors(problem, labeled), labeled[1]
    spread = None if neighbors is None else neighbors.spread(codes, problem.n_classes)
    rules = _members(problem, labeled, spread, with_shares)
    weights = np.array([_UNTESTED_WEIGHTS[name] for name in rules])
    sureness, held_out = _UNTESTED_SURENESS, None
    folds = _folds(problem, labeled)
    if (folds >= 0).any():
        with unreported():  # progress is that of the passes over all rows
            tested = _held_out_scores(problem, labeled, neighbors, folds, with_shares)
        weights = tested.weights()
        sureness, held_out = tested.sureness(weights), tested.predictions()
    rule = mean_of_rules(list(rules.values()), weights, problem.moments)
    return AverageRule(
        LinearRule(sureness * rule.coef, sureness * rule.intercept, is_soft=True),
        dict(zip(rules, (weights / weights.sum()).tolist(), strict=True)),
        1 + sum(len(_path(name, problem.shrinkage)) for name in rules),
        held_out,
    )


def with_proportions(problem: Problem, inputs: FitInputs) -> tuple[Problem, int]:
    """The problem with class shares and a start that the average gives, if these are learned.

    Also returns the number of passes over the unlabeled rows that this took.
    """
    if not inputs.learns_proportions:
        return problem, 0
    average = average_rule(problem, inputs.labeled_rows())
    sums = problem.unlabeled.label_sums(
        replace(average.rule, is_soft=False), problem.frame
    )
    shares = (sums.counts + _LEAST_COUNT) / (sums.counts + _LEAST_COUNT).sum()
    proportions = np.column_stack([shares, shares])
    return replace(
        problem, proportions=proportions, start=average.rule
    ), average.n_passes


class ProportionalClassifier(LinearGaussianClassifier):
    """A classifier that can learn the class shares among the unlabeled rows."""

    def _solve_inputs(self, problem: Problem, inputs: FitInputs) -> Fit:
        learned, n_passes = with_proportions(problem, inputs)
        fit = self._solve(learned)
        counts = {"n_passes_": fit.attributes["n_passes_"] + n_passes}
        return replace(fit, attributes={**fit.attributes, **counts})


def _path(member: str, shrinkage: float) -> tuple[float, ...]:
    """Shrinkages of the rounds of a member."""
    if member == "logistic":
        return ()
    if member != "annealed":
        return (shrinkage,) * _ROUNDS
    above = tuple(each for each in _ANNEALING if each > shrinkage for _ in range(3))
    return above + (shrinkage,) * 6


def _members(
    problem: Problem,
    labeled: Labeled,
    spread: tuple[Array, Array] | None,
    with_shares: bool,
) -> dict[str, LinearRule]:
    """Scores of the members, in frame coordinates.

    ``spread`` are class weights and sums that the anchored ones start from, if any.
    """
    known, shrinkage = problem.proportions, problem.shrinkage
    start = None if spread is None else refit(problem, *spread, shrinkage)
    by_name = {"em": known, "annealed": known}
    if known is None and with_shares:
        shares = (problem.labeled.counts + 1) / (problem.labeled.counts + 1).sum()
        by_name["labeled shares"] = np.column_stack([shares, shares])
    rules = {}
    for name, proportions in by_name.items():
        path = _path(name, shrinkage)
        if name == "annealed":
            rules[name] = anchored_em(problem, path, proportions, is_anchored=False)
        else:
            rules[name] = anchored_em(problem, path, proportions, start=start)
    return {**rules, "logistic": _logistic(problem, *labeled)}


@dataclass(frozen=True)
class _Neighbors:
    """Graph of the labeled rows and a sample of the others, each joined to its nearest rows."""

    links: scipy.sparse.csr_array  # between distinct rows, normalized by their numbers
    place: AnyArray  # of every row among the distinct ones
    rows: Array  # in frame coordinates, labeled ones first
    weights: Array

    def spread(self, codes: AnyArray, n_classes: int) -> tuple[Array, Array]:
        """Class weights and sums of rows without a label when labels spread to neighbors.

        ``codes`` are those of the labeled rows, -1 where the label is not used.
        """
        first = np.flatnonzero(codes >= 0)
        given = np.zeros((self.links.shape[0], n_classes))
        given[self.place[first], codes[first]] = 1.0
        shares = given
        for _ in range(_SPREADING_ROUNDS):
            shares = _SPREADING * (self.links @ shares) + (1 - _SPREADING) * given
        others = np.delete(np.arange(len(self.rows)), first)
        shares = shares[self.place[others]]
        totals = shares.sum(axis=1, keepdims=True)
        shares *= self.weights[others, None] / np.where(totals > 0, totals, 1.0)
        return shares.sum(axis=0), shares.T @ self.rows[others]


def _find_neighbors(problem: Problem, labeled: Labeled) -> _Neighbors | None:
    """The graph; None on tables, whose columns are to be weighed first, and with many labels.

    None, too, where all rows are equal.
    """
    rows, _, weights = labeled
    if rows.shape[1] < MANY_FEATURES or len(rows) > _MOST_IN_GRAPH:
        return None
    sample, sample_weights = problem.unlabeled.sample(_MOST_IN_GRAPH, 0)
    every = np.concatenate([problem.frame.restore(rows), sample])
    distinct, place = np.unique(every, axis=0, return_inverse=True)
    if len(distinct) < 2:
        return None
    links = kneighbors_graph(distinct, min(_NEIGHBORS, len(distinct) - 1))
    # A row that is the neighbor of many counts less to each, as in scikit-learn's LabelSpreading.
    n_times = np.maximum(np.asarray(links.sum(axis=0)).ravel(), 1.0)
    scale = scipy.sparse.diags_array(1 / np.sqrt(n_times))
    return _Neighbors(
        scipy.sparse.csr_array(scale @ links @ scale),
        place.ravel(),  # NumPy 2.0 has a column here
        np.concatenate([rows, problem.frame.apply(sample)]),
        np.concatenate([weights, sample_weights]),
    )


def _logistic(
    problem: Problem, rows: Array, codes: AnyArray, weights: Array
) -> LinearRule:
    """Logistic regression of the labeled rows, in units of mean variance 1."""
    moments = problem.moments
    unit = np.sqrt(
        mean_variance_in_frame(moments.covariance, problem.frame, problem.n_left_out)
    )
    unit = np.where(unit > 0, unit, 1.0)
    size = len(rows) * rows.shape[1] * problem.n_classes
    rounds = int(np.clip(_LOGISTIC_SIZE / max(1, size), *_LOGISTIC_ROUNDS))
    model = LogisticRegression(tol=1e-3, max_iter=rounds)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # many classes of one row each; rounds that did not end
        model.fit((rows - moments.mean) / unit, codes, sample_weight=weights)
    coef, intercept = model.coef_.T / unit[:, None], model.intercept_
    if len(model.classes_) == 2:
        coef, intercept = coef * [-0.5, 0.5], intercept * [-0.5, 0.5]
    if problem.log_priors is not None:
        counts = problem.labeled.counts
        intercept = intercept + problem.log_priors - np.log(counts / counts.sum())
    return LinearRule(coef, intercept - moments.mean @ coef, is_soft=True)


def _folds(problem: Problem, labeled: Labeled) -> AnyArray:
    """The fold of every labeled row, in turn by length in each class; -1: it always trains.

    Equal rows are in one fold, and the order of the rows does not matter.
    """
    rows, codes, _ = labeled
    lengths = (((rows - problem.moments.mean) * problem.frame.scale) ** 2).sum(axis=1)
    folds = np.full(len(codes), -1)
    for k in range(problem.n_classes):
        own = np.flatnonzero(codes == k)
        ranks = np.unique(lengths[own], return_inverse=True)[1]
        if ranks.max() > 0:
            folds[own] = ranks % _FOLDS
    return folds


@dataclass(frozen=True)
class _Tested:
    """(members, rows, K): scores of unit spread by fits without the labels of the rows."""

    scores: Array
    codes: AnyArray
    counts: Array  # weights of the rows
    folds: AnyArray
    n_unlabeled: int

    def weights(self) -> Array:
        """Weights of the members, by their errors."""
        n_tested = float(self.counts.sum())
        error = (self.scores.argmax(axis=2) != self.codes) @ self.counts / n_tested
        return np.asarray(
            np.exp(-_SHARPNESS * n_tested / (n_tested + _CAUTION) * error)
        )

    def averaged(self, weights: Array) -> Array:
        """Averaged scores of unit spread."""
        scores = np.tensordot(weights / weights.sum(), self.scores, 1)
        spread = np.sqrt(self.counts @ (scores**2).mean(axis=1) / self.counts.sum())
        return np.asarray(scores / max(float(spread), 1e-300))

    def sureness(self, weights: Array) -> float:
        """Factor by which the averaged scores become the likeliest log odds."""
        scores = self.averaged(weights)
        own = scores[np.arange(len(self.codes)), self.codes]

        def loss(log_factor: float) -> float:
            sure = np.exp(log_factor)
            misfit = self.counts @ (logsumexp(sure * scores, axis=1) - sure * own)
            return float(
                misfit
                + _TESTED_AT_LEAST * (log_factor - np.log(_UNTESTED_SURENESS)) ** 2
            )

        best = scipy.optimize.minimize_scalar(
            loss, bounds=(-3.0, 5.0), method="bounded"
        )
        return float(np.exp(best.x))

    def predictions(self) -> HeldOut:
        """Probabilities of the rows of each fold, weighed by the labels of the others."""
        probabilities, folds = np.empty(self.scores.shape[1:]), np.unique(self.folds)
        for fold in folds:
            own, others = self.folds == fold, self._rows(self.folds != fold)
            weights = others.weights()
            scores = others.sureness(weights) * self.averaged(weights)[own]
            probabilities[own] = softmax(scores, axis=1)
        return HeldOut(
            *row_losses(probabilities, self.codes), len(folds), self.n_unlabeled
        )

    def _rows(self, some: AnyArray) -> _Tested:
        scores, folds = self.scores[:, some], self.folds[some]
        return _Tested(
            scores, self.codes[some], self.counts[some], folds, self.n_unlabeled
        )


def _held_out_scores(
    problem: Problem,
    labeled: Labeled,
    neighbors: _Neighbors | None,
    folds: AnyArray,
    with_shares: bool,
) -> _Tested:
    """Fit the members without the labels of each fold; the fits read a sample of unlabeled rows."""
    (rows, codes, weights), spread = labeled, None
    n_sample = int(
        np.clip(_TESTED_SIZE / (rows.shape[1] * problem.n_classes), *_TESTED_WITH)
    )
    sample, sample_weights = problem.unlabeled.sample(n_sample, 0)
    scores = np.empty((len(_UNTESTED_WEIGHTS), len(codes), problem.n_classes))
    for each in np.unique(folds[folds >= 0]):
        fold, train = folds == each, folds != each
        part = rows[train], codes[train], weights[train]
        unlabeled = MemoryRows(
            np.concatenate([sample, problem.frame.restore(rows[fold])]),
            np.concatenate([sample_weights, weights[fold]]),
        )
        summary = summarize_rows(*part, problem.n_classes)
        less = replace(
            problem, labeled=summary, unlabeled=unlabeled, unlabeled_moments=None
        )
        if neighbors is not None:
            spread = neighbors.spread(np.where(fold, -1, codes), problem.n_classes)
        rules = _members(less, part, spread, with_shares).values()
        for k, rule in enumerate(rules):
            scores[k, fold] = of_unit_spread(rule, less.moments).scores(rows[fold]).T
    kept = folds >= 0
    return _Tested(
        scores[: len(rules), kept], codes[kept], weights[kept], folds[kept], len(sample)
    )
