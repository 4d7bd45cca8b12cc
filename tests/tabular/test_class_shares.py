"""Class shares of a file: `iclda shares`."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.helpers.table_files import call, write


def people(n, share, seed):
    """Two classes in two numbers."""
    rng = np.random.default_rng(seed)
    is_ill = rng.random(n) < share
    frame = pd.DataFrame(
        rng.normal(size=(n, 2)) + 2 * is_ill[:, None], columns=["p", "q"]
    )
    frame.insert(0, "id", [f"p{i}" for i in range(n)])
    frame["state"] = np.where(is_ill, "ill", "well")
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shares")
    train = people(200, 0.5, 0)
    train.loc[60:, "state"] = None
    table = write(folder, train.drop(columns="id"), "train.csv")
    options = ("--target", "state", "--method", "average", "--quiet")
    call("fit", table, *options, "--out", folder / "model.skops")
    write(folder, people(600, 0.15, 1).drop(columns="state"), "new.csv")
    return folder


def shares(folder, *options):
    code, output, error = call(
        "shares", folder / "model.skops", folder / "new.csv", *options
    )
    return code, output + error


def test_shares_are_printed_with_intervals(folder):
    code, output = shares(folder)
    assert code == 0
    assert output.split("\n")[1].split()[0] == "well"
    assert "600 rows. The intervals cover chance" in " ".join(output.split())


def test_labels_drawn_at_random_correct_the_count(folder):
    truth = people(600, 0.15, 1)
    checked = truth[["id", "state"]].sample(100, random_state=0)
    labels = write(folder, checked, "checked.csv")
    code, output = shares(folder, "--labels", labels, "--id", "id", "--json")
    assert code == 0
    found = json.loads(output)
    assert found["n_random"] == 100
    assert found["classes"] == ["ill", "well"]
    share = (truth["state"] == "ill").mean()
    assert found["low"][0] <= share <= found["high"][0]
    code, alone = shares(folder, "--json")
    width = json.loads(alone)["high"][0] - json.loads(alone)["low"][0]
    assert found["high"][0] - found["low"][0] != width


def test_of_the_rows_that_ask_wrote_only_random_ones_count(folder, tmp_path):
    truth = people(600, 0.15, 1).set_index("id")["state"]
    labels = tmp_path / "to_label.csv"
    table = folder / "new.csv"
    options = ("--id", "id", "--target", "state", "--labels", labels, "--quiet")
    assert call("ask", table, "--n", 10, "--test", 30, *options)[0] == 0
    frame = pd.read_csv(labels, dtype=str, keep_default_na=False)
    frame["state"] = truth[frame["id"]].to_numpy()
    frame.to_csv(labels, index=False)
    code, output = shares(folder, "--labels", labels, "--id", "id", "--json")
    assert code == 0
    assert json.loads(output)["n_random"] == 30


def test_answers_of_none_of_these_count_to_no_class(folder, tmp_path):
    truth = people(600, 0.15, 1)
    # The first rows have labels in the file itself, which no one drew.
    own = truth.assign(state=truth["state"].where(truth.index < 50))
    table = write(tmp_path, own, "new.csv")
    answers = truth.loc[100:299, ["id", "state"]].astype(object)
    answers.loc[100:149, "state"] = "none of these"
    answers = answers.assign(how="random", round=1, guess="")
    labels = write(tmp_path, answers, "to_label.csv")
    options = ("--labels", labels, "--id", "id", "--json")
    code, output, error = call("shares", folder / "model.skops", table, *options)
    assert code == 0, error
    found = json.loads(output)
    assert found["n_random"] == 200
    # A quarter of the random rows is in no class.
    assert sum(found["shares"]) == pytest.approx(0.75)


def test_labels_that_the_model_does_not_know_are_named(folder, tmp_path):
    labels = tmp_path / "checked.csv"
    pd.DataFrame({"id": ["p1", "p2"], "state": ["ill", "dead"]}).to_csv(
        labels, index=False
    )
    code, output = shares(folder, "--labels", labels, "--id", "id")
    assert code == 2
    assert "'dead', and the classes of the model are 'ill', 'well'" in " ".join(
        output.split()
    )


def test_a_file_without_a_column_of_the_model_is_an_error(folder, tmp_path):
    table = write(tmp_path, people(20, 0.5, 0)[["p"]], "less.csv")
    code, _, error = call("shares", folder / "model.skops", table)
    assert code == 2
    assert "'q'" in error
