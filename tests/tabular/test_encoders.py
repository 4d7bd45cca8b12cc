"""Encoders: gaps, rare and unknown categories, dates, flags."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from iclda.methods import find_method
from iclda.model_files import column_kinds
from iclda.tabular import (
    CategoryEncoder,
    NumberEncoder,
    preprocessing,
    read_table,
)
from iclda.tabular.fit import fit_table
from iclda.tabular.predict import predict_file


def frame(**columns):
    return pd.DataFrame(columns)


def encode(encoder, X):
    table = encoder.set_output(transform="pandas").fit_transform(X)
    return {name: column.tolist() for name, column in table.items()}


def test_gaps_of_numbers_get_the_median_of_the_training_rows():
    encoder = NumberEncoder().fit(
        frame(a=[1.0, 5.0, None, 3.0], b=[True, None, False, True])
    )
    assert_array_equal(
        encoder.transform(frame(a=[None, 9.0], b=[None, False])), [[3, 1], [9, 0]]
    )
    assert encoder.column_kinds_ == {"a": "number", "b": "boolean"}


def test_a_column_without_any_number_in_a_fold_is_constant():
    assert encode(NumberEncoder(), frame(a=[np.nan, np.nan])) == {"a": [0, 0]}


@pytest.mark.parametrize(
    "dtype", ["Int64", "Float32", "double[pyarrow]", "int64[pyarrow]", object]
)
def test_numbers_of_any_dtype_are_float64(dtype):
    X = frame(a=pd.array([1, None, 3], dtype=dtype))
    assert encode(NumberEncoder(), X) == {"a": [1.0, 2.0, 3.0]}


def test_text_among_numbers_is_refused_with_its_value():
    encoder = NumberEncoder().fit(frame(a=[1.0, 2.0]))
    with pytest.raises(ValueError, match="'a' must hold numbers, got 'many'"):
        encoder.transform(frame(a=[1.0, "many"]))
    with pytest.raises(ValueError, match="'a' must hold numbers, got Timestamp"):
        encoder.transform(frame(a=pd.to_datetime(["2020-01-01"])))


def test_every_category_but_the_most_frequent_gets_a_column():
    X = frame(color=["red"] * 3 + ["blue"] * 2 + ["green"] * 4)
    found = encode(CategoryEncoder(), X)
    assert found == {
        "color = red": [1, 1, 1] + [0] * 6,
        "color = blue": [0, 0, 0, 1, 1, 0, 0, 0, 0],
    }


def test_columns_of_categories_and_a_constant_are_never_collinear():
    X = frame(a=["p", "q", "r"] * 20, b=["u", "v"] * 30)
    numbers = np.column_stack([np.ones(60), CategoryEncoder().fit_transform(X)])
    assert np.linalg.matrix_rank(numbers) == numbers.shape[1] == 4


def test_rare_categories_are_pooled_and_unknown_ones_count_as_rare():
    X = frame(a=["p"] * 50 + ["q"] * 40 + ["r"] * 4 + ["s"] * 4 + ["t"] * 2)
    encoder = CategoryEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["a = q", "a = any other"]
    assert_array_equal(
        encoder.transform(frame(a=["p", "q", "r", "new"])),
        [[0, 0], [1, 0], [0, 1], [0, 1]],
    )


def test_without_a_pool_an_unknown_category_gets_the_shares_of_the_training_rows():
    encoder = CategoryEncoder().fit(frame(a=["p"] * 50 + ["q"] * 30 + ["r"] * 20))
    assert_allclose(encoder.transform(frame(a=["new", None])), [[0.3, 0.2], [0.3, 0.2]])


def test_gaps_are_a_category_where_there_are_enough():
    encoder = CategoryEncoder().fit(frame(a=["p"] * 50 + ["q"] * 40 + [None] * 10))
    assert encoder.get_feature_names_out().tolist() == ["a = q", "a is empty"]
    encoder = CategoryEncoder().fit(frame(a=["p"] * 56 + ["q"] * 42 + [None] * 2))
    assert encoder.get_feature_names_out().tolist() == ["a = q"]


def test_numbers_as_categories_are_the_same_with_and_without_gaps():
    encoder = CategoryEncoder().fit(frame(a=pd.Categorical([1, 2, 2] * 10)))
    assert_array_equal(encoder.transform(frame(a=[1.0, 2.0])), [[1], [0]])
    assert_array_equal(encoder.transform(frame(a=["1", " 2 "])), [[1], [0]])


@pytest.mark.parametrize("encoder", [NumberEncoder(), CategoryEncoder()])
def test_other_columns_than_in_training_are_refused(encoder):
    fitted = clone(encoder).fit(frame(a=[1, 2], b=[1, 2]))
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(frame(a=[1], c=[2]))


@pytest.mark.parametrize(("size", "shown"), [(9e200, r"9e\+200"), (-np.inf, "inf")])
def test_19_numbers_whose_squares_overflow_are_refused(size, shown):
    fitted = NumberEncoder().fit(frame(far=[1.0, 2.0]))
    odd = frame(far=[1.0, None, size])
    for method in (clone(fitted).fit, fitted.transform):
        with pytest.raises(
            ValueError, match=f"'far' holds numbers up to {shown} in size"
        ):
            method(odd)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_dates_become_year_month_and_weekday(tmp_path, suffix):
    n = 60
    days = (
        pd.date_range("2023-06-01", periods=n, freq="11D")
        .to_series()
        .reset_index(drop=True)
    )
    days[5] = None
    frame = pd.DataFrame(
        {"visit": days, "age": np.random.default_rng(0).normal(size=n)}
    )
    frame["kind"] = np.where(
        np.arange(n) % 2, np.where(np.arange(n) < 30, "new", "old"), None
    )
    data = tmp_path / f"data.{suffix}"
    frame.to_csv(data, index=False) if suffix == "csv" else frame.to_parquet(data)
    table = read_table(data, target="kind")
    model, _ = fit_table(table, find_method("supervised"), shrinkage=None)
    assert column_kinds(model) == {"visit": "date", "age": "number"}
    encoded = model[:-1].transform(table.features)
    assert list(encoded) == ["age", "visit year", "visit month", "visit weekday"]
    # A Thursday.
    assert encoded.iloc[0, 1:].tolist() == [2023, 6, 4]
    assert encoded.iloc[5, 1:].tolist() == encoded.drop(5).iloc[:, 1:].median().tolist()
    counts = predict_file(model, column_kinds(model), data, tmp_path / "p.csv")
    assert counts.filled == {"visit": 1}
    found = pd.read_csv(tmp_path / "p.csv")["class"]
    assert found.tolist() == model.predict(table.features).tolist()


def test_parts_of_dates_that_do_not_vary_are_left_out():
    dates = pd.DataFrame(
        {"d": pd.to_datetime(["2024-05-06", "2024-05-07", "2024-05-08"])}
    )
    assert list(preprocessing(dates).fit_transform(dates)) == ["d weekday"]
    new_years = pd.DataFrame(
        {"d": pd.to_datetime(["2021-01-01", "2022-01-01", "2023-01-01"])}
    )
    assert list(preprocessing(new_years).fit_transform(new_years)) == ["d year"]


def test_gaps_are_flagged_by_what_the_rows_of_the_fold_show():
    frame = pd.DataFrame({"x": np.where(np.arange(100) < 50, np.nan, np.arange(100.0))})
    assert preprocessing(frame).fit(frame[::2]).get_feature_names_out().tolist() == [
        "x",
        "x is empty",
    ]
    assert preprocessing(frame).fit(frame[50:]).get_feature_names_out().tolist() == [
        "x"
    ]
