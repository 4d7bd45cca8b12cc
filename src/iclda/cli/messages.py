"""What commands print: messages that name options, errors in one line, JSON.

The library speaks of parameters. This module alone knows what the command line calls
them.
"""

from __future__ import annotations

import errno
import json
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import typer

from .._messages import Hint, Text, message_of, printable, wrap
from .._system import file_numbers, resume_collector, written_files

# Exit codes of errors that a user can correct, and of an interruption by Ctrl-C.
USAGE_ERROR = 2
INTERRUPTED = 130
# Sentences after an interruption.
NOT_WRITTEN = "Nothing was written."
RESUMABLE = "What was computed is kept: run the same command to continue."

# The greatest width of lines: longer ones are hard to read.
_MAX_LINE_WIDTH = 100
# Options that are not called like the parameter.
_OPTION_NAMES = {
    "alpha": "none",
    "data_dir": "data",
    "n_labeled": "labeled",
    "priors": "prior",
}
# What helps after errors of the file system.
_MORE_ROOM = ": make room there, or name another folder"
_OTHER_FOLDER = ": name another folder, or allow writing there"
_OTHER_FILE = ": change its permissions, or name another file or folder"
_WAYS_OUT = {
    errno.ENOSPC: _MORE_ROOM,
    errno.EDQUOT: _MORE_ROOM,
    errno.EFBIG: _MORE_ROOM,
    errno.EROFS: _OTHER_FOLDER,
    errno.EACCES: _OTHER_FILE,
    errno.EPERM: _OTHER_FILE,
}


def in_options(message: str) -> str:
    """Word a message for the command line: options in place of parameters."""
    if not isinstance(message, Text):
        return message
    words = [
        option(part) if isinstance(part, Hint) else str(part) for part in message.parts
    ]
    return "".join(words)


def option(hint: Hint) -> str:
    """Word a parameter as the option of its name, with the values to pass."""
    name = _OPTION_NAMES.get(hint.parameter, hint.parameter)
    flag = f"--{name.replace('_', '-')}"
    if hint.value is None or hint.value is True:
        return flag
    values = hint.value if isinstance(hint.value, (list, tuple)) else [hint.value]
    return " ".join(f"{flag} {shlex.quote(str(value))}" for value in values)


def wrap_lines(texts: Sequence[str]) -> list[str]:
    """Break texts into lines as wide as the terminal, but not too wide to read."""
    lines = []
    for text in texts:
        lines += wrap(text, line_width())
    return lines


def line_width() -> int:
    """Return the width of lines that people read."""
    return min(shutil.get_terminal_size().columns, _MAX_LINE_WIDTH)


def announce(text: str) -> None:
    """Print a paragraph to the error stream."""
    typer.echo("\n".join(wrap_lines([text])), err=True)


def print_lines(lines: Sequence[str]) -> None:
    """Print lines for people, wrapped on a terminal, with warnings that stand out."""
    for text in lines:
        line = printable(text)
        # Other programs get every text in one line. Indented lines are rows of tables.
        if sys.stdout.isatty() and not line.startswith("  "):
            line = "\n".join(wrap_lines([line]))
        head, colon, rest = line.partition(": ")
        if head == "Warning":
            line = typer.style(head, fg="yellow", bold=True) + colon + rest
        typer.echo(line)


def print_json(value: Any, *, ensure_ascii: bool = True) -> None:
    """Print a value for other programs."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=ensure_ascii))


def explained(
    command: Callable[..., None], after_interruption: str, *, imports: bool = False
) -> Callable[..., None]:
    """Return a command whose correctable errors are one line and exit code 2.

    An interruption ends with exit code 130, and with what it means for the files.
    ``imports`` tells whether the command calls ``resume_collector`` itself.
    """

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            # Tests run several commands in one process: forget the files of earlier
            # ones.
            file_numbers.clear()
            if not imports:
                resume_collector()
            command(*arguments, **options)
        except KeyboardInterrupt:
            written = ", ".join(map(str, written_files()))
            ending = after_interruption
            if written and after_interruption == NOT_WRITTEN:
                ending = f"{written} was written before."
            typer.echo(f"Interrupted. {ending}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        # The reader of the output has closed it, as ``head`` does: typer exits
        # silently.
        except BrokenPipeError:
            raise
        except (ValueError, OSError, ImportError, MemoryError) as error:
            typer.echo(error_line(error), err=True)
            raise typer.Exit(USAGE_ERROR) from None

    return run


def error_line(error: Exception) -> str:
    """Return the line that is shown for an error that a user can correct."""
    text = in_options(message_of(error))
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        details = f" ({text.rstrip('.')})" if text else ""
        text = f"There is not enough memory{details}: use fewer rows or columns."
    elif isinstance(error, OSError) and error.strerror and error.filename:
        way_out = _WAYS_OUT.get(error.errno or 0, "")
        text = f"{error.filename}: {error.strerror}{way_out}."
    return f"Error: {' '.join(text.split())}"
