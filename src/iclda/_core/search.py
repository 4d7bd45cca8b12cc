"""Maximize the labeled likelihood over all labelings of the unlabeled rows.

The likelihood is not concave, and local maxima are common in small problems: many starts are
climbed roughly and at once (``starts``), the distinct ones followed to the end (``follow``). Starts
are compared on a few rows; only the best pays for reading all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .attainable import HeldRows, ReadRows, hold
from .follow import Follower, Path, State
from .outcome import Outcome
from .problem import Problem
from .starts import climb, separate_hills, starting_scores
from .types import Array

_SCREENED_ROWS = 2_000
_HELD_ROWS = 20_000
_HELD_ENTRIES = 4_000_000
# With all rows in memory finish to this gap even if asked for less: it costs next to nothing.
_HELD_GAP = 1e-9
_MOST_CANDIDATES = 12
_MOST_DRAWS = 4
_RARE_HILLS = 1 / 8  # hills per start below which no more starts are drawn
# Where a path begins and, per unit of labeled weight, the range tau may begin in.
_FIRST_TAU = (1e-3, 1e-1)


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
    n_held = min(_HELD_ROWS, max(_SCREENED_ROWS, _HELD_ENTRIES // problem.whitening.rank))
    rows, row_weights = problem.unlabeled.sample(min(n_rows, n_held), seed)
    held = hold(problem, rows, row_weights)
    reader = ReadRows(problem, n_passes=2)  # one pass for the moments, one for the sample
    held_tol = weight * (min(tol, _HELD_GAP) if n_rows <= n_held else tol / 2)
    paths = _screen(problem, held, held_tol, max_iter, n_starts, seed)
    best = max(paths, key=lambda path: path.state.value)
    n_iter = best.n_iter
    if n_rows > n_held and best.is_bounded:
        follower = Follower(problem.likelihood, reader, held)
        start = _level_above_noise(best, weight, n_held)
        state = follower.state(start.scores, start.tau)
        best = follower.follow(state, tol=tol * weight, max_iter=max_iter)
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


def _screen(
    problem: Problem, held: HeldRows, tol: float, max_iter: int, n_starts: int, seed: int
) -> list[Path]:
    """Local maxima on the held rows, from distinct starts."""
    follower = Follower(problem.likelihood, held, held)
    screened = _thinned(held)
    scores, values, gradients = _find_hills(problem, screened, n_starts, seed)
    kept = range(min(len(scores), _MOST_CANDIDATES))
    if screened is held:
        return [
            _follow_start(follower, scores[i], gradients[i], float(values[i]), tol, max_iter)
            for i in kept
        ]
    rough = Follower(problem.likelihood, screened, screened)
    found = [
        _follow_start(rough, scores[i], gradients[i], float(values[i]), 1e4 * tol, max_iter)
        for i in kept
    ]
    found.sort(key=lambda path: -path.state.value)
    margin = 5 * problem.likelihood.weight / np.sqrt(len(screened.z))
    finalists = [path for path in found if path.state.value >= found[0].state.value - margin][:3]
    return [
        follower.follow(
            follower.state(path.levels[0].scores, path.levels[0].tau)
            if path.levels
            else path.state,
            tol=tol,
            max_iter=max_iter,
        )
        for path in finalists
    ]


def _find_hills(
    problem: Problem, held: HeldRows, n_starts: int, seed: int
) -> tuple[Array, Array, Array]:
    """Scores, values and gradients of one climbed start on every hill, best first.

    As long as every few starts discover another hill there are more to be found: draw again.
    """
    likelihood = problem.likelihood
    n_classes, width = problem.labeled_point.shape
    scores = np.zeros((0, n_classes, width))
    points, gradients, values = scores, scores, np.zeros(0)
    for draw in range(_MOST_DRAWS):
        climbed = climb(likelihood, held, starting_scores(problem, n_starts, seed, draw))
        scores = np.concatenate([scores, climbed[0]])
        points = np.concatenate([points, climbed[1]])
        values = np.concatenate([values, climbed[2]])
        gradients = np.concatenate([gradients, climbed[3]])
        # Where every start is at the floor the likelihood has no bound: any of them will do.
        tops = separate_hills(likelihood, points, values) or [0]
        scores, points, values, gradients = (a[tops] for a in (scores, points, values, gradients))
        if len(tops) <= n_starts * (draw + 1) * _RARE_HILLS:
            break
    return scores, values, gradients


def _thinned(held: HeldRows) -> HeldRows:
    """Every few-th of the held rows, with the weight of all of them."""
    if len(held.z) <= _SCREENED_ROWS:
        return held
    cut = np.linspace(0, len(held.z) - 1, _SCREENED_ROWS).astype(int)
    weights = held.weights[cut]
    return HeldRows(held.z[cut], weights * (held.weights.sum() / weights.sum()), held.labeled_point)


def _follow_start(
    follower: Follower, scores: Array, gradient: Array, value: float, tol: float, max_iter: int
) -> Path:
    """Follow a climbed start; should softening its labels lose it, begin again harder."""
    weight = follower.likelihood.weight
    scores, gradient = scores - scores[-1], gradient - gradient[-1]
    norm = float((scores**2).sum())
    tau = float((scores * gradient).sum()) / norm if norm > 0 else np.inf
    tau = float(np.clip(tau, _FIRST_TAU[0] * weight, _FIRST_TAU[1] * weight))
    path = follower.follow(follower.state(scores, tau), tol=tol, max_iter=max_iter)
    if path.is_bounded and path.state.value < value - 1e-7 * weight:
        harder = follower.state(gradient / (tau / 30), tau / 30)
        retry = follower.follow(harder, tol=tol, max_iter=max_iter)
        path = max(path, retry, key=lambda path: path.state.value)
    return path


def _level_above_noise(path: Path, weight: float, n_held: int) -> State:
    """The last level whose smoothing still covers what a sample cannot know."""
    noise = 3 * weight / np.sqrt(n_held)
    above = [state for state in path.levels if state.tau >= noise]
    return above[-1] if above else (path.levels or (path.state,))[0]


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
