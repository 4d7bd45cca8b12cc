"""Follow a path where rows are dear to read: every read corrects the scores and lowers tau at once.

``follow`` reads the rows again for every trial. Here the answer of the class sums to the scores,
which one read brings along, serves to predict the point at the last tau asked for; the next read
corrects that, and two or three of them are enough. Should a prediction fail, ``follow`` takes over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from ..likelihood import FLOOR, smallest_eigenvalue
from ..types import AnyArray, Array
from .attainable import InMemorySet
from .boundary import in_pairs, of_pairs
from .follow import Follower, Path, State, System, solve

_DEEPEST = 0.03  # tau falls no further at once while labels harden
_AIM = 0.5  # share of the tolerance that the last tau may cost
_AIM_TIED = 0.1  # the same beside tied classes, whose shares bend the boundaries to others
_STRETCH = 1.5  # how much longer scores may be than before, in the units of the read they come from
_MOST_ON_SAMPLE = 60
_SURE = 0.9  # share of the tolerance at which the gap is measured
_RESUME = 10.0  # the careful way begins where entropy costs so many times what is left to gain
_ENOUGH = 0.9  # factor from which on tau is left as it is
_STILL = 1e-7  # share of the tolerance that steps promise once scores are right
_SLOW = 0.5  # share of the cost that a step may leave at the same tau, or the next one is shorter
_RISE = 1.5  # by how much costs may rise before a read counts as a failure
_MILD = 30.0  # the same, before the step to it counts as far too long
_FAR = 5.0  # what is left to gain at a tau, over the cost of entropy, before tau may fall further
_SLACK = 1.05  # by how much scores may be too long before it matters
_MOST_GROWTH = 4.0  # of a stretch at once, while it is looked for
_TIED = 2.0  # stretch of a boundary below which it stays where it is
_WITHIN = 0.01  # share of tau that is left within groups of tied classes
_NOTHING = 1e-6  # share of the tolerance below which nothing is left to gain
_MOST_READS = 20
_MOST_FAILURES = 3  # predictions that may fail before the careful way is taken


@dataclass(frozen=True)
class _Aim:
    """Where to read next."""

    scores: Array
    tau: float
    groups: AnyArray | None = None  # of tied classes, between which entropy does not count

    @property
    def anchor(self) -> Array | float:
        if self.groups is None:
            return 0.0
        return np.asarray(self.scores - _averaged(self.groups) @ self.scores)


def leap(
    follower: Follower, sample: InMemorySet, begin: State, *, tol: float, max_iter: int
) -> Path:
    """The end of the path that ``begin`` stands on, if predictions lead there.

    If they do not, the gap is infinite, and the state is where the careful way had best begin.
    ``sample`` are rows on which to guess what all rows would answer.
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
            if cost + state.tau * state.entropy <= _NOTHING * tol:  # hard labels ask for others
                break
        else:
            # A fall of tau that went a little wrong: correct the scores first. Else go shorter.
            is_held = state.tau < best.state.tau and cost <= _MILD * cheapest
            n_failures, caution = n_failures + 1, caution + (not is_held)
        if n_failures > _MOST_FAILURES:
            break
        # Where a shorter step fails too, the other kind of prediction may be good.
        if n_failures > 1 and sample.knows_curvature(best.state.scores):
            levels = _followed_on_sample(follower, sample, first, best.state, tol)
            resume = _coarser(levels, _RESUME * cheapest)
            aim = _Aim(levels[-1].scores, levels[-1].tau)
        else:
            aim = _aimed(best, sample, tol, caution, is_held=is_held)
        state = follower.state(aim.scores, aim.tau, aim.anchor)
    return Path(resume, np.inf, n_iter, True, (resume,))


def _has_ties(groups: AnyArray | None) -> bool:
    return groups is not None and len(np.unique(groups)) < len(groups)


def _entropy(state: State, sample: InMemorySet, groups: AnyArray | None) -> float:
    if groups is None or not _has_ties(groups):
        return state.entropy
    return sample.entropy(state.scores, groups)


