"""Labels, weights, priors and proportions as users give them: codes and shares out."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples

from .._core import AnyArray, Array
from .._messages import FitError, ParameterError, plural, say, warn

# The code of a row without a class.
UNLABELED = -1

# Names of proportions: those of the labeled rows, equal ones, learned ones; or any,
# because the shares of the classes among the labels say nothing about other rows.
LABELED = "labeled"
EQUAL = "equal"
LEARNED = "auto"
FREE = "free"

# Proportions can be given for at most this many classes.
_MAX_CLASSES_WITH_PROPORTIONS = 2_000
# Proportions may miss 1 by this much: some are sums of float32.
_PROPORTIONS_TOLERANCE = 1e-6
# Priors may miss 1 by this much.
_PRIORS_TOLERANCE = 1e-8
# Products of two weights within these bounds are finite and not zero.
_MIN_WEIGHT = 1e-100
_MAX_WEIGHT = 1e100


@dataclass(frozen=True)
class Labels:
    """Sorted classes, and the index of its class for every labeled row, in order.

    ``is_labeled`` marks these rows, and ``is_marker`` the unlabeled ones, of which
    ``n_missing`` have no value at all. A row of weight 0 has no class, but is not an
    unlabeled row either.
    """

    classes: AnyArray
    labeled_codes: AnyArray
    is_labeled: AnyArray
    is_marker: AnyArray
    n_missing: int

    @cached_property
    def codes(self) -> AnyArray:
        """The index of its class for every row, or ``UNLABELED``."""
        codes = np.full(len(self.is_labeled), UNLABELED)
        codes[self.is_labeled] = self.labeled_codes
        return codes

    def count(self, value: Any) -> int:
        """Return the number of labeled rows of the class that equals a value."""
        is_class = _equals_marker(self.classes, value)
        return int(np.count_nonzero(is_class[self.labeled_codes]))


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(value != value)


def plain(value: Any) -> Any:
    """Return a value as Python writes it: messages show 1, not np.int64(1)."""
    return value.item() if isinstance(value, np.generic) else value


def encode_labels(
    y: Any, unlabeled: Any, is_counted: AnyArray | None = None, owner: str = ""
) -> Labels:
    """Return the codes of y. Rows that are not counted (weight 0) get no class.

    Raises FitError unless at least two classes are labeled. ``owner`` names what has
    the parameter ``unlabeled``, if that need not be what the user called.
    """
    used, is_marker, is_absent = _split(y, unlabeled, "y")
    is_used = ~is_marker
    if is_counted is not None:
        # ``used`` has entries for the rows without the marker only.
        used = used[is_counted[is_used]]
        is_used &= is_counted
    check_classes(used)
    classes, codes = np.unique(used, return_inverse=True)
    labels = Labels(
        classes, codes, is_used, is_marker, int(np.count_nonzero(is_absent))
    )
    # An empty text is the first in order.
    if len(classes) and not str(classes[0]).strip():
        raise _empty_class(classes[0], labels.codes == 0, plain(unlabeled), owner)
    if len(classes) < 2:
        raise _too_few_classes(labels, plain(unlabeled), owner)
    return labels


def check_marks(
    labels: Labels, unlabeled: Any, owner: str, *, has_others: bool
) -> Iterator[str]:
    """Yield warnings of values that may be a class or a mark of unlabeled rows.

    ``has_others`` tells whether unlabeled rows were also passed without a y. If there
    are such rows, or marked ones, then -1 is a class, and so it is where there are only
    two classes: -1 and 1 are common names. ``owner`` is as for ``encode_labels``.
    """
    n_missing = labels.n_missing
    n_marked = int(np.count_nonzero(labels.is_marker)) - n_missing
    marker = plain(unlabeled)
    if n_missing and n_marked:
        yield (
            f"{plural(n_marked, 'row')} with y = {marker!r} and "
            f"{plural(n_missing, 'row')} with a missing y all count as unlabeled. "
            f"{_pass_marker(None, owner)} if {marker!r} is a class."
        )

    n_texts = labels.count(str(marker))
    if n_texts and not _is_text(marker) and not is_missing(marker):
        yield (
            f"The text {str(marker)!r} is read as a class in "
            f"{plural(n_texts, 'row')}, because unlabeled={marker!r} is a number. "
            f"{_pass_marker(str(marker), owner)} if these rows are unlabeled."
        )

    n_minus_one = labels.count(UNLABELED)
    has_marks = n_missing or n_marked or has_others
    if n_minus_one and not has_marks and len(labels.classes) > 2:
        yield (
            f"-1 is read as a class in {plural(n_minus_one, 'row')}, because "
            f"unlabeled={marker!r} marks the unlabeled rows. "
            f"{_pass_marker(UNLABELED, owner)} if these rows are unlabeled."
        )


def _pass_marker(marker: Any, owner: str) -> str:
    """Say which marker to pass, and to whom: a table classifier holds another one."""
    return f"Pass unlabeled={marker!r}{f' to {owner}' if owner else ''}"


def _empty_class(label: Any, is_empty: AnyArray, marker: Any, owner: str) -> ValueError:
    text = plain(label)
    return ValueError(
        f"y is the empty text {text!r} for {is_empty.sum()} of {len(is_empty)} rows, "
        f"first in row {is_empty.argmax()}, but unlabeled={marker!r} marks the "
        f"unlabeled rows. {_pass_marker(text, owner)} if an empty text means "
        "unlabeled, or name the class."
    )


def _too_few_classes(labels: Labels, marker: Any, owner: str) -> FitError:
    n_labeled = len(labels.labeled_codes)
    if n_labeled == 0:
        message = (
            "y labels no row: all "
            f"{len(labels.is_labeled)} rows carry the marker unlabeled={marker!r}, "
            "are missing or have weight 0. Label at least one row of each of 2 classes."
        )
    else:
        message = (
            "y must label rows of at least 2 classes, got 1 class "
            f"({plain(labels.classes[0])!r}) in {plural(n_labeled, 'labeled row')}. "
            "Label rows of another class; those of weight 0 do not count."
        )
        if not is_missing(marker):
            message += (
                f" {marker!r} marks a row as unlabeled. {_pass_marker(None, owner)} if "
                "it is one of your classes."
            )
    # Only classifiers are fitted to folds.
    if owner and labels.n_missing:
        message += _use_splitter(marker)
    return FitError(message)


def _use_splitter(marker: Any) -> str:
    """Return the way out where a fold of a y with missing values lacks a class."""
    if is_missing(marker):
        marker = None
    given = "" if repr(marker) == repr(UNLABELED) else f"unlabeled={marker!r}"
    return (
        " If this is a fold of a cross-validation: scikit-learn does not stratify "
        f"folds of a y with None; pass cv=SemiSupervisedKFold({given}) "
        "(iclda.model_selection), which trains on every class."
    )


def warn_of_unseen(known: AnyArray, classes: AnyArray, y: Any, unlabeled: Any) -> None:
    """Warn of labels, of those of y that are scored, that the fit had no row of."""
    is_unseen = ~np.isin(known, classes)
    if not is_unseen.any():
        return
    unseen = reprlib.repr(np.unique(known[is_unseen]).tolist())
    _, _, is_absent = _split(y, unlabeled, "y")
    hint = _use_splitter(plain(unlabeled)) if is_absent.any() else ""
    warn(
        f"score counts {plural(int(is_unseen.sum()), 'row')} as wrong, of classes that "
        f"no label of the fit has: {unseen}.{hint}"
    )


def encode_known_classes(y: Any, classes: AnyArray, unlabeled: Any) -> AnyArray:
    """Return the codes of y, all of whose entries must be among the classes."""
    present, is_marker = split_marker(y, unlabeled)
    if is_marker.any():
        raise ValueError(
            f"y marks {plural(is_marker.sum(), 'row')} as unlabeled ({unlabeled!r} or "
            "missing), and the class of every row is needed: leave them out."
        )
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    codes = [code_of.get(label, -1) for label in present.tolist()]
    if -1 in codes:
        raise unknown_class_error(present[codes.index(-1)], classes)
    return np.array(codes, dtype=int)


def unknown_class_error(label: Any, classes: AnyArray) -> ValueError:
    """Return the error for a label that is not one of the classes."""
    known = reprlib.repr(classes.tolist())
    return ValueError(f"y holds {plain(label)!r}, and the classes are {known}.")


def check_lengths(**given: Any) -> None:
    """Raise a ValueError unless all arguments, but None, have the same length."""
    counts = {}
    try:
        for name, values in given.items():
            if values is not None:
                # It counts rows of any container, and refuses a single number.
                counts[name] = _num_samples(values)
    except TypeError as error:
        raise ValueError(
            f"{error}: pass a list or an array with an entry for every row."
        ) from None
    if len(set(counts.values())) > 1:
        nouns = {"X": "rows", "y": "labels"}
        shown = ", ".join(
            f"{name} has {n} {nouns.get(name, 'entries')}" for name, n in counts.items()
        )
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {shown}."
        )


def check_weights(weights: Any, n_rows: int, name: str) -> Array | None:
    """Return weights as a 1-d array of non-negative numbers, one for each row."""
    if weights is None:
        return None
    if np.ma.is_masked(weights):
        raise ValueError(
            f"{name} has masked entries: fill them. Weight 0 leaves a row out."
        )
    # As in scikit-learn, one number is the weight of every row.
    if isinstance(weights, Real):
        weights = np.full(n_rows, weights)
    _check_numbers(weights, name)
    # NaN and infinity are found below, where the message has the row.
    array: Array = check_array(
        weights,
        dtype=np.float64,
        ensure_2d=False,
        ensure_min_samples=0,
        ensure_all_finite=False,
        input_name=name,
    )
    if array.shape != (n_rows,):
        raise ValueError(
            f"{name} must hold one number for each of the {n_rows} rows, got shape "
            f"{array.shape}."
        )
    is_valid = (array == 0) | ((array >= _MIN_WEIGHT) & (array <= _MAX_WEIGHT))
    if not is_valid.all():
        row = int(np.argmin(is_valid))
        raise ValueError(
            f"{name} must be 0, which leaves a row out, or between {_MIN_WEIGHT:g} and "
            f"{_MAX_WEIGHT:g}, got {array[row]} in row {row}."
        )
    if n_rows > 0 and not array.any():
        raise ValueError(
            f"{name} is zero for all {n_rows} rows: at least one must count."
        )
    return array


def _check_numbers(weights: Any, name: str) -> None:
    """Raise a ValueError that names the first entry that is not a number, if any."""
    entries = as_array(weights)
    # Arrays of numbers need not be looked at one by one.
    if entries.ndim != 1 or entries.dtype.kind not in "OSU":
        return
    for row, entry in enumerate(entries):
        try:
            float(entry)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} must hold numbers, got {plain(entry)!r} in row {row}: weight "
                "0 leaves a row out, and 1 counts it once."
            ) from None


def check_classes(values: AnyArray) -> None:
    """Raise a ValueError if values of y are not classes."""
    if values.dtype.kind in "OS" and values.size and not isinstance(values[0], str):
        raise _not_classes(values[0], "y")
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(
            "Unknown label type: y contains infinity, and must hold classes."
        )
    if values.size:
        # Pass the values twice: it warns if more than half of them are unique, which is
        # normal with few labels.
        check_classification_targets(np.concatenate([values, values]))


def split_marker(y: Any, unlabeled: Any, name: str = "y") -> tuple[AnyArray, AnyArray]:
    """Return the values of labeled rows, and a mask of the unlabeled rows.

    A row is unlabeled if its value is the marker, or is missing.
    """
    present, is_marker, _ = _split(y, unlabeled, name)
    return present, is_marker


def _split(y: Any, unlabeled: Any, name: str) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return what ``split_marker`` does, and a mask of the missing entries."""
    _check_marker(unlabeled)
    values, is_absent = _values_and_missing(y, name)
    if is_absent.any():
        is_marker = is_absent.copy()
        is_marker[~is_absent] = _equals_marker(values[~is_absent], unlabeled)
    else:
        # There may be very many rows: they are not copied.
        is_marker = _equals_marker(values, unlabeled)
    return _with_own_dtype(values[~is_marker], name), is_marker, is_absent


