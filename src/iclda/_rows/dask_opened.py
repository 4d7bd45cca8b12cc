"""A source whose blocks were looked at, and passes over it as graphs of tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from dask.delayed import delayed

from .._core.types import AnyArray
from .dask_blocks import Known, Look, look, looks_of
from .dask_source import Blocks, known_of
from .dask_workers import Workers
from .progress import report

_FAN_IN = 8  # results that one task puts together
# Rows kept of blocks that are not kept themselves: several times a sample, of all blocks together.
_HELD_ROWS = 100_000
_LEAST_HELD = 256

Together = Callable[[Sequence[Any]], Any]


@dataclass(eq=False)
class Opened:
    """The workers keep blocks, or some rows of each, as long as this lives."""

    found: Blocks
    workers: Workers
    known: list[Known]
    looked: list[Any]
    n_held: int  # rows of every block that ``looked`` holds; 0: the blocks are kept
    n_features: int
    n_passes: int = 1

    @cached_property
    def offsets(self) -> AnyArray:
        """Number of the first row of every block, then the number of all rows."""
        return _offsets(self.known)

    def run(self, tasks: dict[int, Any], together: Together) -> Any:
        """Results of tasks, each with the number of its block, put together in order."""
        self.n_passes += 1
        return _run(self.workers, tasks, together, self.known, self.n_passes)


def open_blocks(found: Blocks, workers: Workers, name: str, persist: bool | None) -> Opened:
    """Read every block once, and have the workers keep it if there is room."""
    numbers = range(len(found.blocks))
    known = [known_of(i, name, found) for i in numbers]
    is_kept = bool(persist)
    if persist is None and found.n_bytes is not None:
        is_kept = workers.has_room(found.n_bytes)
    if is_kept:
        found = found.kept(workers.keep, known)
    n_held = 0 if is_kept else max(_LEAST_HELD, _HELD_ROWS // len(numbers))
    looked = workers.keep([found.task(i, look, known=known[i], n_held=n_held) for i in numbers])
    looks = _run(workers, dict(enumerate(looked)), looks_of, known, 1)
    n_features = _check_alike(looks, known, name)
    known = [replace(known[i], n_features=n_features, look=looks[i]) for i in numbers]
    is_open = persist is None and found.n_bytes is None
    if is_open and workers.has_room(sum(one.n_bytes for one in looks)):
        found, n_held = found.kept(workers.keep, known), 0
    return Opened(found, workers, known, looked, n_held, n_features)


def _check_alike(looks: Sequence[Look], known: Sequence[Known], name: str) -> int:
    """Number of features, the same in all blocks; ValueError that names the one that differs."""
    filled = [i for i, one in enumerate(looks) if one.n_rows > 0]
    if not filled:
        if known[0].n_features is None:
            raise ValueError(f"{name} has no rows in any of its {len(looks)} blocks.")
        return known[0].n_features
    first = looks[filled[0]]
    for i in filled:
        one = looks[i]
        if (one.n_features, one.dtype) != (first.n_features, first.dtype):
            raise ValueError(
                f"{known[i].label} has {one.n_features} columns of {np.dtype(one.dtype)}, and "
                f"block {filled[0]} has {first.n_features} of {np.dtype(first.dtype)}: give all "
                "blocks the same columns and dtype."
            )
    return first.n_features


def _run(
    workers: Workers,
    tasks: dict[int, Any],
    together: Together,
    known: Sequence[Known],
    n_pass: int,
) -> Any:
    numbers, parts = list(tasks), list(tasks.values())
    # The tree depends on nothing but the number of blocks: sums round alike every time.
    level = _grouped(parts, together)
    while len(level) > 1:
        level = _grouped(level, together)
    counts = np.diff(_offsets(known))[numbers]
    n_all = int(counts.sum()) or None
    n_done = 0

    def tell(k: int) -> None:
        nonlocal n_done
        n_done += int(counts[k])
        report(n_pass, n_done, n_all)

    return workers.run(parts, level[0], lambda k: known[numbers[k]].label, tell)


def _grouped(parts: Sequence[Any], together: Together) -> list[Any]:
    starts = range(0, len(parts), _FAN_IN)
    return [delayed(together, pure=False)(parts[i : i + _FAN_IN]) for i in starts]


def _offsets(known: Sequence[Known]) -> AnyArray:
    counts = [0 if one.look is None else one.look.n_rows for one in known]
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
