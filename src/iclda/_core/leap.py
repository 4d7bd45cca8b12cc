"""Follow a path where rows are dear to read: every read corrects the scores and lowers tau at once.

``follow`` reads the rows again for every trial. Here the answer of the class sums to the scores,
which one read brings along, serves to predict the point at the last tau asked for; the next read
corrects that, and two or three of them are enough. Should a prediction fail, ``follow`` takes over.
"""

from __future__ import annotations

import numpy as np

from .attainable import HeldRows
from .follow import Follower, Path, State, System
from .likelihood import FLOOR, smallest_eigenvalue
from .types import Array

_DEEPEST = 0.03  # tau falls no further at once while labels harden
_DEEPEST_INTERIOR = 1e-5
_AIM = 0.5  # share of the tolerance that the last tau may cost
_STRETCH = 1.5  # how much longer than before scores may be in the units of the read they come from
_INTERIOR, _HARDENING = 3.0, 0.1  # answer of the gradient to the scores, over tau
_MOST_BISECTIONS = 6
_SURE = 0.9  # share of the tolerance at which the gap is measured
_MOST_TRIES = 2  # predictions that may fail before the careful way is taken


def leap(
    follower: Follower, sample: HeldRows, begin: State, *, tol: float, max_iter: int
) -> Path | None:
    """The end of the path that ``begin`` stands on, if predictions lead there; None if not.

    ``sample`` are rows on which the gap is guessed before a read is spent on it.
    """
    state = follower.state(begin.scores, begin.tau)
    factor_is_at_least, n_tries = 0.0, 0
    system, last = System(follower, state), None
    for n_iter in range(1, max_iter + 1):
        if not smallest_eigenvalue(state.point) > 2 * FLOOR:
            return None
        cost = system.ascent()[1] + state.tau * state.entropy
        if last is not None and not cost <= last[1]:
            # Too far: take it back and try half the way.
            n_tries += 1
            if n_tries > _MOST_TRIES:
                return None
            factor_is_at_least = np.sqrt(state.tau / last[0].state.tau)
            system, cost = last
        else:
            last = system, cost
            found = _gap(follower, sample, state, tol)
            if found <= tol:
                return Path(state, found, n_iter, True, (state,))
        factor = max(_factor(system, tol), factor_is_at_least)
        state = follower.state(_predicted(system, factor), factor * system.state.tau)
        system = System(follower, state)
    return None


def _gap(follower: Follower, sample: HeldRows, state: State, tol: float) -> float:
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


def _answer(system: System) -> float:
    """How much the gradient changes where the scores grow, over tau: zero if labels harden."""
    scores = system.state.scores[:-1].ravel()
    size = system.state.tau * float(np.linalg.norm(scores))
    return float(np.linalg.norm(system.product @ scores)) / size if size > 0 else np.inf


def _factor(system: System, tol: float) -> float:
    """By how much to lower tau so that the tolerance is met.

    Where labels harden, entropy falls with tau; where the optimum is interior, the gradient does.
    """
    state = system.state
    if _answer(system) > _INTERIOR:
        bound = state.tau * gap_bound(state.scores)
        return float(np.clip(_AIM * tol / max(bound, 1e-300), _DEEPEST_INTERIOR, 1))
    cost = max(state.tau * state.entropy, 1e-300)
    factor = float(np.clip(np.sqrt(_AIM * tol / cost), _DEEPEST, 1))
    return 1.0 if factor > 0.9 else factor


def _predicted(system: System, factor: float) -> Array:
    """Scores at tau x factor.

    Sums answer to scores that grow by a common stretch as they did to the scores before it: exact
    where labels harden and the stretch is 1 / factor, and where the optimum is interior and it is
    1. In between it is the least that keeps the scores, taken back by it, as long as they were.
    """
    state = system.state
    tau, scores = factor * state.tau, state.scores[:-1].ravel()
    right = state.gradient[:-1].ravel() - system.product @ scores
    longest = _STRETCH * float(np.linalg.norm(scores))
    answer = _answer(system)

    def unstretched(stretch: float) -> Array:
        return system.solved(stretch * tau, right)

    most = max(1.0, 1 / (_STRETCH * factor))
    if answer > _INTERIOR or answer < _HARDENING:
        stretch = 1.0 if answer > _INTERIOR else most
        return system.with_last_class(stretch * unstretched(stretch))
    least, most = 0.0, np.log(1 / factor)
    if np.linalg.norm(unstretched(1.0)) > longest:
        for _ in range(_MOST_BISECTIONS):
            middle = (least + most) / 2
            is_long = np.linalg.norm(unstretched(np.exp(middle))) > longest
            least, most = (middle, most) if is_long else (least, middle)
    else:
        most = 0.0
    stretch = float(np.exp(most))
    return system.with_last_class(stretch * unstretched(stretch))
