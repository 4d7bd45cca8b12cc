"""Checks of a table before a fit: ids, leaks of the class, gaps, shifts, duplicates.

Every check yields remarks. The caller chooses which checks to run and how to show the
remarks: as a warning, as a note on the terminal or as a line of a report.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from .._core import AnyArray
from .._held_out import find_copies
from .._messages import (
    BrokenCell,
    Column,
    Hint,
    and_list,
    describe_broken,
    plural,
    say,
)
from .._rows.views import learn_bounds
from .cells import number_in, require_for_tables, value_types
from .written_values import (
    AmountForm,
    DateForm,
    amount_form,
    amounts,
    date_form,
    dates,
)

# Levels of a remark.
FINE = "fine"
NOTE = "note"
WARNING = "warning"

# The subject of remarks on what the columns hold, and on which are left out.
COLUMNS = "Columns"

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
# A column of text has many values from this number of different texts ...
_MIN_MANY_TEXTS = 50
# ... that are also this share of the rows.
_MIN_SHARE_OF_MANY_TEXTS = 0.1
# In at least this many rows, sorted values are not a coincidence.
_MIN_SORTED_ROWS = 20
# Labeled rows, and those of every class, that it takes to say that the values of a
# column follow the class.
_MIN_LABELS = 15
_MIN_LABELS_PER_CLASS = 3
# Classes lie far apart in a column if there is at least this multiple of the widest of
# them between any two.
_GAP_IN_WIDTHS = 2
# Probability below which a pattern of gaps is not called chance.
_CHANCE = 1e-3
# A share of the rows from which duplicates are worth a warning.
_SHARE_WORTH_A_WARNING = 0.01
# Columns that a remark names; further ones are counted.
_MAX_NAMED_COLUMNS = 4
# Classes for which a remark states the value of a column.
_MAX_NAMED_CLASSES = 4
# What is usual in a column is learned from at most this many rows.
_MAX_SAMPLED_ROWS = 4_096
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
                "nearly all different. If it is one, drop it: {drop}.",
                name=name,
                drop=Hint("drop", [name]),
            )
            yield Remark(NOTE, COLUMNS, text)


def check_broken(features: Any, row_names: Callable[[int], str]) -> Iterator[Remark]:
    """Note numbers far outside of their columns, by the rule of the default method."""
    names = [name for name in features if features[name].dtype.kind in "iuf"]
    if not names:
        return
    numbers = features[names].to_numpy(dtype=np.float64, na_value=np.nan)
    order = np.random.default_rng(0).permutation(len(numbers))
    sample = numbers[order[:_MAX_SAMPLED_ROWS]]
    with warnings.catch_warnings():
        # A column may have no number among the rows drawn.
        warnings.simplefilter("ignore", RuntimeWarning)
        medians = np.nanmedian(sample, axis=0)
    bounds = learn_bounds(np.where(np.isnan(sample), medians, sample))
    cells = [
        BrokenCell(row_names(row), Column(column, names[column]), numbers[row, column])
        for row, column in bounds.find_broken(numbers)
    ]
    if cells:
        yield Remark(NOTE, COLUMNS, describe_broken(cells))


def check_written(features: Any) -> Iterator[Remark]:
    """Note how numbers with signs and dates of other forms than 2020-03-12 are read."""
    for name, series in features.items():
        if series.dtype.kind != "O" or value_types(series) != {str}:
            continue
        texts = series.dropna().tolist()
        amount = amount_form(texts)
        date = None if amount is not None else date_form(texts)
        if amount is not None:
            text = _amount_note(name, texts, amount)
        elif date is not None:
            text = _date_note(name, texts, date)
        else:
            continue
        yield Remark(NOTE, COLUMNS, text)


def check_texts(features: Any) -> Iterator[Remark]:
    """Note columns of text most of whose values are too rare to be categories."""
    for name, series in features.items():
        if series.dtype.kind != "O" or value_types(series) != {str}:
            continue
        n_different = series.nunique()
        if n_different < max(_MIN_MANY_TEXTS, _MIN_SHARE_OF_MANY_TEXTS * len(series)):
            continue
        texts = series.dropna()
        if amount_form(texts) is None and date_form(texts) is None:
            text = (
                f"Column {name!r} has {n_different:,} different texts in "
                f"{len(series):,} rows: those that are rare count as one category. If "
                "the words say something about the class, make numbers of them first, "
                "for example with StringEncoder of skrub."
            )
            yield Remark(NOTE, COLUMNS, text)


def _amount_note(name: Any, texts: Sequence[str], form: AmountForm) -> str:
    """Say as which number a text is read that is not a plain number."""
    example = next(text for text in texts if number_in(text) is None)
    numbers, _ = amounts(require_for_tables("pandas").Series([example]), form.decimal)
    note = f"Column {name!r} is read as numbers: {example} is {numbers[0]:.10g}."
    if form.is_sure:
        return note
    return (
        f"{note} The values do not tell whether the comma or the point is the decimal "
        "sign: write numbers with digits and a decimal point alone to be sure."
    )


def _date_note(name: Any, texts: Sequence[str], form: DateForm) -> str:
    """Say as which date a text is read."""
    example = texts[0]
    [date] = dates([example], form.format).strftime("%Y-%m-%d")
    order = f", {form.order}" if form.order else ""
    note = f"Column {name!r} is read as dates{order}: {example} is {date}."
    if form.is_sure:
        return note
    return (
        f"{note} This is assumed, because the values do not tell day from month: write "
        f"dates as {date} if the month comes first."
    )


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
    than by chance; a column without gaps if its values in the classes lie apart as
    those of a measurement hardly do.
    """
    is_labeled = np.array([label is not None for label in labels], dtype=bool)
    known_labels = labels[is_labeled].astype(str)
    for name, series in features[is_labeled].items():
        is_filled = series.notna().to_numpy(dtype=bool)
        if is_filled.all():
            finding = _values_by_class(series, known_labels)
        else:
            finding = _filled_by_class(is_filled, known_labels)
        if finding:
            text = say(
                "Column {name!r} is {finding} Unless new rows have it before their "
                "class is known, drop it: {drop}.",
                name=name,
                finding=finding,
                drop=Hint("drop", [name]),
            )
            yield Remark(WARNING, COLUMNS, text)


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
        "have been entered when the class was known."
    )


