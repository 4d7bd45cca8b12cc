"""The average of linear rules that use the unlabeled rows differently, and the shares it gives.

Three kinds of EM and logistic regression; ``AverageLDA`` predicts by their mean, and other
classifiers take the class shares among the unlabeled rows from it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import scipy.optimize
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from .._core.frame import mean_variance_in_frame
from .._core.labelsums import LinearRule
from .._core.problem import Problem, summarize_rows
from .._core.solvers.anchored import anchored_em, mean_of_rules, of_unit_spread
from .._core.types import AnyArray, Array
from .._rows.memory import MemoryRows
from .._rows.passes import unreported
from .labels import draw_labeled
from .prepare import FitInputs

_ROUNDS = 20  # of EM: more of them change few labels
_ANNEALING = (0.9, 0.7, 0.5)  # shrinkages above the last one, for three rounds each
_TESTED_WITH = (1_000, 5_000)  # unlabeled rows of the fits that weigh the members
_TESTED_SIZE = 1e8  # rows x features x classes of these, above which rows are fewer
_LOGISTIC_SIZE = 5e10  # rows x features x classes x rounds of the logistic regression
_LOGISTIC_ROUNDS = (10, 100)
_MOST_LABELED = 10_000  # rows of the logistic regression and of the cross-validation
_SHARPNESS = 10.0  # of the weights: exp(-10 x share of wrong rows)
_UNTESTED_WEIGHTS = {"em": 2.0, "annealed": 2.0, "labeled shares": 1.0, "logistic": 1.0}
_CAUTION = 20.0  # tested rows at which the weights are half as sharp
_UNTESTED_SURENESS = 2.0  # factor of scores of unit spread where no label can be held out
_LEAST_COUNT = 0.5  # rows of a class, of which the shares of the classes keep all above 0
_TESTED_AT_LEAST = 2.0  # weight of that factor, in rows
Labeled = tuple[Array, AnyArray, Array]  # rows in frame coordinates, codes, weights


@dataclass(frozen=True)
class AverageRule:
    """The averaged scores, in frame coordinates, the weights of the members, and passes read."""

    rule: LinearRule
    member_weights: dict[str, float]
    n_passes: int


def average_rule(problem: Problem, labeled: Labeled, *, with_shares: bool = True) -> AverageRule:
    """Average the scores of the members, weighed and scaled by held-out labels where there are two.

    ``labeled`` are the labeled rows in frame coordinates, their codes and weights;
    ``with_shares``: whether a member approaches the shares of the classes among them.
    """
    rows, codes, counts = labeled
    kept = draw_labeled(codes, np.flatnonzero(counts > 0), _MOST_LABELED, 0)
    labeled, shrinkage = (rows[kept], codes[kept], counts[kept]), problem.shrinkage
    rules = _members(problem, labeled, shrinkage, with_shares)
    weights = np.array([_UNTESTED_WEIGHTS[name] for name in rules])
    sureness = _UNTESTED_SURENESS
    halves = _halves(problem, labeled)
    if (halves >= 0).any():
        _, codes, counts = (part[halves >= 0] for part in labeled)
        with unreported():  # progress is that of the passes over all rows
            scores = _held_out_scores(problem, labeled, shrinkage, halves, with_shares)
        weights = _weights(scores, codes, counts)
        sureness = _sureness(np.tensordot(weights / weights.sum(), scores, 1), codes, counts)
    rule = mean_of_rules(list(rules.values()), weights, problem.moments)
    return AverageRule(
        LinearRule(sureness * rule.coef, sureness * rule.intercept, is_soft=True),
        dict(zip(rules, (weights / weights.sum()).tolist(), strict=True)),
        1 + sum(len(_path(name, shrinkage)) for name in rules),
    )


def with_proportions(problem: Problem, inputs: FitInputs) -> Problem:
    """The problem with class shares and a start that the average gives, if these are learned."""
    if not inputs.learns_proportions:
        return problem
    rule = average_rule(problem, inputs.labeled_rows()).rule
    sums = problem.unlabeled.label_sums(replace(rule, is_soft=False), problem.frame)
    shares = (sums.counts + _LEAST_COUNT) / (sums.counts + _LEAST_COUNT).sum()
    return replace(problem, proportions=np.column_stack([shares, shares]), start=rule)


def _path(member: str, shrinkage: float) -> tuple[float, ...]:
    """Shrinkages of the rounds of a member."""
    if member == "logistic":
        return ()
    if member != "annealed":
        return (shrinkage,) * _ROUNDS
    above = tuple(each for each in _ANNEALING if each > shrinkage for _ in range(3))
    return above + (shrinkage,) * 6


def _members(
    problem: Problem, labeled: Labeled, shrinkage: float, with_shares: bool
) -> dict[str, LinearRule]:
    """Scores of the members, in frame coordinates."""
    known = problem.proportions
    by_name = {"em": known, "annealed": known}
    if known is None and with_shares:
        shares = (problem.labeled.counts + 1) / (problem.labeled.counts + 1).sum()
        by_name["labeled shares"] = np.column_stack([shares, shares])
    rules = {
        name: anchored_em(
            problem, _path(name, shrinkage), proportions, is_anchored=name != "annealed"
        )
        for name, proportions in by_name.items()
    }
    return {**rules, "logistic": _logistic(problem, *labeled)}


def _logistic(problem: Problem, rows: Array, codes: AnyArray, weights: Array) -> LinearRule:
    """Logistic regression of the labeled rows, in units of mean variance 1."""
    moments = problem.moments
    unit = np.sqrt(mean_variance_in_frame(moments.covariance, problem.frame, problem.n_left_out))
    unit = np.where(unit > 0, unit, 1.0)
    size = len(rows) * rows.shape[1] * problem.n_classes
    rounds = int(np.clip(_LOGISTIC_SIZE / max(1, size), *_LOGISTIC_ROUNDS))
    model = LogisticRegression(tol=1e-3, max_iter=rounds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many classes of one row each; rounds that did not end
        model.fit((rows - moments.mean) / unit, codes, sample_weight=weights)
    coef, intercept = model.coef_.T / unit[:, None], model.intercept_
    if len(model.classes_) == 2:
        coef, intercept = coef * [-0.5, 0.5], intercept * [-0.5, 0.5]
    if problem.log_priors is not None:
        counts = problem.labeled.counts
        intercept = intercept + problem.log_priors - np.log(counts / counts.sum())
    return LinearRule(coef, intercept - moments.mean @ coef, is_soft=True)


def _halves(problem: Problem, labeled: Labeled) -> AnyArray:
    """0 or 1 for every labeled row, in turn by length in each class; -1: it always trains.

    Equal rows are in one half, and the order of the rows does not matter.
    """
    rows, codes, _ = labeled
    lengths = (((rows - problem.moments.mean) * problem.frame.scale) ** 2).sum(axis=1)
    halves = np.full(len(codes), -1)
    for k in range(problem.n_classes):
        own = np.flatnonzero(codes == k)
        ranks = np.unique(lengths[own], return_inverse=True)[1]
        if ranks.max() > 0:
            halves[own] = ranks % 2
    return halves


def _held_out_scores(
    problem: Problem, labeled: Labeled, shrinkage: float, halves: AnyArray, with_shares: bool
) -> Array:
    """(members, tested rows, K): scores of unit spread by fits without the labels of the rows.

    The fits read a sample of the unlabeled rows.
    """
    rows, codes, weights = labeled
    n_sample = int(np.clip(_TESTED_SIZE / (rows.shape[1] * problem.n_classes), *_TESTED_WITH))
    sample, sample_weights = problem.unlabeled.sample(n_sample, 0)
    scores = np.empty((len(_UNTESTED_WEIGHTS), len(codes), problem.n_classes))
    for half in (0, 1):
        fold, train = halves == half, halves != half
        part = rows[train], codes[train], weights[train]
        unlabeled = MemoryRows(
            np.concatenate([sample, problem.frame.restore(rows[fold])]),
            np.concatenate([sample_weights, weights[fold]]),
        )
        summary = summarize_rows(*part, problem.n_classes)
        less = replace(problem, labeled=summary, unlabeled=unlabeled, unlabeled_moments=None)
        rules = _members(less, part, shrinkage, with_shares).values()
        for k, rule in enumerate(rules):
            scores[k, fold] = of_unit_spread(rule, less.moments).scores(rows[fold]).T
    return scores[: len(rules), halves >= 0]


def _weights(scores: Array, codes: AnyArray, counts: Array) -> Array:
    """Weights of the members, by their errors on held-out labels."""
    n_tested = float(counts.sum())
    error = (scores.argmax(axis=2) != codes) @ counts / n_tested
    return np.asarray(np.exp(-_SHARPNESS * n_tested / (n_tested + _CAUTION) * error))


def _sureness(scores: Array, codes: AnyArray, counts: Array) -> float:
    """Factor by which averaged scores of held-out rows become the likeliest log odds."""
    spread = np.sqrt(counts @ (scores**2).mean(axis=1) / counts.sum())
    scores = scores / max(float(spread), 1e-300)
    own = scores[np.arange(len(codes)), codes]

    def loss(log_factor: float) -> float:
        sure = np.exp(log_factor)
        misfit = counts @ (logsumexp(sure * scores, axis=1) - sure * own)
        return float(misfit + _TESTED_AT_LEAST * (log_factor - np.log(_UNTESTED_SURENESS)) ** 2)

    best = scipy.optimize.minimize_scalar(loss, bounds=(-3.0, 5.0), method="bounded")
    return float(np.exp(best.x))
