"""Experiments on many splits: their cells are computed side by side, and their rows stored."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Thread
from traceback import format_exception
from typing import Any
from zlib import crc32

import numpy as np

from .._progress import Advance
from .._system import one_blas_thread, versions_text
from .store import Cell, FitResult, Store

_CELLS_PER_CHUNK = 16  # half a second of work
_CHUNKS_PER_JOB = (
    16  # at least: with fewer, progress stands still and processes wait at the end
)
Task = tuple[Cell, Sequence[str]]  # a cell, and the methods still missing in it
Sets = Mapping[str, Any]  # data of the cells, by the name of their data set
Run = Callable[
    [Cell, Sets, Sequence[str]], list[FitResult]
]  # is sent to other processes


def rng_of(seed: int, *names: object) -> np.random.Generator:
    """Return a generator that depends on the seed and the names alone, not on the order of work."""
    return np.random.default_rng([seed, *(crc32(str(name).encode()) for name in names)])


def record_fits(
    cell: Cell,
    methods: Sequence[str],
    sizes: Sequence[int],
    seed: int,
    fit: Callable[[str], Mapping[str, Any]],
) -> list[FitResult]:
    """Time the fits of a cell and return their rows; ``fit`` returns the values of a method.

    A failed fit is a row with its traceback. ``sizes`` are the numbers of labeled, unlabeled and
    test rows.
    """
    known: dict[str, Any] = {"seed": seed, "versions": versions_text()}
    known |= zip(("n_labeled", "n_unlabeled", "n_test"), sizes, strict=True)
    rows = []
    for method in methods:
        start = time.perf_counter()
        outcome: dict[str, Any] = {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # failed fits are stored, their warnings are not
                outcome["values"] = fit(method)
        except Exception as error:
            outcome["failure"] = "".join(format_exception(error))
        outcome["seconds"] = time.perf_counter() - start
        rows.append(FitResult(**vars(cell), method=method, **known, **outcome))
    return rows


def run_missing(
    store: Store,
    title: str,
    cells: Sequence[Cell],
    methods: Sequence[str],
    advance: Advance,
    *,
    sets: Sets,
    run: Run,
    jobs: int,
) -> None:
    """Compute missing cells, storing every row as soon as it is computed, and the time spent.

    ``title`` is what progress and the stored time are called.
    """
    missing = store.missing(cells, methods)
    n_done, n_failed = len(cells) - len(missing), 0
    advance(title, n_done, len(cells), n_failed)
    start = time.monotonic()
    try:
        for rows in run_tasks(missing, sets, run, jobs):
            store.add(rows)
            n_done += len({row.cell for row in rows})
            n_failed += sum(row.failure is not None for row in rows)
            advance(title, n_done, len(cells), n_failed)
    finally:
        spent = store.settings().get(f"seconds_{title}", 0.0)
        store.note(**{f"seconds_{title}": spent + time.monotonic() - start})


def run_tasks(
    tasks: Sequence[Task], sets: Sets, run: Run, jobs: int
) -> Iterator[list[FitResult]]:
    """Yield the rows of cells, a few cells at a time, in the order in which they finish."""
    if jobs == 1:
        yield from (_run_chunk(0, [task], sets, run)[1] for task in tasks)
        return
    size = max(1, min(_CELLS_PER_CHUNK, len(tasks) // (_CHUNKS_PER_JOB * jobs)))
    chunks = {i: list(tasks[i : i + size]) for i in range(0, len(tasks), size)}
    if (yield from _run_together(chunks, sets, run, jobs)):
        # A worker died: run each cell in a process of its own, and store the fits of one that dies
        # as failed.
        for cell, methods in [task for chunk in chunks.values() for task in chunk]:
            if (yield from _run_together({0: [(cell, methods)]}, sets, run, jobs=2)):
                reason = "The process that fitted this cell was killed."
                yield [
                    FitResult(**vars(cell), method=method, failure=reason)
                    for method in methods
                ]


def _run_together(
    chunks: dict[int, list[Task]], sets: Sets, run: Run, jobs: int
) -> Generator[list[Any], None, int]:
    """Run chunks side by side and remove those that are done; return 1 if a worker died."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    tasks = []
    for index, chunk in chunks.items():
        needed = {
            cell.dataset: sets[cell.dataset]
            for cell, _ in chunk
            if cell.dataset in sets
        }
        tasks.append(delayed(_run_chunk)(index, chunk, needed, run))
    ending: Any = {"initializer": _end_with_parent, "initargs": (os.getpid(),)}
    try:
        with _ctrl_c_blocked():  # workers inherit the blocked signal
            done = Parallel(n_jobs=jobs, return_as="generator_unordered", **ending)(
                tasks
            )
        for index, rows in done:
            del chunks[index]
            yield rows
    except TerminatedWorkerError:
        return 1
    return 0


@contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Block SIGINT here until the end, and for good in processes that are started meanwhile.

    A terminal sends Ctrl-C to all processes, and every worker would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # as on Windows
        yield
        return
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as tracker_of_joblib

    for tracker in (resource_tracker, tracker_of_joblib):
        tracker.ensure_running()  # starting one later would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent(parent: int) -> None:
    """End this process soon after its parent, which alone stores results."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _run_chunk(
    index: int, chunk: Sequence[Task], sets: Sets, run: Run
) -> tuple[int, list[FitResult]]:
    # On many threads small fits took 80 times longer.
    with one_blas_thread():
        return index, [
            row for cell, methods in chunk for row in run(cell, sets, methods)
        ]
