"""Fit a method to a table, and predict files of any size in constant memory.

`fit_table` fits a pipeline to all rows of a table, and writes a `FitReport` of what a
person should know about it: the rows, the warnings, the error to expect on new rows.
`predict_file` reads a file block by block and writes its predictions to another one.

The error to expect is that of labels drawn at random. Labels of rows that were chosen
because they are informative train the fits but do not test them (`wrong_on_random`).
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._checks import first_copies
from .._core import AnyArray
from .._estimators.auto import AutoLDA
from .._estimators.diagnosis import safety_bounds
from .._estimators.labels import FREE, LABELED, plain
from .._estimators.linear_model import gaussian_model_of
from .._messages import (
    Hint,
    NothingLearnedWarning,
    NoUnlabeledRowsWarning,
    ParameterError,
    message_of,
    say,
)
from .._statistics import (
    LEAST_TESTED,
    BaseRate,
    ErrorEstimate,
    error_interval,
    estimate_as_json,
    warn_if_nothing_learned,
)
from .._system import atomic_write, check_writable
from ..methods import Method
from .encoders import pipeline, preprocessing, require_for_tables, type_named
from .table import Source, Table, require_columns, to_pandas_frame, why_withheld
from .table_files import (
    WRITTEN_SUFFIXES,
    DataReader,
    FeatureFile,
    appending,
    feature_names,
    open_data,
)

# A cell is far from the training rows beyond this many standard deviations from their
# mean.
FAR_DEVIATIONS = 10
# Folds into which labels drawn at random are divided.
_N_FOLDS = 5
_SUPERVISED = say(
    "No row is unlabeled, so that this is a supervised fit. Rows with an empty target "
    "are unlabeled; {@unlabeled} and {@unlabeled_file} name others."
)
_CHOSEN_SHARES = (
    "{which} takes the class shares of the labels, and {n} of these were chosen for "
    "being informative: {way_out}."
)

# Name of the type of every column of a model.
Kinds = Mapping[str, str]
# Takes the share of the file that is done and the number of rows so far.
ShareDone = Callable[[float, int], None]


@dataclass(frozen=True)
class FitReport:
    """What a fit to a table found; it is stored with the model.

    Attributes
    ----------
    command : str
        The command line, if there was one.
    target : str
        Name of the target column.
    sources : tuple of Source
        The files.
    labeled : mapping of str to int
        Number of labeled rows by class.
    n_unlabeled : int
        Number of unlabeled rows.
    empty_cells : mapping of str to int
        Number of empty cells by column, of columns that have any.
    notes, warnings : sequence of str
        Remarks on the table and on the fit.
    method : str
        Name of the method.
    choice : str
        Why the method was chosen; empty if it was given.
    error : mapping or None
        The error to expect on new rows.
    n_tested : int
        Number of rows that the error was measured on.
    learned : str
        Whether the fit beats the most frequent class; empty if that is not known.
    withheld : str
        Why the error is not known, where labels were chosen.
    safety : str
        What the fit cannot lose relative to the supervised one, in a sentence.
    """

    command: str
    target: str
    sources: tuple[Source, ...]
    labeled: Mapping[str, int]
    n_unlabeled: int
    empty_cells: Mapping[str, int]
    notes: Sequence[str]
    warnings: Sequence[str]
    method: str = ""
    choice: str = ""
    error: Mapping[str, Any] | None = None
    n_tested: int = LEAST_TESTED
    learned: str = ""
    withheld: str = ""
    safety: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the report as values that JSON has."""
        return {**vars(self), "sources": [asdict(source) for source in self.sources]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FitReport | None:
        """Read the report in the details of a model; None if there is none."""
        names = [each.name for each in fields(cls)]
        known = {name: stored[name] for name in names if name in stored}
        try:
            known["sources"] = tuple(Source(**source) for source in known["sources"])
            return cls(**known)
        except (KeyError, TypeError):
            return None


def fit_table(
    table: Table,
    method: Method | None = None,
    *,
    shrinkage: float | str | None = "auto",
    priors: Mapping[str, float] | None = None,
    proportions: Mapping[str, Any] | str | None = None,
    seed: int = 0,
    command: str = "",
) -> tuple[Pipeline, FitReport]:
    """Fit a method to all rows of a table; None chooses the method.

    The classifier of the pipeline is that of the method.
    """
    is_outside = method is not None and method.is_outside
    if method is not None and is_outside:
        _refuse_given(method, priors=priors, proportions=proportions)
        table = table.framed()
        classifier = method.classifier()
    else:
        if table.n_chosen:
            proportions = _without_labeled_shares(table, method, proportions)
        classifier = AutoLDA(
            methods=None if method is None else [method.name],
            shrinkage=shrinkage,
            priors=priors,
            proportions=proportions,
            random_state=seed,
        )

    # The features of an array are used as they are, and read in blocks.
    is_array = isinstance(table.features, FeatureFile)
    rows = table.features.rows if is_array else table.features
    encoder = None if is_array else preprocessing(rows)
    model = pipeline(encoder, classifier, scale=is_outside or None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows, table.labels)
        name, fitted = model.steps[-1]
        choice = None if is_outside else fitted
        if choice is not None:
            model.steps[-1] = (name, choice.estimator_)
        tested = _error_fields(model, table, choice)

    encoded = rows if is_array else model[:-1].transform(rows)
    bounds = safety_bounds(model[-1], encoded, table.labels)
    messages: list[Any] = [record.message for record in caught]
    texts = []
    if table.n_chosen:
        # What a cross-validation of chosen labels says does not hold for other rows.
        messages = [
            message
            for message in messages
            if not isinstance(message, NothingLearnedWarning)
        ]
        has_shares = priors is not None or "proportions" in model[-1].get_params()
        if not has_shares:
            texts.append(_chosen_shares_warning(table, is_outside))
    counts = Counter(table.labels[table.is_labeled].tolist())
    report = FitReport(
        command=command,
        target=table.target,
        sources=table.sources,
        labeled=dict(sorted(counts.items())),
        n_unlabeled=int((~table.is_labeled).sum()),
        empty_cells={} if is_array else _count_gaps(rows),
        notes=table.notes,
        warnings=[*_warnings_of(messages, table), *texts],
        method=fitted.method_ if method is None else method.name,
        choice=fitted.reason_ if method is None else "",
        safety="" if bounds is None else bounds.sentence,
        **tested,
    )
    return model, report


def _chosen_shares_warning(table: Table, is_outside: bool) -> str:
    """Warn that the class shares of a fit are those of chosen labels."""
    known = ""
    if not is_outside:
        known = say("name the shares that you know by {@priors}, or ")
    way_out = say("{known}use {@method=average}, which does not", known=known)
    return say(_CHOSEN_SHARES, which="This method", n=table.n_chosen, way_out=way_out)


def _error_fields(
    model: Pipeline, table: Table, choice: AutoLDA | None
) -> dict[str, Any]:
    """Return the fields of ``FitReport`` about the error.

    The error is that of labels drawn at random if others were chosen, and for methods
    of scikit-learn, which have no ``choice``; otherwise ``choice`` has estimated it.
    """
    withheld = ""
    if table.n_chosen:
        withheld = why_withheld(table)
    elif choice is not None and choice.proportions == FREE:
        withheld = (
            "free proportions are for labels that are no random sample of the rows"
        )

    error = None
    brier = math.inf
    if choice is None or table.n_chosen > 0:
        n_tested = int(table.is_random.sum())
        if n_tested >= LEAST_TESTED and not withheld:
            framed = table.framed()
            error = random_estimate(framed, wrong_on_random(model, framed))
    else:
        n_tested = choice.n_tested_
        if not withheld:
            error = choice.error_estimate
            brier = choice.losses_.get(choice.method_, math.inf)

    learned = ""
    stated = estimate_as_json(error)
    if error is not None and stated is not None and not table.n_chosen:
        base = BaseRate.of_counts(Counter(table.labels[table.is_labeled].tolist()))
        learned = base.judge(error.error, error.high, brier)
        if choice is None:
            warn_if_nothing_learned(base, error, brier)
        remark = _how_measured(choice)
        stated["text"] = f"{stated['text'].removesuffix(')')}, {remark})"
    return {
        "error": stated,
        "n_tested": n_tested,
        "learned": learned,
        "withheld": withheld,
    }


def _how_measured(choice: AutoLDA | None) -> str:
    """Say how an error was measured that is not only that of random labels."""
    how = "cross-validated, in other folds than those of `iclda compare`"
    is_corrected = choice is not None and len(choice.losses_) > 1
    if is_corrected:
        return f"corrected for choosing the method by them; {how}"
    # The user chose the method, perhaps by the errors of several.
    if choice is None or choice.methods is not None:
        return f"not corrected for choosing the method by them; {how}"
    return how


def _without_labeled_shares(
    table: Table, method: Method | None, proportions: Any
) -> Any:
    """Proportions that do not come from chosen labels; ParameterError if they do."""
    own = None if method is None else dict(method.options).get("proportions")
    given = proportions or own
    if isinstance(given, str) and given == LABELED:
        text = say(
            _CHOSEN_SHARES,
            which=Hint("proportions"),
            n=table.n_chosen,
            way_out="leave it out, or pass the shares that you know of all rows",
        )
        raise ParameterError(text, parameter="proportions", value=given)
    return FREE if given is None else given


def random_estimate(table: Table, is_wrong: AnyArray) -> ErrorEstimate:
    """Error on new rows, by ``wrong_on_random``.

    The interval is that of Clopper and Pearson. Its lower end allows for the labels
    that the fits lack: errors fall at most like the root of their number.
    """
    n_random = len(is_wrong)
    n_labels = int(table.is_labeled.sum())
    low, high = error_interval(int(is_wrong.sum()), n_random)
    low *= float(np.sqrt(1 - n_random / _N_FOLDS / n_labels))
    return ErrorEstimate(float(is_wrong.mean()), low, high, n_random)


def wrong_on_random(
    model: Any, table: Table, is_training: AnyArray | None = None
) -> AnyArray:
    """Which labels drawn at random are predicted wrongly by fits without them.

    Every fit has all chosen labels and, in folds, the other random ones;
    ``is_training`` are the rows whose labels fits may use. Without two classes to fit,
    the only one is predicted. Of a row that occurs several times the first copy is
    tested, by fits to none of them.
    """
    first = first_copies(table.features, table.labels)
    is_first = first == np.arange(len(first))
    tested = np.flatnonzero(table.is_random & is_first)
    folds = np.random.default_rng(0).permutation(len(tested)) % _N_FOLDS
    is_wrong = np.empty(len(tested), dtype=bool)
    for k in range(_N_FOLDS):
        fold = tested[folds == k]
        labels = table.labels.copy()
        labels[np.isin(first, fold)] = None
        if is_training is not None:
            labels[~is_training] = None
        classes = {label for label in labels if label is not None}
        predicted = np.full(len(fold), next(iter(classes), None), dtype=object)
        if len(classes) > 1:
            with warnings.catch_warnings():
                # The fit to all labels repeats what matters.
                warnings.simplefilter("ignore")
                fitted = clone(model).fit(table.features, labels)
                predicted = fitted.predict(table.features.iloc[fold])
        is_wrong[folds == k] = predicted != table.labels[fold]
    return is_wrong


def _refuse_given(method: Method, **given: Any) -> None:
    """Refuse parameters that methods of scikit-learn do not have."""
    for name, value in given.items():
        if value is not None:
            sentence = "{hint} is not for {name}: leave it out."
            text = say(sentence, hint=Hint(name), name=method.name)
            raise ParameterError(text, parameter=name, value=value)


def _count_gaps(features: Any) -> dict[str, int]:
    return {name: int(n) for name, n in features.isna().sum().items() if n}


def _warnings_of(caught: Sequence[Any], table: Table) -> list[str]:
    """Warnings of a fit and of its table, each once, the most important one first."""
    first: list[str] = []
    others: list[str] = []
    for warning in caught:
        if isinstance(warning, NothingLearnedWarning):
            first.append(message_of(warning))
        elif isinstance(warning, NoUnlabeledRowsWarning):
            others.append(_SUPERVISED)
        else:
            others.append(message_of(warning))
    return list(dict.fromkeys([*first, *table.warnings, *others]))


@dataclass
class PredictionCounts:
    """Counts of the rows and cells of a file that was predicted.

    Attributes
    ----------
    ignored : tuple of str
        Columns that the model does not use.
    n_rows : int
        Number of rows.
    classes : Counter of str
        Rows by predicted class.
    filled : Counter of str
        Empty cells by column.
    unknown : Counter of str
        Cells with a category that the model does not know, by column.
    far : Counter of str
        Cells far from those of the training rows, by column.
    """

    ignored: tuple[str, ...] = ()
    n_rows: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    filled: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    far: Counter[str] = field(default_factory=Counter)


def predict_file(
    model: Any,
    kinds: Kinds,
    data: Path,
    out: Path,
    *,
    ids: Sequence[str] = (),
    advance: ShareDone = lambda share, n_rows: None,
) -> PredictionCounts:
    """Write class and probabilities of every row of a file to another one.

    Nothing is written under the name of that file before all rows are done.
    """
    file = open_data(data, ids)
    arrow = require_for_tables("pyarrow")
    names = np.array([str(name) for name in model.classes_], dtype=object)
    columns = [*ids, "class", *(f"probability_{name}" for name in names)]
    _check_files(file, out, kinds, ids, columns)
    used = {*kinds, *ids}
    counts = PredictionCounts(tuple(name for name in file.columns if name not in used))
    with atomic_write(out) as unfinished, appending(unfinished, out.suffix) as append:
        blocks = predicted_blocks(model, kinds, file, ids, counts)
        for rows, probabilities, share in blocks:
            cells = [rows[name] for name in ids]
            cells.append(names[probabilities.argmax(axis=1)])
            cells += list(probabilities.T)
            append(arrow.table(dict(zip(columns, cells, strict=True))))
            advance(share, counts.n_rows)
    return counts


def predicted_blocks(
    model: Any,
    kinds: Kinds,
    file: DataReader,
    others: Sequence[str],
    counts: PredictionCounts,
) -> Iterator[tuple[Any, Any, float]]:
    """Yield rows as Arrow tables, their probabilities, and the share that is done.

    ``others`` are columns to read as text besides those of the model. The rows are
    added to ``counts``. ValueError without rows.
    """
    arrow = require_for_tables("pyarrow")
    types = dict.fromkeys(others, arrow.string())
    # A column of the model that is copied too is read once, as the model takes it.
    for name, kind in kinds.items():
        types[name] = arrow.type_for_alias(type_named(kind).arrow)
    for batch, share in file.batches(types):
        if batch.num_rows:
            rows = arrow.Table.from_batches([batch])
            frame = to_pandas_frame(rows.select(list(kinds)))
            _refuse_other_types(frame, kinds, file)
            yield rows, _predict(model, frame, counts), share
    if not counts.n_rows:
        raise ValueError(f"{file.path} holds no rows below the names of its columns.")


def _predict(model: Any, frame: Any, counts: PredictionCounts) -> Any:
    """Return the probabilities of the classes of some rows, and count the rows."""
    steps = model if isinstance(model, Pipeline) else Pipeline([("classify", model)])
    classifier = steps[-1]
    encoded = steps[:-1].transform(frame) if len(steps) > 1 else frame
    is_named = hasattr(classifier, "feature_names_in_")
    probabilities = classifier.predict_proba(
        encoded if is_named else encoded.to_numpy()
    )

    counts.n_rows += len(frame)
    counts.filled.update(_count_gaps(frame))
    for _, encoder, columns in getattr(steps[0], "transformers_", ()):
        if hasattr(encoder, "count_unknown"):
            counts.unknown.update(encoder.count_unknown(frame[list(columns)]))
    counts.far.update(_count_far_cells(classifier, encoded, frame))
    n_rows_of_class = np.bincount(
        probabilities.argmax(axis=1), minlength=len(model.classes_)
    )
    for name, n_rows in zip(model.classes_, n_rows_of_class.tolist(), strict=True):
        counts.classes[str(name)] += n_rows
    return probabilities


def _count_far_cells(classifier: Any, encoded: Any, frame: Any) -> dict[str, int]:
    """Cells by column that lie many standard deviations from the training mean.

    Columns of 0 and 1 made of categories do not count: their values are known ones.
    Nothing is counted where the classifier scales rows to length 1.
    """
    linear_model = gaussian_model_of(classifier)
    is_far = None
    if linear_model is not None:
        is_far = linear_model.is_far(encoded, FAR_DEVIATIONS)
    if is_far is None:
        return {}
    numbers = {name for name in frame.columns if frame[name].dtype.kind in "iuf"}
    return {
        str(name): int(n)
        for name, n in zip(encoded.columns, is_far.sum(axis=0), strict=True)
        if n and name in numbers
    }


def _check_files(
    file: DataReader, out: Path, kinds: Kinds, ids: Sequence[str], columns: list[str]
) -> None:
    """Check before any row is read that predictions can be made and written."""
    check_columns(file, kinds)
    if out.suffix.lower() not in WRITTEN_SUFFIXES:
        raise ValueError(
            f"{out}: predictions are written to {' or '.join(WRITTEN_SUFFIXES)} files, "
            f"got {out.suffix or 'no suffix'!r}."
        )
    check_writable(out)
    if out.exists() and out.samefile(file.file):
        raise ValueError(
            f"{out} is the file that is read: write the predictions to another one."
        )
    require_columns(file, ids, " to copy")
    name, count = Counter(columns).most_common(1)[0]
    if count > 1:
        raise ValueError(
            f"Predictions would hold two columns {name!r}: rename the id column."
        )


def check_columns(file: DataReader, kinds: Kinds) -> None:
    """Raise a ValueError unless a file has all columns of a model."""
    if isinstance(file, FeatureFile) and len(file.features) != len(kinds):
        raise ValueError(
            f"{file.path} has {len(file.features):,} features, and the model was "
            f"fitted to {len(kinds):,}: compute the features in the same way as those "
            "of the fit."
        )
    is_nameless = [*kinds] == feature_names(len(kinds))
    if is_nameless and not {*kinds}.intersection(file.columns):
        raise ValueError(
            "The model was fitted to features without names, and the columns of "
            f"{file.path} are matched by names: save its features by numpy.save, or "
            "fit the model to a table."
        )
    require_columns(file, kinds, ", which the model was fitted to")


def _refuse_other_types(frame: Any, kinds: Kinds, file: DataReader) -> None:
    """Refuse columns of a Parquet file with other types than the training data."""
    for name, kind in kinds.items():
        present = frame[name].dropna()
        if not len(present):
            continue
        expected = type_named(kind)
        has_type = frame[name].dtype.kind in expected.dtypes
        # Arrow columns hold one type: where one cell is a list or a struct, all are.
        if not has_type or not isinstance(present.iloc[0], Hashable):
            raise ValueError(
                f"{file.path}, column {name!r}: must hold {expected.cells}, as in the "
                f"data the model was fitted to, got {plain(present.iloc[0])!r}."
            )
