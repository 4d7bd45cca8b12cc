"""Answers to the open questions, from stored rows: sentences, tables, figures, a page.

The queries of the rows are in ``answers.toml``, the sentences in ``answers.txt.j2``,
where a line that begins with a bar is a row of a table. The page and the terminal show
the same sentences and tables.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from html import unescape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iclda.datasets import BENCHMARKS
from iclda.methods import INK, find_method
from iclda.plots._look import method_styles
from iclda.studies.page import (
    NO_NUMBER,
    csv_text,
    fill,
    new_figure,
    save,
    styled,
    to_inline_svg,
    with_minus,
    write_texts,
)
from iclda.studies.paper.stored_settings import read_settings
from iclda.studies.store import STORE, FitResult, Store, StoreError

from .plan import EXPERIMENTS, KIND, N_GRID_SHARES, PLAN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A sentence, or the rows of a table with its heading first.
Block = str | list[list[str]]
# Rows of a query, by column.
Records = list[dict[str, Any]]
_QUERIES = tomllib.loads(files(__package__).joinpath("answers.toml").read_text("utf-8"))
# A figure of lines has at most this many panels beside each other.
_MAX_PANELS_PER_ROW = 4
# Markers of matplotlib for the quantities of a figure of dots.
_MARKERS = "|xoD"
# A run on fewer tables than this is called a quick one: its numbers are not evidence.
_MIN_TABLES = 10
# A case is a table with a number of labels. The regret of a method is its error above
# that of the best method of the case.
_REGRETS = """
    errors AS (
        SELECT dataset, part, method, AVG(error) AS error, AVG(seconds) AS seconds
        FROM rows WHERE experiment IN ('methods', 'auto') AND error IS NOT NULL
        GROUP BY 1, 2, 3),
    least AS (
        SELECT dataset, part, MIN(error) AS least FROM errors WHERE method <> 'auto'
        GROUP BY 1, 2),
    regrets AS (
        SELECT *, error - least AS regret
        FROM errors JOIN least USING (dataset, part))"""
# Names of numbers of labels, which rows store in percent of the number of features d.
_SIZE_NAMES = {50: "d/2", 100: "d", 200: "2d", 400: "4d"}


def draw_answers(out: Path) -> dict[str, Any]:
    """Write tables, figures and report of the rows of a folder.

    Returns a summary that can be written as JSON.
    """
    with closing(Store(out / STORE, kind=KIND, read_only=True)) as store:
        results = _read_results(store)
        settings = read_settings(store)
        seconds = {
            name: round(store.settings().get(f"seconds_{name}", 0.0), 1)
            for name in EXPERIMENTS
        }
        numbers: dict[str, Any] = {
            "examples": _query(store, _QUERIES["uniqueness"]["figure"]["sql"])
        }
        tables = {}
        figures = {}
        for name, queries in _QUERIES.items():
            numbers[name] = {
                key: _query(store, sql) for key, sql in queries["numbers"].items()
            }
            tables[name] = _write_tables(store, out, name, queries["tables"])
            figures[name] = _draw_figure(store, out, name, queries["figure"])

    answers = _fill_answers(numbers, results)
    view = {
        "answers": answers,
        "figures": figures,
        "tables": tables,
        "settings": settings,
        "seconds": seconds,
        "is_quick": numbers["methods"]["size"][0]["tables"] < _MIN_TABLES,
    }
    page = fill("answers.html.j2", view, __package__, results)
    [report_path] = write_texts(out, {"report.html": page})
    return {
        "report": str(report_path),
        "answers": answers,
        "tables": tables,
        "failed_fits": sum(result.failure is not None for result in results),
        "seconds": sum(seconds.values()),
    }


def _read_results(store: Store) -> list[FitResult]:
    """Read the rows of all experiments; StoreError if one has none."""
    results_by_experiment = {name: store.rows(name) for name in EXPERIMENTS}
    lacking = [name for name, rows in results_by_experiment.items() if not rows]
    if lacking:
        folder = store.path.parent
        raise StoreError(
            f"{folder} has no rows of {', '.join(lacking)} yet: run "
            f"python -m research --out {folder} to go on."
        )
    return [result for rows in results_by_experiment.values() for result in rows]


# Queries and tables.


def _query(store: Store, sql: str) -> Records:
    """Answer a query of ``answers.toml``, with its words in capitals replaced."""
    for word, meaning in _words_in_sql().items():
        sql = sql.replace(word, meaning)
    return store.query(sql)


def _words_in_sql() -> dict[str, str]:
    """Return the words of the queries, and the SQL that they stand for."""
    cases = " ".join(f"WHEN {part} THEN '{name}'" for part, name in _SIZE_NAMES.items())
    points = []
    for position, (setting, value) in enumerate(_settings_of_families()):
        is_base = value == PLAN["base"][setting]
        dataset = "base" if is_base else f"{setting} {value}"
        points.append(
            f"SELECT {position} AS position, '{setting}' AS panel, '{value}' AS x, "
            f"'{dataset}' AS dataset"
        )
    return {
        "BENCHMARKS": f"({', '.join(map(repr, BENCHMARKS))})",
        "FAMILIES": f"({' UNION ALL '.join(points)})",
        "REGRETS": _REGRETS,
        "SIZE": f"(CASE part {cases} END)",
    }


def _settings_of_families() -> Iterator[tuple[str, Any]]:
    """Yield every setting of families with each of its values, the base's too."""
    for setting, changed_values in PLAN["families"].items():
        values = [PLAN["base"][setting], *changed_values]
        # The values of this one are names.
        if setting != "tails":
            values = sorted(values)
        for value in values:
            yield setting, value


