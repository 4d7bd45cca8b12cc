"""The commands that label rows, and make, use, judge and show models; the playground."""

from __future__ import annotations

import shlex
import shutil
import sys
import warnings
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from .. import cli
from .._messages import printable, wrap
from .._progress import show_cells
from .._system import atomic_write, check_installed, check_writable
from ..methods import CHOSEN_BY_NAME, find_method, parse_shrinkage

if TYPE_CHECKING:
    from .._local_server import Site
    from ..tabular.ask import Pool, Round
    from ..tabular.table_files import Answers

NOT_CONVERGED = 3  # exit code of a fit that wrote a model not to be relied on
_AUTO = "auto"
_PROPORTIONS = "labeled", "equal", "auto", "free"  # besides CLASS=SHARE
_NAMES = [_AUTO, *(method.name for method in CHOSEN_BY_NAME)]
_Texts = list[str] | None
_Model = Annotated[
    Path, Argument(metavar="MODEL", help="A file that `iclda fit` wrote.")
]
_MethodName = Annotated[
    str,
    Option(
        metavar="NAME",
        autocompletion=lambda: _NAMES,
        help=f"{', '.join(_NAMES)}; auto chooses by the labeled rows.",
    ),
]
_ModelOut = Annotated[Path, Option(metavar="FILE", help="Model file to write.")]
_Shrinkage = Annotated[
    str, Option(metavar="NUMBER", help="From 0, none, to below 1; or auto.")
]
_Prior = Annotated[
    _Texts, Option(metavar="CLASS=SHARE", help="Of each class; default: learned.")
]
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
_KnownTarget = Annotated[
    str | None, Option(metavar="COLUMN", help="Default: that of the fit.")
]
_PageOut = Annotated[
    Path | None, Option(metavar="FILE", help="Also write a page, .html.")
]
_AnswersFile = Annotated[
    Path, Option(metavar="FILE", help="CSV of rows to label; it is extended.")
]
_ClassColumn = Annotated[str, Option(metavar="COLUMN", help="Column of classes.")]
_RowId = Annotated[
    str,
    Option(
        metavar="COLUMN", help="Column of ids; row numbers if there is none named row."
    ),
]
_Number = Annotated[
    int, Option(min=0, metavar="N", help="Rows to choose for labeling.")
]
_Test = Annotated[
    int, Option(min=0, metavar="N", help="Rows to draw at random, for the error.")
]
_Link = Annotated[
    str | None, Argument(metavar="LINK", help="A link that somebody shared.")
]
_Port = Annotated[
    int, Option(min=0, max=65535, metavar="N", help="Port; 0 takes any free one.")
]
_NoBrowser = Annotated[
    bool, Option("--no-browser", help="Print the address, open nothing.")
]
_Images = Annotated[
    str | None,
    Option(metavar="COLUMN|FOLDER", help="Column of paths, or a folder of images."),
]


def ask(
    data: cli.TableFile,
    n: _Number = 20,
    target: _ClassColumn = "label",
    id: _RowId = "row",
    labels: _AnswersFile = Path("to_label.csv"),
    test: _Test = 0,
    seed: cli.Seed = 0,
    quiet: cli.Quiet = False,
    json: cli.Json = False,
) -> None:
    """Choose the rows to label next, and state the error that the labels so far show."""
    with show_cells(quiet or json, title="Choosing rows"):
        from ..tabular.ask import ask_for_labels

        asked = ask_for_labels(
            data, n, target=target, id=id, labels=labels, n_test=test, seed=seed
        )
    if json:
        cli.print_json({**asked.to_json(), "next": _next(asked)})
    elif not quiet:
        for line in (*asked.lines, f"Next: {_next(asked)}"):
            typer.echo(printable(line))


def _then_fit(pool: Pool, answers: Answers, how: str) -> str:
    """The command that fits a model, or how to get labels of two classes, which it needs."""
    if len({*pool.labels.values(), *answers.labels.values()}) < 2:
        return f"run the same command {how}, since a fit needs labels of two classes"
    known = ["--labels", str(answers.path), "--id", pool.id, "--target", pool.target]
    unusable = ["--drop-unusable"] if pool.table.dropped else []
    return shlex.join(["iclda", "fit", str(pool.file.path), *known, *unusable])


def _next(asked: Round) -> str:
    """What to do after a round."""
    answers = asked.answers
    fit = _then_fit(asked.pool, answers, "with --n 20")
    if not answers.open_ids:
        return fit
    fill = f"fill in the column {answers.target!r} of {answers.path}"
    if not asked.n_left:
        return f"{fill}, then {fit}"
    test = ", with --test 50 to know the error" if asked.needs_random_rows else ""
    return f"{fill}, then run the same command again{test}"


