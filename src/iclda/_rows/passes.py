"""What passes over rows share: threads that work on blocks in order, and reports of progress."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from threading import current_thread, main_thread
from typing import Any, TypeVar, cast

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2  # results waiting for their turn, per thread; items read before they are needed
_SMALL = 1_000  # features: a matrix of 384 was solved in 8 ms, on two threads of busy cores in 740


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


def one_blas_thread() -> Any:
    """Return a context in which BLAS has one thread: blocks are summed by threads already.

    Whoever starts threads opens it around them: the last one to leave must not leave it changed.
    """
    return _blas_threads().limit(limits=1, user_api="blas")


def one_thread_if_small(n_features: int) -> Any:
    """Return a context for many fits: small matrices take longer on several BLAS threads.

    Limits of BLAS hold for all threads of a process, so that only the main thread sets them.
    """
    is_limited = n_features <= _SMALL and current_thread() is main_thread()
    return one_blas_thread() if is_limited else nullcontext()


@cache
def _blas_threads() -> Any:
    from threadpoolctl import ThreadpoolController  # inspects all loaded libraries: once

    return ThreadpoolController()


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
