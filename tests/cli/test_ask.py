"""The loop on the command line: ask, fill in, ask, fit; what it says and refuses."""

import itertools
import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.table_files import call, flowers, write

NAMES = ("iris", "lily", "rose")
LABELS = "--labels", "to_label.csv", "--id", "row"


@pytest.fixture
def features(tmp_path, monkeypatch):
    """An array of 90 rows and their classes, in the folder where the commands run."""
    monkeypatch.chdir(tmp_path)
    truth = np.array(NAMES)[np.arange(90) % 3]
    rng = np.random.default_rng(1)
    np.save("x.npy", rng.normal(size=(90, 4)) + 2 * np.eye(3, 4)[np.arange(90) % 3])
    return truth


def fill(truth):
    frame = pd.read_csv("to_label.csv", dtype=str, keep_default_na=False)
    frame["label"] = truth[frame["row"].astype(int)]
    frame.to_csv("to_label.csv", index=False)


def test_the_loop_ends_in_a_model_with_an_honest_error(features):
    code, said, error = call("ask", "x.npy", "--n", 9)
    assert (code, error) == (0, "")
    assert said.splitlines() == [
        "Added 9 rows to to_label.csv: 9 chosen.",
        "Next: fill in the column 'label' of to_label.csv, then run the same "
        "command again. Add --test 50 to measure the error",
    ]
    assert Path("to_label.csv").read_text().startswith("row,label,how,round,guess\n")
    fill(features)
    code, said, _ = call("fit", "x.npy", *LABELS)
    assert code == 0
    assert "The error to expect on new rows is not known: it takes at least 8" in said
    advice = "To draw such rows, use `iclda ask` with --test"
    assert f"there are 0 among 9 labels. {advice} 50." in said
    said = call("ask", "x.npy", "--n", 6, "--test", 20)[1]
    assert "there are 0 among 9 labels." in said
    # These rows are being drawn.
    assert "To draw such rows" not in said
    fill(features)
    found = json.loads(call("ask", "x.npy", "--n", 0, "--json")[1])
    assert (found["n_labels"], found["error"]["n_rows"], found["n_chosen"]) == (
        35,
        20,
        0,
    )
    assert (
        found["next"] == "iclda fit x.npy --labels to_label.csv --id row --target label"
    )
    assert found["lines"][0].startswith("Expect ")
    said = call("fit", "x.npy", *LABELS)[1]
    assert "90 % interval from 20 labeled rows" in said
    code, _, error = call("fit", "x.npy", *LABELS, "--proportions", "labeled")
    assert code == 2
    assert (
        "--proportions takes the class shares of the labels, and 15 of these" in error
    )


def test_a_fit_to_wrong_answers_says_that_nothing_was_learned(features):
    call("ask", "x.npy", "--n", 9, "--test", 20)
    fill(features)
    # The random rows of each class are labeled as the two others by turns, so that
    # hardly any of them is predicted from the rest.
    others = {
        name: itertools.cycle(other for other in NAMES if other != name)
        for name in NAMES
    }
    answers = pd.read_csv("to_label.csv")
    is_random = answers["how"] == "random"
    answers.loc[is_random, "label"] = [
        next(others[name]) for name in answers.loc[is_random, "label"]
    ]
    answers.to_csv("to_label.csv", index=False)
    said = call("fit", "x.npy", *LABELS)[1]
    assert "20 labels cannot show that anything was learned: always predicting" in said
    assert "Next: iclda predict" not in said


def test_asking_again_before_any_answer_says_what_is_open_and_how_to_go_on(features):
    call("ask", "x.npy", "--n", 9)
    before = Path("to_label.csv").read_text()
    code, said, error = call("ask", "x.npy")
    assert (code, error) == (0, "")
    assert said.splitlines() == [
        "9 rows in to_label.csv still wait for an answer, so none was added.",
        "Next: fill in the column 'label' of to_label.csv, then run the same command "
        "again. Add --test 50 to measure the error. For 20 more rows now, add --more",
    ]
    assert Path("to_label.csv").read_text() == before
    # Whoever asks for such rows knows how.
    assert "Add --test" not in call("ask", "x.npy", "--test", 25)[1]
    said = call("ask", "x.npy", "--more")[1]
    assert "Added 20 rows to to_label.csv: 20 chosen." in said
    assert Path("to_label.csv").read_text().startswith(before)


