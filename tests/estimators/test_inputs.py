"""Tables of pandas, polars and pyarrow: names are kept and checked, values as given."""

import re
import warnings
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from iclda import AutoLDA, SelfLearningLDA, SupervisedLDA
from tests.helpers.changes import assert_same_fit
from tests.helpers.problems import every_classifier, semi_supervised

NAMES = ["width", "height", "depth"]

TRUE = np.arange(50) % 2
X = np.random.default_rng(8).standard_normal((50, 3)) + 2.0 * TRUE[:, None] * [
    1.0,
    -1.0,
    0.0,
]
Y = np.where(np.arange(50) < 16, TRUE, -1)


# Tables in.


TABLES = {
    "pandas": lambda a: pd.DataFrame(a, columns=NAMES),
    "pandas, other index": lambda a: pd.DataFrame(
        a, columns=NAMES, index=range(99, 99 - len(a), -1)
    ),
    "pandas nullable": lambda a: pd.DataFrame(a, columns=NAMES).astype("Float64"),
    "pandas mixed": lambda a: pd.DataFrame(a, columns=NAMES).astype(
        {"depth": "float32"}
    ),
    "polars": lambda a: pl.DataFrame(a, schema=NAMES),
    "pyarrow": lambda a: pa.table(dict(zip(NAMES, a.T, strict=True))),
    "pyarrow in chunks": lambda a: pa.concat_tables(
        [
            pa.table(dict(zip(NAMES, part.T, strict=True)))
            for part in np.array_split(a, 3)
        ]
    ),
    "pyarrow batch": lambda a: pa.record_batch(dict(zip(NAMES, a.T, strict=True))),
    "pandas on pyarrow": lambda a: pd.DataFrame(a, columns=NAMES).astype(
        "float64[pyarrow]"
    ),
}
COLUMNS = {
    "pandas": pd.Series,
    "pandas, other index": lambda a: pd.Series(a, index=range(99, 99 - len(a), -1)),
    "pandas nullable": lambda a: pd.Series(a, dtype="Int64"),
    "pandas mixed": lambda a: pd.Series(a, dtype="category"),
    "polars": pl.Series,
    "pyarrow": pa.array,
    "pyarrow in chunks": lambda a: pa.chunked_array(np.array_split(a, 3)),
    "pyarrow batch": pa.array,
    "pandas on pyarrow": lambda a: pd.Series(a, dtype="int64[pyarrow]"),
}
each_library = pytest.mark.parametrize(
    "kind", ["pandas", "polars", "pyarrow", "pyarrow batch"]
)


def select(table, names):
    return table[names] if isinstance(table, pd.DataFrame) else table.select(names)


@every_classifier
@pytest.mark.parametrize("kind", TABLES)
def test_34_tables_keep_their_names_and_change_no_result(classifier, kind):
    table = TABLES[kind](X)
    column = COLUMNS[kind](Y)
    model = classifier().fit(table, column)
    assert_array_equal(model.feature_names_in_, NAMES)
    values = np.float32(X).astype(float) if kind == "pandas mixed" else X
    values = np.column_stack([X[:, :2], values[:, 2]])
    expected = classifier().fit(values, Y)
    assert_same_fit(model, expected, 1e-9)
    assert_allclose(
        model.predict_proba(table), expected.predict_proba(values), rtol=0, atol=1e-8
    )
    assert model.score(table, column) == expected.score(values, Y)


@every_classifier
@each_library
def test_34_other_columns_than_those_of_fit_are_refused(classifier, kind):
    model = classifier().fit(TABLES[kind](X), Y)
    shuffled = select(TABLES[kind](X), ["height", "width", "depth"])
    with pytest.raises(ValueError, match=r"feature names should match.*\n.*same order"):
        model.predict(shuffled)
    renamed = pd.DataFrame(X, columns=["width", "height", "weight"])
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- weight"):
        model.predict(renamed)
    with pytest.raises(ValueError, match=r"now missing:\n- depth"):
        model.predict(select(TABLES[kind](X), ["width", "height"]))
    with pytest.raises(ValueError, match="feature names should match"):
        classifier().fit(TABLES[kind](X), Y, X_unlabeled=shuffled)


@semi_supervised
@pytest.mark.parametrize(
    ("kind", "other"),
    [("pandas", "polars"), ("pyarrow", "pandas"), ("polars", "pyarrow batch")],
)
def test_unlabeled_rows_may_come_in_another_table_than_x(classifier, kind, other):
    model = classifier().fit(TABLES[kind](X), Y, X_unlabeled=TABLES[other](1 - X))
    assert_array_equal(model.feature_names_in_, NAMES)
    assert_same_fit(model, classifier().fit(X, Y, X_unlabeled=1 - X), 1e-9)


