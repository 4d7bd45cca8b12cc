"""The command ``iclda`` or ``python -m iclda``, with handlers of signals set before imports."""

import os
import signal
import sys
from types import FrameType

_COMMANDS = ("iclda.cli.ask", "iclda.cli.models", "iclda.cli.studies", "iclda.cli.pages")
_SECONDS_BETWEEN_LOOKS = 0.02  # at whether the interrupted import is over


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

    A command that has not begun ends at once. An import is completed first, because an exception in
    it is often lost or turned into another one. A second signal ends the process at once.
    """
    signal.signal(number, signal.SIG_DFL)
    callers = set()
    while frame is not None:
        callers.add(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
    if any(name in _COMMANDS for name in callers):
        if "importlib._bootstrap" not in callers:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        if hasattr(signal, "setitimer"):  # not on Windows
            signal.signal(signal.SIGALRM, lambda _, frame: _stop(number, frame))
            signal.setitimer(signal.ITIMER_REAL, _SECONDS_BETWEEN_LOOKS)
            return
    cursor = "\x1b[?25h" if sys.stderr.isatty() else ""  # a bar hides it
    line = "Interrupted.\n" if number == signal.SIGINT else ""
    os.write(2, (cursor + line).encode())
    os._exit(128 + number)


if __name__ == "__main__":
    main()
