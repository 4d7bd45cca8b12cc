"""How far a pass over many rows is, told to whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

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
    listeners = _listeners.get()
    for i, callback in enumerate(listeners):
        if callback not in listeners[:i]:  # one that listens twice is told once
            callback(n_pass, n_done, n_all)


def reported(results: Iterator[Result], n_pass: int, length: int, n_all: int) -> Iterator[Result]:
    """The same results, each of ``length`` rows, with a report after every one."""
    n_done = 0
    for result in results:
        n_done = min(n_done + length, n_all)
        report(n_pass, n_done, n_all)
        yield result


class Passes:
    """A callback for scikit-learn's ``set_callbacks``: within its fits, tells how far passes are.

    Parameters
    ----------
    callback : callable
        As that of ``iclda.rows.progress``. Searches with several processes send it to each of
        them, so that it must be a function that can be pickled.
    """

    def __init__(self, callback: Callback) -> None:
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
