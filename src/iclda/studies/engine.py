"""Compute the cells of a study side by side and store their rows."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Thread
from traceback import format_exception
from typing import Any
from zlib import crc32

import numpy as np

from .._packages import versions_text
from .._progress import Advance
from .store import Cell, FitResult, Store

_CHUNK = 16  # cells a worker takes at a time: half a second of work
_MOST_DEATHS = 1
Task = tuple[Cell, Sequence[str]]  # a cell, and the methods still missing in it
Sets = Mapping[str, Any]  # what cells are computed from, by the name of their data set
Run = Callable[[Cell, Sets, Sequence[str]], list[FitResult]]  # is sent to other processes


def rng_of(seed: int, *names: object) -> np.random.Generator:
    """Random numbers that depend on the seed and the names alone, not on any order of work."""
    return np.random.default_rng([seed, *(crc32(str(name).encode()) for name in names)])


def record_fit(
    cell: Cell,
    method: str,
    sizes: Sequence[int],
    seed: int,
    fit: Callable[[], Mapping[str, Any]],
    explain: Callable[[Exception], str] = lambda error: "".join(format_exception(error)),
) -> FitResult:
    """A timed fit as a row; ``fit`` returns its values and remarks.

    A failed fit is a row with its traceback: never a zero, never a crash. ``sizes`` are the
    numbers of labeled, unlabeled and test rows.
    """
    start, key = time.perf_counter(), {**vars(cell), "method": method, "seed": seed}
    try:
        found = {**fit()}
    except Exception as error:
        found = {"failure": explain(error)}
    found |= zip(("n_labeled", "n_unlabeled", "n_test"), sizes, strict=True)
    seconds = time.perf_counter() - start
    return FitResult(**key, **found, seconds=seconds, versions=versions_text())


def run_missing(
    store: Store,
    experiment: str,
    cells: Sequence[Cell],
    methods: Sequence[str],
    advance: Advance,
    *,
    sets: Sets,
    run: Run,
    jobs: int,
) -> None:
    """Compute the cells of an experiment that are missing, keeping every row as it comes."""
    missing = store.missing(cells, methods)
    n_done, n_failed = len(cells) - len(missing), 0
    advance(experiment, n_done, len(cells), n_failed)
    start = time.monotonic()
    try:
        for rows in run_tasks(missing, sets, run, jobs):
            store.add(rows)
            n_done += len({row.cell for row in rows})
            n_failed += sum(row.failure is not None for row in rows)
            advance(experiment, n_done, len(cells), n_failed)
    finally:
        spent = store.settings().get(f"seconds_{experiment}", 0.0)
        store.note(**{f"seconds_{experiment}": spent + time.monotonic() - start})


def run_tasks(tasks: Sequence[Task], sets: Sets, run: Run, jobs: int) -> Iterator[list[FitResult]]:
    """Rows of cells, a few cells at a time, in the order in which they finish."""
    if jobs == 1:
        yield from (_run_chunk(0, [task], sets, run)[1] for task in tasks)
        return
    size = max(1, min(_CHUNK, len(tasks) // (4 * jobs)))
    chunks = {i: list(tasks[i : i + size]) for i in range(0, len(tasks), size)}
    n_deaths = 0
    while chunks:
        if n_deaths > _MOST_DEATHS:
            # Workers keep dying: run a cell at a time to find the one that kills them, and skip it.
            yield from _run_alone(chunks.pop(next(iter(chunks))), sets, run)
            n_deaths = 0
        n_deaths += yield from _run_together(chunks, sets, run, jobs)


def _run_together(
    chunks: dict[int, list[Task]], sets: Sets, run: Run, jobs: int
) -> Generator[list[Any], None, int]:
    """Run chunks side by side, removing those that are done; returns 1 if a worker died."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    tasks = []
    for index, chunk in chunks.items():
        needed = {cell.dataset: sets[cell.dataset] for cell, _ in chunk if cell.dataset in sets}
        tasks.append(delayed(_run_chunk)(index, chunk, needed, run))
    ending: Any = {"initializer": _end_with_parent, "initargs": (os.getpid(),)}
    try:
        with _ctrl_c_later():  # workers inherit that, for good
            found = Parallel(n_jobs=jobs, return_as="generator_unordered", **ending)(tasks)
        for index, rows in found:
            del chunks[index]
            yield rows
    except TerminatedWorkerError:
        return 1
    return 0


def _run_alone(chunk: list[Task], sets: Sets, run: Run) -> Iterator[list[FitResult]]:
    """Each cell in a process of its own; if that dies, its fits are stored as failed."""
    for cell, methods in chunk:
        if (yield from _run_together({0: [(cell, methods)]}, sets, run, jobs=2)):
            reason = "The process that fitted this cell was killed."
            yield [FitResult(**vars(cell), method=method, failure=reason) for method in methods]


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Hold Ctrl-C back: the parent gets it at the end, processes started meanwhile never do.

    A terminal sends it to all of them, and every worker would show a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # as on Windows
        yield
        return
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as tracker_of_joblib

    for tracker in (resource_tracker, tracker_of_joblib):
        tracker.ensure_running()  # to start one would let Ctrl-C through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent(parent: int) -> None:
    """End this process within a second of its parent, which alone would store what it computes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _run_chunk(
    index: int, chunk: Sequence[Task], sets: Sets, run: Run
) -> tuple[int, list[FitResult]]:
    with _one_thread().limit(limits=1):
        return index, [row for cell, methods in chunk for row in run(cell, sets, methods)]


@cache
def _one_thread() -> Any:
    """Small problems on many BLAS threads were seen 80 times slower than on one: pin them.

    Looking for the libraries takes longer than many a fit: once a process is enough.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