def _write_tables(
    store: Store, out: Path, name: str, queries: Records
) -> dict[str, list[list[str]]]:
    """Write the tables of a question as CSV; return their cells as text, by title."""
    tables = {}
    for number, query in enumerate(queries):
        heading, *lines = spread_table(_query(store, query["sql"]))
        file_name = f"{name}-{number}.csv"
        write_texts(out / "tables", {file_name: csv_text(heading, lines)})
        tables[query["title"]] = [
            [_text(cell) for cell in line] for line in (heading, *lines)
        ]
    return tables


def spread_table(records: Records) -> list[list[Any]]:
    """Return the heading and the lines of a table.

    If there are three columns, the values of the second become the heading, and those
    of the third the cells.
    """
    if not records:
        return [["no rows"]]
    first, *others = records[0]
    if len(others) != 2:
        return [[first, *others], *(list(record.values()) for record in records)]
    column, value = others
    cells_by_line: dict[Any, dict[Any, Any]] = defaultdict(dict)
    for record in records:
        cells_by_line[record[first]][record[column]] = record[value]
    names = list(dict.fromkeys(record[column] for record in records))
    lines = [
        [line, *(cells.get(name) for name in names)]
        for line, cells in cells_by_line.items()
    ]
    return [[first, *names], *lines]


def _text(cell: Any) -> str:
    if cell is None:
        return NO_NUMBER
    return with_minus(f"{cell:.3f}") if isinstance(cell, float) else str(cell)


def _fill_answers(
    numbers: dict[str, Any], results: list[FitResult]
) -> dict[str, list[Block]]:
    """Fill in the answers; return the title and the blocks of every question."""
    filters: Any = {"from_json": json.loads}
    # Jinja escapes names for a page, and a terminal shows the same text.
    text = unescape(fill("answers.txt.j2", numbers, __package__, results, **filters))
    # Negative numbers have a minus sign, as in the tables; ranges and names do not.
    text = re.sub(r"(?<!\w)-(?=\d)", "\N{MINUS SIGN}", text)
    # A number sign and the title of a question begin its part.
    parts = [part.strip().splitlines() for part in text.split("# ")[1:]]
    return {
        name: _read_blocks(part) for name, part in zip(_QUERIES, parts, strict=True)
    }


def _read_blocks(lines: list[str]) -> list[Block]:
    """Gather the lines that begin with a bar in tables; leave out empty ones."""
    blocks: list[Block] = []
    for line in lines:
        if not line.strip():
            continue
        if not line.startswith("|"):
            blocks.append(line)
            continue
        row = [cell.strip() for cell in line.split("|")[1:]]
        if isinstance(blocks[-1], str):
            blocks.append([row])
        else:
            blocks[-1].append(row)
    return blocks


# Figures.


def _draw_figure(store: Store, out: Path, name: str, query: dict[str, str]) -> Any:
    """Draw and save the figure of a question; return it as an SVG element.

    A figure of lines that would only have dots is not drawn: return an empty text.
    """
    records = _query(store, query["sql"])
    if query["kind"] == "lines":
        records = with_several_points(records)
        if not records:
            return ""
    figure = _DRAW[query["kind"]](records, query.get("label", ""))
    figure.set_label(query.get("label", name))
    save(figure, out / "figures" / name)
    return to_inline_svg(figure, name)


