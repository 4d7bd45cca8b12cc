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

from .._messages import and_list, plural
from .._paths import atomic_write
from .drawing import require
from .measures import arrow
from .store import FitResult

NOTHING = "\N{EN DASH}"  # stands where there is no number
_SHARED = ("page.html.j2", "parts.html.j2")  # templates of both studies
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

    def format(self, escape: Callable[[str], str], underlined: str, bold: str) -> str:
        text = escape(self.text)
        text = underlined % text if self.is_underlined else text
        return bold % text if self.is_bold else text


@dataclass(frozen=True)
class TextTable:
    """Header and body of a text table; the first column holds names, the others numbers."""

    caption: str
    header: tuple[str, ...]
    body: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()


def csv_text(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Lines as CSV: floats to ten digits, None as an empty field."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for line in lines:
        writer.writerow([f"{v:.10g}" if isinstance(v, float) else v for v in line])
    return buffer.getvalue()


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
    """GitHub's tables; HTML for the underlining, which Markdown lacks."""

    def escape(text: str) -> str:
        return re.sub(r"([\\|*_<`\[])", r"\\\1", " ".join(text.split()))

    rows = [
        [escape(name) for name in table.header],
        ["---"] + ["---:"] * (len(table.header) - 1),
        *([entry.format(escape, "<u>%s</u>", "**%s**") for entry in row] for row in table.body),
    ]
    lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return "\n\n".join([escape(table.caption), lines, *map(escape, table.notes)]) + "\n"


def to_latex(table: TextTable, label: str) -> str:
    """A floating table for the booktabs package."""

    def number(text: str) -> str:
        return re.sub("^-", "$-$", escape_latex(text))

    body = [
        [entry.format(number, r"\underline{%s}", r"\textbf{%s}") for entry in row]
        for row in table.body
    ]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(' '.join((table.caption, *table.notes)))}}}",
        rf"\label{{{label}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
        r"\toprule",
        rf"{' & '.join(map(escape_latex, table.header))} \\",
        r"\midrule",
        *(rf"{' & '.join(row)} \\" for row in body),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Text whose every character LaTeX prints as it is."""
    return "".join(_LATEX.get(character, character) for character in text)


def fill(
    template: str,
    view: Mapping[str, Any],
    package: str,
    results: Sequence[FitResult],
    **filters: Callable[..., Any],
) -> str:
    """A template of a package that extends ``page.html.j2`` of this one, filled in."""
    jinja2 = require("jinja2")

    def load(name: str) -> str:
        home = __package__ if name in _SHARED else package
        return files(home).joinpath(name).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(load),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    in_words = {"and_list": and_list, "plural": plural, "duration": duration}
    environment.filters.update(arrow=arrow, p_text=p_text, signed=signed, **in_words, **filters)
    failed = [result for result in results if result.failure is not None]
    text: str = environment.get_template(template).render(
        view, failures=failed[:_MOST_FAILURES], n_failed=len(failed), n_fits=len(results)
    )
    return text


def with_minus(number: str) -> str:
    """A number with a proper minus sign."""
    return number.replace("-", "\N{MINUS SIGN}")


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
