"""Progress of passes over many rows, reported to listeners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")

# Number of the pass; rows done; rows in all, None if that is not known yet.
Callback = Callable[[int, int, "int | None"], None]


@dataclass
class Part:
    """One source's part of a pass. A backend knows its own rows only, and does not count passes."""

    number: int | None  # of the pass, 0: before the first one; None: nothing is reported
    n_before: int = 0  # rows of the sources before it
    n_after: int | None = 0  # rows of the sources after it; None: not known yet
    n_done: int = 0  # rows of this one


_listeners: ContextVar[tuple[Callback, ...]] = ContextVar("_listeners", default=())
_part: ContextVar[Part | None] = ContextVar("_part", default=None)


def check_callback(callback: Any) -> None:
    """TypeError for what cannot be called, before anything is read."""
    if not callable(callback):
        raise TypeError(
            "callback must be a function of the number of the pass, rows done, and all rows or "
            f"None, got {callback!r}."
        )


@contextmanager
def listening(callback: Callback) -> Iterator[None]:
    """Have passes of this thread call ``callback``; those within one another all are called."""
    token = _listeners.set((*_listeners.get(), callback))
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def reading(part: Part) -> Iterator[Part]:
    """Report what is read here as this part of a pass."""
    token = _part.set(part)
    try:
        yield part
    finally:
        _part.reset(token)


def report(n_done: int, n_all: int | None) -> None:
    """Tell all listeners. Called once for some ten thousand rows, by the thread that called fit."""
    part = _part.get() or Part(0)
    part.n_done = n_done
    if part.number is None:
        return
    if n_all is not None:
        n_all = None if part.n_after is None else part.n_before + n_all + part.n_after
    listeners = _listeners.get()
    for i, callback in enumerate(listeners):
        if callback not in listeners[:i]:  # one that listens twice is called once
            callback(part.number, part.n_before + n_done, n_all)


def reported(results: Iterator[Result], length: int, n_all: int) -> Iterator[Result]:
    """The same results, each of ``length`` rows, with a report after every one."""
    n_done = 0
    for result in results:
        n_done = min(n_done + length, n_all)
        report(n_done, n_all)
        yield result


class Passes:
    """A callback for scikit-learn's ``set_callbacks``: reports progress within its fits.

    Parameters
    ----------
    callback : callable
        As that of ``iclda.rows.progress``. Searches with several processes send it to each of
        them, so that it must be a function that can be pickled.
    """

    def __init__(self, callback: Callback) -> None:
        check_callback(callback)
        self.callback = callback

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing: what is kept here would have to travel to other processes."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Listen, in the process and thread of this task."""
        _listeners.set((*_listeners.get(), self.callback))

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Listen no longer, unless another task goes on around this one."""
        listeners = list(_listeners.get())
        if self.callback in listeners:
            listeners.remove(self.callback)
        _listeners.set(tuple(listeners))

    def teardown(self, estimator: Any, context: Any) -> None:
        """Listen no longer, even if tasks ended by an error."""
        _listeners.set(tuple(one for one in _listeners.get() if one != self.callback))
