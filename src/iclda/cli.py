"""The command line: parses, calls, draws the bar. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

try:
    import typer
except ImportError:  # pragma: no cover - without the extra there is no command line to test
    sys.exit("The command line needs extra packages: pip install 'iclda[experiments]'.")

if TYPE_CHECKING:
    from .experiments.study import Study

USAGE_ERROR, INTERRUPTED = 2, 130

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Semi-supervised linear discriminant analysis: the paper's experiments, reproduced.",
)
datasets_app = typer.Typer(invoke_without_command=True, help="The ten benchmark sets.")
app.add_typer(datasets_app, name="datasets")

Names = Annotated[
    str | None, typer.Option(help="Names separated by commas. Default: all that are at hand.")
]
Methods = Annotated[
    str | None,
    typer.Option(help="Names separated by commas, also SelfTraining and LabelSpreading."),
]
Out = Annotated[Path, typer.Option(help="Folder for rows, tables, figures and the report.")]
Jobs = Annotated[int, typer.Option(min=0, help="Processes; 0 takes all cores.")]
Seed = Annotated[int, typer.Option(min=0, help="All splits and starts follow from it.")]
Data = Annotated[
    Path | None, typer.Option(help="Folder with NAME.csv files (default: ICLDA_DATA).")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print a summary for programs at the end.")]


@app.command()
def reproduce(
    datasets: Names = None,
    methods: Methods = None,
    repeats: Annotated[int, typer.Option(min=2, help="Repeats of the tables.")] = 20,
    curve_repeats: Annotated[int, typer.Option(min=2, help="Repeats of the curves.")] = 500,
    jobs: Jobs = 0,
    seed: Seed = 0,
    out: Out = Path("results"),
    data: Data = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Run every experiment of the paper and write the report."""
    from .experiments.study import default_curves

    chosen, names = _methods(methods), _benchmarks(datasets, data, quiet)
    _run_and_draw(
        out,
        quiet,
        json,
        tables=names,
        curves=default_curves(names),
        methods=chosen,
        table_repeats=repeats,
        curve_repeats=curve_repeats,
        jobs=jobs,
        seed=seed,
        data_dir=data,
    )


