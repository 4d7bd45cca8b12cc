"""Tables: features and labels of one file or two, and what is said of their columns."""

import hashlib

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from iclda.tabular import read_table
from iclda.tabular.column_types import kinds_of
from tests.helpers.table_texts import TEXT, read, write


def test_features_keep_the_order_of_the_file_and_labels_are_text_or_none(tmp_path):
    table = read(tmp_path, TEXT)
    assert table.features.columns.tolist() == ["size", "color"]
    assert_array_equal(table.features["size"], [1.5, 2, np.nan, 4])
    assert table.features["color"].isna().tolist() == [False, False, False, True]
    assert table.labels.tolist() == ["a", "b", None, None]
    assert table.is_labeled.tolist() == [True, True, False, False]
    assert table.classes == ("a", "b")
    assert table.target == "class"


def test_the_digest_is_that_of_the_bytes(tmp_path):
    table = read(tmp_path, TEXT)
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    assert [(s.n_rows, s.sha256) for s in table.sources] == [(4, digest)]


def test_parquet_gives_what_csv_gives(tmp_path):
    frame = pd.DataFrame(
        {
            "number": [1.5, None, 3.0, 4.0],
            "whole": pd.array([1, None, 3, 4], dtype="Int8"),
            "text": ["red", "blue", None, "red"],
            "flag": pd.array([True, None, False, True], dtype="boolean"),
            "kind": pd.Categorical(["p", "q", None, "p"]),
            "class": ["a", "b", None, None],
        }
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_parquet(tmp_path / "data.parquet")
    tables = [
        read_table(tmp_path / f"data.{kind}", target="class")
        for kind in ("csv", "parquet")
    ]
    pd.testing.assert_frame_equal(tables[0].features, tables[1].features)
    assert tables[0].labels.tolist() == tables[1].labels.tolist()


def test_rows_of_a_second_file_are_unlabeled_whatever_they_say(tmp_path):
    write(tmp_path, "class,color,size\na,green,9\nb,red,8.5\n", "more.csv")
    table = read(tmp_path, TEXT, unlabeled_file=tmp_path / "more.csv")
    assert table.features["size"].tolist()[4:] == [9, 8.5]
    assert table.features["color"].tolist()[4:] == ["green", "red"]
    assert table.labels.tolist()[4:] == [None, None]
    assert [source.n_rows for source in table.sources] == [4, 2]


def test_a_column_without_values_in_one_of_two_files_takes_the_kind_of_the_other(
    tmp_path,
):
    write(tmp_path, "x,flag,text\n1,,\n2,,\n", "more.csv")
    first = "x,flag,text,class\n1,True,p,a\n2,False,p,b\n"
    table = read(tmp_path, first, unlabeled_file=tmp_path / "more.csv")
    assert table.features["flag"].dropna().tolist() == [True, False]
    assert kinds_of(table.features[["flag", "text"]]) == {
        "flag": "boolean",
        "text": "category",
    }


def test_row_numbers_without_a_name_are_left_out_and_with_one_are_pointed_at(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 5.0, 2.0], "class": ["a", "b", None]})
    frame.to_csv(tmp_path / "index.csv")
    table = read_table(tmp_path / "index.csv", target="class")
    assert table.features.columns.tolist() == ["x"]
    assert table.notes == (
        "Column '(column 1)' has no name and numbers the rows: it was left out.",
    )
    table = read(tmp_path, "id,x,class\n1,1,a\n2,5,b\n3,2,\n")
    assert table.features.columns.tolist() == ["id", "x"]
    assert table.notes[0].startswith("Column 'id' looks like an id or a row number")


def test_empty_columns_are_left_out_with_a_note(tmp_path):
    table = read(tmp_path, "x,nothing,class,\n1,,a,\n5,NA,b,\n")
    assert table.features.columns.tolist() == ["x"]
    assert table.notes == (
        "2 columns were left out: 'nothing' is empty in all rows; '(column 4)' is "
        "empty in all rows.",
    )


def test_an_error_lists_the_first_and_the_last_columns(tmp_path):
    names = [f"x{number}" for number in range(30)]
    text = f"{','.join(names)},outcome\n{','.join(['1'] * 30)},a\n"
    listed = r"Its columns are 'x0', .*'x5', 19 more, 'x25', .*'x29', 'outcome'\.$"
    with pytest.raises(ValueError, match=listed):
        read(tmp_path, text)


def test_options_that_name_nothing_are_refused(tmp_path):
    with pytest.raises(
        ValueError, match="no row has the unlabeled value 'x' in column 'class'"
    ):
        read(tmp_path, TEXT, unlabeled="x")
    with pytest.raises(ValueError, match=r"no column 'colour'. Did you mean 'color'"):
        read(tmp_path, TEXT, drop=["colour"])
    with pytest.raises(ValueError, match="'class' is the target and cannot be dropped"):
        read(tmp_path, TEXT, drop=["class"])


def test_names_that_are_not_similar_are_not_suggested(tmp_path):
    with pytest.raises(ValueError, match=r"no column 'calories'\. Its columns are "):
        read(tmp_path, TEXT, drop=["calories"])


def test_options_that_leave_no_column_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"name other columns in keep, got \[\]"):
        read(tmp_path, TEXT, keep=[])
    with pytest.raises(ValueError, match="fewer columns in drop, got 'size,color'"):
        read(tmp_path, TEXT, drop="size,color")


def test_options_may_be_a_number_or_one_name(tmp_path):
    table = read(
        tmp_path, "x,color,class\n1,p,-1\n2,p,1\n3,p,2\n", unlabeled=-1, drop="color"
    )
    assert (table.labels.tolist(), list(table.features)) == ([None, "1", "2"], ["x"])
    with pytest.raises(ValueError, match="has no column 3"):
        read(tmp_path, TEXT, target=3)


def test_a_second_file_needs_the_columns_of_the_first_and_their_kinds(tmp_path):
    write(tmp_path, "size\n1\n", "more.csv")
    with pytest.raises(
        ValueError, match=r"more\.csv has no column 'color', which .*data\.csv has"
    ):
        read(tmp_path, TEXT, unlabeled_file=tmp_path / "more.csv")
    write(tmp_path, "size,color\nlarge,red\n", "more.csv")
    with pytest.raises(
        ValueError, match=r"Column 'size' holds values of another kind .*'large'"
    ):
        read(tmp_path, TEXT, unlabeled_file=tmp_path / "more.csv")
