"""Predict a file of any size block by block into another one, with constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._estimators.labels import plain
from .._messages import quoted_list
from .._paths import atomic_write, check_writable
from .columns import BOOLEAN, CATEGORY, NUMBER
from .files import TableFile, open_table
from .frames import frame_of, refuse_infinity
from .requirements import require
from .writing import SUFFIXES, appending

_FAR = 1e6  # standard deviations: another unit, or a lost decimal point
CLASS_COLUMN, PROBABILITY_PREFIX = "class", "probability_"

_HELD = {NUMBER: "numbers", BOOLEAN: "true and false", CATEGORY: "text"}

Advance = Callable[[float, int], None]  # share of the file, rows so far


@dataclass
class Predicted:
    """What a run over a file has seen."""

    ignored: tuple[str, ...]
    n_rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    filled: Counter[str] = field(default_factory=Counter)
    strange: Counter[str] = field(default_factory=Counter)  # cells with an unknown category
    far: Counter[str] = field(default_factory=Counter)  # cells nothing like those of the training


def predict_file(
    model: Any,
    kinds: Mapping[str, str],
    data: Path,
    out: Path,
    *,
    ids: Sequence[str] = (),
    advance: Advance = lambda share, n_rows: None,
) -> Predicted:
    """Class and probabilities of every row of a file, written to another one.

    Nothing is written under the name of that file before all rows are done.
    """
    file = open_table(data)
    _check_out(data, out)
    _check_columns(file, kinds, ids)
    names = [str(name) for name in model.classes_]
    columns = [*ids, CLASS_COLUMN, *(PROBABILITY_PREFIX + name for name in names)]
    _refuse_clashes(columns)
    done = Predicted(tuple(name for name in file.columns if name not in {*kinds, *ids}))
    types = _arrow_types(kinds, ids)
    with atomic_write(out) as unfinished, appending(unfinished, out.suffix, columns) as write:
        for batch, share in file.batches(types):
            if batch.num_rows:
                write(_predicted(model, names, batch, kinds, ids, file, done))
                advance(share, done.n_rows)
        if not done.n_rows:
            raise ValueError(f"{data} holds no rows below the names of its columns.")
    return done


def _predicted(
    model: Any,
    names: Sequence[str],
    batch: Any,
    kinds: Mapping[str, str],
    ids: Sequence[str],
    file: TableFile,
    done: Predicted,
) -> dict[str, Any]:
    frame = frame_of(batch.select(list(kinds)))
    refuse_infinity(frame, file, done.n_rows)
    _refuse_other_kinds(frame, kinds, file)
    before, classifier = _parts(model)
    encoded = before.transform(frame) if before is not None else frame
    probabilities = classifier.predict_proba(encoded)
    codes = probabilities.argmax(axis=1)
    done.n_rows += len(frame)
    done.strange.update(_unknown_categories(before, frame))
    done.far.update(_far_cells(classifier, encoded))
    for code, count in enumerate(np.bincount(codes, minlength=len(names)).tolist()):
        done.counts[names[code]] += count
    done.filled.update({name: int(n) for name, n in frame.isna().sum().items() if n})
    columns: dict[str, Any] = {name: batch.column(name) for name in ids}
    columns[CLASS_COLUMN] = np.array(names, dtype=object)[codes]
    for name, column in zip(names, probabilities.T, strict=True):
        columns[PROBABILITY_PREFIX + name] = column
    return columns


def _parts(model: Any) -> tuple[Any, Any]:
    """What comes before the classifier, if anything, and the classifier."""
    if not isinstance(model, Pipeline):
        return None, model
    return (model[:-1] if len(model) > 1 else None), model[-1]


def _unknown_categories(before: Any, frame: Any) -> dict[str, int]:
    """Cells by column whose text is no category of the fit: new there, or rare."""
    found: dict[str, int] = {}
    for _, encoder, names in getattr(before[0], "transformers_", ()) if before is not None else ():
        if hasattr(encoder, "count_unknown"):
            found |= encoder.count_unknown(frame[list(names)])
    return found


def _far_cells(classifier: Any, encoded: Any) -> dict[str, int]:
    """Cells by column that lie absurdly many standard deviations from the training rows."""
    if not all(hasattr(classifier, name) for name in ("means_", "covariance_", "priors_")):
        return {}
    middle = classifier.priors_ @ classifier.means_
    between = classifier.priors_ @ (classifier.means_ - middle) ** 2
    spread = np.sqrt(np.diag(classifier.covariance_) + between)
    is_far = np.abs(np.asarray(encoded, dtype=np.float64) - middle) > _FAR * spread
    counts = (is_far & (spread > 0)).sum(axis=0)
    return {str(name): int(n) for name, n in zip(encoded.columns, counts, strict=True) if n}


def _arrow_types(kinds: Mapping[str, str], ids: Sequence[str]) -> dict[str, Any]:
    arrow = require("pyarrow")
    types = {NUMBER: arrow.float64(), BOOLEAN: arrow.bool_(), CATEGORY: arrow.string()}
    # A column of the model that is copied too is read once, as what the model takes.
    return dict.fromkeys(ids, arrow.string()) | {name: types[kind] for name, kind in kinds.items()}


def _check_out(data: Path, out: Path) -> None:
    if out.suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"{out}: predictions are written to {' or '.join(SUFFIXES)} files, got "
            f"{out.suffix or 'no suffix'!r}."
        )
    check_writable(out)
    if out.exists() and out.samefile(data):
        raise ValueError(f"{out} is the file that is read: write the predictions to another one.")


def _check_columns(file: TableFile, kinds: Mapping[str, str], ids: Sequence[str]) -> None:
    lacking = [name for name in kinds if name not in file.columns]
    if lacking:
        raise ValueError(
            f"{file.path} lacks {len(lacking)} of the {len(kinds)} columns that the model was "
            f"fitted to: {quoted_list(lacking, 12)}. Columns are found by name, in any order."
        )
    for name in ids:
        if name not in file.columns:
            raise ValueError(f"{file.path} has no column {name!r} to keep as an id.")


def _refuse_clashes(columns: Sequence[str]) -> None:
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise ValueError(
            f"The predictions would hold two columns named {twice[0]!r}: rename the id column, or "
            "leave it out."
        )


def _refuse_other_kinds(frame: Any, kinds: Mapping[str, str], file: TableFile) -> None:
    """Parquet columns have types of their own, which may not be those of the training data."""
    for name, kind in kinds.items():
        fitting = "biufO" if kind == CATEGORY else "biuf"
        present = frame[name].dropna()
        if present.empty:
            continue
        example = present.iloc[0]
        # Arrow columns hold one type: where one cell is a list or a struct, all are.
        if frame[name].dtype.kind not in fitting or not isinstance(example, Hashable):
            raise ValueError(
                f"{file.path}, column {name!r}: must hold {_HELD[kind]}, as in the data the model "
                f"was fitted to, got {plain(example)!r}."
            )
