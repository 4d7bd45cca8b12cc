"""Fit a method to a table, and predict files of any size block by block with constant memory."""

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
from .._estimators.base import LinearGaussianClassifier
from .._estimators.diagnosis import safety_bounds
from .._estimators.labels import FREE, LABELED, plain
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

FAR_DEVIATIONS = 10  # standard deviations from the mean: beyond what the fit has seen
_SUPERVISED = say(
    "No row is unlabeled, so that this is a supervised fit. Rows with an empty target are "
    "unlabeled; {@unlabeled} and {@unlabeled_file} name others."
)
_FOLDS = 5  # of the labels drawn at random
_CHOSEN_SHARES = (
    "{which} takes the class shares of the labels, and {n} of these were chosen for being "
    "informative: {way_out}."
)

Kinds = Mapping[str, str]  # name of the type of every column of a model
ShareDone = Callable[
    [float, int], None
]  # takes the share of the file and the rows so far


@dataclass(frozen=True)
class FitReport:
    """What a fit to a table found; it is stored beside the model."""

    command: str
    target: str
    sources: tuple[Source, ...]
    labeled: Mapping[str, int]  # labeled rows by class
    n_unlabeled: int
    empty_cells: Mapping[str, int]  # by column
    notes: Sequence[str]
    warnings: Sequence[str]
    method: str = ""
    choice: str = ""  # why the method was chosen; empty if it was given
    error: Mapping[str, Any] | None = None  # to expect on new rows
    n_tested: int = LEAST_TESTED  # rows of which the error is known
    learned: str = ""  # whether the fit beats the most frequent class, if that is known
    withheld: str = ""  # why the error is not known, where labels were chosen
    safety: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "sources": [asdict(source) for source in self.sources]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FitReport | None:
        """Read the report in the details of a model; None if something else is stored there."""
        known = {
            each.name: stored[each.name] for each in fields(cls) if each.name in stored
        }
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
        table, classifier = table.framed(), method.classifier()
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
    features = table.features
    is_array = isinstance(features, FeatureFile)
    # The features of a network are used as they are, and read in blocks.
    rows = features.rows if is_array else features
    encoder = None if is_array else preprocessing(rows)
    model = pipeline(encoder, classifier, scale=is_outside or None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows, table.labels)
        name, choice = model.steps[-1]
        if not is_outside:
            model.steps[-1] = (name, choice.estimator_)
        tested = _test(model, table, None if is_outside else choice)
    encoded = rows if is_array else model[:-1].transform(rows)
    bounds = safety_bounds(model[-1], encoded, table.labels)
    messages: list[Any] = [record.message for record in caught]
    doubts: list[str] = []
    if table.n_chosen:
        # What a cross-validation of chosen labels says does not hold for other rows.
        messages = [
            each for each in messages if not isinstance(each, NothingLearnedWarning)
        ]
        if priors is None and "proportions" not in model[-1].get_params():
            known = (
                ""
                if is_outside
                else say("name the shares that you know by {@priors}, or ")
            )
            way_out = say("{known}use {@method=average}, which does not", known=known)
            values = {"which": "This method", "n": table.n_chosen, "way_out": way_out}
            doubts.append(say(_CHOSEN_SHARES, **values))
    counts = Counter(table.labels[table.is_labeled].tolist())
    report = FitReport(
        command=command,
        target=table.target,
        sources=table.sources,
        labeled=dict(sorted(counts.items())),
        n_unlabeled=int((~table.is_labeled).sum()),
        empty_cells={} if is_array else _count_gaps(rows),
        notes=table.notes,
        warnings=[*_warnings_of(messages, table), *doubts],
        method=choice.method_ if method is None else method.name,
        choice=choice.reason_ if method is None else "",
        safety="" if bounds is None else bounds.sentence,
        **tested,
    )
    return model, report


