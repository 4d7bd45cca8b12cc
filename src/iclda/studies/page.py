"""Reports as HTML pages, their figures, and numbers and tables as text.

``fill`` makes a page from a template that extends ``page.html.j2``. Functions that draw
a figure are decorated with ``styled``, so that all figures look alike, and
``to_inline_svg`` puts a figure into a page. A report needs the extra ``experiments``:
matplotlib and Jinja are imported when they are used.
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

# Shown in place of a missing number.
NO_NUMBER = "\N{EN DASH}"
# A page shows the tracebacks of at most this many failed fits.
_MAX_FAILURES = 20
# A confusion matrix of more classes than this is too wide for a terminal.
_MAX_MATRIX_CLASSES = 12
# Numbers stand for the classes above a wider matrix: it would not fit a terminal.
_MAX_MATRIX_WIDTH = 78
# A terminal shows the errors of at most this many classes.
_MAX_ERROR_CLASSES = 20
# For the error of a missing package: what needs it, and the extra that installs it.
_USE = "figures and reports"
_EXTRA = "experiments"
_STYLE = Path(__file__).with_name("figures.mplstyle")
# The metadata of each format of figures that would differ from run to run. It is left
# out, so that the same rows give the same bytes.
_VARYING_METADATA = {"svg": "Date", "png": "Software", "pdf": "CreationDate"}
_DPI = 200
# Inches. A figure of this width fills the window of a phone, where its text is about as
# large as that of the page.
NARROW_WIDTH = 3.7
# More numbers at the horizontal axis of such a figure would touch.
_MAX_NARROW_TICKS = 4


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
    """Format instances of a dataclass as CSV, with a column for each field.

    ``kind`` is the dataclass: without any instance, the header is written all the same.
    """
    names = [field.name for field in fields(kind) if field.name not in left_out]
    lines = [[getattr(record, name) for name in names] for record in records]
    return csv_text(names, lines)


def align(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Format rows as lines with aligned columns.

    ``sides`` has a letter for each column: l for left, r for right.
    """
    columns = zip(*rows, strict=True)
    widths = [max(map(len, column)) for column in columns]
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
    """Fill in a template of a package, which may extend ``page.html.j2`` of this one.

    ``results`` are the fits of the study: the page says how many of them failed.
    ``filters`` are functions that the template may call, besides ``_FILTERS``.
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
    about_fits = {
        "failures": failed[:_MAX_FAILURES],
        "n_failed": len(failed),
        "n_alarms": sum(result.is_alarm for result in failed),
        "n_fits": len(results),
    }
    text: str = environment.get_template(template).render({**view, **about_fits})
    return text


def with_minus(number: str) -> str:
    """Replace the hyphen of a negative number by a minus sign."""
    return number.replace("-", "\N{MINUS SIGN}")


def percent(share: float) -> str:
    """Format a share as a percentage: 4.5 %."""
    return f"{100 * share:.1f} %"


def signed(value: float, decimals: int = 1) -> str:
    """Format a value with a plus or minus sign; zero has neither."""
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
    """Format the errors by class as a table; of many classes, only the largest."""
    errors = confusion.by_class
    n_hidden = len(errors) - _MAX_ERROR_CLASSES
    if n_hidden > 0:
        errors = sorted(errors, key=lambda of_class: -of_class.error)
        errors = errors[:_MAX_ERROR_CLASSES]
    rows = [["class", "rows", "wrong", "error", "90 % interval"]]
    for of_class in errors:
        row = [
            of_class.name,
            rows_text(of_class.n_rows),
            rows_text(of_class.n_wrong),
            percent(of_class.error),
            f"{percent(of_class.low)} to {percent(of_class.high)}",
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
    sides = "l" + "r" * len(classes)
    rows = [["true \\ predicted", *classes]]
    for name, counts in zip(classes, confusion.counts.tolist(), strict=True):
        rows.append([name, *map(rows_text, counts)])
    lines = align(rows, sides)
    if max(map(len, lines)) <= _MAX_MATRIX_WIDTH:
        return lines
    for number, row in enumerate(rows[1:], 1):
        row[0] = f"{number} {row[0]}"
        rows[0][number] = str(number)
    return align(rows, sides)


# Functions that all templates may call, by the names they have there.
# What to type: text between backticks, and options.
_CODE = re.compile(r"`([^`]+)`|(?<![\w-])(--[a-z][a-z-]*(?:=\S*\w)?)")


def code(text: str) -> Any:
    """Return a text as HTML in which commands and options are set as code.

    Code is not broken into lines: a browser would break an option behind its hyphens.
    """
    markupsafe = import_for_reports("markupsafe")
    parts = []
    end = 0
    for found in _CODE.finditer(text):
        parts.append(markupsafe.escape(text[end : found.start()]))
        parts.append(f"<code>{markupsafe.escape(found[1] or found[2])}</code>")
        end = found.end()
    parts.append(markupsafe.escape(text[end:]))
    return markupsafe.Markup("".join(parts))


_FILTERS: dict[str, Callable[..., Any]] = {
    "and_list": and_list,
    "arrow": arrow,
    "code": code,
    "duration": duration,
    "p_text": p_text,
    "percent": percent,
    "plural": plural,
    "rows_text": rows_text,
    "signed": signed,
}


def check_can_report() -> None:
    """Raise an ImportError if a package that reports need is missing."""
    _system.check_installed(("jinja2", "markupsafe", "matplotlib"), _USE, _EXTRA)


def import_for_reports(module: str) -> Any:
    """Import a module; the error of a missing one names the extra to install."""
    return _system.require(module, _USE, _EXTRA)


@contextmanager
def _report_style() -> Iterator[None]:
    with import_for_reports("matplotlib.style").context(_STYLE, after_reset=True):
        yield


# As a decorator: the function draws in the style of reports, and the settings of
# matplotlib are restored after it.
styled = _report_style()


def new_figure(width: float, height: float, n_rows: int = 1, n_columns: int = 1) -> Any:
    """Return a figure without a window, and its axes as an array (n_rows, n_columns).

    Sizes are in inches.
    """
    matplotlib_figure = import_for_reports("matplotlib.figure")
    figure = matplotlib_figure.Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


@styled
def draw_display(
    display: Any,
    width: float,
    height: float,
    description: str,
    *,
    is_narrow: bool = False,
) -> Figure:
    """Draw a display of ``iclda.plots`` in a figure of its own.

    One that is narrow is for small screens, whatever ``width`` is.
    """
    figure, grid = new_figure(NARROW_WIDTH if is_narrow else width, height)
    figure.set_label(description)
    axes = grid[0, 0]
    display.plot(ax=axes)
    if is_narrow:
        axes.locator_params(axis="x", nbins=_MAX_NARROW_TICKS)
    return figure  # type: ignore[no-any-return]


@styled
def save(figure: Figure, path_without_suffix: Path) -> list[Path]:
    """Write SVG, PNG and PDF files, the same bytes every time; return their paths."""
    path_without_suffix.parent.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, varying_entry in _VARYING_METADATA.items():
        # ``with_suffix`` would cut off the end of a name that contains a dot.
        path = path_without_suffix.with_name(f"{path_without_suffix.name}.{kind}")
        with atomic_write(path) as unfinished:
            figure.savefig(
                unfinished,
                format=kind,
                metadata={varying_entry: None},
                # Figures inside a page are transparent, files are not.
                facecolor="white",
                dpi=_DPI,
            )
        paths.append(path)
    return paths


def to_inline_svgs(wide: Figure, narrow: Figure, name: str) -> Any:
    """Return two drawings of a figure, of which the page shows the one that fits."""
    elements = import_for_reports("markupsafe").Markup(
        '<div class="on-wide">{}</div><div class="on-narrow">{}</div>'
    )
    return elements.format(
        to_inline_svg(wide, name), to_inline_svg(narrow, f"{name}-narrow")
    )


@styled
def to_inline_svg(figure: Figure, name: str) -> Any:
    """Return a figure as an <svg> element.

    Text stays text, and ink has the color of the text of the page. ``name`` keeps the
    ids of several figures on one page apart. The label of the figure is its description
    for screen readers.
    """
    buffer = io.StringIO()
    with import_for_reports("matplotlib").rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, dpi=_DPI)
    svg = buffer.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # What stands before the element belongs to a file, not into a page.
    svg = svg[svg.index("<svg") :]
    svg = svg.replace(INK, "currentColor")

    # Make ids unique on the page, and change the references to them alike.
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", name)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"(url\(|href=\")#", rf"\g<1>#{prefix}-", svg)

    # Without a size of its own the figure takes the width of the page.
    for size in ("height", "width"):
        svg = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", svg, count=1)
    description = escape(str(figure.get_label()))
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{description}"', 1)
    # Markup is not escaped by the template.
    return import_for_reports("markupsafe").Markup(svg)
