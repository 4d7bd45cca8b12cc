"""The commands about models: fit, predict, evaluate, show."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from .._progress import show_cells
from .._system import (
    atomic_write,
    check_writable,
    resume_collector,
    without_packages,
)
from ..methods import CHOSEN_BY_NAME, find_method, parse_shrinkage
from . import messages, options
from .messages import print_lines as _print

if TYPE_CHECKING:
    from ..tabular.fit import FitReport

# Exit code of a fit that did not converge. The model is written, but do not rely on it.
NOT_CONVERGED = 3
_MODEL_SUFFIX = ".skops"
# Packages that skops imports where they are installed, and that no command here uses.
_UNUSED_PACKAGES = ("torch", "dask", "pytest")
# The name that takes what a comparison recommends, or the default.
_AUTO = "auto"
_METHOD_NAMES = [_AUTO, *(method.name for method in CHOSEN_BY_NAME)]
# Values of --proportions, besides CLASS=SHARE.
_PROPORTIONS = ("labeled", "equal", "auto", "free")

ModelFile = Annotated[
    Path, Argument(metavar="MODEL", help="A file that `iclda fit` wrote.")
]
_MethodName = Annotated[
    str,
    Option(
        metavar="NAME",
        autocompletion=lambda: _METHOD_NAMES,
        help=f"{', '.join(_METHOD_NAMES)}; auto is the method that `iclda compare` "
        "recommended for these rows, or the default.",
    ),
]
_ModelOut = Annotated[Path, Option(metavar="FILE", help="Model file to write.")]
_Shrinkage = Annotated[
    str, Option(metavar="NUMBER", help="A number from 0 (none) to below 1, or auto.")
]
_Prior = Annotated[
    list[str] | None,
    Option(
        metavar="CLASS=SHARE",
        help="Prior of a class; repeat the option for every class. Default: learned.",
    ),
]
_Proportions = Annotated[
    list[str] | None,
    Option(
        metavar="CLASS=SHARE",
        help="Share of a class among the unlabeled rows, such as 0.3, or 0.2:0.4 for a "
        "range; repeat the option for every class. Or one word: labeled (as among the "
        "labeled rows), equal, auto (learned), or free (if labels are not a random "
        "sample).",
    ),
]
_TableOut = Annotated[
    Path, Option(metavar="FILE", help="A .csv or .parquet file to write.")
]
_Ids = Annotated[
    list[str] | None,
    Option(metavar="COLUMN", help="Column to copy to the output. Can be repeated."),
]
_KnownTarget = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="Column that holds the classes. Default: that of the fit.",
    ),
]
_PageOut = Annotated[
    Path | None, Option(metavar="FILE", help="Also write the results to an .html page.")
]
_Group = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="Column of the groups of rows, such as speakers or instruments, whose "
        "offsets are removed.",
    ),
]
_Adapt = Annotated[
    bool,
    Option(
        "--adapt",
        help="Move the model to the rows of DATA, or of each group of --group (by "
        "default that of the fit), where these support it.",
    ),
]
_Change = Annotated[
    str,
    Option(
        metavar="WHAT",
        help="What --adapt may change: offset, shares (of the classes) or both.",
    ),
]
_None = Annotated[
    float | None,
    Option(
        metavar="SHARE",
        help="Share of rows of the classes that may be called none of them, such as "
        "0.05; rows that resemble no class get --none-name, and all rows a p-value.",
    ),
]
_NoneName = Annotated[
    str, Option(metavar="NAME", help="What rows of none of the classes are called.")
]
_Verbose = Annotated[
    bool,
    Option("--verbose", help="Print everything about the fit, as `iclda show` does."),
]


def fit(
    data: options.TableFile,
    target: options.Target = None,
    labels: options.LabelsFile = None,
    id: options.Id = None,
    method: _MethodName = _AUTO,
    out: _ModelOut = Path("model.skops"),
    unlabeled: options.Unlabeled = None,
    unlabeled_file: options.UnlabeledFile = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    strict: options.Strict = False,
    shrinkage: _Shrinkage = "auto",
    prior: _Prior = None,
    proportions: _Proportions = None,
    group: _Group = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    verbose: _Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a classifier to a table and save it to a file."""
    from .. import rows
    from .._error_estimate import NOTHING_LEARNED
    from ..model_files import (
        check_can_save,
        is_model_file,
        model_details,
        save_model,
    )
    from ..studies.compare.stored import advice_of, default_folder
    from ..tabular.fit import fit_table
    from ..tabular.read_options import ReadOptions
    from ..tabular.row_groups import read_groups
    from ..tabular.summaries import fit_summary, short_fit_summary
    from ..tabular.table import read_file

    _import_skops()
    resume_collector()
    # Everything that was typed is checked before anything is read.
    named_method = None
    if method != _AUTO:
        named_method = find_method(method, CHOSEN_BY_NAME, others=[_AUTO])
    priors = _parse_shares("--prior", prior)
    parsed_shrinkage = parse_shrinkage(shrinkage)
    parsed_proportions = _parse_proportions(proportions)
    if out.suffix != _MODEL_SUFFIX:
        raise ValueError(f"--out must name a .skops file, got {str(out)!r}.")
    check_can_save(out)
    options.check_replaceable(out, is_model_file, "fit", force=force)

    reading = ReadOptions(
        target, unlabeled, unlabeled_file, drop, keep, strict, labels, id
    )
    groups = None
    if group is not None:
        files = [data] if unlabeled_file is None else [data, unlabeled_file]
        groups = read_groups(files, group)
        # The group is not a feature.
        if keep is None:
            reading = replace(reading, drop=[*(drop or ()), group])
    with show_cells(quiet, title="Reading"):
        table = read_file(data, reading)
    advice = None
    are_all_defaults = method == _AUTO and shrinkage == _AUTO and group is None
    if are_all_defaults and priors is None and parsed_proportions is None:
        # What a comparison of the same fits recommends is fitted.
        advice = advice_of(default_folder(data), table, reading)
    with nullcontext() if quiet else rows.bar("Fitting"):
        fitted, report = fit_table(
            table,
            named_method,
            advice=advice,
            shrinkage=parsed_shrinkage,
            priors=priors,
            proportions=parsed_proportions,
            seed=seed,
            command=options.command_line(),
            group=group or "",
            groups=groups,
        )
    report = _in_options(report)
    save_model(fitted, out, about=report.to_json())

    # What is printed comes from the file, as `iclda show` prints it.
    details = model_details(out)
    is_converged = details["diagnosis"].get("converged", True)
    last_line = f"Wrote {out}."
    if is_converged and report.learned != NOTHING_LEARNED:
        last_line += f" Next: iclda predict {shlex.quote(str(out))} DATA"
    if verbose and not quiet:
        _print([*fit_summary(details), "", last_line])
    elif not quiet:
        _print(short_fit_summary(details, last_line))
    # The model is written even so, since it may be good enough.
    if not is_converged:
        raise typer.Exit(NOT_CONVERGED)


