"""Column types: how each is recognized and encoded; the pipeline of a table.

A column type is a row of ``COLUMN_TYPES``: a function that recognizes a pandas column,
an encoder that turns it into numbers, and the words of messages. Reading, fitting,
predicting and reporting all use this table, so that a new type is added here and, if it
needs an encoder of its own, in ``encoders``. The kind of a column is the name of its
type. A column that no linear model can learn from is refused, with the way out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from .._estimators.outside import OutsideClassifier
from .._messages import ColumnError, Hint, say
from .._rows.network_features import MANY_FEATURES, are_network_features
from .._system import versions
from ..methods import DEFAULT_ON_NETWORKS, DEFAULT_ON_TABLES
from .cells import is_boolean, number_in, texts_of, value_types
from .encoders import (
    AMOUNT,
    BOOLEAN,
    CATEGORY,
    DATE,
    NUMBER,
    WRITTEN_DATE,
    AmountEncoder,
    CategoryEncoder,
    ColumnScaler,
    DateEncoder,
    NumberEncoder,
    WrittenDateEncoder,
)
from .written_values import amount_form, date_form

# Columns that an error describes; further ones are counted.
_MAX_DESCRIBED_COLUMNS = 5
# The step of the columns that may belong to a vector.
_NUMBERS = "numbers"
# A column of a vector, such as embedding_12.
_NUMBERED_NAME = re.compile(r"(.*?)\d+")
# What rows are taken for, and its opposite, with the method for that: those of a table
# and features of a network.
_TAKEN_FOR = {
    False: ("a table", "features of a network", DEFAULT_ON_NETWORKS),
    True: ("features of a network, numbers in one unit", "a table", DEFAULT_ON_TABLES),
}
# Up to this many different texts are categories, however few rows there are.
_CATEGORIES_IN_ANY_TABLE = 20


@dataclass(frozen=True)
class ColumnType:
    """A type of column. A new one is a row of ``COLUMN_TYPES`` and perhaps an encoder.

    Attributes
    ----------
    name : str
        The name in model files.
    holds : callable
        Tells whether a pandas column is of this type. Columns are those that
        ``frames.to_pandas_frame`` makes of what Arrow infers: text is of dtype object,
        stripped, with None for empty cells.
    nouns : tuple of str
        Singular and plural of what a column is, as in "1 number, 2 categories".
    step : str
        Name of the step of the ``ColumnTransformer``, a plural as in "2 of numbers".
        Types of one step share an encoder.
    encoder : transformer
        Unfitted; it is cloned.
    arrow : str
        Arrow type, as Arrow writes it, of the cells of a CSV file for prediction. Arrow
        refuses cells that it cannot read as this type; it reads any text as "string",
        of which the encoder has to refuse what is not of the column type.
    dtypes : str
        Kinds of NumPy dtypes that prediction accepts.
    cells : str
        What the cells hold, as in "must hold numbers".
    """

    name: str
    holds: Callable[[Any], bool]
    nouns: tuple[str, str]
    step: str
    encoder: Any
    arrow: str
    dtypes: str
    cells: str


class Reason(NamedTuple):
    """Why nothing can be learned from a column.

    Attributes
    ----------
    holds : str
        What the column holds, as it follows "holds".
    way_out : str
        What to do about it; empty if there is nothing to do but to leave it out.
    is_text : bool
        Whether it holds texts that hardly repeat.
    is_number : bool
        Whether it holds numbers but for a few cells, so that much is lost with it.
    """

    holds: str
    way_out: str = ""
    is_text: bool = False
    is_number: bool = False

    def described(self, name: str) -> str:
        """Say what the column of this name holds, and what to do about it."""
        advice = f": {self.way_out}" if self.way_out else ""
        return f"Column {name!r} holds {self.holds}{advice}."

    def in_note(self) -> str:
        """Say what a column that was left out holds, and what to do to use it."""
        # A note on several columns of text says once what to do about them.
        advice = f" ({self.way_out})" if self.way_out and not self.is_text else ""
        return f"holds {self.holds}{advice}"


def _is_number(series: Any) -> bool:
    if series.dtype.kind in "iuf":
        return True
    # Python counts True among the integers.
    types = value_types(series) - {bool, np.bool_}
    return bool(types) and all(
        issubclass(kind, (int, float, np.number)) for kind in types
    )


def _is_category(series: Any) -> bool:
    if str(series.dtype) == "category":
        return True
    if series.dtype.kind != "O" or is_boolean(series) or _is_number(series):
        return False
    return _reason_against(series) is None


def _is_date(series: Any) -> bool:
    """Return whether a column holds dates without a time zone."""
    dtype = str(series.dtype)
    # With a time zone it reads "datetime64[us, UTC]".
    return dtype.startswith("datetime64") and "," not in dtype


def _is_amount(series: Any) -> bool:
    return _is_text(series) and amount_form(texts_of(series)) is not None


def _is_written_date(series: Any) -> bool:
    return _is_text(series) and date_form(texts_of(series)) is not None


def _is_text(series: Any) -> bool:
    return series.dtype.kind == "O" and value_types(series) == {str}


# The first type that a column holds is taken. Categories are any text that repeats: a
# type of certain texts has to come before them.
COLUMN_TYPES = [
    ColumnType(
        NUMBER,
        _is_number,
        nouns=("number", "numbers"),
        step=_NUMBERS,
        encoder=NumberEncoder(),
        arrow="double",
        dtypes="biuf",
        cells="numbers",
    ),
    ColumnType(
        BOOLEAN,
        is_boolean,
        nouns=("yes-or-no column", "yes-or-no columns"),
        step=_NUMBERS,
        encoder=NumberEncoder(),
        arrow="bool",
        dtypes="biuf",
        cells="true or false",
    ),
    ColumnType(
        AMOUNT,
        _is_amount,
        nouns=("number with signs", "numbers with signs"),
        step="numbers with signs",
        encoder=AmountEncoder(),
        arrow="string",
        dtypes="iufO",
        cells="numbers such as $1,889.50",
    ),
    ColumnType(
        WRITTEN_DATE,
        _is_written_date,
        nouns=("written date", "written dates"),
        step="written dates",
        encoder=WrittenDateEncoder(),
        arrow="string",
        dtypes="MO",
        cells="dates such as 26/11/2007",
    ),
    ColumnType(
        CATEGORY,
        _is_category,
        nouns=("category", "categories"),
        step="categories",
        encoder=CategoryEncoder(),
        arrow="string",
        dtypes="biufO",
        cells="text",
    ),
    ColumnType(
        DATE,
        _is_date,
        nouns=("date", "dates"),
        step="dates",
        encoder=DateEncoder(),
        arrow="timestamp[us]",
        dtypes="M",
        cells="dates such as 2020-03-12",
    ),
]


def type_named(name: str) -> ColumnType:
    """Return the column type of this name; ValueError if there is none.

    A model file of a later version may name types that this version does not have.
    """
    for each in COLUMN_TYPES:
        if each.name == name:
            return each
    known = ", ".join(repr(each.name) for each in COLUMN_TYPES)
    raise ValueError(
        f"There is no column type {name!r} in iclda {versions()['iclda']}, which has "
        f"{known}: install the version that fitted the model, or fit it again."
    )


def kinds_of(features: Any) -> dict[str, str]:
    """Name of the type of every column; ColumnError if some column has none."""
    kinds, reasons = kinds_and_reasons(features)
    if reasons:
        raise _unusable_error(reasons)
    return kinds


def _unusable_error(reasons: dict[str, Reason]) -> ColumnError:
    """Make the error for columns of no type, with the way out."""
    names = list(reasons)[:_MAX_DESCRIBED_COLUMNS]
    described = " ".join(reasons[name].described(name) for name in names)
    n_more = len(reasons) - len(names)
    more = f" {n_more} more columns cannot be used." if n_more else ""
    text = say(
        "{described}{more} Or leave out {what}: {drop}.",
        described=described,
        more=more,
        what="the column" if len(reasons) == 1 else "all such columns",
        drop=Hint("drop", list(reasons)),
    )
    return ColumnError(text, column=names[0])


def kinds_and_reasons(features: Any) -> tuple[dict[str, str], dict[str, Reason]]:
    """Return the types of the usable columns, and why the others are of no use."""
    if not hasattr(features, "iloc"):
        class_name = f"{type(features).__module__}.{type(features).__name__}"
        raise TypeError(
            f"features must be a pandas frame, got {class_name}: read_table gives one, "
            "and to_pandas() of other frames."
        )
    kinds: dict[str, str] = {}
    reasons: dict[str, Reason] = {}
    for name, count in Counter(features.columns).items():
        if count > 1 or not isinstance(name, str):
            raise ColumnError(
                f"Column names must be text and occur once, got {name!r}: rename it, "
                "for example with features.columns = features.columns.astype(str).",
                column=name,
            )
        series = features[name]
        kind = next((each.name for each in COLUMN_TYPES if each.holds(series)), None)
        if kind is None:
            no_values = Reason("no values that can be used")
            reasons[name] = _reason_against(series) or no_values
        else:
            kinds[name] = kind
    return kinds, reasons


def _reason_against(series: Any) -> Reason | None:
    """Return why nothing can be learned from a column; None if something can."""
    present = series.dropna()
    usable = (str, bool, int, float, np.bool_, np.integer, np.floating)
    # A list, a time, a date with a time zone, or an object.
    odd = next((value for value in present if not isinstance(value, usable)), None)
    if odd is not None:
        return Reason(
            "values that are neither numbers nor text nor dates without a time zone, "
            f"for example {odd}",
            way_out="write dates as 2020-03-12, and times as numbers, for example of "
            "hours",
        )

    texts = [text for text in texts_of(present) if text is not None]
    not_numbers = [text for text in texts if number_in(text) is None]
    # Mostly numbers: the others are marks of gaps or typing errors.
    if texts and len(not_numbers) <= len(texts) / 2:
        example = not_numbers[0] if not_numbers else texts[0]
        return Reason(
            f"numbers, but text in {len(not_numbers)} of {len(texts)} rows, for "
            f"example {example!r}",
            way_out="empty these cells if the number is unknown, or write it with "
            "digits and a decimal point alone",
            is_number=True,
        )

    # Texts that hardly repeat name rows, not categories.
    n_distinct = len(set(texts))
    are_all_distinct = 2 < n_distinct == len(texts)
    if are_all_distinct or n_distinct > max(_CATEGORIES_IN_ANY_TABLE, len(texts) / 2):
        return Reason(
            f"{n_distinct} different texts in {len(texts)} rows, for example "
            f"{texts[0]!r}",
            way_out="names, ids and free text say nothing about other rows; group "
            "them into categories, write numbers with digits and a decimal point alone "
            "and dates as 2020-03-12",
            is_text=True,
        )
    return None


def preprocessing(features: Any) -> ColumnTransformer:
    """Make an unfitted transformer that turns the columns of a table into numbers.

    Numbers and booleans are kept, and their gaps filled with the median; a column with
    gaps in at least 1 of 10 rows, and in at least 10 rows, gets an indicator column.
    Categories become columns of 0 and 1, one for each but the most frequent; rare
    categories are pooled, and unknown ones have no influence. Dates become year, month
    and weekday, as far as these vary. Numbers such as $1,889.50 and dates such as
    26/11/2007 are read as what they mean. All this is learned by ``fit``, so that it
    can be done inside a fold. Features are named after the columns of the table:
    "color = red", "age is empty", "visit month".

    Parameters
    ----------
    features : DataFrame
        The table, without its target. Kinds and names of columns are taken from it;
        nothing that is learned from it is kept.

    Returns
    -------
    transformer : ColumnTransformer
        Takes frames with these columns, in any order, and gives frames of numbers.
    """
    columns_by_step: dict[str, list[str]] = {}
    for name, kind in kinds_of(features).items():
        columns_by_step.setdefault(type_named(kind).step, []).append(name)
    encoder_by_step = {each.step: each.encoder for each in COLUMN_TYPES}
    steps = []
    for step, encoder in encoder_by_step.items():
        if step in columns_by_step:
            names = columns_by_step[step]
            steps.append((step, _encoder_for(encoder, features[names]), names))
    # Numbers come first, whatever the order of the types: ``_vectors_of`` counts on it.
    steps.sort(key=lambda step: step[0] != _NUMBERS)
    transformer = ColumnTransformer(steps, verbose_feature_names_out=False)
    return transformer.set_output(transform="pandas")


def _encoder_for(encoder: Any, columns: Any) -> Any:
    """Return an unfitted encoder that knows in which form its columns are written."""
    copied = clone(encoder)
    # An encoder of scikit-learn has no such forms.
    if hasattr(copied, "with_forms_of"):
        copied.with_forms_of(columns)
    return copied


def pipeline(encoder: Any, estimator: Any, *, scale: bool | None = None) -> Pipeline:
    """Make a pipeline of encoder and classifier, in which None marks unlabeled rows.

    Parameters
    ----------
    encoder : transformer or None
        As ``preprocessing`` returns it. None: the rows are numbers, to be used as they
        are.
    estimator : classifier
        It is cloned, and ``unlabeled`` of the clone is None, the mark that tables use.
    scale : bool, default=None
        Whether there is a step that divides columns of numbers by their standard
        deviation, and 64 or more numbered columns, such as embedding_0 and so on, by
        one number; columns of 0 and 1 stay as they are. None scales where it matters:
        if there are such numbered columns, or shrinkage, which has to affect all
        columns equally. A classifier whose own view standardizes needs no such step.
        For methods of scikit-learn all columns are scaled.

    Returns
    -------
    pipeline : Pipeline
        Unfitted.
    """
    estimator = clone(estimator)
    if "unlabeled" in estimator.get_params():
        estimator.set_params(unlabeled=None)
    if encoder is None:
        return Pipeline([("classify", estimator)])
    is_outside = isinstance(estimator, OutsideClassifier)
    step = scaler(encoder, keep_indicators=not is_outside)
    if scale is None:
        scale = is_outside or bool(step.vectors) or _depends_on_units(estimator)
    steps = [("encode", clone(encoder))]
    if scale:
        steps.append(("scale", step.set_output(transform="pandas")))
    return Pipeline([*steps, ("classify", estimator)])


def _depends_on_units(estimator: Any) -> bool:
    """Return whether a classifier shrinks columns in the units that they have."""
    parameters = estimator.get_params()
    has_view = parameters.get("view") is not None
    return parameters.get("shrinkage") is not None and not has_view


def takes_for_network(encoder: Any, encoded: Any) -> bool:
    """Return whether encoded rows are taken for features of a network.

    Classifiers decide by the same rule. The columns of a vector have one unit in their
    pipelines, and all others the same.
    """
    step = scaler(encoder)
    rows = step.fit_transform(encoded) if step.vectors else encoded
    return are_network_features(np.asarray(rows, dtype=np.float64))


def taken_for(*, is_network: bool, parameter: str = "method") -> str:
    """Say what rows are taken for, and which method to name if they are not.

    ``parameter`` is the one that names it.
    """
    what, other, default = _TAKEN_FOR[is_network]
    hint = Hint(parameter, default)
    return say(
        "{what} (if they are {other}, use {hint})", what=what, other=other, hint=hint
    )


def scaler(encoder: Any, *, keep_indicators: bool = True) -> ColumnScaler:
    """Return an unfitted scaler of the columns that an encoder makes."""
    return ColumnScaler(_vectors_of(encoder), keep_indicators)


def _vectors_of(encoder: Any) -> list[list[int]]:
    """Return the positions of the numbered columns of every vector."""
    steps = getattr(encoder, "transformers", ())
    # Encoded numbers come first, so that positions in the step are positions in X.
    if not steps or steps[0][0] != _NUMBERS:
        return []
    _, _, number_columns = steps[0]
    positions_by_stem: dict[str, list[int]] = {}
    for position, name in enumerate(number_columns):
        numbered = _NUMBERED_NAME.fullmatch(name)
        if numbered is not None:
            positions_by_stem.setdefault(numbered[1], []).append(position)
    return [
        positions
        for positions in positions_by_stem.values()
        if len(positions) >= MANY_FEATURES
    ]
