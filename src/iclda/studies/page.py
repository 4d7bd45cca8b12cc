"""Pages from templates, their figures, tables of text, and numbers in words."""

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

NOTHING = "\N{EN DASH}"  # stands where there is no number
_MOST_FAILURES = 20  # on a page
_MOST_CLASSES = 12  # of a matrix on a terminal
_MOST_ERRORS = 20  # classes whose errors a terminal shows
_USE, _EXTRA = "figures and reports", "experiments"
_STYLE = Path(__file__).with_name("figures.mplstyle")


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


def records_csv(
    kind: type, records: Iterable[object], left_out: Sequence[str] = ()
) -> str:
    """Format the fields of instances of a dataclass as CSV, one instance a line."""
    names = [each.name for each in fields(kind) if each.name not in left_out]
    return csv_text(
        names, ([getattr(each, name) for name in names] for each in records)
    )


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


def arrow(verdict: str, measure: Measure) -> str:
    """Triangle that points down for lower values and up for higher ones."""
    is_lower = (verdict == "better") == measure.lower_is_better
    return (
        "\N{BLACK DOWN-POINTING TRIANGLE}"
        if is_lower
        else "\N{BLACK UP-POINTING TRIANGLE}"
    )


def class_error_lines(confusion: Confusion) -> list[str]:
    """Format the errors by class as a table; of many classes, the largest errors."""
    rows = [["class", "rows", "wrong", "error", "90 % interval"]]
    shown, n_more = confusion.by_class, len(confusion.by_class) - _MOST_ERRORS
    if n_more > 0:
        shown = sorted(shown, key=lambda each: -each.error)[:_MOST_ERRORS]
    for each in shown:
        counts = rows_text(each.n_rows), rows_text(each.n_wrong)
        rows.append(
            [
                each.name,
                *counts,
                f"{each.error:.1%}",
                f"{each.low:.1%} to {each.high:.1%}",
            ]
        )
    more = [f"and {n_more} classes with smaller errors"] if n_more > 0 else []
    return [*align(rows, "lrrrr"), *more]


def confusion_lines(confusion: Confusion) -> list[str]:
    """Format the matrix as a table, true classes down; empty if it would be too wide."""
    classes = confusion.classes
    if len(classes) > _MOST_CLASSES:
        return []
    counts = zip(classes, confusion.counts.tolist(), strict=True)
    rows = [[name, *map(rows_text, row)] for name, row in counts]
    return align([["true \\ predicted", *classes], *rows], "l" + "r" * len(classes))


_FILTERS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        and_list,
        arrow,
        duration,
        p_text,
        percent,
        plural,
        rows_text,
        share,
        signed,
    )
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


styled = (
    _house_style()
)  # a decorator: a function runs in the style, settings are restored after it


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
    path = Path(path_without_suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, varying in {
        "svg": "Date",
        "png": "Software",
        "pdf": "CreationDate",
    }.items():
        paths.append(path.with_name(f"{path.name}.{kind}"))
        # Files have a white ground, unlike the figures inside a page.
        look: Any = {"metadata": {varying: None}, "facecolor": "white", "dpi": 200}
        with atomic_write(paths[-1]) as unfinished:
            figure.savefig(unfinished, format=kind, **look)
    return paths


@styled
def to_inline_svg(figure: Figure, name: str) -> Any:
    """Return an <svg> element: text stays text, and ink has the color of the page's text.

    ``name`` keeps the ids of several figures on one page apart. The label of the figure describes
    it to those who do not see it.
    """
    buffer = io.StringIO()
    with import_for_reports("matplotlib").rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, dpi=200)
    svg = re.sub(r"<metadata>.*?</metadata>", "", buffer.getvalue(), flags=re.DOTALL)
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", name)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"(url\(|href=\")#", rf"\g<1>#{prefix}-", svg)
    for size in ("height", "width"):
        svg = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", svg, count=1)
    label = f' role="img" aria-label="{escape(str(figure.get_label()))}"'
    return import_for_reports("markupsafe").Markup(
        svg.replace("<svg", "<svg" + label, 1)
    )
