"""Answers to the open questions, from stored rows: sentences, tables, figures and a page.

The queries are in ``answers.toml``, the sentences in ``answers.txt.j2``; the page and the terminal
show the same ones.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from html import unescape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._messages import Hint, say
from ...datasets import BENCHMARKS
from ...methods import INK, find_method
from ...plots._look import method_styles
from .. import paper
from ..page import (
    csv_text,
    fill,
    new_figure,
    save,
    styled,
    to_inline_svg,
    with_minus,
    write_texts,
)
from ..store import STORE, Store, StoreError
from . import EXPERIMENTS, GRID, PLAN, QUESTIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Records = list[dict[str, Any]]  # rows of a query, by column
_QUERIES = tomllib.loads(files(__package__).joinpath("answers.toml").read_text("utf-8"))
_N_COLUMNS = 4  # panels of a figure side by side
_MARKS = "|xoD"
# A regret is the error above that of the best method of a case, a table with a number of labels.
_REGRETS = """
    errors AS (SELECT dataset, part, method, AVG(error) AS error, AVG(seconds) AS seconds FROM rows
        WHERE experiment IN ('methods', 'auto') AND error IS NOT NULL GROUP BY 1, 2, 3),
    least AS (SELECT dataset, part, MIN(error) AS least FROM errors WHERE method <> 'auto'
        GROUP BY 1, 2),
    regrets AS (SELECT *, error - least AS regret FROM errors JOIN least USING (dataset, part))"""


def _in_sql() -> dict[str, str]:
    """Words of the queries, and what stands for them in SQL."""
    sizes = {50: "d/2", 100: "d", 200: "2d", 400: "4d"}
    cases = " ".join(f"WHEN {part} THEN '{name}'" for part, name in sizes.items())
    points = [
        f"SELECT {i} AS place, '{name}' AS panel, '{value}' AS x, "
        f"'{'base' if value == PLAN['base'][name] else f'{name} {value}'}' AS dataset"
        for i, (name, value) in enumerate(_settings_of_families())
    ]
    return {
        "BENCHMARKS": f"({', '.join(map(repr, BENCHMARKS))})",
        "FAMILIES": f"({' UNION ALL '.join(points)})",
        "REGRETS": _REGRETS,
        "SIZE": f"(CASE part {cases} END)",
    }


def _settings_of_families() -> Iterator[tuple[str, Any]]:
    """Settings and their values, the one of the base among them."""
    for name, values in PLAN["families"].items():
        every = [PLAN["base"][name], *values]
        yield from (
            (name, value) for value in (every if name == "tails" else sorted(every))
        )


def spread_table(records: Records) -> list[list[Any]]:
    """Heading and rows; of three columns, the second becomes the heading."""
    if not records:
        return [["no rows"]]
    first, *others = records[0]
    if len(others) != 2:
        return [[first, *others], *([*record.values()] for record in records)]
    column, value = others
    lines: dict[Any, dict[Any, Any]] = defaultdict(dict)
    for record in records:
        lines[record[first]][record[column]] = record[value]
    names = list(dict.fromkeys(record[column] for record in records))
    return [
        [first, *names],
        *([line, *map(cells.get, names)] for line, cells in lines.items()),
    ]


def _text(cell: Any) -> str:
    if cell is None:
        return "\N{EN DASH}"
    return with_minus(f"{cell:.3f}") if isinstance(cell, float) else str(cell)


@styled
def _draw_examples(records: Records, label: str) -> Figure:
    """Draw the objective of both counterexamples over all labelings of their unlabeled rows."""
    figure, [[left, right]] = new_figure(8.4, 3.4, 1, 2)
    line, square = (np.array(json.loads(record["grid"])) for record in records)
    maxima = [json.loads(record["maxima"]) for record in records]
    shares, axis = (
        [[m["shares"] for m in each] for each in maxima],
        np.linspace(0, 1, GRID),
    )
    values = [m["value"] for m in maxima[0]]
    left.plot(axis, line, color=find_method("iclda").color)
    left.plot(shares[0], values, "o", color=INK)
    left.set_ylim(min(values) - 0.006, max(values) + 0.002)
    left.set(
        title="A: −1, 1   B: 0   unlabeled: 10",
        xlabel="share of the unlabeled row in B",
    )
    left.set_ylabel("log likelihood of the labeled rows")
    drawn = right.contour(
        axis, axis, square.reshape(GRID, GRID).T, levels=14, linewidths=1
    )
    right.clabel(drawn, fontsize=7)
    right.plot(*np.transpose(shares[1]), "o", color=INK, clip_on=False)
    right.set(title="A: (0, 3), (1, 3)   B: (1, 0), (2, 0)", aspect="equal")
    right.set(xlabel="share of (3, 0) in B", ylabel="share of (3, 2) in B")
    return figure


@styled
def _draw_lines(records: Records, label: str) -> Figure:
    """Draw a panel for each value of ``panel``, with the same lines in all of them."""
    panels: dict[str, dict[str, Any]] = defaultdict(
        lambda: defaultdict(lambda: ([], []))
    )
    for record in records:
        for values, name in zip(
            panels[record["panel"]][record["line"]], "xy", strict=True
        ):
            values.append(str(record[name]) if name == "x" else record[name])
    n_columns = min(_N_COLUMNS, len(panels))
    n_rows = -(-len(panels) // n_columns)
    wide = 6.0 if n_columns == 1 else 4.0 if n_columns == 2 else 2.3
    figure, grid = new_figure(wide * n_columns + 2, 1 + 2.2 * n_rows, n_rows, n_columns)
    for axes in grid.flat[len(panels) :]:
        axes.axis("off")
    for axes, (title, lines) in zip(grid.flat, panels.items(), strict=False):
        for name, style in method_styles(lines).items():
            axes.plot(*lines[name], marker=".", label=name, **style)
        axes.set(title=title)
        axes.tick_params(axis="x", labelrotation=20 if title == "tails" else 0)
    grid[0, 0].set_ylabel(label)
    known = grid[0, 0].get_legend_handles_labels()
    figure.legend(*known, loc="outside right upper", frameon=False, fontsize=8)
    return figure


@styled
def _draw_dots(records: Records, label: str) -> Figure:
    """Draw a line for each data set, with a mark for each quantity."""
    [_, *names], *lines = spread_table(records)
    figure, [[axes]] = new_figure(8.4, 0.9 + 0.28 * len(lines))
    places = np.arange(len(lines))[::-1]
    for k, (name, style) in enumerate(method_styles(names).items()):
        mark: Any = {"marker": _MARKS[k], "color": style["color"], "label": name}
        axes.plot(
            [line[1 + k] for line in lines],
            places,
            linestyle="none",
            markersize=6,
            **mark,
        )
    axes.set(yticks=places, yticklabels=[line[0] for line in lines], xlabel=label)
    axes.grid(axis="y", linewidth=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize=8)
    return figure


_DRAWN = {"examples": _draw_examples, "lines": _draw_lines, "dots": _draw_dots}


def draw_answers(out: Path) -> dict[str, Any]:
    """Write tables, figures and report of the rows of a folder; return a summary as JSON."""
    words = _in_sql()

    def query(sql: str) -> Records:
        for word, meaning in words.items():
            sql = sql.replace(word, meaning)
        return store.query(sql)

    with closing(Store(out / STORE, kind=QUESTIONS, read_only=True)) as store:
        settings, stored = paper.read_settings(store), store.settings()
        by_experiment = {name: store.rows(name) for name in EXPERIMENTS}
        if lacking := ", ".join(
            name for name, rows in by_experiment.items() if not rows
        ):
            sentence = "{folder} has no rows of {lacking} yet: run iclda study with {out} to go on."
            raise StoreError(
                say(sentence, folder=out, lacking=lacking, out=Hint("out", out))
            )
        results = [row for rows in by_experiment.values() for row in rows]
        numbers: dict[str, Any] = {
            "examples": query(_QUERIES["uniqueness"]["figure"]["sql"])
        }
        tables: dict[str, dict[str, Sequence[Any]]] = {}
        figures: dict[str, Any] = {}
        for name, asked in _QUERIES.items():
            numbers[name] = {key: query(sql) for key, sql in asked["numbers"].items()}
            spread = {
                each["title"]: spread_table(query(each["sql"]))
                for each in asked["tables"]
            }
            tables[name] = {
                title: [[*map(_text, r)] for r in t] for title, t in spread.items()
            }
            texts = {
                f"{name}-{i}.csv": csv_text(t[0], t[1:])
                for i, t in enumerate(spread.values())
            }
            write_texts(out / "tables", texts)
            drawn = asked["figure"]
            figure = _DRAWN[drawn["kind"]](query(drawn["sql"]), drawn.get("label", ""))
            figure.set_label(drawn.get("label", name))
            save(figure, out / "figures" / name)
            figures[name] = to_inline_svg(figure, name)
    filters: Any = {"from_json": json.loads}
    text = unescape(fill("answers.txt.j2", numbers, __package__, results, **filters))
    text = re.sub(r"(?<!\w)-(?=\d)", "\N{MINUS SIGN}", text)
    blocks = [block.strip().splitlines() for block in text.split("# ")[1:]]
    answers = dict(zip(_QUERIES, blocks, strict=True))
    seconds = {
        name: round(stored.get(f"seconds_{name}", 0.0), 1) for name in EXPERIMENTS
    }
    page = {
        "answers": answers,
        "figures": figures,
        "tables": tables,
        "settings": settings,
    }
    page |= {
        "seconds": seconds,
        "is_quick": numbers["methods"]["size"][0]["tables"] < 10,
    }
    [path] = write_texts(
        out, {"report.html": fill("answers.html.j2", page, __package__, results)}
    )
    failed = sum(row.failure is not None for row in results)
    summary = {
        "report": str(path),
        "answers": answers,
        "tables": tables,
        "failed_fits": failed,
    }
    return {**summary, "seconds": sum(seconds.values())}
