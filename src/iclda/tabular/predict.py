"""Predict a file of any size block by block, and write or judge the predictions.

`predict_file` writes the class and the probabilities of every row to another file.
`predicted_blocks` yields them to a caller, and counts what a person should know: empty
cells, categories that the fit did not see, numbers far outside of their columns.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from .._estimators.labels import plain
from .._estimators.open_set import check_alpha, check_has_novelty, named
from .._messages import ParameterError, say
from .._rows.views import Bounds, steps_of
from .._system import atomic_write, check_writable
from .array_files import FeatureFile, feature_names
from .cells import count_gaps, require_for_tables
from .column_types import type_named
from .files import WRITTEN_SUFFIXES, appending, open_data
from .frames import to_pandas_frame
from .readers import DataReader, require_columns

# Columns of predictions: the class, the p-value of being of a known class, and the
# probability of every class.
_CLASS = "class"
_P_VALUE = "p_value_known"
_PROBABILITY = "probability_"
# Name of the type of every column of a model.
Kinds = Mapping[str, str]
# Takes the share of the file that is done and the number of rows so far.
ShareDone = Callable[[float, int], None]


class NoneOfThese(NamedTuple):
    """Rows with a p-value below ``alpha`` get ``name`` in place of a class."""

    alpha: float
    name: str


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
    broken : Counter of str
        Numbers far outside of the columns of the fit, by column.
    """

    ignored: tuple[str, ...] = ()
    n_rows: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    filled: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)


def predict_file(
    model: Any,
    kinds: Kinds,
    data: Path,
    out: Path,
    *,
    ids: Sequence[str] = (),
    advance: ShareDone = lambda share, n_rows: None,
    adapted: Any = None,
    none: NoneOfThese | None = None,
) -> PredictionCounts:
    """Write class and probabilities of every row of a file to another one.

    ``adapted`` are the ``AdaptedModels`` of the groups of its rows, if any. Nothing is
    written under the name of that file before all rows are done. With ``none`` the
    p-values of rows are written as well.
    """
    file = open_data(data, ids)
    arrow = require_for_tables("pyarrow")
    classes = np.array([str(name) for name in model.classes_], dtype=object)
    headings = [*ids, _CLASS, *(f"{_PROBABILITY}{name}" for name in classes)]
    if none is not None:
        _check_none(none, model, classes)
        headings.insert(len(ids) + 1, _P_VALUE)
    _check_files(file, out, kinds, ids, headings)
    others = [*ids]
    if adapted is not None and adapted.column not in (None, *ids):
        others.append(adapted.column)
    used = {*kinds, *others}
    ignored = tuple(name for name in file.columns if name not in used)
    counts = PredictionCounts(ignored)
    with atomic_write(out) as unfinished, appending(unfinished, out.suffix) as append:
        blocks = predicted_blocks(
            model, kinds, file, others, counts, adapted, has_novelty=none is not None
        )
        for block in blocks:
            copied = [block.rows[name] for name in ids]
            predicted = classes[block.probabilities.argmax(axis=1)]
            columns = [*copied, predicted, *block.probabilities.T]
            if none is not None:
                is_none = 1 - block.novelty < none.alpha
                for name in predicted[is_none]:
                    counts.classes[name] -= 1
                counts.classes[none.name] += int(is_none.sum())
                predicted = named(predicted, is_none, none.name)
                columns[len(ids) : len(ids) + 1] = [predicted, 1 - block.novelty]
            append(arrow.table(columns, names=headings))
            advance(block.share_done, counts.n_rows)
    return counts


def holds_predictions(path: Path) -> bool:
    """Return whether a file has the columns that ``predict_file`` writes."""
    try:
        if path.suffix.lower() == ".parquet":
            schema = require_for_tables("pyarrow.parquet").read_schema(path)
            columns = list(schema.names)
        else:
            with path.open(newline="", encoding="utf-8") as file:
                columns = next(csv.reader(file), [])
    # Errors of Arrow and of decoding are ValueErrors.
    except (OSError, ValueError, csv.Error):
        return False
    if _CLASS not in columns:
        return False
    others = columns[columns.index(_CLASS) + 1 :]
    if others[:1] == [_P_VALUE]:
        del others[0]
    return bool(others) and all(name.startswith(_PROBABILITY) for name in others)


class PredictedBlock(NamedTuple):
    """Rows of a file and their predictions.

    Attributes
    ----------
    rows : Arrow table
        The columns that were read.
    encoded : DataFrame
        What the classifier reads.
    probabilities : ndarray of shape (n_rows, n_classes)
        Probabilities of the classes.
    share_done : float
        The share of the file that is done.
    novelty : ndarray of shape (n_rows,) or None
        How little the rows resemble any class, if that was asked for.
    """

    rows: Any
    encoded: Any
    probabilities: Any
    share_done: float
    novelty: Any = None


