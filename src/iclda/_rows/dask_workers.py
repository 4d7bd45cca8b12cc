"""The workers of a Dask cluster, or Dask's scheduler in this process.

A pass has one task for every block, then a tree of tasks that put their results
together in the order of the blocks. The result therefore does not depend on which
worker did what, or how often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, NoReturn

import dask
import dask.base
import numpy as np
from dask.delayed import Delayed

from .._system import one_blas_thread
from .checks import BadRowsError
from .dask_tasks import BlockInfo, task_of
from .progress import report_progress

# Results that one task puts together.
_FAN_IN = 8
# Blocks may fill this share of the memory of all workers: the rest is for the work on
# them.
_SHARE_OF_MEMORY = 0.5
# The status of a future whose result no worker has.
_LOST_STATUSES = ("cancelled", "error", "lost")


@dataclass(frozen=True)
class Workers:
    """The workers of a client, or Dask's scheduler in this process.

    ``client`` is a ``distributed.Client``; None: this process.
    """

    client: Any
    retries: int
    timeout: float | None

    def keep(self, tasks: list[Delayed]) -> list[Delayed]:
        """Have the workers compute tasks now, and hold the results for later tasks."""
        if self.client is None:
            return tasks
        # Weights and masks are part of the graph, which may therefore be large.
        # Scattered data would be lost with its worker.
        no_warning = {"distributed.admin.large-graph-warning-threshold": "1 TB"}
        with dask.config.set(no_warning):
            return list(self.client.persist(tasks, retries=self.retries))

    def has_kept(self, tasks: Sequence[Delayed]) -> bool:
        """Return whether no result that was to be kept is lost."""
        from distributed import futures_of

        futures = futures_of(tasks)
        return not any(future.status in _LOST_STATUSES for future in futures)

    def holds(self, source: Any, tasks: Sequence[Delayed]) -> bool:
        """Return whether the user has persisted an array with these tasks."""
        if self.client is None:
            return False
        from distributed import futures_of

        keys = {future.key for future in futures_of(source)}
        return all(task.key in keys for task in tasks)

    def has_room(self, n_bytes: float) -> bool:
        """Return whether the workers should keep this much; NaN: it is not known."""
        if self.client is None:
            return False
        limits = self.client.run_on_scheduler(_memory_limits)
        # Workers may still be on their way, or have no limit.
        if not limits or 0 in limits:
            return not np.isnan(n_bytes)
        return bool(n_bytes <= _SHARE_OF_MEMORY * sum(limits))

    def run(
        self,
        infos: Sequence[BlockInfo],
        tasks: Sequence[Delayed],
        join: Callable[[Any], Any],
    ) -> Any:
        """Return the results of one task for each block, put together in order."""
        total = _tree_of(tasks, join)
        if self.client is None:
            with one_blas_thread():
                # In a context of its own, a block that is summed in this thread reports
                # no progress.
                (result,) = Context().run(dask.compute, total)
            n_all = sum(info.n_rows or 0 for info in infos)
            report_progress(n_all, n_all or None)
            return result
        futures = self.client.compute([*tasks, total], retries=self.retries)
        try:
            self._wait(futures, infos)
            return futures[-1].result(timeout=self.timeout)
        except (Empty, TimeoutError):
            raise self._timeout_error(futures, infos) from None
        finally:
            # Tasks that are still waiting are cancelled by this.
            for future in futures:
                future.release()

    def _wait(self, futures: list[Any], infos: Sequence[BlockInfo]) -> None:
        """Wait for all futures, those of the blocks first; report their rows.

        Empty is raised if no task finishes within the time-out. (``as_completed`` of
        distributed limits the time of all tasks together.)
        """
        info_by_key = dict(zip([future.key for future in futures], infos, strict=False))
        n_all = sum(info.n_rows or 0 for info in infos)
        n_done = 0
        finished: SimpleQueue[Any] = SimpleQueue()
        for future in futures:
            future.add_done_callback(finished.put)
        # The workers may be threads of this process.
        with one_blas_thread():
            for _ in futures:
                future = finished.get(timeout=self.timeout)
                info = info_by_key.get(future.key)
                if future.status != "finished":
                    self._fail(future.exception(), (info or infos[0]).label)
                if info is not None:
                    n_done += info.n_rows or 0
                    report_progress(n_done, n_all or None)

    def _fail(self, error: BaseException, label: str) -> NoReturn:
        """Raise the error of a task; ours already name the block."""
        if isinstance(error, BadRowsError):
            raise error
        reason = f"{type(error).__name__}: {error}"
        message = f"{label} could not be read, after {self.retries} retries: {reason}"
        raise RuntimeError(message) from error

    def _timeout_error(
        self, futures: list[Any], infos: Sequence[BlockInfo]
    ) -> TimeoutError:
        labels = [*(info.label for info in infos), "sums"]
        pairs = zip(futures, labels, strict=True)
        waiting = [label for future, label in pairs if not future.done()]
        first = waiting[0] if waiting else "sums"
        return TimeoutError(
            f"No task was finished for {self.timeout:g} seconds (timeout). "
            f"{len(waiting)} are left for {len(self.client.nthreads())} workers, the "
            f"first reads {first}. A worker that hangs does nothing else until its "
            "task ends: client.restart() frees all workers. If blocks take longer "
            "than that, pass iclda.rows.from_dask(..., timeout=...)."
        )


def workers_of(client: Any, retries: int, timeout: float | None) -> Workers:
    """Return the workers of a client, or None: of what Dask would use."""
    if client is None:
        # The current scheduler is a method of the current client, if there is one.
        client = getattr(dask.base.get_scheduler(), "__self__", None)
    if client is not None and getattr(client, "asynchronous", True):
        raise TypeError(
            "client must be a distributed.Client that is not asynchronous, got "
            f"{type(client).__name__}: fit waits for the workers. Pass "
            "iclda.rows.from_dask(..., client=Client(..., asynchronous=False))."
        )
    return Workers(client, retries, timeout)


def _memory_limits(dask_scheduler: Any) -> list[float]:
    return [worker.memory_limit or 0 for worker in dask_scheduler.workers.values()]


def _tree_of(tasks: Sequence[Delayed], join: Callable[[Any], Any]) -> Delayed:
    """Return a tree of tasks that puts results together in their order.

    It depends on nothing but the number of results: sums round alike every time.
    """
    while True:
        groups = [tasks[i : i + _FAN_IN] for i in range(0, len(tasks), _FAN_IN)]
        tasks = [task_of(join, list(group)) for group in groups]
        if len(tasks) == 1:
            return tasks[0]
