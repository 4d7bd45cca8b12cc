"""Who runs the tasks of a pass: the workers of a cluster or, without one, Dask in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import dask.base
import dask.threaded

from ..base import BadRowsError
from ..threads import blas_threads
from .blocks import UnreadableBlockError

_OF_CLIENT = (None, "distributed", "dask.distributed")  # settings of Dask that mean the client
_PATIENCE = 5.0  # seconds in which a scheduler answers questions
_SHARE_OF_MEMORY = 0.5  # of all workers, that blocks may fill: the rest is for the work on them

Graph = dict[Any, Any]
Named = Callable[[int], str]  # number of a key -> what it reads, in words
OnDone = Callable[[int], None]  # called with the number of every key that is done


class Workers(Protocol):
    """Who computes keys of a graph."""

    @property
    def client(self) -> Any: ...

    def keep(self, graph: Graph, keys: list[Any]) -> list[Any]:
        """What tasks take for these keys, which are computed once and held where they were made."""
        ...

    def has_room(self, n_bytes: float) -> bool:
        """Whether to hold so much without being asked to."""
        ...

    def run(self, graph: Graph, keys: list[Any], total: Any, named: Named, on_done: OnDone) -> Any:
        """The value of ``total``, which is made of ``keys``."""
        ...


class Local:
    """Dask's scheduler in this process, as configured: threads by default."""

    client = None

    def keep(self, graph: Graph, keys: list[Any]) -> list[Any]:
        compute = dask.base.get_scheduler() or dask.threaded.get
        with _one_blas_thread():
            # A context of its own: blocks that are summed in this thread report no progress.
            return list(Context().run(compute, graph, keys))

    def has_room(self, n_bytes: float) -> bool:
        return False

    def run(self, graph: Graph, keys: list[Any], total: Any, named: Named, on_done: OnDone) -> Any:
        (result,) = self.keep(graph, [total])
        for k in range(len(keys)):
            on_done(k)
        return result


class Cluster:
    """The workers of a ``distributed`` client."""

    def __init__(self, client: Any, retries: int, timeout: float | None) -> None:
        self.client = client
        self._retries = retries
        self._timeout = timeout

    def keep(self, graph: Graph, keys: list[Any]) -> list[Any]:
        # Weights and masks travel within the graph: what was sent apart is lost with its worker.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return list(self.client.get(graph, keys, sync=False, retries=self._retries))

    def has_room(self, n_bytes: float) -> bool:
        limits = self._ask(_memory_limits)
        if not limits or 0 in limits:  # workers to come, or without a limit
            return True
        return n_bytes <= _SHARE_OF_MEMORY * float(sum(limits))

    def run(self, graph: Graph, keys: list[Any], total: Any, named: Named, on_done: OnDone) -> Any:
        futures = self.client.get(graph, [*keys, total], sync=False, retries=self._retries)
        number = {key: k for k, key in enumerate(keys)}
        done: SimpleQueue[Any] = SimpleQueue()
        try:
            for future in futures:
                future.add_done_callback(done.put)
            with _one_blas_thread():  # the workers may be threads of this process
                for _ in futures:
                    self._check(done.get(timeout=self._timeout), number, named, on_done)
            return futures[-1].result(timeout=self._timeout)
        except (Empty, TimeoutError):
            raise TimeoutError(self._delay(futures, number, named)) from None
        finally:
            self._give_up([future for future in futures if not future.done()])

    def _check(self, future: Any, number: dict[Any, int], named: Named, on_done: OnDone) -> None:
        k = number.get(future.key)
        if future.status != "finished":
            self._fail(future, named(k or 0))
        elif k is not None:
            on_done(k)

    def _fail(self, future: Any, where: str) -> None:
        from distributed import KilledWorker

        if future.status != "error":
            raise RuntimeError(
                f"{where} was not read: the Dask client was closed, or lost its scheduler. Fit "
                "again with a client that is connected."
            )
        error = future.exception()
        if isinstance(error, (BadRowsError, UnreadableBlockError)):
            # A copy: the client keeps the original, and with a traceback through here it would
            # keep these futures, and the workers their blocks, as long as it lives.
            raise type(error)(*error.args) from error
        if isinstance(error, KilledWorker):
            raise RuntimeError(
                f"{where} could not be read: every worker that tried died, the last one was "
                f"{error.last_worker.address}. If memory ran out, cut the rows into smaller blocks "
                "or give the workers more."
            ) from error
        raise RuntimeError(
            f"{where} could not be read, after {self._retries} retries: "
            f"{type(error).__name__}: {error}"
        ) from error

    def _delay(self, futures: Sequence[Any], number: dict[Any, int], named: Named) -> str:
        waiting = [future.key for future in futures if not future.done()]
        state = self._ask(_state_of, keys=waiting) or "the scheduler does not answer"
        first = next((number[key] for key in waiting if key in number), 0)
        return (
            f"No task was finished for {self._timeout:g} seconds (timeout). {len(waiting)} are "
            f"left, the first reads {named(first)}; {state}. A task that has begun cannot be taken "
            "back, and its worker does nothing else until it ends: client.restart() frees all "
            "workers, client.restart_workers([...]) those that hang. If blocks take longer than "
            "that, pass iclda.rows.from_dask(..., timeout=...)."
        )

    def _ask(self, question: Callable[..., Any], **arguments: Any) -> Any:
        """The scheduler's answer; None if it does not come soon."""
        call = partial(self.client.run_on_scheduler, question, **arguments)
        try:
            return self.client.sync(call, callback_timeout=_PATIENCE)
        except Exception:  # the underlying error shows when there is work to do
            return None

    def _give_up(self, futures: list[Any]) -> None:
        if not futures:
            return
        with suppress(Exception):  # of a client or scheduler that is gone: so are the tasks
            self.client.sync(partial(self.client.cancel, futures), callback_timeout=_PATIENCE)


