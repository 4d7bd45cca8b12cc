"""Remarks on a table before a comparison: their order, and those on its splits."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from iclda import ColumnError
from iclda.studies.compare.plan import ComparisonPlan
from iclda.studies.compare.remarks import check_table, encode_sample
from iclda.studies.compare.settings import choose_settings
from iclda.studies.compare.splits import Splits
from iclda.tabular.checks import FINE, NOTE, WARNING, first_copies
from tests.helpers.comparisons import make_table, table_of


def remarks(table, n_labeled=None):
    copies = first_copies(table.features, table.labels)
    splits = Splits(table.labels, 3, 2, n_labeled, first_copies=copies)
    sample = encode_sample(table, copies)
    labels = table.labels[splits.is_distinct]
    size = splits.size(sample.shape[1])
    return check_table(table, sample, labels, size, is_hidden=n_labeled is not None)


def only(table, subject, **options):
    (remark,) = [each for each in remarks(table, **options) if each.subject == subject]
    return remark


def test_a_table_without_faults_gets_no_warning():
    found = remarks(make_table(n_labeled=60, n_unlabeled=100))
    assert {remark.level for remark in found} == {FINE}
    assert {remark.subject: remark.text for remark in found} == {
        "Rows": "160: 60 labeled, 100 unlabeled (62 %).",
        "Classes": "2 in 'class': 30 of 'no', 30 of 'yes'.",
        "Columns": "2 numbers.",
        "Taken for": (
            "a table (if they are features of a network, use methods='average')."
        ),
        "Missing": "no empty cells.",
        "Labels": "40 labels per fold for 2 features.",
        "Shift": "labeled and unlabeled rows look alike in every column.",
    }


def test_columns_of_every_type_are_counted_with_their_noun():
    n = 60
    columns = {
        "a": np.random.default_rng(0).standard_normal(n),
        "flag": np.arange(n) % 3 == 0,
        "city": np.where(np.arange(n) % 4 == 0, "Delft", "Gouda").astype(object),
        "town": np.where(np.arange(n) % 5 == 0, "Delft", "Gouda").astype(object),
        "day": pd.date_range("2024-01-05", periods=n, freq="9D"),
    }
    labels = np.where(np.arange(n) % 2, "yes", "no").astype(object)
    said = only(table_of(pd.DataFrame(columns), labels), "Columns").text
    counts = "5: 1 number, 1 yes-or-no column, 2 categories, 1 date."
    assert said.startswith(counts)


def test_few_labels_of_a_class_are_a_warning_that_names_it():
    labels = ["a"] * 20 + ["b"] * 3 + [None] * 30
    table = table_of(
        pd.DataFrame({"x": np.random.default_rng(0).standard_normal(53)}), labels
    )
    remark = only(table, "Classes")
    assert remark.level == WARNING
    assert "20 of 'a', 3 of 'b'" in remark.text
    assert "Class 'b' has only 3 labels, which say little about it" in remark.text


def test_labels_that_are_few_for_the_columns_are_counted():
    assert only(make_table(n_features=3), "Labels").level == FINE
    some = only(make_table(n_features=8), "Labels")
    assert some.level == NOTE
    assert some.text == "Only 16 labels per fold for 8 features, so shrinkage helps."
    few = only(make_table(n_features=20), "Labels")
    assert few.level == NOTE
    assert "too few for fits without shrinkage" in few.text
    assert only(make_table(n_features=3), "Labels", n_labeled=8).text.startswith(
        "Only 8 labels per fold"
    )


def test_what_reading_noticed_is_passed_on():
    table = replace(
        make_table(), notes=("Column 'a' is empty.",), warnings=("Column 'b' leaks.",)
    )
    found = [(remark.level, remark.text) for remark in remarks(table)]
    assert (NOTE, "Column 'a' is empty.") in found
    assert (WARNING, "Column 'b' leaks.") in found


def test_copies_are_counted_and_do_not_look_like_a_shift():
    made = make_table(n_labeled=60, n_unlabeled=100)
    features = pd.concat([made.features] * 5, ignore_index=True)
    many = table_of(features, np.tile(made.labels, 5))
    assert only(many, "Shift").text == only(made, "Shift").text
    assert only(many, "Duplicates").text.startswith(
        "800 rows, of which 160 are distinct."
    )


def test_cells_that_are_records_are_refused_before_they_are_compared(tmp_path):
    made = make_table(n_labeled=20, n_unlabeled=20)
    features = made.features.assign(more=[{"a": k % 2} for k in range(40)])
    with pytest.raises(
        ColumnError, match="'more' holds values that are neither numbers nor text"
    ):
        choose_settings(ComparisonPlan(replace(made, features=features), tmp_path))


def test_unlabeled_rows_that_resemble_no_class_get_a_warning():
    rng = np.random.default_rng(0)
    columns = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    labels = np.where(np.arange(300) % 2, "yes", "no").astype(object)
    columns.loc[labels == "yes", "a"] += 5
    labels[100:] = None
    known = remarks(table_of(columns, labels))
    assert "Rows of no class" not in {each.subject for each in known}
    columns.loc[200:, "b"] += 8
    said = only(table_of(columns, labels), "Rows of no class")
    assert said.level == WARNING
    assert "of the unlabeled rows resemble none of the classes" in said.text
