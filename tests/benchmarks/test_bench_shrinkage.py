import pytest

from bench_shrinkage import mean_errors, thirty_columns


@pytest.mark.filterwarnings("ignore")
def test_every_rule_has_an_error_and_shrinkage_helps_with_few_labels():
    errors = mean_errors(thirty_columns(), is_standardized=False, labels="20")
    assert {"none", "oracle", "most probable", "auto", "scikit-learn"} <= set(errors)
    assert errors["auto"] < errors["none"]


def test_a_table_with_too_few_rows_is_left_out():
    X, codes = thirty_columns()
    assert mean_errors((X[:30], codes[:30]), is_standardized=True, labels="20") is None
