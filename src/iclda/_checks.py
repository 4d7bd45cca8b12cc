"""Checks of a table before a fit: ids, leaks of the class, gaps, shifts, duplicates.

Every check yields remarks. The caller chooses which checks to run and how to show the remarks: as a
warning, a note on the terminal or a line of a report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from ._core import AnyArray
from ._messages import Hint, and_list, plural, say
from ._statistics import find_copies
from ._system import require

FINE, NOTE, WARNING = "fine", "note", "warning"
_ID_NAME = re.compile(
    r"(^|[\W_])(?i:ids?|uuid|guid|key|index|idx|nr|no|number|code|row)$|[a-z](Id|ID|Key|No|Nr)$"
)
_DISTINCT_SHARE = 0.95  # of the values of an id: some rows were entered twice
_LEAST_ROWS_OF_ID = 10  # with fewer rows, distinct values are no sign of an id
_LEAST_SORTED_ROWS = 20  # values of so many rows are not sorted by chance
_LEAST_LABELS = 3  # labeled rows of every class, to say that a column follows the class
_CHANCE = 1e-3  # probability below which a pattern of gaps is not called chance
_MOST_NAMES = 4
_MOST_CLASSES = 4  # whose values are named
_SHIFT_LEVEL = 0.01  # probability that any column is called shifted wrongly


@dataclass(frozen=True)
class Remark:
    """One fact about a table: its level, its subject in a word, and a sentence."""

    level: str
    subject: str
    text: str


def check_ids(features: Any) -> Iterator[Remark]:
    """Note columns of whole numbers that may be ids, or that number the rows."""
    for name, series in features.items():
        if numbers_rows(series) or is_id(str(name), series):
            text = say(
                "Column {name!r} looks like an id or a row number: whole numbers, nearly all "
                "different. It is used like a measurement; leave it out by {drop} if it is none.",
                name=name,
                drop=Hint("drop", [name]),
            )
            yield Remark(NOTE, "Columns", text)


def numbers_rows(series: Any) -> bool:
    if series.dtype.kind not in "iu" or len(series) < 3:
        return False
    return bool((np.diff(series.to_numpy().astype(np.int64)) == 1).all())


def is_id(name: str, series: Any) -> bool:
    """Whether whole numbers are nearly all distinct, and named or sorted like ids.

    Texts that are all different are refused when a table is read.
    """
    if series.dtype.kind not in "iuf":
        return False
    numbers = series.dropna().to_numpy(dtype=np.float64)
    is_whole = np.isfinite(numbers) & (numbers == np.round(numbers))
    if len(numbers) < _LEAST_ROWS_OF_ID or not is_whole.all():
        return False
    steps = np.diff(numbers)
    if (steps == 1).all() or len(np.unique(numbers)) < _DISTINCT_SHARE * len(numbers):
        return False
    is_sorted = len(numbers) >= _LEAST_SORTED_ROWS and bool((steps > 0).all())
    return is_sorted or _ID_NAME.search(name) is not None


def check_leaks(features: Any, labels: AnyArray) -> Iterator[Remark]:
    """Warn of columns that give the class away in all labeled rows.

    A column with gaps does if it is filled in for certain classes only, more often than by chance;
    a column without gaps if it has one value in each class, and not the same in all.
    """
    is_labeled = np.array([label is not None for label in labels], dtype=bool)
    known = labels[is_labeled].astype(str)
    for name, series in features[is_labeled].items():
        is_filled = series.notna().to_numpy(dtype=bool)
        is_full = is_filled.all()
        text = (
            _value_by_class(series, known)
            if is_full
            else _filled_by_class(is_filled, known)
        )
        if text:
            whole = say(
                "Column {name!r} is {text} Leave it out by {drop} unless new rows have it before "
                "their class is known.",
                name=name,
                text=text,
                drop=Hint("drop", [name]),
            )
            yield Remark(WARNING, "Columns", whole)


def _filled_by_class(is_filled: AnyArray, known: AnyArray) -> str:
    filled, empty = (set(known[each].tolist()) for each in (is_filled, ~is_filled))
    share = np.isin(known, sorted(filled)).mean()
    if share ** is_filled.sum() > _CHANCE:
        return ""
    how = "only" if filled & empty else "exactly"
    classes = " or ".join(map(repr, sorted(filled)))
    return (
        f"filled in {how} where the class is {classes}, in all labeled rows: it may have been "
        "entered once the class was known, and gives it away."
    )


def _value_by_class(series: Any, known: AnyArray) -> str:
    classes, first, codes, counts = np.unique(
        known, return_index=True, return_inverse=True, return_counts=True
    )
    if series.dtype.kind not in "biufO" or min(counts, default=0) < _LEAST_LABELS:
        return ""
    is_text = series.dtype.kind == "O"
    values = (
        series.astype(str).to_numpy() if is_text else series.to_numpy(dtype=np.float64)
    )
    of_class = values[first]
    if (values != of_class[codes]).any() or (of_class == of_class[0]).all():
        return ""
    pairs = list(zip(of_class, classes, strict=True))[:_MOST_CLASSES]
    texts = ", ".join(f"{v if is_text else f'{v:g}'} for {each}" for v, each in pairs)
    return f"{texts} in all labeled rows: it may be made from the class."


def check_gaps(features: Any) -> Iterator[Remark]:
    """Count the empty cells of every column."""
    shares = 100 * features.isna().mean().sort_values(ascending=False, kind="stable")
    gappy = [f"{name!r} ({share:.1f} %)" for name, share in shares.items() if share > 0]
    if not gappy:
        yield Remark(FINE, "Missing", "no empty cells.")
        return
    text = (
        f"empty cells in {plural(len(gappy), 'column')}: {_first_names(gappy)}. They are filled in "
        "within each fold, with what its training rows show."
    )
    yield Remark(NOTE, "Missing", text)


def check_constants(features: Any) -> Iterator[Remark]:
    """Note columns with one value; a gap is a value of its own."""
    constant = [
        repr(name) for name in features if features[name].nunique(dropna=False) == 1
    ]
    if constant:
        has = "has" if len(constant) == 1 else "have"
        text = (
            f"{_first_names(constant)} {has} one value in all rows and will be ignored."
        )
        yield Remark(NOTE, "Constant", text)


def check_shift(labeled: Any, unlabeled: Any) -> Iterator[Remark]:
    """Compare the columns of labeled and unlabeled rows (Kolmogorov and Smirnov)."""
    if not len(unlabeled):
        return
    shifted = []
    for name in labeled.columns:
        ours, theirs = labeled[name].to_numpy(), unlabeled[name].to_numpy()
        test = stats.ks_2samp(ours, theirs, method="asymp")
        if test.pvalue < _SHIFT_LEVEL / len(labeled.columns):
            text = f"{name!r} (means {ours.mean():.4g} with a label, {theirs.mean():.4g} without)"
            shifted.append((-test.statistic, text))
    if not shifted:
        yield Remark(
            FINE, "Shift", "labeled and unlabeled rows look alike in every column."
        )
        return
    means = _first_names([text for _, text in sorted(shifted)])
    text = (
        f"labeled and unlabeled rows differ by more than chance: {means}. Errors below "
        "are those on rows like the labeled ones, and unlabeled rows from elsewhere can mislead."
    )
    yield Remark(WARNING, "Shift", text)


def first_copies(features: Any, labels: AnyArray) -> AnyArray:
    """Index of the first copy of every row, with the same cells and the same label."""
    pandas = require("pandas", use="reading tables", extra="data")
    names = pandas.Series(labels, dtype=object).fillna("").astype(str).to_numpy()
    rows = features.assign(**{"label of the row": names})
    keys = pandas.util.hash_pandas_object(rows, index=False).to_numpy()
    columns = (
        series.value_counts(dropna=False).to_numpy() for _, series in features.items()
    )
    return find_copies(keys, columns)


def check_duplicates(features: Any, labels: AnyArray) -> Iterator[Remark]:
    """Count copies, and labeled rows that contradict others or stand among the unlabeled ones."""
    if n_copies := int(
        (first_copies(features, labels) != np.arange(len(labels))).sum()
    ):
        text = (
            f"{len(labels):,} rows, of which {len(labels) - n_copies:,} are distinct. A labeled "
            "row is tested once, and its copies do not train then; intervals count distinct rows."
        )
        yield Remark(WARNING, "Duplicates", text)
    pandas = require("pandas", use="reading tables", extra="data")
    keys = pandas.util.hash_pandas_object(features, index=False).to_numpy()
    is_labeled = np.array([label is not None for label in labels], dtype=bool)
    labeled = keys[is_labeled]
    classes = (
        pandas.Series(labels[is_labeled].astype(str))
        .groupby(labeled)
        .transform("nunique")
    )
    if n_contradicted := int((classes > 1).sum()):
        rows = plural(n_contradicted, "labeled row")
        text = f"{rows} equal another one of a different class: no method can get both right."
        yield Remark(WARNING, "Duplicates", text)
    if n_seen := int(np.isin(labeled, keys[~is_labeled]).sum()):
        rows, stand = (
            plural(n_seen, "labeled row"),
            "stands" if n_seen == 1 else "stand",
        )
        text = f"{rows} also {stand} among the unlabeled ones: seen in training, then tested."
        yield Remark(NOTE, "Duplicates", text)


def _first_names(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMES:
        return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"
    return and_list(names)
