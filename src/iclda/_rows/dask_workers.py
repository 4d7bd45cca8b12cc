"""Workers of Dask: what they do with one block of rows, and who runs tasks.

Only what the functions of blocks return leaves a worker.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import dask.base
import dask.threaded
import numpy as np

from .._core.labelsums import GivenLabels
from .._core.types import AnyArray, Array
from .._messages import Column, Text
from .base import (
    BadColumnError,
    BadRowsError,
    changed_error,
    check_finite,
    check_names,
    names_of_table,
)
from .memory import MemoryRows, concatenate
from .passes import one_blas_thread, report_progress

_HOLDING_SEED = 0
_OF_CLIENT = (None, "distributed", "dask.distributed")  # settings of Dask that mean the client
_ANSWER_S = 5.0  # seconds in which a scheduler answers
_SHARE_OF_MEMORY = 0.5  # of all workers, that blocks may fill: the rest is for the work on them

Drawn = tuple[AnyArray, AnyArray]  # indices of rows, and the rows
Graph = dict[Any, Any]
Infos = dict[Any, "BlockInfo"]  # of blocks, by the keys of their tasks


# Blocks.


class UnreadableBlockError(RuntimeError):
    """A block whose loader failed, named in the message."""


@dataclass(frozen=True)
class BlockInfo:
    """Which block it is, and what is known of it."""

    name: str  # of the argument
    i: int
    n_features: int | None
    n_rows: int | None = None  # once it was read
    begin: int = 0  # index of its first row among all
    names: tuple[str, ...] | None = None  # of the fit, which a table must have; until it was read

    @property
    def label(self) -> str:
        return f"{self.name}, block {self.i}"

    def check_finite(self, rows: AnyArray, positions: AnyArray | None = None) -> None:
        check_finite(rows, self.label, index=positions, where=" of the block")


@dataclass(frozen=True)
class Look:
    """A block that was read once: what must be alike in all blocks, and what a worker keeps."""

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    names: list[str] | None  # of the columns of a table
    held: Drawn | None = None  # some of its rows in random order
    rows: AnyArray | None = None  # all of them, if they are kept

    @property
    def n_bytes(self) -> int:
        return self.n_rows * self.n_features * self.dtype.itemsize

    def __sizeof__(self) -> int:  # by which workers manage their memory
        arrays = [*(self.held or ()), self.rows]
        return sum(array.nbytes for array in arrays if array is not None)


@dataclass(frozen=True)
class Chosen:
    """Weights and membership of the rows of one block, as sent: a bit, not a byte a row."""

    weights: Array | None
    bits: AnyArray | None
    n_rows: int

    @property
    def is_member(self) -> AnyArray | None:
        if self.bits is None:
            return None
        return np.unpackbits(self.bits, count=self.n_rows).astype(bool)


def call_unpickled(function: Callable[..., Any], settings: bytes, info: bytes, *args: Any) -> Any:
    """A function of inputs, with pickled settings, which schedulers do not search for keys."""
    return function(*args, info=pickle.loads(info), **pickle.loads(settings))


@dataclass(frozen=True)
class PickledLoader:
    """A loader that tasks unpickle: a worker that cannot would end, again and again."""

    data: bytes

    def __call__(self) -> Any:
        try:
            loader = pickle.loads(self.data)
        except ImportError as error:
            raise ImportError(
                f"{error}. Workers need the module that a loader comes from: install it where they "
                "run, or pass it to client.upload_file."
            ) from error
        return loader()


def load(block: Any, info: BlockInfo) -> Any:
    """A block as it is, or what its loader returns."""
    if isinstance(block, Look):
        return block.rows
    if not callable(block):
        return block
    try:
        return block()
    except Exception as error:
        raise UnreadableBlockError(
            f"{info.label} could not be read: {type(error).__name__}: {error}"
        ) from error


def read_block(block: Any, info: BlockInfo) -> AnyArray:
    """The rows of a block, checked against what is known."""
    block = load(block, info)
    rows = np.asarray(block)
    if rows.dtype == object and hasattr(block, "to_numpy"):
        # Nullable columns of pandas: numbers, with NaN for what is missing.
        with suppress(TypeError, ValueError):
            rows = np.asarray(block.to_numpy(dtype=np.float64, na_value=np.nan))
    if rows.size == 0 and rows.ndim != 2:
        rows = np.zeros((0, info.n_features or 0))
    if rows.ndim != 2:
        expected = "its" if info.n_features is None else info.n_features
        raise BadRowsError(
            f"{info.label} must be 2-d, rows x {expected} features, got shape {rows.shape}."
        )
    if len(rows) > 0 and info.n_features not in (None, rows.shape[1]):
        raise BadRowsError(
            f"{info.label} has {rows.shape[1]} columns, but X of fit has {info.n_features}."
        )
    found = names_of_table(block) if info.names is not None and len(rows) > 0 else None
    if info.names is not None and found is not None:
        way_out = "Have its loader return the columns in the order of feature_names_in_."
        check_names(found, info.names, info.label, way_out)
    if rows.dtype.kind not in "biuf":
        column = next((k for k, values in enumerate(rows.T) if not _is_numeric(values)), None)
        found_in = f"{info.label} holds {rows.dtype}"
        rule = (
            ": every column must hold real numbers, of a NumPy dtype. Convert it, or leave it out."
        )
        if column is None:
            raise BadRowsError(found_in + rule)
        raise BadColumnError(Text(found_in, ", first in ", Column(column), rule), column=column)
    if info.n_rows not in (None, len(rows)):
        raise changed_error(info.label, f"it has {len(rows)} rows, and had {info.n_rows}")
    return rows


def _is_numeric(values: AnyArray) -> bool:
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def look(block: Any, *, info: BlockInfo, n_held: int, is_kept: bool) -> Look:
    """Read a block for the first time; keep it, or ``n_held`` of its rows."""
    block = load(block, info)
    rows = read_block(block, info)
    held = None
    if n_held > 0:
        rng = np.random.default_rng([_HOLDING_SEED, info.i])
        # Unsorted: any first few of them are a sample, too.
        index = rng.choice(len(rows), min(n_held, len(rows)), replace=False)
        held = index, rows[index]
    kept = rows if is_kept else None
    return Look(len(rows), rows.shape[1], rows.dtype, names_of_table(block), held, kept)


def strip(look: Look, *, info: BlockInfo) -> list[Look]:
    """What was seen of one block, without its rows."""
    return [replace(look, held=None, rows=None)]


def join_lists(parts: Sequence[list[Any]]) -> list[Any]:
    return [result for part in parts for result in part]


def sums_of(
    block: Any,
    chosen: Chosen | None,
    *,
    info: BlockInfo,
    method: str,
    arguments: dict[str, Any],
    n_threads: int,
) -> Any:
    """Moments, label sums or responsibilities of one block, by the method of its rows."""
    rows = read_block(block, info)
    rule = arguments.get("rule")
    if isinstance(rule, GivenLabels):
        labels = rule.labels[info.begin : info.begin + len(rows)]
        arguments = {**arguments, "rule": replace(rule, labels=labels)}
    if arguments.get("near") is not None:
        arguments = {**arguments, "near": replace(arguments["near"], begin=info.begin)}
    weights, is_member = (None, None) if chosen is None else (chosen.weights, chosen.is_member)
    with np.errstate(over="ignore", invalid="ignore"):
        members = MemoryRows(rows, weights, is_member, n_threads=n_threads)
        found = getattr(members, method)(**arguments)
    if method == "responsibilities":
        return [found]
    # NaN and infinity show in the sums: rows are searched for them only then.
    if not all(np.isfinite(value).all() for value in vars(found).values() if value is not None):
        info.check_finite(rows)
    return found


def take(block: Any, positions: AnyArray, *, info: BlockInfo) -> list[Drawn]:
    """Rows of one block."""
    rows = read_block(block, info)[positions]
    info.check_finite(rows, positions)
    return [(info.begin + positions, rows)]


def take_held(looked: Look, chosen: Chosen | None, n: int, *, info: BlockInfo) -> list[Drawn]:
    """The first ``n`` members among the rows that were kept, in the order of the block."""
    assert looked.held is not None
    positions, rows = looked.held
    is_member = None if chosen is None else chosen.is_member
    kept = np.arange(len(positions)) if is_member is None else np.flatnonzero(is_member[positions])
    kept = kept[:n][np.argsort(positions[kept[:n]])]
    info.check_finite(rows[kept], positions[kept])
    return [(info.begin + positions[kept], rows[kept])]


def apply_to_block(
    block: Any,
    *,
    block_id: tuple[int, ...],
    info: BlockInfo,
    function: Callable[[Any], Any],
    none: Any,
) -> Any:
    """Results of a function of the rows of one block; ``none``: those of no rows."""
    info = replace(info, i=block_id[0])
    rows = read_block(block, info)
    info.check_finite(rows)
    return concatenate([none, *(function(part) for part, _, _ in MemoryRows(rows).blocks())])


# Workers.


class Local:
    """Dask's scheduler in this process, as configured: threads by default."""

    client = None

    def keep(self, graph: Graph, keys: list[Any]) -> list[Any]:
        """What tasks take for these keys, which are computed once and held where they were made."""
        compute = dask.base.get_scheduler() or dask.threaded.get
        with one_blas_thread():
            # A context of its own: blocks that are summed in this thread report no progress.
            return list(Context().run(compute, graph, keys))

    def has_room(self, n_bytes: float) -> bool:
        """Whether to hold so much unless ``persist`` is given."""
        return False

    def run(self, graph: Graph, infos: Infos, total: Any) -> Any:
        """The value of the key ``total``, which is made of those of the blocks."""
        (result,) = self.keep(graph, [total])
        report = _reporter(infos)
        for key in infos:
            report(key)
        return result


