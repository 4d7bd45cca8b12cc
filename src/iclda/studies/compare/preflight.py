"""Remarks on a table before anything is fitted: what is in it, and what may go wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, stats

from ..._core.types import AnyArray, Array
from ..._messages import Hint, Text, and_list, plural
from ...tabular import Table, preprocessing
from ...tabular.columns import BOOLEAN, CATEGORY, kinds_of
from ...tabular.encoders import require_for_tables
from .plan import Size, Splits

FINE, NOTE, WARNING = "fine", "note", "warning"
_MOST_NAMES, _MOST_ROWS, _MOST_CLASSES = 4, 5_000, 12
_RARE, _FEW_OF_A_CLASS = 0.02, 5
_WIDE_SPREAD, _COUNTABLE = 1e3, 1e9
_DEPENDENT = 1e-9  # share of a column's variance that the others leave unexplained
_LEAST_COEFFICIENT, _MOST_EXPLAINING = 1e-6, 3
_CLOSE = 0.99  # correlation
_SHIFT_LEVEL, _MOST_SHIFTED = 0.01, 3  # probability that any column is called shifted wrongly
_NOUNS = {
    BOOLEAN: ("yes-or-no column", "yes-or-no columns"),
    CATEGORY: ("category", "categories"),
}
Found = Iterator[tuple[str, str]]  # levels and sentences


@dataclass(frozen=True)
class Remark:
    """One fact about the table: its subject in a word or two, and a sentence."""

    level: str
    subject: str
    text: str


@dataclass(frozen=True)
class Sample:
    """All labeled rows and at most ``_MOST_ROWS`` unlabeled ones, encoded."""

    values: Any  # frame of numbers, the labeled rows first
    y: AnyArray  # classes of the labeled rows

    @property
    def labeled(self) -> Any:
        return self.values.iloc[: len(self.y)]

    @property
    def unlabeled(self) -> Any:
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
    found = {
        "Rows": _rows(table),
        "Classes": _classes(table, splits),
        "Columns": _columns(table, size),
        "Missing": _missing(table),
        "Constant": _constant(table, sample),
        "Collinear": _collinear(sample),
        "Scale": _scale(sample),
        "Labels": _labels(size),
        "Giveaway": _giveaway(sample),
        "Shift": _shift(sample),
        "Duplicates": _duplicates(table),
    }
    return [
        Remark(level, subject, text)
        for subject, remarks in found.items()
        for level, text in remarks
    ]


def _rows(table: Table) -> Found:
    n_rows, n_labeled = len(table.labels), int(table.is_labeled.sum())
    n_unlabeled = n_rows - n_labeled
    if not n_unlabeled:
        yield FINE, f"{n_rows:,}, all of them labeled."
        return
    share = f"{100 * n_unlabeled / n_rows:.0f} %" if n_unlabeled < 0.995 * n_rows else "nearly all"
    yield FINE, f"{n_rows:,}: {n_labeled:,} labeled, {n_unlabeled:,} unlabeled ({share})."


def _classes(table: Table, splits: Splits) -> Found:
    counts = Counter(table.labels[table.is_labeled].tolist())
    counted = ", ".join(f"{count:,} of {name!r}" for name, count in sorted(counts.items()))
    if len(counts) > _MOST_CLASSES:
        counted = f"{min(counts.values()):,} to {max(counts.values()):,} labels each"
    text = f"{len(counts)} in {table.target!r}: {counted}."
    rarest = min(counts, key=lambda name: (counts[name], name))
    if counts[rarest] < _FEW_OF_A_CLASS and splits.n_labeled is None:
        few = f"{counts[rarest]} labels say little about class {rarest!r}"
        yield WARNING, f"{text} {few}: label more of it if you can."
    elif counts[rarest] < _RARE * counts.total():
        yield NOTE, f"{text} Class {rarest!r} is rare."
    else:
        yield FINE, text


def _columns(table: Table, size: Size) -> Found:
    kinds = Counter(kinds_of(table.features).values())
    parts = [plural(n, *_NOUNS.get(kind, (kind,))) for kind, n in kinds.items()]
    n_columns = len(table.features.columns)
    text = f"{parts[0]}." if len(parts) == 1 else f"{n_columns}: {', '.join(parts)}."
    if size.n_features != n_columns:
        text += f" As numbers they make {size.n_features} features."
    yield FINE, text
    for note in table.notes:
        yield NOTE, note


def _missing(table: Table) -> Found:
    gaps = table.features.isna().sum()
    gaps = gaps[gaps > 0].sort_values(ascending=False, kind="stable")
    if gaps.empty:
        yield FINE, "no empty cells."
        return
    n_rows = len(table.features)
    gappy = _named(f"{str(name)!r} ({100 * count / n_rows:.1f} %)" for name, count in gaps.items())
    yield (
        NOTE,
        Text(
            f"empty cells in {plural(len(gaps), 'column')}: {gappy}. They are filled in within "
            "each fold, with what its training rows show (",
            Hint("missing", "refuse"),
            " stops instead).",
        ),
    )


def _constant(table: Table, sample: Sample) -> Found:
    constant = _constant_columns(table.features)
    everywhere = {*constant, *_constant_columns(sample.values)}
    labeled = [name for name in _constant_columns(sample.labeled) if name not in everywhere]
    if constant:
        verb = "has" if len(constant) == 1 else "have"
        text = f"{_named(map(repr, constant))} {verb} one value in all rows and will be ignored."
        yield NOTE, text
    if labeled and len(sample.unlabeled):
        verb = "has" if len(labeled) == 1 else "have"
        yield (
            NOTE,
            f"{_named(map(repr, labeled))} {verb} one value in all labeled rows, but not in the "
            "unlabeled ones: no label says what the others mean.",
        )


def _constant_columns(values: Any) -> list[str]:
    """Columns with one value; a gap is a value of its own."""
    return [str(name) for name in values.columns if values[name].nunique(dropna=False) == 1]


def _collinear(sample: Sample) -> Found:
    n_rows, n_features = sample.values.shape
    if n_rows <= n_features:
        yield (
            WARNING,
            Text(
                f"there are more features ({n_features:,}) than rows ({n_rows:,}): leave columns "
                "out (",
                Hint("drop"),
                "), or use ",
                Hint("shrinkage", "auto"),
                ".",
            ),
        )
        return
    names, columns = _standardized(sample.values)
    if dependent := _dependent_columns(names, columns):
        computable = _named(f"{name!r} (from {', '.join(by)})" for name, by in dependent.items())
        yield (
            NOTE,
            f"{computable} can be computed from other columns. That does no harm: they are counted "
            "once.",
        )
    elif pair := _closest_pair(names, columns):
        first, second, correlation = pair
        text = f"{first!r} and {second!r} say nearly the same (correlation {correlation:.3f})."
        yield NOTE, text
    else:
        yield FINE, "no column can be computed from the others."


def _standardized(values: Any) -> tuple[list[str], Array]:
    """Columns that vary, with mean 0 and length 1."""
    numbers = values.to_numpy(dtype=np.float64)
    numbers = numbers / np.maximum(np.abs(numbers).max(axis=0), np.finfo(float).tiny)
    centered = numbers - numbers.mean(axis=0)
    lengths = np.linalg.norm(centered, axis=0)
    varies = (np.ptp(values.to_numpy(), axis=0) > 0) & (lengths > 0)
    names = [str(name) for name in values.columns[varies]]
    return names, centered[:, varies] / lengths[varies]


def _dependent_columns(names: list[str], columns: Array) -> dict[str, list[str]]:
    """Columns that are linear functions of others, with those others, quoted; later ones first."""
    if not names:
        return {}
    # Householder with pivots: columns are taken in the order in which they add something new.
    _, upper, order = linalg.qr(columns, mode="economic", pivoting=True)
    n_free = int((np.abs(np.diag(upper)) ** 2 > _DEPENDENT).sum())
    free, rest = order[:n_free], order[n_free:]
    found = {}
    for place, column in enumerate(rest):
        weights = linalg.solve_triangular(
            upper[:n_free, :n_free], upper[:n_free, n_free + place], lower=False
        )
        large = [k for k in np.argsort(-np.abs(weights)) if abs(weights[k]) > _LEAST_COEFFICIENT]
        by = [repr(names[free[k]]) for k in large[:_MOST_EXPLAINING]]
        more = len(large) - _MOST_EXPLAINING
        found[names[column]] = [*by, f"{more} more"] if more > 0 else by
    return found


def _closest_pair(names: list[str], columns: Array) -> tuple[str, str, float] | None:
    """The two columns of the highest correlation, if that is close to 1 or -1."""
    if len(names) < 2:
        return None
    correlation = columns.T @ columns
    np.fill_diagonal(correlation, 0)
    first, second = np.unravel_index(np.argmax(np.abs(correlation)), correlation.shape)
    value = float(correlation[first, second])
    return (names[first], names[second], value) if abs(value) > _CLOSE else None


def _scale(sample: Sample) -> Found:
    deviations = sample.values.std(ddof=0)
    deviations = deviations[deviations > 0]
    ratio = deviations.max() / deviations.min() if len(deviations) > 1 else 1.0
    if ratio < _WIDE_SPREAD:
        yield FINE, "columns vary on similar scales."
        return
    widest, narrowest = str(deviations.idxmax()), str(deviations.idxmin())
    times = f"{ratio:,.0f}" if ratio < _COUNTABLE else f"{ratio:.0e}"
    yield (
        FINE,
        f"{widest!r} varies {times} times as much as {narrowest!r}. That does no harm: columns are "
        "standardized within each fold.",
    )


def _labels(size: Size) -> Found:
    text = f"{size.n_labeled:,} train in each fold, for {plural(size.n_features, 'feature')}"
    if size.is_degenerate:
        yield (
            WARNING,
            f"{text}: too few to estimate a covariance from them alone. Without shrinkage "
            "supervised LDA would separate them perfectly whatever they are.",
        )
    elif size.is_small:
        yield NOTE, f"{text}: few. Shrinkage may help every method."
    else:
        yield FINE, f"{text}."


def _giveaway(sample: Sample) -> Found:
    """Columns that take one value per class on all labeled rows: perhaps made from the target."""
    classes = np.unique(sample.y.astype(str))
    for name in sample.values.columns:
        column = sample.labeled[name].to_numpy()
        parts = [np.unique(column[sample.y == c]) for c in classes]
        if any(len(part) > 1 for part in parts) or len(np.unique(column)) == 1:
            continue
        pairs = zip(parts[:4], classes, strict=False)
        values = ", ".join(f"{part[0]:g} for {c}" for part, c in pairs)
        yield (
            WARNING,
            Text(
                f"{str(name)!r} is {values} on all labeled rows. If it is made from the answer, "
                "leave it out (",
                Hint("drop"),
                "); if not, the methods may still lean on it alone and give probabilities of 0 or "
                "1: compare with ",
                Hint("shrinkage", "auto"),
                ".",
            ),
        )


def _shift(sample: Sample) -> Found:
    if not len(sample.unlabeled):
        return
    # Kolmogorov and Smirnov; the level is corrected for the number of columns.
    shifted, level = [], _SHIFT_LEVEL / max(sample.values.shape[1], 1)
    for name in sample.values.columns:
        columns = sample.labeled[name].to_numpy(), sample.unlabeled[name].to_numpy()
        test = stats.ks_2samp(*columns, method="asymp")
        if test.pvalue < level:
            shifted.append((-test.statistic, str(name), *(float(c.mean()) for c in columns)))
    if not shifted:
        yield FINE, "labeled and unlabeled rows look alike in every column."
        return
    means = "; ".join(
        f"{name!r}, on average {labeled:.4g} with a label and {unlabeled:.4g} without"
        for _, name, labeled, unlabeled in sorted(shifted)[:_MOST_SHIFTED]
    )
    n_more = len(shifted) - _MOST_SHIFTED
    others = f"; and {n_more} more" if n_more > 0 else ""
    yield (
        WARNING,
        f"labeled and unlabeled rows differ by more than chance: {means}{others}. Errors below are "
        "those on rows like the labeled ones, and unlabeled rows from elsewhere can mislead.",
    )


def _duplicates(table: Table) -> Found:
    pd = require_for_tables("pandas")
    keys = pd.util.hash_pandas_object(table.features, index=False).to_numpy()
    labeled, labels = keys[table.is_labeled], table.labels[table.is_labeled].astype(str)
    classes = pd.Series(labels).groupby(labeled).transform("nunique")
    n_again = int(np.isin(labeled, keys[~table.is_labeled]).sum())
    if n_contradicted := int((classes > 1).sum()):
        yield (
            WARNING,
            f"{plural(n_contradicted, 'labeled row')} equal another one of a different class: no "
            "method can get both right.",
        )
    if n_again:
        yield (
            NOTE,
            f"{plural(n_again, 'labeled row')} also stand{'s' if n_again == 1 else ''} among the "
            "unlabeled ones: seen in training, without the label, and then tested.",
        )


def _named(names: Iterable[str]) -> str:
    names = list(names)
    if len(names) > _MOST_NAMES:
        return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"
    return and_list(names)
