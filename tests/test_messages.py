"""Errors and warnings of our own: classes with fields, and messages made of parts."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from iclda import ColumnError, NoUnlabeledRowsWarning, ParameterError, SupervisedLDA
from iclda._messages import Column, Hint, Text, message_of, say, wrap

X = np.array([[0.0, 1.0], [1.0, 0.0], [5.0, 4.0], [6.0, 7.0]])
Y = np.array([0, 0, 1, 1])
GAP = np.where(X == 4.0, np.nan, X)


def parts_of(text, kind):
    return tuple(part for part in text.parts if isinstance(part, kind))


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        (Hint("shrinkage"), "shrinkage"),
        (Hint("shrinkage", "auto"), "shrinkage='auto'"),
        (Hint("n_labeled", 30), "n_labeled=30"),
        (Hint("drop", ["a b"]), "drop=['a b']"),
        (Hint("out", Path("results")), "out='results'"),
    ],
)
def test_hints_speak_of_parameters(hint, shown):
    assert str(hint) == shown


def test_a_text_is_the_string_of_its_parts():
    inner = Text("pass ", Hint("shrinkage", 0.1))
    text = Text("Look at ", Column(2), ": ", inner, ".")
    assert text == "Look at column 2: pass shrinkage=0.1."
    assert parts_of(text, Hint) == (Hint("shrinkage", 0.1),)
    assert parts_of(text, Column) == (Column(2),)


def test_values_are_formatted_and_parameters_are_hints():
    text = say(
        "{n:,} rows of {name!r}: pass {@shrinkage=auto}, or {@drop}.", n=1200, name="a"
    )
    assert text == "1,200 rows of 'a': pass shrinkage='auto', or drop."
    assert parts_of(text, Hint) == (Hint("shrinkage", "auto"), Hint("drop"))


def test_a_value_may_be_named_like_a_parameter():
    text = say("{out} files in {@out}", out=3)
    assert text == "3 files in out"
    assert parts_of(text, Hint) == (Hint("out"),)


def test_columns_get_their_names_from_whoever_knows_them():
    named = Text("column 1 of ", Column(1), " and ", Column(0, "old")).with_names(
        ["a", "it's"]
    )
    assert named == "column 1 of column \"it's\" and column 'a'"
    assert [column.label for column in parts_of(named, Column)] == ["it's", "a"]


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda kept: pickle.loads(pickle.dumps(kept))]
)
@pytest.mark.parametrize(
    "kept",
    [
        ParameterError(Text("pass ", Hint("folds", 3)), parameter="folds", value=1),
        ColumnError(Text(Column(3), " is odd"), column=3),
        NoUnlabeledRowsWarning("got none", estimator="SelfLearningLDA"),
    ],
)
def test_errors_and_warnings_can_be_sent_to_other_processes(kept, again):
    sent = again(kept)
    assert type(sent) is type(kept)
    assert vars(sent) == vars(kept)
    assert str(sent) == str(kept)
    assert getattr(message_of(sent), "parts", None) == getattr(
        message_of(kept), "parts", None
    )


@pytest.mark.parametrize(
    ("table", "column"),
    [(GAP, 1), (pd.DataFrame(GAP, columns=["length", "width"]), "width")],
)
def test_errors_of_columns_tell_the_column(table, column):
    with pytest.raises(
        ColumnError, match=f"contains NaN, first in row 2, column {column!r}"
    ) as e:
        SupervisedLDA().fit(table, Y)
    assert e.value.column == column


@pytest.mark.parametrize("width", range(10, 40))
def test_lines_do_not_break_between_a_number_and_its_percent_sign(width):
    text = "Expect about 1.9 % of new rows wrong, 0.4 % to 5 %."
    lines = wrap(text, width)
    assert " ".join(lines) == text
    assert all(len(line) <= width and not line.startswith("%") for line in lines)
