"""Columns as numbers: gaps filled, categories as columns of 0 and 1, all under readable names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from .._core.types import AnyArray, Array
from .._messages import ColumnError, Hint, Text
from .cells import text_of, texts_of
from .columns import BOOLEAN, CATEGORY, NUMBER, drop_hint, is_boolean
from .requirements import require

_SMALLEST, _LARGEST = 1e-150, 1e150  # beyond, sums of squares over- or underflow
_LEAST_GAPS, _LEAST_SHARE = 10, 0.1  # of a column that gets another one to flag them
_NEUTRAL = -1  # the code of a value that nothing is known about


class NumberEncoder(TransformerMixin, BaseEstimator):
    """Numbers and booleans as float64, gaps filled with the median.

    Parameters
    ----------
    missing : {"impute", "refuse"}, default="impute"
        Whether gaps are filled or an error.
    flagged : sequence of str or "auto", default=()
        Columns that get a second one of 0 and 1, 1 where there was a gap. "auto" takes those with
        gaps in at least 1 of 10 rows of the fit, and in 10; of those with the same gaps, the first.
    """

    def __init__(self, *, missing: str = "impute", flagged: Any = ()) -> None:
        self.missing = missing
        self.flagged = flagged

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the medians."""
        _check_feature_names(self, X, reset=True)
        self.n_features_in_ = X.shape[1]
        kinds = {True: BOOLEAN, False: NUMBER}
        self.column_kinds_ = {name: kinds[is_boolean(X[name])] for name in X.columns}
        numbers = self._numbers(X)
        for name, column in zip(X.columns, numbers.T, strict=True):
            _refuse_extremes(column[~np.isnan(column)], name)
        is_known = ~np.isnan(numbers)
        self.medians_ = np.array(
            [
                np.median(column[known]) if known.any() else 0.0
                for column, known in zip(numbers.T, is_known.T, strict=True)
            ]
        )
        if self.flagged == "auto":
            self.flagged_ = _worth_flagging(X.columns, ~is_known)
        return self

    def transform(self, X: Any) -> Array:
        """Numbers without gaps, then the columns that flag gaps."""
        check_is_fitted(self)
        _check_feature_names(self, X, reset=False)
        numbers = self._numbers(X)
        is_gap = np.isnan(numbers)
        places = [list(self.feature_names_in_).index(name) for name in self._flagged()]
        flags = is_gap[:, places].astype(np.float64)
        return np.column_stack([np.where(is_gap, self.medians_, numbers), flags])

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Names of the columns, and "NAME is empty" for flags."""
        check_is_fitted(self)
        flags = [_level_name(name, "empty", "") for name in self._flagged()]
        return np.array([*self.feature_names_in_, *flags], dtype=object)

    def _flagged(self) -> Sequence[str]:
        return self.flagged_ if self.flagged == "auto" else self.flagged

    def _numbers(self, X: Any) -> Array:
        if all(map(_is_plain, X.dtypes)):
            numbers = np.ascontiguousarray(X.to_numpy(dtype=np.float64))
        else:
            numbers = np.column_stack([_as_numbers(X[name], name) for name in X.columns])
        if self.missing == "refuse":
            for name, column in zip(X.columns, numbers.T, strict=True):
                refuse_gaps(np.isnan(column), name)
        return numbers


def _worth_flagging(names: Sequence[str], is_gap: AnyArray) -> list[str]:
    """Columns with gaps in some share of the rows; of those with the same gaps, the first."""
    found: dict[bytes, str] = {}
    for name, column in zip(names, is_gap.T, strict=True):
        n_gaps = min(column.sum(), (~column).sum())
        if n_gaps >= max(_LEAST_GAPS, _LEAST_SHARE * len(column)):
            found.setdefault(np.packbits(column).tobytes(), name)
    return list(found.values())


class CategoryEncoder(TransformerMixin, BaseEstimator):
    """Text as columns of 0 and 1, one for every category but the most frequent.

    Categories of few rows are pooled: fewer than 1 in 100, or than 5; of less than 50 rows, than 1
    in 10, or than 2. Gaps are a category. What is still too rare, and what fit has not seen, gets
    the shares of the training rows, which tell the classes apart as little as possible.

    Parameters
    ----------
    missing : {"impute", "refuse"}, default="impute"
        Whether gaps are a category or an error.
    """

    def __init__(self, *, missing: str = "impute") -> None:
        self.missing = missing

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the categories."""
        _check_feature_names(self, X, reset=True)
        self.n_features_in_ = X.shape[1]
        self.column_kinds_ = dict.fromkeys(X.columns, CATEGORY)
        self.codings_ = [_coding(name, texts) for name, texts in self._texts(X)]
        return self

    def transform(self, X: Any) -> Array:
        """Columns of 0 and 1."""
        check_is_fitted(self)
        _check_feature_names(self, X, reset=False)
        parts = [
            _indicators(coding, texts)
            for coding, (_, texts) in zip(self.codings_, self._texts(X), strict=True)
        ]
        return np.column_stack([np.empty((len(X), 0)), *parts])

    def count_unknown(self, X: Any) -> dict[str, int]:
        """Cells of every column that hold a text without a category of its own, if any do."""
        found = {}
        for name, coding in zip(self.feature_names_in_, self.codings_, strict=True):
            known = {None, *coding["codes"]}
            cells = X[name].value_counts()  # each value is turned into text once
            found[name] = sum(int(n) for value, n in cells.items() if text_of(value) not in known)
        return {name: count for name, count in found.items() if count}

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """ "COLUMN = category" for every column of 0 and 1."""
        check_is_fitted(self)
        names = [name for coding in self.codings_ for name in coding["names"][1:]]
        return np.array(names, dtype=object)

    def _texts(self, X: Any) -> list[tuple[str, AnyArray]]:
        columns = [(name, texts_of(X[name].to_numpy(dtype=object))) for name in X.columns]
        if self.missing == "refuse":
            for name, texts in columns:
                refuse_gaps(np.array([text is None for text in texts]), name)
        return columns