def test_no_fit_is_named_before_two_classes_are_known(features):
    said = call("ask", "x.npy", "--n", 0)[1]
    assert (
        said
        == "Next: run the same command with --n 20, because a fit needs labels of two "
        "classes\n"
    )


def test_no_more_rows_are_named_when_all_are_asked_for(features):
    said = call("ask", "x.npy", "--n", 90)[1]
    assert said.endswith(
        "then: run the same command again, because a fit needs labels of two classes\n"
    )


def test_a_comparison_tests_random_rows_alone(features):
    pytest.importorskip("jinja2", reason="reports need iclda[experiments]")
    call("ask", "x.npy", "--n", 12)
    fill(features)
    options = (
        "--methods",
        "average,em",
        "--fast",
        "--jobs",
        "1",
        "--out",
        "out",
        *LABELS,
    )
    code, _, error = call("compare", "x.npy", *options)
    assert code == 2
    assert "cannot be compared: it takes at least 8" in error
    call("ask", "x.npy", "--n", 0, "--test", 20)
    fill(features)
    code, said, _ = call("compare", "x.npy", *options, "--verbose")
    assert code == 0
    assert "they train in every split, and only the 20 others are tested" in " ".join(
        said.split()
    )
    assert "from 20 labeled rows" in " ".join(said.split())


def test_an_evaluation_leaves_chosen_labels_out(features):
    call("ask", "x.npy", "--n", 12)
    fill(features)
    call("fit", "x.npy", *LABELS)
    code, _, error = call("evaluate", "model.skops", "x.npy", *LABELS)
    assert code == 2
    assert "is not known: it takes at least 8 labels of rows drawn at random" in error
    call("ask", "x.npy", "--n", 0, "--test", 20)
    fill(features)
    code, said, _ = call("evaluate", "model.skops", "x.npy", *LABELS)
    assert code == 0
    assert "model.skops on the 20 of 90 rows of x.npy whose class is in 'label'" in said
    assert (
        "12 labels of rows that were chosen for being informative are left out" in said
    )


def test_ask_notes_columns_that_cannot_be_used_or_give_the_class_away(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    codes = np.arange(90) % 3
    frame = flowers().assign(code=codes, remark=[f"remark {k}" for k in range(90)])
    arguments = "ask", write(tmp_path, frame), "--target", "species", "--n", 5
    code, said, _ = call(*arguments)
    assert code == 0
    assert "Note: Column 'remark' holds 90 different texts in 90 rows" in said
    assert "Warning: Column 'code' is 0 for iris, 1 for lily, 2 for rose" in said
    assert "class is known, drop it: --drop code." in said
    Path("to_label.csv").unlink()
    code, said, error = call(*arguments, "--strict")
    assert (code, said) == (2, "")
    assert "Or leave out the column: --drop remark." in error
    assert not Path("to_label.csv").exists()


def test_notes_on_columns_come_after_the_answer_and_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = flowers(n_labeled=40).assign(remark=[f"remark {k}" for k in range(90)])
    arguments = "ask", write(tmp_path, frame), "--target", "species", "--n", 5
    said = call(*arguments)[1]
    answer, next_step, note = map(said.index, ("Expect ", "Next: ", "Note: Column "))
    assert answer < next_step < note
    answers = pd.read_csv("to_label.csv", dtype=str, keep_default_na=False)
    answers["species"] = "iris"
    answers.to_csv("to_label.csv", index=False)
    again = call(*arguments)[1]
    assert "Added 5 rows" in again
    assert "Note: " not in again


def test_ids_of_a_table_join_the_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = (
        flowers().drop(columns="species").assign(name=[f"n{k:02}" for k in range(90)])
    )
    frame["remark"] = [f"seen by {k}, at noon" for k in range(90)]
    path = write(tmp_path, frame)
    assert call("ask", path, "--n", 9, "--id", "name", "--target", "species")[0] == 0
    answers = pd.read_csv("to_label.csv", dtype=str, keep_default_na=False)
    assert list(answers.columns[:2]) == ["name", "species"]
    assert {"p", "q", "color", "wild"} <= set(answers.columns)
    kinds = np.array(["iris", "lily", "rose"])
    answers["species"] = [kinds[int(name[1:]) % 3] for name in answers["name"]]
    answers.to_csv("to_label.csv", index=False)
    asked = call(
        "ask", path, "--n", 0, "--id", "name", "--target", "species", "--json"
    )[1]
    command = json.loads(asked)["next"]
    assert command.endswith("--id name --target species")
    code, said, _ = call(*shlex.split(command)[1:])
    assert code == 0
    assert "for 'species', fitted to 9 labeled and 81 unlabeled rows" in said


def spoil(column, value):
    frame = pd.read_csv("to_label.csv", dtype=str, keep_default_na=False)
    frame.loc[0, column] = value
    frame.to_csv("to_label.csv", index=False)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("row", "999", "no row of x.npy has the 'row' '999'"),
        ("label", "IRIS ", "spells a class in 2 ways, 'IRIS', 'iris'"),
        ("how", "Chosen", "column 'how' must say chosen or random, got 'Chosen'"),
    ],
)
def test_answers_that_cannot_be_meant_are_refused_and_stay(
    features, column, value, message
):
    call("ask", "x.npy", "--n", 30)
    fill(features)
    spoil(column, value)
    before = Path("to_label.csv").read_text()
    for command in (("ask", "x.npy"), ("fit", "x.npy", "--id", "row")):
        code, _, error = call(*command, "--labels", "to_label.csv")
        assert code == 2
        assert message in error
    assert Path("to_label.csv").read_text() == before


