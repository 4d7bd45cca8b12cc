"""Pages and tables of text: HTML from templates, CSV, Markdown and LaTeX, numbers in words."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from .._messages import and_list, is_formula, plural
from .._paths import atomic_write
from .drawing import require
from .measures import arrow
from .store import FitResult

NOTHING = "\N{EN DASH}"  # stands where there is no number
_MOST_FAILURES = 20  # on a page
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    NOTHING: "--",
    "†": r"$\dagger$",
    **{character: "\\" + character for character in "&%$#_{}"},
}


@dataclass(frozen=True)
class Entry:
    """One cell of a text table."""

    text: str
    is_bold: bool = False
    is_underlined: bool = False


@dataclass(frozen=True)
class TextTable:
    """Header and body of a text table; the first column holds names, the others numbers."""

    caption: str
    header: tuple[str, ...]
    body: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()


def csv_text(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Lines as CSV: floats to ten digits, None as an empty field, formulas as text."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for line in (header, *lines):
        writer.writerow(map(_csv_cell, line))
    return buffer.getvalue()


def _csv_cell(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.10g}"
    return f"'{value}" if is_formula(value) else value


def attributes_csv(names: Sequence[str], objects: Iterable[object]) -> str:
    """Attributes of objects as CSV, one object a line."""
    return csv_text(names, ([getattr(each, name) for name in names] for each in objects))


def align(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Rows as lines with columns of equal width; ``sides`` has l or r for each column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    pad = {"l": str.ljust, "r": str.rjust}
    lines = (map(lambda s, text, w: pad[s](text, w), sides, row, widths) for row in rows)
    return ["  ".join(line).rstrip() for line in lines]


def write_texts(folder: Path, contents: Mapping[str, str]) -> list[Path]:
    """Write files of a folder, by name; the paths written."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        with atomic_write(folder / name) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    return [folder / name for name in contents]


def to_markdown(table: TextTable) -> str:
    return _render("table.md.j2", vars(table))


def to_latex(table: TextTable, label: str) -> str:
    return _render("table.tex.j2", {**vars(table), "label": label})


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\|*_<`\[])", r"\\\1", " ".join(text.split()))


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def fill(
    template: str,
    view: Mapping[str, Any],
    package: str,
    results: Sequence[FitResult],
    **filters: Callable[..., Any],
) -> str:
    """A template of a package that extends ``page.html.j2`` of this one, filled in."""
    failed = [result for result in results if result.failure is not None]
    counts = {"n_failed": len(failed), "n_fits": len(results)}
    view = {**view, "failures": failed[:_MOST_FAILURES], **counts}
    return _render(template, view, package, **filters)


def _render(
    template: str, view: Mapping[str, Any], package: str = __package__, **filters: Any
) -> str:
    jinja2 = require("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(
            lambda name: next(
                path.read_text(encoding="utf-8")
                for home in (package, __package__)
                if (path := files(home).joinpath(name)).is_file()
            )
        ),
        autoescape=".html." in template,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=".html." not in template,
    )
    environment.filters.update(_FILTERS, **filters)
    text: str = environment.get_template(template).render(view)
    return text


def with_minus(number: str) -> str:
    """A number with a proper minus sign."""
    return number.replace("-", "\N{MINUS SIGN}")


def share(value: float) -> str:
    """A share in percent, without the sign for it."""
    return with_minus(f"{100 * value:.1f}")


def percent(value: float) -> str:
    """A share as one says it: 4.5 %."""
    return f"{share(value)} %"


def signed(value: float, decimals: int = 1) -> str:
    """A value with its sign, and a proper minus sign; zero has none."""
    text = f"{value:+.{decimals}f}"
    return with_minus(text) if text.strip("+-0.") else text[1:]


def p_text(p: float) -> str:
    """A p-value to three decimals."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def duration(seconds: float) -> str:
    """Seconds as one says them: 4.2 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def rows_text(count: float) -> str:
    """A number of rows; a mean over repeats with one decimal."""
    return f"{count:,.0f}" if count == round(count) else f"{count:,.1f}"


_FILTERS: dict[str, Callable[..., Any]] = {
    **{
        each.__name__: each
        for each in (and_list, arrow, duration, p_text, percent, plural, rows_text, share, signed)
    },
    "markdown": _escape_markdown,
    "latex": _escape_latex,
}
