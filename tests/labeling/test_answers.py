"""The file of answers: what is written, edited in a spreadsheet and read again."""

import pandas as pd
import pytest

from iclda.labeling.answers import Answers
from iclda.tabular.answer_files import CHOSEN, RANDOM


@pytest.fixture
def asked(tmp_path):
    """Three chosen rows with a column to look at, and two random ones."""
    answers = Answers.read(tmp_path / "to_label.csv", "row", "kind")
    answers = answers.asking(
        ["4", "7", "01"], CHOSEN, shown={"text": ["a, b", 'a "c"', "d\ne"]}
    )
    return answers.asking(["2", "3"], RANDOM, guesses=["x", "y"])


def test_what_is_written_is_read_again(asked):
    asked.write()
    again = Answers.read(asked.path, "row", "kind")
    pd.testing.assert_frame_equal(again.frame, asked.frame)
    assert again.ids() == ["4", "7", "01", "2", "3"]
    assert (again.ids(CHOSEN), again.ids(RANDOM)) == (["4", "7", "01"], ["2", "3"])
    assert again.n_rounds == 2


def test_what_a_spreadsheet_saves_is_read_again(asked):
    """With semicolons, a byte order mark and lines of empty cells."""
    text = asked.frame.to_csv(index=False, sep=";") + ";;;;;\n"
    asked.path.write_text(text, encoding="utf-8-sig")
    pd.testing.assert_frame_equal(
        Answers.read(asked.path, "row", "kind").frame, asked.frame
    )


def test_answers_are_taken_and_taken_back(asked):
    answered = asked.answering("7", " cat ").answering("2", "dog")
    assert answered.labels == {"7": "cat", "2": "dog"}
    assert answered.open_ids == ["4", "01", "3"]
    assert answered.answering("7", "").open_ids == ["4", "7", "01", "3"]
    assert str(answered).startswith("2 labels in")
    with pytest.raises(ValueError, match="does not ask for a row with row = '99'"):
        answered.answering("99", "cat")


def test_rows_that_were_asked_for_are_not_asked_for_again(asked):
    again = asked.asking(["7", "8"], CHOSEN)
    assert again.ids() == [*asked.ids(), "8"]


def test_another_file_is_not_taken_for_one(tmp_path):
    path = tmp_path / "wine.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is not a file of rows to label"):
        Answers.read(path, "row", "kind")
    path.write_text("row,kind,how,round,guess\n")
    with pytest.raises(
        ValueError, match=r"wine.csv has no data rows: fill it, delete it"
    ):
        Answers.read(path, "row", "kind")
    path.write_text("")
    assert Answers.read(path, "row", "kind").ids() == []
