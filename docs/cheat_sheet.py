"""Fill the table of docs/choosing.md from a report.

python docs/cheat_sheet.py results
"""

import csv
import re
import sys
from collections import defaultdict
from pathlib import Path

from iclda.methods import METHODS

PAGE = Path(__file__).with_name("choosing.md")
BLOCK = re.compile(r"(<!-- from the report -->\n).*?(?=<!-- end -->)", re.DOTALL)


def table(cells: Path) -> str:
    """A row for each method, best mean error first.

    Changes are to supervised LDA on the same folds.
    """
    errors = defaultdict(dict)
    with cells.open() as rows:
        for row in csv.DictReader(rows):
            if row["measure"] == "error":
                errors[row["method"]][row["dataset"]] = float(row["mean"])
    lines = [
        "| method | mean error | better on | most gained | most lost |",
        "|---|---:|---:|---:|---:|",
    ]
    mean = {name: sum(found.values()) / len(found) for name, found in errors.items()}
    for method in sorted(METHODS, key=lambda method: mean.get(method.paper_name, 1.0)):
        if method.paper_name not in errors:
            continue
        found = errors[method.paper_name]
        base = errors["LDA"]
        changes = [100 * (found[name] - base[name]) for name in base]
        counts = f"{sum(change < 0 for change in changes)} of {len(changes)}"
        numbers = [counts, f"{max(0, -min(changes)):.1f}", f"{max(0, *changes):.1f}"]
        if method.paper_name == "LDA":
            numbers = ["baseline", "", ""]
        link = f"[{method.title}](methods/{method.module}.md)"
        lines.append(
            f"| {link} | {mean[method.paper_name]:.3f} | {' | '.join(numbers)} |"
        )
    return "\n".join(lines) + "\n"


def main(results: str) -> None:
    filled = table(Path(results) / "tables" / "cells.csv")
    PAGE.write_text(
        BLOCK.sub(lambda found: f"{found[1]}\n{filled}\n", PAGE.read_text())
    )


if __name__ == "__main__":
    main(sys.argv[1])
