"""Threads that work on blocks in order, and one that reads ahead of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar, cast

from .._system import one_blas_thread

Item = TypeVar("Item")
Result = TypeVar("Result")

# Results that may wait for their turn, per thread, and items read before they are
# needed.
ITEMS_AHEAD = 2


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int
) -> Generator[Result, None, None]:
    """Yield the results of a function of every item, in the order of the items.

    Since the order is fixed, sums of the results round alike for any number of threads.
    Only a few results wait at a time.
    """
    with one_blas_thread():
        if n_threads == 1:
            yield from map(function, items)
            return
        waiting: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(n_threads) as pool:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > ITEMS_AHEAD * n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()


def read_ahead(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Yield the items, read by another thread while earlier ones are being processed.

    An error of the reader is raised here, after the items before it. A consumer that
    stops early does not wait for a slow reader, so that Ctrl-C returns promptly; the
    reader is closed once its current item is done.
    """
    end = object()
    pool = ThreadPoolExecutor(1)
    waiting = deque(pool.submit(next, items, end) for _ in range(ITEMS_AHEAD + 1))
    try:
        while (item := waiting.popleft().result()) is not end:
            waiting.append(pool.submit(next, items, end))
            yield cast(Item, item)
            # Do not keep the item alive while waiting for the next one.
            del item
    finally:
        for future in waiting:
            future.cancel()
        if hasattr(items, "close"):
            pool.submit(items.close)
        pool.shutdown(wait=False)