def _equals_marker(values: AnyArray, unlabeled: Any) -> AnyArray:
    """Return which values equal a marker; none do if it is a missing value."""
    no_value = np.zeros(len(values), dtype=bool)
    if is_missing(unlabeled):
        return no_value
    # Texts and numbers are never equal, and NumPy warns when it compares arrays of
    # them.
    are_texts = values.dtype.kind in "US"
    if values.dtype.kind == "O" or _is_text(unlabeled) == are_texts:
        return np.asarray(values == unlabeled, dtype=bool)
    return no_value


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes))


def _check_marker(unlabeled: Any) -> None:
    """Raise a ParameterError for a marker that is a list or an array."""
    # A text and an array without dimensions have a length, and are one value.
    is_scalar = _is_text(unlabeled) or getattr(unlabeled, "shape", None) == ()
    if hasattr(unlabeled, "__len__") and not is_scalar:
        raise ParameterError(
            "unlabeled must be one value, that of y in unlabeled rows, got "
            f"{unlabeled!r}.",
            parameter="unlabeled",
            value=unlabeled,
        )


def as_column(y: Any) -> Any:
    """Return y, of shape (n, 1) as a 1-d array with a warning."""
    is_matrix = len(shape_of(y)) == 2
    return column_or_1d(as_array(y), warn=True) if is_matrix else y


