"""Fit methods on the cells of a study, in several processes, and store every row.

A *cell* is one split of one data set. Every method is fitted once on it, and each fit
is a row of the store (``store.py``). A study lists its cells and supplies a function
that fits the methods of one cell:

- ``run_missing`` computes the cells that the store lacks. An interrupted study thus
  continues where it stopped.
- ``run_tasks`` distributes cells over processes, and survives the death of a worker.
  Small cells are shared with ``CellWorkers``, of which this process is one more.
- ``record_fits`` times the fits of a cell and turns an exception into a failed row.
- ``rng_of`` returns a random generator that depends only on a seed and on names, such
  as those of a cell.
"""

from __future__ import annotations

import os
import pickle
import platform
import signal
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from queue import SimpleQueue
from threading import Thread
from traceback import format_exception
from typing import Any
from zlib import crc32

import numpy as np

from .._messages import FitError
from .._progress import Advance
from .._system import one_blas_thread, pause_collector, resume_collector, versions_text
from .store import IMPOSSIBLE, Cell, FitResult, Store

# A worker checks this often whether its parent process still exists.
_SECONDS_BETWEEN_CHECKS = 0.5

# A cell, and the methods that the store lacks for it.
Task = tuple[Cell, Sequence[str]]
# Data of the cells, by the name of the data set.
Sets = Mapping[str, Any]
# Fits the methods of a cell. It is sent to other processes, so it must be picklable.
RunCell = Callable[[Cell, Sets, Sequence[str]], list[FitResult]]


def rng_of(seed: int, *names: object) -> np.random.Generator:
    """Return a random generator that depends on the seed and the names alone.

    Cells may therefore be computed in any order and on any number of processes.
    """
    # A checksum, because ``hash`` of a string differs from process to process.
    codes = [crc32(str(name).encode()) for name in names]
    return np.random.default_rng([seed, *codes])


def describe_run() -> dict[str, str]:
    """Return the kind of machine, and the time at which a run begins."""
    return {
        "machine": f"{platform.machine()}, {platform.system()}",
        "began": time.strftime("%Y-%m-%d %H:%M"),
    }


def record_fits(
    cell: Cell,
    methods: Sequence[str],
    sizes: tuple[int, int, int],
    seed: int,
    fit: Callable[[str], Mapping[str, Any]],
) -> list[FitResult]:
    """Fit the methods of a cell, measure the time, and return a row for each.

    ``fit`` takes the name of a method and returns its measures. A fit that fails
    becomes a row with its traceback, so that the other fits of the study go on.
    ``sizes`` are the numbers of labeled, unlabeled and test rows.
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
                # Thousands of fits would print the same warnings over and over.
                warnings.simplefilter("ignore")
                values = fit(method)
        except FitError as error:
            failure = f"{IMPOSSIBLE}{error}"
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
    workers: CellWorkers | None = None,
    account: str | None = None,
) -> None:
    """Compute the cells that the store lacks, and add their rows as soon as they exist.

    ``title`` names the experiment in the progress. The seconds spent are added to those
    of ``account``, by default the title, in the settings of the store.
    """
    missing = store.missing(cells, methods)
    n_done = len(cells) - len(missing)
    n_failed = 0
    advance(title, n_done, len(cells), n_failed)
    start = time.monotonic()
    try:
        tasks = run_tasks(missing, sets, run, jobs, workers)
        with closing(tasks) as results:
            for rows in results:
                store.add(rows)
                n_done += 1
                n_failed += sum(row.is_alarm for row in rows)
                advance(title, n_done, len(cells), n_failed)
    finally:
        # An interrupted run has taken time as well.
        setting = f"seconds_{account or title}"
        seconds_before = store.settings().get(setting, 0.0)
        store.note(**{setting: seconds_before + time.monotonic() - start})


def run_tasks(
    tasks: Sequence[Task],
    sets: Sets,
    run: RunCell,
    jobs: int,
    workers: CellWorkers | None = None,
) -> Generator[list[FitResult], None, None]:
    """Yield the rows of each cell, in the order in which cells finish.

    If a worker dies, the cells that are not done yet are run again one by one. The fits
    of a cell whose worker dies again are recorded as failed. With ``workers`` this
    process is one of the jobs: no cell may take long or much memory.
    """
    # A single job or small cell needs no further process.
    if jobs == 1 or (workers is not None and len(tasks) == 1):
        for task in tasks:
            yield _run_task(task, sets, run)
        return

    remaining = dict(tasks)
    if workers is not None:
        has_worker_died = yield from _share(remaining, sets, run, workers)
        if not has_worker_died:
            return
    has_worker_died = yield from _run_together(remaining, sets, run, jobs)
    if not has_worker_died:
        return
    # Alone, a cell that kills its worker takes no other cells with it.
    for cell, methods in list(remaining.items()):
        # Two jobs, because joblib runs a single one in this process.
        has_worker_died = yield from _run_together({cell: methods}, sets, run, jobs=2)
        if has_worker_died:
            reason = "The process that fitted this cell was killed."
            yield [
                FitResult(**vars(cell), method=method, failure=reason)
                for method in methods
            ]


class CellWorkers:
    """Processes beside this one, for many small cells. They start with the first."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._executor: Any = None

    @property
    def executor(self) -> Any:
        """What runs functions in the workers.

        joblib runs a single job in this process: beside it, it would start two workers
        at least, one too many for two cores.
        """
        from joblib.externals.loky import ProcessPoolExecutor

        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                self.n_workers, initializer=_start_worker, initargs=(os.getpid(),)
            )
        return self._executor

    def close(self) -> None:
        """End the workers, whatever they do."""
        if self._executor is not None:
            self._executor.shutdown(kill_workers=True)
            self._executor = None