@pytest.fixture
def flower_table(tmp_path, monkeypatch):
    """90 flowers, 60 of them with a class, in the folder where the commands run."""
    monkeypatch.chdir(tmp_path)
    frame = flowers(n_labeled=60).rename(columns={"species": "Species"})
    frame.to_csv("flowers.csv", index=False)
    return frame


def test_a_table_needs_a_target_and_the_error_lists_likely_columns_first(flower_table):
    code, said, error = call("ask", "flowers.csv")
    assert (code, said) == (2, "")
    assert "has no column 'label': name the column that holds the classes with" in error
    assert "--target. Its columns are 'Species', " in error
    assert error.strip().endswith("If no row has a class yet, pass --target label.")
    assert not Path("to_label.csv").exists()
    found = json.loads(call("ask", "flowers.csv", "--target", "Species", "--json")[1])
    assert (found["n_labels"], found["error"]["n_rows"]) == (60, 60)


def test_a_target_like_the_name_of_a_column_is_taken_for_a_typing_error(flower_table):
    for target in ("species", "Specis"):
        code, _, error = call("ask", "flowers.csv", "--target", target)
        assert code == 2
        assert f"no column {target!r}. Did you mean 'Species'?" in error
    said = call("ask", "flowers.csv", "--target", "kind")[1]
    assert "If a column holds the classes, name it with --target; 'Species', " in said
    # Once there are answers, the target is known to be meant.
    frame = pd.read_csv("to_label.csv", dtype=str, keep_default_na=False)
    frame["kind"] = "a"
    frame.to_csv("to_label.csv", index=False)
    assert "--target;" not in call("ask", "flowers.csv", "--target", "kind")[1]


def test_columns_and_marks_are_chosen_as_for_a_fit_which_is_named_with_them(
    flower_table,
):
    flower_table.fillna({"Species": "none yet"}).to_csv("flowers.csv", index=False)
    options = ["--target", "Species", "--unlabeled", "none yet", "--drop", "p,color"]
    found = json.loads(call("ask", "flowers.csv", "--n", 0, "--json", *options)[1])
    assert found["n_labels"] == 60
    command = shlex.split(found["next"])
    code, said, _ = call(*command[1:])
    assert code == 0
    assert "fitted to 60 labeled and 30 unlabeled rows" in said
    assert "p" not in said.partition("It reads")[2].split(".")[0].split()
    code, _, error = call("ask", "flowers.csv", *options[:2], "--keep", "nothing")
    assert (code, "no column 'nothing'" in error) == (2, True)


