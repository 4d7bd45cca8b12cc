"""What commands share: option types, and errors told in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from .words import in_options

USAGE_ERROR, INTERRUPTED = 2, 130

Jobs = Annotated[int, typer.Option(min=0, help="Processes; 0 takes all cores.")]
Seed = Annotated[int, typer.Option(min=0, help="All splits and starts follow from it.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print a summary for programs at the end.")]

Drop = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Leave this column out; repeatable.")
]
Target = Annotated[str, typer.Option(metavar="COLUMN", help="Column that holds the classes.")]
Unlabeled = Annotated[
    str | None,
    typer.Option(metavar="VALUE", help="Target of unlabeled rows, besides an empty cell."),
]
UnlabeledFile = Annotated[
    Path | None, typer.Option(help="A second table, all of whose rows are unlabeled.")
]
Missing = Annotated[str, typer.Option(help="Empty cells: impute or refuse.")]
TableFile = Annotated[Path, typer.Argument(metavar="DATA", help="A .csv, .tsv or .parquet file.")]


def listed(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def checked_missing(text: str) -> str:
    """What to do about empty cells."""
    from ..tabular.columns import MISSING

    if text not in MISSING:
        raise ValueError(f"--missing must be {' or '.join(MISSING)}, got {text!r}.")
    return text


def n_cores() -> int:
    """Number of cores this process may use."""
    from joblib import cpu_count

    return int(cpu_count())


@contextmanager
def explained_errors(after_interruption: str = "Nothing was written.") -> Iterator[None]:
    """What a user can mend is one line and exit code 2, an interruption one line and 130."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"Interrupted. {after_interruption}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # whoever read the output has seen enough: typer leaves in silence
        raise
    except Exception as error:
        if not isinstance(error, _mendable()):
            raise
        typer.echo(f"Error: {_words(error)}", err=True)
        raise typer.Exit(USAGE_ERROR) from None


def _words(error: Exception) -> str:
    """One line, in options for parameters; of what the system says, without its number."""
    from .._messages import message_of

    text = in_options(message_of(error))
    if isinstance(error, OSError) and error.strerror and error.filename:
        text = f"{error.filename}: {error.strerror}."
    return " ".join(text.split())


def _mendable() -> tuple[type[Exception], ...]:
    # Imported once something went wrong: at the start it would delay every command.
    from ..studies.store import StoreError

    return (StoreError, ValueError, OSError, ImportError)
