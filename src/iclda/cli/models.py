"""The commands that make, use and show model files: fit, predict, show."""

from __future__ import annotations

import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from .._messages import Hint, Text, printable
from .._progress import bars, occasional_lines, spinner
from ..methods import METHODS, find_method, parse_shrinkage
from . import words

AUTO = "auto"
_NAMES = [AUTO, *(method.name for method in METHODS)]
Shrinkage = Annotated[
    str,
    typer.Option(
        metavar="NUMBER",
        help="From 0, none, to below 1, or auto: steadies the covariance where labels are few.",
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `iclda fit` wrote.")]


def fit(
    data: words.TableFile,
    target: words.Target,
    method: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}; auto chooses by the labeled rows."
        ),
    ] = AUTO,
    out: Annotated[Path, typer.Option(help="Model file to write.")] = Path("model.skops"),
    unlabeled: words.Unlabeled = None,
    unlabeled_file: words.UnlabeledFile = None,
    drop: words.Drop = None,
    missing: words.Missing = "impute",
    shrinkage: Shrinkage = AUTO,
    prior: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS=SHARE", help="Share of a class, for each; default: learned."),
    ] = None,
    seed: words.Seed = 0,
    quiet: words.Quiet = False,
) -> None:
    """Learn a classifier from labeled and unlabeled rows and keep it in a file."""
    with words.explained_errors():
        from ..model_files import check_can_save, model_details, save_model
        from ..tabular import read_table
        from ..tabular.fit_predict import fit_summary, fit_table

        chosen = None if method == AUTO else find_method(method)
        priors, shrunk = _priors(prior), parse_shrinkage(shrinkage)
        words.check_missing(missing)
        if out.suffix != ".skops":
            raise ValueError(Text(Hint("out"), f" must name a .skops file, got {str(out)!r}."))
        check_can_save(out)
        with spinner("Reading", quiet):
            table = read_table(
                data,
                target=target,
                unlabeled=unlabeled,
                unlabeled_file=unlabeled_file,
                drop=drop or (),
            )
        with _show_passes("Fitting", quiet):
            fitted, about = fit_table(
                table,
                chosen,
                missing=missing,
                shrinkage=shrunk,
                priors=priors,
                seed=seed,
                command=words.command_line(),
            )
        save_model(fitted, out, about=words.all_in_options(about))
        if not quiet:
            details = model_details(out)
            last = f"Wrote {out}."
            if details["diagnosis"].get("converged", True):
                last += f" Next: iclda predict {shlex.quote(str(out))} DATA"
            _print([*fit_summary(details), "", last])


def predict(
    model: Model,
    data: words.TableFile,
    out: Annotated[Path, typer.Option(help="File to write, .csv or .parquet.")] = Path(
        "predictions.csv"
    ),
    id: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Copy this column to the predictions; repeatable."),
    ] = None,
    quiet: words.Quiet = False,
) -> None:
    """Predict class and probabilities of every row of a table of any size."""
    with words.explained_errors():
        from ..model_files import column_kinds, load_model
        from ..tabular.fit_predict import predict_file, prediction_summary

        fitted = load_model(model)
        kinds = column_kinds(fitted)
        if kinds is None:
            raise ValueError(
                f"{model} was fitted to columns without names, and a table is matched by names: "
                "fit it to a data frame, or predict in Python by iclda.load_model."
            )
        with _show_share("Predicting", quiet) as advance:
            counts = predict_file(fitted, kinds, data, out, ids=id or (), advance=advance)
        if not quiet:
            _print(prediction_summary(counts, out))


def show(
    model: Model,
    json: Annotated[bool, typer.Option("--json", help="Print it for programs.")] = False,
) -> None:
    """Show what a model file holds, how it was fitted and how that went."""
    with words.explained_errors():
        from ..model_files import model_details
        from ..tabular.fit_predict import show_summary

        details = model_details(model)
        if json:
            words.print_json(details)
        else:
            _print([f"{model}", "", *show_summary(details)])


COMMANDS = (fit, predict, show)


@contextmanager
def _show_passes(title: str, quiet: bool) -> Iterator[None]:
    """Progress of the current pass over many rows."""
    if quiet:
        yield
        return
    from .. import rows

    write = occasional_lines()

    def write_pass(n_pass: int, n_done: int, n_all: int | None) -> None:
        of_all = "" if n_all is None else f" of {n_all:,}"
        write(f"{title}: pass {n_pass}, {n_done:,}{of_all} rows")

    with rows.bar(title) if sys.stderr.isatty() else rows.progress(write_pass):
        yield


@contextmanager
def _show_share(title: str, quiet: bool) -> Iterator[Callable[[float, int], None]]:
    """Progress by the share of a file that is done."""
    if quiet:
        yield lambda share, n_rows: None
    elif sys.stderr.isatty():
        with bars() as shown:
            task = shown.add_task(title, total=1.0, text="")
            yield lambda share, n_rows: shown.update(
                task, completed=share, text=f"{share:.0%} {n_rows:,} rows"
            )
    else:
        write = occasional_lines()
        yield lambda share, n_rows: write(f"{title}: {n_rows:,} rows, {share:.0%} of the file")


def _priors(given: Sequence[str] | None) -> dict[str, float] | None:
    priors: dict[str, float] = {}
    for text in given or ():
        name, equals, share = text.rpartition("=")
        problem = f" must be CLASS=SHARE, for example yes=0.3, got {text!r}."
        if equals and name in priors:
            problem = f" names class {name!r} twice: pass one share for each class."
        try:
            if not equals or name in priors:
                raise ValueError
            priors[name] = float(share)
        except ValueError:
            raise ValueError(Text(Hint("priors"), problem)) from None
    return priors or None


def _print(lines: Sequence[str]) -> None:
    """Lines for people, broken between words on a terminal, with warnings that stand out."""
    for line in map(printable, lines):
        if sys.stdout.isatty() and not line.startswith("  "):
            line = textwrap.fill(line, shutil.get_terminal_size().columns)
        head, colon, rest = line.partition(": ")
        if head == "Warning":
            line = typer.style(head, fg="yellow", bold=True) + colon + rest
        typer.echo(line)
