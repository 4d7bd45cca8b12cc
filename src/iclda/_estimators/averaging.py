"""The average of fits that use the unlabeled rows differently.

Its members are three kinds of EM and logistic regression. ``average_rule`` returns the
mean of their scores, weighted by their errors on held-out labels, by which
``AverageLDA`` predicts. Other classifiers learn the shares of the classes among the
unlabeled rows from it (``learn_shares``). In the order of a fit:

1. Choose the labeled rows, and join them and a sample of the others in a graph of
   neighbors (``_find_neighbors``).
2. Fit the members to all labels (``_fit_members``).
3. Fit them again without the labels of each fold (``_score_held_out``), which gives
   their weights and the scale of the averaged scores.
4. Average the scores.

To *spread* labels is to pass them on to neighbors. Scores of *unit spread* have mean
square 1 over all rows and classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse
from sklearn.neighbors import kneighbors_graph

from .._core import AnyArray, Array
from .._core.frame import mean_variance_in_frame
from .._core.labelsums import LinearRule, StackedRules
from .._core.logistic import fit_logistic
from .._core.problem import LabeledRows, Problem, summarize_rows
from .._core.rows import Memory, place_of_rows
from .._core.solvers.anchored import (
    Course,
    anchored_em,
    concat_rules,
    mean_of_rules,
    of_unit_spread,
)
from .._error_estimate import row_losses
from .._held_out import (
    NO_FOLD,
    draw_labeled,
    merge_copies,
    predict_held_out,
    ranked_folds,
    splits_of,
)
from .._messages import FitError
from .._rows import unreported
from .._rows.dispatch import held_rows

# Rounds of EM: after these, further rounds change few labels.
_N_ROUNDS = 20
# The annealed EM makes a few rounds with each of these shrinkages that is larger than
# that of the fit, and its last rounds with that of the fit.
_ANNEALING_SHRINKAGES = (0.9, 0.7, 0.5)
_N_ROUNDS_AT_EACH_SHRINKAGE = 3
_N_LAST_ROUNDS = 6

# Logistic regression and cross-validation use at most this many labeled rows.
_MAX_LABELED_ROWS = 10_000
# The product of rows, dimensions, classes and rounds of logistic regression may be this
# large, and the number of rounds is at least and at most the following.
_LOGISTIC_WORK = 5e10
_MIN_LOGISTIC_ROUNDS = 10
_MAX_LOGISTIC_ROUNDS = 100
# Its rounds end when the gradients of the classes are at most this long, relative to
# the rows; both lengths are root mean squares.
_LOGISTIC_TOL = 5e-5

# Labels are spread on a graph in which every row is joined to this many neighbors.
_N_NEIGHBORS = 9
# The graph has at most this many labeled rows, and as many unlabeled ones.
_MAX_ROWS_IN_GRAPH = 2_500
_N_SPREADING_ROUNDS = 30
# Share of its labels that a row takes from its neighbors in a round.
_SHARE_FROM_NEIGHBORS = 0.9

# Weights of the members if no label can be held out.
_UNTESTED_WEIGHTS = {"em": 2.0, "annealed": 2.0, "labeled shares": 1.0, "logistic": 1.0}
# Averaged scores of unit spread become log odds by a factor. This is the factor if no
# label can be held out; otherwise it counts as much as this many held-out rows.
_UNTESTED_SCALE = 2.0
_SCALE_PRIOR_ROWS = 2.0
# The logarithm of the factor is sought between these.
_LOG_SCALE_BOUNDS = (-3.0, 5.0)
# If many rows are held out, the weight of a member is exp(-20 x share of wrong rows).
_WEIGHT_SHARPNESS = 20.0
# With this many held-out rows the exponent is half of that.
_CAUTIOUS_TESTED_ROWS = 20.0
# Largest number of folds of the labeled rows.
_MAX_FOLDS = 4
# Fits without held-out labels read a sample of the unlabeled rows. The product of its
# rows, dimensions and classes may be this large, and the number of rows is at least and
# at most the following.
_SAMPLE_WORK = 5e7
_MIN_SAMPLE_ROWS = 1_000
_MAX_SAMPLE_ROWS = 2_500

# Rows added to every class, so that no learned share is 0.
_PSEUDO_COUNT = 0.5

# Stands in for a size of zero in a quotient.
_TINY = 1e-300

# Labeled rows in frame coordinates, their codes, and their weights.
Labeled = tuple[Array, AnyArray, Array]


@dataclass(frozen=True)
class HeldOut:
    """Labeled rows, predicted by averages of fits without their labels.

    Attributes
    ----------
    probabilities : ndarray of shape (n_rows, n_classes)
        Those of the tested rows.
    losses, is_wrong : ndarray of shape (n_rows,)
        Their Brier scores, and whether they got a wrong class.
    n_folds : int
    n_unlabeled : int
        Number of unlabeled rows that the fits read.
    """

    probabilities: Array
    losses: Array
    is_wrong: Array
    n_folds: int
    n_unlabeled: int


@dataclass(frozen=True)
class AverageRule:
    """The averaged scores, in frame coordinates.

    ``n_passes`` counts the passes in which the members were fitted. ``held_out`` is
    None if no label could be held out. ``held_out_probabilities`` (n, K) are those of
    all labeled rows, NaN where a row was not tested.
    """

    rule: LinearRule
    member_weights: dict[str, float]
    n_passes: int
    held_out: HeldOut | None
    held_out_probabilities: Array


def average_rule(
    problem: Problem, labeled: Labeled, *, with_shares: bool = True
) -> AverageRule:
    """Average the scores of the members.

    Their weights, and the scale of the average, come from held-out labels if there are
    any. ``with_shares`` tells whether one member approaches the shares of the classes
    among the labeled rows.
    """
    # 1. Choose the labeled rows, and find the neighbors of all rows.
    rows, codes, weights = labeled
    kept = draw_labeled(codes, np.flatnonzero(weights > 0), _MAX_LABELED_ROWS, 0)
    distinct = merge_copies(rows[kept], codes[kept], weights[kept])
    labeled = distinct[:3]
    neighbors = _find_neighbors(problem, labeled)

    # 2. Fit the members to all labels.
    names = _members(problem, with_shares)
    start = None
    if neighbors is not None:
        start = neighbors.spread(labeled[1], problem.n_classes)
    rules = _fit_members(problem, names, labeled, start)

    # 3. Weigh them by their errors on held-out labels, if there are any.
    member_weights = np.array([_UNTESTED_WEIGHTS[name] for name in names])
    scale = _UNTESTED_SCALE
    held_out = None
    of_distinct = np.full((len(labeled[0]), problem.n_classes), np.nan)
    folds = _folds(problem, labeled)
    if (folds != NO_FOLD).any():
        tested = _score_held_out(problem, names, labeled, neighbors, folds)
        member_weights = tested.member_weights()
        scale = tested.scale(member_weights)
        held_out = tested.losses()
        of_distinct[folds != NO_FOLD] = held_out.probabilities
    held_out_probabilities = np.full((len(rows), problem.n_classes), np.nan)
    held_out_probabilities[kept] = of_distinct[distinct.positions]

    # 4. Average their scores.
    place = place_of_rows(problem.unlabeled)
    rule = mean_of_rules(rules, member_weights, problem.moments, place)
    shares = (member_weights / member_weights.sum()).tolist()
    return AverageRule(
        rule=LinearRule(scale * rule.coef, scale * rule.intercept, is_soft=True),
        member_weights=dict(zip(names, shares, strict=True)),
        n_passes=max(len(_shrinkage_path(name, problem.shrinkage)) for name in names),
        held_out=held_out,
        held_out_probabilities=held_out_probabilities,
    )


@dataclass(frozen=True)
class LearnedShares:
    """Shares of the classes among the unlabeled rows, as the average predicts them.

    ``proportions`` (K, 2) has each share twice, as the least and as the largest one.
    ``start`` are the averaged scores, with which the fit may begin.
    """

    proportions: Array
    start: LinearRule
    n_passes: int


def learn_shares(problem: Problem, labeled_rows: LabeledRows) -> LearnedShares:
    """Learn the shares of the classes among the unlabeled rows of a problem."""
    average = average_rule(problem, in_frame(problem, labeled_rows))
    hard_rule = replace(average.rule, is_soft=False)
    sums = problem.unlabeled.label_sums(hard_rule, problem.frame)
    counts = sums.counts + _PSEUDO_COUNT
    shares = counts / counts.sum()
    proportions = np.column_stack([shares, shares])
    # The pass that predicted the classes counts, too.
    return LearnedShares(proportions, average.rule, 1 + average.n_passes)


def in_frame(problem: Problem, labeled_rows: LabeledRows) -> Labeled:
    """Return labeled rows in frame coordinates, their codes and weights."""
    rows, codes, weights = labeled_rows
    return problem.frame.apply(rows), codes, weights


def _shrinkage_path(member: str, shrinkage: float) -> tuple[float, ...]:
    """Return the shrinkage of every round of a member; logistic regression has none."""
    if member == "logistic":
        return ()
    if member != "annealed":
        return (shrinkage,) * _N_ROUNDS
    path: tuple[float, ...] = ()
    for larger in _ANNEALING_SHRINKAGES:
        if larger > shrinkage:
            path += (larger,) * _N_ROUNDS_AT_EACH_SHRINKAGE
    return path + (shrinkage,) * _N_LAST_ROUNDS


def _n_dimensions(problem: Problem) -> int:
    """Return how many dimensions the rows can span, in whatever coordinates they are.

    Few rows of many features are fitted along as many axes as there are rows in memory,
    and along all features on a device.
    """
    n_features = len(problem.frame.scale) + problem.n_left_out
    n_rows = problem.labeled.n_rows + problem.unlabeled.n_rows
    return int(min(n_features, n_rows))


def _members(problem: Problem, with_shares: bool) -> list[str]:
    """Return the names of the members."""
    names = ["em", "annealed"]
    if problem.proportions is None and with_shares:
        names.append("labeled shares")
    return [*names, "logistic"]


def _fit_members(
    problem: Problem,
    names: Sequence[str],
    labeled: Labeled,
    start: tuple[Any, Any] | None,
) -> StackedRules:
    """Return the scores of the members, in frame coordinates.

    ``start`` are class weights and sums of unlabeled rows, from which all kinds of EM
    but the annealed one start; without them, they start from the labeled rows.
    """
    courses = []
    for name in names:
        path = _shrinkage_path(name, problem.shrinkage)
        if name == "annealed":
            courses.append(Course(path, problem.proportions, is_anchored=False))
        elif name == "labeled shares":
            # One row more in every class: shares of few labels are uncertain.
            counts = problem.labeled.counts + 1
            shares = counts / counts.sum()
            bounds = np.column_stack([shares, shares])
            courses.append(Course(path, bounds, start=start))
        elif name == "em":
            courses.append(Course(path, problem.proportions, start=start))
    xp = place_of_rows(problem.unlabeled).xp
    return concat_rules(
        [anchored_em(problem, courses), _logistic(problem, *labeled)], xp
    )


@dataclass(frozen=True)
class _Neighbors:
    """Graph of neighbors: the labeled rows and a sample of the others.

    Attributes
    ----------
    links : array of shape (n_distinct, n_distinct)
        Links of distinct rows to their nearest ones; each link is divided by the roots
        of the numbers of links to its two rows. In memory it is sparse.
    indices : ndarray of shape (n_rows,)
        Index of every row among the distinct ones.
    rows, weights : array
        All rows in frame coordinates, labeled ones first, and their weights.
    place : Place
        Where links, rows and weights are.
    """

    links: Any
    indices: AnyArray
    rows: Any
    weights: Any
    place: Any

    def spread(self, codes: AnyArray, n_classes: int) -> tuple[Any, Any]:
        """Spread labels to neighbors; return class weights and sums of other rows.

        ``codes`` are those of the labeled rows, or -1 where a label is not to be used.
        """
        xp = self.place.xp
        labeled = np.flatnonzero(codes >= 0)
        one_hot = np.zeros((self.links.shape[0], n_classes))
        one_hot[self.indices[labeled], codes[labeled]] = 1.0
        given = self.place.put(one_hot)
        shares = given
        for _ in range(_N_SPREADING_ROUNDS):
            from_neighbors = self.links @ shares
            shares = (
                _SHARE_FROM_NEIGHBORS * from_neighbors
                + (1 - _SHARE_FROM_NEIGHBORS) * given
            )

        # What has spread to the other rows are shares of classes once it adds up to 1.
        # A row that no label has reached has no class, and adds nothing to the sums.
        others = np.delete(np.arange(len(self.indices)), labeled)
        shares = xp.take(shares, self.place.put_as_is(self.indices[others]), axis=0)
        placed_others = self.place.put_as_is(others)
        weights = xp.take(self.weights, placed_others, axis=0)
        totals = xp.sum(shares, axis=1)
        shares = shares * (weights / xp.clip(totals, _TINY, None))[:, None]
        rows = xp.take(self.rows, placed_others, axis=0)
        return xp.sum(shares, axis=0), shares.T @ rows


def _find_neighbors(problem: Problem, labeled: Labeled) -> _Neighbors | None:
    """Return the graph of neighbors, or None.

    There is none for tables, in which distances would depend on the units of columns,
    for many labels, and if all rows are equal.
    """
    rows, _, weights = labeled
    if not problem.has_network_features or len(rows) > _MAX_ROWS_IN_GRAPH:
        return None
    sample, sample_weights = problem.unlabeled.sample(_MAX_ROWS_IN_GRAPH, 0)
    # Distances are those in the user's units. Copies of a row would be its only
    # neighbors, so that equal rows are one.
    every = np.concatenate([problem.frame.restore(rows), sample])
    distinct, indices = np.unique(every, axis=0, return_inverse=True)
    if len(distinct) < 2:
        return None
    place = place_of_rows(problem.unlabeled)
    n_neighbors = min(_N_NEIGHBORS, len(distinct) - 1)
    return _Neighbors(
        links=_links(distinct, n_neighbors, place),
        # NumPy 2.0 returns a column of indices.
        indices=indices.ravel(),
        rows=place.put(np.concatenate([rows, problem.frame.apply(sample)])),
        weights=place.put(np.concatenate([weights, sample_weights])),
        place=place,
    )


def _links(rows: Array, n_neighbors: int, place: Any) -> Any:
    """Return the links (n, n) of distinct rows to their nearest ones.

    A row that is a neighbor of many rows counts less for each of them, as in the
    LabelSpreading of scikit-learn.
    """
    if isinstance(place, Memory):
        links = kneighbors_graph(rows, n_neighbors)
        n_links_to = np.asarray(links.sum(axis=0)).ravel()
        scale = scipy.sparse.diags_array(1 / np.sqrt(np.maximum(n_links_to, 1.0)))
        return scipy.sparse.csr_array(scale @ links @ scale)

    # A device multiplies full matrices faster than it looks up what is in them.
    xp = place.xp
    placed = place.put(rows - rows.mean(axis=0))
    # Squared distances, less a constant for each row. Nearest of all is the row itself.
    distances = xp.sum(placed**2, axis=1) - 2 * xp.matmul(placed, placed.T)
    farthest = xp.sort(distances, axis=1)[:, n_neighbors]
    is_near = xp.astype(distances <= farthest[:, None], place.dtype)
    full_links = is_near - xp.eye(len(rows), dtype=place.dtype, device=place.device)
    roots = xp.sqrt(xp.clip(xp.sum(full_links, axis=0), 1.0, None))
    return full_links / roots / roots[:, None]


def _logistic(
    problem: Problem, rows: Array, codes: AnyArray, weights: Array
) -> StackedRules:
    """Fit logistic regression to the labeled rows, in units of mean variance 1.

    Its scores are returned in frame coordinates, as a stack of one rule.
    """
    moments = problem.moments
    variance = mean_variance_in_frame(
        moments.covariance, problem.frame, problem.n_left_out
    )
    unit = np.sqrt(variance)
    unit = np.where(unit > 0, unit, 1.0)

    work_per_round = len(rows) * _n_dimensions(problem) * problem.n_classes
    n_affordable = _LOGISTIC_WORK / max(1, work_per_round)
    n_rounds = int(np.clip(n_affordable, _MIN_LOGISTIC_ROUNDS, _MAX_LOGISTIC_ROUNDS))
    place = place_of_rows(problem.unlabeled)
    coef, intercept = fit_logistic(
        place.put((rows - moments.mean) / unit),
        codes,
        weights,
        problem.n_classes,
        place,
        tol=_LOGISTIC_TOL,
        max_rounds=n_rounds,
    )
    coef = coef / place.put(unit)[:, None]
    if problem.log_priors is not None:
        # The priors take the place of the shares of the classes among the labels.
        counts = problem.labeled.counts
        change = problem.log_priors - np.log(counts / counts.sum())
        intercept = intercept + place.put(change)
    intercept = intercept - place.put(moments.mean) @ coef
    return StackedRules(coef[None, ...], intercept[None, :])


def _folds(problem: Problem, labeled: Labeled) -> AnyArray:
    """Return the fold of every labeled row.

    Rows are dealt in the order of their distances from the mean, in the user's units.
    """
    rows, codes, _ = labeled
    deviations = (rows - problem.moments.mean) * problem.frame.scale
    squared_distances = (deviations**2).sum(axis=1)
    return ranked_folds(codes, squared_distances, _MAX_FOLDS)


@dataclass(frozen=True)
class _HeldOutScores:
    """Scores of labeled rows by members that were fitted without their labels.

    Attributes
    ----------
    scores : array of shape (n_members, n_classes, n_rows)
        Scores of unit spread, at ``place``.
    codes, weights, folds : ndarray of shape (n_rows,)
        Class, weight and fold of every row.
    n_unlabeled : int
        Number of unlabeled rows that the fits read.
    place : Place
    """

    scores: Any
    codes: AnyArray
    weights: Array
    folds: AnyArray
    n_unlabeled: int
    place: Any

    def member_weights(self) -> Array:
        """Return weights of the members, which fall with their errors."""
        n_tested = float(self.weights.sum())
        best = self.place.fetch(self.place.xp.argmax(self.scores, axis=1))
        errors = (best != self.codes) @ self.weights / n_tested
        # Errors on few rows are uncertain: the weights then differ less.
        sharpness = _WEIGHT_SHARPNESS * n_tested / (n_tested + _CAUTIOUS_TESTED_ROWS)
        return np.asarray(np.exp(-sharpness * errors))

    def averaged(self, member_weights: Array) -> Any:
        """Average the scores of the members, and scale them to unit spread."""
        xp = self.place.xp
        shares = self.place.put(member_weights / member_weights.sum())
        scores = xp.tensordot(shares, self.scores, axes=1)
        squares = self.place.fetch(xp.mean(scores**2, axis=0))
        size = np.sqrt(self.weights @ squares / self.weights.sum())
        return scores / max(float(size), _TINY)

    def scale(self, member_weights: Array) -> float:
        """Return the factor by which averaged scores predict these rows best.

        Scores times the factor are log odds: it maximizes their likelihood, with a
        prior that keeps it near that of untested averages.
        """
        xp = self.place.xp
        scores = self.averaged(member_weights)
        # How far every class is ahead of the row's own one.
        is_own = self.codes == np.arange(scores.shape[0])[:, None]
        own_scores = xp.sum(self.place.put(is_own) * scores, axis=0)
        leads = scores - own_scores
        weights = self.place.put(self.weights)

        def loss(log_factor: float) -> float:
            factor = float(np.exp(log_factor))
            _, log_losses = self.place.label(factor * leads, is_soft=True)
            prior_loss = (log_factor - np.log(_UNTESTED_SCALE)) ** 2
            return float(weights @ log_losses) + _SCALE_PRIOR_ROWS * prior_loss

        best = scipy.optimize.minimize_scalar(
            loss, bounds=_LOG_SCALE_BOUNDS, method="bounded"
        )
        return float(np.exp(best.x))

    def losses(self) -> HeldOut:
        """Return the losses of the average, whose weights are tested, too.

        Rows of a fold are predicted with the weights and the scale that the labels of
        the other folds give.
        """

        def predict(train: AnyArray, test: AnyArray) -> Array:
            others = self._rows(train)
            member_weights = others.member_weights()
            scores = others.scale(member_weights) * self.averaged(member_weights)
            tested = self.place.xp.take(scores, self.place.put_as_is(test), axis=1)
            shares, _ = self.place.label(tested, is_soft=True)
            return self.place.fetch(shares).T

        probabilities = predict_held_out(predict, self.folds)
        # No fit can fail, because the members are not fitted here.
        assert not isinstance(probabilities, FitError)
        losses, is_wrong = row_losses(probabilities, self.codes)
        n_folds = len(np.unique(self.folds))
        return HeldOut(probabilities, losses, is_wrong, n_folds, self.n_unlabeled)

    def _rows(self, rows: AnyArray) -> _HeldOutScores:
        """Return the scores of some of the rows."""
        return replace(
            self,
            scores=self.place.xp.take(self.scores, self.place.put_as_is(rows), axis=2),
            codes=self.codes[rows],
            weights=self.weights[rows],
            folds=self.folds[rows],
        )


def _score_held_out(
    problem: Problem,
    names: Sequence[str],
    labeled: Labeled,
    neighbors: _Neighbors | None,
    folds: AnyArray,
) -> _HeldOutScores:
    """Fit the members without the labels of each fold, and score its rows.

    The unlabeled rows of these fits are a sample, and the rows of the fold.
    """
    rows, codes, weights = labeled
    n_affordable = _SAMPLE_WORK / (_n_dimensions(problem) * problem.n_classes)
    n_sample = int(np.clip(n_affordable, _MIN_SAMPLE_ROWS, _MAX_SAMPLE_ROWS))
    sample, sample_weights = problem.unlabeled.sample(n_sample, 0)
    place = place_of_rows(problem.unlabeled)
    xp = place.xp

    scores = []
    splits = splits_of(folds)
    # The fit to all rows repeats what matters of the warnings.
    with warnings.catch_warnings(), unreported():
        warnings.simplefilter("ignore")
        for train, test in splits:
            # The rows of the fold lose their labels, and join the unlabeled rows.
            known = rows[train], codes[train], weights[train]
            unlabeled = held_rows(
                np.concatenate([sample, problem.frame.restore(rows[test])]),
                np.concatenate([sample_weights, weights[test]]),
                problem.unlabeled.held_at,
            )
            reduced = replace(
                problem,
                labeled=summarize_rows(*known, problem.n_classes),
                unlabeled=unlabeled,
                unlabeled_moments=None,
            )
            start = None
            if neighbors is not None:
                known_codes = codes.copy()
                known_codes[test] = -1
                start = neighbors.spread(known_codes, problem.n_classes)
            rules = _fit_members(reduced, names, known, start)
            unit_rules = of_unit_spread(rules, reduced.moments, place)
            transposed = xp.matrix_transpose(unit_rules.coef)
            scores_of_fold = xp.matmul(transposed, place.put(rows[test]).T)
            scores.append(scores_of_fold + unit_rules.intercept[..., None])

    # Scores come fold by fold: put them into the order of the rows.
    order = np.argsort(np.concatenate([split.test for split in splits]))
    is_tested = folds != NO_FOLD
    return _HeldOutScores(
        scores=xp.take(xp.concat(scores, axis=2), place.put_as_is(order), axis=2),
        codes=codes[is_tested],
        weights=weights[is_tested],
        folds=folds[is_tested],
        n_unlabeled=len(sample),
        place=place,
    )
