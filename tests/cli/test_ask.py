"""The loop on the command line: ask, fill in, ask, fit; what it says and refuses."""

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.table_files import call, flowers, write

LABELS = "--labels", "to_label.csv", "--id", "row"


@pytest.fixture
def features(tmp_path, monkeypatch):
    """An array of 90 rows and their classes, in the folder where the commands run."""
    monkeypatch.chdir(tmp_path)
    truth = np.array(["iris", "lily", "rose"])[np.arange(90) % 3]
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
        "Wrote to_label.csv: 9 more rows to label, 9 chosen.",
        "Next: fill in the column 'label' of to_label.csv, then run the same "
        "command again, with "
        "--test 50 to know the error",
    ]
    assert Path("to_label.csv").read_text().startswith("row,label,how,round,guess\n")
    fill(features)
    code, said, _ = call("fit", "x.npy", *LABELS)
    assert code == 0
    assert (
        "How often it errs on new rows is not known: it is measured by at least 8"
        in said
    )
    said = call("ask", "x.npy", "--n", 6, "--test", 20)[1]
    assert "there are 0 among 9 labels. To draw such rows, pass the option test" in said
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


def test_no_fit_is_named_before_two_classes_are_known(features):
    said = call("ask", "x.npy", "--n", 0)[1]
    assert (
        said
        == "Next: run the same command with --n 20, since a fit needs labels of two "
        "classes\n"
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
    assert "cannot be compared: it is measured by at least 8" in error
    call("ask", "x.npy", "--n", 0, "--test", 20)
    fill(features)
    code, said, _ = call("compare", "x.npy", *options)
    assert code == 0
    assert (
        "numbers are those of the 20 labeled rows that were drawn at random"
        in " ".join(said.split())
    )
    assert "from 20 labeled rows" in " ".join(said.split())


def test_an_evaluation_leaves_chosen_labels_out(features):
    call("ask", "x.npy", "--n", 12)
    fill(features)
    call("fit", "x.npy", *LABELS)
    code, _, error = call("evaluate", "model.skops", "x.npy", *LABELS)
    assert code == 2
    assert (
        "is not known: it is measured by at least 8 labels of rows drawn at random"
        in error
    )
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
    assert "Note: Column 'code' is 0 for iris, 1 for lily, 2 for rose" in said
    assert "class is known, drop it: --drop code." in said
    Path("to_label.csv").unlink()
    code, said, error = call(*arguments, "--strict")
    assert (code, said) == (2, "")
    assert "Or leave out the column: --drop remark." in error
    assert not Path("to_label.csv").exists()


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