@app.command()
def tables(
    datasets: Names = None,
    methods: Methods = None,
    repeats: Annotated[int, typer.Option(min=2, help="Repeats of the cross-validation.")] = 20,
    jobs: Jobs = 0,
    seed: Seed = 0,
    out: Out = Path("results"),
    data: Data = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Cross-validated error and loss on the benchmark sets."""
    _run_and_draw(
        out,
        quiet,
        json,
        methods=_methods(methods),
        tables=_benchmarks(datasets, data, quiet),
        table_repeats=repeats,
        jobs=jobs,
        seed=seed,
        data_dir=data,
    )


@app.command()
def curves(
    datasets: Annotated[
        str | None,
        typer.Option(help="Names separated by commas, also 2DGaussian and 2DGaussianViolated."),
    ] = None,
    methods: Methods = None,
    repeats: Annotated[int, typer.Option(min=2, help="Repeats of every point.")] = 500,
    jobs: Jobs = 0,
    seed: Seed = 0,
    out: Out = Path("results"),
    data: Data = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Error and loss against the number of unlabeled rows."""
    from .datasets import BENCHMARKS
    from .experiments.study import TOYS, choose, default_curves

    if datasets is None:
        names = default_curves(_benchmarks(None, data, quiet))
    else:
        with _explained_errors():
            names = choose(_listed(datasets), (*TOYS, *BENCHMARKS), "data set")
    _run_and_draw(
        out,
        quiet,
        json,
        curves=names,
        methods=_methods(methods),
        curve_repeats=repeats,
        jobs=jobs,
        seed=seed,
        data_dir=data,
    )


@app.command()
def toy(seed: Seed = 0, out: Out = Path("results"), quiet: Quiet = False) -> None:
    """The toy figure: what the unlabeled rows are taken for when they mislead."""
    from .experiments.redraw import draw_toy_figure

    with _explained_errors():
        paths = draw_toy_figure(out, seed)
    if not quiet:
        typer.echo(f"Toy figure: {paths[0]}")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of an earlier run.")],
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Draw tables, figures and report anew from stored rows, without fitting them again."""
    with _explained_errors():
        _draw(folder, quiet, json)


@datasets_app.callback()
def list_datasets(
    context: typer.Context,
    data: Data = None,
    json: Json = False,
) -> None:
    """List the ten sets: shape, source, license, and whether they are at hand."""
    if context.invoked_subcommand is None:
        from .experiments.listing import as_json, as_table

        with _explained_errors():
            typer.echo(as_json(data) if json else as_table(data))


@datasets_app.command("fetch")
def fetch_datasets(
    names: Annotated[list[str] | None, typer.Argument(help="Sets to fetch. Default: all.")] = None,
    quiet: Quiet = False,
) -> None:
    """Download sets, rebuild the paper's variant, verify and keep them in the cache."""
    from .datasets import BENCHMARKS, fetch_benchmark
    from .experiments.study import choose

    failed = 0
    with _explained_errors():
        public = [name for name, each in BENCHMARKS.items() if each.openml_id is not None]
        chosen = choose(names or public, list(BENCHMARKS), "data set")
    for name in chosen:
        try:
            path = fetch_benchmark(name)
        except (ValueError, OSError) as error:
            failed += 1
            typer.echo(f"{name}: {error}", err=True)
        else:
            if not quiet:
                typer.echo(f"{name}: {path}")
    raise typer.Exit(USAGE_ERROR if failed else 0)


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _methods(text: str | None) -> tuple[str, ...]:
    from .experiments.cells import METHODS
    from .experiments.study import choose, known_methods

    with _explained_errors():
        return METHODS if text is None else choose(_listed(text), known_methods(), "method")


def _benchmarks(text: str | None, data_dir: Path | None, quiet: bool) -> tuple[str, ...]:
    """Sets asked for, or all that are at hand, saying in one line how to get the rest."""
    from .datasets import BENCHMARKS
    from .experiments.study import choose, split_at_hand

    with _explained_errors():
        if text is not None:
            return choose(_listed(text), list(BENCHMARKS), "data set")
        at_hand, lacking = split_at_hand(list(BENCHMARKS), data_dir)
    if lacking and not quiet:
        typer.echo(
            f"Not at hand: {', '.join(lacking)}. Get them by `iclda datasets fetch` (BCI has no "
            "public copy), or pass a folder of CSV files by --data.",
            err=True,
        )
    return tuple(at_hand)


def _run_and_draw(out: Path, quiet: bool, json: bool, **settings: Any) -> None:
    from .experiments.study import Study, load_sets, run_study

    with _explained_errors():
        names = (*settings.get("tables", ()), *settings.get("curves", ()))
        settings["sets"] = load_sets(names, settings["data_dir"])
        settings["jobs"] = settings["jobs"] or _n_cores()
        study = Study(out=out, command=shlex.join(["iclda", *sys.argv[1:]]), **settings)
        with _progress(study, quiet) as advance:
            run_study(study, advance)
        _draw(out, quiet, json)


def _draw(out: Path, quiet: bool, json: bool) -> None:
    from .experiments.redraw import draw_everything

    summary = draw_everything(out)
    if json:
        import json as json_module

        typer.echo(json_module.dumps(summary, indent=2))
    elif not quiet:
        typer.echo(f"Report: {summary['report']}")


def _n_cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


@contextmanager
def _progress(study: Study, quiet: bool) -> Iterator[Any]:
    from .experiments.progress import bars, lines, nothing

    if quiet:
        yield nothing
    elif sys.stderr.isatty():
        with bars() as advance:
            yield advance
    else:
        yield lines()


@contextmanager
def _explained_errors() -> Iterator[None]:
    """What a user can mend is one line and exit code 2, an interruption one line and 130."""
    from .experiments.store import StoreError

    try:
        yield
    except KeyboardInterrupt:
        typer.echo(
            "Interrupted. What was computed is kept: run the same command to go on.", err=True
        )
        raise typer.Exit(INTERRUPTED) from None
    except (StoreError, ValueError, OSError, ImportError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(USAGE_ERROR) from None


def main() -> None:
    """Entry point of the command ``iclda``."""
    app()