def workers_of(client: Any, retries: int, timeout: float | None) -> Workers:
    """The workers of this client; None: of the one that Dask would use, or this process."""
    client = _current_client() if client is None else client
    if client is None:
        return Local()
    if client.asynchronous:
        raise TypeError(
            "fit waits for the workers, which an asynchronous Dask client cannot: pass "
            "iclda.rows.from_dask(..., client=Client(..., asynchronous=False))."
        )
    if client.status in ("closing", "closed"):
        raise RuntimeError(
            "The Dask client is closed, and the rows are to be read by its workers: make a new one "
            "(distributed.Client), and pass it as iclda.rows.from_dask(..., client=...)."
        )
    return Cluster(client, retries, timeout)


def _current_client() -> Any:
    if "distributed" not in sys.modules or dask.config.get("scheduler", None) not in _OF_CLIENT:
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def _one_blas_thread() -> Any:
    # Blocks are summed with one BLAS thread each; where several threads change that setting at
    # the same time, the last one to leave must not leave it changed.
    return blas_threads().limit(limits=1, user_api="blas")


def _memory_limits(dask_scheduler: Any) -> list[float]:
    return [worker.memory_limit or 0 for worker in dask_scheduler.workers.values()]


def _state_of(dask_scheduler: Any, keys: Sequence[Any]) -> str:
    """Which workers work on the keys, or on what these need, in words."""
    n_workers = len(dask_scheduler.workers)
    if n_workers == 0:
        return "the cluster has no workers"
    tasks = [dask_scheduler.tasks[key] for key in keys if key in dask_scheduler.tasks]
    seen = set(tasks)
    for task in tasks:  # which grows by what is needed
        needed = [other for other in task.dependencies if other not in seen]
        seen.update(needed)
        tasks += needed
    busy = sorted({task.processing_on.address for task in tasks if task.processing_on})
    names = f": {', '.join(busy[:8])}" if busy else ""
    return f"{len(busy)} of {n_workers} workers are at work on them{names}"
