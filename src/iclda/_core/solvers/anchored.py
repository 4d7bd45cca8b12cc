"""EM whose class means are drawn to the labeled rows, and means of linear rules.

In EM a hundred unlabeled rows outweigh one labeled row, and where classes overlap a
class may drift away from its labels. Here the mean of class k is (1 - a) times that of
EM plus a times that of its labeled rows, with a = n_k / (n_k + 8) for a labeled weight
n_k: labels count by their number alone, however many unlabeled rows there are. A round
takes one pass for class weights and class sums; the covariance follows from these and
the moments of all rows. Several fits share the passes. All this is computed where the
rows are (``place_of_rows``): with a thousand classes it takes longer than the passes of
a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from .. import Array
from ..frame import mean_variances
from ..gaussian import Gaussians
from ..labelsums import LinearRule, StackedRules
from ..moments import Moments
from ..problem import LabeledSummary, Problem
from ..rows import place_of_rows
from .supervised import fit_labeled

# This number of labeled rows of a class weighs as much as all its unlabeled rows.
_ANCHOR_ROWS = 8.0
# Keeps the covariance regular where no shrinkage is asked for.
_MIN_SHRINKAGE = 1e-6
# Smallest share of a class in all rows, so that its logarithm is finite.
_MIN_SHARE = 1e-12
# Scores whose spread is below this share of their size differ by rounding only.
_SPREAD_ROUNDING = 1e-12
# Stands in for a size of zero in a quotient.
_TINY = 1e-300
# Rounding of log priors that were solved for.
_LOG_PRIORS_ROUNDING = 1e-6
# Relative cutoff for singular values: classes may lie in fewer dimensions.
_LEAST_SQUARES_RCOND = 1e-8


@dataclass(frozen=True)
class Course:
    """One of several fits by EM that are made together.

    Attributes
    ----------
    shrinkages : tuple of float
        The shrinkage of every round. If they fall, classes settle while they are still
        nearly round, and unfold later.
    proportions : (K, 2) array or None
        Bounds of the shares of the classes among the unlabeled rows: in every round,
        one step of scaling moves the intercepts toward them. The scores that are
        returned leave these moves out.
    is_anchored : bool
        Whether class means are drawn to the labeled rows; if not, they are those of EM.
    start : tuple of arrays (K,) and (K, d), or None
        Class weights and class sums of unlabeled rows, for the scores of the first
        round. None: it begins with those of the supervised fit.
    """

    shrinkages: tuple[float, ...]
    proportions: Array | None = None
    is_anchored: bool = True
    start: tuple[Any, Any] | None = None


def anchored_em(problem: Problem, courses: Sequence[Course]) -> StackedRules:
    """Return the scores of every course after its last round.

    The rows are read once a round, for all courses. All arrays stay where the rows are.
    """
    classes = _Classes(problem)
    xp = classes.xp
    put = classes.place.put
    starts = [_start(classes, course) for course in courses]
    current = concat_rules(starts, xp)
    shifts = 0 * current.intercept
    n_rounds = [len(course.shrinkages) for course in courses]
    # The rules after the last round of every course.
    finished = starts
    running = list(range(len(courses)))
    terms = _Terms.of(classes, courses)
    for k in range(max(n_rounds)):
        # 1. Go on with the courses that have another round.
        going_on = [i for i in running if k < n_rounds[i]]
        if len(going_on) < len(running):
            kept = np.array([running.index(i) for i in going_on])
            index = classes.place.put_as_is(kept)
            current = _take(current, index, xp)
            shifts = xp.take(shifts, index, axis=0)
            terms = terms.take(index, xp)
            running = going_on

        # 2. Label the rows, and fit the classes to the labels.
        labeling = StackedRules(current.coef, current.intercept + shifts)
        flat_counts, flat_sums = problem.unlabeled.placed_label_sums(
            labeling, problem.frame
        )
        counts = xp.reshape(put(flat_counts), shifts.shape)
        sums = xp.reshape(put(flat_sums), (*shifts.shape, -1))
        current = classes.refit(counts, sums, terms, k)
        for position, i in enumerate(running):
            finished[i] = _take(current, slice(position, position + 1), xp)

        # 3. Scale the odds of every class by how far its share is out of its bounds.
        shares = counts / xp.sum(counts, axis=1, keepdims=True)
        shares = xp.clip(shares, _MIN_SHARE, None)
        wanted_shares = _within_bounds(shares, terms.bounds, xp)
        moves = xp.log(wanted_shares) - xp.log(shares)
        shifts = shifts + terms.is_bounded * moves
    return concat_rules(finished, xp)


def starting_rules(problem: Problem, courses: Sequence[Course]) -> StackedRules:
    """Return the scores with which the courses begin."""
    classes = _Classes(problem)
    return concat_rules([_start(classes, course) for course in courses], classes.xp)


@dataclass(frozen=True)
class _Terms:
    """The terms of M courses as arrays where the rows are, moved there once.

    Attributes
    ----------
    shrinkages : (M, R) the shrinkage of every round
    bounds : (M, K, 2) smallest and largest shares of the classes
    is_bounded : (M, 1) 1 where there are bounds, else 0
    is_anchored : (M, 1) 1 where class means are drawn to the labeled rows, else 0
    """

    shrinkages: Any
    bounds: Any
    is_bounded: Any
    is_anchored: Any

    @classmethod
    def of(cls, classes: _Classes, courses: Sequence[Course]) -> _Terms:
        """Return the terms of courses; those that end early repeat their shrinkage."""
        n_rounds = max(len(course.shrinkages) for course in courses)
        shrinkages = []
        bounds = []
        for course in courses:
            n_left = n_rounds - len(course.shrinkages)
            shrinkages.append(course.shrinkages + course.shrinkages[-1:] * n_left)
            if course.proportions is None:
                bounds.append(np.tile([0.0, 1.0], (classes.problem.n_classes, 1)))
            else:
                bounds.append(course.proportions)
        put = classes.place.put
        return cls(
            put(shrinkages),
            put(bounds),
            put([[course.proportions is not None] for course in courses]),
            put([[course.is_anchored] for course in courses]),
        )

    def take(self, index: Any, xp: Any) -> _Terms:
        """Return the terms of some of the courses."""
        return _Terms(
            xp.take(self.shrinkages, index, axis=0),
            xp.take(self.bounds, index, axis=0),
            xp.take(self.is_bounded, index, axis=0),
            xp.take(self.is_anchored, index, axis=0),
        )


def _start(classes: _Classes, course: Course) -> StackedRules:
    """Return the scores of the first round of a course."""
    if course.start is None:
        return classes.labeled_rules(course.shrinkages[0], course.proportions)
    counts, sums = course.start
    # Whatever the course, its start is anchored, and its shares are free.
    anchored = Course(course.shrinkages[:1])
    terms = _Terms.of(classes, [anchored])
    return classes.refit(counts[None, :], sums[None, ...], terms, 0)


def concat_rules(rules: Sequence[StackedRules], xp: Any) -> StackedRules:
    """Return all rules as one stack."""
    return StackedRules(
        xp.concat([each.coef for each in rules], axis=0),
        xp.concat([each.intercept for each in rules], axis=0),
    )


def _take(rules: StackedRules, index: Any, xp: Any) -> StackedRules:
    """Return some of the rules."""
    if isinstance(index, slice):
        return StackedRules(rules.coef[index, ...], rules.intercept[index, ...])
    coef = xp.take(rules.coef, index, axis=0)
    return StackedRules(coef, xp.take(rules.intercept, index, axis=0))


class _Classes:
    """Gaussian classes of a problem, fitted to label sums where the rows are.

    Arrays have an axis of fits before all others, (M, ...).
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.place = place_of_rows(problem.unlabeled)
        self.xp = self.place.xp
        put = self.place.put
        labeled = problem.labeled
        self.counts = put(labeled.counts)
        self.means = put(labeled.means)
        self.sums = self.counts[:, None] * self.means
        self.center = put(problem.moments.mean)
        self.covariance = put(problem.moments.covariance)
        self.scale = put(problem.frame.scale)
        # It is moved to a device once, not in every round.
        self.identity = put(np.eye(problem.moments.covariance.shape[0]))

    def labeled_rules(self, shrinkage: float, bounds: Array | None) -> StackedRules:
        """Return the scores of the supervised fit.

        If every class has one row only, rows are scored by the nearest mean.
        """
        labeled = self.problem.labeled
        shares = self.place.put(labeled.counts / labeled.weight)[None, :]
        if bounds is not None:
            shares = _within_bounds(shares, self.place.put(bounds), self.xp)
        if labeled.has_spread:
            within = self.place.put(labeled.within / labeled.weight)
            placed_shrinkage = self.place.put([shrinkage])
            covariance = self._shrunk(within[None, ...], placed_shrinkage)
        else:
            round_covariance = self._shrunk(
                self.covariance[None, ...], self.place.put([1.0])
            )
            covariance = round_covariance * shrinkage
        return self._rules(self.means[None, ...], covariance, shares)

    def refit(self, counts: Any, sums: Any, terms: _Terms, k: int) -> StackedRules:
        """Return the scores of round k, from label sums of the unlabeled rows.

        The covariance within classes is taken about the drawn means c_k, not the means
        mu_k of all rows of a class: it is larger by the outer squares of mu_k - c_k.
        """
        xp = self.xp
        # 1. Find the class means of all rows, and draw them to those of the labeled
        # rows.
        all_counts = self.counts + counts
        means = (self.sums + sums) / all_counts[..., None]
        anchor_shares = self.counts / (self.counts + _ANCHOR_ROWS)
        pulls = terms.is_anchored * anchor_shares
        from_means = pulls[..., None] * (means - self.means)
        drawn_means = means - from_means

        # 2. Find the covariance. Each share enters the two outer products by its root.
        shares = all_counts / xp.sum(all_counts, axis=1, keepdims=True)
        roots = xp.sqrt(shares)[..., None]
        between = roots * (means - self.center)
        drawn = roots * from_means
        within = (
            self.covariance
            - xp.matmul(xp.matrix_transpose(between), between)
            + xp.matmul(xp.matrix_transpose(drawn), drawn)
        )
        covariance = self._shrunk(within, terms.shrinkages[:, k])

        # 3. Score rows by the classes.
        wanted_shares = _within_bounds(shares, terms.bounds, xp)
        return self._rules(drawn_means, covariance, wanted_shares)

    def _shrunk(self, within: Any, shrinkages: Any) -> Any:
        """Shrink covariances toward their mean variance in the user's units."""
        used = self.xp.clip(shrinkages, _MIN_SHRINKAGE, None)
        return _shrink(
            within,
            used[:, None, None],
            self.scale,
            self.problem.n_left_out,
            self.identity,
            self.xp,
        )

    def _rules(self, means: Any, covariance: Any, shares: Any) -> StackedRules:
        """Return the scores of Gaussian classes."""
        xp = self.xp
        centered = means - self.center
        # Where no row varies, all covariances score rows alike.
        variances = xp.sum(xp.linalg.diagonal(covariance), axis=-1)
        is_flat = xp.astype(variances <= 0, covariance.dtype)
        regular = covariance + is_flat[:, None, None] * self.identity
        transposed = xp.matrix_transpose(centered)
        coef = self.place.solve(regular, transposed)
        if self.problem.log_priors is None:
            log_priors = xp.log(xp.clip(shares, _MIN_SHARE, None))
        else:
            log_priors = self.place.put(self.problem.log_priors)
        squared_lengths = xp.sum(transposed * coef, axis=1)
        about_center = log_priors - squared_lengths / 2
        intercept = about_center - xp.matmul(self.center, coef)
        return StackedRules(coef, intercept)