def _import_skops() -> None:
    """Import skops without packages that take longer to import than a small fit.

    skops lists the estimators of scikit-learn by importing all of its packages, and
    some of these import torch and Dask if they can. A command is the only program of
    its process, so nobody else misses them.
    """
    # If skops is missing, whoever needs it says what to install.
    with without_packages(*_UNUSED_PACKAGES), suppress(ImportError):
        import_module("skops.io")


def _in_options(report: FitReport) -> FitReport:
    """Word a report for the command line: the file keeps what is printed."""
    return replace(
        report,
        notes=[messages.in_options(note) for note in report.notes],
        warnings=[messages.in_options(text) for text in report.warnings],
        taken_for=messages.in_options(report.taken_for),
        withheld=messages.in_options(report.withheld),
    )


def predict(
    model: ModelFile,
    data: options.TableFile,
    out: _TableOut = Path("predictions.csv"),
    id: _Ids = None,
    adapt: _Adapt = False,
    change: _Change = "offset",
    group: _Group = None,
    none: _None = None,
    none_name: _NoneName = "other",
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Predict class and probabilities for every row of a table."""
    from ..tabular.files import open_data
    from ..tabular.predict import NoneOfThese, holds_predictions, predict_file
    from ..tabular.row_groups import AdaptedModels
    from ..tabular.summaries import prediction_summary

    if out.exists() and not out.samefile(data):
        options.check_replaceable(out, holds_predictions, "predict", force=force)
    if not adapt and (group is not None or change != "offset"):
        raise ValueError("--group and --change are for --adapt: give it, too.")
    if none is None and none_name != "other":
        raise ValueError("--none-name is for --none: give it, too.")
    check_order(model, data)
    fitted, kinds, about = load(model)
    adapted = None
    if adapt:
        file = open_data(data)
        group = group or about.get("group") or None
        adapted = AdaptedModels(fitted, kinds, file, group, change)
    with show_rows("Predicting", quiet) as advance:
        counts = predict_file(
            fitted,
            kinds,
            data,
            out,
            ids=id or (),
            advance=advance,
            adapted=adapted,
            none=None if none is None else NoneOfThese(none, none_name),
        )
    lines = prediction_summary(counts, str(out))
    if adapted is not None:
        lines = [*adapted.lines, "", *lines]
    target = about.get("target")
    if not quiet:
        if target in counts.ignored:
            lines.append(_next_step(model, data, target, about, counts.n_rows))
        _print(lines)


def _next_step(
    model: Path, data: Path, target: str, about: dict[str, Any], n_rows: int
) -> str:
    """Say what shows the error of predictions for a file that has the target."""
    from ..tabular.files import open_data
    from ..tabular.fit import FitReport

    report = FitReport.from_json(about)
    sources = report.sources if report else ()
    # A file is recognized by its content, whatever its name is. It is not read again
    # if its length is another one.
    digests = {source.sha256 for source in sources if source.n_rows == n_rows}
    if digests and open_data(data).sha256() in digests:
        command = shlex.join(["iclda", "show", str(model)])
        return (
            f"{data} trained this model. For the error to expect on new rows: {command}"
        )
    command = shlex.join(["iclda", "evaluate", str(model), str(data)])
    return f"To compare the predictions with {target!r}: {command}"


def evaluate(
    model: ModelFile,
    data: options.TableFile,
    target: _KnownTarget = None,
    labels: options.LabelsFile = None,
    id: options.Id = None,
    unlabeled: options.Unlabeled = None,
    out: _PageOut = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Evaluate a model on rows whose class is known."""
    from ..studies.evaluation import (
        evaluate_file,
        evaluation_lines,
        evaluation_page,
        is_evaluation_page,
    )
    from ..studies.page import check_can_report
    from ..tabular.read_options import ReadOptions

    if out is not None:
        # Before the rows are predicted, which may take long.
        check_can_report()
        check_writable(out)
        if out.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"--out must name an .html file, got {str(out)!r}.")
        options.check_replaceable(out, is_evaluation_page, "evaluate", force=force)
    check_order(model, data)
    fitted, kinds, about = load(model)
    reading = ReadOptions(target, unlabeled, labels=labels, id=id)
    with show_rows("Evaluating", quiet or json) as advance:
        evaluation = evaluate_file(fitted, kinds, about, model, data, reading, advance)
    lines = evaluation_lines(evaluation)
    if out is not None:
        lines += ["", f"Wrote {out}."]
        with atomic_write(out) as unfinished:
            unfinished.write_text(evaluation_page(evaluation), encoding="utf-8")
    if json:
        page = None if out is None else str(out)
        messages.print_json({**evaluation.to_json(), "page": page})
    elif not quiet:
        _print(lines)


