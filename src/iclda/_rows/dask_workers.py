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
from .._core.types import AnyArray
from .base import (
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
Chosen = tuple["AnyArray | None", "AnyArray | None"]  # weights and membership of rows of a block
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
    names: AnyArray | None = None  # of the fit, which a table must have

    @property
    def label(self) -> str:
        return f"{self.name}, block {self.i}"


@dataclass(frozen=True)
class Look:
    """What was seen of a block: what must be alike in all blocks, and some of its rows."""

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    names: list[str] | None  # of the columns of a table
    held: Drawn  # positions in the block, in random order, and rows

    @property
    def n_bytes(self) -> int:
        return self.n_rows * self.n_features * self.dtype.itemsize


@dataclass(frozen=True)
class KeptBlock:
    """A block on the worker that keeps it."""

    rows: AnyArray
    names: list[str] | None

    def __sizeof__(self) -> int:  # by which workers manage their memory
        return self.rows.nbytes


def call_unpickled(function: Callable[..., Any], settings: bytes, info: bytes, *args: Any) -> Any:
    """Call a function with pickled settings, which schedulers do not search for keys."""
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


def _load(block: Any, info: BlockInfo) -> Any:
    """Return a block as it is, or what its loader returns."""
    if not callable(block):
        return block
    try:
        return block()
    except Exception as error:
        raise UnreadableBlockError(
            f"{info.label} could not be read: {type(error).__name__}: {error}"
        ) from error


def read_block(block: Any, info: BlockInfo) -> tuple[AnyArray, list[str] | None]:
    """Return rows and names of columns of a block or loader; checks what is known."""
    if isinstance(block, KeptBlock):
        return block.rows, block.names
    block = _load(block, info)
    rows, names = np.asarray(block), names_of_table(block)
    if rows.dtype == object and hasattr(block, "to_numpy"):
        # Nullable columns of pandas: numbers, with NaN for what is missing.
        with suppress(TypeError, ValueError):
            rows = np.asarray(block.to_numpy(dtype=np.float64, na_value=np.nan))
    if rows.size == 0:
        return np.zeros((0, info.n_features or 0)), names
    if rows.ndim != 2:
        raise BadRowsError(f"{info.label} must be 2-d, rows x features, got shape {rows.shape}.")
    if info.n_features not in (None, rows.shape[1]):
        raise BadRowsError(
            f"{info.label} has {rows.shape[1]} columns, but X of fit has {info.n_features}."
        )
    if info.names is not None and names is not None:
        way_out = "Have its loader return the columns in the order of feature_names_in_."
        check_names(names, info.names, info.label, way_out)
    if rows.dtype.kind not in "biuf":
        raise BadRowsError(
            f"{info.label} holds {rows.dtype}: every column must hold real numbers, of a NumPy "
            "dtype. Convert the others, or leave them out."
        )
    if info.n_rows not in (None, len(rows)):
        raise changed_error(info.label, f"it has {len(rows)} rows, and had {info.n_rows}")
    return rows, names


def rows_of(block: Any, info: BlockInfo) -> AnyArray:
    """Return the rows of a block."""
    return read_block(block, info)[0]


def _check_rows(
    rows: AnyArray, names: list[str] | None, info: BlockInfo, positions: AnyArray | None = None
) -> None:
    check_finite(rows, info.label, names, index=positions, where=" of the block")


def look(block: Any, *, info: BlockInfo, n_held: int) -> list[Look]:
    """Describe a block, and draw ``n_held`` of its rows."""
    rows, names = read_block(block, info)
    rng = np.random.default_rng([_HOLDING_SEED, info.i])
    # Unsorted: any first few of them are a sample, too.
    positions = rng.choice(len(rows), min(n_held, len(rows)), replace=False)
    _check_rows(rows[positions], names, info, positions)
    return [Look(len(rows), rows.shape[1], rows.dtype, names, (positions, rows[positions]))]


def keep_block(block: Any, *, info: BlockInfo) -> KeptBlock:
    return KeptBlock(*read_block(block, info))


def keep_chosen(weights: AnyArray | None, is_member: AnyArray | None) -> Chosen:
    """Keep weights and membership of the rows of a block on a worker."""
    return weights, is_member


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
    """Return moments or label sums of one block, by the method of its rows."""
    rows, names = read_block(block, info)
    rule = arguments.get("rule")
    if isinstance(rule, GivenLabels):
        labels = rule.labels[info.begin : info.begin + len(rows)]
        arguments = {**arguments, "rule": replace(rule, labels=labels)}
    if arguments.get("near") is not None:
        arguments = {**arguments, "near": replace(arguments["near"], begin=info.begin)}
    with np.errstate(over="ignore", invalid="ignore"):
        members = MemoryRows(rows, *(chosen or (None, None)), n_threads=n_threads)
        sums = getattr(members, method)(**arguments)
    # NaN and infinity show in the sums: rows are searched for them only then.
    if not all(np.isfinite(value).all() for value in vars(sums).values() if value is not None):
        _check_rows(rows, names, info)
    return sums


def take(block: Any, positions: AnyArray, *, info: BlockInfo) -> list[Drawn]:
    """Return rows of one block."""
    rows, names = read_block(block, info)
    _check_rows(rows[positions], names, info, positions)
    return [(info.begin + positions, rows[positions])]


def apply_to_block(
    block: Any,
    *,
    block_id: tuple[int, ...],
    info: BlockInfo,
    function: Callable[[Any], Any],
    none: Any,
) -> Any:
    """Return the results of a function of the rows of one block; ``none``: those of no rows."""
    info = replace(info, i=block_id[0])
    rows, names = read_block(block, info)
    _check_rows(rows, names, info)
    return concatenate([none, *(function(part) for part, _, _ in MemoryRows(rows).blocks())])


# Workers.


class Local:
    """Dask's scheduler in this process, as configured: threads by default."""

    client = None

    def keep(self, graph: Graph, keys: list[Any]) -> list[Any]:
        """Return what tasks take for these keys: computed once, and held where they were made."""
        compute = dask.base.get_scheduler() or dask.threaded.get
        with one_blas_thread():
            # A context of its own: blocks that are summed in this thread report no progress.
            return list(Context().run(compute, graph, keys))

    def has_room(self, n_bytes: float) -> bool:
        """Whether to hold so much unless ``persist`` is given."""
        return False

    def run(self, graph: Graph, infos: Infos, total: Any) -> Any:
        """Return the value of the key ``total``, which is made of those of the blocks."""
        (result,) = self.keep(graph, [total])
        n_all = _count_rows(infos)
        report_progress(n_all, n_all or None)
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
        limits = self._attempt(self.client.run_on_scheduler, _memory_limits)
        if not limits or 0 in limits:  # workers to come, or without a limit
            return True
        return n_bytes <= _SHARE_OF_MEMORY * float(sum(limits))

    def run(self, graph: Graph, infos: Infos, total: Any) -> Any:
        futures = self.client.get(graph, [*infos, total], sync=False, retries=self._retries)
        done: SimpleQueue[Any] = SimpleQueue()
        n_done, n_all = 0, _count_rows(infos)
        try:
            for future in futures:
                future.add_done_callback(done.put)
            with one_blas_thread():  # the workers may be threads of this process
                for _ in futures:
                    future = done.get(timeout=self._timeout)
                    if future.status != "finished":
                        self._fail(future, _first_label([future], infos))
                    if future.key in infos:
                        n_done += infos[future.key].n_rows or 0
                        report_progress(n_done, n_all or None)
            return futures[-1].result(timeout=self._timeout)
        except (Empty, TimeoutError):
            waiting = [future for future in futures if not future.done()]
            raise TimeoutError(
                f"No task was finished for {self._timeout:g} seconds (timeout). {len(waiting)} are "
                f"left, the first reads {_first_label(waiting, infos)}. A worker that hangs does "
                "nothing else until its task ends: client.restart() frees all workers. If blocks "
                "take longer than that, pass iclda.rows.from_dask(..., timeout=...)."
            ) from None
        finally:
            if waiting := [future for future in futures if not future.done()]:
                self._attempt(self.client.cancel, waiting)

    def _fail(self, future: Any, where: str) -> None:
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
        raise RuntimeError(
            f"{where} could not be read, after {self._retries} retries: "
            f"{type(error).__name__}: {error}"
        ) from error

    def _attempt(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Return a result of the scheduler; None if it does not answer soon.

        The error of a client or scheduler that is gone shows when there is work to do.
        """
        with suppress(Exception):
            return self.client.sync(partial(method, *arguments), callback_timeout=_ANSWER_S)


Workers = Local | Cluster


def workers_of(client: Any, retries: int, timeout: float | None) -> Workers:
    """Return the workers of this client; None: of the one that Dask would use, or this process."""
    client = _current_client() if client is None else client
    if client is None:
        return Local()
    if client.asynchronous:
        raise TypeError(
            "fit waits for the workers, which an asynchronous Dask client cannot: pass "
            "iclda.rows.from_dask(..., client=Client(..., asynchronous=False))."
        )
    return Cluster(client, retries, timeout)


def _current_client() -> Any:
    if "distributed" not in sys.modules or dask.config.get("scheduler", None) not in _OF_CLIENT:
        return None
    from distributed import get_client

    with suppress(ValueError):
        return get_client()


def _count_rows(infos: Infos) -> int:
    return sum(info.n_rows or 0 for info in infos.values())


def _first_label(futures: Sequence[Any], infos: Infos) -> str:
    """Return what the first of these tasks reads; for sums, which read nothing, the first block."""
    known = [infos[future.key] for future in futures if future.key in infos]
    return [*known, *infos.values()][0].label


def _memory_limits(dask_scheduler: Any) -> list[float]:
    return [worker.memory_limit or 0 for worker in dask_scheduler.workers.values()]