@semi_supervised
def test_unlabeled_rows_without_names_are_taken_in_order_with_a_warning(classifier):
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model = classifier().fit(TABLES["pandas"](X), Y, X_unlabeled=1 - X)
    assert_same_fit(model, classifier().fit(X, Y, X_unlabeled=1 - X), 1e-9)


MISSING = {
    "pandas": lambda a: pd.DataFrame(a, columns=NAMES),
    "pandas nullable": lambda a: pd.DataFrame(a, columns=NAMES).convert_dtypes(),
    "pandas on pyarrow": lambda a: pd.DataFrame(a, columns=NAMES).astype(
        "float64[pyarrow]"
    ),
    "polars": lambda a: pl.DataFrame(a, schema=NAMES).fill_nan(None),
    "pyarrow": lambda a: pl.DataFrame(a, schema=NAMES).fill_nan(None).to_arrow(),
    "pyarrow batch": lambda a: (
        pl.DataFrame(a, schema=NAMES)
        .fill_nan(None)
        .to_arrow()
        .combine_chunks()
        .to_batches()[0]
    ),
}


@pytest.mark.parametrize("table", MISSING.values(), ids=MISSING)
def test_20_a_null_of_any_table_is_named_by_row_and_column(table):
    rows = X.copy()
    rows[7, 1] = np.nan
    with pytest.raises(
        ValueError, match=r"contains NaN, first in row 7, column 'height'"
    ):
        SelfLearningLDA().fit(table(rows), Y)


@pytest.mark.parametrize(
    "kind", [pa.null(), pa.bool_(), pa.decimal128(5, 2), pa.string()], ids=str
)
def test_20_a_null_among_what_pyarrow_makes_objects_of_is_named(kind):
    model = SelfLearningLDA().fit(pa.table(dict(zip(NAMES, X.T, strict=True))), Y)
    table = pa.table(
        {"width": X[:, 0], "height": pa.nulls(len(X), kind), "depth": X[:, 2]}
    )
    for use in (
        lambda: SelfLearningLDA().fit(table, Y),
        lambda: model.predict_proba(table),
    ):
        with pytest.raises(
            ValueError, match=r"contains NaN, first in row 0, column 'height'"
        ):
            use()


INTEGERS = {
    "pandas": lambda a: pd.DataFrame(a, columns=NAMES).astype("Int16"),
    "pandas on pyarrow": lambda a: pd.DataFrame(a, columns=NAMES).astype(
        "int8[pyarrow]"
    ),
    "polars": lambda a: pl.DataFrame(a, schema=NAMES).cast(
        {"width": pl.UInt8, "height": pl.Int8, "depth": pl.Decimal(10, 2)}
    ),
    "pyarrow": lambda a: pl.DataFrame(a, schema=NAMES).cast(pl.Int8).to_arrow(),
}


@pytest.mark.parametrize("table", INTEGERS.values(), ids=INTEGERS)
def test_columns_of_integers_and_decimals_are_numbers(table):
    rows = np.clip(np.round(20 * X), -100, 100)
    rows[:, 0] = np.abs(rows[:, 0])
    model = SelfLearningLDA().fit(table(rows), Y)
    assert_same_fit(model, SelfLearningLDA().fit(rows, Y), 1e-10)


UNREAD = {
    "polars LazyFrame": lambda: TABLES["polars"](X).lazy(),
    "pyarrow Dataset": lambda: pyarrow.dataset.dataset(TABLES["pyarrow"](X)),
}


@pytest.mark.parametrize("table", UNREAD.values(), ids=UNREAD)
def test_34_a_table_that_is_not_read_yet_is_read_by_the_fit(table):
    expected = SelfLearningLDA().fit(TABLES["pandas"](X), Y)
    model = SelfLearningLDA().fit(table(), Y)
    assert_same_fit(model, expected, 1e-13)
    assert model.feature_names_in_.tolist() == expected.feature_names_in_.tolist()
    assert model.score(table(), Y) == expected.score(TABLES["pandas"](X), Y)


@pytest.mark.parametrize("table", UNREAD.values(), ids=UNREAD)
def test_classes_that_are_not_read_yet_are_refused_with_the_way_to_read_them(table):
    with pytest.raises(
        TypeError, match=r"y is a .*, which is not read yet: pass what it reads"
    ):
        SelfLearningLDA().fit(X, table())


def test_36_what_can_be_read_only_once_is_refused_with_the_way_out():
    reader = TABLES["pyarrow"](X).to_reader
    model = SelfLearningLDA().fit(TABLES["pandas"](X), Y)
    with pytest.raises(
        TypeError, match=r"X is a pyarrow RecordBatchReader, .*read_all\(\)"
    ):
        SelfLearningLDA().fit(reader(), Y)
    with pytest.raises(TypeError, match="X_unlabeled is a pyarrow RecordBatchReader"):
        SelfLearningLDA().fit(TABLES["pandas"](X), Y, X_unlabeled=reader())
    with pytest.raises(TypeError, match="X is a pyarrow RecordBatchReader"):
        model.predict(reader())


