"""What commands share: types of options, and messages that name options for parameters."""

from __future__ import annotations

import errno
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from .._messages import Hint, Text, message_of

USAGE_ERROR, INTERRUPTED = 2, 130
MOST_REPEATS = 10_000
RESUMABLE = "What was computed is kept: run the same command to go on."

Jobs = Annotated[int, typer.Option(min=0, metavar="N", help="Processes; 0 takes all cores.")]
Seed = Annotated[
    int,
    typer.Option(min=0, max=2**32 - 1, metavar="N", help="All splits and starts follow from it."),
]
Quiet = Annotated[bool, typer.Option("--quiet", metavar="", help="Print nothing but errors.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", metavar="", help="Also the numbers of the solver.")
]
Json = Annotated[
    bool, typer.Option("--json", metavar="", help="Print a summary for programs at the end.")
]

Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Leave these out, as in --drop a,b; repeatable."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Use these and no others, as in --keep a,b; repeatable."),
]
DropUnusable = Annotated[
    bool,
    typer.Option(
        "--drop-unusable", metavar="", help="Leave out columns that cannot be used, with a note."
    ),
]
Target = Annotated[str, typer.Option(metavar="COLUMN", help="Column that holds the classes.")]
Unlabeled = Annotated[
    str | None,
    typer.Option(metavar="VALUE", help="Target of unlabeled rows, besides an empty cell."),
]
UnlabeledFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A second table, all of whose rows are unlabeled."),
]
Missing = Annotated[
    str,
    typer.Option(
        metavar="impute|refuse",
        autocompletion=lambda: ["impute", "refuse"],
        help="Fill empty cells in, or stop at them.",
    ),
]
TableFile = Annotated[
    Path,
    typer.Argument(metavar="DATA", help="A .csv, .tsv or .parquet file; - is standard input."),
]

_NO_ROOM = ": make room there, or name another place by --out"
_NOT_ALLOWED = ": change its permissions, or name another place"
_WAYS_OUT = {  # of errors of the system
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EFBIG: _NO_ROOM,
    errno.EROFS: ": name another place",
    errno.EACCES: _NOT_ALLOWED,
}

# Options that are not called like the parameter.
_NAMES = {
    "data_dir": "data",
    "n_labeled": "labeled",
    "priors": "prior",
    "shrinkages": "shrinkage",
}

# Phrases by parameter and kind of hint, where an option in place of the parameter would not do.
_PHRASES = {
    ("drop", "column"): "leave the column out by --drop",
    ("drop", "columns"): "leave columns out by --drop",
    ("drop", "or column"): " or leave it out by --drop",
    ("drop", "rows or column"): "leave the rows out, or the column by --drop",
    ("missing", "rows"): "Mend the table",
    ("unlabeled", "any"): "--unlabeled VALUE",
}


def in_options(message: str) -> str:
    """A message that names options for parameters."""
    if not isinstance(message, Text):
        return message
    return "".join(option(part) if isinstance(part, Hint) else str(part) for part in message.parts)


def option(hint: Hint) -> str:
    """A hint as options, or as the phrase for it."""
    phrase = _PHRASES.get((hint.parameter, hint.kind))
    if phrase is not None:
        return phrase if hint.value is None else f"{phrase} {hint.value!r}"
    name = f"--{_NAMES.get(hint.parameter, hint.parameter).replace('_', '-')}"
    if hint.value is None or hint.value is True:  # a flag
        return name
    values = hint.value if isinstance(hint.value, (list, tuple)) else [hint.value]
    return " ".join(f"{name} {shlex.quote(str(value))}" for value in values)


def all_in_options(value: Any) -> Any:
    """Lists and dictionaries with every message in them worded."""
    if isinstance(value, dict):
        return {name: all_in_options(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [all_in_options(each) for each in value]
    return in_options(value) if isinstance(value, str) else value


def split_names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def check_missing(text: str) -> str:
    """ValueError unless a way to treat empty cells has this name."""
    from ..tabular.columns import MISSING

    if text not in MISSING:
        raise ValueError(Text(Hint("missing"), f" must be {' or '.join(MISSING)}, got {text!r}."))
    return text


def n_cores() -> int:
    """Number of cores this process may use."""
    from joblib import cpu_count

    return int(cpu_count())


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join(["iclda", *sys.argv[1:]])


def print_json(value: Any, *, ensure_ascii: bool = True) -> None:
    import json

    typer.echo(json.dumps(value, indent=2, ensure_ascii=ensure_ascii))


@contextmanager
def explained_errors(after_interruption: str = "Nothing was written.") -> Iterator[None]:
    """An error that a user can correct is one line and exit code 2, an interruption 130."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"Interrupted. {after_interruption}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # the reader of the output closed it: typer exits silently
        raise
    except Exception as error:
        if not isinstance(error, (ValueError, OSError, ImportError, MemoryError)):
            # Imported here because at the start it would delay every command.
            from ..studies.store import StoreError

            if not isinstance(error, StoreError):
                raise
        typer.echo(error_line(error), err=True)
        raise typer.Exit(USAGE_ERROR) from None


def error_line(error: Exception) -> str:
    """What is shown of an error that a user can correct."""
    text = in_options(message_of(error))
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        more = f" ({text.rstrip('.')})" if text else ""
        text = f"There is not enough memory{more}: use fewer rows or columns."
    elif isinstance(error, OSError) and error.strerror:
        way_out = _WAYS_OUT.get(error.errno or 0, "")
        where = error.filename or (way_out and "Standard output")
        text = f"{where}: {error.strerror}{way_out}." if where else text
    return f"Error: {' '.join(text.split())}"
