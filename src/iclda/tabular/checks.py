"""Checks of a table before a fit: ids, leaks of the class, gaps, shifts, duplicates.

Every check yields remarks. The caller chooses which checks to run and how to show the
remarks: as a warning, as a note on the terminal or as a line of a report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from .._core import AnyArray
from .._held_out import find_copies
from .._messages import Hint, and_list, plural, say
from .cells import require_for_tables

# Levels of a remark.
FINE = "fine"
NOTE = "note"
WARNING = "warning"

# Names that columns of ids often have, such as "customer_id", "rowNr" or "key".
_ID_NAME = re.compile(
    r"(^|[\W_])(?i:ids?|uuid|guid|key|index|idx|nr|no|number|code|row)$"
    r"|[a-z](Id|ID|Key|No|Nr)$"
)
# Share of distinct values from which a column may be an id. It is below 1, because some
# rows may have been entered twice.
_MIN_DISTINCT_SHARE = 0.95
# In fewer rows than this, values that are all distinct do not point to an id.
_MIN_ROWS_OF_ID = 10
# In at least this many rows, sorted values are not a coincidence.
_MIN_SORTED_ROWS = 20
# Labeled rows of every class that it takes to say that a column follows the class.
_MIN_LABELS_PER_CLASS = 3
# Probability below which a pattern of gaps is not called chance.
_CHANCE = 1e-3
# Columns that a remark names; further ones are counted.
_MAX_NAMED_COLUMNS = 4
# Classes for which a remark states the value of a column.
_MAX_NAMED_CLASSES = 4
# Probability that any column of a table is called shifted although none is.
_SHIFT_LEVEL = 0.01


@dataclass(frozen=True)
class Remark:
    """A fact about a table: its level, its subject in a word, and a sentence."""

    level: str
    subject: str
    text: str


def check_ids(features: Any) -> Iterator[Remark]:
    """Note columns of whole numbers that may be ids, or that number the rows."""
    for name, series in features.items():
        if numbers_rows(series) or is_id(str(name), series):
            text = say(
                "Column {name!r} looks like an id or a row number: whole numbers, "
                "nearly all different. It is used as a measurement; if it is not one, "
                "leave it out with {drop}.",
                name=name,
                drop=Hint("drop", [name]),
            )
            yield Remark(NOTE, "Columns", text)


def numbers_rows(series: Any) -> bool:
    """Return whether a column counts the rows: each integer is the last one plus 1."""
    if series.dtype.kind not in "iu" or len(series) < 3:
        return False
    # Differences of unsigned numbers would never be negative.
    numbers = series.to_numpy().astype(np.int64)
    steps = np.diff(numbers)
    return bool((steps == 1).all())


def is_id(name: str, series: Any) -> bool:
    """Return whether whole numbers are nearly all distinct, and look like ids.

    Ids are sorted, or their column is named like one. Texts that are all different are
    refused when a table is read.
    """
    if series.dtype.kind not in "iuf":
        return False
    numbers = series.dropna().to_numpy(dtype=np.float64)
    is_whole = np.isfinite(numbers) & (numbers == np.round(numbers))
    if len(numbers) < _MIN_ROWS_OF_ID or not is_whole.all():
        return False

    steps = np.diff(numbers)
    n_distinct = len(np.unique(numbers))
    if (steps == 1).all() or n_distinct < _MIN_DISTINCT_SHARE * len(numbers):
        return False
    is_sorted = len(numbers) >= _MIN_SORTED_ROWS and bool((steps > 0).all())
    return is_sorted or _ID_NAME.search(name) is not None


def check_leaks(features: Any, labels: AnyArray) -> Iterator[Remark]:
    """Warn of columns that give the class away in all labeled rows.

    A column with gaps does so if it is filled in for certain classes only, more often
    than by chance; a column without gaps if it has one value in each class, but not the
    same value in all of them.
    """
    is_labeled = np.array([label is not None for label in labels], dtype=bool)
    known_labels = labels[is_labeled].astype(str)
    for name, series in features[is_labeled].items():
        is_filled = series.notna().to_numpy(dtype=bool)
        if is_filled.all():
            finding = _value_by_class(series, known_labels)
        else:
            finding = _filled_by_class(is_filled, known_labels)
        if finding:
            text = say(
                "Column {name!r} is {finding} Leave it out with {drop} unless new rows "
                "have it before their class is known.",
                name=name,
                finding=finding,
                drop=Hint("drop", [name]),
            )
            yield Remark(WARNING, "Columns", text)


def _filled_by_class(is_filled: AnyArray, labels: AnyArray) -> str:
    """Say for which classes a column is filled in; empty if that may be chance."""
    classes_filled = set(labels[is_filled].tolist())
    classes_empty = set(labels[~is_filled].tolist())
    # If the gaps had nothing to do with the class, each filled cell would belong to one
    # of these classes with a probability of their share of the labeled rows.
    share = np.isin(labels, sorted(classes_filled)).mean()
    probability = share ** is_filled.sum()
    if probability > _CHANCE:
        return ""
    how = "only" if classes_filled & classes_empty else "exactly"
    classes = " or ".join(repr(name) for name in sorted(classes_filled))
    return (
        f"filled in {how} where the class is {classes}, in all labeled rows: it may "
        "have been entered once the class was known, and gives it away."
    )


def _value_by_class(series: Any, labels: AnyArray) -> str:
    """State the one value of a column in every class; empty if it has several."""
    # ``first`` has the first row of every class, ``codes`` the class of every row.
    classes, first, codes, counts = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    has_enough_labels = min(counts, default=0) >= _MIN_LABELS_PER_CLASS
    if series.dtype.kind not in "biufO" or not has_enough_labels:
        return ""

    is_text = series.dtype.kind == "O"
    if is_text:
        values = series.astype(str).to_numpy()
    else:
        values = series.to_numpy(dtype=np.float64)
    value_of_class = values[first]
    has_several_values = (values != value_of_class[codes]).any()
    is_constant = (value_of_class == value_of_class[0]).all()
    if has_several_values or is_constant:
        return ""

    texts = []
    for value, name in zip(value_of_class, classes, strict=True):
        shown = value if is_text else f"{value:g}"
        texts.append(f"{shown} for {name}")
    listed = ", ".join(texts[:_MAX_NAMED_CLASSES])
    return f"{listed} in all labeled rows: it may be made from the class."


def check_gaps(features: Any) -> Iterator[Remark]:
    """Count the empty cells of every column."""
    percents = 100 * features.isna().mean()
    # The columns with most gaps are named first.
    percents = percents.sort_values(ascending=False, kind="stable")
    gappy = [f"{name!r} ({n:.1f} %)" for name, n in percents.items() if n > 0]
    if not gappy:
        yield Remark(FINE, "Missing", "no empty cells.")
        return
    text = (
        f"empty cells in {plural(len(gappy), 'column')}: {_first_names(gappy)}. They "
        "are filled in within each fold, with what its training rows show."
    )
    yield Remark(NOTE, "Missing", text)


def check_constants(features: Any) -> Iterator[Remark]:
    """Note columns with one value; a gap is a value of its own."""
    constant = [
        repr(name) for name in features if features[name].nunique(dropna=False) == 1
    ]
    if constant:
        has = "has" if len(constant) == 1 else "have"
        names = _first_names(constant)
        text = f"{names} {has} one value in all rows and will be ignored."
        yield Remark(NOTE, "Constant", text)


def check_shift(labeled: Any, unlabeled: Any) -> Iterator[Remark]:
    """Compare every column of labeled and unlabeled rows (Kolmogorov and Smirnov)."""
    if not len(unlabeled):
        return
    # The level is shared by all tests of a table (Bonferroni).
    level = _SHIFT_LEVEL / len(labeled.columns)
    shifted = []
    for name in labeled.columns:
        with_label = labeled[name].to_numpy()
        without_label = unlabeled[name].to_numpy()
        test = stats.ks_2samp(with_label, without_label, method="asymp")
        if test.pvalue < level:
            text = (
                f"{name!r} (means {with_label.mean():.4g} with a label, "
                f"{without_label.mean():.4g} without)"
            )
            shifted.append((-test.statistic, text))
    if not shifted:
        text = "labeled and unlabeled rows look alike in every column."
        yield Remark(FINE, "Shift", text)
        return

    # The columns that differ most are named first.
    means = _first_names([text for _, text in sorted(shifted)])
    text = (
        f"labeled and unlabeled rows differ by more than chance: {means}. Errors below "
        "are those on rows like the labeled ones, and unlabeled rows from elsewhere "
        "can mislead."
    )
    yield Remark(WARNING, "Shift", text)


def first_copies(features: Any, labels: AnyArray) -> AnyArray:
    """Return the index of the first row with the same cells and label as every row."""
    pandas = require_for_tables("pandas")
    label_texts = pandas.Series(labels, dtype=object).fillna("").astype(str)
    rows = features.assign(**{"label of the row": label_texts.to_numpy()})
    keys = pandas.util.hash_pandas_object(rows, index=False).to_numpy()
    counts_by_column = (
        series.value_counts(dropna=False).to_numpy() for _, series in features.items()
    )
    return find_copies(keys, counts_by_column)


def check_duplicates(features: Any, labels: AnyArray) -> Iterator[Remark]:
    """Count copies, contradicting labels, and labeled rows among the unlabeled ones."""
    row_numbers = np.arange(len(labels))
    is_copy = first_copies(features, labels) != row_numbers
    n_copies = int(is_copy.sum())
    if n_copies:
        text = (
            f"{len(labels):,} rows, of which {len(labels) - n_copies:,} are distinct. "
            "A labeled row is tested once, and its copies do not train then; intervals "
            "count distinct rows."
        )
        yield Remark(WARNING, "Duplicates", text)

    # Rows with the same key have the same cells, whatever their labels.
    pandas = require_for_tables("pandas")
    keys = pandas.util.hash_pandas_object(features, index=False).to_numpy()
    is_labeled = np.array([label is not None for label in labels], dtype=bool)
    labeled_keys = keys[is_labeled]
    known_labels = pandas.Series(labels[is_labeled].astype(str))
    n_classes_of_row = known_labels.groupby(labeled_keys).transform("nunique")
    n_contradicted = int((n_classes_of_row > 1).sum())
    if n_contradicted:
        rows = plural(n_contradicted, "labeled row")
        text = (
            f"{rows} equal another one of a different class: no method can get both "
            "right."
        )
        yield Remark(WARNING, "Duplicates", text)

    n_seen = int(np.isin(labeled_keys, keys[~is_labeled]).sum())
    if n_seen:
        rows = plural(n_seen, "labeled row")
        stand = "stands" if n_seen == 1 else "stand"
        text = (
            f"{rows} also {stand} among the unlabeled ones: seen in training, then "
            "tested."
        )
        yield Remark(NOTE, "Duplicates", text)


def _first_names(names: Sequence[str]) -> str:
    n_more = len(names) - _MAX_NAMED_COLUMNS
    if n_more > 0:
        return f"{', '.join(names[:_MAX_NAMED_COLUMNS])} and {n_more} more"
    return and_list(names)
