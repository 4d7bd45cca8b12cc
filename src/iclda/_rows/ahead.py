"""Work on blocks of rows by several threads, with results in the order of the blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 2  # results waiting for their turn, per thread


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int
) -> Iterator[Result]:
    """Results of a function of every item, in the order of the items.

    Sums of them therefore round alike for any number of threads. Only a few results wait at a time.
    """
    # BLAS threads within blocks would fight over the cores with these, and blocks are small.
    with _blas_threads().limit(limits=1, user_api="blas"):
        if n_threads == 1:
            yield from map(function, items)
            return
        waiting: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(n_threads) as pool:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > _AHEAD * n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()


@cache
def _blas_threads() -> Any:
    from threadpoolctl import ThreadpoolController  # looks through all loaded libraries: once

    return ThreadpoolController()
