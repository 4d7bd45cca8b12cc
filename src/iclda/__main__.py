"""The command line: ``iclda`` or ``python -m iclda``. Its commands are in the folder ``cli``.

Handlers of signals are set before anything else is imported.
"""

import os
import signal
import sys
from functools import cache
from types import FrameType
from typing import Annotated, Any

_COMMANDS = ("iclda.cli.models", "iclda.cli.studies")
_SECONDS_BETWEEN_LOOKS = 0.02  # at whether the interrupted import is over


def main() -> None:
    """Run the command line."""
    stops = signal.SIGINT, signal.SIGTERM
    for number in stops:
        signal.signal(number, _stop)
    try:
        make_app()()
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(
                signal.ITIMER_REAL, 0
            )  # of a signal that came during an import
        # Python would show a traceback of what it does at its end, joblib what it cleans up then.
        is_done = all(signal.getsignal(number) is _stop for number in stops)
        for number in stops:
            signal.signal(number, signal.SIG_IGN if is_done else signal.SIG_DFL)


@cache
def make_app() -> Any:
    """Return the commands as a Typer application."""
    try:
        import typer
    except (
        ImportError
    ):  # pragma: no cover - without the extra there is no command line to test
        sys.exit(
            "The command line needs extra packages: pip install 'iclda[data,experiments]'."
        )
    from . import cli
    from .cli import models, studies

    def show_version(is_wanted: bool) -> None:
        if is_wanted:
            from . import __version__

            typer.echo(f"iclda {__version__}")
            raise typer.Exit

    shown = typer.Option(
        "--version", callback=show_version, is_eager=True, help="Show it and exit."
    )

    def options(version: Annotated[bool, shown] = False) -> None: ...

    app = typer.Typer(
        callback=options,
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        help="Semi-supervised linear discriminant analysis: on your own tables and the paper's.",
    )
    for command in (
        studies.compare,
        *(models.ask, models.fit, models.predict, models.evaluate, models.show),
        *(studies.reproduce, studies.tables, studies.curves, studies.study),
        *(studies.report, studies.datasets, models.playground, models.label),
    ):
        is_study = command.__module__ == studies.__name__
        app.command()(
            cli.explained(command, cli.RESUMABLE if is_study else cli.NOT_WRITTEN)
        )
    return app


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
            raise (
                KeyboardInterrupt
                if number == signal.SIGINT
                else SystemExit(128 + number)
            )
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
