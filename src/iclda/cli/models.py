"""The commands that make, use, judge and show model files: fit, predict, evaluate, show."""

from __future__ import annotations

import shlex
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from .. import cli
from .._messages import printable, wrap
from .._progress import show_cells
from .._system import atomic_write, check_writable
from ..methods import CHOSEN_BY_NAME, find_method, parse_shrinkage

NOT_CONVERGED = 3  # exit code of a fit that wrote a model not to be relied on
_AUTO = "auto"
_PROPORTIONS = "labeled", "equal", "auto", "free"  # besides CLASS=SHARE
_NAMES = [_AUTO, *(method.name for method in CHOSEN_BY_NAME)]
_Texts = list[str] | None
_Model = Annotated[Path, Argument(metavar="MODEL", help="A file that `iclda fit` wrote.")]
_MethodName = Annotated[
    str,
    Option(
        metavar="NAME",
        autocompletion=lambda: _NAMES,
        help=f"{', '.join(_NAMES)}; auto chooses by the labeled rows.",
    ),
]
_ModelOut = Annotated[Path, Option(metavar="FILE", help="Model file to write.")]
_Shrinkage = Annotated[str, Option(metavar="NUMBER", help="From 0, none, to below 1; or auto.")]
_Prior = Annotated[_Texts, Option(metavar="CLASS=SHARE", help="Of each class; default: learned.")]
_Proportions = Annotated[
    _Texts,
    Option(
        metavar="CLASS=SHARE",
        help="Share of the unlabeled rows that a class gets, for each: 0.3 or 0.2:0.4; or "
        "labeled, for the shares of the labeled rows, equal, auto, which learns them, or free, "
        "for labels that are no random sample.",
    ),
]
_TableOut = Annotated[Path, Option(metavar="FILE", help="A .csv or .parquet file.")]
_Ids = Annotated[_Texts, Option(metavar="COLUMN", help="Column to copy; repeatable.")]
_KnownTarget = Annotated[str | None, Option(metavar="COLUMN", help="Default: that of the fit.")]
_PageOut = Annotated[Path | None, Option(metavar="FILE", help="Also write a page, .html.")]


def fit(
    data: cli.TableFile,
    target: cli.Target = None,
    labels: cli.LabelsFile = None,
    id: cli.Id = None,
    method: _MethodName = _AUTO,
    out: _ModelOut = Path("model.skops"),
    unlabeled: cli.Unlabeled = None,
    unlabeled_file: cli.UnlabeledFile = None,
    drop: cli.Drop = None,
    keep: cli.Keep = None,
    drop_unusable: cli.DropUnusable = False,
    shrinkage: _Shrinkage = "auto",
    prior: _Prior = None,
    proportions: _Proportions = None,
    seed: cli.Seed = 0,
    quiet: cli.Quiet = False,
) -> None:
    """Learn a classifier from a table and keep it in a file."""
    from .. import rows
    from .._statistics import NOTHING
    from ..model_files import check_can_save, model_details, save_model
    from ..tabular.fit_predict import fit_table
    from ..tabular.summaries import fit_summary
    from ..tabular.table import ReadOptions, read_file

    with cli.noted_warnings():
        chosen = None if method == _AUTO else find_method(method, CHOSEN_BY_NAME, others=[_AUTO])
    priors, shrunk = _shares("--prior", prior), parse_shrinkage(shrinkage)
    word = " ".join(proportions or ())
    quotas = word if word in _PROPORTIONS else _shares("--proportions", proportions)
    if out.suffix != ".skops":
        raise ValueError(f"--out must name a .skops file, got {str(out)!r}.")
    check_can_save(out)
    options = ReadOptions(target, unlabeled, unlabeled_file, drop, keep, drop_unusable, labels, id)
    with show_cells(quiet, title="Reading"):
        table = read_file(data, options)
    with nullcontext() if quiet else rows.bar("Fitting"):
        fitted, report = fit_table(
            table,
            chosen,
            shrinkage=shrunk,
            priors=priors,
            proportions=quotas,
            seed=seed,
            command=cli.command_line(),
        )
    notes, doubts = map(cli.in_options, report.notes), map(cli.in_options, report.warnings)
    report = replace(report, notes=tuple(notes), warnings=tuple(doubts))
    save_model(fitted, out, about=report.to_json())
    details = model_details(out)
    is_converged = details["diagnosis"].get("converged", True)
    if not quiet:
        is_useful = is_converged and report.learned != NOTHING
        next_one = f" Next: iclda predict {shlex.quote(str(out))} DATA" if is_useful else ""
        _print([*fit_summary(details), "", f"Wrote {out}.{next_one}"])
    if not is_converged:
        raise typer.Exit(NOT_CONVERGED)


