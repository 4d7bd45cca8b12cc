"""Models judged by the rows of files, as a user calls it."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import (
    balanced_accuracy_score,
    brier_score_loss,
    roc_auc_score,
)

from iclda import load_model
from iclda.studies.evaluation import Evaluation, base_rate_sentence
from iclda.studies.measures import Confusion
from tests.helpers.table_files import call, flowers, write, write_model

SPECIES = np.array(["iris", "lily", "rose"], dtype=object)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("fitted"))


def known(n=300):
    """Rows with all their classes, other ones than those of the fit."""
    frame = flowers(n=90 + n)[90:].reset_index(drop=True)
    return frame.assign(species=SPECIES[np.arange(n) % 3])


def test_error_interval_and_matrix_are_those_of_the_rows_with_a_class(model, tmp_path):
    frame = known()
    frame.loc[250:, "species"] = None
    data = write(tmp_path, frame, "new.csv")
    code, said, _ = call("evaluate", model, data, "--json")
    found = json.loads(said)
    assert code == 0
    rows = pd.read_csv(data)[:250]
    fitted = load_model(model)
    predicted = fitted.predict(rows[["p", "q", "color", "wild"]])
    n_wrong = int((predicted != rows["species"]).sum())
    assert (found["n_rows"], found["n_rows_in_file"], found["n_wrong"]) == (
        250,
        300,
        n_wrong,
    )
    assert found["error_low"] < found["error"] < found["error_high"]
    assert sum(sum(row.values()) for row in found["confusion"].values()) == 250
    truth = (rows["species"].to_numpy()[:, None] == fitted.classes_).astype(float)
    probabilities = fitted.predict_proba(rows[["p", "q", "color", "wild"]])
    columns = [brier_score_loss(truth[:, k], probabilities[:, k]) for k in range(3)]
    assert found["brier"] == pytest.approx(sum(columns) / 2)
    assert found["mean_confidence"] == pytest.approx(probabilities.max(axis=1).mean())
    assert sum(each["rows"] for each in found["calibration"]) == 250
    assert found["is_training_data"] is False


def test_the_terminal_shows_error_base_rate_classes_and_matrix(model, tmp_path):
    code, said, error = call("evaluate", model, write(tmp_path, known(), "new.csv"))
    assert (code, error) == (0, "")
    for words in (
        "300 of 300 rows of",
        "with 90 % confidence.",
        "Always predicting 'iris' is wrong 66.7 % of the time; "
        "the model is clearly better.",
        "Brier score: 0.",
        "Calibration: on average ",
        "class  rows  wrong   error     90 % interval",
        "true \\ predicted  iris  lily  rose",
    ):
        assert words in said
    assert "Warning" not in said
    assert "Left out" not in said
    # It is for two classes.
    assert "ROC" not in said


def test_rare_classes_have_a_balanced_error_and_a_single_one_shows_nothing(
    model, tmp_path
):
    frame = known()
    rare = frame[(frame["species"] != "rose") | (np.arange(300) % 9 == 2)]
    assert (
        "Balanced error: " in call("evaluate", model, write(tmp_path, rare, "n.csv"))[1]
    )
    single = frame.assign(species="iris", p=0.0, q=9.0)
    said = call("evaluate", model, write(tmp_path, single, "n.csv"))[1]
    assert (
        "is wrong 0.0 % of the time: "
        "rows of one class cannot show what the model has learned." in said
    )
    assert "Balanced" not in said


@pytest.mark.parametrize(
    ("counts", "end"),
    [
        ([[10.0, 0.0], [4.0, 1.0]], "; the model is not clearly better."),
        (
            [[7.0, 3.0], [3.0, 2.0]],
            "; the model is no better, though its probabilities are.",
        ),
    ],
)
def test_an_error_that_is_not_below_the_base_rate_is_said_to_be_no_better(counts, end):
    confusion = Confusion(("a", "b"), np.array(counts))
    found = Evaluation(
        "m", "d", "kind", 15, confusion, 0.1, np.zeros((10, 3)), {}, False
    )
    assert base_rate_sentence(found).endswith(end)


def test_the_rows_that_trained_the_model_are_left_out(model, tmp_path):
    # The table of the fit in another order, now with all classes.
    frame = flowers(n_labeled=90)[::-1]
    found = json.loads(
        call("evaluate", model, write(tmp_path, frame, "n.csv"), "--json")[1]
    )
    others = flowers(n_labeled=90)[30:]
    predicted = load_model(model).predict(others.drop(columns="species"))
    assert (found["n_rows"], found["n_training_rows_left_out"]) == (60, 30)
    assert found["n_wrong"] == (predicted != others["species"]).sum()
    assert found["is_training_data"] is False
    said = call("evaluate", model, tmp_path / "n.csv")[1]
    assert "on the 60 of 90 rows of" in said
    assert "Left out: 30 rows that trained the model." in said


def test_labels_of_the_fit_show_no_error(model):
    code, said, error = call("evaluate", model, model.with_name("flowers.csv"))
    assert (code, said) == (2, "")
    assert f"all 30 rows with a class trained {model}, so they cannot show" in error
    assert f"`iclda show {model}` states the error to expect." in error


@pytest.fixture(scope="module")
def coarse(tmp_path_factory):
    """A model of a table of few distinct rows, and the table with all classes."""
    folder = tmp_path_factory.mktemp("coarse")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.integers(4, size=120), "b": rng.choice(["x", "y"], 120)}
    )
    frame["kind"] = np.where(frame["a"] + rng.normal(size=120) > 1.5, "yes", "no")
    masked = frame.assign(kind=frame["kind"].where(frame.index < 40))
    data = write(folder, masked, "masked.csv")
    out = folder / "m.skops"
    command = ("fit", data, "--target", "kind", "--method", "em", "--out", out)
    assert call(*command)[0] == 0
    return out, data, frame


def test_where_rows_cannot_be_told_apart_a_warning_comes_before_the_numbers(
    coarse, tmp_path
):
    model, masked, frame = coarse
    data = write(tmp_path, frame, "all.csv")
    said = call("evaluate", model, data)[1]
    assert "on the 120 of 120 rows" in said
    warning = said.index("Warning: This file has a row like each row that trained")
    assert warning < said.index("Error: ")
    assert json.loads(call("evaluate", model, data, "--json")[1])["is_training_data"]
    # The file of the fit is known by its content.
    assert "all 40 rows with a class trained" in call("evaluate", model, masked)[2]
    # Fewer kinds of rows than the fit had: they are others.
    few = write(tmp_path, frame[frame["a"] < 2], "few.csv")
    assert "Warning" not in call("evaluate", model, few)[1]


def test_two_classes_have_an_area_under_the_curve_and_a_balanced_error(
    coarse, tmp_path
):
    model, _, frame = coarse
    rare = frame[(frame["kind"] == "no") | (frame.index % 5 == 0)]
    data = write(tmp_path, rare, "rare.csv")
    found = json.loads(call("evaluate", model, data, "--json")[1])
    fitted = load_model(model)
    scores = fitted.predict_proba(rare[["a", "b"]])[:, 1]
    assert found["roc_auc"] == pytest.approx(roc_auc_score(rare["kind"], scores))
    predicted = fitted.predict(rare[["a", "b"]])
    balanced = 1 - balanced_accuracy_score(rare["kind"], predicted)
    assert found["balanced_error"] == pytest.approx(balanced)
    said = call("evaluate", model, data)[1]
    assert f"Area under the ROC curve: {found['roc_auc']:.3f} (" in said
    assert "Balanced error: " in said


def test_labels_that_the_model_contradicts_are_listed_by_their_rows(model, tmp_path):
    # Every species is far from the others.
    frame = known()
    frame[["p", "q"]] += 3 * np.eye(3, 2)[np.arange(300) % 3]
    frame.loc[[7, 40], ["p", "q"]] = [0.0, 7.0]
    frame.loc[[7, 40], "species"] = ["iris", "rose"]
    data = write(tmp_path, frame, "n.csv")
    suspects = json.loads(call("evaluate", model, data, "--json")[1])[
        "suspicious_labels"
    ]
    # The names of the columns are row 1.
    found = {(each["row"], each["label"], each["predicted"]) for each in suspects}
    assert {(9, "iris", "lily"), (42, "rose", "lily")} <= found
    said = call("evaluate", model, data)[1]
    assert (
        "The model contradicts these labels. Check them (the header is "
        "row 1):\n  row  label  predicted" in said
    )
    assert re.search(r"^ +9  iris   lily       +> 99.9 %", said, re.MULTILINE)

    named = frame.assign(key=[f"k{row}" for row in range(300)])
    features = write(tmp_path, named.drop(columns="species"), "features.csv")
    labels = write(tmp_path, named[["key", "species"]], "labels.csv")
    said = call("evaluate", model, features, "--labels", labels, "--id", "key")[1]
    assert re.search(r"^ +k7  iris   lily       +> 99.9 %", said, re.MULTILINE)


@pytest.mark.parametrize("is_own", [False, True])
def test_only_a_page_of_its_own_is_replaced(model, tmp_path, is_own):
    data = write(tmp_path, known(), "n.csv")
    page = tmp_path / "page.html"
    if is_own:
        assert call("evaluate", model, data, "--out", page)[0] == 0
    else:
        page.write_text("<html>")
    before = page.read_text()
    code, _, error = call("evaluate", model, data, "--out", page)
    assert code == (0 if is_own else 2)
    assert is_own or f"{page} exists, and `iclda evaluate` did not write it" in error
    assert page.read_text() == before
    assert call("evaluate", model, data, "--out", page, "--force")[0] == 0
    assert page.read_text() != "<html>"


def test_classes_that_the_model_does_not_know_count_as_wrong_and_marks_as_unknown(
    model, tmp_path
):
    frame = known()
    frame.loc[:9, "species"] = "tulip"
    frame.loc[10:29, "species"] = "?"
    frame.loc[30:39, "species"] = "later"
    data = write(tmp_path, frame, "n.csv")
    code, said, _ = call("evaluate", model, data, "--unlabeled", "later", "--json")
    found = json.loads(said)
    assert (code, found["n_rows"]) == (0, 270)
    assert found["unknown_classes"] == {"tulip": 10}
    assert found["by_class"][-1]["n_wrong"] == 10
    assert "'tulip' (10 rows), 'later' (10 rows)." in call("evaluate", model, data)[1]


def test_a_page_is_written_on_request(model, tmp_path):
    data = write(tmp_path, known(), "<b>.csv")
    page = tmp_path / "page.html"
    code, said, _ = call("evaluate", model, data, "--out", page)
    assert code == 0
    assert f"Wrote {page}." in said
    text = page.read_text()
    for words in (
        "Errors by class",
        "Confusion matrix",
        "Brier score",
        "&lt;b&gt;.csv",
        "<svg",
    ):
        assert words in text
    assert "fits" not in text
    assert call("evaluate", model, data, "--quiet") == (0, "", "")


def test_what_cannot_be_evaluated_is_refused_with_the_way_out(model, tmp_path):
    frame = known().rename(columns={"species": "Species"})
    data = write(tmp_path, frame, "n.csv")
    code, _, error = call("evaluate", model, data)
    assert code == 2
    assert (
        "has no column 'species', which should hold the classes: set --target "
        "to the column that does. Did you mean 'Species' for 'species'?" in error
    )
    assert call("evaluate", model, data, "--target", "Species")[0] == 0
    assert (
        "must name an .html file"
        in call("evaluate", model, data, "--out", tmp_path / "p.md")[2]
    )
    empty = write(tmp_path, flowers().assign(species=None), "e.csv")
    assert (
        "'species' holds no class, and the model knows 'iris', 'lily', 'rose', so there"
        in call("evaluate", model, empty)[2]
    )
    others = write(tmp_path, known().assign(species="tulip"), "o.csv")
    assert (
        "holds 'tulip', and the model knows 'iris', 'lily', 'rose', so there is "
        "nothing to compare with: write its classes, or name the column that holds "
        "them with --target." in call("evaluate", model, others)[2]
    )
