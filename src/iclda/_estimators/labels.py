"""What "unlabeled" means: y and the marker in, class codes out."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples

from .._core.types import AnyArray, Array
from .._messages import Hint, ParameterError, Text

UNLABELED = -1  # the code of an unlabeled row
_PRIORS = Hint("priors")
_SHARES = Hint("priors")


@dataclass(frozen=True)
class Labels:
    """Sorted classes, and for every row the number of its class or ``UNLABELED``.

    A row of weight 0 has no class, and is no unlabeled row either: ``is_marker`` tells them apart.
    """

    classes: AnyArray
    codes: AnyArray
    is_marker: AnyArray

    @property
    def is_labeled(self) -> AnyArray:
        return self.codes != UNLABELED


def is_missing(value: Any) -> bool:
    """Whether a value stands for "not there": None, NaN, NaT or pandas.NA."""
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
    _require_two_classes(classes, is_used, is_marker, unlabeled)
    return Labels(classes, codes, is_marker)


def check_lengths(**given: Any) -> None:
    """ValueError unless all that are given, and not None, have as many entries."""
    counts = {name: _count(values, name) for name, values in given.items() if values is not None}
    if len(set(counts.values())) > 1:
        nouns = {"X": "rows", "y": "labels"}
        shown = ", ".join(
            f"{name} has {n} {nouns.get(name, 'entries')}" for name, n in counts.items()
        )
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {shown}.")


def _count(values: Any, name: str) -> int:
    try:
        return int(_num_samples(values))
    except TypeError:
        raise _no_entries(values, name) from None


def check_classes(values: AnyArray) -> None:
    """ValueError for values of y that are no classes."""
    if not values.size:
        return
    if values.dtype.kind == "S" or (values.dtype.kind == "O" and not isinstance(values[0], str)):
        raise _not_classes(values[0], "y")
    if values.dtype.kind == "f":
        _refuse_continuous(values)
    # Twice: it warns of a regression where more than half of the values differ, which is no sign of
    # one where few rows are labeled.
    check_classification_targets(np.concatenate([values, values]))


def are_comparable(labels: AnyArray, others: AnyArray) -> bool:
    """Whether both are text, both numbers or both dates, of those that ``check_classes`` passes."""
    kinds = (
        "number" if each.dtype.kind in "biuf" else each.dtype.kind for each in (labels, others)
    )
    return len({kind.replace("O", "U") for kind in kinds}) == 1


def split_marker(y: Any, unlabeled: Any, name: str = "y") -> tuple[AnyArray, AnyArray]:
    """Values of the rows that have one, and which of all rows carry the marker."""
    is_text = isinstance(unlabeled, (str, bytes))
    if hasattr(unlabeled, "__len__") and not is_text and getattr(unlabeled, "shape", None) != ():
        raise ParameterError(
            f"unlabeled must be one value, that of y in unlabeled rows, got {unlabeled!r}.",
            parameter="unlabeled",
            value=unlabeled,
        )
    values, is_absent = _values_and_missing(y, name)
    if is_missing(unlabeled):
        return _tightened(values[~is_absent], name), is_absent
    if is_absent.any():
        raise ValueError(
            f"y is missing (None or NaN) for {is_absent.sum()} of {len(is_absent)} rows, first in "
            f"row {int(np.argmax(is_absent))}, but unlabeled={plain(unlabeled)!r} marks the "
            "unlabeled rows: pass unlabeled=np.nan if a missing y means unlabeled."
        )
    is_marker = _equals(values, unlabeled)
    return _tightened(values[~is_marker], name), is_marker


def _values_and_missing(y: Any, name: str) -> tuple[AnyArray, AnyArray]:
    """y as a 1-d array of its own dtype, and where it is missing (values there are arbitrary)."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    is_null = _nulls_of_column(y)
    if is_null is not None:
        present = _present_of_column(y, is_null)
        values = np.empty(len(is_null), dtype=present.dtype)
        values[~is_null] = present
        is_null[~is_null] = _missing_entries(present)
        return values, is_null
    values = _as_array(y)
    if values.ndim == 0:
        raise _no_entries(y, name)
    if values.ndim > 1 and values.shape[1:] != (1,):
        raise ValueError(
            f"{name} must be 1-d, one label a row, got shape {values.shape}. Rows belong to one "
            "class each; mark rows of unknown class as unlabeled instead."
        )
    if values.dtype.kind in "cV" and values.size:
        raise _not_classes(values.flat[0], name)
    values = column_or_1d(values, warn=True)
    return values, _missing_entries(values)


def _no_entries(values: Any, name: str) -> ValueError:
    return ValueError(
        f"{name} must have an entry for every row, got an object of type {type(values).__name__}: "
        "pass a list or an array."
    )


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
    if values.dtype.kind == "T":  # texts of any length, which scikit-learn does not know
        return values.astype(object)
    # NumPy writes NaN and None among strings as the strings 'nan' and 'None'.
    if values.dtype.kind in "US" and isinstance(y, (list, tuple)):
        objects = np.asarray(y, dtype=object)
        values = values if all(isinstance(label, str) for label in objects.flat) else objects
    return values


def _missing_entries(values: AnyArray) -> AnyArray:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind == "O":
        return np.fromiter(map(is_missing, values), dtype=bool, count=len(values))
    return np.zeros(len(values), dtype=bool)


