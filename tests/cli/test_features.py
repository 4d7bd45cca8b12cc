"""Features of a network from array files and lists, with labels in another file."""

import json

import numpy as np
import pandas as pd
import pytest

from iclda import load_model
from tests.helpers.table_files import call

NAMES = np.array(["cat", "dog", "owl"])
TRUTH = NAMES[np.arange(240) % 3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Features of 240 rows as one file, as shards and as lists, and 12 labels."""
    folder = tmp_path_factory.mktemp("features")
    rng = np.random.default_rng(0)
    # Few of 80 features tell the classes apart, and these vary most.
    X = rng.normal(size=(240, 80)) * np.geomspace(4, 0.2, 80)
    X += (
        (TRUTH[:, None] == NAMES) @ rng.normal(size=(3, 80)) * np.geomspace(6, 0.01, 80)
    )
    X = X.astype(np.float16)
    np.save(folder / "x.npy", X)
    (folder / "shards").mkdir()
    for k in range(3):
        np.save(folder / "shards" / f"{k}.npy", X[80 * k : 80 * k + 80])
    names = [f"{k}.jpg" for k in range(240)]
    lists = pd.DataFrame({"file": names, "e": list(X.astype(np.float32))})
    lists.to_parquet(folder / "x.parquet")
    few = np.arange(12)[::-1] * 5 + np.arange(12)
    pd.DataFrame({"row": few, "kind": TRUTH[few]}).to_csv(
        folder / "few.csv", index=False
    )
    named = pd.DataFrame({"file": np.array(names)[few], "kind": TRUTH[few]})
    named.to_csv(folder / "named.csv", index=False)
    pd.DataFrame({"kind": TRUTH}).to_csv(folder / "truth.csv", index=False)
    options = "--labels", folder / "few.csv", "--id", "row", "--out", folder / "m.skops"
    code, said, error = call("fit", folder / "x.npy", *options)
    assert (code, error) == (0, "")
    (folder / "said.txt").write_text(said)
    return folder


def test_a_fit_to_an_array_says_what_it_learned_from_and_what_is_next(folder):
    said = (folder / "said.txt").read_text()
    assert said.startswith(
        "The average of four fits for 'kind', fitted to 12 labeled and 228"
    )
    assert "\nChose the average of four fits " in said
    assert ", the default on features of a network: " in said
    assert "Expect " in said
    assert "Next: iclda predict" in said
    code, shown, _ = call("show", folder / "m.skops", "--json")
    details = json.loads(shown)
    assert (code, details["n_features"], details["about"]["target"]) == (0, 80, "kind")
    assert "It reads 80 features." in call("show", folder / "m.skops")[1]
    assert [source["n_rows"] for source in details["about"]["sources"]] == [240, 12]
    assert (
        load_model(folder / "m.skops").predict(np.load(folder / "x.npy")[:3]).tolist()
    )


def test_files_shards_and_lists_give_the_same_predictions(folder, tmp_path):
    options = (
        "--labels",
        folder / "named.csv",
        "--id",
        "file",
        "--out",
        tmp_path / "l.skops",
    )
    assert call("fit", folder / "x.parquet", *options)[0] == 0
    for model, data in (("m", "x.npy"), ("m", "shards"), ("l", "x.parquet")):
        path = (folder if model == "m" else tmp_path) / f"{model}.skops"
        ids = "file" if model == "l" else "row"
        out = tmp_path / f"{data}.csv"
        assert call("predict", path, folder / data, "--out", out, "--id", ids)[0] == 0
    found = [
        pd.read_csv(tmp_path / f"{name}.csv")
        for name in ("x.npy", "shards", "x.parquet")
    ]
    assert found[0]["row"].tolist() == list(range(240))
    assert found[2]["file"].tolist() == [f"{k}.jpg" for k in range(240)]
    assert found[0].equals(found[1])
    assert found[0]["class"].equals(found[2]["class"])
    assert (found[0]["class"] == TRUTH).mean() > 0.9


def test_a_model_is_judged_by_labels_of_another_file(folder):
    command = "evaluate", folder / "m.skops", folder / "x.npy", "--json", "--labels"
    all_rows = json.loads(call(*command, folder / "truth.csv")[1])
    assert (all_rows["n_rows"], all_rows["target"]) == (228, "kind")
    assert all_rows["n_training_rows_left_out"] == 12
    assert all_rows["error"] < 0.1
    others = pd.DataFrame({"row": np.arange(0, 240, 20), "kind": TRUTH[::20]})
    others.to_csv(folder / "others.csv", index=False)
    few = json.loads(call(*command, folder / "others.csv", "--id", "row")[1])
    assert (few["n_rows"], few["n_rows_in_file"]) == (12, 240)
    refused = call(*command, folder / "few.csv", "--id", "row")[2]
    assert "all 12 rows with a class trained" in refused
    code, _, error = call(*command, folder / "few.csv")
    assert code == 2
    assert "few.csv has 12 rows, and" in error
    assert "set --id to a column of ids" in error


def test_other_features_than_those_of_the_fit_are_counted(folder, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5, 64)))
    code, _, error = call("predict", folder / "m.skops", tmp_path / "x.npy")
    assert code == 2
    assert "x.npy has 64 features, and the model was fitted to 80" in error


def test_a_comparison_on_an_array_names_its_labels_in_the_next_command(
    folder, tmp_path
):
    pytest.importorskip("jinja2", reason="reports need iclda[experiments]")
    labels = "--labels", folder / "few.csv", "--id", "row"
    options = (
        "--methods",
        "average,em",
        "--fast",
        "--jobs",
        "1",
        "--out",
        tmp_path / "out",
    )
    code, said, _ = call("compare", folder / "x.npy", *labels, *options, "--verbose")
    assert code == 0
    assert f"--target kind --labels {folder / 'few.csv'} --id row --method" in said
    assert "240: 12 labeled, 228 unlabeled" in said
