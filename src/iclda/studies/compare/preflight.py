"""Remarks on a table before anything is fitted: what is in it, and what may go wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, stats

from ..._core.types import AnyArray, Array
from ..._messages import and_list, plural, say
from ...tabular import Table, preprocessing
from ...tabular.columns import BOOLEAN, CATEGORY, kinds_of
from ...tabular.encoders import require_for_tables
from .plan import Size, Splits
from .sentences import SENTENCES

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
Found = Iterator[tuple[str, dict[str, Any]]]  # names of sentences, and the values in them


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


def preflight(table: Table, sample: Sample, splits: Splits) -> list[Remark]:
    """All remarks, in the order in which a person would look."""
    size = splits.size(sample.values.shape[1])
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
    remarks = []
    for subject, sayings in found.items():
        for name, values in sayings:
            level, sentence = SENTENCES["preflight"][name]
            remarks.append(Remark(level, subject, say(sentence, **values)))
    return remarks


def _rows(table: Table) -> Found:
    n_rows, n_labeled = len(table.labels), int(table.is_labeled.sum())
    n_unlabeled = n_rows - n_labeled
    share = f"{100 * n_unlabeled / n_rows:.0f} %" if n_unlabeled < 0.995 * n_rows else "nearly all"
    counts = {"n_rows": n_rows, "n_labeled": n_labeled, "n_unlabeled": n_unlabeled}
    yield "rows" if n_unlabeled else "all_labeled", {**counts, "share": share}


def _classes(table: Table, splits: Splits) -> Found:
    counts = Counter(table.labels[table.is_labeled].tolist())
    counted = ", ".join(f"{count:,} of {name!r}" for name, count in sorted(counts.items()))
    if len(counts) > _MOST_CLASSES:
        counted = f"{min(counts.values()):,} to {max(counts.values()):,} labels each"
    rarest = min(counts, key=lambda name: (counts[name], name))
    name = "classes"
    if counts[rarest] < _FEW_OF_A_CLASS and splits.n_labeled is None:
        name = "few_of_a_class"
    elif counts[rarest] < _RARE * counts.total():
        name = "rare_class"
    text = f"{len(counts)} in {table.target!r}: {counted}"
    yield name, {"classes": text, "count": counts[rarest], "name": rarest}


def _columns(table: Table, size: Size) -> Found:
    kinds = Counter(kinds_of(table.features).values())
    parts = [plural(n, *_NOUNS.get(kind, (kind,))) for kind, n in kinds.items()]
    n_columns = len(table.features.columns)
    text = parts[0] if len(parts) == 1 else f"{n_columns}: {', '.join(parts)}"
    name = "columns" if size.n_features == n_columns else "encoded_columns"
    yield name, {"columns": text, "n_features": size.n_features}
    for note in table.notes:
        yield "read", {"note": note}
    for note in table.warnings:
        yield "doubt", {"note": note}


def _missing(table: Table) -> Found:
    gaps = table.features.isna().sum()
    gaps = gaps[gaps > 0].sort_values(ascending=False, kind="stable")
    shares = {str(name): 100 * count / len(table.features) for name, count in gaps.items()}
    gappy = _named(f"{name!r} ({share:.1f} %)" for name, share in shares.items())
    columns = plural(len(shares), "column")
    yield "gaps" if shares else "no_gaps", {"columns": columns, "gappy": gappy}


def _constant(table: Table, sample: Sample) -> Found:
    constant = _constant_columns(table.features)
    everywhere = {*constant, *_constant_columns(sample.values)}
    labeled = [name for name in _constant_columns(sample.labeled) if name not in everywhere]
    shown = labeled if len(sample.unlabeled) else []
    for name, columns in (("constant", constant), ("constant_labeled", shown)):
        if columns:
            have = "has" if len(columns) == 1 else "have"
            yield name, {"columns": _named(map(repr, columns)), "have": have}


def _constant_columns(values: Any) -> list[str]:
    """Columns with one value; a gap is a value of its own."""
    return [str(name) for name in values.columns if values[name].nunique(dropna=False) == 1]


def _collinear(sample: Sample) -> Found:
    n_rows, n_features = sample.values.shape
    if n_rows <= n_features:
        yield "more_features", {"n_features": n_features, "n_rows": n_rows}
        return
    names, columns = _standardized(sample.values)
    if dependent := _dependent_columns(names, columns):
        computable = _named(f"{name!r} (from {', '.join(by)})" for name, by in dependent.items())
        yield "dependent", {"columns": computable}
    elif pair := _closest_pair(names, columns):
        yield "close", dict(zip(("first", "second", "correlation"), pair, strict=True))
    else:
        yield "independent", {}


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
        yield "similar_scales", {}
        return
    widest, narrowest = str(deviations.idxmax()), str(deviations.idxmin())
    times = f"{ratio:,.0f}" if ratio < _COUNTABLE else f"{ratio:.0e}"
    yield "other_scales", {"widest": widest, "narrowest": narrowest, "times": times}


def _labels(size: Size) -> Found:
    text = f"{size.n_labeled:,} train in each fold, for {plural(size.n_features, 'feature')}"
    few = "too_few_labels" if size.is_degenerate else "few_labels"
    yield few if size.is_degenerate or size.is_small else "labels", {"labels": text}


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
        yield "giveaway", {"name": str(name), "values": values}


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
    means = [
        f"{name!r}, on average {labeled:.4g} with a label and {unlabeled:.4g} without"
        for _, name, labeled, unlabeled in sorted(shifted)[:_MOST_SHIFTED]
    ]
    if (n_more := len(shifted) - _MOST_SHIFTED) > 0:
        means.append(f"and {n_more} more")
    yield "shifted" if shifted else "alike", {"means": "; ".join(means)}


def _duplicates(table: Table) -> Found:
    pd = require_for_tables("pandas")
    keys = pd.util.hash_pandas_object(table.features, index=False).to_numpy()
    labeled, labels = keys[table.is_labeled], table.labels[table.is_labeled].astype(str)
    classes = pd.Series(labels).groupby(labeled).transform("nunique")
    n_again = int(np.isin(labeled, keys[~table.is_labeled]).sum())
    if n_contradicted := int((classes > 1).sum()):
        yield "contradicted", {"rows": plural(n_contradicted, "labeled row")}
    if n_again:
        stand = "stands" if n_again == 1 else "stand"
        yield "seen", {"rows": plural(n_again, "labeled row"), "stand": stand}


def _named(names: Iterable[str]) -> str:
    names = list(names)
    if len(names) > _MOST_NAMES:
        return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"
    return and_list(names)
