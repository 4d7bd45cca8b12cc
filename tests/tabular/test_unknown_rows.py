"""Rows of none of the classes in tables: warnings, predictions, answers."""

import numpy as np
import pandas as pd
import pytest

from iclda import AverageLDA, LeastSquaresClassifier
from iclda.tabular import read_table
from iclda.tabular.fit import fit_table
from iclda.tabular.unknown_rows import sample_of, share_of_no_class
from tests.helpers.table_files import call, write

KINDS = np.array(["cat", "dog", "owl"])


def animals(n=360, n_labeled=120, seed=0, is_known=(True, True, False)):
    """Three classes in four numbers; labels of some rows of the known ones."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    rows = rng.normal(size=(n, 4)) + 5 * np.eye(3, 4)[codes]
    frame = pd.DataFrame(rows, columns=list("pqrs"))
    is_labeled = np.array(is_known)[codes] & (np.arange(n) < n_labeled)
    frame["kind"] = np.where(is_labeled, KINDS[codes], None)
    return frame, codes


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.skops"
    table = write(tmp_path, animals()[0], "train.csv")
    code, said, _ = call("fit", table, "--target", "kind", "--out", path)
    assert code == 0
    assert "of the unlabeled rows resemble none of the classes: label some with" in said
    return path


def predict(model, *options):
    table = write(model.parent, animals(seed=1)[0].drop(columns="kind"), "new.csv")
    out = model.parent / "out.csv"
    code, said, error = call("predict", model, table, "--out", out, *options)
    return code, said + error, out


def test_rows_of_no_class_get_the_name_and_all_rows_a_p_value(model):
    codes = animals(seed=1)[1]
    code, said, out = predict(model, "--none", 0.05, "--none-name", "new")
    assert code == 0
    found = pd.read_csv(out)
    assert list(found) == [
        *("class", "p_value_known", "probability_cat", "probability_dog")
    ]
    is_named = found["class"] == "new"
    assert (is_named == (found["p_value_known"] < 0.05)).all()
    assert is_named[codes == 2].mean() > 0.8
    assert is_named[codes < 2].mean() < 0.15
    assert f"  new {is_named.sum():>17} " in said
    # A file of predictions is replaced, with p-values or without.
    assert predict(model)[0] == 0
    assert "p_value_known" not in pd.read_csv(out)
    assert predict(model, "--none", 0.3)[0] == 0


def test_p_values_of_groups_are_those_of_their_adapted_models(model):
    _, _, out = predict(model, "--none", 0.05, "--adapt", "--change", "shares")
    found = pd.read_csv(out)
    assert (found["class"] == "other").sum() > 60


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--none", 0), "--none is the share of rows of known classes"),
        (("--none", 1.5), "between 0 and 1, got 1.5"),
        (("--none", 0.05, "--none-name", "cat"), "--none-name is the class 'cat'"),
        (("--none", 0.05, "--none-name", " "), "--none-name is empty"),
        (("--none-name", "new"), "--none-name is for --none"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(model, options, message):
    code, said, out = predict(model, *options)
    assert code == 2
    assert message in " ".join(said.split())
    assert not out.exists()


def test_a_model_without_gaussian_classes_says_what_to_fit(tmp_path):
    path = tmp_path / "model.skops"
    table = write(tmp_path, animals()[0], "train.csv")
    options = ("--target", "kind", "--method", "sklearn-forest", "--out", path)
    assert call("fit", table, *options)[0] == 0
    code, said, _ = predict(path, "--none", 0.05)
    assert code == 2
    assert "fit AutoLDA or AverageLDA" in " ".join(said.split())


def test_rows_are_said_to_be_of_no_class_only_where_that_is_clear():
    frame, codes = animals(is_known=(True, True, True))
    rows = frame[list("pqrs")].to_numpy()
    labels = np.where(np.arange(360) < 120, codes, -1)
    fitted = AverageLDA().fit(rows, labels)
    assert share_of_no_class(fitted, rows[120:]) == 0
    moved = np.concatenate([rows[120:240], rows[240:] + 30])
    assert 0.4 < share_of_no_class(fitted, moved) < 0.6
    # Four labels are too few.
    few = AverageLDA().fit(rows, np.where(np.arange(360) < 4, codes, -1))
    assert share_of_no_class(few, rows + 30) == 0
    assert share_of_no_class(LeastSquaresClassifier().fit(rows, codes), rows) == 0
    assert share_of_no_class(fitted, rows[:0]) == 0
    # So are four rows for each column.
    assert share_of_no_class(fitted, rows[:20] + 30) > 0
    assert share_of_no_class(fitted, rows[:19] + 30) == 0


def test_a_sample_has_unlabeled_rows_alone():
    is_unlabeled = np.arange(10_000) % 2 == 0
    is_drawn = sample_of(is_unlabeled)
    assert is_drawn.sum() == 4_096
    assert not is_drawn[~is_unlabeled].any()


@pytest.mark.parametrize("kind", ["table", "array"])
def test_a_row_of_none_of_the_classes_is_neither_labeled_nor_unlabeled(kind, tmp_path):
    frame, codes = animals(n=240, is_known=(True, True, True))
    rows = frame[list("pqrs")]
    if kind == "table":
        path = write(tmp_path, rows, "rows.csv")
    else:
        path = tmp_path / "rows.npy"
        np.save(path, rows.to_numpy())
    answers = pd.DataFrame(
        {"row": np.arange(60), "kind": KINDS[codes[:60]], "how": "random", "round": 1}
    )
    answers["guess"] = ""
    # In any spelling that a person may use.
    is_none = codes[:60] == 2
    answers.loc[is_none, "kind"] = "None of these"
    labels = write(tmp_path, answers, "labels.csv")
    table = read_table(path, target="kind", labels=labels, id="row")
    assert table.classes == ("cat", "dog")
    assert table.is_none.sum() == is_none.sum() == 20
    assert table.n_unlabeled == 180
    fitted, report = fit_table(table, None)
    assert report.n_unlabeled == 180
    assert any("20 rows of none of the classes" in note for note in report.notes)

    # The fit is that of a file without these rows.
    left = np.setdiff1d(np.arange(240), np.flatnonzero(is_none))
    if kind == "table":
        path = write(tmp_path, rows.iloc[left], "left.csv")
    else:
        path = tmp_path / "left.npy"
        np.save(path, rows.to_numpy()[left])
    known = np.where(left < 60, KINDS[codes[left]], "")
    labels = write(tmp_path, pd.DataFrame({"kind": known}), "kinds.csv")
    table = read_table(path, target="kind", labels=labels)
    expected, _ = fit_table(table, None)
    features = rows if kind == "table" else rows.to_numpy()
    difference = fitted.predict_proba(features) - expected.predict_proba(features)
    assert np.abs(difference).max() < 0.02
