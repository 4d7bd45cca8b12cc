"""Options that several commands share, and what their values mean."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option
from typer.core import TyperCommand


class CommandOfSingleOptions(TyperCommand):
    """A command that refuses an option with one value that is given twice.

    Otherwise the last value would count, and the others would be lost unnoticed.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, given = self.make_parser(ctx).parse_args(args=[*args])
        for parameter, count in Counter(given).items():
            takes_one = not parameter.multiple and not getattr(
                parameter, "is_flag", False
            )
            if takes_one and count > 1 and not ctx.resilient_parsing:
                name = parameter.opts[0]
                ctx.fail(f"{name} was given {count} times: leave out all but one.")
        return super().parse_args(ctx, args)


def number_option(least: int, largest: int | None = None, *, help: str) -> Any:
    """Return an option that takes a whole number between two limits.

    An error shows the value, which those of typer do not do in all its versions.
    """
    rule = f"a whole number of at least {least}"
    if largest is not None:
        rule = f"a whole number from {least} to {largest}"

    def parse(value: Any) -> int:
        try:
            number = int(value)
        except ValueError:
            number = None
        is_too_large = number is not None and largest is not None and number > largest
        if number is None or number < least or is_too_large:
            raise BadParameter(f"must be {rule}, got {value!r}.")
        return number

    if least > 0:
        help = f"{help} At least {least}."
    return Option(parser=parse, metavar="N", help=help)


# The table, its classes and its columns.
TableFile = Annotated[
    Path,
    Argument(
        metavar="DATA", help="A .csv, .xlsx, .parquet, .npy or .npz file, or a folder."
    ),
]
Target = Annotated[
    str | None, Option(metavar="COLUMN", help="Column that holds the classes.")
]
LabelsFile = Annotated[
    Path | None, Option(metavar="FILE", help="File that holds the classes, row by row.")
]
Id = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="Column by which the rows of both files are matched; of an array, the "
        "row number.",
    ),
]
Unlabeled = Annotated[
    str | None,
    Option(
        metavar="VALUE",
        help="Value of the target that marks unlabeled rows, besides empty cells.",
    ),
]
UnlabeledFile = Annotated[
    Path | None, Option(metavar="FILE", help="File of further unlabeled rows.")
]
Drop = Annotated[
    list[str] | None,
    Option(metavar="COLUMNS", help="Columns to leave out, as a,b. Can be repeated."),
]
Keep = Annotated[
    list[str] | None,
    Option(metavar="COLUMNS", help="The only columns to use, as a,b. Can be repeated."),
]
Strict = Annotated[
    bool,
    Option(
        "--strict",
        help="Stop at columns that cannot be used, such as names. By default they are "
        "left out.",
    ),
]
# How fits are made.
Jobs = Annotated[int, number_option(0, help="Number of processes; 0 uses all cores.")]
Seed = Annotated[
    int, number_option(0, 2**32 - 1, help="Random seed for splits and starts.")
]
# What is written.
Force = Annotated[
    bool, Option("--force", help="Replace a file that this command did not write.")
]
# What is printed.
Quiet = Annotated[bool, Option("--quiet", help="Print nothing but errors.")]
Json = Annotated[bool, Option("--json", help="Print the results as JSON.")]


def check_replaceable(
    path: Path, is_own_file: Callable[[Path], bool], command: str, *, force: bool
) -> None:
    """Refuse to replace a file that a command did not write, unless ``force`` is set.

    ``is_own_file`` tells whether a file is one that the command writes.
    """
    if force or not path.is_file() or is_own_file(path):
        return
    raise FileExistsError(
        f"{path} exists, and `iclda {command}` did not write it: name another file "
        "with --out, or replace it with --force."
    )


def split_names(text: str) -> list[str]:
    """Return names that are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    from joblib import cpu_count

    return int(cpu_count())


def command_line(program: str = "iclda") -> str:
    """Return the command as it was typed."""
    return shlex.join([*program.split(), *sys.argv[1:]])
