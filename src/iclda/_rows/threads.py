"""Work on blocks of rows by several threads, with results in the order of the blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2  # results waiting for their turn, per thread; items read before they are needed
_PATIENCE = 0.1  # seconds after which a reader looks whether it is still needed
_FAREWELL = 1.0  # seconds that a consumer who stops waits for what is being read


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int
) -> Generator[Result, None, None]:
    """Results of a function of every item, in the order of the items.

    Sums of them therefore round alike for any number of threads. Only a few results wait at a time.
    """
    # BLAS threads within blocks would fight over the cores with these, and blocks are small.
    with blas_threads().limit(limits=1, user_api="blas"):
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
    """The same items, read by another thread while the last ones are being worked on.

    An error of the reader is raised here, after the items before it. A consumer that stops early
    stops the reader, which closes what it has open; without waiting long for a slow one, so
    that Ctrl-C returns promptly.
    """
    queue: Queue[tuple[bool, Any]] = Queue(AHEAD)
    is_stopped = Event()
    reader = Thread(target=_read, args=(items, queue, is_stopped), daemon=True)
    reader.start()
    try:
        while True:
            is_item, value = queue.get()
            if is_item:
                yield value
            elif value is None:
                return
            else:
                raise value
    finally:
        is_stopped.set()
        reader.join(_FAREWELL)


def _read(items: Iterator[Any], queue: Queue[tuple[bool, Any]], is_stopped: Event) -> None:
    last: tuple[bool, Any] = (False, None)
    try:
        for item in items:
            if not _put(queue, (True, item), is_stopped):
                break
            del item  # while the next one is read, this one is not held here too
    except BaseException as error:
        last = (False, error)
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()
    _put(queue, last, is_stopped)


def _put(queue: Queue[tuple[bool, Any]], message: tuple[bool, Any], is_stopped: Event) -> bool:
    """Whether the consumer still wants it."""
    while not is_stopped.is_set():
        try:
            queue.put(message, timeout=_PATIENCE)
        except Full:
            continue
        return True
    return False


@cache
def blas_threads() -> Any:
    """Whose ``limit`` sets the number of threads of BLAS in this process."""
    from threadpoolctl import ThreadpoolController  # looks through all loaded libraries: once

    return ThreadpoolController()