def predicted_blocks(
    model: Any,
    kinds: Kinds,
    file: DataReader,
    others: Sequence[str],
    counts: PredictionCounts,
    adapted: Any = None,
    *,
    has_novelty: bool = False,
) -> Iterator[PredictedBlock]:
    """Yield the rows of a file block by block with their predictions.

    ``others`` are columns to read as text besides those of the model. The rows are
    added to ``counts``. ``adapted`` are ``AdaptedModels``. ValueError without rows.
    """
    arrow = require_for_tables("pyarrow")
    types = dict.fromkeys(others, arrow.string())
    # A column of the model that is copied too is read once, as the model takes it.
    for name, kind in kinds.items():
        types[name] = arrow.type_for_alias(type_named(kind).arrow)
    for batch, share in file.batches(types):
        # Readers may yield a batch without rows.
        if batch.num_rows:
            rows = arrow.Table.from_batches([batch])
            frame = to_pandas_frame(rows.select(list(kinds)))
            refuse_other_types(frame, kinds, file)
            encoded, probabilities = _predict(model, frame, counts, adapted, rows)
            novelty = None
            if has_novelty:
                novelty = _novelty(model, encoded, adapted, rows)
            yield PredictedBlock(rows, encoded, probabilities, share, novelty)
    if not counts.n_rows:
        raise ValueError(f"{file.path} has no data rows.")


def _predict(
    model: Any, frame: Any, counts: PredictionCounts, adapted: Any, block: Any
) -> tuple[Any, Any]:
    """Return encoded rows and the probabilities of their classes; count the rows."""
    steps = model if isinstance(model, Pipeline) else Pipeline([("classify", model)])
    classifier = steps[-1]
    encoded = steps[:-1].transform(frame) if len(steps) > 1 else frame
    rows = _as_fitted(classifier, encoded)
    if adapted is None:
        probabilities = classifier.predict_proba(rows)
    else:
        probabilities = adapted.by_group("predict_proba", block, rows)

    counts.n_rows += len(frame)
    counts.filled.update(count_gaps(frame))
    for _, encoder, columns in getattr(steps[0], "transformers_", ()):
        if hasattr(encoder, "count_unknown"):
            n_unknown = encoder.count_unknown(frame[list(columns)])
            counts.unknown.update(n_unknown)
    counts.broken.update(_count_broken_cells(classifier, encoded, frame))
    # Classes that no row gets are counted, too: with 0 rows.
    codes = probabilities.argmax(axis=1)
    n_rows_by_code = np.bincount(codes, minlength=len(model.classes_))
    for name, n_rows in zip(model.classes_, n_rows_by_code.tolist(), strict=True):
        counts.classes[str(name)] += n_rows
    return encoded, probabilities


def _as_fitted(classifier: Any, encoded: Any) -> Any:
    """Return rows as a classifier takes them without a warning."""
    # A classifier that was fitted to an array warns of names of columns.
    is_named = hasattr(classifier, "feature_names_in_")
    return encoded if is_named else encoded.to_numpy()


def _novelty(model: Any, encoded: Any, adapted: Any, block: Any) -> Any:
    """Return the novelty of encoded rows."""
    classifier = model[-1] if isinstance(model, Pipeline) else model
    rows = _as_fitted(classifier, encoded)
    if adapted is None:
        return classifier.novelty(rows)
    return adapted.by_group("novelty", block, rows)


def _check_none(none: NoneOfThese, model: Any, classes: Any) -> None:
    """Check before any row is read that rows can be told from those of all classes."""
    check_alpha(none.alpha)
    check_has_novelty(model[-1] if isinstance(model, Pipeline) else model)
    if not none.name.strip():
        raise ParameterError(
            say("{@none_name} is empty: give a name, such as other."),
            parameter="none_name",
            value=none.name,
        )
    if none.name in classes:
        text = say(
            "{@none_name} is the class {name!r} of the model: take another name.",
            name=none.name,
        )
        raise ParameterError(text, parameter="none_name", value=none.name)


def _count_broken_cells(classifier: Any, encoded: Any, frame: Any) -> dict[str, int]:
    """Count the cells by column that the fitted view moves to usual numbers."""
    view = getattr(classifier, "view_", None)
    counts: dict[str, int] = {}
    for step in () if view is None else steps_of(view):
        if isinstance(step, Bounds):
            n_broken = step.are_broken(encoded.to_numpy()).sum(axis=0)
            counts = dict(zip(encoded.columns, n_broken.tolist(), strict=True))
    # Encoded columns of numbers keep the names that they have in the file.
    return {name: n for name, n in counts.items() if n and name in frame.columns}


def _check_files(
    file: DataReader, out: Path, kinds: Kinds, ids: Sequence[str], headings: list[str]
) -> None:
    """Check before any row is read that predictions can be made and written."""
    check_columns(file, kinds)
    if out.suffix.lower() not in WRITTEN_SUFFIXES:
        raise ValueError(
            f"{out}: predictions are written to {' or '.join(WRITTEN_SUFFIXES)} files, "
            f"got {out.suffix or 'no suffix'!r}."
        )
    check_writable(out)
    if out.exists() and out.samefile(file.path):
        raise ValueError(
            f"{out} is the file that is read: write the predictions to another one."
        )
    require_columns(file, ids, " to copy")
    [(name, count)] = Counter(headings).most_common(1)
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
            f"{file.path} are matched by names: save its features with numpy.save, "
            "or fit the model to a table."
        )
    require_columns(file, kinds, ", which the model was fitted to")


def refuse_other_types(frame: Any, kinds: Kinds, file: DataReader) -> None:
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
