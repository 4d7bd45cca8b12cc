"""Cells of a target as names of classes: numbers the short way, marks, words for NA."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iclda.tabular import read_table
from tests.helpers.table_texts import read

LABELS = {
    "categories, one of them unused": pa.DictionaryArray.from_arrays(
        [0, 1, None], ["1", "2", "9"]
    ),
    "uint64": pa.array([1, 2, None], pa.uint64()),
    "floats with nan": pa.array([1.0, 2.0, float("nan")]),
    "text of floats": pa.array(["1.0", "2", ""]),
    "categories": pa.array(["1", "2", None]).dictionary_encode(),
    "large text": pa.array([" 1", "2 ", " "], pa.large_string()),
}


@pytest.mark.parametrize("values", LABELS.values(), ids=LABELS)
def test_numbers_become_class_names_the_short_way(tmp_path, values):
    pq.write_table(
        pa.table({"x": [1.0, 2.0, 3.0], "class": values}), tmp_path / "data.parquet"
    )
    table = read_table(tmp_path / "data.parquet", target="class")
    assert table.labels.tolist() == ["1", "2", None]


def test_1_and_1_point_0_are_one_class_only_where_all_labels_are_numbers(tmp_path):
    assert read(tmp_path, "x,class\n1,1\n2,1.0\n3,2e0\n").classes == ("1", "2")
    assert read(tmp_path, "x,class\n1,1\n2,1.0\n3,two\n").classes == ("1", "1.0", "two")
    assert read(tmp_path, "x,class\n1,007\n2,012\n").classes == ("007", "012")


def test_classes_with_a_decimal_comma_are_the_same_numbers(tmp_path):
    assert read(tmp_path, "x;class\n1,5;0,0\n2;1,0\n3;1\n").classes == ("0", "1")
    assert read(tmp_path, "x;class\n1;0,0\n2;no\n").classes == ("0,0", "no")
    with pytest.raises(ValueError, match="numbers with fractions"):
        read(tmp_path, "x;class\n1;0,5\n2;1,0\n")


def test_two_spellings_of_a_class_are_a_warning(tmp_path):
    table = read(tmp_path, "x,class\n1,Barolo\n2,barolo\n3,Bar olo\n4,barbera\n")
    assert table.classes == ("Bar olo", "Barolo", "barbera", "barolo")
    assert table.warnings == (
        "'Bar olo', 'Barolo', 'barolo' in 'class' are 3 classes, whose names differ by "
        "case or blanks only: write them in one way if they are one class.",
    )
    assert read(tmp_path, "x,class\n1,Barolo\n2,barbera\n").warnings == ()


@pytest.mark.parametrize("mark", ["?", "unknown", "-1", "-1.0", "NA"])
def test_a_value_of_the_target_can_mark_unlabeled_rows(tmp_path, mark):
    cell = mark.removesuffix(".0")
    table = read(tmp_path, f"x,class\n1,1\n2,2\n3,{cell}\n4,\n", unlabeled=mark)
    assert table.labels.tolist() == ["1", "2", None, None]


@pytest.mark.parametrize("word", ["NA", "nan", "?", "unknown"])
@pytest.mark.parametrize("others", [("EU", "US"), ("0", "1")])
def test_words_for_nothing_are_classes_unless_told_and_a_note_says_so(
    tmp_path, word, others
):
    text = (
        f"x,class\n1.5,{others[0]}\n2,{others[1]}\n3,{word}\n4,{word}\n,{word}\nNA,\n"
    )
    table = read(tmp_path, text)
    assert table.labels.tolist() == [*others, word, word, word, None]
    assert table.warnings == (
        f"{word!r} in 'class' is a class: "
        f"pass unlabeled={word!r} if it marks unlabeled rows.",
    )
    told = read(tmp_path, text, unlabeled=word)
    assert told.labels.tolist() == [*others, None, None, None, None]
    assert told.warnings == ()
    assert told.features["x"].isna().tolist() == [False] * 4 + [True] * 2


def test_minus_one_is_a_class_unless_told_and_a_note_says_so(tmp_path):
    text = "x,class\n1.5,0\n2,1\n3,-1\n4,-1\n"
    table = read(tmp_path, text)
    assert table.classes == ("-1", "0", "1")
    assert table.warnings[0].startswith("'-1' in 'class' is a class")
    assert read(tmp_path, text, unlabeled="-1").warnings == ()
    assert read(tmp_path, "x,class\n1,1\n2.5,-1\n").warnings == ()


def test_many_classes_of_one_label_are_classes_where_rows_are_many(tmp_path):
    text = "x,class\n" + "".join(f"{k},{k if k < 60 else ''}\n" for k in range(1_200))
    assert len(read(tmp_path, text).classes) == 60
