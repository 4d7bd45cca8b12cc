"""How far a pass over many rows is, told to whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Result = TypeVar("Result")

# Number of the pass, from 1; rows done; rows in all, None if that is not known yet.
Callback = Callable[[int, int, "int | None"], None]

_listeners: ContextVar[tuple[Callback, ...]] = ContextVar("_listeners", default=())


@contextmanager
def listening(callback: Callback) -> Iterator[None]:
    """Have passes of this thread call ``callback``; those within one another all are called."""
    token = _listeners.set((*_listeners.get(), callback))
    try:
        yield
    finally:
        _listeners.reset(token)


def report(n_pass: int, n_done: int, n_all: int | None) -> None:
    """Tell all listeners. Called once for some ten thousand rows, by the thread that called fit."""
    for callback in _listeners.get():
        callback(n_pass, n_done, n_all)


def reported(results: Iterator[Result], n_pass: int, length: int, n_all: int) -> Iterator[Result]:
    """The same results, each of ``length`` rows, with a report after every one."""
    n_done = 0
    for result in results:
        n_done = min(n_done + length, n_all)
        report(n_pass, n_done, n_all)
        yield result
