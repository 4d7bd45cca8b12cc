"""Pages from templates, tables of text, and numbers in words."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from .._messages import and_list, is_formula, plural
from .._paths import atomic_write
from .drawing import import_for_reports
from .measures import arrow
from .store import FitResult

NOTHING = "\N{EN DASH}"  # stands where there is no number
_MOST_FAILURES = 20  # on a page


def csv_text(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Format lines as CSV: floats to ten digits, None as an empty field, formulas as text."""
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
    """Format attributes of objects as CSV, one object a line."""
    return csv_text(names, ([getattr(each, name) for name in names] for each in objects))


def align(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Format rows as lines with aligned columns; ``sides`` has l or r for each column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    signs = [{"l": "<", "r": ">"}[side] for side in sides]
    lines = (map("{:{}{}}".format, row, signs, widths) for row in rows)
    return ["  ".join(line).rstrip() for line in lines]


def write_texts(folder: Path, contents: Mapping[str, str]) -> list[Path]:
    """Write the files of a folder, by name; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        with atomic_write(folder / name) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    return [folder / name for name in contents]


def fill(
    template: str,
    view: Mapping[str, Any],
    package: str,
    results: Sequence[FitResult],
    **filters: Callable[..., Any],
) -> str:
    """Fill in a template of a package that extends ``page.html.j2`` of this one."""
    jinja2 = import_for_reports("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([str(files(package)), str(files(__package__))]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_FILTERS, **filters)
    failed = [result for result in results if result.failure is not None]
    counts = {"n_failed": len(failed), "n_fits": len(results)}
    view = {**view, "failures": failed[:_MOST_FAILURES], **counts}
    text: str = environment.get_template(template).render(view)
    return text


def with_minus(number: str) -> str:
    """A number with a proper minus sign."""
    return number.replace("-", "\N{MINUS SIGN}")


def share(value: float) -> str:
    """A share in percent, without the percent sign."""
    return with_minus(f"{100 * value:.1f}")


def percent(value: float) -> str:
    """A share with its sign: 4.5 %."""
    return f"{share(value)} %"


def signed(value: float, decimals: int = 1) -> str:
    """A value with its sign, and a proper minus sign; zero has none."""
    text = f"{value:+.{decimals}f}"
    return with_minus(text) if text.strip("+-0.") else text[1:]


def p_text(p: float) -> str:
    """A p-value to three decimals."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def duration(seconds: float) -> str:
    """Seconds in words: 4.2 s, 3 min 20 s, 2 h 5 min."""
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
    each.__name__: each
    for each in (and_list, arrow, duration, p_text, percent, plural, rows_text, share, signed)
}
