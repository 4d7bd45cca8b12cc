"""Progress of passes: backends report it, and listeners of the current thread hear it.

``listen`` adds a callback for the duration of a block. Backends call
``report_progress`` without knowing which pass it is; whoever starts a pass numbers it
with ``report_as``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

# Called with the number of the pass, the number of rows done, and the number of all
# rows, or None if that is not known yet.
Callback = Callable[[int, int, "int | None"], None]

_listeners: ContextVar[tuple[Callback, ...]] = ContextVar("_listeners", default=())
# The number of the current pass: 0 before the first pass, None if nothing is reported.
_n_pass: ContextVar[int | None] = ContextVar("_n_pass", default=0)


@contextmanager
def _bound(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def listen(callback: Callback) -> AbstractContextManager[None]:
    """Have passes of this thread call ``callback`` in addition to current listeners."""
    return _bound(_listeners, (*_listeners.get(), callback))


def unreported() -> AbstractContextManager[None]:
    """Report no pass within this block."""
    return _bound(_listeners, ())


def report_as(n_pass: int | None) -> AbstractContextManager[None]:
    """Report what is read in this block as this pass, or not at all if None."""
    return _bound(_n_pass, n_pass)


def report_progress(n_done: int, n_all: int | None) -> None:
    """Call all listeners.

    A backend does so every few ten thousand rows, in the thread of ``fit``.
    """
    n_pass = _n_pass.get()
    if n_pass is None:
        return
    for callback in _listeners.get():
        callback(n_pass, n_done, n_all)
