"""What the preflight says is true of the table."""

import numpy as np
import pandas as pd
import pytest
from tables_of_results import make_table, table_of

from iclda.studies.compare.plan import Splits
from iclda.studies.compare.preflight import FINE, NOTE, WARNING, inspect, preflight

RNG = np.random.default_rng(0)


def remarks(table, subject=None, n_labeled=None, missing="impute"):
    splits = Splits(table.labels, 3, 2, n_labeled)
    found = preflight(table, inspect(table, missing), splits)
    return [remark for remark in found if subject in (None, remark.subject)]


def only(table, subject, **options):
    (remark,) = remarks(table, subject, **options)
    return remark


def test_a_table_without_faults_gets_no_warning():
    found = remarks(make_table(n_labeled=60, n_unlabeled=100))
    assert {remark.level for remark in found} == {FINE}
    texts = {remark.subject: remark.text for remark in found}
    assert texts["Rows"] == "160: 60 labeled, 100 unlabeled (62 %)."
    assert texts["Classes"] == "2 in 'class': 30 of 'no', 30 of 'yes'."
    assert texts["Columns"] == "2 numbers."
    assert texts["Missing"] == "no empty cells."
    assert "look alike" in texts["Shift"]


def test_few_labels_of_a_class_are_a_warning_that_names_it():
    labels = ["a"] * 20 + ["b"] * 3 + [None] * 30
    table = table_of(pd.DataFrame({"x": RNG.standard_normal(53)}), labels)
    remark = only(table, "Classes")
    assert remark.level == WARNING
    assert "20 of 'a', 3 of 'b'" in remark.text
    assert "3 labels say little about class 'b'" in remark.text


def test_labels_that_are_few_for_the_columns_are_counted():
    assert only(make_table(n_features=3), "Labels").level == FINE
    assert "16 train in each fold, for 8 features" in only(make_table(n_features=8), "Labels").text
    few = only(make_table(n_features=20), "Labels")
    assert few.level == WARNING
    assert "too few for a fit without shrinkage" in few.text
    assert only(make_table(n_features=3), "Labels", n_labeled=8).text.startswith("8 train")


def test_gaps_are_named_with_their_share():
    table = make_table(age=np.where(np.arange(64) < 16, np.nan, np.arange(64.0) ** 2))
    remark = only(table, "Missing")
    assert remark.level == NOTE
    assert "empty cells in 1 column: 'age' (25.0 %)" in remark.text


def test_gaps_are_refused_by_choice():
    with pytest.raises(ValueError, match="Column 'age' is empty in 1 of 64 rows"):
        inspect(make_table(age=[np.nan, *range(63)]), "refuse")


def test_constant_columns_are_named():
    table = make_table(one=np.ones(64), word="same", early=(np.arange(64) > 30) * 1.0)
    first, second = remarks(table, "Constant")
    assert first.text == "'one' and 'word' have one value in all rows and will be ignored."
    assert second.text.startswith("'early' has one value in all labeled rows, but not")


def test_columns_that_others_determine_are_named_with_these():
    table = make_table()
    x1, x2 = table.features["x1"], table.features["x2"]
    sums = table_of(table.features.assign(total=x1 + 2 * x2), table.labels)
    text = only(sums, "Collinear").text
    assert "can be computed from other columns" in text
    assert all(name in text for name in ("x1", "x2", "total"))
    close = table_of(table.features.assign(near=x1 + 0.02 * RNG.random(64)), table.labels)
    assert (
        "'x1' and 'near' say nearly the same (correlation 1.000)" in only(close, "Collinear").text
    )
    assert only(table, "Collinear").level == FINE


def test_more_features_than_rows_are_a_warning():
    remark = only(make_table(n_labeled=12, n_unlabeled=8, n_features=30), "Collinear")
    assert remark.level == WARNING
    assert "more features (30) than rows (20)" in remark.text


def test_far_apart_scales_are_named_and_do_no_harm():
    table = make_table(far=1e6 * RNG.standard_normal(64))
    remark = only(table, "Scale")
    assert remark.level == FINE
    assert "'far' varies" in remark.text
    farther = make_table(far=1e140 * np.arange(64.0))
    assert "e+141 times as much as" in only(farther, "Scale").text


def test_a_column_that_agrees_with_the_labels_is_a_warning():
    copy = np.arange(64) % 2
    remark = only(make_table(copy=copy, coin=RNG.integers(2, size=64)), "Giveaway")
    assert remark.level == WARNING
    assert remark.text.startswith("'copy' is 0 for no, 1 for yes on all labeled rows.")
    words = np.where(copy, "gone", "here")
    assert "'word = here' is 1 for no, 0 for yes" in only(make_table(word=words), "Giveaway").text


def test_unlabeled_rows_from_elsewhere_are_a_warning():
    table = make_table(n_labeled=30, n_unlabeled=300)
    moved = table.features.copy()
    moved.loc[30:, "x2"] += 2.5
    remark = only(table_of(moved, table.labels), "Shift")
    assert remark.level == WARNING
    assert "'x2', on average" in remark.text
    assert "x1" not in remark.text


@pytest.mark.parametrize("seed", range(5))
def test_rows_from_one_place_are_not_called_shifted(seed):
    assert only(make_table(30, 300, n_features=4, seed=seed), "Shift").level == FINE


def test_rows_that_stand_there_twice_are_counted():
    table = make_table()
    again = table.features.copy()
    again.iloc[40], again.iloc[1] = again.iloc[3], again.iloc[0]
    contradicted, repeated = remarks(table_of(again, table.labels), "Duplicates")
    assert contradicted.level == WARNING
    assert contradicted.text.startswith("2 labeled rows equal another one of a different class")
    assert repeated.text.startswith("1 labeled row also stands among")


def test_what_reading_noticed_is_passed_on():
    table = make_table()
    noted = type(table)(
        table.features, table.labels, "class", table.sources, ("Column 'a' is empty.",)
    )
    assert "Column 'a' is empty." in [remark.text for remark in remarks(noted)]