def _share(
    remaining: dict[Cell, Sequence[str]], sets: Sets, run: RunCell, workers: CellWorkers
) -> Generator[list[FitResult], None, bool]:
    """Run cells here and in workers; return whether a worker died.

    A worker takes a second or more to start, in which it imports what this process has.
    This process computes the first cells meanwhile. Cells that are done are removed
    from ``remaining``.
    """
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    with _ctrl_c_blocked():
        shared = _SharedTasks(deque(remaining.items()), sets, run, workers.executor)
        # The workers start here and inherit the blocked signal.
        for _ in range(workers.n_workers):
            shared.send_next()
    try:
        while remaining:
            rows = shared.next_rows()
            del remaining[rows[0].cell]
            yield rows
    except TerminatedWorkerError:
        return True
    finally:
        shared.waiting.clear()
        if remaining:
            # An interrupted study computes them when it goes on.
            workers.close()
    return False


@dataclass
class _SharedTasks:
    """Tasks that this process and workers take, one at a time.

    ``finished`` has the results of workers, and their errors. Data sets are pickled
    before anything is computed: another thread sends tasks, and sets may remember what
    this one computes of them meanwhile.
    """

    waiting: deque[Task]
    sets: Sets
    run: RunCell
    executor: Any
    pickled_sets: dict[str, bytes] = field(init=False)
    finished: SimpleQueue[Future[list[FitResult]]] = field(default_factory=SimpleQueue)

    def __post_init__(self) -> None:
        self.pickled_sets = {
            name: pickle.dumps(data) for name, data in self.sets.items()
        }

    def send_next(self) -> None:
        """Send a task to a worker, if any is left."""
        try:
            task = self.waiting.popleft()
        except IndexError:
            return
        needed = _needed_sets(task, self.pickled_sets)
        try:
            future = self.executor.submit(_run_on_pickled, task, needed, self.run)
        except RuntimeError as error:
            # All workers are gone.
            future = Future()
            future.set_exception(error)
        future.add_done_callback(self._receive)

    def _receive(self, future: Future[list[FitResult]]) -> None:
        """Send a worker the next task; a thread calls it, while this one computes."""
        self.finished.put(future)
        if future.exception() is None:
            self.send_next()

    def next_rows(self) -> list[FitResult]:
        """Return the rows that a worker has finished, or else those of a task."""
        task = None
        if self.finished.empty():
            # A worker may take the last one at the same time.
            with suppress(IndexError):
                task = self.waiting.popleft()
        if task is None:
            return self.finished.get().result()
        return _run_task(task, self.sets, self.run)


def _run_together(
    remaining: dict[Cell, Sequence[str]], sets: Sets, run: RunCell, jobs: int
) -> Generator[list[FitResult], None, bool]:
    """Run cells in parallel and yield their rows; return whether a worker died.

    Cells that are done are removed from ``remaining``.
    """
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    calls = [
        delayed(_run_in_worker)(task, _needed_sets(task, sets), run)
        for task in remaining.items()
    ]
    # joblib sends several cells at a time to a worker if they take little time.
    parallel: Any = Parallel(
        n_jobs=jobs,
        return_as="generator_unordered",
        initializer=_start_worker,
        initargs=(os.getpid(),),
    )
    try:
        with _results_of(parallel, calls) as finished:
            for rows in finished:
                del remaining[rows[0].cell]
                yield rows
    except TerminatedWorkerError:
        return True
    return False


@contextmanager
def _results_of(parallel: Any, calls: list[Any]) -> Iterator[Any]:
    """Start the workers, and stop them at the end, without a word about open calls.

    joblib would warn of results that nobody has fetched. An interrupted study computes
    them when it goes on.
    """
    finished: Any = None
    try:
        with _ctrl_c_blocked():
            # The workers start here and inherit the blocked signal.
            finished = parallel(calls)
        yield finished
    finally:
        if finished is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                finished.close()


def _needed_sets(task: Task, sets: Sets) -> Sets:
    """Return the data set of a cell alone, to send it. Drawn problems have none."""
    cell, _ = task
    return {name: sets[name] for name in [cell.dataset] if name in sets}


def _run_on_pickled(
    task: Task, pickled_sets: Mapping[str, bytes], run: RunCell
) -> list[FitResult]:
    sets = {name: _unpickled(data) for name, data in pickled_sets.items()}
    return _run_in_worker(task, sets, run)


@lru_cache(maxsize=1)
def _unpickled(data: bytes) -> Any:
    """Return an object; most cells of a worker need the same one."""
    return pickle.loads(data)


def _run_in_worker(task: Task, sets: Sets, run: RunCell) -> list[FitResult]:
    # What the worker needs was imported to read the arguments.
    resume_collector()
    return _run_task(task, sets, run)


def _run_task(task: Task, sets: Sets, run: RunCell) -> list[FitResult]:
    cell, methods = task
    # On many BLAS threads small fits took 80 times longer.
    with one_blas_thread():
        return run(cell, sets, methods)


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


def _start_worker(parent: int) -> None:
    pause_collector()
    _end_with_parent(parent)


def _end_with_parent(parent: int) -> None:
    """End this worker soon after its parent, since only the parent stores results."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_CHECKS)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
