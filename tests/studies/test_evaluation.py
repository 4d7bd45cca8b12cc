"""Models judged by the rows of files, as a user calls it."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss

from iclda import load_model
from iclda.studies.evaluation import Evaluation, base_rate_sentence
from iclda.studies.measures import Confusion
from tests.helpers.table_files import call, flowers, write, write_model

SPECIES = np.array(["iris", "lily", "rose"], dtype=object)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("fitted"))


def known(n=300):
    """Rows with all their classes."""
    frame = flowers(n=n)
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
        "Base rate: calling every row 'iris' would get 66.7 % wrong; "
        "the model is clearly better.",
        "Brier score: 0.",
        "Calibration: on average ",
        "class  rows  wrong   error     90 % interval",
        "true \\ predicted  iris  lily  rose",
    ):
        assert words in said
    assert "Balanced" not in said


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
        "would get 0.0 % wrong; "
        "rows of one class cannot show what the model has learned." in said
    )


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


def test_the_file_of_the_fit_is_recognized(model):
    said = call("evaluate", model, model.with_name("flowers.csv"))[1]
    assert "Warning: The model was fitted to this very file" in said
    assert "30 of 90 rows" in said


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
    assert "no row has a class of the model" in call("evaluate", model, empty)[2]
