"""Checks of a table before a comparison: which are run, and in what order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._checks import (
    FINE,
    NOTE,
    WARNING,
    Remark,
    check_constants,
    check_duplicates,
    check_gaps,
    check_shift,
)
from ..._messages import plural
from ...tabular import Table, preprocessing
from ...tabular.encoders import BOOLEAN, CATEGORY, kinds_of
from .plan import Size

_MOST_UNLABELED = 5_000  # rows that checks look at
_MOST_CLASSES = 12  # whose labels are counted one by one
_LABELS_OF_CLASS = 5  # fewer say little about it
_RARE_SHARE = 0.02
_NOUNS = {
    BOOLEAN: ("yes-or-no column", "yes-or-no columns"),
    CATEGORY: ("category", "categories"),
}


def encode_sample(table: Table, missing: str) -> Any:
    """Frame of all labeled rows, and then a sample of the unlabeled ones, as numbers.

    It is encoded as a fit of all rows would; errors name what cannot be encoded.
    """
    encoder = preprocessing(table.features, missing=missing)
    unlabeled = np.flatnonzero(~table.is_labeled)
    if len(unlabeled) > _MOST_UNLABELED:
        unlabeled = np.random.default_rng(0).choice(unlabeled, _MOST_UNLABELED, replace=False)
    rows = np.concatenate([np.flatnonzero(table.is_labeled), unlabeled])
    return encoder.fit(table.features).transform(table.features.iloc[rows])


def check_table(table: Table, sample: Any, size: Size, *, is_hidden: bool) -> list[Remark]:
    """All remarks, in the order in which a person would look.

    ``sample`` is that of ``encode_sample``, ``size`` that of the training rows of a split, and
    ``is_hidden`` whether labels are hidden.
    """
    n_labeled = int(table.is_labeled.sum())
    return [
        *_check_rows(table),
        *_check_classes(table, is_hidden=is_hidden),
        *_check_kinds(table, size),
        *(Remark(NOTE, "Columns", text) for text in table.notes),
        *(Remark(WARNING, "Columns", text) for text in table.warnings),
        *check_gaps(table.features),
        *check_constants(table.features),
        *_check_labels(size),
        *check_shift(sample.iloc[:n_labeled], sample.iloc[n_labeled:]),
        *check_duplicates(table.features, table.labels),
    ]


def _check_rows(table: Table) -> Iterator[Remark]:
    n_rows, n_labeled = len(table.labels), int(table.is_labeled.sum())
    n_unlabeled = n_rows - n_labeled
    share = f"{100 * n_unlabeled / n_rows:.0f} %" if n_unlabeled < 0.995 * n_rows else "nearly all"
    text = f"{n_rows:,}: {n_labeled:,} labeled, {n_unlabeled:,} unlabeled ({share})."
    yield Remark(FINE, "Rows", text if n_unlabeled else f"{n_rows:,}, all of them labeled.")


def _check_classes(table: Table, *, is_hidden: bool) -> Iterator[Remark]:
    counts = Counter(table.labels[table.is_labeled].tolist())
    counted = ", ".join(f"{count:,} of {name!r}" for name, count in sorted(counts.items()))
    if len(counts) > _MOST_CLASSES:
        counted = f"{min(counts.values()):,} to {max(counts.values()):,} labels each"
    text = f"{len(counts)} in {table.target!r}: {counted}."
    rarest = min(counts, key=lambda name: (counts[name], name))
    n_rarest = counts[rarest]
    if n_rarest < _LABELS_OF_CLASS and not is_hidden:
        advice = f"{n_rarest} labels say little about class {rarest!r}: label more of it if you can"
        yield Remark(WARNING, "Classes", f"{text} {advice}.")
    elif n_rarest < _RARE_SHARE * counts.total():
        yield Remark(NOTE, "Classes", f"{text} Class {rarest!r} is rare.")
    else:
        yield Remark(FINE, "Classes", text)


def _check_kinds(table: Table, size: Size) -> Iterator[Remark]:
    kinds = Counter(kinds_of(table.features).values())
    parts = [plural(n, *_NOUNS.get(kind, (kind,))) for kind, n in kinds.items()]
    n_columns = len(table.features.columns)
    text = parts[0] if len(parts) == 1 else f"{n_columns}: {', '.join(parts)}"
    encoded = f" As numbers they make {size.n_features} features."
    yield Remark(FINE, "Columns", f"{text}.{encoded if size.n_features != n_columns else ''}")


def _check_labels(size: Size) -> Iterator[Remark]:
    text = f"{size.n_labeled:,} train in each fold, for {plural(size.n_features, 'feature')}"
    if size.is_degenerate:
        problem = "too few for a fit without shrinkage, which would separate them perfectly"
        yield Remark(WARNING, "Labels", f"{text}: {problem} whatever they are.")
    elif size.is_small:
        yield Remark(NOTE, "Labels", f"{text}: few, so that shrinkage is of use.")
    else:
        yield Remark(FINE, "Labels", f"{text}.")
