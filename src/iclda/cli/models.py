"""The commands that make, use, judge and show model files: fit, predict, evaluate, show."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._messages import Hint, Text, printable, wrap
from .._paths import atomic_write, check_writable
from .._progress import bars, occasional_lines, spinner
from ..methods import FITTED, find_method, parse_shrinkage
from . import words

if TYPE_CHECKING:
    from ..tabular.fit_predict import PredictionCounts

NOT_CONVERGED = 3  # exit code of a fit that wrote a model not to be relied on
_STANDARD_OUTPUT = Path("-")
AUTO, LABELED = "auto", "labeled"
_NAMES = [AUTO, *(method.name for method in FITTED)]
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
            metavar="NAME",
            autocompletion=lambda: _NAMES,
            help=f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}; auto chooses by the labeled rows.",
        ),
    ] = AUTO,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Model file to write.")] = Path(
        "model.skops"
    ),
    unlabeled: words.Unlabeled = None,
    unlabeled_file: words.UnlabeledFile = None,
    drop: words.Drop = None,
    keep: words.Keep = None,
    drop_unusable: words.DropUnusable = False,
    missing: words.Missing = "impute",
    shrinkage: Shrinkage = AUTO,
    prior: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS=SHARE", help="Share of a class, for each; default: learned."),
    ] = None,
    proportions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=SHARE",
            help="Share of the unlabeled rows that a class gets, for each: 0.3 or 0.2:0.4; or "
            "labeled, for the shares of the labeled rows. For iclda, em and pessimistic.",
        ),
    ] = None,
    seed: words.Seed = 0,
    quiet: words.Quiet = False,
    verbose: words.Verbose = False,
) -> None:
    """Learn a classifier from a table and keep it in a file."""
    with words.explained_errors():
        from .._statistics import NOTHING
        from ..model_files import check_can_save, model_details, save_model
        from ..tabular import read_table
        from ..tabular.fit_predict import fit_summary, fit_table, verbose_lines

        with words.noted_warnings():
            chosen = None if method == AUTO else find_method(method, others=[AUTO])
        priors, shrunk = _shares("priors", prior), parse_shrinkage(shrinkage)
        quotas = LABELED if proportions == [LABELED] else _shares("proportions", proportions)
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
                keep=keep,
                drop_unusable=drop_unusable,
            )
        with _show_passes("Fitting", quiet):
            fitted, about = fit_table(
                table,
                chosen,
                missing=missing,
                shrinkage=shrunk,
                priors=priors,
                proportions=quotas,
                seed=seed,
                command=words.command_line(),
            )
        written = _written(out)
        save_model(fitted, out, about=words.all_in_options(about))
        details = model_details(out)
        is_converged = details["diagnosis"].get("converged", True)
        if not quiet:
            is_useful = is_converged and details["about"].get("learned") != NOTHING
            next_one = f" Next: iclda predict {shlex.quote(str(out))} DATA" if is_useful else ""
            more = verbose_lines(details) if verbose else []
            _print([*fit_summary(details), *more, "", f"{written}.{next_one}"])
        if not is_converged:
            raise typer.Exit(NOT_CONVERGED)


def predict(
    model: Model,
    data: words.TableFile,
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="File to write, .csv or .parquet; - is standard output."),
    ] = Path("predictions.csv"),
    id: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Copy this column to the predictions; repeatable."),
    ] = None,
    quiet: words.Quiet = False,
) -> None:
    """Predict class and probabilities of every row of a table."""
    with words.explained_errors(), _using(model):
        from ..model_files import model_details
        from ..tabular.fit_predict import predict_file, prediction_summary

        fitted, kinds = _load(model)
        target = model_details(model)["about"].get("target")
        written, is_piped = _written(out), out == _STANDARD_OUTPUT
        with _as_file(out) as file, _show_share("Predicting", quiet) as advance:
            counts = predict_file(fitted, kinds, data, file, ids=id or (), advance=advance)
        if not quiet:
            lines = prediction_summary(counts, written)
            _print([*lines, *_next_step(counts, target, model, data)], err=is_piped)


def evaluate(
    model: Model,
    data: words.TableFile,
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the classes. Default: that of the fit."),
    ] = None,
    unlabeled: words.Unlabeled = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a page, .html.")
    ] = None,
    quiet: words.Quiet = False,
    json: words.Json = False,
) -> None:
    """Judge a model by rows whose class is known."""
    with words.explained_errors(), _using(model):
        from ..model_files import model_details
        from ..studies.evaluation import evaluate_file, evaluation_lines, evaluation_page

        if out is not None:
            _check_page(out)
        fitted, kinds = _load(model)
        about = model_details(model)["about"]
        with _show_share("Evaluating", quiet or json) as advance:
            found = evaluate_file(
                fitted,
                kinds,
                about,
                model,
                data,
                target=target,
                unlabeled=unlabeled,
                advance=advance,
            )
        written = None if out is None else _written(out)
        if out is not None:
            with atomic_write(out) as unfinished:
                unfinished.write_text(evaluation_page(found), encoding="utf-8")
        if json:
            words.print_json({**found.to_json(), "page": None if out is None else str(out)})
        elif not quiet:
            _print([*evaluation_lines(found), *([] if written is None else ["", f"{written}."])])


def show(
    model: Model,
    json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print it for programs.")
    ] = False,
    verbose: words.Verbose = False,
) -> None:
    """Show what a model file holds and how its fit went."""
    with words.explained_errors(), _using(model):
        from ..model_files import load_model, model_details
        from ..tabular.fit_predict import show_summary, verbose_lines
        from ..tabular.importance import importance_lines, standardized_coefficients

        details = model_details(model)
        found: list[dict[str, Any]] = []
        with warnings.catch_warnings(), suppress(ValueError):  # a model with steps of its own
            warnings.simplefilter("ignore")  # of versions: what is shown does not depend on them
            found = standardized_coefficients(load_model(model))
        if json:
            words.print_json({**details, "discriminants": found})
        else:
            lines = [str(model), "", *show_summary(details)]
            lines += verbose_lines(details) if verbose else []
            _print([*lines, *importance_lines(found)])


COMMANDS = (fit, predict, evaluate, show)


@contextmanager
def _using(model: Path) -> Iterator[None]:
    """Errors of a file that was made by hand, with a checksum that fits, as a ValueError."""
    import numpy as np

    try:
        with np.errstate(all="ignore"):  # no fit gives numbers that overflow
            yield
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(
            f"{model} holds no model that can be used ({type(error).__name__}: {error}). Fit it "
            "again; if `iclda fit` wrote it so, please report that."
        ) from error


def _load(path: Path) -> tuple[Any, dict[str, str]]:
    """A model that can be applied to tables, and the kinds of the columns that it reads."""
    from ..model_files import column_kinds, load_model

    fitted = load_model(path)
    kinds = column_kinds(fitted)
    if kinds is None:
        raise ValueError(
            f"{path} was fitted to columns without names, and a table is matched by names: "
            "fit it to a data frame, or predict in Python by iclda.load_model."
        )
    return fitted, kinds


def _check_page(out: Path) -> None:
    from ..studies.drawing import check_can_report

    check_can_report()
    check_writable(out)
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(Text(Hint("out"), f" must name an .html file, got {str(out)!r}."))


def _written(out: Path) -> str:
    """What is said of a file that is going to be written."""
    if out == _STANDARD_OUTPUT:
        return "Wrote to standard output"
    return f"Wrote {out} over the file of that name" if out.exists() else f"Wrote {out}"


@contextmanager
def _as_file(out: Path) -> Iterator[Path]:
    """A path to write to; what was written there is copied to standard output if that is meant."""
    if out != _STANDARD_OUTPUT:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="iclda-") as folder:
        file = Path(folder) / "predictions.csv"
        yield file
        with file.open("rb") as written:
            shutil.copyfileobj(written, sys.stdout.buffer)
        sys.stdout.flush()


def _next_step(counts: PredictionCounts, target: object, model: Path, data: Path) -> Iterator[str]:
    """The command that judges predictions, where the file has the column of the classes."""
    if target in counts.ignored and data.is_file():
        command = shlex.join(["iclda", "evaluate", str(model), str(data)])
        yield f"{target!r} is in the file. To compare the predictions with it: {command}"


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


def _shares(parameter: str, given: Sequence[str] | None) -> dict[str, Any] | None:
    """CLASS=SHARE of every class; for proportions a share may be LOW:HIGH."""
    shares: dict[str, Any] = {}
    for text in given or ():
        name, equals, share = text.rpartition("=")
        problem = f" must be CLASS=SHARE, for example yes=0.3, got {text!r}."
        if equals and name in shares:
            problem = f" names class {name!r} twice: pass one share for each class."
        try:
            if not equals or name in shares:
                raise ValueError
            low, colon, high = share.partition(":")
            is_interval = colon and parameter == "proportions"
            shares[name] = (float(low), float(high)) if is_interval else float(share)
        except ValueError:
            raise ValueError(Text(Hint(parameter), problem)) from None
    return shares or None


def _print(lines: Sequence[str], *, err: bool = False) -> None:
    """Lines for people, broken between words on a terminal, with warnings that stand out."""
    stream = sys.stderr if err else sys.stdout
    for line in map(printable, lines):
        if stream.isatty() and not line.startswith("  "):
            line = "\n".join(wrap(line, shutil.get_terminal_size().columns))
        head, colon, rest = line.partition(": ")
        if head == "Warning":
            line = typer.style(head, fg="yellow", bold=True) + colon + rest
        typer.echo(line, err=err)
