"""Path following where each pass is expensive: every pass corrects the scores and lowers tau.

``Follower.follow`` makes a pass for every trial. Here the derivative of the class sums by the
scores, which a pass sums as well, predicts the point at the final tau; the next pass corrects it,
and two or three are enough. If predictions fail, ``follow`` takes over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from ..boundary import in_pairs, of_pairs
from ..likelihood import FLOOR, smallest_eigenvalue
from ..types import AnyArray, Array
from .attainable import InMemorySet
from .continuation import Follower, Path, State, System, solve

_DEEPEST = 0.03  # smallest factor of tau in one step while labels harden
_AIM = 0.5  # share of the tolerance left to tau x entropy at the end
_AIM_TIED = 0.1  # the same if classes are tied, whose shares move other boundaries
_STRETCH = 1.5  # growth of scores up to which the curvature of the last pass is used as is
_MOST_ON_SAMPLE = 60
_SURE = 0.9  # share of the tolerance at which the gap is measured
_RESUME = 10.0  # restart ``follow`` where tau * entropy >= 10 * remaining gain
_ENOUGH = 0.9  # factor above which tau is not changed
_STILL = 1e-7  # predicted ascent, over the tolerance, below which scores are converged
_SLOW = 0.5  # reduction of the cost at the same tau below which the next step is shorter
_RISE = 1.5  # factor by which costs may rise before a pass counts as a failure
_MILD = 30.0  # the same, before the step counts as far too long
_FAR = 5.0  # gain left at a tau, over tau * entropy, above which tau does not fall
_SLACK = 1.05  # tolerated excess of the length of scores
_MOST_GROWTH = 4.0  # largest factor of a stretch in one iteration
_TIED = 2.0  # stretch below which two classes count as tied
_WITHIN = 0.01  # damping within tied classes, over tau
_NOTHING = 1e-6  # cost, over the tolerance, that counts as zero
_MOST_READS = 20
_MOST_FAILURES = 3  # failed predictions before ``follow`` takes over


@dataclass(frozen=True)
class _Aim:
    """Scores and tau of the next pass."""

    scores: Array
    tau: float
    groups: AnyArray | None = None  # of tied classes, between which entropy does not count

    @property
    def anchor(self) -> Array | float:
        if self.groups is None:
            return 0.0
        return np.asarray(self.scores - _averaged(self.groups) @ self.scores)


def predict_and_correct(
    follower: Follower, sample: InMemorySet, begin: State, *, tol: float, max_iter: int
) -> Path:
    """The end of the path through ``begin``, if predictions lead there.

    If they do not, the gap is infinite, and the state is where ``follow`` should start.
    ``sample`` is used to estimate entropy, gap and curvature of all rows.
    """
    aim = _Aim(begin.scores, begin.tau)
    first = state = follower.state(aim.scores, aim.tau)
    best: System | None = None
    cheapest, n_failures, caution, is_held = np.inf, 0, 0, False
    resume = begin
    for n_iter in range(1, min(max_iter, _MOST_READS) + 1):
        if not smallest_eigenvalue(state.point) > 2 * FLOOR:
            break
        system = System(follower, state)
        cost = system.ascent()[1] + state.tau * _entropy(state, sample, aim.groups)
        if best is None or cost <= _RISE * cheapest:
            is_slow = best is not None and state.tau == best.state.tau and cost > _SLOW * cheapest
            caution = caution + 1 if is_slow and not _has_ties(aim.groups) else max(0, caution - 1)
            best, cheapest, is_held = system, min(cheapest, cost), False
            found = _gap(follower, sample, state, tol)
            if found <= tol:
                return Path(state, found, n_iter, True, (state,))
            if cost + state.tau * state.entropy <= _NOTHING * tol:
                break
        else:
            # After a fall of tau by slightly too much correct the scores first, else shorten.
            is_held = state.tau < best.state.tau and cost <= _MILD * cheapest
            n_failures, caution = n_failures + 1, caution + (not is_held)
        if n_failures > _MOST_FAILURES:
            break
        # Where a shorter step fails too, the path on the sample may be a better prediction.
        if n_failures > 1 and sample.knows_curvature(best.state.scores):
            levels = _followed_on_sample(follower, sample, first, best.state, tol)
            resume = _coarser(levels, _RESUME * cheapest)
            aim = _Aim(levels[-1].scores, levels[-1].tau)
        else:
            aim = _predicted(best, sample, tol, caution, is_held=is_held)
        state = follower.state(aim.scores, aim.tau, aim.anchor)
    return Path(resume, np.inf, n_iter, True, (resume,))


def _has_ties(groups: AnyArray | None) -> bool:
    return groups is not None and len(np.unique(groups)) < len(groups)


def _entropy(state: State, sample: InMemorySet, groups: AnyArray | None) -> float:
    if groups is None or not _has_ties(groups):
        return state.entropy
    return sample.entropy(state.scores, groups)


def _coarser(levels: tuple[State, ...], cost: float) -> State:
    """The last level with tau * entropy of at least ``cost``."""
    return next((a for a in reversed(levels) if a.tau * a.entropy >= cost), levels[0])


def _gap(follower: Follower, sample: InMemorySet, state: State, tol: float) -> float:
    """The gap, if it is bounded or worth a pass, else infinity."""
    bound = gap_bound(state.gradient)
    if bound <= tol:
        return bound
    guess = sample.shortfall(state.scores, state.gradient)
    return follower.gap(state) if guess <= _SURE * tol else np.inf


def gap_bound(gradient: Array) -> float:
    """Upper bound of the gap without a pass: rows have unit second moment in z.

    The gap is the mean over rows of largest score less mean score, at most the range of the
    scores, which is at most root two times their norm about their mean.
    """
    centered = gradient - gradient.mean(axis=0)
    return float(np.sqrt(2 * (centered**2).sum()))


def _followed_on_sample(
    follower: Follower, sample: InMemorySet, first: State, last: State, tol: float
) -> tuple[State, ...]:
    """Levels of the path on the sample, shifted so that it agrees with the last pass."""
    shifted = sample.shifted(last.point - sample.soft_point(last.scores)[0])
    on_sample = Follower(follower.likelihood, shifted, shifted.labeled_point)
    begin = on_sample.state(first.scores, first.tau)
    end = on_sample.follow(begin, tol=_AIM * tol, max_iter=_MOST_ON_SAMPLE)
    return (*end.levels, end.state)


def _predicted(
    system: System, sample: InMemorySet, tol: float, caution: int, *, is_held: bool
) -> _Aim:
    """Scores at the final tau, or on the way there, predicted from the last pass.

    ``is_held``: at the same tau, as also where the last pass is far from the optimum there.

    Some boundaries harden while others, between tied classes, do not. Entropy must not act on tied
    classes, or tau would have to fall until all other boundaries are single rows: it is taken
    relative to an anchor, at which tied classes share their rows as they finally will.
    """
    state = system.state
    alone = np.arange(len(state.scores))
    deepest, stretch = _stretched(system, _DEEPEST, alone)
    groups = _tied(stretch)
    cost = max(state.tau * _entropy(state, sample, groups), 1e-300)
    aim = _AIM_TIED if _has_ties(groups) else _AIM
    factor = float(np.clip(np.sqrt(aim * tol / cost), _DEEPEST, 1)) ** (1 / (1 + caution))
    is_far = not caution and factor > _DEEPEST and system.ascent()[1] > _FAR * cost
    if (is_held or is_far) and not _has_ties(groups):
        factor = 1.0
    elif factor > _ENOUGH:
        # Entropy is small enough: correct the scores or, if they are converged, lower tau.
        factor = 1.0 if system.ascent()[1] > _STILL * tol else _AIM
    is_deepest = factor == _DEEPEST and aim == _AIM
    scores = deepest if is_deepest else _stretched(system, factor, groups)[0]
    step = (scores - state.scores) / 2**caution
    return _Aim(state.scores + step, factor * state.tau, groups)


def _tied(stretch: Array) -> AnyArray:
    """(K,): labels of groups of classes whose scores hardly diverge as tau falls."""
    return np.asarray(connected_components(stretch < _TIED, directed=False)[1])


def _averaged(groups: AnyArray) -> Array:
    """(K, K): maps scores to their means over groups, less that of the last class."""
    is_same = groups[:, None] == groups
    means = is_same / is_same.sum(axis=1)
    return np.asarray(means - means[-1])


def _stretched(system: System, factor: float, groups: AnyArray) -> tuple[Array, Array]:
    """Scores at tau x factor, and the stretch (K, K) of every boundary.

    Where the scores of two classes grow by a stretch, the curvature between them shrinks by it:
    exact where labels harden and the stretch is 1 / factor, and where classes are tied and it is 1.
    In between it is the smallest that keeps the difference of their scores, divided by it, at its
    former length. Entropy counts between groups of classes, not within them.
    """
    state = system.state
    n_classes, width = state.scores.shape
    pairs = in_pairs(system.curvature.reshape(n_classes - 1, width, n_classes - 1, width))
    tau, averaged = factor * state.tau, _averaged(groups)[:-1, :-1]
    # Damps steps within tied classes.
    held_back = _WITHIN * tau * (np.eye(n_classes - 1) - averaged)
    softening = np.kron(tau * averaged + held_back, np.eye(width))
    right = state.gradient[:-1] + held_back @ state.scores[:-1]
    right = right.ravel() - system.product @ state.scores[:-1].ravel()
    most = _STRETCH * _lengths(state.scores)
    stretch, product = np.ones(most.shape), system.product
    while True:
        scores = system.with_last_class(solve(softening - product, right))
        excess = _lengths(scores) / stretch / np.maximum(most, 1e-300)
        is_long = (excess > _SLACK) & (stretch < 1 / factor)
        if not is_long.any():
            return scores, stretch
        stretch = np.where(is_long, stretch * np.minimum(excess, _MOST_GROWTH), stretch)
        curvature = of_pairs(pairs / stretch[:, :, None, None]).reshape(system.curvature.shape)
        product = system.hessian @ curvature


def _lengths(scores: Array) -> Array:
    """(K, K): distances between the scores of two classes."""
    return np.asarray(np.linalg.norm(scores[:, None] - scores, axis=-1))
