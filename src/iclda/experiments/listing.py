"""The ten sets as a table for people and as JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path

from ..datasets import BENCHMARKS, find_benchmark


def as_table(data_dir: Path | None) -> str:
    """One line a set."""
    header = ("name", "rows", "features", "license", "at hand", "source")
    body = [
        (
            name,
            str(each.n_rows),
            str(each.n_features),
            each.license,
            find_benchmark(name, data_dir) or "no",
            each.source,
        )
        for name, each in BENCHMARKS.items()
    ]
    widths = [max(len(row[i]) for row in [header, *body]) for i in range(len(header))]
    rows = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in [header, *body]
    ]
    if any(row[4] == "no" for row in body):
        rows.append("")
        rows.append("Get the others by `iclda datasets fetch`, or put NAME.csv into --data.")
    return "\n".join(rows)


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
                "at_hand": find_benchmark(name, data_dir),
            }
            for name, each in BENCHMARKS.items()
        ],
        indent=2,
    )