def test_options_for_columns_are_refused_for_an_array(features):
    code, _, error = call("ask", "x.npy", "--drop", "a")
    assert (code, "--drop is for tables, and x.npy is an array" in error) == (2, True)


def test_remarks_of_a_fit_are_printed_in_the_words_of_the_command_line(flower_table):
    flower_table["code"] = flower_table["Species"].map(hash_of_class)
    flower_table["nr"] = range(5, 95)
    flower_table.loc[3, "nr"] = 4
    flower_table.to_csv("flowers.csv", index=False)
    said = call("ask", "flowers.csv", "--target", "Species")[1]
    assert "Note: Column 'nr' looks like an id" in said
    assert "--drop nr" in said
    assert "Warning: Column 'code' is " in said
    assert "--drop code" in said
    fitted = call("fit", "flowers.csv", "--target", "Species")[1]
    for line in said.splitlines():
        if "'code'" in line or "'nr'" in line:
            assert line in fitted


def test_a_leak_is_seen_in_the_answers_too(flower_table):
    truth = flowers(n_labeled=90)["species"]
    flower_table["code"] = truth.map(hash_of_class)
    flower_table.drop(columns="Species").to_csv("flowers.csv", index=False)
    options = "--target", "label", "--n", 30
    assert "'code'" not in call("ask", "flowers.csv", *options)[1]
    frame = pd.read_csv("to_label.csv", dtype=str, keep_default_na=False)
    frame["label"] = truth[frame["file_row"].astype(int) - 2].to_numpy()
    frame.to_csv("to_label.csv", index=False)
    said = call("ask", "flowers.csv", *options)[1]
    assert "Warning: Column 'code' is " in said


def test_the_row_of_an_answer_is_the_one_that_a_spreadsheet_and_messages_show(
    flower_table,
):
    options = "--target", "Species", "--n", 30
    said = call("ask", "flowers.csv", *options)[1]
    assert (
        "Its column 'file_row' counts as a spreadsheet does: the header of "
        "flowers.csv is row 1." in said
    )
    # The 60 rows below the names have a class.
    truth = flowers(n_labeled=90)["species"]
    frame = pd.read_csv("to_label.csv", dtype=str, keep_default_na=False)
    assert set(frame["file_row"].astype(int)) == set(range(62, 92))
    frame["Species"] = truth[frame["file_row"].astype(int) - 2].to_numpy()
    frame.to_csv("to_label.csv", index=False)

    code, _, error = call("fit", "flowers.csv", "--labels", "to_label.csv")
    assert (code, "pass its column of ids, --id file_row." in error) == (2, True)
    fit = ["fit", "flowers.csv", "--target", "Species", "--labels", "to_label.csv"]
    code, said, _ = call(*fit, "--id", "file_row")
    assert (code, "fitted to 90 labeled and 0 unlabeled rows" in said) == (0, True)
    # Numbers from 0 are not taken for these, nor these for numbers from 0.
    code, _, error = call(*fit, "--id", "row", "--force")
    assert (code, "has no column 'row'" in error) == (2, True)


def hash_of_class(name):
    """A number that gives the class away."""
    return {"iris": 3.5, "lily": 5.25, "rose": 9.125}.get(name)


def test_rows_of_none_of_the_classes_are_asked_for_and_left_out(features):
    call("ask", "x.npy", "--n", 40)
    none = np.where(features == "rose", "none of these", features)
    fill(none)
    code, said, error = call("ask", "x.npy", "--n", 8, "--unknown")
    assert (code, error) == (0, "")
    assert "of none of the classes: left out" in said
    frame = pd.read_csv("to_label.csv", dtype=str, keep_default_na=False)
    added = frame[frame["label"] == ""]["row"].astype(int)
    assert (features[added] == "rose").mean() > 0.5
    assert set(frame["guess"]) <= {"", "iris", "lily"}
    code, said, _ = call("fit", "x.npy", *LABELS, "--force")
    assert code == 0
    assert "rose" not in said
