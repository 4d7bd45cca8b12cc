import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from iclda.tabular import CategoryEncoder, NumberEncoder


def frame(**columns):
    return pd.DataFrame(columns)


def encode(encoder, X):
    table = encoder.set_output(transform="pandas").fit_transform(X)
    return {name: column.tolist() for name, column in table.items()}


def test_gaps_of_numbers_get_the_median_of_the_training_rows():
    encoder = NumberEncoder().fit(frame(a=[1.0, 5.0, None, 3.0], b=[True, None, False, True]))
    assert_array_equal(encoder.transform(frame(a=[None, 9.0], b=[None, False])), [[3, 1], [9, 0]])
    assert encoder.column_kinds_ == {"a": "number", "b": "boolean"}


def test_flagged_columns_say_where_the_gaps_were():
    X = frame(a=[1.0, None, 3.0], b=[1.0, 2.0, None])
    found = encode(NumberEncoder(flagged=("b",)), X)
    assert found == {"a": [1, 2, 3], "b": [1, 2, 1.5], "b is empty": [0, 0, 1]}


def test_a_column_without_any_number_in_a_fold_is_constant():
    assert encode(NumberEncoder(), frame(a=[np.nan, np.nan])) == {"a": [0, 0]}


@pytest.mark.parametrize("dtype", ["Int64", "Float32", "double[pyarrow]", "int64[pyarrow]", object])
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
        encoder.transform(frame(a=["p", "q", "r", "new"])), [[0, 0], [1, 0], [0, 1], [0, 1]]
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


@pytest.mark.parametrize(
    "encoder", [NumberEncoder(missing="refuse"), CategoryEncoder(missing="refuse")]
)
def test_gaps_can_be_refused(encoder):
    full, gapped = frame(a=[1.0, 2.0, 1.0]), frame(a=[1.0, None, None])
    with pytest.raises(ValueError, match=r"'a' is empty in 2 of 3 rows.*pass missing='impute'"):
        clone(encoder).fit(gapped)
    with pytest.raises(ValueError, match="'a' is empty in 2 of 3 rows"):
        clone(encoder).fit(full).transform(gapped)


def test_the_pool_of_rare_categories_has_a_name_of_its_own():
    X = frame(a=["p"] * 50 + ["any other"] * 40 + [f"r{i}" for i in range(10)])
    encoder = CategoryEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["a = any other", "a = any other value"]


@pytest.mark.parametrize("encoder", [NumberEncoder(), CategoryEncoder()])
def test_other_columns_than_in_training_are_refused(encoder):
    fitted = clone(encoder).fit(frame(a=[1, 2], b=[1, 2]))
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(frame(a=[1], c=[2]))


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        (1e200, r"up to 9e\+200 in size, with a standard deviation of 2.87e\+200.*by 9e\+200"),
        (1e-300, "up to 9e-300 in size, with a standard deviation of 2.87e-300.*by 9e-300"),
    ],
)
def test_19_numbers_whose_squares_overflow_or_vanish_are_refused(unit, words):
    with pytest.raises(ValueError, match=f"'far' holds numbers {words}.*drop=\\['far'\\]"):
        NumberEncoder().fit(frame(near=np.arange(10.0), far=unit * np.arange(10.0)))
    with pytest.raises(ValueError, match=r"'far' holds numbers up to 1e\+200 in size"):
        NumberEncoder().fit(frame(far=[1e200, 1e200, None]))
