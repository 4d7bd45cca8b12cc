"""What a table is like before anything is fitted, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core.types import AnyArray
from ..._messages import Hint, Text, and_list, plural
from ...tabular import Table, preprocessing
from ...tabular.columns import BOOLEAN, CATEGORY, kinds_of
from . import inspection
from .contestants import Size
from .splits import Splits

FINE, NOTE, WARNING = "fine", "note", "warning"
_MOST_NAMES, _MOST_ROWS = 4, 5_000
_RARE, _FEW_OF_A_CLASS = 0.02, 5
_WIDE_SPREAD, _COUNTABLE = 1e3, 1e9
_HELD = {
    BOOLEAN: ("yes-or-no column", "yes-or-no columns"),
    CATEGORY: ("category", "categories"),
}


@dataclass(frozen=True)
class Remark:
    """One fact about the table: its subject in a word or two, and a sentence."""

    level: str
    subject: str
    text: str


@dataclass(frozen=True)
class Sample:
    """Labeled rows and at most so many unlabeled ones, as numbers."""

    values: Any  # frame of numbers, the labeled rows first
    y: AnyArray  # classes of the labeled rows

    @property
    def labeled(self) -> Any:
        """The labeled rows."""
        return self.values.iloc[: len(self.y)]

    @property
    def unlabeled(self) -> Any:
        """The unlabeled rows."""
        return self.values.iloc[len(self.y) :]


def inspect(table: Table, missing: str) -> Sample:
    """Encode the table as a fit of all its rows would; errors name what cannot be encoded."""
    encoder = preprocessing(table.features, missing=missing)
    unlabeled = np.flatnonzero(~table.is_labeled)
    if len(unlabeled) > _MOST_ROWS:
        unlabeled = np.random.default_rng(0).choice(unlabeled, _MOST_ROWS, replace=False)
    rows = np.concatenate([np.flatnonzero(table.is_labeled), unlabeled])
    values = encoder.fit(table.features).transform(table.features.iloc[rows])
    return Sample(values, table.labels[table.is_labeled])


def preflight(table: Table, sample: Sample, splits: Splits, missing: str) -> list[Remark]:
    """All remarks, in the order in which a person would look."""
    size = Size(splits.n_used, len(splits.counts), sample.values.shape[1])
    return [
        rows_remark(table),
        classes_remark(table, splits),
        columns_remark(table, sample),
        *(Remark(NOTE, "Columns", note) for note in table.notes),
        missing_remark(table, missing),
        *constant_remarks(table, sample),
        collinear_remark(sample),
        scale_remark(sample),
        labels_remark(size),
        *agreement_remarks(sample),
        *shift_remarks(sample),
        *duplicate_remarks(table),
    ]


def rows_remark(table: Table) -> Remark:
    """How many rows carry a label."""
    n_rows, n_labeled = len(table.labels), int(table.is_labeled.sum())
    if n_labeled == n_rows:
        return Remark(FINE, "Rows", f"{n_rows:,}, all of them labeled.")
    n_unlabeled = n_rows - n_labeled
    share = f"{100 * n_unlabeled / n_rows:.0f} %" if n_unlabeled < 0.995 * n_rows else "nearly all"
    return Remark(
        FINE, "Rows", f"{n_rows:,}: {n_labeled:,} labeled, {n_unlabeled:,} unlabeled ({share})."
    )


def classes_remark(table: Table, splits: Splits) -> Remark:
    """Labels of every class; few are a warning."""
    counts = Counter(table.labels[table.is_labeled].tolist())
    text = f"{len(counts)} in {table.target!r}: {_counted(counts)}."
    rarest = min(counts, key=lambda name: (counts[name], name))
    if counts[rarest] < _FEW_OF_A_CLASS and splits.n_labeled is None:
        text += (
            f" {counts[rarest]} labels say little about class {rarest!r}: label more of it if you "
            "can."
        )
        return Remark(WARNING, "Classes", text)
    if counts[rarest] < _RARE * counts.total():
        return Remark(NOTE, "Classes", f"{text} Class {rarest!r} is rare.")
    return Remark(FINE, "Classes", text)


def columns_remark(table: Table, sample: Sample) -> Remark:
    """Kinds of columns, and the features they become."""
    kinds = Counter(kinds_of(table.features).values())
    parts = [plural(n, *_HELD.get(kind, (kind,))) for kind, n in kinds.items()]
    n_columns, n_features = len(table.features.columns), sample.values.shape[1]
    text = f"{parts[0]}." if len(parts) == 1 else f"{n_columns}: {', '.join(parts)}."
    if n_features != n_columns:
        text += f" As numbers they make {n_features} features."
    return Remark(FINE, "Columns", text)


def missing_remark(table: Table, missing: str) -> Remark:
    """Columns with gaps, and what becomes of them."""
    gaps = table.features.isna().sum()
    gaps = gaps[gaps > 0].sort_values(ascending=False, kind="stable")
    if gaps.empty:
        return Remark(FINE, "Missing", "no empty cells.")
    shares = {
        str(name): f"{100 * count / len(table.features):.1f} %" for name, count in gaps.items()
    }
    gappy = _named([f"{name!r} ({share})" for name, share in shares.items()])
    return Remark(
        NOTE,
        "Missing",
        Text(
            f"empty cells in {plural(len(gaps), 'column')}: {gappy}. They are filled in within "
            "each fold, with what its training rows show (",
            Hint("missing", "refuse"),
            " stops instead).",
        ),
    )


def constant_remarks(table: Table, sample: Sample) -> list[Remark]:
    """Columns with one value in all rows, or in all labeled ones."""
    constant = inspection.constant_columns(table.features)
    idle = {*constant, *inspection.constant_columns(sample.values)}
    frozen = [c for c in inspection.constant_columns(sample.labeled) if c not in idle]
    remarks = []
    if constant:
        verb = "has one value in all rows" if len(constant) == 1 else "have one value in all rows"
        remarks.append(
            Remark(NOTE, "Constant", f"{_named(map(repr, constant))} {verb} and will be ignored.")
        )
    if frozen and len(sample.unlabeled):
        verb = "has" if len(frozen) == 1 else "have"
        remarks.append(
            Remark(
                NOTE,
                "Constant",
                f"{_named(map(repr, frozen))} {verb} one value in all labeled rows, but not in "
                "the unlabeled ones: no label says what the others mean.",
            )
        )
    return remarks


def collinear_remark(sample: Sample) -> Remark:
    """Features that others determine."""
    n_rows, n_features = sample.values.shape
    if n_rows <= n_features:
        return Remark(
            WARNING,
            "Collinear",
            Text(
                f"there are more features ({n_features:,}) than rows ({n_rows:,}): leave columns "
                "out (",
                Hint("drop"),
                "), or use ",
                Hint("shrinkage", "auto"),
                ".",
            ),
        )
    dependent = inspection.dependent_columns(sample.values)
    if dependent:
        computable = _named([f"{name!r} (from {', '.join(by)})" for name, by in dependent.items()])
        return Remark(
            NOTE,
            "Collinear",
            f"{computable} can be computed from other columns. That does no harm: they are counted "
            "once.",
        )
    pair = inspection.closest_pair(sample.values)
    if pair is not None:
        return Remark(
            NOTE,
            "Collinear",
            f"{pair[0]!r} and {pair[1]!r} say nearly the same (correlation {pair[2]:.3f}).",
        )
    return Remark(FINE, "Collinear", "no column can be computed from the others.")


def scale_remark(sample: Sample) -> Remark:
    """How far standard deviations are apart."""
    spread = inspection.scale_spread(sample.values)
    if spread is None or spread[2] < _WIDE_SPREAD:
        return Remark(FINE, "Scale", "columns vary on similar scales.")
    widest, narrowest, ratio = spread
    times = f"{ratio:,.0f}" if ratio < _COUNTABLE else f"{ratio:.0e}"
    return Remark(
        FINE,
        "Scale",
        f"{widest!r} varies {times} times as much as {narrowest!r}. That does no harm: "
        "columns are standardized within each fold.",
    )


def labels_remark(size: Size) -> Remark:
    """Labels against features."""
    text = f"{size.n_labeled:,} train in each fold, for {plural(size.n_features, 'feature')}"
    if size.is_degenerate:
        return Remark(
            WARNING,
            "Labels",
            f"{text}: too few to estimate a covariance from them alone. Without shrinkage "
            "supervised LDA would separate them perfectly whatever they are.",
        )
    if size.is_small:
        return Remark(NOTE, "Labels", f"{text}: few. Shrinkage may help every method.")
    return Remark(FINE, "Labels", f"{text}.")


def agreement_remarks(sample: Sample) -> list[Remark]:
    """Columns that take one value per class on all labeled rows: the answer itself, perhaps."""
    found = inspection.agreeing_columns(sample.labeled, sample.values, sample.y)
    return [
        Remark(
            WARNING,
            "Giveaway",
            Text(
                f"{name!r} is {values} on all labeled rows. If it is made from the answer, leave "
                "it out (",
                Hint("drop"),
                "); if not, the methods may still lean on it alone and give probabilities of 0 or "
                "1: compare with ",
                Hint("shrinkage", "auto"),
                ".",
            ),
        )
        for name, values in found.items()
    ]


def shift_remarks(sample: Sample) -> list[Remark]:
    """Columns whose labeled rows are unlike the unlabeled ones."""
    if not len(sample.unlabeled):
        return []
    shifted = inspection.shifted_columns(sample.labeled, sample.unlabeled)
    if not shifted:
        text = "labeled and unlabeled rows look alike, as far as the labels can tell."
        return [Remark(FINE, "Shift", text)]
    told = "; ".join(
        f"{name!r}, on average {labeled:.4g} with a label and {unlabeled:.4g} without"
        for name, labeled, unlabeled in shifted[:3]
    )
    others = "" if len(shifted) <= 3 else f"; and {len(shifted) - 3} more"
    return [
        Remark(
            WARNING,
            "Shift",
            f"labeled and unlabeled rows differ by more than chance: {told}{others}. Errors "
            "below are those on rows like the labeled ones, and unlabeled rows from elsewhere can "
            "mislead.",
        )
    ]


def duplicate_remarks(table: Table) -> list[Remark]:
    """Labeled rows that stand there again, without a label or with another one."""
    n_again, n_contradicted = inspection.duplicates(table.features, table.labels)
    remarks = []
    if n_contradicted:
        remarks.append(
            Remark(
                WARNING,
                "Duplicates",
                f"{plural(n_contradicted, 'labeled row')} equal another one of a different class: "
                "no method can get both right.",
            )
        )
    if n_again:
        remarks.append(
            Remark(
                NOTE,
                "Duplicates",
                f"{plural(n_again, 'labeled row')} also stand{'s' if n_again == 1 else ''} among "
                "the unlabeled ones: seen in training, without the label, and then tested.",
            )
        )
    return remarks


def _named(names: Iterable[str]) -> str:
    names = list(names)
    shown = names[:_MOST_NAMES]
    if len(names) > _MOST_NAMES:
        return f"{', '.join(shown)} and {len(names) - _MOST_NAMES} more"
    return and_list(shown)


def _counted(counts: Counter[str]) -> str:
    shown: Iterable[tuple[str, int]] = sorted(counts.items())
    if len(counts) > 12:
        few, many = min(counts.values()), max(counts.values())
        return f"{few:,} to {many:,} labels each"
    return ", ".join(f"{count:,} of {name!r}" for name, count in shown)