def predict(
    model: _Model,
    data: cli.TableFile,
    out: _TableOut = Path("predictions.csv"),
    id: _Ids = None,
    quiet: cli.Quiet = False,
) -> None:
    """Predict class and probabilities of every row of a table."""
    from ..tabular.fit_predict import predict_file
    from ..tabular.summaries import prediction_summary

    fitted, kinds, about = _load(model)
    with _show_rows("Predicting", quiet) as advance:
        counts = predict_file(fitted, kinds, data, out, ids=id or (), advance=advance)
    lines = prediction_summary(counts, str(out))
    if about.get("target") in counts.ignored:
        command = shlex.join(["iclda", "evaluate", str(model), str(data)])
        judge = f"is in the file. To compare the predictions with it: {command}"
        lines.append(f"{about['target']!r} {judge}")
    if not quiet:
        _print(lines)


def evaluate(
    model: _Model,
    data: cli.TableFile,
    target: _KnownTarget = None,
    labels: cli.LabelsFile = None,
    id: cli.Id = None,
    unlabeled: cli.Unlabeled = None,
    out: _PageOut = None,
    quiet: cli.Quiet = False,
    json: cli.Json = False,
) -> None:
    """Judge a model by rows whose class is known."""
    from ..studies.evaluation import evaluate_file, evaluation_lines, evaluation_page
    from ..studies.page import check_can_report

    if out is not None:
        check_can_report()
        check_writable(out)
        if out.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"--out must name an .html file, got {str(out)!r}.")
    fitted, kinds, about = _load(model)
    where: Any = {"target": target, "unlabeled": unlabeled, "labels": labels, "id": id}
    with _show_rows("Evaluating", quiet or json) as advance:
        evaluation = evaluate_file(fitted, kinds, about, model, data, **where, advance=advance)
    lines = evaluation_lines(evaluation)
    if out is not None:
        lines += ["", f"Wrote {out}."]
        with atomic_write(out) as unfinished:
            unfinished.write_text(evaluation_page(evaluation), encoding="utf-8")
    if json:
        cli.print_json({**evaluation.to_json(), "page": None if out is None else str(out)})
    elif not quiet:
        _print(lines)


def show(model: _Model, json: cli.Json = False) -> None:
    """Show what a model file holds and how its fit went."""
    from ..model_files import load_model, model_details
    from ..tabular.summaries import importance_lines, show_summary, standardized_coefficients

    details = model_details(model)
    axes: list[dict[str, Any]] = []
    with warnings.catch_warnings(), suppress(ValueError):  # a model with steps of its own
        warnings.simplefilter("ignore")  # of versions: what is shown does not depend on them
        axes = standardized_coefficients(load_model(model))
    if json:
        cli.print_json({**details, "discriminants": axes})
    else:
        _print([str(model), "", *show_summary(details), *importance_lines(axes)])


def _load(path: Path) -> tuple[Any, dict[str, str], dict[str, Any]]:
    """A model that can be applied to tables, the kinds of its columns, and what is said of it."""
    from ..model_files import column_kinds, load_model, model_details
    from ..tabular.table_files import feature_names

    fitted = load_model(path)
    kinds = column_kinds(fitted)
    if kinds is None:
        kinds = dict.fromkeys(feature_names(fitted.n_features_in_), "number")
    return fitted, kinds, model_details(path)["about"]


@contextmanager
def _show_rows(title: str, quiet: bool) -> Iterator[Callable[[float, int], None]]:
    """Show how many rows of a file are done, and about how many it has."""
    with show_cells(quiet, "rows") as advance:
        yield lambda share, n_rows: advance(title, n_rows, round(n_rows / share), 0)


def _shares(option: str, given: Sequence[str] | None) -> dict[str, Any] | None:
    """Parse CLASS=SHARE of every class; for proportions a share may be LOW:HIGH."""
    most_ends = 2 if option == "--proportions" else 1
    shares: dict[str, Any] = {}
    for text in given or ():
        name, _, share = text.rpartition("=")
        try:
            ends = tuple(float(end) for end in share.split(":"))
        except ValueError:
            ends = ()
        if not name or name in shares or not 1 <= len(ends) <= most_ends:
            rule = "CLASS=SHARE, an option for each class, for example yes=0.3"
            names = f"{', '.join(_PROPORTIONS)} or " if most_ends > 1 else ""
            raise ValueError(f"{option} must be {names}{rule}, got {text!r}.")
        shares[name] = ends if len(ends) > 1 else ends[0]
    return shares or None


def _print(lines: Sequence[str]) -> None:
    """Print lines for people, broken between words on a terminal, with warnings that stand out."""
    for line in map(printable, lines):
        if sys.stdout.isatty() and not line.startswith("  "):
            line = "\n".join(wrap(line, shutil.get_terminal_size().columns))
        head, colon, rest = line.partition(": ")
        if head == "Warning":
            line = typer.style(head, fg="yellow", bold=True) + colon + rest
        typer.echo(line)
