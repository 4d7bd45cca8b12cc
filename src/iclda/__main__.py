"""The command line: ``iclda`` or ``python -m iclda``. Its commands are in ``cli``.

Handlers of signals are set before anything else is imported.
"""

import gc
import os
import signal
import sys
from functools import cache
from types import FrameType
from typing import Annotated, Any

# Module and name of the function that runs every command, and explains how it ended.
_RUNNER = ("iclda.cli.messages", "run")
# After a signal during an import, look this often whether the import is over.
_SECONDS_BETWEEN_LOOKS = 0.02
# Makes the cursor visible again, which a progress bar hides.
_SHOW_CURSOR = "\x1b[?25h"


def main() -> None:
    """Run the command line."""
    handled_signals = (signal.SIGINT, signal.SIGTERM)
    for number in handled_signals:
        signal.signal(number, _stop)
    from ._system import pause_collector, resume_collector

    pause_collector()
    try:
        make_app()()
    finally:
        # No command may have begun.
        resume_collector()
        # Nothing here is worth a last look for garbage, which takes a tenth of a second
        # or more.
        gc.freeze()
        # The timer of a signal that came during an import must not fire any more.
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        # While Python ends, a signal would print a traceback of what is being cleaned
        # up: a first signal is ignored then, a second one ends the process at once.
        handlers = [signal.getsignal(number) for number in handled_signals]
        was_stopped = any(handler is not _stop for handler in handlers)
        for number in handled_signals:
            signal.signal(number, signal.SIG_DFL if was_stopped else signal.SIG_IGN)


@cache
def make_app() -> Any:
    """Return the commands as a Typer application."""
    try:
        import typer
    # Without the extra there is no command line to test.
    except ImportError:  # pragma: no cover
        sys.exit(
            "The command line needs extra packages: "
            "pip install 'iclda[data,experiments]'."
        )
    from .cli import (
        compare,
        labeling,
        messages,
        models,
        options,
        playground,
        shares,
        studies,
    )

    def show_version(is_wanted: bool) -> None:
        if is_wanted:
            from . import __version__

            typer.echo(f"iclda {__version__}")
            raise typer.Exit

    version_option = typer.Option(
        "--version",
        callback=show_version,
        is_eager=True,
        help="Show the version and exit.",
    )

    def common_options(version: Annotated[bool, version_option] = False) -> None: ...

    app = typer.Typer(
        callback=common_options,
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        help="Semi-supervised linear discriminant analysis: on your own tables and the "
        "paper's.",
    )
    # In the order in which help lists them.
    commands = (
        compare.compare,
        labeling.ask,
        models.fit,
        models.predict,
        models.evaluate,
        shares.shares,
        models.show,
        studies.reproduce,
        studies.tables,
        studies.curves,
        studies.report,
        studies.datasets,
        playground.playground,
        labeling.label,
    )
    # They call ``resume_collector`` themselves, after most of their imports.
    importing = (compare.compare, models.fit)
    for command in commands:
        # Studies store every fit at once; other commands write at their end.
        is_resumable = command.__module__ in (compare.__name__, studies.__name__)
        ending = messages.RESUMABLE if is_resumable else messages.NOT_WRITTEN
        explained = messages.explained(command, ending, imports=command in importing)
        app.command(cls=options.CommandOfSingleOptions)(explained)
    return app


def _stop(number: int, frame: FrameType | None) -> None:
    """Raise an exception, so that unfinished files are removed.

    The exit code is that of a shell. A command that has not begun ends at once. An
    import is completed first, because an exception in it is often lost or turned into
    another one. A second signal ends the process at once.
    """
    signal.signal(number, signal.SIG_DFL)
    has_begun = False
    is_importing = False
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        has_begun |= (module, frame.f_code.co_name) == _RUNNER
        is_importing |= module == "importlib._bootstrap"
        frame = frame.f_back
    if has_begun:
        if not is_importing:
            # What is interrupted while it is made may complain when it goes, as a
            # ZipFile without a file does. The line of the command says all there is.
            sys.unraisablehook = lambda _: None
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            raise SystemExit(128 + number)
        # Windows has no timers: there an import is not completed.
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, lambda _, frame: _stop(number, frame))
            signal.setitimer(signal.ITIMER_REAL, _SECONDS_BETWEEN_LOOKS)
            return
    cursor = _SHOW_CURSOR if sys.stderr.isatty() else ""
    line = "Interrupted.\n" if number == signal.SIGINT else ""
    os.write(2, (cursor + line).encode())
    os._exit(128 + number)


if __name__ == "__main__":
    main()
