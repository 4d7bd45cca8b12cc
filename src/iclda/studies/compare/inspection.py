"""Numbers behind the preflight: frames of numbers in, names of columns out."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, stats

from ..._core.types import AnyArray, Array
from ...tabular.encoders import require_for_tables

_DEPENDENT = 1e-9  # share of a column's variance that the others leave unexplained
_CLOSE = 0.99
_SHIFT_LEVEL = 0.01  # chance that any column at all is called shifted wrongly
_LEAST_COEFFICIENT = 1e-6
_MOST_EXPLAINING = 3


def constant_columns(values: Any) -> list[str]:
    """Columns with one value; a gap is a value of its own."""
    return [str(name) for name in values.columns if values[name].nunique(dropna=False) == 1]


def _standardized(values: Any) -> tuple[list[str], Array]:
    """Columns that vary, with mean 0 and length 1."""
    numbers = values.to_numpy(dtype=np.float64)
    numbers = numbers / np.maximum(np.abs(numbers).max(axis=0), np.finfo(float).tiny)
    centered = numbers - numbers.mean(axis=0)
    lengths = np.linalg.norm(centered, axis=0)
    varies = (np.ptp(values.to_numpy(), axis=0) > 0) & (lengths > 0)
    names = [str(name) for name in values.columns[varies]]
    return names, centered[:, varies] / lengths[varies]


def dependent_columns(values: Any) -> dict[str, list[str]]:
    """Columns that are linear functions of others, with those others, quoted; later ones first."""
    names, columns = _standardized(values)
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


def closest_pair(values: Any) -> tuple[str, str, float] | None:
    """The two columns of the highest correlation, if that is close to 1 or -1."""
    names, columns = _standardized(values)
    if len(names) < 2:
        return None
    correlation = columns.T @ columns
    np.fill_diagonal(correlation, 0)
    first, second = np.unravel_index(np.argmax(np.abs(correlation)), correlation.shape)
    value = float(correlation[first, second])
    return (names[first], names[second], value) if abs(value) > _CLOSE else None


def scale_spread(values: Any) -> tuple[str, str, float] | None:
    """The columns of the largest and the smallest standard deviation, and their ratio."""
    deviations = values.std(ddof=0)
    deviations = deviations[deviations > 0]
    if len(deviations) < 2:
        return None
    widest, narrowest = deviations.idxmax(), deviations.idxmin()
    return str(widest), str(narrowest), float(deviations[widest] / deviations[narrowest])


def agreeing_columns(labeled: Any, values: Any, y: AnyArray) -> dict[str, str]:
    """Columns constant within every class but not between them, and their values in words."""
    classes = np.unique(y.astype(str))
    found = {}
    for name in values.columns:
        column = labeled[name].to_numpy()
        parts = [np.unique(column[y == c]) for c in classes]
        if any(len(part) > 1 for part in parts) or len(np.unique(column)) == 1:
            continue
        found[str(name)] = ", ".join(
            f"{part[0]:g} for {c}" for part, c in zip(parts[:4], classes, strict=False)
        )
    return found


def shifted_columns(labeled: Any, unlabeled: Any) -> list[tuple[str, float, float]]:
    """Columns with another distribution among unlabeled rows, most different first.

    Each with its two means. Kolmogorov and Smirnov's test, corrected for the number of columns.
    """
    found = []
    level = _SHIFT_LEVEL / max(labeled.shape[1], 1)
    for name in labeled.columns:
        with_label, without = labeled[name].to_numpy(), unlabeled[name].to_numpy()
        test = stats.ks_2samp(with_label, without, method="asymp")
        if test.pvalue < level:
            found.append((test.statistic, str(name), with_label.mean(), without.mean()))
    ordered = sorted(found, key=lambda each: (-each[0], each[1]))
    return [(name, float(a), float(b)) for _, name, a, b in ordered]


def duplicates(features: Any, labels: AnyArray) -> tuple[int, int]:
    """Labeled rows that also stand unlabeled, and those that another class has too."""
    pd = require_for_tables("pandas")
    keys = pd.util.hash_pandas_object(features, index=False).to_numpy()
    is_labeled = np.array([label is not None for label in labels])
    n_again = int(np.isin(keys[is_labeled], keys[~is_labeled]).sum())
    pairs = pd.DataFrame({"key": keys[is_labeled], "label": labels[is_labeled].astype(str)})
    n_classes = pairs.groupby("key")["label"].transform("nunique")
    return n_again, int((n_classes > 1).sum())