def rule_at(rules: StackedRules, i: int, place: Any) -> LinearRule:
    """Return one rule of a stack, in memory."""
    coef = place.fetch(rules.coef[i, ...])
    return LinearRule(coef, place.fetch(rules.intercept[i, ...]), is_soft=True)


def _within_bounds(shares: Any, bounds: Any, xp: Any) -> Any:
    """Clip shares (..., K) to bounds (..., K, 2)."""
    clipped = xp.minimum(xp.maximum(shares, bounds[..., 0]), bounds[..., 1])
    return clipped / xp.sum(clipped, axis=-1, keepdims=True)


def _shrink(
    within: Any, shrinkages: Any, scale: Any, n_left_out: int, identity: Any, xp: Any
) -> Any:
    """Shrink covariances (..., d, d) toward their mean variance in the user's units.

    Those of rows that do not vary become 0: rounding may have left negative variances.
    """
    variances = xp.linalg.diagonal(within)
    targets = mean_variances(variances, scale, n_left_out, xp)
    varies = xp.astype(targets > 0, within.dtype)[..., None]
    shrunk = (1 - shrinkages) * within + shrinkages * (targets[..., None] * identity)
    return varies * shrunk


def mean_of_rules(
    rules: StackedRules, weights: Array, moments: Moments, place: Any
) -> LinearRule:
    """Return the weighted mean of rules, each of unit spread before it is added."""
    xp = place.xp
    unit_rules = of_unit_spread(rules, moments, place)
    shares = place.put(weights / weights.sum())
    mean = StackedRules(
        xp.sum(shares[:, None, None] * unit_rules.coef, axis=0, keepdims=True),
        xp.sum(shares[:, None] * unit_rules.intercept, axis=0, keepdims=True),
    )
    return rule_at(of_unit_spread(mean, moments, place), 0, place)


