"""Labels, priors and proportions as users give them: class codes and shares out."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples

from .._core import AnyArray, Array
from .._messages import FitError, ParameterError, plural, say

UNLABELED = -1  # the code of an unlabeled row
# Proportions of the unlabeled rows: those of the labeled ones, equal ones, learned ones, or any,
# whatever the labels are.
LABELED, EQUAL, LEARNED, FREE = "labeled", "equal", "auto", "free"
_MOST_QUOTAS = 2_000  # classes for which proportions can be given
_SHARE_TOLERANCE = 1e-6  # by which proportions may miss 1: some are float32


@dataclass(frozen=True)
class Labels:
    """Sorted classes, and for every row the index of its class or ``UNLABELED``.

    A row of weight 0 has no class and is no unlabeled row either: ``is_marker`` marks the latter.
    """

    classes: AnyArray
    codes: AnyArray
    is_marker: AnyArray

    @property
    def is_labeled(self) -> AnyArray:
        return self.codes != UNLABELED


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(value != value)


def plain(value: Any) -> Any:
    """A value as Python writes it: messages show 1, not np.int64(1)."""
    return value.item() if isinstance(value, np.generic) else value


def encode_labels(y: Any, unlabeled: Any, is_counted: AnyArray | None = None) -> Labels:
    """Codes of y; rows not counted (weight 0) are left out of the classes.

    Raises ValueError unless at least two classes are labeled.
    """
    present, is_marker = split_marker(y, unlabeled)
    codes = np.full(len(is_marker), UNLABELED)
    is_used = ~is_marker if is_counted is None else ~is_marker & is_counted
    used = present[is_used[~is_marker]]
    check_classes(used)
    classes, codes[is_used] = np.unique(used, return_inverse=True)
    if (
        len(classes) and not str(classes[0]).strip()
    ):  # an empty text is the first in order
        is_empty, text = codes == 0, plain(classes[0])
        raise ValueError(
            f"y is the empty text {text!r} for {is_empty.sum()} of {len(codes)} rows, first in row "
            f"{is_empty.argmax()}, but unlabeled={plain(unlabeled)!r} marks the unlabeled rows: "
            f"pass unlabeled={text!r} if an empty text means unlabeled, or name the class."
        )
    if len(classes) < 2:
        marker = plain(unlabeled)
        if len(used) == 0:
            raise FitError(
                f"y labels no row: all {len(is_marker)} rows carry the marker unlabeled={marker!r} "
                "or have weight 0. Label at least one row of each of 2 classes."
            )
        raise FitError(
            f"y must label rows of at least 2 classes, got 1 class ({plain(classes[0])!r}) in "
            f"{plural(len(used), 'labeled row')}. Label rows of another class; those of weight 0 "
            f"do not count. {marker!r} marks a row as unlabeled: pass unlabeled=None if it is one "
            "of your classes."
        )
    return Labels(classes, codes, is_marker)


def check_lengths(**given: Any) -> None:
    """Raise a ValueError unless all arguments that are not None have the same length."""
    try:
        counts = {
            name: _num_samples(each) for name, each in given.items() if each is not None
        }
    except TypeError as error:
        raise ValueError(
            f"{error}: pass a list or an array with an entry for every row."
        ) from None
    if len(set(counts.values())) > 1:
        nouns = {"X": "rows", "y": "labels"}
        shown = (
            f"{name} has {n} {nouns.get(name, 'entries')}" for name, n in counts.items()
        )
        message = "Found input variables with inconsistent numbers of samples: "
        raise ValueError(f"{message}{', '.join(shown)}.")


def check_classes(values: AnyArray) -> None:
    """Raise a ValueError if values of y are no classes."""
    if values.dtype.kind in "OS" and values.size and not isinstance(values[0], str):
        raise _not_classes(values[0], "y")
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(
            "Unknown label type: y contains infinity, and must hold classes."
        )
    # Twice: it warns of a regression where more than half of the values differ, which is no sign of
    # one where few rows are labeled.
    if values.size:
        check_classification_targets(np.concatenate([values, values]))


def split_marker(y: Any, unlabeled: Any, name: str = "y") -> tuple[AnyArray, AnyArray]:
    """Return the values of labeled rows, and a mask of the rows that carry the marker."""
    is_text = isinstance(unlabeled, (str, bytes))
    if (
        hasattr(unlabeled, "__len__")
        and not is_text
        and getattr(unlabeled, "shape", None) != ()
    ):
        message = f"unlabeled must be one value, that of y in unlabeled rows, got {unlabeled!r}."
        raise ParameterError(message, parameter="unlabeled", value=unlabeled)
    values, is_absent = _values_and_missing(y, name)
    if is_missing(unlabeled):
        return _tightened(values[~is_absent], name), is_absent
    if is_absent.any():
        raise ValueError(
            f"y is missing (None or NaN) for {is_absent.sum()} of {len(is_absent)} rows, first in "
            f"row {int(np.argmax(is_absent))}, but unlabeled={plain(unlabeled)!r} marks the "
            "unlabeled rows: pass unlabeled=np.nan if a missing y means unlabeled."
        )
    # Texts and numbers are never equal, and NumPy warns when it compares arrays of them.
    if values.dtype.kind == "O" or is_text == (values.dtype.kind in "US"):
        is_marker = np.asarray(values == unlabeled, dtype=bool)
    else:
        is_marker = np.zeros(len(values), dtype=bool)
    return _tightened(values[~is_marker], name), is_marker


def _values_and_missing(y: Any, name: str) -> tuple[AnyArray, AnyArray]:
    """y as a 1-d array of its own dtype, and where it is missing (values there are arbitrary)."""
    if np.ma.is_masked(y) and y.ndim == 1:
        is_null = np.ma.getmaskarray(y).copy()
    elif hasattr(y, "isna") and getattr(y, "ndim", 1) == 1:  # pandas
        is_null = np.array(y.isna(), dtype=bool)
    elif hasattr(y, "drop_nulls") or hasattr(y, "drop_null"):  # polars, pyarrow
        is_null = np.array(np.asarray(y.is_null()), dtype=bool)
    else:
        values = column_or_1d(_as_array(y), warn=True)
        return values, _missing_entries(values)
    if drop := getattr(y, "drop_nulls", getattr(y, "drop_null", None)):
        present = np.asarray(drop())
    else:
        dtype = getattr(y.dtype, "numpy_dtype", None)  # behind a nullable one
        present = np.asarray(
            y[~is_null], dtype=dtype if isinstance(dtype, np.dtype) else None
        )
    values = np.empty(len(is_null), dtype=present.dtype)
    values[~is_null] = present
    is_null[~is_null] = _missing_entries(present)
    return values, is_null


def _not_classes(value: Any, name: str) -> ValueError:
    return ValueError(
        f"Unknown label type: {name} holds values of type {type(value).__name__}, for example "
        f"{reprlib.repr(plain(value))}, and must hold text, booleans or integers of at most 64 "
        "bits: write them as text, for example by str."
    )


def _as_array(y: Any) -> AnyArray:
    try:
        values = np.asarray(y)
    except ValueError:  # entries of different lengths
        values = np.asarray(y, dtype=object)
    if (
        values.dtype.kind == "T"
    ):  # texts of any length, which scikit-learn does not know
        return values.astype(object)
    # NumPy writes NaN and None among strings as the strings 'nan' and 'None'.
    if values.dtype.kind in "US" and isinstance(y, (list, tuple)):
        objects = np.asarray(y, dtype=object)
        values = (
            values if all(isinstance(label, str) for label in objects.flat) else objects
        )
    return values


def _missing_entries(values: AnyArray) -> AnyArray:
    if values.dtype.kind == "O":
        return np.fromiter(map(is_missing, values), dtype=bool, count=len(values))
    return np.asarray(values != values)  # NaN and NaT differ from themselves


def _tightened(present: AnyArray, name: str) -> AnyArray:
    """Convert objects that are all numbers or all booleans to their dtype; strings stay objects."""
    if present.dtype.kind != "O" or present.size == 0:
        return present
    is_string = [isinstance(value, str) for value in present]
    if all(is_string):
        return present
    if any(is_string):
        a, b = (plain(present[is_string.index(kind)]) for kind in (True, False))
        raise ValueError(
            f"{name} mixes text and other values, for example {a!r} and {b!r}: use one kind."
        )
    try:
        array = np.array(present.tolist())
    except ValueError:  # lists or tuples of different lengths
        array = np.empty((0, 0))
    if array.ndim > 1:
        raise _not_classes(present[0], name)
    return array


def resolve_priors(priors: Any, classes: AnyArray) -> Array | None:
    """Priors in the order of ``classes``, or None where they are to be estimated."""
    if priors is None:
        return None
    values = _in_order("priors", priors, classes, shape=())
    if not np.all(values >= 0):
        rule = "must be at least 0, got {values} for the classes {known}"
        raise _share_error(
            "priors", priors, rule, values=values.tolist(), known=classes.tolist()
        )
    total = float(values.sum())
    if not np.isclose(total, 1, rtol=0, atol=1e-8):
        rule = "must add up to 1, got {values}, which add up to {total:.6g}: divide them by that"
        raise _share_error("priors", priors, rule, values=values.tolist(), total=total)
    return values


def resolve_proportions(proportions: Any, classes: AnyArray) -> Array | str | None:
    """(K, 2): least and largest shares in the order of ``classes``; None if free; or a name.

    The names are those of shares that depend on the rows, "labeled" and "auto", and "free".
    """
    if isinstance(proportions, str) and proportions == FREE:
        return proportions
    if proportions is not None and len(classes) > _MOST_QUOTAS:
        rule = "can be given for at most {most:,} classes, and there are {n:,}: leave them out"
        raise _share_error(
            "proportions", proportions, rule, most=_MOST_QUOTAS, n=len(classes)
        )
    if isinstance(proportions, str) and proportions == EQUAL:
        return np.full((len(classes), 2), 1 / len(classes))
    if proportions is None or isinstance(proportions, str):
        return proportions
    low, high = _in_order("proportions", proportions, classes, shape=(2,)).T
    if not ((low >= 0) & (low <= high) & (high <= 1) & (high > 0)).all():
        rule = (
            "must be positive, at most 1, and the least of a pair first, got {given!r}"
        )
        raise _share_error("proportions", proportions, rule)
    least, largest = low.sum(), high.sum()
    if least > 1 + _SHARE_TOLERANCE or largest < 1 - _SHARE_TOLERANCE:
        sums = "the least add up to {low:.8g}, the largest to {high:.8g}"
        rule = f"must add up to 1, got {{given!r}}: {sums}"
        raise _share_error("proportions", proportions, rule, low=least, high=largest)
    return (
        None if (low == 0).all() and (high == 1).all() else _tightened_shares(low, high)
    )


def _in_order(
    name: str, given: Any, classes: AnyArray, shape: tuple[int, ...]
) -> Array:
    """Numbers, or pairs of them, of every class in the order of the classes."""
    known, ordered = classes.tolist(), given
    if isinstance(given, Mapping):
        if set(given) != set(known):
            rule = "must name the classes with labeled rows, {known}, got {keys}"
            raise _share_error(
                name, given, rule, known=known, keys=[*map(plain, given)]
            )
        ordered = [given[label] for label in known]
    if isinstance(given, Set):
        raise _share_error(
            name, given, "must have an order, got the set {given!r}: pass a list"
        )
    try:
        values = [
            np.broadcast_to(np.asarray(each, dtype=np.float64), shape)
            for each in ordered
        ]
    except (TypeError, ValueError, OverflowError):
        pair = ", or a pair of least and largest," if shape else ""
        rule = f"must be a number{pair} for each class, got {{given!r}}"
        raise _share_error(name, given, rule) from None
    if len(values) != len(known):
        rule = (
            "must hold {n} numbers, one for each of the classes {known}, got {n_given}"
        )
        raise _share_error(
            name, given, rule, n=len(known), known=known, n_given=len(values)
        )
    return np.array(values)


def _tightened_shares(low: Array, high: Array) -> Array:
    """Tighten the intervals of shares by what the other classes leave to each class."""
    others_low, others_high = low.sum() - low, high.sum() - high
    low, high = np.maximum(low, 1 - others_high), np.minimum(high, 1 - others_low)
    is_point = high - low <= _SHARE_TOLERANCE
    middle = (low + high) / 2
    low, high = np.where(is_point, middle, low), np.where(is_point, middle, high)
    return np.column_stack([low, high]) / (low.sum() if is_point.all() else 1.0)


def _share_error(name: str, given: Any, rule: str, **values: Any) -> ParameterError:
    with np.printoptions(legacy="1.25"):  # which writes 0.3, not np.float64(0.3)
        message = say(f"{{@{name}}} {rule}.", given=given, **values)
    return ParameterError(message, parameter=name, value=given)