def shape_of(values: Any) -> tuple[int, ...]:
    """Return the shape of an array, a table or a list; () of anything else."""
    shape: tuple[int, ...]
    shape = values.shape if hasattr(values, "shape") else as_array(values).shape
    return shape


def _values_and_missing(y: Any, name: str) -> tuple[AnyArray, AnyArray]:
    """Return y as a 1-d array of its own dtype, and a mask of its missing entries.

    Values of missing entries are arbitrary.
    """
    is_null = _nulls_of(y)
    if is_null is None:
        # That a column should be 1-d is told once, by ``fit``: see ``as_column``.
        values = column_or_1d(as_array(y))
        return values, _missing_entries(values)
    # Converted as a whole, a column with nulls would become one of objects, or of
    # floats: only the values that are present keep their dtype.
    present = _present_values(y, is_null)
    values = np.empty(len(is_null), dtype=present.dtype)
    values[~is_null] = present
    # A value that is not null may be NaN.
    is_null[~is_null] = _missing_entries(present)
    return values, is_null


def _nulls_of(y: Any) -> AnyArray | None:
    """Return a mask of the nulls of a masked array or a column; None for others."""
    if np.ma.is_masked(y) and y.ndim == 1:
        return np.ma.getmaskarray(y).copy()
    # Columns of pandas.
    if hasattr(y, "isna") and getattr(y, "ndim", 1) == 1:
        return np.array(y.isna(), dtype=bool)
    if _drop_of(y) is not None:
        return np.array(np.asarray(y.is_null()), dtype=bool)
    return None