def _values_by_class(series: Any, labels: AnyArray) -> str:
    """State the values of a column in every class; empty if they may be measured.

    Many measurements separate the classes of a few rows. Two things tell a column that
    was made from the class, or entered with it: all classes but one have a single value
    (a fee that is 0 unless a customer has left), or the gaps between the classes are
    much wider than any of them.
    """
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(classes) < 2 or len(labels) < _MIN_LABELS:
        return ""
    if min(counts) < _MIN_LABELS_PER_CLASS or series.dtype.kind not in "biufO":
        return ""
    if series.dtype.kind == "O":
        shown = _separate_texts(series.astype(str).to_numpy(), codes)
    else:
        shown = _separate_numbers(series.to_numpy(dtype=np.float64), codes)
    if not shown:
        return ""

    texts = [
        f"{values} for {name}" for values, name in zip(shown, classes, strict=True)
    ]
    listed = ", ".join(texts[:_MAX_NAMED_CLASSES])
    return f"{listed} in all labeled rows: it may have been computed from the class."


def _separate_texts(texts: AnyArray, codes: AnyArray) -> list[str]:
    """Word the texts of every class if they give it away; otherwise return no words."""
    texts_of_class = [set(texts[codes == code]) for code in range(codes.max() + 1)]
    n_single = sum(len(values) == 1 for values in texts_of_class)
    n_distinct = len(set(texts))
    are_separate = sum(map(len, texts_of_class)) == n_distinct
    if not are_separate or n_single < len(texts_of_class) - 1:
        return []
    return [
        next(iter(values)) if len(values) == 1 else "another value"
        for values in texts_of_class
    ]


def _separate_numbers(numbers: AnyArray, codes: AnyArray) -> list[str]:
    """Word the range of every class if it gives it away; otherwise return no words."""
    # Infinity is refused later, with the name of the column.
    if not np.isfinite(numbers).all():
        return []
    of_class = [numbers[codes == code] for code in range(codes.max() + 1)]
    low = np.array([values.min() for values in of_class])
    high = np.array([values.max() for values in of_class])
    # The distance of each class from the next one above it.
    order = np.argsort(low)
    gaps = low[order][1:] - high[order][:-1]
    widths = high - low
    n_single = int((widths == 0).sum())
    are_separate = bool((gaps > 0).all())
    are_far_apart = gaps.min() >= _GAP_IN_WIDTHS * widths.max()
    if not are_separate or not (n_single >= len(of_class) - 1 or are_far_apart):
        return []
    return [
        f"{least:g}" if least == most else f"{least:g} to {most:g}"
        for least, most in zip(low, high, strict=True)
    ]


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
        "are filled in by the training rows of each fold."
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
        f"labeled and unlabeled rows differ by more than chance: {means}. The errors "
        "below hold for rows like the labeled ones. Unlabeled rows from elsewhere can "
        "mislead."
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
            "A labeled row is tested once, by fits without its copies; intervals count "
            "distinct rows."
        )
        yield Remark(_level_of(n_copies, len(labels)), "Duplicates", text)

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
        text = f"{rows} equal a row of another class: no method can get both right."
        level = _level_of(n_contradicted, int(is_labeled.sum()))
        yield Remark(level, "Duplicates", text)

    n_seen = int(np.isin(labeled_keys, keys[~is_labeled]).sum())
    if n_seen:
        have = "labeled row has" if n_seen == 1 else "labeled rows have"
        text = f"{n_seen:,} {have} unlabeled copies."
        yield Remark(NOTE, "Duplicates", text)


def _level_of(n_affected: int, n_rows: int) -> str:
    """Return the level of a remark on some of the rows: few are not worth a warning."""
    return WARNING if n_affected >= _SHARE_WORTH_A_WARNING * n_rows else NOTE


def _first_names(names: Sequence[str]) -> str:
    n_more = len(names) - _MAX_NAMED_COLUMNS
    if n_more > 0:
        return f"{', '.join(names[:_MAX_NAMED_COLUMNS])} and {n_more} more"
    return and_list(names)
