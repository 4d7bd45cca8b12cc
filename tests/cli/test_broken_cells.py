"""A broken number in a cell: every command names it, and learns as without it."""

import json

import pandas as pd
import pytest

from iclda import BrokenCellWarning, load_model
from iclda.tabular import TableClassifier
from tests.helpers.table_files import call, flowers, write

# The fifth row of the table, which is row 6 of its file.
ROW = 4
NOTE = (
    "Note: 1000000000 in row 6, column 'q' lies far outside of its column, and counts "
    "as a usual number. Correct it if it is an error."
)
TARGET = ("--target", "species")


def with_cell(value):
    frame = flowers(n=150, n_labeled=45)
    frame.loc[ROW, "q"] = value
    return frame


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A table with a broken cell, and the same with the number that it counts as."""
    folder = tmp_path_factory.mktemp("broken")
    broken = write(folder, with_cell(1e9), "broken.csv")
    model = folder / "m.skops"
    assert call("fit", broken, *TARGET, "--out", model, "--quiet")[0] == 0
    pipeline = load_model(model)
    bounds = pipeline[-1].view_
    usual = dict(zip(pipeline[:-1].get_feature_names_out(), bounds.high, strict=True))
    return broken, write(folder, with_cell(usual["q"]), "mended.csv")


def predictions_of(data, folder):
    model = folder / "m.skops"
    said = call("fit", data, *TARGET, "--out", model, "--force")[1]
    error = json.loads(call("show", model, "--json")[1])["about"]["error"]
    out = folder / "p.csv"
    call("predict", model, data, "--out", out, "--force")
    return said, error, pd.read_csv(out)


def test_a_fit_learns_as_if_the_cell_held_a_usual_number(tables, tmp_path):
    said, error, predicted = predictions_of(tables[0], tmp_path)
    mended_said, mended_error, mended = predictions_of(tables[1], tmp_path)
    assert said.count(NOTE) == said.count("1000000000") == 1
    assert "lies far outside" not in mended_said
    assert error == mended_error
    pd.testing.assert_frame_equal(predicted, mended)


def test_ask_states_the_error_that_it_states_without_the_cell(tables, tmp_path):
    answers = [
        json.loads(call("ask", data, *TARGET, "--labels", tmp_path / name, "--json")[1])
        for data, name in zip(tables, ("a.csv", "b.csv"), strict=True)
    ]
    assert answers[0]["lines"].count(NOTE) == 1
    assert answers[0]["error"] == answers[1]["error"]


def test_a_comparison_names_the_cell(tables, tmp_path):
    pytest.importorskip("jinja2", reason="reports need iclda[experiments]")
    settings = ("--methods", "em", "--repeats", 2, "--folds", 2, "--jobs", 1)
    found = []
    for data in tables:
        out = tmp_path / data.stem
        said = call("compare", data, *TARGET, *settings, "--out", out, "--verbose")[1]
        rows = pd.read_csv(out / "comparison.csv")
        found.append((said, rows[["method", "measure", "mean"]]))
    assert found[0][0].count("1000000000 in row 6, column 'q'") == 1
    # The fit of every fold has bounds of its own.
    pd.testing.assert_frame_equal(found[0][1], found[1][1], atol=0.02)


def test_a_classifier_of_frames_warns_of_the_cell():
    frame = with_cell(1e9)
    X, y = frame.drop(columns="species"), frame["species"].astype(object)
    match = "1000000000 in row 4 of X, column 'q' lies far outside"
    with pytest.warns(BrokenCellWarning, match=match):
        TableClassifier().fit(X, y)


def test_rows_have_the_names_of_their_ids_and_files(tmp_path):
    frame = with_cell(1e9)
    frame.insert(0, "plant", [f"p{i}" for i in range(len(frame))])
    data = write(tmp_path, frame.drop(columns="species"), "plants.csv")
    labels = write(tmp_path, frame[["plant", "species"]].dropna(), "labels.csv")
    further = frame.drop(columns="species")
    further["plant"] += "x"
    more = write(tmp_path, further, "more.csv")
    command = ("fit", data, "--labels", labels, "--id", "plant", "--unlabeled-file")
    said = call(*command, more, "--out", tmp_path / "m.skops")[1]
    assert "1000000000 in row p4, column 'q'; 1000000000 in row 6 of " in said
    assert f"6 of {more}, column 'q' lie far outside of their columns" in said
