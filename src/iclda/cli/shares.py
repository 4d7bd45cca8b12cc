"""The command that estimates how many rows of a file belong to each class."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from . import messages, options
from .models import ModelFile, check_order, load, show_rows

_Checked = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="File of classes of some of the rows, drawn at random; of a file that "
        "`iclda ask` wrote, its random rows count.",
    ),
]


def shares(
    model: ModelFile,
    data: options.TableFile,
    labels: _Checked = None,
    target: options.Target = None,
    id: options.Id = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Estimate how many rows of a table belong to each class."""
    from ..tabular.class_shares import share_lines, shares_of_file
    from ..tabular.read_options import ReadOptions

    check_order(model, data)
    fitted, kinds, about = load(model)
    reading = ReadOptions(target, labels=labels, id=id)
    with show_rows("Estimating shares", quiet or json) as advance:
        estimate = shares_of_file(fitted, kinds, about, data, reading, advance)
    if json:
        messages.print_json(estimate.to_json())
    elif not quiet:
        messages.print_lines(share_lines(estimate))