def _test(model: Pipeline, table: Table, choice: AutoLDA | None) -> dict[str, Any]:
    """Return the fields of ``FitReport`` about the error: that of ``choice`` or of random labels.

    It is that of labels drawn at random if others were chosen, and for methods of scikit-learn.
    """
    n_random, withheld, error = int(table.is_random.sum()), "", None
    if table.n_chosen:
        withheld = why_withheld(table)
    elif choice is not None and choice.proportions == FREE:
        withheld = (
            "free proportions are for labels that are no random sample of the rows"
        )
    is_random = choice is None or table.n_chosen > 0
    n_tested = n_random if is_random or choice is None else choice.n_tested_
    brier, learned = math.inf, ""
    if is_random and n_random >= LEAST_TESTED and not withheld:
        framed = table.framed()
        error = random_estimate(framed, wrong_on_random(model, framed))
    elif choice is not None and not is_random and not withheld:
        error, brier = (
            choice.error_estimate,
            choice.losses_.get(choice.method_, math.inf),
        )
    stated = estimate_as_json(error)
    if error is not None and stated is not None and not table.n_chosen:
        base = BaseRate.of_counts(Counter(table.labels[table.is_labeled].tolist()))
        learned = base.judge(error.error, error.high, brier)
        if choice is None:
            warn_if_nothing_learned(base, error, brier)
        is_corrected = choice is not None and len(choice.losses_) > 1
        how = "cross-validated, in other folds than those of `iclda compare`"
        if is_corrected or choice is None or choice.methods is not None:
            is_not = "" if is_corrected else "not "
            how = f"{is_not}corrected for choosing the method by them; {how}"
        stated["text"] = f"{stated['text'].removesuffix(')')}, {how})"
    return {
        "error": stated,
        "n_tested": n_tested,
        "learned": learned,
        "withheld": withheld,
    }


def _without_labeled_shares(
    table: Table, method: Method | None, proportions: Any
) -> Any:
    """Proportions that take nothing from chosen labels; ParameterError for those that would."""
    own = None if method is None else dict(method.options).get("proportions")
    given = proportions or own
    if isinstance(given, str) and given == LABELED:
        way_out = "leave it out, or pass the shares that you know of all rows"
        values = {"which": Hint("proportions"), "n": table.n_chosen, "way_out": way_out}
        text = say(_CHOSEN_SHARES, **values)
        raise ParameterError(text, parameter="proportions", value=given)
    return FREE if given is None else given


def random_estimate(table: Table, is_wrong: AnyArray) -> ErrorEstimate:
    """Error on new rows, by ``wrong_on_random``.

    The interval is that of Clopper and Pearson. Its lower end allows for the labels that the fits
    lack: errors fall at most like the root of their number.
    """
    n_random, n_labels = len(is_wrong), int(table.is_labeled.sum())
    low, high = error_interval(int(is_wrong.sum()), n_random)
    low *= float(np.sqrt(1 - n_random / _FOLDS / n_labels))
    return ErrorEstimate(float(is_wrong.mean()), low, high, n_random)


def wrong_on_random(
    model: Any, table: Table, is_training: AnyArray | None = None
) -> AnyArray:
    """Whether each label drawn at random is predicted wrongly by a fit without it.

    Fits are to all chosen labels and, in folds, to the other random ones; ``is_training`` are the
    rows whose labels they may use. Without two classes to fit, the only one is predicted. Of a row
    that occurs several times the first copy is tested, by fits to none of them.
    """
    first = first_copies(table.features, table.labels)
    tested = np.flatnonzero(table.is_random & (first == np.arange(len(first))))
    folds = np.random.default_rng(0).permutation(len(tested)) % _FOLDS
    is_wrong = np.empty(len(tested), dtype=bool)
    for k in range(_FOLDS):
        fold = tested[folds == k]
        labels = table.labels.copy()
        labels[np.isin(first, fold)] = None
        if is_training is not None:
            labels[~is_training] = None
        classes = {label for label in labels if label is not None}
        predicted = np.full(len(fold), next(iter(classes), None), dtype=object)
        if len(classes) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # the fit to all labels repeats what matters
                fitted = clone(model).fit(table.features, labels)
                predicted = fitted.predict(table.features.iloc[fold])
        is_wrong[folds == k] = predicted != table.labels[fold]
    return is_wrong


def _refuse_given(method: Method, **given: Any) -> None:
    """Refuse parameters that methods of scikit-learn do not have."""
    for name, value in given.items():
        if value is not None:
            text = say(
                "{hint} is not for {name}: leave it out.",
                hint=Hint(name),
                name=method.name,
            )
            raise ParameterError(text, parameter=name, value=value)


def _count_gaps(features: Any) -> dict[str, int]:
    return {name: int(n) for name, n in features.isna().sum().items() if n}


def _warnings_of(caught: Sequence[Any], table: Table) -> list[str]:
    """Warnings of a fit and of its table, each once; that nothing was learned is the first."""
    first = [message_of(w) for w in caught if isinstance(w, NothingLearnedWarning)]
    texts = [
        _SUPERVISED if isinstance(w, NoUnlabeledRowsWarning) else message_of(w)
        for w in caught
    ]
    return list(dict.fromkeys([*first, *table.warnings, *texts]))