def _present_values(y: Any, is_null: AnyArray) -> AnyArray:
    """Return the values that are not null, in their own dtype."""
    drop = _drop_of(y)
    if drop is not None:
        return np.asarray(drop())
    # Nullable dtypes of pandas have one of NumPy behind them.
    dtype = getattr(y.dtype, "numpy_dtype", None)
    is_of_numpy = isinstance(dtype, np.dtype)
    return np.asarray(y[~is_null], dtype=dtype if is_of_numpy else None)


def _drop_of(y: Any) -> Any:
    """Return the method by which a column of polars or pyarrow drops its nulls."""
    return getattr(y, "drop_nulls", getattr(y, "drop_null", None))


def _not_classes(value: Any, name: str) -> ValueError:
    return ValueError(
        f"Unknown label type: {name} holds values of type {type(value).__name__}, for "
        f"example {reprlib.repr(plain(value))}, and must hold text, booleans or "
        "integers of at most 64 bits: write them as text, for example by str."
    )


def as_array(y: Any) -> AnyArray:
    try:
        values = np.asarray(y)
    except ValueError:
        # Entries of different lengths.
        values = np.asarray(y, dtype=object)
    if values.dtype.kind == "T":
        # scikit-learn does not know NumPy's texts of variable length.
        return values.astype(object)
    # NumPy writes NaN and None among strings as the strings 'nan' and 'None'.
    if values.dtype.kind in "US" and isinstance(y, (list, tuple)):
        objects = np.asarray(y, dtype=object)
        if not all(isinstance(label, str) for label in objects.flat):
            return objects
    return values


