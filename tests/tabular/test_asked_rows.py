"""Answers go to the rows that they were asked for, or the file is refused."""

import numpy as np
import pandas as pd
import pytest

from iclda.labeling.rounds import ask_for_labels
from iclda.tabular import read_table

N_ROWS = 60
CODES = np.arange(N_ROWS) % 2


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """A table and a file of answers about some of its rows."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N_ROWS, 3)) + 3 * CODES[:, None])
    frame.columns = ["a", "b", "c"]
    frame["text"] = [f"number {k}" for k in range(N_ROWS)]
    frame.to_csv("rows.csv", index=False)
    ask_for_labels(tmp_path / "rows.csv", 20, target="label", labels=tmp_path / "l.csv")
    answers = pd.read_csv("l.csv", dtype=str, keep_default_na=False)
    # The names of the columns are row 1.
    positions = answers["file_row"].astype(int) - 2
    answers["label"] = np.array(["no", "yes"])[CODES[positions]]
    answers.to_csv("l.csv", index=False)
    return frame, positions.to_numpy()


def read_back(frame, **options):
    frame.to_csv("rows.csv", index=False)
    return read_table("rows.csv", labels="l.csv", id="file_row", **options)


def test_answers_are_those_of_their_rows(answered):
    frame, positions = answered
    table = read_back(frame, drop="text,a")
    assert set(np.flatnonzero(table.is_labeled)) == set(positions)
    expected = np.array(["no", "yes"])[CODES[positions]]
    assert table.labels[positions].tolist() == expected.tolist()


def without_row(frame, position):
    return frame.drop(index=[position])


def with_row_before(frame, position):
    return pd.concat([frame[:position], frame[-1:], frame[position:]])


@pytest.mark.parametrize("edit", [without_row, with_row_before])
@pytest.mark.parametrize("n_moved", [1, 5, 20])
def test_no_answer_goes_to_a_row_that_has_moved(answered, edit, n_moved):
    frame, positions = answered
    position = np.sort(positions)[-n_moved]
    # The last rows stand for those that were removed, so that every number exists.
    edited = pd.concat([edit(frame, position), frame[-1:]])
    with pytest.raises(ValueError, match=rf"rows\.csv: {n_moved} of 20 rows looks?"):
        read_back(edited)


def test_a_row_may_be_added_below_those_that_were_asked_for(answered):
    frame, positions = answered
    edited = with_row_before(frame, positions.max() + 1)
    assert set(np.flatnonzero(read_back(edited).is_labeled)) == set(positions)


def test_a_corrected_cell_leaves_a_row_what_it_is(answered):
    frame, positions = answered
    frame.loc[positions[:5], "b"] = 17.5
    assert read_back(frame).is_labeled.sum() == 20


def test_rows_with_ids_may_be_in_any_order(answered):
    frame, positions = answered
    frame["file_row"] = np.arange(N_ROWS) + 2
    shuffled = frame.sample(frac=1, random_state=0)
    table = read_back(shuffled)
    is_asked = shuffled["file_row"].isin(positions + 2).to_numpy()
    np.testing.assert_array_equal(table.is_labeled, is_asked)
