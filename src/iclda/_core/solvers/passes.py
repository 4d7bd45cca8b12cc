"""A path that began on a sample, continued on all rows, which are read in passes.

A pass gives the point, the gradient and the rows near class boundaries
(``streamed``). On these rows the path is followed to a smaller tau, with the labels of
all others fixed. The next pass evaluates the result on all rows, and accepts or
corrects it. A pass more gives the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .. import Array
from ..likelihood import Objective
from ..problem import Problem
from . import settings
from .continuation import Effort, Follower, Path, State
from .sample import moved_scores
from .streamed import StreamedSet


class SamplePath(NamedTuple):
    """What is left of a path on a sample when it is continued on all rows.

    Attributes
    ----------
    value : the objective on the sample at the end of the path
    end : scores at the end of the path
    scores : scores of its last level with a large tau
    tau : with it, and the anchor 0, these scores are near the maximum of a level
    """

    value: float
    end: Array
    scores: Array
    tau: float


@dataclass
class _Progress:
    """How long ago a pass halved the gap over the rows near boundaries.

    Attributes
    ----------
    max_idle_steps : Newton steps without a halved gap after which a search gives up
    smallest_gap : the gap after the last pass that halved it
    n_idle_passes : passes since then that moved the point
    n_idle_steps : Newton steps before these passes
    """

    max_idle_steps: float
    smallest_gap: float = np.inf
    n_idle_passes: int = 0
    n_idle_steps: int = 0

    @property
    def is_hopeless(self) -> bool:
        """Whether many steps have gained little."""
        return self.n_idle_steps >= self.max_idle_steps

    @property
    def has_ended(self) -> bool:
        max_idle_passes = settings.PASSES.max_idle_passes
        return self.is_hopeless or self.n_idle_passes >= max_idle_passes

    def note(self, gap: float, n_steps: int) -> None:
        """Compare the gap after a pass with the last one that was half as large."""
        self.n_idle_passes += 1
        self.n_idle_steps += n_steps
        if gap <= self.smallest_gap / 2:
            self.smallest_gap = gap
            self.n_idle_passes = 0
            self.n_idle_steps = 0


def leave_sample(
    path: Path, min_tau: float, source: Problem, target: Problem
) -> SamplePath:
    """Return the last level of a path with a tau of at least ``min_tau``.

    Each level added nearly gradient / tau to the scores. With the anchor 0 and the tau
    that is returned they are again near the maximum of a level, and the anchor of the
    sample, which has the sampling errors of all earlier levels, is not needed any more.
    Scores are moved from the problem of the sample to that of all rows.
    """
    levels = [level for level in path.levels if level.tau >= min_tau]
    if not levels:
        levels = [path.levels[0]]
    return SamplePath(
        value=path.state.value,
        end=moved_scores(path.state.scores, source, target),
        scores=moved_scores(levels[-1].scores, source, target),
        tau=1 / sum(1 / level.tau for level in levels),
    )


def best_on_all_rows(
    reader: StreamedSet,
    objective: Objective,
    paths: list[SamplePath],
    sampling_error: float,
) -> SamplePath:
    """Return the best of the paths on a sample.

    Those whose values are within the sampling error of the best are compared on all
    rows, one pass each.
    """
    best_value = max(path.value for path in paths)
    min_value = best_value - sampling_error
    near_best = [path for path in paths if path.value >= min_value]
    if len(near_best) == 1:
        return near_best[0]

    def value_on_all_rows(path: SamplePath) -> float:
        labels = reader.soft_labels(path.end)
        value, _ = objective.value_and_gradient(labels.point)
        return float(value)

    return max(near_best, key=value_on_all_rows)


def follow_in_passes(
    reader: StreamedSet, objective: Objective, start: SamplePath, effort: Effort
) -> Path:
    """Continue the path of a sample on all rows, and return its end."""
    chosen = settings.PASSES
    follower = Follower(objective, reader)
    # As many rows as are held where these are all rows.
    width = start.scores.shape[1]
    max_returned = settings.HOLDING.max_entries_of_all // width
    max_iter = chosen.steps_over_max_iter * effort.max_iter
    state = follower.state(start.scores, start.tau)
    best: Path | None = None
    n_iter = 0
    is_accepted = True
    idle_steps = chosen.idle_steps_over_max_iter * effort.max_iter
    progress = _Progress(max(chosen.min_idle_steps, idle_steps))
    for _ in range(chosen.max_passes):
        is_used_up = effort.is_exhausted or reader.is_exhausted
        if n_iter >= max_iter or is_used_up or progress.has_ended:
            break

        # 1. Follow the path on the rows that the last pass returned.
        path = _follow_near_boundaries(objective, state, effort, is_trusted=is_accepted)
        n_iter += path.n_iter

        # 2. Evaluate its end on all rows.
        is_accepted, state = _accept_or_shorten(follower, state, path)
        if not objective.is_bounded(state.point):
            gap = follower.gap(state)
            return Path(state, gap, n_iter, is_bounded=False, levels=(state,))

        # 3. Certify it where little seems to be left.
        local_gap = _local_gap(objective, state)
        progress.note(local_gap, path.n_iter)
        is_small = local_gap <= chosen.certified_share_of_tol * effort.tol
        if is_small:
            gap = follower.gap(state)
            if best is None or gap < best.gap:
                best = Path(state, gap, n_iter, levels=(state,))
            if gap <= effort.tol:
                return best

        # 4. Ask for more rows where these have misled. A gap that is left though theirs
        # is small is due to rows that the pass did not return.
        are_too_few = is_small or not state.labeling.n_near
        if are_too_few or not is_accepted:
            reader.return_more(max_returned)
        if are_too_few:
            state = follower.state(
                state.scores, state.tau, state.anchor, warm_start=state
            )
    if best is None:
        # No gap was small enough to be computed on all rows.
        best = Path(state, follower.gap(state), n_iter, levels=(state,))
    is_given_up = progress.is_hopeless or reader.is_exhausted
    return replace(best, is_given_up=is_given_up)


def _follow_near_boundaries(
    objective: Objective, state: State, effort: Effort, *, is_trusted: bool
) -> Path:
    """Follow the path on the rows that the last pass returned.

    The fall of tau is limited, more so if the last step was rejected.
    """
    chosen = settings.PASSES
    labeling = state.labeling
    min_factor = chosen.min_tau_factor
    if labeling.is_thinned and is_trusted:
        # As tau falls fewer rows have soft labels: enough of them must be left for each
        # unknown.
        n_enough = chosen.rows_per_unknown * state.scores[:-1].size
        share = n_enough / max(1, labeling.n_near)
        min_factor = max(min_factor, min(chosen.max_tau_factor, share))
    elif labeling.is_thinned:
        min_factor = 1.0
    local = Follower(objective, labeling.local_set)
    begin = local.state(state.scores, state.tau, state.anchor, warm_start=state)
    # Beyond this the gap on these rows would say nothing about the gap on all rows.
    tol = max(
        chosen.aimed_share_of_tol * effort.tol,
        chosen.aimed_share_of_gap * local.gap(begin),
    )
    local_effort = replace(effort, tol=tol, aim=tol)
    return local.follow(begin, local_effort, min_tau=min_factor * state.tau)


def _local_gap(objective: Objective, state: State) -> float:
    """Return the gap over the rows that the last pass returned, all others fixed."""
    return Follower(objective, state.labeling.local_set).gap(state)


def _accept_or_shorten(
    follower: Follower, state: State, path: Path
) -> tuple[bool, State]:
    """Evaluate the end of a path on the rows near boundaries on all rows.

    Along a path the value rises and the gap falls. If on all rows the value falls, by
    more than the gap that is left or without a smaller gap, the end is rejected: tau
    stays that of the first level, and the step to that level is shortened until the
    merit rises. Return whether it was accepted, and the next state.
    """
    chosen = settings.PASSES
    objective = follower.objective
    first = path.levels[0]
    end = path.levels[-1]
    trial = follower.state(end.scores, end.tau, end.anchor, warm_start=end)
    loss = state.value - trial.value
    gap_left = _local_gap(objective, trial)
    if loss <= 0 or loss < gap_left < _local_gap(objective, state):
        return True, trial
    if np.array_equal(first.scores, state.scores):
        return False, state
    # A path of one level has already been evaluated at its whole length.
    parts = chosen.shorter_steps[1:] if end is first else chosen.shorter_steps
    for part in parts:
        scores = state.scores + part * (first.scores - state.scores)
        trial = follower.state(scores, first.tau, first.anchor, warm_start=trial)
        if trial.merit >= state.merit:
            break
    if trial.merit - state.merit <= chosen.small_gain * gap_left:
        # The level has been reached.
        trial = trial.next_level(trial.tau)
    return False, trial