def with_several_points(records: Records) -> Records:
    """Leave out the panels of a figure of lines that have a single x: dots, no lines.

    A quick run has such panels.
    """
    places: dict[str, set[str]] = defaultdict(set)
    for record in records:
        places[record["panel"]].add(str(record["x"]))
    return [record for record in records if len(places[record["panel"]]) > 1]


@styled
def _draw_examples(records: Records, label: str) -> Figure:
    """Draw the objective of both counterexamples over all labelings."""
    figure, [[left, right]] = new_figure(8.4, 3.4, 1, 2)
    line, square = (np.array(json.loads(record["grid"])) for record in records)
    left_maxima, right_maxima = (json.loads(record["maxima"]) for record in records)
    axis = np.linspace(0, 1, N_GRID_SHARES)

    left.plot(axis, line, color=find_method("iclda").color)
    values = [maximum["value"] for maximum in left_maxima]
    left_shares = [maximum["shares"] for maximum in left_maxima]
    left.plot(left_shares, values, "o", color=INK, clip_on=False)
    left.set_ylim(min(values) - 0.006, max(values) + 0.002)
    left.set(
        title="A: −1, 1   B: 0   unlabeled: 10",
        xlabel="share of the unlabeled row in B",
        ylabel="log likelihood of the labeled rows",
    )

    # Contours take the first share along the horizontal axis.
    heights = square.reshape(N_GRID_SHARES, N_GRID_SHARES).T
    contours = right.contour(axis, axis, heights, levels=14, linewidths=1)
    right.clabel(contours, fontsize=7)
    first_shares, second_shares = np.transpose(
        [maximum["shares"] for maximum in right_maxima]
    )
    right.plot(first_shares, second_shares, "o", color=INK, clip_on=False)
    right.set(
        title="A: (0, 3), (1, 3)   B: (1, 0), (2, 0)",
        aspect="equal",
        xlabel="share of (3, 0) in B",
        ylabel="share of (3, 2) in B",
    )
    return figure


@styled
def _draw_lines(records: Records, label: str) -> Figure:
    """Draw a panel for each value of ``panel``, with the same lines in all of them."""
    # The x and y of every line, by panel and name.
    panels: dict[str, dict[str, tuple[list[str], list[Any]]]] = defaultdict(dict)
    for record in records:
        lines = panels[record["panel"]]
        xs, ys = lines.setdefault(record["line"], ([], []))
        xs.append(str(record["x"]))
        ys.append(record["y"])

    n_columns = min(_MAX_PANELS_PER_ROW, len(panels))
    n_rows = -(-len(panels) // n_columns)
    panel_width = {1: 6.0, 2: 4.0}.get(n_columns, 2.3)
    figure, grid = new_figure(
        panel_width * n_columns + 2, 1 + 2.2 * n_rows, n_rows, n_columns
    )
    for axes in grid.flat[len(panels) :]:
        axes.axis("off")
    for axes, (title, lines) in zip(grid.flat, panels.items(), strict=False):
        for name, style in method_styles(lines).items():
            xs, ys = lines[name]
            # Shares of 0 and 1 lie on the edges of a panel.
            axes.plot(xs, ys, marker=".", label=name, clip_on=False, **style)
        axes.set(title=title)
        # The values of this setting are words, which would overlap.
        axes.tick_params(axis="x", labelrotation=20 if title == "tails" else 0)
    grid[0, 0].set_ylabel(label)
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper", frameon=False, fontsize=8)
    return figure


@styled
def _draw_dots(records: Records, label: str) -> Figure:
    """Draw a line for each data set, with a mark for each quantity."""
    [_, *names], *lines = spread_table(records)
    figure, [[axes]] = new_figure(8.4, 0.9 + 0.28 * len(lines))
    heights = np.arange(len(lines))[::-1]
    for k, (name, style) in enumerate(method_styles(names).items()):
        axes.plot(
            [line[1 + k] for line in lines],
            heights,
            linestyle="none",
            marker=_MARKERS[k],
            markersize=6,
            color=style["color"],
            label=name,
            clip_on=False,
        )
    axes.set(yticks=heights, yticklabels=[line[0] for line in lines], xlabel=label)
    axes.grid(axis="y", linewidth=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize=8)
    return figure


_DRAW: dict[str, Callable[[Records, str], Figure]] = {
    "examples": _draw_examples,
    "lines": _draw_lines,
    "dots": _draw_dots,
}