DAYS = [date(2020, 1, 1) + timedelta(day) for day in range(50)]
# Columns of tables that hold no real numbers, and what the error says of them.
STRANGE = {
    "polars enumeration": (pl.Series(["a"] * 50, dtype=pl.Enum(["a"])), "holds text"),
    "polars date": (pl.Series(DAYS), "2020-01-01.*real number"),
    "polars array": (
        pl.Series([[1, 2]] * 50, dtype=pl.Array(pl.Int8, 2)),
        "real number",
    ),
    "polars record": (pl.DataFrame({"a": range(50)}).to_struct(), "real number"),
    "pyarrow dictionary": (pa.array(["a"] * 50).dictionary_encode(), "holds text"),
    "pyarrow list": (pa.array([[1, 2]] * 50), "real number"),
    "pandas period": (
        pd.Series(pd.period_range("2020", periods=50, freq="D")),
        "real number",
    ),
    "pandas text": (pd.Series(["a"] * 50, dtype="string[pyarrow]"), "holds text"),
}


@pytest.mark.parametrize(
    ("kind", "column", "says"), [(k, *v) for k, v in STRANGE.items()], ids=STRANGE
)
def test_23_a_column_without_real_numbers_is_named_whatever_the_table(
    kind, column, says
):
    if isinstance(column, pd.Series):
        table = TABLES["pandas"](X).assign(odd=column)
    elif isinstance(column, pl.Series):
        table = TABLES["polars"](X).with_columns(column.alias("odd"))
    else:
        table = TABLES["pyarrow"](X).append_column("odd", column)
    with pytest.raises(
        (ValueError, TypeError), match=rf"(?s)X, column 'odd'.*{says}|{says}.*'odd'"
    ):
        SelfLearningLDA().fit(table, Y)


# Tables out.


@every_classifier
@each_library
@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_transform_gives_the_table_that_is_asked_for(classifier, kind, output):
    table = TABLES[kind](X)
    fitted = classifier().set_output(transform=output).fit(table, Y)
    projected = fitted.transform(table)
    assert type(projected) is {"pandas": pd.DataFrame, "polars": pl.DataFrame}[output]
    assert list(projected.columns) == fitted.get_feature_names_out().tolist()
    plain = fitted.set_output(transform="default").transform(table)
    assert type(plain) is np.ndarray
    assert_array_equal(projected.to_numpy(), plain)


def polars_column(rows):
    return pl.DataFrame(rows, orient="row")


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, polars_column, list])
@pytest.mark.parametrize("classifier", [AutoLDA, SupervisedLDA])
def test_a_column_vector_of_labels_is_told_once(classifier, kind):
    column = [[label] for label in Y.tolist()]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fitted = classifier().fit(X, kind(column))
    assert [each.category for each in told] == [DataConversionWarning]
    assert_array_equal(fitted.predict(X), classifier().fit(X, Y).predict(X))


def test_two_marks_of_unlabeled_rows_are_told_once():
    y = np.where(np.arange(50) == np.argmin(Y), np.nan, Y)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        AutoLDA().fit(X, y)
    assert [str(each.message).count("all count as unlabeled") for each in told] == [1]


ROWS_AS = {
    "array": np.asarray,
    "frame": pd.DataFrame,
    "list": np.ndarray.tolist,
    "sparse": sparse.csr_array,
    "text": lambda rows: "rows.npy",
    "Path": lambda rows: Path("rows.npy"),
    "LazyFrame": lambda rows: pl.DataFrame(rows).lazy(),
}


@pytest.mark.parametrize("kind", ROWS_AS)
def test_unlabeled_rows_by_position_are_told_to_be_named(kind):
    is_labeled = Y >= 0
    labeled, unlabeled = X[is_labeled], X[~is_labeled]
    has_shape = kind in ("array", "frame", "list", "sparse")
    got = re.escape(f"shape {unlabeled.shape}") if has_shape else r"\w+"
    message = rf"got {got}\. Unlabeled rows are passed by name: X_unlabeled="
    with pytest.raises(ValueError, match=message):
        AutoLDA().fit(labeled, Y[is_labeled], ROWS_AS[kind](unlabeled))


def test_a_column_vector_of_weights_is_told_to_be_one_dimensional():
    with pytest.raises(ValueError, match=r"got shape \(50, 1\)\. Pass a 1-d array\.$"):
        AutoLDA().fit(X, Y, np.ones((50, 1)))
