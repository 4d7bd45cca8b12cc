"""The command line: options, messages and errors that the commands share.

A module of this folder has some of the commands, which parse and call. Heavy imports are inside
functions.
"""

from __future__ import annotations

import errno
import json
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from .._messages import Hint, Text, message_of
from .._system import file_numbers, written_files

USAGE_ERROR, INTERRUPTED = 2, 130
# What is said after an interruption.
NOT_WRITTEN = "Nothing was written."
RESUMABLE = "What was computed is kept: run the same command to go on."

_Text = str | None
_Texts = list[str] | None
TableFile = Annotated[
    Path,
    Argument(metavar="DATA", help="A .csv, .parquet, .npy or .npz file, or a folder."),
]
Target = Annotated[
    _Text, Option(metavar="COLUMN", help="Column that holds the classes.")
]
LabelsFile = Annotated[
    Path | None, Option(metavar="FILE", help="File of the classes, row by row.")
]
Id = Annotated[
    _Text,
    Option(metavar="COLUMN", help="Column that joins both files; or row numbers."),
]
Unlabeled = Annotated[
    _Text, Option(metavar="VALUE", help="Target of unlabeled rows, or empty.")
]
UnlabeledFile = Annotated[
    Path | None, Option(metavar="FILE", help="More unlabeled rows.")
]
Drop = Annotated[_Texts, Option(metavar="COLUMNS", help="Leave a,b out; repeatable.")]
Keep = Annotated[_Texts, Option(metavar="COLUMNS", help="Use only a,b; repeatable.")]
DropUnusable = Annotated[
    bool, Option("--drop-unusable", help="Leave out names, remarks and such.")
]
Repeats = Annotated[
    int, Option(min=2, max=10_000, metavar="N", help="Repeats of every fit.")
]
Jobs = Annotated[int, Option(min=0, metavar="N", help="Processes; 0 takes all cores.")]
Seed = Annotated[
    int, Option(min=0, max=2**32 - 1, metavar="N", help="Of splits and starts.")
]
Quiet = Annotated[bool, Option("--quiet", help="Print nothing but errors.")]
Json = Annotated[
    bool, Option("--json", help="Print a summary for programs at the end.")
]

_NOT_WRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES)
# Options that are not called like the parameter.
_NAMES = {"data_dir": "data", "n_labeled": "labeled", "priors": "prior"}


@contextmanager
def noted_warnings() -> Iterator[None]:
    """Print warnings, a line each, without the place in the code that Python shows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for each in caught:
        typer.echo(f"Note: {each.message}", err=True)


def in_options(message: str) -> str:
    """Word a message for the command line: options in place of parameters."""
    if not isinstance(message, Text):
        return message
    return "".join(
        option(part) if isinstance(part, Hint) else str(part) for part in message.parts
    )


def option(hint: Hint) -> str:
    """Word a parameter as the option of its name, with the values to pass."""
    name = f"--{_NAMES.get(hint.parameter, hint.parameter).replace('_', '-')}"
    if hint.value is None or hint.value is True:  # a flag
        return name
    values = hint.value if isinstance(hint.value, (list, tuple)) else [hint.value]
    return " ".join(f"{name} {shlex.quote(str(value))}" for value in values)


def split_names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def n_cores() -> int:
    """Number of cores this process may use."""
    from joblib import cpu_count

    return int(cpu_count())


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join(["iclda", *sys.argv[1:]])


def print_json(value: Any, *, ensure_ascii: bool = True) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=ensure_ascii))


def explained(
    command: Callable[..., None], after_interruption: str
) -> Callable[..., None]:
    """Return a command whose errors that a user can correct are one line and exit code 2.

    An interruption ends with exit code 130.
    """

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        file_numbers.clear()
        try:
            command(*arguments, **options)
        except KeyboardInterrupt:
            written = ", ".join(map(str, written_files()))
            is_late = written and after_interruption == NOT_WRITTEN
            end = f"{written} was written before." if is_late else after_interruption
            typer.echo(f"Interrupted. {end}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except (
            BrokenPipeError
        ):  # the reader of the output closed it: typer exits silently
            raise
        except (ValueError, OSError, ImportError, MemoryError) as error:
            typer.echo(error_line(error), err=True)
            raise typer.Exit(USAGE_ERROR) from None

    return run


def error_line(error: Exception) -> str:
    """What is shown of an error that a user can correct."""
    text = in_options(message_of(error))
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        more = f" ({text.rstrip('.')})" if text else ""
        text = f"There is not enough memory{more}: use fewer rows or columns."
    elif isinstance(error, OSError) and error.strerror and error.filename:
        way_out = (
            ": make room there, or name another place"
            if error.errno in _NOT_WRITABLE
            else ""
        )
        text = f"{error.filename}: {error.strerror}{way_out}."
    return f"Error: {' '.join(text.split())}"
