"""Fit methods on the cells of a study, in several processes, and store every row.

A *cell* is one split of one data set. Every method is fitted once on it, and each fit
is a row of the store (``store.py``). A study lists its cells and supplies a function
that fits the methods of one cell:

- ``run_missing`` computes the cells that the store lacks. An interrupted study thus
  continues where it stopped.
- ``run_tasks`` distributes cells over processes, and survives the death of a worker.
- ``record_fits`` times the fits of a cell and turns an exception into a failed row.
- ``rng_of`` returns the random generator of a cell, which depends on nothing else.
"""

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

# Processes receive cells in chunks of at most this size, about half a second of work.
_MAX_CELLS_PER_CHUNK = 16
# Smaller chunks are used if there are few cells: with fewer chunks than this for each
# process, progress would stand still and processes would wait for the last one.
_MIN_CHUNKS_PER_JOB = 16
# Seconds after which a worker notices that its parent has ended.
_SECONDS_BETWEEN_LOOKS = 0.5

# A cell, and the methods that the store lacks for it.
Task = tuple[Cell, Sequence[str]]
# Data of the cells, by the name of the data set.
Sets = Mapping[str, Any]
# Fits the methods of a cell. It is sent to other processes, so it must be picklable.
RunCell = Callable[[Cell, Sets, Sequence[str]], list[FitResult]]


def rng_of(seed: int, *names: object) -> np.random.Generator:
    """Return a generator that depends on the seed and the names alone.

    Cells may therefore be computed in any order and on any number of processes.
    """
    codes = [crc32(str(name).encode()) for name in names]
    return np.random.default_rng([seed, *codes])


def record_fits(
    cell: Cell,
    methods: Sequence[str],
    sizes: tuple[int, int, int],
    seed: int,
    fit: Callable[[str], Mapping[str, Any]],
) -> list[FitResult]:
    """Fit the methods of a cell, measure the time, and return a row for each.

    ``fit`` takes the name of a method and returns its measures. A fit that fails
    becomes a row with its traceback. ``sizes`` are the numbers of labeled, unlabeled
    and test rows.
    """
    n_labeled, n_unlabeled, n_test = sizes
    versions = versions_text()
    rows = []
    for method in methods:
        values: Mapping[str, Any] = {}
        failure = None
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                # A row has no column for warnings.
                warnings.simplefilter("ignore")
                values = fit(method)
        except Exception as error:
            failure = "".join(format_exception(error))
        seconds = time.perf_counter() - start
        row = FitResult(
            **vars(cell),
            method=method,
            n_labeled=n_labeled,
            n_unlabeled=n_unlabeled,
            n_test=n_test,
            values=values,
            seconds=seconds,
            failure=failure,
            seed=seed,
            versions=versions,
        )
        rows.append(row)
    return rows


def run_missing(
    store: Store,
    title: str,
    cells: Sequence[Cell],
    methods: Sequence[str],
    advance: Advance,
    *,
    sets: Sets,
    run: RunCell,
    jobs: int,
) -> None:
    """Compute the cells that the store lacks, and add their rows as soon as they exist.

    ``title`` names the experiment in the progress and in the setting that sums up the
    seconds spent on it.
    """
    missing = store.missing(cells, methods)
    n_done = len(cells) - len(missing)
    n_failed = 0
    advance(title, n_done, len(cells), n_failed)
    start = time.monotonic()
    try:
        for rows in run_tasks(missing, sets, run, jobs):
            store.add(rows)
            n_done += len({row.cell for row in rows})
            n_failed += sum(row.failure is not None for row in rows)
            advance(title, n_done, len(cells), n_failed)
    finally:
        setting = f"seconds_{title}"
        seconds_before = store.settings().get(setting, 0.0)
        store.note(**{setting: seconds_before + time.monotonic() - start})


def run_tasks(
    tasks: Sequence[Task], sets: Sets, run: RunCell, jobs: int
) -> Iterator[list[FitResult]]:
    """Yield the rows of some cells at a time, in the order in which they finish.

    If a worker dies, the cells that are not done yet are run again one by one. The fits
    of a cell whose worker dies again are recorded as failed.
    """
    if jobs == 1:
        for task in tasks:
            _, rows = _run_chunk(0, [task], sets, run)
            yield rows
        return

    n_cells = len(tasks) // (_MIN_CHUNKS_PER_JOB * jobs)
    n_cells = max(1, min(_MAX_CELLS_PER_CHUNK, n_cells))
    chunks = {i: list(tasks[i : i + n_cells]) for i in range(0, len(tasks), n_cells)}
    has_worker_died = yield from _run_together(chunks, sets, run, jobs)
    if not has_worker_died:
        return

    remaining = [task for chunk in chunks.values() for task in chunk]
    for cell, methods in remaining:
        # Two jobs, because joblib runs a single one in this process.
        alone = {0: [(cell, methods)]}
        has_worker_died = yield from _run_together(alone, sets, run, jobs=2)
        if has_worker_died:
            reason = "The process that fitted this cell was killed."
            yield [
                FitResult(**vars(cell), method=method, failure=reason)
                for method in methods
            ]


def _run_together(
    chunks: dict[int, list[Task]], sets: Sets, run: RunCell, jobs: int
) -> Generator[list[FitResult], None, bool]:
    """Run chunks in parallel; return whether a worker died.

    Chunks that are done are removed from ``chunks``.
    """
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    calls = []
    for index, chunk in chunks.items():
        # Send only the data sets of the chunk. Drawn problems have none.
        names = {cell.dataset for cell, _ in chunk}
        needed = {name: sets[name] for name in names if name in sets}
        calls.append(delayed(_run_chunk)(index, chunk, needed, run))
    parallel: Any = Parallel(
        n_jobs=jobs,
        return_as="generator_unordered",
        initializer=_end_with_parent,
        initargs=(os.getpid(),),
    )
    try:
        with _ctrl_c_blocked():
            # The workers start here and inherit the blocked signal.
            finished = parallel(calls)
        for index, rows in finished:
            del chunks[index]
            yield rows
    except TerminatedWorkerError:
        return True
    return False


@contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Block SIGINT here until the end, and for good in processes started meanwhile.

    A terminal sends Ctrl-C to all processes, and every worker would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        # Windows has no signal masks.
        yield
        return
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as loky_resource_tracker

    # Both trackers unblock the signal when they start: start them before it is blocked.
    resource_tracker.ensure_running()
    loky_resource_tracker.ensure_running()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _end_with_parent(parent: int) -> None:
    """End this worker soon after its parent, since only the parent stores results."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _run_chunk(
    index: int, chunk: Sequence[Task], sets: Sets, run: RunCell
) -> tuple[int, list[FitResult]]:
    """Run the cells of a chunk; return its index and all rows."""
    rows = []
    # On many threads small fits took 80 times longer.
    with one_blas_thread():
        for cell, methods in chunk:
            rows += run(cell, sets, methods)
    return index, rows
