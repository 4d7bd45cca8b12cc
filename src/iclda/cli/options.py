"""Options that several commands share, and what their values mean."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

# The table, its classes and its columns.
TableFile = Annotated[
    Path,
    Argument(metavar="DATA", help="A .csv, .parquet, .npy or .npz file, or a folder."),
]
Target = Annotated[
    str | None, Option(metavar="COLUMN", help="Column that holds the classes.")
]
LabelsFile = Annotated[
    Path | None, Option(metavar="FILE", help="File of the classes, row by row.")
]
Id = Annotated[
    str | None,
    Option(metavar="COLUMN", help="Column that joins both files; or row numbers."),
]
Unlabeled = Annotated[
    str | None, Option(metavar="VALUE", help="Target of unlabeled rows, or empty.")
]
UnlabeledFile = Annotated[
    Path | None, Option(metavar="FILE", help="More unlabeled rows.")
]
Drop = Annotated[
    list[str] | None, Option(metavar="COLUMNS", help="Leave a,b out; repeatable.")
]
Keep = Annotated[
    list[str] | None, Option(metavar="COLUMNS", help="Use only a,b; repeatable.")
]
DropUnusable = Annotated[
    bool, Option("--drop-unusable", help="Leave out names, remarks and such.")
]
# How fits are made.
Repeats = Annotated[
    int, Option(min=2, max=10_000, metavar="N", help="Repeats of every fit.")
]
Jobs = Annotated[int, Option(min=0, metavar="N", help="Processes; 0 takes all cores.")]
Seed = Annotated[
    int, Option(min=0, max=2**32 - 1, metavar="N", help="Of splits and starts.")
]
# What is printed.
Quiet = Annotated[bool, Option("--quiet", help="Print nothing but errors.")]
Json = Annotated[
    bool, Option("--json", help="Print a summary for programs at the end.")
]


def split_names(text: str) -> list[str]:
    """Return names that are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    from joblib import cpu_count

    return int(cpu_count())


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["iclda", *sys.argv[1:]])
