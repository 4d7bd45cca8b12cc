"""Maximize the labeled likelihood over all labelings of the unlabeled rows.

The likelihood is not concave, and local maxima are common in small problems: many starts are
climbed roughly and at once (``starts``), the distinct ones followed to the end (``follow``). Starts
are compared on a few rows; only the best pays for reading all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .attainable import HeldRows, ReadRows, hold, represent
from .follow import Follower, Path
from .outcome import Outcome
from .problem import Problem
from .starts import Climbers, climb, separate_hills, stand, starting_scores
from .types import Array

_SCREENED_ROWS = 2_000
_HELD_ROWS = 20_000
_HELD_ENTRIES = 4_000_000
# With all rows in memory finish to this gap even if asked for less: it costs next to nothing.
_HELD_GAP = 1e-9
_MOST_CANDIDATES, _MOST_FINALISTS = 12, 3
_ROUGH = 100  # how much further from the maximum the comparison of starts may end
_MOST_DRAWS = 4
_RARE_HILLS = 1 / 8  # hills per start below which no more starts are drawn
_FIRST_TAU = (0.01, 0.3)  # shares of the spread of the gradient over rows
_RETRIES = (1.0, 1 / 30, 10.0)


@dataclass(frozen=True)
class Solution:
    """The best point found, the scores whose softmax labels attain it, and the certificate."""

    point: Array
    scores: Array
    objective: float  # labeled log likelihood per unit of labeled weight
    gap: float  # per unit of labeled weight
    n_iter: int
    n_passes: int
    n_optima: int
    outcome: Outcome


def maximize_labeled_likelihood(
    problem: Problem, *, tol: float, max_iter: int, n_starts: int, seed: int
) -> Solution:
    """Best of several local maxima, with its first-order certificate."""
    weight, n_rows = problem.likelihood.weight, problem.unlabeled.n_rows
    n_held = min(_HELD_ROWS, max(_SCREENED_ROWS, _HELD_ENTRIES // (1 + problem.whitening.rank)))
    rows, row_weights = problem.unlabeled.sample(min(n_rows, n_held), seed)
    held = hold(problem, rows, row_weights)
    if n_rows > n_held:
        held = represent(held, _unlabeled_second_moment(problem))
    reader = ReadRows(problem, n_passes=2)  # one pass for the moments, one for the sample
    aim = weight * (_HELD_GAP if n_rows <= n_held else tol / 2)
    paths = _screen(problem, held, _Effort(weight * tol, aim, max_iter), n_starts, seed)
    best = max(paths, key=lambda path: (not path.is_bounded, path.state.value))
    n_iter = best.n_iter
    if n_rows > n_held and best.is_bounded:
        follower = Follower(problem.likelihood, reader, problem.labeled_point)
        best = _follow_on_all_rows(follower, best, n_held, tol * weight, max_iter)
        n_iter += best.n_iter
    return Solution(
        point=best.state.point,
        scores=best.state.scores,
        objective=best.state.value / weight,
        gap=best.gap / weight,
        n_iter=n_iter,
        n_passes=reader.n_passes,
        n_optima=_count_maxima(problem, paths),
        outcome=_outcome(best, tol * weight, best.n_iter >= max_iter),
    )


@dataclass(frozen=True)
class _Effort:
    """How far to follow a path: the gap that must be reached, the one to aim at, most steps."""

    tol: float
    aim: float
    max_iter: int


def _screen(
    problem: Problem, held: HeldRows, effort: _Effort, n_starts: int, seed: int
) -> list[Path]:
    """Local maxima on the held rows, from starts on distinct hills."""
    follower = Follower(problem.likelihood, held, problem.labeled_point)
    screened = _thinned(held, _unlabeled_second_moment(problem))
    hills = _find_hills(problem, screened, n_starts, seed)
    if screened is held:
        return [_follow_start(follower, held, hills[[i]], effort) for i in range(len(hills))]
    easy = replace(effort, tol=_ROUGH * effort.tol, aim=_ROUGH * effort.tol)
    rough = Follower(problem.likelihood, screened, problem.labeled_point)
    found = [_follow_start(rough, screened, hills[[i]], easy) for i in range(len(hills))]
    best = max(path.state.value for path in found)
    noise = 5 * problem.likelihood.weight / np.sqrt(len(screened.z))
    finalists = [path for path in found if path.state.value >= best - noise][:_MOST_FINALISTS]
    scores = np.array([(path.levels or (path.state,))[0].scores for path in finalists])
    again = stand(problem.likelihood, held, scores)
    return [_follow_start(follower, held, again[[i]], effort) for i in range(len(again))]


def _find_hills(problem: Problem, held: HeldRows, n_starts: int, seed: int) -> Climbers:
    """One climbed start on every hill, best first.

    As long as every few starts discover another hill there are more to be found: draw again.
    """
    likelihood = problem.likelihood
    hills = climb(likelihood, held, starting_scores(problem, n_starts, seed))
    for draw in range(1, _MOST_DRAWS):
        if len(hills) <= max(1, n_starts * draw * _RARE_HILLS):
            break
        more = climb(likelihood, held, starting_scores(problem, n_starts, seed, draw))
        hills = hills.joined(more)
        hills = hills[separate_hills(likelihood, hills.points, hills.values) or [0]]
    return hills[np.arange(min(len(hills), _MOST_CANDIDATES))]


def _thinned(held: HeldRows, second: Array) -> HeldRows:
    """Every few-th of the held rows, standing for all of them."""
    if len(held.z) <= _SCREENED_ROWS:
        return held
    cut = np.linspace(0, len(held.z) - 1, _SCREENED_ROWS).astype(int)
    weights = held.weights[cut] * (held.weights.sum() / held.weights[cut].sum())
    return represent(HeldRows(held.z[cut], weights, held.labeled_point), second)


def _unlabeled_second_moment(problem: Problem) -> Array:
    """Second moment of z over the unlabeled rows, over N: what the labeled rows leave of it."""
    labeled, weight = problem.likelihood, problem.moments.weight
    second = labeled.within + (labeled.counts[:, None] * labeled.means).T @ labeled.means
    return np.eye(len(second)) - problem.whitened_ridge - second / weight


def _follow_start(follower: Follower, held: HeldRows, climber: Climbers, effort: _Effort) -> Path:
    """Follow a climbed start; should that lose it or get stuck, begin again harder, then softer."""
    weight = follower.likelihood.weight
    scores = climber.scores[0] - climber.scores[0, -1]
    gradient = climber.gradients[0] - climber.gradients[0, -1]
    tau = _first_tau(held, scores, gradient, weight)
    paths: list[Path] = []
    for factor in _RETRIES:
        begins = [follower.state(a, factor * tau) for a in (scores, gradient / (factor * tau))]
        begin = max(begins, key=lambda state: state.merit)
        paths.append(follower.follow(begin, **vars(effort)))
        is_lost = paths[-1].state.value < climber.values[0] - 1e-7 * weight
        if not paths[-1].is_bounded or (paths[-1].gap <= effort.tol and not is_lost):
            break
    return max(paths, key=lambda path: (not path.is_bounded, path.state.value))


def _first_tau(held: HeldRows, scores: Array, gradient: Array, weight: float) -> float:
    """The tau at which the scores are nearest to gradient / tau, within reason.

    Reason is a share of how much the gradient tells rows apart: labels neither all hard nor all
    alike.
    """
    differences = gradient @ held.z.T
    spread = float(np.sqrt(held.weights @ np.ptp(differences, axis=0) ** 2 / held.weights.sum()))
    spread = max(spread, 1e-3 * weight)
    norm = float((scores**2).sum())
    nearest = float((scores * gradient).sum()) / norm if norm > 0 else np.inf
    return float(np.clip(nearest, _FIRST_TAU[0] * spread, _FIRST_TAU[1] * spread))


def _follow_on_all_rows(
    follower: Follower, sampled: Path, n_held: int, tol: float, max_iter: int
) -> Path:
    """Go on where the path on a sample was still softer than what the sample cannot know.

    Should the way end between two labelings, go back to softer labels and come again.
    """
    levels = sampled.levels or (sampled.state,)
    noise = 3 * follower.likelihood.weight / np.sqrt(n_held)
    begin = next((state for state in reversed(levels) if state.tau >= noise), levels[0])
    paths: list[Path] = []
    for factor in (1.0, 10.0, 100.0):
        state = follower.state(begin.scores / factor, begin.tau * factor)
        paths.append(follower.follow(state, tol=tol, max_iter=max_iter))
        if not paths[-1].is_bounded or paths[-1].gap <= tol or paths[-1].n_iter >= max_iter:
            break
    return max(paths, key=lambda path: (not path.is_bounded, path.state.value))


def _count_maxima(problem: Problem, paths: list[Path]) -> int:
    points = np.array([path.state.point for path in paths])
    values = np.array([path.state.value for path in paths])
    return max(1, len(separate_hills(problem.likelihood, points, values)))


def _outcome(path: Path, tol: float, is_exhausted: bool) -> Outcome:
    if not path.is_bounded:
        return Outcome.UNBOUNDED
    if path.gap <= tol:
        return Outcome.CONVERGED
    return Outcome.MAX_ITERATIONS if is_exhausted else Outcome.STALLED