def refuse_clashes(features: Any, kinds: Mapping[str, str]) -> None:
    """ValueError if encoders may make a column whose name another column has, whatever the rows.

    Kinds of columns by name, as ``kinds_of`` gives them.
    """
    makers: dict[str, str] = {name: name for name, kind in kinds.items() if kind != CATEGORY}
    for name, kind in kinds.items():
        for made in _possible_names(features[name], name, kind):
            other = makers.setdefault(made, name)
            if other != name:
                raise ColumnError(
                    Text(
                        f"Columns {other!r} and {name!r} would both become a feature named "
                        f"{made!r}: rename one of them, or ",
                        drop_hint(other),
                        ".",
                    ),
                    column=other,
                )


def _possible_names(series: Any, name: str, kind: str) -> list[str]:
    """Names of features that a column can become, in whichever rows are fitted."""
    empty = [_level_name(name, "empty", "")] if series.isna().any() else []
    if kind != CATEGORY:
        return empty
    texts = {text for text in texts_of(series.unique()) if text is not None}
    return [_level_name(name, "=", text) for text in (*sorted(texts), _pool_name(texts))] + empty


def refuse_gaps(is_gap: AnyArray, name: str) -> None:
    """ValueError that counts the gaps of a column."""
    if is_gap.any():
        raise ColumnError(
            Text(
                f"Column {name!r} is empty in {is_gap.sum()} of {len(is_gap)} rows, and empty "
                "cells are to be refused: fill them in, ",
                Hint("drop", text="drop the rows or the column", kind="rows or column"),
                ", or pass ",
                Hint("missing", "impute"),
                ".",
            ),
            column=name,
        )


def _refuse_extremes(numbers: Array, name: str) -> None:
    """ValueError for a column whose variance is no number that can be computed with."""
    largest = float(np.abs(numbers).max(initial=0))
    deviation = largest * float(np.std(numbers / largest)) if largest else 0.0
    if largest <= _LARGEST and not 0 < deviation < _SMALLEST:
        return
    power = f"{largest:.0e}".split("e")[1]
    raise ColumnError(
        Text(
            f"Column {name!r} holds numbers up to {largest:.3g} in size, with a standard deviation "
            f"of {deviation:.3g}, and nothing above {_LARGEST:g} or that varies by less than "
            f"{_SMALLEST:g} can be computed with: rescale the column, for example divide it by "
            f"1e{power}, or ",
            drop_hint(name),
            ".",
        ),
        column=name,
    )


def _is_plain(dtype: Any) -> bool:
    """Whether NumPy itself turns a column of this type into float64, gaps into NaN."""
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def _as_numbers(series: Any, name: str) -> Array:
    pandas = require("pandas")
    if series.dtype.kind in "mMc":
        raise ColumnError(
            f"Column {name!r} must hold numbers, got {series.dtype}: turn it into numbers first.",
            column=name,
        )
    numbers = pandas.to_numeric(series, errors="coerce")
    is_text = numbers.isna() & series.notna()
    if is_text.any():
        raise ColumnError(
            f"Column {name!r} must hold numbers, got {series[is_text].iloc[0]!r}: empty the cell "
            "if the number is unknown.",
            column=name,
        )
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _least_rows(n_rows: int) -> int:
    """Rows that a category needs to have columns of its own."""
    return max(2, min(5, n_rows // 10), n_rows // 100)


def _coding(name: str, texts: AnyArray) -> dict[str, Any]:
    """Codes of the categories of a column, most frequent first, and their names and shares.

    Plain lists and dicts, so that a model file needs no type of ours for it.
    """
    counts = Counter(texts.tolist())
    least = _least_rows(len(texts))
    n_empty = counts.pop(None, 0)
    levels = [(count, "=", text) for text, count in counts.items() if count >= least]
    n_rare = sum(count for count in counts.values() if count < least)
    levels += [(n, kind, "") for n, kind in ((n_rare, "rare"), (n_empty, "empty")) if n >= least]
    levels.sort(key=lambda level: (-level[0], level[1], level[2]))
    places = {level[1:]: code for code, level in enumerate(levels)}
    total = max(sum(level[0] for level in levels), 1)
    pool = _pool_name(counts)
    return {
        "codes": {text: code for (kind, text), code in places.items() if kind == "="},
        "rare": places.get(("rare", ""), _NEUTRAL),
        "empty": places.get(("empty", ""), _NEUTRAL),
        "names": [_level_name(name, kind, text or pool) for _, kind, text in levels],
        "shares": [level[0] / total for level in levels],
    }


def _pool_name(texts: Container[str]) -> str:
    """What rare categories are called together: a text that is none of the column's own."""
    name = "any other"
    while name in texts:
        name += " value"
    return name


def _level_name(name: str, kind: str, text: str) -> str:
    return f"{name} is empty" if kind == "empty" else f"{name} = {text}"


def _indicators(coding: dict[str, Any], texts: AnyArray) -> Array:
    codes = coding["codes"]
    numbers = np.array(
        [coding["empty"] if t is None else codes.get(t, coding["rare"]) for t in texts], dtype=int
    )
    shares = np.array(coding["shares"], dtype=np.float64)
    # The last row stands for codes of -1.
    table = np.vstack([np.eye(len(shares)), shares[None, :]])
    return table[numbers][:, 1:]
