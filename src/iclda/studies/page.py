"""Reports as HTML pages, their figures, tables of text, and numbers as text.

``fill`` makes a page of a template that extends ``page.html.j2``. Figures are drawn
inside ``styled``, so that all look alike, and put into a page by ``to_inline_svg``. A
report needs the extra ``experiments``: matplotlib and Jinja are imported when they are
used.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _system
from .._messages import and_list, is_formula, plural
from .._system import atomic_write
from ..methods import INK
from .measures import Confusion, Measure
from .store import FitResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Stands where there is no number.
NO_NUMBER = "\N{EN DASH}"
# A page shows the tracebacks of at most this many failed fits.
_MAX_FAILURES = 20
# A terminal shows a confusion matrix of at most this many classes.
_MAX_MATRIX_CLASSES = 12
# A terminal shows the errors of at most this many classes.
_MAX_ERROR_CLASSES = 20
# The error of a missing package says what it is needed for, and the extra to install.
_USE = "figures and reports"
_EXTRA = "experiments"
_STYLE = Path(__file__).with_name("figures.mplstyle")
# The entry in the metadata of each format of figures that varies from run to run.
_VARYING_METADATA = {"svg": "Date", "png": "Software", "pdf": "CreationDate"}
_DPI = 200


def csv_text(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Format lines as CSV.

    Floats have ten digits, None is an empty field, and a text that a spreadsheet would
    run as a formula is quoted.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for line in (header, *lines):
        writer.writerow(map(_csv_cell, line))
    return buffer.getvalue()


def _csv_cell(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.10g}"
    return f"'{value}" if is_formula(value) else value


def records_csv(
    kind: type, records: Iterable[object], left_out: Sequence[str] = ()
) -> str:
    """Format instances of a dataclass as CSV, with a column for each field."""
    names = [each.name for each in fields(kind) if each.name not in left_out]
    lines = ([getattr(record, name) for name in names] for record in records)
    return csv_text(names, lines)


def align(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Format rows as lines with aligned columns; ``sides`` is a text of l and r."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if side == "l" else cell.rjust(width)
            for cell, side, width in zip(row, sides, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


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
    """Fill in a template of a package; it may extend ``page.html.j2`` of this one.

    ``results`` are the fits of the study: the page says how many of them failed.
    """
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
    text: str = environment.get_template(template).render(
        {
            **view,
            "failures": failed[:_MAX_FAILURES],
            "n_failed": len(failed),
            "n_fits": len(results),
        }
    )
    return text


def with_minus(number: str) -> str:
    """Replace the hyphen of a number by a minus sign."""
    return number.replace("-", "\N{MINUS SIGN}")


def share(value: float) -> str:
    """Format a share in percent, without the percent sign."""
    return with_minus(f"{100 * value:.1f}")


def percent(value: float) -> str:
    """Format a share with the percent sign: 4.5 %."""
    return f"{share(value)} %"


def signed(value: float, decimals: int = 1) -> str:
    """Format a value with plus or minus; zero has neither."""
    text = f"{value:+.{decimals}f}"
    return with_minus(text) if text.strip("+-0.") else text[1:]


def p_text(p: float) -> str:
    """Format a p-value to three decimals."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def duration(seconds: float) -> str:
    """Format seconds: 4.2 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def rows_text(count: float) -> str:
    """Format a number of rows; a mean over repeats has one decimal."""
    return f"{count:,.0f}" if count == round(count) else f"{count:,.1f}"


def arrow(verdict: str, measure: Measure) -> str:
    """Return a triangle that points down for lower values and up for higher ones."""
    is_lower = (verdict == "better") == measure.lower_is_better
    if is_lower:
        return "\N{BLACK DOWN-POINTING TRIANGLE}"
    return "\N{BLACK UP-POINTING TRIANGLE}"


def class_error_lines(confusion: Confusion) -> list[str]:
    """Format the errors by class as a table; of many classes, the largest errors."""
    errors = confusion.by_class
    n_hidden = len(errors) - _MAX_ERROR_CLASSES
    if n_hidden > 0:
        errors = sorted(errors, key=lambda each: -each.error)[:_MAX_ERROR_CLASSES]
    rows = [["class", "rows", "wrong", "error", "90 % interval"]]
    for each in errors:
        row = [
            each.name,
            rows_text(each.n_rows),
            rows_text(each.n_wrong),
            f"{each.error:.1%}",
            f"{each.low:.1%} to {each.high:.1%}",
        ]
        rows.append(row)
    lines = align(rows, "lrrrr")
    if n_hidden > 0:
        lines.append(f"and {n_hidden} classes with smaller errors")
    return lines


def confusion_lines(confusion: Confusion) -> list[str]:
    """Format the matrix as a table, true classes down; empty if it is too wide."""
    classes = confusion.classes
    if len(classes) > _MAX_MATRIX_CLASSES:
        return []
    rows = [["true \\ predicted", *classes]]
    for name, counts in zip(classes, confusion.counts.tolist(), strict=True):
        rows.append([name, *map(rows_text, counts)])
    return align(rows, "l" + "r" * len(classes))


# Functions that all templates may call, by the names they have there.
_FILTERS: dict[str, Callable[..., Any]] = {
    "and_list": and_list,
    "arrow": arrow,
    "duration": duration,
    "p_text": p_text,
    "percent": percent,
    "plural": plural,
    "rows_text": rows_text,
    "share": share,
    "signed": signed,
}


def check_can_report() -> None:
    """Raise an ImportError if a package that reports need is missing."""
    _system.check_installed(("jinja2", "markupsafe", "matplotlib"), _USE, _EXTRA)


def import_for_reports(module: str) -> Any:
    """Import a module; the error of a missing one names the extra to install."""
    return _system.require(module, _USE, _EXTRA)


@contextmanager
def _house_style() -> Iterator[None]:
    with import_for_reports("matplotlib.style").context(_STYLE, after_reset=True):
        yield


# A decorator: a function draws in the style, and settings are restored after it.
styled = _house_style()


def new_figure(width: float, height: float, n_rows: int = 1, n_columns: int = 1) -> Any:
    """Make a figure without a window, and its array of axes, n_rows x n_columns."""
    matplotlib_figure = import_for_reports("matplotlib.figure")
    figure = matplotlib_figure.Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


@styled
def draw_display(display: Any, width: float, height: float, description: str) -> Figure:
    """Draw a display of ``iclda.plots`` in a figure of its own."""
    figure, grid = new_figure(width, height)
    figure.set_label(description)
    display.plot(ax=grid[0, 0])
    return figure  # type: ignore[no-any-return]


@styled
def save(figure: Figure, path_without_suffix: Path) -> list[Path]:
    """Write SVG, PNG and PDF files, the same bytes every time; return their paths."""
    path_without_suffix.parent.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, varying_entry in _VARYING_METADATA.items():
        # The name may contain dots, so that ``with_suffix`` would cut it off.
        path = path_without_suffix.with_name(f"{path_without_suffix.name}.{kind}")
        with atomic_write(path) as unfinished:
            figure.savefig(
                unfinished,
                format=kind,
                metadata={varying_entry: None},
                # Files have a white ground, unlike the figures inside a page.
                facecolor="white",
                dpi=_DPI,
            )
        paths.append(path)
    return paths


@styled
def to_inline_svg(figure: Figure, name: str) -> Any:
    """Return a figure as an <svg> element.

    Text stays text, and ink has the color of the text of the page. ``name`` keeps the
    ids of several figures on one page apart. The label of the figure describes it to
    those who do not see it.
    """
    buffer = io.StringIO()
    with import_for_reports("matplotlib").rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, dpi=_DPI)
    svg = re.sub(r"<metadata>.*?</metadata>", "", buffer.getvalue(), flags=re.DOTALL)
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")

    # Make ids unique on the page, and follow in what refers to them.
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", name)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"(url\(|href=\")#", rf"\g<1>#{prefix}-", svg)

    # Without a size of its own the figure takes the width of the page.
    for size in ("height", "width"):
        svg = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", svg, count=1)
    label = f' role="img" aria-label="{escape(str(figure.get_label()))}"'
    return import_for_reports("markupsafe").Markup(
        svg.replace("<svg", "<svg" + label, 1)
    )