def _nulls_of_column(y: Any) -> AnyArray | None:
    """Where a column of pandas, polars or pyarrow is null, or one is masked; None for others."""
    if np.ma.is_masked(y) and y.ndim == 1:
        return np.ma.getmaskarray(y).copy()
    if hasattr(y, "isna") and getattr(y, "ndim", 1) == 1:
        return np.array(y.isna(), dtype=bool)
    if hasattr(y, "is_null") and (hasattr(y, "drop_nulls") or hasattr(y, "drop_null")):
        return np.array(np.asarray(y.is_null()), dtype=bool)
    return None


def _present_of_column(y: Any, is_null: AnyArray) -> AnyArray:
    """The values of a column that are not null, in the NumPy dtype behind a nullable one."""
    if hasattr(y, "drop_nulls"):
        return np.asarray(y.drop_nulls().to_numpy())
    if hasattr(y, "drop_null"):
        return np.asarray(y.drop_null())
    dtype = getattr(y.dtype, "numpy_dtype", None)
    return np.asarray(y[~is_null], dtype=dtype if isinstance(dtype, np.dtype) else None)


def _refuse_continuous(values: AnyArray) -> None:
    is_class = (np.abs(values) < 2.0**63) & (values == np.floor(values))
    if not is_class.all():
        raise ValueError(
            f"Unknown label type: y holds continuous values, for example "
            f"{plain(values[np.argmin(is_class)])!r}, and must hold classes: integers, or text. "
            "For numbers to predict use a regressor; to make classes of them use numpy.digitize."
        )


def _equals(values: AnyArray, marker: Any) -> AnyArray:
    if isinstance(marker, (str, bytes)) != (values.dtype.kind in "US") and values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    return np.asarray(values == marker, dtype=bool)


def _tightened(present: AnyArray, name: str) -> AnyArray:
    """Objects that are all numbers or all booleans in the dtype of those; strings stay objects."""
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


def _require_two_classes(
    classes: AnyArray, is_used: AnyArray, is_marker: AnyArray, unlabeled: Any
) -> None:
    n_labeled = int(is_used.sum())
    if n_labeled == 0:
        raise ValueError(
            f"y labels no row: all {len(is_marker)} rows carry the marker "
            f"unlabeled={plain(unlabeled)!r} "
            "or have weight 0. Label at least one row of each of 2 classes."
        )
    if len(classes) > 1:
        return
    way_out = "Label rows of another class."
    if not (is_used | is_marker).all():
        way_out = "Labeled rows of weight 0 do not count."
    elif is_marker.any() and not is_missing(unlabeled):
        way_out = (
            f"{plain(unlabeled)!r} marks a row as unlabeled: pass unlabeled=None if it is one of "
            "your classes."
        )
    raise ValueError(
        f"y must label rows of at least 2 classes, got 1 class ({plain(classes[0])!r}) in "
        f"{n_labeled} labeled {'row' if n_labeled == 1 else 'rows'}. {way_out}"
    )


def resolve_priors(priors: Any, classes: AnyArray, unlabeled: Any) -> Array | None:
    """Priors in the order of ``classes``, or None where they are to be estimated."""
    if priors is None:
        return None
    if isinstance(priors, Mapping):
        priors = _priors_in_order(priors, classes, unlabeled)
    try:
        values = np.asarray(priors, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _bad_priors(priors, _SHARES, f" must be numbers, got {priors!r}.") from None
    named = ", ".join(repr(c) for c in classes.tolist())
    if values.shape != (len(classes),):
        raise _bad_priors(
            priors,
            _SHARES,
            f" must hold {len(classes)} numbers, one for each class in the order {named}; got "
            f"shape {values.shape}.",
        )
    if not np.all(values >= 0):
        raise _bad_priors(
            priors,
            _SHARES,
            f" must be numbers of at least 0, got {values.tolist()} for the classes {named}.",
        )
    total = float(values.sum())
    if not np.isclose(total, 1, rtol=0, atol=1e-8):
        raise _bad_priors(
            priors,
            _SHARES,
            f" must add up to 1, got {', '.join(f'{v:g}' for v in values)}, which add up to "
            f"{total:.6g}: divide them by that.",
        )
    return values


def _bad_priors(priors: Any, *parts: str | Hint) -> ParameterError:
    return ParameterError(Text(*parts), parameter="priors", value=priors)


def _priors_in_order(priors: Mapping[Any, Any], classes: AnyArray, unlabeled: Any) -> list[Any]:
    known = classes.tolist()
    for key in priors:
        if is_missing(key) if is_missing(unlabeled) else not is_missing(key) and key == unlabeled:
            raise _bad_priors(
                priors,
                _PRIORS,
                f" has the key {plain(key)!r}, which marks unlabeled rows and is no class: remove "
                "it, or pass another ",
                Hint("unlabeled", text="unlabeled="),
                ".",
            )
    unseen = [plain(key) for key in priors if key not in set(known)]
    if unseen:
        raise _bad_priors(
            priors,
            _PRIORS,
            f" names classes without labeled rows: {unseen}. Label rows of them, or leave them "
            "out: ",
            "the classes",
            f" are {known}.",
        )
    lacking = [c for c in known if c not in priors]
    if lacking:
        raise _bad_priors(
            priors,
            _PRIORS,
            " must name ",
            "every class",
            f", but lacks {', '.join(map(repr, lacking))}: ",
            "add them, or name none at all to estimate all",
            ".",
        )
    return [priors[c] for c in known]


def draw_folds(codes: AnyArray, n_folds: int, rng: np.random.RandomState) -> AnyArray:
    """Fold of every row: folds differ by at most one row, in all and in every class."""
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(len(codes), dtype=int)
    # Which folds get a row more than others is random too.
    folds[order] = rng.permutation(n_folds)[np.arange(len(codes)) % n_folds]
    return folds