def _missing_entries(values: AnyArray) -> AnyArray:
    if values.dtype.kind == "O":
        return np.fromiter(map(is_missing, values), dtype=bool, count=len(values))
    # Integers, booleans and texts are never missing.
    if values.dtype.kind in "biuSU":
        return np.zeros(len(values), dtype=bool)
    # NaN and NaT differ from themselves.
    return np.asarray(values != values)


def _with_own_dtype(present: AnyArray, name: str) -> AnyArray:
    """Convert objects that are all numbers or all booleans to their dtype.

    Strings stay objects.
    """
    if present.dtype.kind != "O" or present.size == 0:
        return present
    # NumPy would turn numbers among texts into texts.
    is_string = [isinstance(value, str) for value in present]
    if all(is_string):
        return present
    if any(is_string):
        text = plain(present[is_string.index(True)])
        other = plain(present[is_string.index(False)])
        raise ValueError(
            f"{name} mixes text and other values, for example {text!r} and {other!r}: "
            "use one kind."
        )
    try:
        array = np.array(present.tolist())
    except ValueError:
        # Lists or tuples of different lengths.
        raise _not_classes(present[0], name) from None
    if array.ndim > 1:
        raise _not_classes(present[0], name)
    return array


# Shares of classes.


def resolve_priors(priors: Any, classes: AnyArray) -> Array | None:
    """Return priors in the order of ``classes``; None if they are to be estimated."""
    if priors is None:
        return None
    values = _in_order("priors", priors, classes, shape=())
    if not np.all(values >= 0):
        rule = "must be at least 0, got {values} for the classes {known}"
        raise _share_error(
            "priors", priors, rule, values=values.tolist(), known=classes.tolist()
        )
    total = float(values.sum())
    if not np.isclose(total, 1, rtol=0, atol=_PRIORS_TOLERANCE):
        rule = (
            "must add up to 1, got {values}, which add up to {total:.6g}: divide them "
            "by that"
        )
        raise _share_error("priors", priors, rule, values=values.tolist(), total=total)
    return values


