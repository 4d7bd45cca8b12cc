"""The command ``iclda`` or ``python -m iclda``, with handlers of signals set before imports."""

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command line."""
    stops = signal.SIGINT, signal.SIGTERM
    for number in stops:
        signal.signal(number, _stop)
    try:
        from .cli import app

        app()
    finally:
        # Python would show a traceback of what it does at its end, joblib what it cleans up then.
        is_done = all(signal.getsignal(number) is _stop for number in stops)
        for number in stops:
            signal.signal(number, signal.SIG_IGN if is_done else signal.SIG_DFL)


def _stop(number: int, frame: FrameType | None) -> None:
    """Raise an exception, so that unfinished files are removed; the exit code is a shell's.

    The process ends at once by a second signal, before a command begins, and in an import, where
    an exception is often lost or turned into another one.
    """
    signal.signal(number, signal.SIG_DFL)
    callers = set()
    while frame is not None:
        callers.add(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
    is_in_command = any(name.startswith("iclda.cli") for name in callers)
    if is_in_command and "importlib._bootstrap" not in callers:
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
    cursor = "\x1b[?25h" if sys.stderr.isatty() else ""  # a bar hides it
    line = "Interrupted.\n" if number == signal.SIGINT else ""
    os.write(2, (cursor + line).encode())
    os._exit(128 + number)


if __name__ == "__main__":
    main()
