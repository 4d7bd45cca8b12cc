"""Remarks on a table before its comparison: what a person would look at first.

Checks that need no splits are in ``tabular.checks``; the ones here depend on how the
table is divided, or word a count for the report.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._core import AnyArray
from ..._estimators.average import AverageLDA
from ..._estimators.labels import FREE
from ..._messages import FitError, plural, say
from ...tabular import checks
from ...tabular.checks import COLUMNS, FINE, NOTE, WARNING, Remark
from ...tabular.column_types import kinds_of, preprocessing, taken_for, type_named
from ...tabular.table import Table
from ...tabular.unknown_rows import (
    MAX_CHECKED_ROWS,
    share_of_no_class,
    warnings_on_no_class,
)
from .contestants import Size

# The checks look at a random sample of this many unlabeled rows if there are more.
_MAX_CHECKED_UNLABELED_ROWS = 5_000
# With more classes than this, only the smallest and the largest count are stated.
_MAX_COUNTED_CLASSES = 12
# Fewer labels than this say little about a class.
_MIN_LABELS_PER_CLASS = 5
# A class with a smaller share of the labels is called rare.
_RARE_CLASS_SHARE = 0.02
# If a larger share of the rows is unlabeled, the remark says "nearly all" instead of
# 100 %.
_NEARLY_ALL_SHARE = 0.995


def encode_sample(table: Table, copies: AnyArray) -> Any:
    """Return a frame of numbers: all labeled rows, then a sample of the unlabeled ones.

    ``copies`` has the index of the first copy of every row (``first_copies``): further
    copies are left out. Rows are encoded as in a fit to all rows. Errors name what
    cannot be encoded.
    """
    is_first = copies == np.arange(len(copies))
    labeled = np.flatnonzero(is_first & table.is_labeled)
    unlabeled = np.flatnonzero(is_first & ~table.is_labeled)
    if len(unlabeled) > _MAX_CHECKED_UNLABELED_ROWS:
        unlabeled = np.random.default_rng(0).choice(
            unlabeled, _MAX_CHECKED_UNLABELED_ROWS, replace=False
        )
    sample = table.features.iloc[np.concatenate([labeled, unlabeled])]
    encoder = preprocessing(table.features)
    return encoder.fit(table.features).transform(sample)


def check_table(
    table: Table,
    sample: Any,
    labels: AnyArray,
    size: Size,
    *,
    is_hidden: bool,
    is_network: bool = False,
) -> list[Remark]:
    """Return all remarks, in the order in which a person would look.

    Parameters
    ----------
    table : Table
        The table to check.
    sample : DataFrame
        What ``encode_sample`` returns.
    labels : ndarray of object
        Labels of the labeled rows, the first ones of the sample.
    size : Size
        Size of the training rows of a split.
    is_hidden : bool
        Whether the comparison hides labels.
    is_network : bool
        Whether the rows are taken for features of a network.
    """
    n_labeled = len(labels)
    return [
        _check_rows(table),
        _check_classes(table, is_hidden=is_hidden),
        _check_kinds(table, size),
        Remark(FINE, "Taken for", _taken_for(is_network=is_network)),
        *(Remark(NOTE, COLUMNS, text) for text in table.notes),
        *(Remark(WARNING, COLUMNS, text) for text in table.warnings),
        *checks.check_gaps(table.features),
        *checks.check_constants(table.features),
        *_check_chosen(table),
        _check_labels(size),
        *checks.check_shift(sample.iloc[:n_labeled], sample.iloc[n_labeled:]),
        *_check_no_class(sample, labels),
        *checks.check_duplicates(table.features, table.labels),
    ]


def _taken_for(*, is_network: bool) -> str:
    """State what the rows are taken for, and how to say otherwise."""
    return say("{what}.", what=taken_for(is_network=is_network, parameter="methods"))


def _check_no_class(sample: Any, labels: AnyArray) -> Iterator[Remark]:
    """Warn if many unlabeled rows resemble none of the classes."""
    drawn = sample.iloc[len(labels) :][:MAX_CHECKED_ROWS]
    if not len(drawn):
        return
    rows = sample.iloc[: len(labels) + len(drawn)].to_numpy()
    codes = np.full(len(rows), -1)
    codes[: len(labels)] = np.unique(labels.astype(str), return_inverse=True)[1]
    with warnings.catch_warnings():
        # The fits of the comparison warn.
        warnings.simplefilter("ignore")
        try:
            fitted = AverageLDA(proportions=FREE).fit(rows, codes)
        except FitError:
            return
    share = share_of_no_class(fitted, rows[len(labels) :])
    for text in warnings_on_no_class(share):
        yield Remark(WARNING, "Rows of no class", text)


def _check_rows(table: Table) -> Remark:
    """State how many rows are labeled and unlabeled."""
    n_rows = len(table.labels)
    n_labeled = int(table.is_labeled.sum())
    n_unlabeled = n_rows - n_labeled
    if not n_unlabeled:
        return Remark(FINE, "Rows", f"{n_rows:,}, all of them labeled.")
    share = "nearly all"
    if n_unlabeled < _NEARLY_ALL_SHARE * n_rows:
        share = f"{100 * n_unlabeled / n_rows:.0f} %"
    counts = f"{n_labeled:,} labeled, {n_unlabeled:,} unlabeled ({share})"
    return Remark(FINE, "Rows", f"{n_rows:,}: {counts}.")


def _check_classes(table: Table, *, is_hidden: bool) -> Remark:
    """State how many labels every class has, and warn of rare classes."""
    counts = Counter(table.labels[table.is_labeled].tolist())
    text = f"{len(counts)} in {table.target!r}: {_counts_text(counts)}."
    rarest = min(counts, key=lambda name: (counts[name], name))
    n_rarest = counts[rarest]
    # If labels are hidden, there are more of them: no need to label further rows.
    if n_rarest < _MIN_LABELS_PER_CLASS and not is_hidden:
        advice = (
            f"Class {rarest!r} has only {plural(n_rarest, 'label')}, which say little "
            "about it: label more of its rows if you can"
        )
        return Remark(WARNING, "Classes", f"{text} {advice}.")
    if n_rarest < _RARE_CLASS_SHARE * counts.total():
        return Remark(NOTE, "Classes", f"{text} Class {rarest!r} is rare.")
    return Remark(FINE, "Classes", text)


def _counts_text(counts: Counter[str]) -> str:
    """Word the number of labels of every class, or their range for many classes."""
    if len(counts) <= _MAX_COUNTED_CLASSES:
        pairs = sorted(counts.items())
        return ", ".join(f"{count:,} of {name!r}" for name, count in pairs)
    fewest = min(counts.values())
    most = max(counts.values())
    span = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return f"{span} labels each"


def _check_kinds(table: Table, size: Size) -> Remark:
    """State how many columns there are of every kind."""
    counts = Counter(kinds_of(table.features).values())
    parts = [plural(n, *type_named(kind).nouns) for kind, n in counts.items()]
    n_columns = len(table.features.columns)
    text = f"{', '.join(parts)}."
    if len(parts) > 1:
        text = f"{n_columns}: {text}"
    if size.n_features != n_columns:
        text += f" Encoded, they are {size.n_features} features."
    return Remark(FINE, COLUMNS, text)


def _check_chosen(table: Table) -> Iterator[Remark]:
    """Note that rows which were chosen to be labeled train and are not tested."""
    if table.n_chosen:
        n_random = int(table.is_random.sum())
        text = (
            f"{table.n_chosen:,} labeled rows were chosen, not drawn at random: they "
            f"train in every split, and only the {n_random:,} others are tested."
        )
        yield Remark(NOTE, "Labels", text)


def _check_labels(size: Size) -> Remark:
    """Say whether the labels are enough for so many features."""
    n_features = plural(size.n_features, "feature")
    labels = plural(size.n_labeled, "label")
    text = f"{labels} per fold for {n_features}"
    if size.is_degenerate:
        needs = "fits without shrinkage"
        if size.n_labeled < size.n_features:
            needs += " and for ICLDA with free class sizes"
        return Remark(NOTE, "Labels", f"Only {text}: too few for {needs}.")
    if size.is_small:
        return Remark(NOTE, "Labels", f"Only {text}, so shrinkage helps.")
    return Remark(FINE, "Labels", f"{text}.")
