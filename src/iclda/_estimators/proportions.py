"""Class proportions of the unlabeled rows, as users give them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from .._core.types import AnyArray, Array
from .._messages import Hint, ParameterError, Text

LABELED = "labeled"
_MOST_CLASSES = 2_000
_ROUNDING = 1e-6  # by which shares may miss 1: some are float32


def resolve_proportions(proportions: Any, classes: AnyArray) -> Array | str | None:
    """(K, 2): least and largest shares in the order of ``classes``; None if free; or "labeled"."""
    _check_size(proportions, len(classes))
    if proportions is None or isinstance(proportions, str):
        return proportions
    known = classes.tolist()
    given = proportions
    if isinstance(given, Mapping):
        if set(given) != set(known):
            raise _error(proportions, f" must name the classes {known}, got {list(given)}.")
        given = [given[name] for name in known]
    if isinstance(given, Set):
        order = f" must be in the order of the classes {known}, and a set has none"
        raise _error(proportions, f"{order}, got {proportions!r}: pass a list or a dict.")
    try:
        pairs = [np.broadcast_to(np.asarray(each, dtype=np.float64), 2) for each in given]
    except (TypeError, ValueError):
        rule = " must be a number, or a pair of least and largest, for each class"
        raise _error(proportions, f"{rule}, got {proportions!r}.") from None
    if len(pairs) != len(known):
        raise _error(
            proportions,
            f" must hold {len(known)} shares, one for each of the classes {known}, got "
            f"{len(pairs)}.",
        )
    low, high = np.array(pairs).T
    if not ((low >= 0) & (low <= high) & (high <= 1) & (high > 0)).all():
        rule = " must be positive, at most 1, and the least of a pair first"
        raise _error(proportions, f"{rule}, got {_shown(low, high)}.")
    least, most = low.sum(), high.sum()
    if (low == high).all() and abs(least - 1) > _ROUNDING:
        message = f" must add up to 1, got {_shown(low, high)}, which add up to "
        message += f"{least:.8g}: divide them by that."
        raise _error(proportions, message)
    if least > 1 + _ROUNDING or most < 1 - _ROUNDING:
        message = f" leave no shares that add up to 1: they add up to {least:g} to {most:g}."
        raise _error(proportions, message)
    return None if (low == 0).all() and (high == 1).all() else _tightened(low, high)


def _check_size(proportions: Any, n_classes: int) -> None:
    if proportions is not None and n_classes > _MOST_CLASSES:
        needed = 6 * 8 * n_classes**2 / 2**30
        rule = f" are found by systems of the size of the classes, at most {_MOST_CLASSES:,}: "
        rule += f"{n_classes:,} would take {needed:.3g} GiB and minutes a step. Leave them out."
        raise _error(proportions, rule)


def _tightened(low: Array, high: Array) -> Array:
    """What the shares of the others leave to each class."""
    others_low, others_high = low.sum() - low, high.sum() - high
    low, high = np.maximum(low, 1 - others_high), np.minimum(high, 1 - others_low)
    is_point = high - low <= _ROUNDING
    middle = (low + high) / 2
    low, high = np.where(is_point, middle, low), np.where(is_point, middle, high)
    return np.column_stack([low, high]) / (low.sum() if is_point.all() else 1.0)


def labeled_proportions(counts: Array) -> Array:
    """Those of the labeled rows, given the weights of their classes."""
    shares = counts / counts.sum()
    return np.column_stack([shares, shares])


def _shown(low: Array, high: Array) -> list[Any]:
    pairs = zip(low.tolist(), high.tolist(), strict=True)
    return [a if repr(a) == repr(b) else (a, b) for a, b in pairs]  # NaN too


def _error(value: Any, message: str) -> ParameterError:
    text = Text(Hint("proportions"), message)
    return ParameterError(text, parameter="proportions", value=value)