def of_unit_spread(rules: StackedRules, moments: Moments, place: Any) -> StackedRules:
    """Center scores over the classes, and scale them to unit spread.

    Their mean square over all rows and classes is then 1. Where the classes score
    alike, the scores are 0.
    """
    xp = place.xp
    coef = rules.coef - xp.mean(rules.coef, axis=2, keepdims=True)
    intercept = rules.intercept - xp.mean(rules.intercept, axis=1, keepdims=True)
    # The squares of huge scores would overflow: divide by the largest number.
    largest = xp.maximum(
        xp.max(xp.abs(coef), axis=(1, 2)), xp.max(xp.abs(intercept), axis=1)
    )
    units = 1 / xp.clip(largest, _TINY, None)
    coef = units[:, None, None] * coef
    intercept = units[:, None] * intercept
    # The mean square of each score is its variance plus the square of its mean.
    products = xp.matmul(place.put(moments.covariance), coef)
    variances = xp.sum(coef * products, axis=1)
    means = xp.matmul(place.put(moments.mean), coef) + intercept
    spreads = xp.sqrt(xp.mean(variances + means**2, axis=1))
    largest_intercepts = units * xp.max(xp.abs(rules.intercept), axis=1)
    is_spread = spreads > _SPREAD_ROUNDING * largest_intercepts
    factors = xp.astype(is_spread, spreads.dtype) / xp.clip(spreads, _TINY, None)
    return StackedRules(factors[:, None, None] * coef, factors[:, None] * intercept)


