"""A table of text, and how it is written as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