def show(model: ModelFile, json: options.Json = False) -> None:
    """Show everything about a model and its fit."""
    from ..model_files import load_model, model_details, pipeline_in
    from ..tabular.summaries import (
        importance_lines,
        show_summary,
        standardized_coefficients,
    )

    _import_skops()
    details = model_details(model)
    axes: list[dict[str, Any]] = []
    # A model with steps of its own has no coefficients of columns: ValueError.
    with warnings.catch_warnings(), suppress(ValueError):
        # Warnings of other versions: what is shown does not depend on them.
        warnings.simplefilter("ignore")
        axes = standardized_coefficients(pipeline_in(load_model(model)))
    if json:
        messages.print_json({**details, "discriminants": axes})
    else:
        lines = [*show_summary(details), *importance_lines(axes, details)]
        _print([str(model), "", *lines])


def check_order(model: Path, data: Path) -> None:
    """Raise a ValueError if the model stands in the place of the data."""
    if data.suffix == _MODEL_SUFFIX != model.suffix:
        raise ValueError(
            f"{data} is named as data, and {model} as the model: name the model first, "
            f"as in {shlex.join([str(data), str(model)])}."
        )


def load(path: Path) -> tuple[Any, dict[str, str], dict[str, Any]]:
    """Return a model, the kinds of its columns, and what its file says about it."""
    from ..model_files import column_kinds, load_model, model_details, pipeline_in
    from ..tabular.array_files import feature_names

    _import_skops()
    fitted = pipeline_in(load_model(path))
    kinds = column_kinds(fitted)
    # A model that was fitted to an array has columns without names.
    if kinds is None:
        kinds = dict.fromkeys(feature_names(fitted.n_features_in_), "number")
    return fitted, kinds, model_details(path)["about"]


@contextmanager
def show_rows(title: str, quiet: bool) -> Iterator[Callable[[float, int], None]]:
    """Show how many rows of a file are done, and about how many it has.

    The function yielded takes the share of the file that is done, and its rows.
    """
    with show_cells(quiet, "rows") as advance:

        def show_share(share: float, n_rows: int) -> None:
            n_rows_expected = round(n_rows / share)
            advance(title, n_rows, n_rows_expected, 0)

        yield show_share


def _parse_proportions(texts: Sequence[str] | None) -> str | dict[str, Any] | None:
    """Parse ``--proportions``: one of its words, or the share of every class."""
    word = " ".join(texts or ())
    if word in _PROPORTIONS:
        return word
    return _parse_shares("--proportions", texts)


def _parse_shares(option: str, texts: Sequence[str] | None) -> dict[str, Any] | None:
    """Parse CLASS=SHARE of every class; for proportions a share may be LOW:HIGH."""
    takes_ranges = option == "--proportions"
    max_ends = 2 if takes_ranges else 1
    shares: dict[str, Any] = {}
    for text in texts or ():
        # The name of a class may contain "=" itself.
        name, _, share = text.rpartition("=")
        try:
            ends = tuple(float(end) for end in share.split(":"))
        except ValueError:
            ends = ()
        if not name or name in shares or not 1 <= len(ends) <= max_ends:
            words = f"{', '.join(_PROPORTIONS)} or " if takes_ranges else ""
            rule = "CLASS=SHARE, an option for each class, for example yes=0.3"
            raise ValueError(f"{option} must be {words}{rule}, got {text!r}.")
        shares[name] = ends if len(ends) > 1 else ends[0]
    return shares or None