@dataclass
class PredictionCounts:
    """Counts of the rows and cells of a file that was predicted."""

    ignored: tuple[str, ...] = ()  # columns
    n_rows: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    filled: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(
        default_factory=Counter
    )  # cells with an unknown category
    far: Counter[str] = field(
        default_factory=Counter
    )  # cells far from those of the training


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
    counts = PredictionCounts(
        tuple(name for name in file.columns if name not in {*kinds, *ids})
    )
    with atomic_write(out) as unfinished, appending(unfinished, out.suffix) as append:
        for rows, probabilities, share in predicted_blocks(
            model, kinds, file, ids, counts
        ):
            predicted = [names[probabilities.argmax(axis=1)], *probabilities.T]
            cells = [*(rows[name] for name in ids), *predicted]
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
    """Yield rows as Arrow tables, their probabilities, and the share of the file that is done.

    ``others`` are columns to read as text besides those of the model. ValueError without rows.
    """
    arrow = require_for_tables("pyarrow")
    # A column of the model that is copied too is read once, with the type that the model takes.
    types = dict.fromkeys(others, arrow.string()) | {
        name: arrow.type_for_alias(type_named(kind).arrow)
        for name, kind in kinds.items()
    }
    for batch, share in file.batches(types):
        if batch.num_rows:
            rows = arrow.Table.from_batches([batch])
            frame = to_pandas_frame(rows.select(list(kinds)))
            _refuse_other_types(frame, kinds, file)
            yield rows, _predict(model, frame, counts), share
    if not counts.n_rows:
        raise ValueError(f"{file.path} holds no rows below the names of its columns.")


def _predict(model: Any, frame: Any, counts: PredictionCounts) -> Any:
    """Probabilities of the classes of some rows, which are counted."""
    steps = model if isinstance(model, Pipeline) else Pipeline([("classify", model)])
    encoded = steps[:-1].transform(frame) if len(steps) > 1 else frame
    is_named = hasattr(steps[-1], "feature_names_in_")
    probabilities = steps[-1].predict_proba(encoded if is_named else encoded.to_numpy())
    counts.n_rows += len(frame)
    counts.filled.update(_count_gaps(frame))
    for _, encoder, columns in getattr(steps[0], "transformers_", ()):
        if hasattr(encoder, "count_unknown"):
            counts.unknown.update(encoder.count_unknown(frame[list(columns)]))
    counts.far.update(_count_far_cells(steps[-1], encoded, frame))
    n_each = np.bincount(probabilities.argmax(axis=1), minlength=len(model.classes_))
    counts.classes.update(
        dict(zip(map(str, model.classes_), n_each.tolist(), strict=True))
    )
    return probabilities


def _count_far_cells(classifier: Any, encoded: Any, frame: Any) -> dict[str, int]:
    """Cells by column that lie many standard deviations from the mean of the training rows.

    Columns of 0 and 1 made of categories do not count: their values are known ones. Nothing is
    counted where the classifier scales rows to length 1.
    """
    is_scaled = getattr(classifier, "center_", None) is not None
    if is_scaled or not isinstance(classifier, LinearGaussianClassifier):
        return {}
    middle = classifier.priors_ @ classifier.means_
    between = classifier.priors_ @ (classifier.means_ - middle) ** 2
    spread = np.sqrt(classifier._variances + between)
    is_far = (
        np.abs(np.asarray(encoded, dtype=np.float64) - middle) > FAR_DEVIATIONS * spread
    )
    n_far = (is_far & (spread > 0)).sum(axis=0)
    own = {name for name in frame.columns if frame[name].dtype.kind in "iuf"}
    return {
        str(name): int(n)
        for name, n in zip(encoded.columns, n_far, strict=True)
        if n and name in own
    }


def _check_files(
    file: DataReader, out: Path, kinds: Kinds, ids: Sequence[str], columns: list[str]
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
    is_nameless = [*kinds] == feature_names(len(kinds))
    if isinstance(file, FeatureFile) and len(file.features) != len(kinds):
        raise ValueError(
            f"{file.path} has {len(file.features):,} features, and the model was fitted to "
            f"{len(kinds):,}: compute the features in the same way as those of the fit."
        )
    if is_nameless and not {*kinds}.intersection(file.columns):
        raise ValueError(
            f"The model was fitted to features without names, and the columns of {file.path} are "
            "matched by names: save its features by numpy.save, or fit the model to a table."
        )
    require_columns(file, kinds, ", which the model was fitted to")


def _refuse_other_types(frame: Any, kinds: Kinds, file: DataReader) -> None:
    """Refuse columns of a Parquet file whose types are not those of the training data."""
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
