"""The classifier of tables: one call in Python that gives what `iclda fit` gives."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from iclda import AutoLDA, SupervisedLDA, load_model, save_model
from iclda.tabular import TableClassifier
from tests.helpers.table_files import call, flowers, write


def mixed():
    """A table of numbers, text, booleans, dates and gaps; most rows are unlabeled."""
    frame = flowers(n=120, n_labeled=40)
    # In random order: labeled rows from an earlier time would be another population.
    n_days = 9 * np.random.default_rng(0).permutation(120)
    frame["seen"] = pd.Timestamp("2020-01-15") + pd.to_timedelta(n_days, unit="D")
    frame.loc[::11, "seen"] = pd.NaT
    return frame.drop(columns="species"), frame["species"].astype(object)


@pytest.mark.parametrize("name", ["flowers.csv", "flowers.parquet"])
def test_predictions_are_those_of_the_commands(tmp_path, name):
    X, y = mixed()
    data = write(tmp_path, X.assign(species=y), name)
    out = tmp_path / "m.skops"
    predicted = tmp_path / "p.parquet"
    assert call("fit", data, "--target", "species", "--out", out)[0] == 0
    assert call("predict", out, data, "--out", predicted)[0] == 0
    expected = pd.read_parquet(predicted)
    fitted = TableClassifier().fit(X, y)
    assert fitted.predict(X).tolist() == expected["class"].tolist()
    probabilities = expected[[f"probability_{name}" for name in fitted.classes_]]
    assert_allclose(fitted.predict_proba(X), probabilities, rtol=1e-9)


def test_unlabeled_rows_train_the_encoders():
    X, y = mixed()
    X.loc[60:, "color"] = "green"
    names = TableClassifier().fit(X, y).pipeline_[0].get_feature_names_out()
    # Green is the most frequent color, which has no column.
    assert {"color = red", "color = blue"} <= {*names}
    labeled = TableClassifier(SupervisedLDA()).fit(X[:40], y[:40])
    names = labeled.pipeline_[0].get_feature_names_out()
    assert not {"color = red", "color = blue"} <= {*names}


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, -1])
def test_every_usual_mark_of_an_unlabeled_row_is_one(missing):
    X, y = mixed()
    codes = [missing if pd.isna(name) else ord(name[0]) for name in y]
    fitted = TableClassifier(SupervisedLDA(shrinkage=0.1)).fit(X, codes)
    assert fitted.classes_.dtype.kind == "i"
    assert len(fitted.classes_) == 3


def test_columns_are_found_by_name_and_checked():
    X, y = mixed()
    fitted = TableClassifier(SupervisedLDA()).fit(X, y)
    shuffled = X[X.columns[::-1]].assign(more=1)
    assert_array_equal(fitted.predict(shuffled), fitted.predict(X))
    with pytest.raises(ValueError, match="has no column 'q', which the model was f"):
        fitted.predict(X.drop(columns="q"))
    with pytest.raises(ValueError, match="column 'q': must hold numbers"):
        fitted.predict(X.assign(q="many"))


def test_columns_of_names_are_left_out_with_a_warning():
    X, y = mixed()
    named = X.assign(name=[f"flower {k}" for k in range(120)], empty=None)
    with pytest.warns(UserWarning, match=re.escape("left out: 'name', 'empty'.")):
        fitted = TableClassifier().fit(named, y)
    assert fitted.feature_names_in_.tolist() == X.columns.tolist()
    assert_array_equal(fitted.predict(named), TableClassifier().fit(X, y).predict(X))
    with pytest.raises(ValueError, match=r"X has no column to learn from: .* 'name'"):
        TableClassifier().fit(named[["name"]], y)


def test_an_array_is_refused_with_a_frame_of_its_columns_alone():
    """A frame with y among its columns would teach the classifier the target."""
    X, y = mixed()
    with pytest.raises(
        TypeError, match=r"got ndarray: pandas\.DataFrame\(X\) makes one"
    ):
        TableClassifier().fit(X.to_numpy(), y)
    fitted = TableClassifier(SupervisedLDA(shrinkage=0.1)).fit(X, y)
    with pytest.raises(TypeError, match="X must be a pandas DataFrame, got list"):
        fitted.predict([[1.0]])


def test_it_is_an_estimator_and_its_pipeline_a_model_file(tmp_path):
    X, y = mixed()
    is_labeled = y.notna()
    classifier = TableClassifier(SupervisedLDA(shrinkage=0.1))
    assert clone(classifier).get_params()["classifier__shrinkage"] == 0.1
    scores = cross_val_score(classifier, X[is_labeled], y[is_labeled], cv=3)
    assert scores.mean() > 0.5
    fitted = classifier.fit(X, y)
    save_model(fitted.pipeline_, tmp_path / "m.skops")
    assert_array_equal(load_model(tmp_path / "m.skops").predict(X), fitted.predict(X))


def test_the_error_of_a_column_of_text_names_it():
    X, y = mixed()
    with pytest.raises(
        ValueError, match=r"'color' holds text.*tabular\.TableClassifier"
    ):
        AutoLDA(unlabeled=None).fit(X[["color"]], y)