def resolve_proportions(
    proportions: Any, classes: AnyArray, labeled_shares: Array
) -> Array | None:
    """Return least and largest shares (K, 2) of the classes in the unlabeled weight.

    None leaves them free, as do "free" and, until they are learned, "auto".
    ``labeled_shares`` are those of the classes in the labeled weight.
    """
    if proportions is None or _is_name(proportions, FREE):
        return None
    if len(classes) > _MAX_CLASSES_WITH_PROPORTIONS:
        rule = (
            "can be given for at most {most:,} classes, and there are {n:,}: leave "
            "them out"
        )
        raise _share_error(
            "proportions",
            proportions,
            rule,
            most=_MAX_CLASSES_WITH_PROPORTIONS,
            n=len(classes),
        )
    # A name stands for shares that follow from the labels, or for none yet.
    if _is_name(proportions, LEARNED):
        return None
    if _is_name(proportions, LABELED):
        return np.column_stack([labeled_shares, labeled_shares])
    if _is_name(proportions, EQUAL):
        return np.full((len(classes), 2), 1 / len(classes))
    low, high = _in_order("proportions", proportions, classes, shape=(2,)).T
    _check_bounds(proportions, low, high)
    # Bounds that exclude nothing leave the shares free.
    if (low == 0).all() and (high == 1).all():
        return None
    return _tightened(low, high)


def _check_bounds(proportions: Any, low: Array, high: Array) -> None:
    """Raise a ParameterError unless positive shares lie between the bounds."""
    # Comparisons with NaN are false.
    if not ((low >= 0) & (high > 0) & (low <= 1) & (high <= 1)).all():
        rule = (
            "must be positive and at most 1, got {given!r}; only the least of a pair "
            "may be 0"
        )
        raise _share_error("proportions", proportions, rule)
    if not (low <= high).all():
        rule = "must have the least of a pair first, got {given!r}"
        raise _share_error("proportions", proportions, rule)
    least = low.sum()
    largest = high.sum()
    if least > 1 + _PROPORTIONS_TOLERANCE or largest < 1 - _PROPORTIONS_TOLERANCE:
        sums = "the least add up to {low:.8g}, the largest to {high:.8g}"
        rule = f"must add up to 1, got {{given!r}}: {sums}"
        raise _share_error("proportions", proportions, rule, low=least, high=largest)


def _is_name(proportions: Any, name: str) -> bool:
    return isinstance(proportions, str) and proportions == name


def _in_order(
    name: str, given: Any, classes: AnyArray, shape: tuple[int, ...]
) -> Array:
    """Return numbers, or pairs of them, of every class in the order of the classes."""
    known = classes.tolist()
    ordered = _entries_in_order(name, given, known)
    values = []
    try:
        for entry in ordered:
            numbers = np.asarray(entry, dtype=np.float64)
            # A number in place of a pair is both of its bounds.
            values.append(np.broadcast_to(numbers, shape))
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


def _entries_in_order(name: str, given: Any, known: list[Any]) -> Any:
    """Return what was given for every class, in the order of the known classes."""
    if isinstance(given, Set):
        rule = "must have an order, got the set {given!r}: pass a list"
        raise _share_error(name, given, rule)
    if not isinstance(given, Mapping):
        return given
    if set(given) != set(known):
        rule = "must name the classes with labeled rows, {known}, got {keys}"
        keys = [plain(key) for key in given]
        raise _share_error(name, given, rule, known=known, keys=keys)
    return [given[label] for label in known]


def _tightened(low: Array, high: Array) -> Array:
    """Tighten the intervals of shares by what the other classes leave to each class.

    Returns the bounds (K, 2). If every class has a single share, these add up to 1.
    """
    others_low = low.sum() - low
    others_high = high.sum() - high
    low = np.maximum(low, 1 - others_high)
    high = np.minimum(high, 1 - others_low)
    # An interval as narrow as the tolerance is one share: rounding must not leave a
    # least share above the largest one.
    is_point = high - low <= _PROPORTIONS_TOLERANCE
    middle = (low + high) / 2
    low = np.where(is_point, middle, low)
    high = np.where(is_point, middle, high)
    total = low.sum() if is_point.all() else 1.0
    return np.column_stack([low, high]) / total


def _share_error(name: str, given: Any, rule: str, **values: Any) -> ParameterError:
    # NumPy's older style writes 0.3, not np.float64(0.3).
    with np.printoptions(legacy="1.25"):
        message = say(f"{{@{name}}} {rule}.", given=given, **values)
    return ParameterError(message, parameter=name, value=given)
