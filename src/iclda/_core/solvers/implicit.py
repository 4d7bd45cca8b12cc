"""Maximize the likelihood of the labeled rows over all labelings: the implicitly constrained fit.

The likelihood is not concave, and local maxima are common in small problems. Many starts are
annealed together to a few candidates; from each of them a path leads to a local maximum
(``search``).

A start labels the rows by softmax of scores_k' (1, z). All starts ascend the merit L + tau x
entropy of the labels at one tau, which falls slowly: with soft labels small local maxima, at which
hard labels would stop, do not exist. Starts begin at several heights of tau, and those that meet
are merged. While several are left, variations of the best ones are annealed in the same way. With
many unknowns two starts are annealed, on all rows that are held.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .. import AnyArray, Array
from ..likelihood import LabeledLikelihood
from ..problem import Problem
from . import Limits, Outcome, settings
from .alternate import start_scores
from .attainable import HeldSet, StreamedSet, gap
from .continuation import Effort, Follower, Path, Work
from .quotas import READS_PER_SHIFT
from .search import HeldSample, Solution, moved_scores, search

_LOWEST_SCORE = -1e6  # of a class with a prior of zero
_ONE_CLASS_SCORE = 8.0  # of the class that gets all rows: shares of 3e-4 in the others
# Sizes of steps, over the distance to the fixed point gradient / tau.
_FIRST_STEP = 0.5
_SMALLEST_STEP = 1e-4
_REFUSED_FACTOR = 0.25  # factor of the size after a step that lowered the merit
_LINE_FRACTIONS = np.array([0.25, 0.5, 0.75])[
    :, None
]  # places between two points to compare at
_MERIT_ROUNDING = 1e-12  # of the merit
_SMALLEST_GAIN = (
    1e-7  # of the best value in a round, per unit of labeled weight, to go on
)
_STEPS_OF_A_START = 40  # approximate, for the number of starts that the work allows
_MORE_STARTS = 4  # factor of the number of starts if a few of them do not agree
_LEAST_STARTS = 4  # whatever the work
_CHEAP_SHARES = 30_000  # rows x classes x starts below which a step takes no less time
_CHEAP_FIRST_SHARES = 20_000  # the same, for twice the starts of the first round
_LEAST_READ = 10_000  # numbers read below which a step with quotas takes no less time
_STEPS_BETWEEN_MERGES = 8


def maximize_labeled_likelihood(
    problem: Problem, limits: Limits, *, n_starts: int, seed: int
) -> Solution:
    """Return the best of several local maxima of the likelihood, with its first-order certificate.

    ``n_starts`` and ``seed`` are those of ``find_candidates``.
    """
    weight, max_iter = problem.likelihood.weight, problem.rounds(limits.max_iter)
    n_numbers = problem.unlabeled.n_rows * problem.labeled_point.size
    effort = Effort(
        tol=weight * limits.tol,
        aim=weight * (settings.LIKELIHOOD_GAP if _is_small(problem) else limits.tol),
        max_iter=max_iter,
        work=Work(max_iter * max(settings.LEAST_READ, settings.READ_SHARE * n_numbers)),
    )

    def follow(sample: HeldSample, effort: Effort) -> list[Path]:
        return _follow_candidates(sample, effort, n_starts, seed)

    found = search(problem, lambda problem: problem.likelihood, follow, effort, seed)
    is_final = found.outcome in (Outcome.CONVERGED, Outcome.UNBOUNDED)
    return found if is_final else _or_supervised(problem, found)


def _or_supervised(problem: Problem, found: Solution) -> Solution:
    """Return the labeling by the supervised fit if the one found has a lower likelihood."""
    if problem.proportions is not None:
        return found  # these labels do not have the proportions
    rows, likelihood = StreamedSet(problem), problem.likelihood
    scores = np.maximum(start_scores(problem), _LOWEST_SCORE)
    point = rows.soft_point(scores)[0]
    value, gradient = likelihood.value_and_gradient(point)
    if not value / likelihood.weight > found.objective:
        return replace(found, n_passes=found.n_passes + rows.n_passes)
    left = gap(rows, point, gradient)
    return replace(
        found,
        point=point,
        rule=problem.rule_of(scores, is_soft=True),
        objective=float(value) / likelihood.weight,
        gap=left / likelihood.weight,
        n_passes=found.n_passes + rows.n_passes,
    )


@dataclass(frozen=True)
class Candidates:
    """Scores that starts ended in, the best first, and their common tau."""

    scores: Array  # (S, K, 1 + rank)
    tau: float

    def reheated(self, factor: float) -> Candidates:
        """Return candidates at a higher tau: scores, nearly gradient / tau, are divided by it."""
        return Candidates(self.scores / factor, self.tau * factor)


def _follow_candidates(
    sample: HeldSample, effort: Effort, n_starts: int, seed: int
) -> list[Path]:
    """Follow a path from each candidate on the rows of a sample that may be best."""
    likelihood = sample.problem.likelihood
    follower, found = (
        Follower(likelihood, sample.held),
        _candidates(sample, n_starts, seed),
    )
    is_whole = len(sample.rows) == sample.problem.unlabeled.n_rows
    ends = [follower.state(scores, found.tau) for scores in found.scores]
    if not is_whole:
        # Soft enough to have a level from which the path can be continued on all rows.
        found = found.reheated(
            max(1.0, settings.SOFTEST_TAU * likelihood.weight / found.tau)
        )
    elif not _is_small(sample.problem):
        found = found.reheated(settings.REHEATING)
    paths: list[Path] = []
    for end, scores in zip(ends, found.scores, strict=True):
        path = Path(end, follower.gap(end), 0, True, (end,))
        # To first order a path gains at most its gap.
        may_be_best = not paths or end.value + path.gap >= max(
            p.state.value for p in paths
        )
        if may_be_best and effort.work.left > 0:
            followed = follower.follow(follower.state(scores, found.tau), effort)
            has_lost = followed.gap > effort.tol and followed.state.value < end.value
            is_kept = followed.is_bounded and has_lost and is_whole
            path = replace(path, n_iter=followed.n_iter) if is_kept else followed
        paths.append(path)
    return paths


def _is_small(problem: Problem) -> bool:
    """Return whether Newton systems are dense: then many starts are cheap."""
    return problem.labeled_point[:-1].size <= settings.DENSE_UNKNOWNS


def _candidates(sample: HeldSample, n_starts: int, seed: int) -> Candidates:
    """Find candidates on few rows of a sample or, with many unknowns and all rows, on these."""
    is_whole, few = len(sample.rows) == sample.problem.unlabeled.n_rows, sample
    if _is_small(sample.problem) or not is_whole:
        few = sample.thinned(settings.SETTINGS.screened_rows)
    found = find_candidates(
        few.problem, few.held, n_starts, seed, is_sample=few is not sample
    )
    if few is sample:
        return found
    scores = [moved_scores(each, few.problem, sample.problem) for each in found.scores]
    return Candidates(np.array(scores), found.tau).reheated(settings.REHEATING)


def find_candidates(
    problem: Problem,
    held: HeldSet,
    n_starts: int,
    seed: int,
    *,
    is_sample: bool,
) -> Candidates:
    """Anneal a few starts; while they disagree, anneal all of them, then variations of the best.

    With many unknowns only two starts are annealed. The best of candidates that a sample cannot
    distinguish is kept.
    """
    chosen, annealing = settings.SETTINGS, _Annealing(problem.likelihood, held)
    if not _is_small(problem):
        annealing.cooling = settings.COOLING_OF_MANY
        two = _Starts(problem, n_starts, seed).first(
            min(n_starts, settings.STARTS_OF_MANY)
        )
        found, tau = annealing.run(two, chosen.heights[:1], to_the_end=True)
        return Candidates(found.scores, tau)
    n_read = len(held.weights) * problem.labeled_point.size
    if problem.proportions is not None and problem.n_classes > 2:
        n_read = READS_PER_SHIFT * max(n_read, _LEAST_READ)
    most_steps = chosen.most_work / n_read
    most = max(_LEAST_STARTS, int(most_steps / _STEPS_OF_A_START))
    starts = _Starts(problem, min(n_starts, most), seed)
    first = starts.first(min(_MORE_STARTS * n_starts, most))
    n_shares = len(held.weights) * problem.n_classes
    n_few = min(max(starts.n_starts, _CHEAP_FIRST_SHARES // n_shares), len(first)) // 2
    n_few = n_few if n_starts > 1 else 1
    n_changed = min(
        max(starts.n_starts, _CHEAP_SHARES // n_shares), 4 * starts.n_starts
    )
    lower = tuple(height / 4 for height in chosen.heights)
    cooled = annealing.coolest / annealing.spread / np.array(lower)
    found, tau = annealing.run(first[:n_few], (settings.FIRST_HEIGHT,))
    n_idle = turn = 0
    while n_idle < chosen.idle_rounds and annealing.n_steps < most_steps:
        if len(found.values) == 1:
            break
        if turn == 0:
            more, tau = annealing.run(first[n_few:], chosen.heights, to_the_end=True)
        else:
            changed = starts.changed(
                found.scores[: chosen.n_parents], cooled, n_changed, turn
            )
            more, tau = annealing.run(changed, lower, to_the_end=True)
        best = found.values.max()
        found = annealing.distinct(found.joined(more), tau)
        has_gained = (
            found.values.max() > best + _SMALLEST_GAIN * problem.likelihood.weight
        )
        n_idle = 0 if has_gained or turn == 0 else n_idle + 1
        turn += 1
    found = found.take(np.argsort(-found.values, kind="stable"))
    if is_sample:
        found = found.take(_first_of_each(_distances(found.points) <= chosen.near**2))
    return Candidates(found.scores[: chosen.n_followed], tau)


class _Members(NamedTuple):
    """A stack of S labelings, with the objective and its gradient at their points."""

    scores: Array  # (S, K, 1 + rank)
    points: Array  # (S, K, 1 + rank)
    gradients: Array  # (S, K, 1 + rank)
    entropies: Array  # (S,)
    values: Array  # (S,)
    sizes: Array  # (S,): sizes of the next steps, at most 1

    def take(self, index: AnyArray) -> _Members:
        return _Members(*(part[index] for part in self))

    def joined(self, other: _Members) -> _Members:
        return _Members(
            *(np.concatenate(pair) for pair in zip(self, other, strict=True))
        )

    def merits(self, tau: float) -> Array:
        return np.asarray(self.values + tau * self.entropies)


class _Annealing:
    """Ascent of the merit L + tau x entropy on some rows, at falling tau."""

    def __init__(self, likelihood: LabeledLikelihood, held: HeldSet) -> None:
        self._likelihood, self._held = likelihood, held
        equal = self._evaluate(np.zeros((1, *held.labeled_point.shape)))
        self.spread = max(held.spread(equal.gradients[0]), 1e-3 * likelihood.weight)
        self.coolest = settings.SETTINGS.coolest * self.spread
        self.cooling = settings.SETTINGS.cooling
        self.n_steps = 0  # of all starts together

    def run(
        self, starts: Array, heights: tuple[float, ...], *, to_the_end: bool = False
    ) -> tuple[_Members, float]:
        """Anneal starts, equal parts of which begin at each of the heights of tau.

        Return those that are left, and tau: at the end the smallest one or, unless ``to_the_end``,
        that at which one start is left.
        """
        waiting = np.array_split(starts, min(len(starts), len(heights)))
        falling = [height * self.spread for height in heights[: len(waiting)]]
        tau, members, n_steps = falling[0], None, 0
        while True:
            while waiting and tau <= falling[0]:
                new = self._evaluate(waiting.pop(0))
                falling.pop(0)
                members = new if members is None else members.joined(new)
            assert members is not None
            members, n_steps = self._step(members, tau), n_steps + 1
            self.n_steps += len(members.values)
            is_end = tau <= self.coolest
            if is_end or n_steps % _STEPS_BETWEEN_MERGES == 0:
                members = self.distinct(members, tau)
            if is_end or (len(members.values) == 1 and not waiting and not to_the_end):
                return members, tau
            tau = max(self.cooling * tau, self.coolest)
            if falling and (len(members.values) == 1 or tau < falling[0]):
                tau = falling[0]

    def _evaluate(self, scores: Array) -> _Members:
        """Label the rows by a stack of scores (S, K, 1 + rank)."""
        scores = scores - scores[:, -1:]
        points, log_sums = self._held.soft_points(scores)
        values, gradients = self._likelihood.value_and_gradient(points)
        entropies = log_sums - np.einsum(
            "skd,skd->s", scores, points - self._held.labeled_point
        )
        gradients = gradients - gradients[:, -1:]
        return _Members(
            scores,
            points,
            gradients,
            entropies,
            values,
            np.full(len(values), _FIRST_STEP),
        )

    def _step(self, members: _Members, tau: float) -> _Members:
        """Move each start towards the fixed point scores = gradient / tau, unless the merit falls.

        Starts that are not moved get a smaller step.
        """
        ahead = members.gradients / tau - members.scores
        trial = self._evaluate(members.scores + members.sizes[:, None, None] * ahead)
        merits = members.merits(tau)
        is_taken = trial.merits(tau) >= merits - _MERIT_ROUNDING * np.abs(merits)
        # The size of the next step is Barzilai and Borwein's, from the change of the residual.
        change, moved = trial.scores - members.scores, trial.points - members.points
        bent = change - (trial.gradients - members.gradients) / tau
        along, across = (np.einsum("skd,skd->s", a, moved) for a in (change, bent))
        with np.errstate(over="ignore"):  # minus infinity becomes the smallest size
            fitted = np.where(across > along, along / np.maximum(across, 1e-300), 1.0)
        trial.sizes[:] = np.maximum(fitted, _SMALLEST_STEP)
        if not is_taken.all():
            refused = ~is_taken
            members.sizes[refused] *= _REFUSED_FACTOR
            for mine, other in zip(trial, members, strict=True):
                mine[refused] = other[refused]
        return trial

    def distinct(self, members: _Members, tau: float) -> _Members:
        """Sort members by merit, and drop those that have met a better one or will.

        A member will meet a better one near to it if the merit on the straight line between them
        is nowhere below its own. The entropy of a mixture of two labelings is at least the mixture
        of their entropies, which is computed: the merit is not overestimated.
        """
        merits = members.merits(tau)
        order = np.argsort(-merits, kind="stable")
        order = order[: max(1, np.count_nonzero(np.isfinite(merits)))]
        members, merits = members.take(order), merits[order]
        distances = _distances(members.points)
        is_near = np.triu(distances <= settings.SETTINGS.near**2, 1)
        one, two = np.nonzero(is_near)
        if len(one):
            way = members.points[one] - members.points[two]
            stops = members.points[two] + _LINE_FRACTIONS[..., None, None] * way
            rise = members.entropies[one] - members.entropies[two]
            entropies = members.entropies[two] + _LINE_FRACTIONS * rise
            least = (self._likelihood.value(stops) + tau * entropies).min(axis=0)
            is_met = distances[one, two] <= settings.SETTINGS.alike**2
            is_near[one, two] = is_met | (least >= merits[two])
        return members.take(_first_of_each(is_near))


def _distances(points: Array) -> Array:
    """Return the squared distances between points, (S, S)."""
    flat = points.reshape(len(points), -1)
    squares = np.einsum("si,si->s", flat, flat)
    return np.asarray(squares + squares[:, None] - 2 * flat @ flat.T)


def _first_of_each(is_same: AnyArray) -> AnyArray:
    """Return indices without those of points that are the same as an earlier one that is kept."""
    is_left = np.ones(len(is_same), dtype=bool)
    for i in range(len(is_same)):
        if is_left[i]:
            is_left[i + 1 :] &= ~is_same[i, i + 1 :]
    return np.flatnonzero(is_left)


@dataclass(frozen=True)
class _Starts:
    """Makes scores (S, K, 1 + rank) to start from.

    Random directions are drawn in the space of the features, not in whitened coordinates, so that
    the order of rows, weights in place of repeated rows and the signs of eigenvectors change them
    by rounding only.
    """

    problem: Problem
    n_starts: int
    seed: int

    def first(self, n: int) -> Array:
        """Return n starts: supervised posterior, equal shares, each class alone, hyperplanes."""
        n_classes, width = self.problem.labeled_point.shape
        n_alone = max(
            0, min(n_classes, n - 2)
        )  # all of them would be classes^2 x width numbers
        fixed = np.zeros((2 + n_alone, n_classes, width))
        fixed[0] = np.maximum(start_scores(self.problem), _LOWEST_SCORE)
        fixed[2 + np.arange(n_alone), np.arange(n_alone), 0] = _ONE_CLASS_SCORE
        n_random = max(0, n - len(fixed))
        random = self._hyperplanes(np.random.default_rng([self.seed, 0]), n_random)
        return np.concatenate([fixed, random])[:n]

    def _hyperplanes(self, rng: np.random.Generator, n: int) -> Array:
        """Return scores of random directions, offsets and sharpness."""
        n_classes, basis = self.problem.n_classes, self.problem.whitening.basis
        directions = rng.standard_normal((n, n_classes, len(basis))) @ basis
        offsets = rng.standard_normal((n, n_classes, 1))
        sharpness = np.exp(rng.uniform(-1, 3, (n, 1, 1)))
        return np.asarray(sharpness * np.concatenate([offsets, directions], axis=-1))

    def changed(self, parents: Array, factors: Array, n: int, turn: int) -> Array:
        """Return n variations of the scores of parents; each factor scales an equal part of them.

        A variation adds noise, swaps two classes, drops a class or, in two of five cases, takes
        each class from one of two parents, which finds most new maxima.
        """
        n_classes = self.problem.n_classes
        rng = np.random.default_rng([self.seed, turn])
        parts = np.array_split(np.empty(n), len(factors))
        scale = np.repeat(factors, [len(part) for part in parts])[:, None, None]
        one, two = (
            parents[rng.integers(len(parents), size=n)] * scale for _ in range(2)
        )
        noise = self._hyperplanes(rng, n)
        sizes = rng.uniform(0.2, 1, n) * np.sqrt(
            (one**2).sum((1, 2)) / (noise**2).sum((1, 2))
        )
        found = one.copy()
        for i, kind in enumerate(rng.permutation(n) % 5):
            j, k = rng.choice(n_classes, 2, replace=False)
            if kind == 0:
                found[i] += sizes[i] * noise[i]
            elif kind == 1:
                found[i, [j, k]] = one[i, [k, j]]
            elif kind == 2:
                found[i, j] = one[i, k]
                found[i, j, 0] -= 3
            else:
                is_first = rng.random(n_classes) < 0.5
                found[i] = np.where(is_first[:, None], one[i], two[i])
        return found