def _coarser(levels: tuple[State, ...], cost: float) -> State:
    """The last of some levels at which what entropy costs still exceeds a cost."""
    return next((a for a in reversed(levels) if a.tau * a.entropy >= cost), levels[0])


def _gap(follower: Follower, sample: InMemorySet, state: State, tol: float) -> float:
    """The gap where it is known or worth a read, else infinity."""
    bound = gap_bound(state.gradient)
    if bound <= tol:
        return bound
    guess = sample.shortfall(state.scores, state.gradient)
    return follower.gap(state) if guess <= _SURE * tol else np.inf


def gap_bound(gradient: Array) -> float:
    """What no gap can exceed, without a read: rows have unit second moment in z.

    The gap is the mean over rows of largest score less mean score, at most the range of the
    scores, which is at most root two times their norm about their mean.
    """
    centered = gradient - gradient.mean(axis=0)
    return float(np.sqrt(2 * (centered**2).sum()))


def _followed_on_sample(
    follower: Follower, sample: InMemorySet, first: State, last: State, tol: float
) -> tuple[State, ...]:
    """Levels of the path on the sample, shifted so that it agrees with all rows at the last read.

    Where labels do not harden everywhere, many rows answer to the scores, and the sample knows how.
    """
    shifted = sample.shifted(last.point - sample.soft_point(last.scores)[0])
    on_sample = Follower(follower.likelihood, shifted, shifted.labeled_point)
    begin = on_sample.state(first.scores, first.tau)
    end = on_sample.follow(begin, tol=_AIM * tol, max_iter=_MOST_ON_SAMPLE)
    return (*end.levels, end.state)


def _aimed(system: System, sample: InMemorySet, tol: float, caution: int, *, is_held: bool) -> _Aim:
    """The point at the last tau asked for, or on the way there, as the last read foretells it.

    ``is_held``: the point at the same tau, which is also asked for first where the last read is far
    from it.

    Some boundaries harden while others, between classes that are tied, stay as they are. Entropy
    must not draw on tied classes, or tau would have to fall until all other boundaries are single
    rows: it is taken about an anchor, at which tied classes already share their rows as they will.
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
        # Entropy does not cost too much any more: correct the scores or, if they are right, go on.
        factor = 1.0 if system.ascent()[1] > _STILL * tol else _AIM
    is_deepest = factor == _DEEPEST and aim == _AIM
    scores = deepest if is_deepest else _stretched(system, factor, groups)[0]
    step = (scores - state.scores) / 2**caution
    return _Aim(state.scores + step, factor * state.tau, groups)


def _tied(stretch: Array) -> AnyArray:
    """(K,): numbers of groups of classes whose scores hardly grow apart where tau falls."""
    return np.asarray(connected_components(stretch < _TIED, directed=False)[1])


def _averaged(groups: AnyArray) -> Array:
    """(K, K): maps scores to their means over groups, less that of the last class."""
    is_same = groups[:, None] == groups
    means = is_same / is_same.sum(axis=1)
    return np.asarray(means - means[-1])


def _stretched(system: System, factor: float, groups: AnyArray) -> tuple[Array, Array]:
    """Scores at tau x factor, and the stretch (K, K) of every boundary on the way there.

    The rows between two classes answer to scores that grow by a common stretch as they did to the
    scores before it: exact where labels harden and the stretch is 1 / factor, and where classes are
    tied and it is 1. In between it is the least that keeps the scores of the two, taken back by it,
    as far apart as they were. Entropy counts between groups of classes, not within them.
    """
    state = system.state
    n_classes, width = state.scores.shape
    pairs = in_pairs(system.curvature.reshape(n_classes - 1, width, n_classes - 1, width))
    tau, averaged = factor * state.tau, _averaged(groups)[:-1, :-1]
    # Within groups a little holds scores back to where they are, lest a step goes astray.
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
    """(K, K): how far apart the scores of any two classes are."""
    return np.asarray(np.linalg.norm(scores[:, None] - scores, axis=-1))
