"""Pages and tables of text: HTML from templates, CSV, Markdown and LaTeX, numbers in words."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from .drawing import require

NOTHING = "\N{EN DASH}"  # stands where there is no number
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
class Finding:
    """A number to remember, what it is, and the sentences behind it."""

    number: str
    title: str
    text: str


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


def to_markdown(table: TextTable) -> str:
    """GitHub's tables; HTML for the underlining, which Markdown lacks."""
    lines = [_markdown_line([_escape_markdown(name) for name in table.header])]
    lines.append(_markdown_line(["---"] + ["---:"] * (len(table.header) - 1)))
    lines += [_markdown_line([_markdown_entry(entry) for entry in row]) for row in table.body]
    paragraphs = [_escape_markdown(table.caption), "\n".join(lines)]
    return "\n\n".join(paragraphs + [_escape_markdown(note) for note in table.notes]) + "\n"


def _markdown_line(texts: list[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _markdown_entry(entry: Entry) -> str:
    text = _escape_markdown(entry.text)
    text = f"<u>{text}</u>" if entry.is_underlined else text
    return f"**{text}**" if entry.is_bold else text


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\|*_<`\[])", r"\\\1", " ".join(text.split()))


def to_latex(table: TextTable, label: str) -> str:
    """A floating table for the booktabs package."""
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(' '.join((table.caption, *table.notes)))}}}",
        rf"\label{{{label}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
        r"\toprule",
        _latex_line([escape_latex(name) for name in table.header]),
        r"\midrule",
        *(_latex_line([_latex_entry(entry) for entry in row]) for row in table.body),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_line(texts: list[str]) -> str:
    return " & ".join(texts) + r" \\"


def _latex_entry(entry: Entry) -> str:
    text = escape_latex(entry.text)
    if text.startswith("-"):
        text = "$-$" + text[1:]
    text = rf"\underline{{{text}}}" if entry.is_underlined else text
    return rf"\textbf{{{text}}}" if entry.is_bold else text


def escape_latex(text: str) -> str:
    """Text whose every character LaTeX prints as it is."""
    return "".join(_LATEX.get(character, character) for character in text)


def fill(
    template: str,
    view: Mapping[str, Any],
    package: str,
    filters: Mapping[str, Callable[..., Any]] | None = None,
) -> str:
    """A template of a package, filled in; it can extend ``page.html.j2`` of this one."""
    jinja2 = require("jinja2")

    def load(name: str) -> str:
        home = __package__ if name == "page.html.j2" else package
        return files(home).joinpath(name).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(load),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters or {})
    text: str = environment.get_template(template).render(view)
    return text


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