def playground(
    link: _Link = None, port: _Port = 0, no_browser: _NoBrowser = False
) -> None:
    """Open a page on which fits follow the points that you move.

    It is served on this machine only, until you press Ctrl-C.
    """
    check_installed(("starlette", "uvicorn"), "the playground", "playground")
    from ..playground import playground_site

    state = "" if link is None else link.partition("#")[2] or link
    _serve(
        playground_site,
        port,
        no_browser,
        "Playground",
        state=f"#{state}" if state else "",
    )


def label(
    data: cli.TableFile,
    labels: _AnswersFile = Path("to_label.csv"),
    target: _ClassColumn = "label",
    id: _RowId = "row",
    images: _Images = None,
    port: _Port = 0,
    no_browser: _NoBrowser = False,
) -> None:
    """Open a page on which you label the rows that help a model most.

    It is served on this machine only, until you press Ctrl-C. Every answer is written at once.
    """
    check_installed(("starlette", "uvicorn"), "the page to label on", "playground")
    from ..labeling import LabelingSession, ShownRows, labeling_site
    from ..tabular.ask import Pool

    check_writable(labels)
    pool = Pool(data, id, target)
    # It writes the first rows to label: not before the server has its port.
    session = cache(lambda: LabelingSession(pool, ShownRows(pool, images), labels))
    note = f"Answers are written to {labels}. "
    _serve(lambda: labeling_site(session()), port, no_browser, "Labeling", note=note)
    answers = session().answers
    typer.echo(f"{answers}. Next: {_then_fit(pool, answers, 'again')}")


def _serve(
    make_site: Callable[[], Site],
    port: int,
    no_browser: bool,
    title: str,
    *,
    state: str = "",
    note: str = "",
) -> None:
    """Serve a page until Ctrl-C, which is the way to end it; ``state`` is added to the address."""
    from .._local_server import serve

    def show(address: str) -> None:
        typer.echo(f"{title}: {address}{state}\n{note}Ctrl-C ends it.")
        if (
            not no_browser
        ):  # in a thread: some browsers only return when they are closed
            Thread(target=webbrowser.open, args=(address + state,), daemon=True).start()

    with suppress(KeyboardInterrupt):
        serve(port, make_site, show)


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
        chosen = (
            None
            if method == _AUTO
            else find_method(method, CHOSEN_BY_NAME, others=[_AUTO])
        )
    priors, shrunk = _shares("--prior", prior), parse_shrinkage(shrinkage)
    word = " ".join(proportions or ())
    quotas = word if word in _PROPORTIONS else _shares("--proportions", proportions)
    if out.suffix != ".skops":
        raise ValueError(f"--out must name a .skops file, got {str(out)!r}.")
    check_can_save(out)
    options = ReadOptions(
        target, unlabeled, unlabeled_file, drop, keep, drop_unusable, labels, id
    )
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
    notes, doubts = (
        map(cli.in_options, report.notes),
        map(cli.in_options, report.warnings),
    )
    report = replace(report, notes=tuple(notes), warnings=tuple(doubts))
    save_model(fitted, out, about=report.to_json())
    details = model_details(out)
    is_converged = details["diagnosis"].get("converged", True)
    if not quiet:
        is_useful = is_converged and report.learned != NOTHING
        next_one = (
            f" Next: iclda predict {shlex.quote(str(out))} DATA" if is_useful else ""
        )
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
    from ..tabular.table import ReadOptions

    if out is not None:
        check_can_report()
        check_writable(out)
        if out.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"--out must name an .html file, got {str(out)!r}.")
    fitted, kinds, about = _load(model)
    options = ReadOptions(target, unlabeled, labels=labels, id=id)
    with _show_rows("Evaluating", quiet or json) as advance:
        evaluation = evaluate_file(fitted, kinds, about, model, data, options, advance)
    lines = evaluation_lines(evaluation)
    if out is not None:
        lines += ["", f"Wrote {out}."]
        with atomic_write(out) as unfinished:
            unfinished.write_text(evaluation_page(evaluation), encoding="utf-8")
    if json:
        cli.print_json(
            {**evaluation.to_json(), "page": None if out is None else str(out)}
        )
    elif not quiet:
        _print(lines)


def show(model: _Model, json: cli.Json = False) -> None:
    """Show what a model file holds and how its fit went."""
    from ..model_files import load_model, model_details
    from ..tabular.summaries import (
        importance_lines,
        show_summary,
        standardized_coefficients,
    )

    details = model_details(model)
    axes: list[dict[str, Any]] = []
    with (
        warnings.catch_warnings(),
        suppress(ValueError),
    ):  # a model with steps of its own
        warnings.simplefilter(
            "ignore"
        )  # of versions: what is shown does not depend on them
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
