"""Rows, wherever they are: what a backend supplies, and what backends share.

A backend is a module of this folder with the two functions of ``Backend``. Backends share the base
class of their rows, threads that work on blocks in order, and reports of progress.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from .._core import AnyArray, Array
from .._core.frame import Frame
from .._core.labelsums import Rule
from .._core.rows import Rows
from .._system import one_blas_thread
from .backends import (
    Members,
    Request,
    UnitLength,
    Weights,
    name_of_backend,
    package_and_type,
)

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = (
    2  # results waiting for their turn, per thread; items read before they are needed
)


class Backend(Protocol):
    def open_rows(
        self,
        X: Any,
        request: Request,
        weights: Weights = None,
        is_member: Members = None,
    ) -> WeightedRows:
        """Return the rows of a source, or those that ``is_member`` marks. Reads little or nothing.

        Beyond the types, callers rely on this:

        - ``sample(n, seed)`` with n >= ``n_rows`` gives all members, in their order, with their own
          weights: labeled rows are taken into memory this way.
        - NaN and infinity raise a ValueError that names row or block, and column, when they are
          first read. Rows that a fit does not read (unlabeled ones, in ``SupervisedLDA``) are
          checked only if the backend has ``check_finite``.
        - A pass calls ``report_progress`` after every few ten thousand rows, in the thread
          of the caller, who counts the passes.
        - If rows must be read to be counted, ``n_rows`` may be an upper bound until the first
          pass, but it is 0 after a sample without rows; ``count()`` is exact.
        """
        ...

    def apply_to_rows(
        self, X: Any, function: Callable[[Any], Any], request: Request
    ) -> Any:
        """Return the results of a function of (n, d) rows, n entries for n rows, in their order.

        The request is that of a fitted classifier: it has ``n_features``.
        """
        ...


def backend_of(X: Any) -> Backend | None:
    """Return the module that reads X; None for what is an array, or can be made one, in memory."""
    name = name_of_backend(X)
    if name is not None:
        return cast(Backend, import_module(f".{name}", __name__))
    if hasattr(X, "shape") and not (hasattr(X, "__array__") or hasattr(X, "toarray")):
        raise TypeError(
            f"Rows of the type {'.'.join(package_and_type(X))} are not read: pass a NumPy array, "
            "or iclda.rows.from_batches with a function that yields arrays of some rows each."
        )
    return None


class WeightedRows(Rows):
    """Membership and weights of rows, and samples of them.

    A backend supplies the sums of ``Rows`` and ``_rows_at``, or ``_draw`` if it has a cheaper way
    to some rows.
    """

    n_features: int = 0
    feature_names: Sequence[str] | None = None
    source: Any = None  # what to open in place of X from now on; None: X
    unit: UnitLength | None = None  # how rows are scaled as they are read
    held_at: Any = None  # see ``Rows``

    def __init__(
        self,
        n_all: int | None,
        n_features: int,
        weights: Weights = None,
        is_member: Members = None,
    ) -> None:
        is_partial = is_member is not None and not is_member.all()
        self.n_features = n_features
        self._weights = weights
        self._is_member = is_member if is_partial else None
        # None: not known before the first pass.
        self._n_rows = n_all if is_member is None else int(is_member.sum())

    @property
    def n_rows(self) -> int:
        assert self._n_rows is not None
        return self._n_rows

    def count(self) -> int:
        """Return the exact number of rows; read them if it is not known otherwise."""
        return self.n_rows

    def check_finite(self) -> None:
        """Raise ValueError for NaN or infinity, where rows are at hand and need not be read."""

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        """Raise NotImplementedError where rows have to be read."""
        raise NotImplementedError

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        rows, index = self._draw(n, seed)
        rows = np.asarray(rows, dtype=np.float64)
        if self.unit is not None:
            rows = self.unit(rows)
        if self._weights is None:
            weights = np.ones(len(rows))
            total = float(len(rows) if self._n_rows is None else self._n_rows)
        else:
            weights, total = self._weights[index], self._total_weight()
        drawn = float(weights.sum())
        return rows, weights * (total / drawn) if drawn > 0 else weights

    def _draw(self, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
        """Return at most ``n`` rows and their indices, which ascend."""
        index = self._random_members(n, seed)
        return self._rows_at(index), index

    def _rows_at(self, index: AnyArray) -> AnyArray:
        raise NotImplementedError

    def _random_members(self, n: int, seed: int) -> AnyArray:
        if n >= self.n_rows:
            return self._members
        index = np.sort(
            np.random.default_rng(seed).choice(self.n_rows, n, replace=False)
        )
        return index if self._is_member is None else self._members[index]

    @property
    def _members(self) -> AnyArray:
        """Indices of all members."""
        if self._is_member is None:
            return np.arange(self.n_rows)
        return np.flatnonzero(self._is_member)

    def _members_within(self, begin: int, end: int) -> slice | AnyArray:
        """Return positions, counted from ``begin``, of the members among these rows."""
        if self._is_member is None:
            return slice(0, end - begin)
        return np.flatnonzero(self._is_member[begin:end])

    def _total_weight(self) -> float:
        if self._weights is None:
            return float(self.n_rows)
        members = slice(None) if self._is_member is None else self._is_member
        return float(self._weights[members].sum())


# Threads.


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int
) -> Generator[Result, None, None]:
    """Yield the results of a function of every item, in the order of the items.

    Sums of them therefore round alike for any number of threads. Only a few results wait at a time.
    """
    with one_blas_thread():
        if n_threads == 1:
            yield from map(function, items)
            return
        waiting: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(n_threads) as pool:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > AHEAD * n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()


def read_ahead(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Yield the same items, read by another thread while the last ones are being processed.

    An error of the reader is raised here, after the items before it. A consumer that stops early
    does not wait for a slow reader, so that Ctrl-C returns promptly; what it has open is closed
    once it is done.
    """
    pool, end = ThreadPoolExecutor(1), object()
    waiting = deque(pool.submit(next, items, end) for _ in range(AHEAD + 1))
    try:
        while (item := waiting.popleft().result()) is not end:
            waiting.append(pool.submit(next, items, end))
            yield cast(Item, item)
            del item  # not held here while the next one is awaited
    finally:
        for future in waiting:
            future.cancel()
        pool.submit(getattr(items, "close", lambda: None))
        pool.shutdown(wait=False)


# Progress.

# Index of the pass; rows done; rows in all, None if that is not known yet.
Callback = Callable[[int, int, "int | None"], None]


_listeners: ContextVar[tuple[Callback, ...]] = ContextVar("_listeners", default=())
# Backends do not count passes. 0: before the first pass; None: nothing is reported.
_n_pass: ContextVar[int | None] = ContextVar("_n_pass", default=0)


@contextmanager
def _bound(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def listen(callback: Callback) -> AbstractContextManager[None]:
    """Have passes of this thread call ``callback``, beside those of surrounding blocks."""
    return _bound(_listeners, (*_listeners.get(), callback))


def unreported() -> AbstractContextManager[None]:
    """Report no pass within this block."""
    return _bound(_listeners, ())


def report_as(n_pass: int | None) -> AbstractContextManager[None]:
    """Report what is read here as this pass; None: report nothing."""
    return _bound(_n_pass, n_pass)


def report_progress(n_done: int, n_all: int | None) -> None:
    """Call all listeners. A backend does so every few ten thousand rows, in the thread of fit."""
    n_pass = _n_pass.get()
    if n_pass is None:
        return
    for callback in _listeners.get():
        callback(n_pass, n_done, n_all)
