"""Fit a method to a table, predict files, and summarize both for users who do not know the method.

Files of any size are predicted block by block with constant memory.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._advice import LEAST_TESTED, estimate_as_json, percent_text
from .._core.types import AnyArray
from .._estimators.auto import AutoLDA
from .._estimators.base import LinearGaussianClassifier
from .._estimators.gains import safety_bounds
from .._estimators.labels import LABELED, plain, resolve_priors, resolve_proportions
from .._messages import (
    Hint,
    NothingLearnedWarning,
    NoUnlabeledRowsWarning,
    Text,
    is_formula,
    message_of,
    plural,
    printable,
    quoted_list,
)
from .._paths import atomic_write, check_writable
from .._statistics import CLEAR, NOTHING, UNCLEAR, BaseRate
from ..methods import BY_CLASS, Method
from .columns import COLUMN_TYPES, pipeline, preprocessing, type_named
from .encoders import require_for_tables
from .suspicions import one_value_by_class
from .table import Table, closest_name, refuse_infinity, to_pandas_frame
from .table_files import (
    WRITTEN_SUFFIXES,
    CsvReader,
    ParquetReader,
    TableReader,
    appending,
    open_table,
)

_MOST_NAMED = 40  # columns; --json has all of them
_FAR = 10  # standard deviations from the mean: beyond what the fit has seen
_SUPERVISED = Text(
    "No row is unlabeled, so that this is a supervised fit. Rows with an empty target are "
    "unlabeled; ",
    Hint("unlabeled"),
    " and ",
    Hint("unlabeled_file"),
    " name others.",
)
_FIT_TYPES = {  # of what `iclda fit` stores beside a model
    **dict.fromkeys(("command", "target"), str),
    **dict.fromkeys(("n_unlabeled", "n_agreeing"), int),
    **dict.fromkeys(("labeled", "empty_cells"), dict),
    **dict.fromkeys(("sources", "notes", "warnings"), list),
}

ShareDone = Callable[[float, int], None]  # takes the share of the file and the rows so far


def fit_table(
    table: Table,
    method: Method | None = None,
    *,
    missing: str = "impute",
    shrinkage: float | str | None = "auto",
    priors: Mapping[str, float] | None = None,
    proportions: Mapping[str, Any] | str | None = None,
    seed: int = 0,
    command: str = "",
) -> tuple[Pipeline, dict[str, Any]]:
    """Fit a method to all rows of a table: the pipeline, and what is stored about it.

    None chooses the method. The classifier of the pipeline is that of the method.
    """
    # Wrong priors and proportions are refused before anything is computed.
    classes = np.array(table.classes, dtype=object)
    resolve_priors(priors, classes)
    resolve_proportions(proportions, classes)
    start = time.perf_counter()
    names = None if method is None else [method.name]
    classifier = AutoLDA(
        methods=names,
        shrinkage=shrinkage,
        priors=priors,
        proportions=proportions,
        random_state=seed,
    )
    model = pipeline(preprocessing(table.features, missing=missing), classifier)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table.features, table.labels)
    name, choice = model.steps[-1]
    model.steps[-1] = (name, choice.estimator_)
    bounds = safety_bounds(model[-1], model[:-1].transform(table.features), table.labels)
    labels = table.labels[table.is_labeled]
    found = model.predict(table.features[table.is_labeled])
    about = {
        "method": choice.method_,
        "choice": choice.reason_ if method is None else "",
        "error": estimate_as_json(choice.error_estimate),
        "n_tested": choice.n_tested_,
        "learned": _learned(choice, labels),
        "command": command,
        "target": table.target,
        "sources": [asdict(source) for source in table.sources],
        "digest": table.digest,
        "missing": missing,
        "labeled": dict(Counter(sorted(labels))),
        "n_unlabeled": int((~table.is_labeled).sum()),
        "n_agreeing": int((found == labels).sum()),
        "safety": "" if bounds is None else bounds.sentence,
        "safety_details": "" if bounds is None else bounds.details,
        "seconds": round(time.perf_counter() - start, 3),
        "empty_cells": _gaps(table.features),
        "notes": list(table.notes),
        "warnings": _warnings_of(
            [record.message for record in caught],
            [*table.warnings, *one_value_by_class(table.features, table.labels)],
            Counter(labels),
        ),
    }
    return model, about


def _learned(choice: AutoLDA, labels: AnyArray) -> str:
    """Whether a fit beats the most frequent class; empty where the error is not known."""
    error = choice.error_estimate
    if error is None:
        return ""
    base = BaseRate.of_counts(Counter(labels.tolist()))
    return base.judge(error.error, error.high, choice.losses_[choice.method_])


def _gaps(features: Any) -> dict[str, int]:
    return {name: int(n) for name, n in features.isna().sum().items() if n}


def _warnings_of(caught: Sequence[Any], of_table: Sequence[str], counts: Counter[str]) -> list[str]:
    """Warnings of a fit and of its table, each once; that nothing was learned is the first."""
    first = [message_of(w) for w in caught if isinstance(w, NothingLearnedWarning)]
    texts = [
        _SUPERVISED if isinstance(w, NoUnlabeledRowsWarning) else message_of(w) for w in caught
    ]
    single = sorted(name for name, count in counts.items() if count == 1)
    if single and len(single) < len(counts):  # the classifiers warn if all classes have one
        names = ", ".join(map(repr, single))
        have = f"Class {names} has" if len(single) == 1 else f"The classes {names} have"
        advice = "which may not be typical: label more rows if you can."
        texts.insert(0, f"{have} one labeled row only, {advice}")
    return list(dict.fromkeys([*first, *of_table, *texts]))


@dataclass
class PredictionCounts:
    """Counts of the rows and cells of a file that was predicted."""

    ignored: tuple[str, ...] = ()  # columns
    n_rows: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    filled: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)  # cells with an unknown category
    far: Counter[str] = field(default_factory=Counter)  # cells far from those of the training
    formulas: Counter[str] = field(default_factory=Counter)  # cells and names, as in a spreadsheet


def predict_file(
    model: Any,
    kinds: Mapping[str, str],
    data: Path,
    out: Path,
    *,
    ids: Sequence[str] = (),
    advance: ShareDone = lambda share, n_rows: None,
) -> PredictionCounts:
    """Write class and probabilities of every row of a file to another one.

    Nothing is written under the name of that file before all rows are done.
    """
    file = open_table(data)
    names = np.array([str(name) for name in model.classes_], dtype=object)
    columns = [*ids, "class", *(f"probability_{name}" for name in names)]
    _check_files(file, out, kinds, ids, columns)
    counts = PredictionCounts(tuple(name for name in file.columns if name not in {*kinds, *ids}))
    is_csv = out.suffix.lower() == ".csv"
    if is_csv:
        counts.formulas.update(filter(is_formula, columns))
    with atomic_write(out) as unfinished, appending(unfinished, out.suffix, columns) as write:
        for rows, probabilities, share in predicted_blocks(model, kinds, file, ids, counts):
            found = [names[probabilities.argmax(axis=1)], *probabilities.T]
            write(dict(zip(columns, [*(rows[name] for name in ids), *found], strict=True)))
            if is_csv:
                texts = rows.select(list(ids)).append_column("class", [found[0].astype(str)])
                counts.formulas.update(_formulas(texts))
            advance(share, counts.n_rows)
    return counts


def _formulas(rows: Any) -> dict[str, int]:
    """Cells by column that a spreadsheet would run."""
    compute = require_for_tables("pyarrow.compute")
    found = {}
    for name in rows.column_names:
        if str(rows[name].type) == "string":
            is_likely = compute.match_substring_regex(rows[name], r"^[=+\-@\t\r]")
            found[name] = sum(map(is_formula, rows[name].filter(is_likely).to_pylist()))
    return {name: n for name, n in found.items() if n}


def predicted_blocks(
    model: Any,
    kinds: Mapping[str, str],
    file: CsvReader | ParquetReader,
    others: Sequence[str],
    counts: PredictionCounts,
) -> Iterator[tuple[Any, Any, float]]:
    """Blocks of rows as Arrow tables, their probabilities, and the share of the file that is done.

    ``others`` are columns to read as text besides those of the model. ValueError without rows.
    """
    arrow = require_for_tables("pyarrow")
    names = [str(name) for name in model.classes_]
    # A column of the model that is copied too is read once, as what the model takes.
    types = dict.fromkeys(others, arrow.string()) | {
        name: arrow.type_for_alias(type_named(kind).arrow) for name, kind in kinds.items()
    }
    for batch, share in file.batches(types):
        if batch.num_rows:
            rows = arrow.Table.from_batches([batch])
            frame = to_pandas_frame(rows.select(list(kinds)))
            refuse_infinity(frame, file, counts.n_rows)
            _refuse_other_types(frame, kinds, file)
            yield rows, _predict(model, names, frame, counts), share
    if not counts.n_rows:
        raise ValueError(f"{file.path} holds no rows below the names of its columns.")


def _predict(model: Any, names: Sequence[str], frame: Any, counts: PredictionCounts) -> Any:
    """Probabilities of the classes of some rows, which are counted."""
    is_pipeline = isinstance(model, Pipeline) and len(model) > 1
    encoded = model[:-1].transform(frame) if is_pipeline else frame
    classifier = model[-1] if isinstance(model, Pipeline) else model
    probabilities = classifier.predict_proba(encoded)
    counts.n_rows += len(frame)
    counts.filled.update(_gaps(frame))
    for _, encoder, columns in getattr(model[0], "transformers_", ()) if is_pipeline else ():
        if hasattr(encoder, "count_unknown"):
            counts.unknown.update(encoder.count_unknown(frame[list(columns)]))
    counts.far.update(_far_cells(classifier, encoded, frame))
    n_each = np.bincount(probabilities.argmax(axis=1), minlength=len(names))
    counts.classes.update(dict(zip(names, n_each.tolist(), strict=True)))
    return probabilities


def _far_cells(classifier: Any, encoded: Any, frame: Any) -> dict[str, int]:
    """Cells by column that lie many standard deviations from the mean of the training rows.

    Columns of 0 and 1 made of categories do not count: their values are known ones.
    """
    if not isinstance(classifier, LinearGaussianClassifier):
        return {}
    middle = classifier.priors_ @ classifier.means_
    between = classifier.priors_ @ (classifier.means_ - middle) ** 2
    spread = np.sqrt(classifier._variances + between)
    is_far = np.abs(np.asarray(encoded, dtype=np.float64) - middle) > _FAR * spread
    n_far = (is_far & (spread > 0)).sum(axis=0)
    found = zip(encoded.columns, n_far, strict=True)
    own = {name for name in frame.columns if frame[name].dtype.kind in "iuf"}
    return {str(name): int(n) for name, n in found if n and name in own}


def _check_files(
    file: TableReader, out: Path, kinds: Mapping[str, str], ids: Sequence[str], columns: list[str]
) -> None:
    """Check before any row is read that the file can be predicted and the predictions written."""
    check_columns(file, kinds)
    if out.suffix.lower() not in WRITTEN_SUFFIXES:
        raise ValueError(
            f"{out}: predictions are written to {' or '.join(WRITTEN_SUFFIXES)} files, got "
            f"{out.suffix or 'no suffix'!r}."
        )
    check_writable(out)
    if out.exists() and out.samefile(file.file):
        raise ValueError(f"{out} is the file that is read: write the predictions to another one.")
    for name in ids:
        if name not in file.columns:
            close = closest_name(name, file.columns)
            hint = f" Did you mean {close!r}?" if close else ""
            raise ValueError(f"{file.path} has no column {name!r} to keep as an id.{hint}")
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise ValueError(
            f"The predictions would hold two columns named {twice[0]!r}: rename the id column, or "
            "leave it out."
        )


def check_columns(file: TableReader, kinds: Mapping[str, str]) -> None:
    """ValueError unless a file has all columns of a model; it names those that may be meant."""
    lacking = [name for name in kinds if name not in file.columns]
    if not lacking:
        return
    unused = [name for name in file.columns if name not in kinds]
    close = {name: closest_name(name, unused) for name in lacking}
    pairs = [f"{found!r} for {name!r}" for name, found in close.items() if found]
    hint = f" Did you mean {', '.join(pairs[:3])}? Rename it in the file." if pairs else ""
    raise ValueError(
        f"{file.path} lacks {len(lacking)} of the {len(kinds)} columns that the model was fitted "
        f"to: {quoted_list(lacking, 12)}.{hint} Columns are found by name, in any order."
    )


def _refuse_other_types(frame: Any, kinds: Mapping[str, str], file: TableReader) -> None:
    """Parquet columns have types of their own, which may not be those of the training data."""
    for name, kind in kinds.items():
        expected, present = type_named(kind), frame[name].dropna()
        # Arrow columns hold one type: where one cell is a list or a struct, all are.
        if len(present) and (
            frame[name].dtype.kind not in expected.dtypes
            or not isinstance(present.iloc[0], Hashable)
        ):
            raise ValueError(
                f"{file.path}, column {name!r}: must hold {expected.cells}, as in the data the "
                f"model was fitted to, got {plain(present.iloc[0])!r}."
            )


def fit_summary(details: Mapping[str, Any]) -> list[str]:
    """Rows, classes, method and diagnosis of a model, one paragraph a line."""
    about = _about(details)
    names = [str(name) for name in details["classes"]]
    width = max(len("class"), *map(len, names))
    shares = details["priors"] or [float("nan")] * len(names)
    labeled = {name: f"{n:,}" for name, n in about.get("labeled", {}).items()}
    warned = [f"Warning: {text}" for text in about.get("warnings", ())]
    n_first = int(about.get("learned") == NOTHING)  # that warning comes before all else
    return [
        *_rows_lines(details, about),
        *warned[:n_first],
        "",
        f"  {'class'.ljust(width)}  labeled rows  share in the model",
        *(
            f"  {name.ljust(width)}  {labeled.get(name, '-'):>12}  {share:>18.1%}"
            for name, share in zip(names, shares, strict=True)
        ),
        "",
        *_method_lines(details, about),
        *(f"Note: {text}" for text in about.get("notes", ())),
        *warned[n_first:],
    ]


def show_summary(details: Mapping[str, Any]) -> list[str]:
    """Everything that a model file says about its model."""
    about = _about(details)
    settings = ", ".join(f"{name}={value!r}" for name, value in details["parameters"].items())
    versions = ", ".join(f"{name} {number}" for name, number in details["versions"].items())
    lines = [
        *fit_summary(details),
        "",
        f"Fitted     {details['created']} by iclda {details['iclda']}",
        *([f"Command    {about['command']}"] if about.get("command") else []),
        *(
            f"Data       {source['path']}, {source['n_rows']:,} rows, sha256 {source['sha256']}"
            for source in about.get("sources", ())
        ),
        f"Columns    {_listed(list(details['columns'] or ['without names']))}",
        *_shrinkage_lines(details),
        f"Settings   {details['classifier']}({settings})",
        f"Versions   {versions}",
        f"Checksum   sha256 {details['sha256']} of the whole file, as sha256sum prints it; its own "
        f"seal is intact (format {details['format']})",
    ]
    return [printable(line) for line in lines]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _shrinkage_lines(details: Mapping[str, Any]) -> list[str]:
    """Shrinkage that was used, of every class where there are several."""
    used = details["diagnosis"].get("shrinkage")
    if used is None:
        return []
    if isinstance(used, list):
        names = zip(details["classes"], used, strict=False)
        shown = ", ".join(f"{value:.3g} for {name!r}" for name, value in names)
    else:
        shown = f"{used:.3g}"
    asked = details["parameters"].get("shrinkage")
    chosen = ", chosen from the data" if asked == "auto" else ""
    meaning = "share of equal variances mixed into the covariance"
    return [f"Shrinkage  {'none' if shown == '0' else f'{shown} ({meaning}{chosen})'}"]


def prediction_summary(counts: PredictionCounts, written: str) -> list[str]:
    """What became of the rows of a file; ``written`` says where the predictions are."""
    lines = []
    if counts.ignored:
        names = f"{len(counts.ignored)} columns ({quoted_list(counts.ignored, 5)})"
        if len(counts.ignored) == 1:
            names = f"the column {counts.ignored[0]!r}"
        lines.append(f"Ignored {names} that the model does not use.")
    if counts.filled:
        lines.append(f"Empty cells were filled in: {_ranked(counts.filled)}.")
    if counts.unknown:
        lines.append(
            "Cells with a category that the fit did not see, or too rarely to learn from: "
            f"{_ranked(counts.unknown)}."
        )
    if counts.far:
        lines.append(f"Warning: {far_warning(counts)}")
    if counts.formulas:
        lines.append(
            "Warning: cells and names of columns that a spreadsheet would run as formulas, since "
            f"they begin with =, +, - or @: {_ranked(counts.formulas)}. Import the file as text, "
            "or write .parquet."
        )
    width = max(len("class"), *map(len, counts.classes))
    lines += [""] if lines else []
    lines.append(f"  {'class'.ljust(width)}  predicted rows   share")
    for name, count in counts.classes.items():
        lines.append(f"  {name.ljust(width)}  {count:>14,}  {count / counts.n_rows:>6.1%}")
    lines += ["", f"{written}: {counts.n_rows:,} rows."]
    return [printable(line) for line in lines]


def far_warning(counts: PredictionCounts) -> str:
    """Which columns have cells far from those of the fit; an empty text if none has."""
    if not counts.far:
        return ""
    return (
        f"Cells more than {_FAR} standard deviations from the mean of the training rows, where "
        f"predictions mean little: {_ranked(counts.far)}. Check units and decimal marks."
    )


def _about(details: Mapping[str, Any]) -> dict[str, Any]:
    """What `iclda fit` stored; nothing if a user stored other things under the same names."""
    about = details["about"]
    if not all(isinstance(about.get(name), expected) for name, expected in _FIT_TYPES.items()):
        return {}
    counts = [*about["labeled"].values(), *about["empty_cells"].values()]
    are_sources = all(
        isinstance(source, dict)
        and {"path", "sha256", "n_rows"} <= source.keys()
        and isinstance(source["n_rows"], int)
        for source in about["sources"]
    )
    return dict(about) if are_sources and all(isinstance(n, int) for n in counts) else {}


def _rows_lines(details: Mapping[str, Any], about: Mapping[str, Any]) -> list[str]:
    name = details["classifier"]
    title = BY_CLASS[name].title if name in BY_CLASS else name
    title = f"{title[0].upper()}{title[1:]}"
    if not about:
        return [f"{title}, {details['n_features']} features."]
    n_labeled, n_unlabeled = sum(about["labeled"].values()), about["n_unlabeled"]
    filled = about["empty_cells"]
    rows = f"{n_labeled:,} labeled and {n_unlabeled:,} unlabeled rows"
    if name == "SupervisedLDA":
        unused = f"; {n_unlabeled:,} unlabeled rows were not used" if n_unlabeled else ""
        rows = f"{n_labeled:,} labeled rows{unused}"
    words = {each.name: each.columns for each in COLUMN_TYPES}
    kinds = Counter(words.get(kind, kind) for kind in (details["columns"] or {}).values())
    held = ": " + ", ".join(f"{n} of {kind}" for kind, n in kinds.items())
    if len(kinds) == 1:
        held = f" of {next(iter(kinds))}"
    return [
        f"{title} for {about['target']!r}, fitted to {rows}.",
        f"It reads {plural(kinds.total(), 'column')}{held}.",
        *([f"Empty cells were filled in: {_ranked(filled)}."] if filled else []),
    ]


def _method_lines(details: Mapping[str, Any], about: Mapping[str, Any]) -> list[str]:
    # Without unlabeled rows every method is the supervised one.
    is_supervised = not about.get("n_unlabeled", 1)
    name = "SupervisedLDA" if is_supervised else details["classifier"]
    lines = [BY_CLASS[name].sentence] if name in BY_CLASS else []
    if "converged" in details["diagnosis"] and not is_supervised:
        lines.append(_convergence(details["diagnosis"]))
    given = details["parameters"].get("proportions")
    if given is not None and not is_supervised:
        source = "of the labeled rows" if given == LABELED else "given"
        lines.append(f"It allows the unlabeled rows only classes in the proportions {source}.")
    if about.get("learned") == NOTHING:  # neither why it was chosen nor what it cannot lose matters
        return [*lines, *_error_lines(about)]
    if about.get("choice"):
        lines.insert(0, about["choice"])
    safety = about.get("safety")
    return [*lines, *_error_lines(about), *([safety] if isinstance(safety, str) and safety else [])]


def _error_lines(about: Mapping[str, Any]) -> list[str]:
    """The error to expect on new rows, or why it is unknown."""
    if not about:
        return []
    if isinstance(about.get("error"), dict):
        base = BaseRate.of_counts(about["labeled"])
        doubt = "too few labels to be sure that this is better than"
        if about["error"].get("error", 0.0) >= base.error:
            doubt = "that looks no better than"
        end = {
            CLEAR: "; to call every row {!r} would get {} wrong",
            UNCLEAR: f": {doubt} to call every row {{!r}}, which gets {{}} wrong",
        }.get(about.get("learned", ""), "")  # nothing is a warning
        expected = about["error"].get("text", "an unknown error")
        return [f"Expect {expected}{end.format(base.majority, percent_text(base.error))}."]
    if about.get("n_tested", LEAST_TESTED) >= LEAST_TESTED:  # very wide, or by an earlier version
        return ["How often it errs on new rows was not estimated: `iclda compare` does that."]
    return [
        f"How often it errs on new rows cannot be estimated: that takes {LEAST_TESTED} labeled "
        f"rows of classes with two or more, and there are {about['n_tested']}. Label more rows."
    ]


def _convergence(found: Mapping[str, Any]) -> str:
    steps = plural(found["n_iter"], "step")
    if not found["converged"]:
        return f"It did not converge in {steps}: see the warning, and do not rely on it."
    if "gap" not in found:
        return f"It converged in {steps}."
    if "n_optima" not in found:  # a convex problem
        return f"It converged in {steps}: no other model has a better worst case."
    optima = found["n_optima"]
    several = f", the best of {optima} solutions found" if optima > 1 else ""
    return f"It converged in {steps}{several}."


_NUMBERS = {  # of a fit, by their keys in the details of a model
    "n_iter": "steps of the solver: {:,}",
    "n_passes": "passes over the unlabeled rows: {:,}",
    "n_optima": "maxima found: {:,}",
    "gap": "gap: {:.1e}, what other labels can still gain, to first order, in log likelihood",
}


def verbose_lines(details: Mapping[str, Any]) -> list[str]:
    """The numbers of the fit that only someone who knows its mathematics asks for."""
    found = details["diagnosis"]
    known = [text.format(found[key]) for key, text in _NUMBERS.items() if key in found]
    bounds = details["about"].get("safety_details")
    more = [bounds] if isinstance(bounds, str) and bounds else []
    return ["", *(line[0].upper() + line[1:] for line in known), *more]


def _ranked(counts: Mapping[str, int], most: int = 5) -> str:
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    cells = ", ".join(f"{name!r} {n:,}" for name, n in ranked[:most])
    return cells + (f" and {len(ranked) - most} more columns" if len(ranked) > most else "")