def gaussians_of_rule(
    problem: Problem, rule: LinearRule, shrinkage: float
) -> Gaussians:
    """Return Gaussian classes with the posteriors of a soft rule.

    Their covariance is that within the classes which the rule makes of all rows,
    shrunk. The means follow from it and from the scores, up to one vector: moving all
    means by it does not change the posteriors. It is chosen so that the priors are
    those of the problem, or the class weights. These means may lie far from all rows:
    ``means_of_rows`` are those of the rows that the rule gives to each class.
    """
    labeled = problem.labeled
    moments = problem.moments
    # 1. Label the unlabeled rows, and compute the covariance within the classes.
    sums = problem.unlabeled.label_sums(rule, problem.frame)
    counts = np.maximum(labeled.counts + sums.counts, _MIN_SHARE * moments.weight)
    labeled_sums = labeled.counts[:, None] * labeled.means
    means = (labeled_sums + sums.sums) / counts[:, None]
    shares = counts / counts.sum()
    between = np.sqrt(shares)[:, None] * (means - moments.mean)
    within = moments.covariance - between.T @ between
    covariance = _shrink(
        within,
        max(shrinkage, _MIN_SHRINKAGE),
        problem.frame.scale,
        problem.n_left_out,
        np.eye(len(within)),
        np,
    )

    # 2. Move the means so that the priors are the wanted ones.
    log_priors = problem.log_priors
    if log_priors is None:
        log_priors = np.log(shares)
    coef, half_squares = _with_priors(rule, covariance, moments.mean, log_priors)
    # Log priors that the moved means imply: exact if the linear system could be solved.
    implied = rule.intercept + moments.mean @ rule.coef + half_squares
    implied = implied - np.logaddexp.reduce(implied)
    rounding = _LOG_PRIORS_ROUNDING
    if np.allclose(implied, log_priors, rtol=rounding, atol=rounding):
        implied = log_priors

    # 3. Classes with these means and this covariance have the posteriors of the rule.
    moved_means = moments.mean + coef.T @ covariance
    scatter = covariance * counts.sum()
    summary = LabeledSummary(counts, moved_means, scatter, labeled.n_rows)
    model, _ = fit_labeled(problem.frame, summary, implied)
    return replace(model, means_of_rows=means)


def _with_priors(
    rule: LinearRule, covariance: Array, center: Array, log_priors: Array
) -> tuple[Array, Array]:
    """Move all coefficients by one vector, so that the priors come close to given ones.

    Also return c_k Sigma c_k / 2 of the moved coefficients. About ``center``, scores
    c_k x + b_k are those of classes with means Sigma c_k and log priors
    b_k + c_k Sigma c_k / 2. A vector v = C w added to all c_k changes the latter by
    c_k Sigma v, up to a constant: w solves a linear system, by least squares.
    """
    coef = rule.coef
    # Entry (k, j) is c_k Sigma c_j.
    gram = coef.T @ covariance @ coef
    implied = rule.intercept + center @ coef + gram.diagonal() / 2
    change = log_priors - implied
    # The constant is left out on both sides of the system.
    matrix = gram - gram.mean(axis=0)
    wanted = change - change.mean()
    steps = np.zeros_like(wanted)
    # The second solution corrects the rounding of the first.
    for _ in range(2):
        left = wanted - matrix @ steps
        solution = scipy.linalg.lstsq(matrix, left, cond=_LEAST_SQUARES_RCOND)
        steps += solution[0]
    common = (coef @ steps)[:, None]
    moved_coef = coef + common
    squares = (moved_coef * (covariance @ moved_coef)).sum(axis=0)
    return moved_coef, squares / 2