class Cluster:
    """The workers of a ``distributed`` client."""

    def __init__(self, client: Any, retries: int, timeout: float | None) -> None:
        self.client = client
        self._retries = retries
        self._timeout = timeout

    def keep(self, graph: Graph, keys: list[Any]) -> list[Any]:
        # Weights and masks are part of the graph: what is scattered is lost with its worker.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return list(self.client.get(graph, keys, sync=False, retries=self._retries))

    def has_room(self, n_bytes: float) -> bool:
        limits = self._query(_memory_limits)
        if not limits or 0 in limits:  # workers to come, or without a limit
            return True
        return n_bytes <= _SHARE_OF_MEMORY * float(sum(limits))

    def run(self, graph: Graph, infos: Infos, total: Any) -> Any:
        futures = self.client.get(graph, [*infos, total], sync=False, retries=self._retries)
        done: SimpleQueue[Any] = SimpleQueue()
        report = _reporter(infos)
        try:
            for future in futures:
                future.add_done_callback(done.put)
            with one_blas_thread():  # the workers may be threads of this process
                for _ in futures:
                    future = done.get(timeout=self._timeout)
                    if future.status != "finished":
                        self._fail(future, _first_label([future.key], infos))
                    if future.key in infos:
                        report(future.key)
            return futures[-1].result(timeout=self._timeout)
        except (Empty, TimeoutError):
            raise TimeoutError(self._delay(futures, infos)) from None
        finally:
            if waiting := [future for future in futures if not future.done()]:
                self._attempt(self.client.cancel, waiting)

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
            raise copy(error) from error
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

    def _delay(self, futures: Sequence[Any], infos: Infos) -> str:
        waiting = [future.key for future in futures if not future.done()]
        state = self._query(_state_of, keys=waiting) or "the scheduler does not answer"
        first = _first_label(waiting, infos)
        return (
            f"No task was finished for {self._timeout:g} seconds (timeout). {len(waiting)} are "
            f"left, the first reads {first}; {state}. A task that has begun cannot be taken "
            "back, and its worker does nothing else until it ends: client.restart() frees all "
            "workers, client.restart_workers([...]) those that hang. If blocks take longer than "
            "that, pass iclda.rows.from_dask(..., timeout=...)."
        )

    def _query(self, function: Callable[..., Any], **arguments: Any) -> Any:
        """The result of a function on the scheduler; None if it does not answer soon."""
        return self._attempt(self.client.run_on_scheduler, function, **arguments)

    def _attempt(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        # The error of a client or scheduler that is gone shows when there is work to do.
        with suppress(Exception):
            call = partial(method, *arguments, **named)
            return self.client.sync(call, callback_timeout=_ANSWER_S)


Workers = Local | Cluster


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


def _reporter(infos: Infos) -> Callable[[Any], None]:
    """What to call with the key of every block that is done."""
    n_done, n_all = 0, sum(info.n_rows or 0 for info in infos.values())

    def report(key: Any) -> None:
        nonlocal n_done
        n_done += infos[key].n_rows or 0
        report_progress(n_done, n_all or None)

    return report


def _first_label(keys: Sequence[Any], infos: Infos) -> str:
    """What the first of these tasks reads; sums read nothing, and stand for the first block."""
    return next((infos[key] for key in keys if key in infos), next(iter(infos.values()))).label


def _memory_limits(dask_scheduler: Any) -> list[float]:
    return [worker.memory_limit or 0 for worker in dask_scheduler.workers.values()]


def _state_of(dask_scheduler: Any, keys: Sequence[Any]) -> str:
    """How many workers work on the keys, or on their dependencies, as a phrase."""
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
