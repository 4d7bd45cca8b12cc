"""The classifier of tables: one call in Python that gives what `iclda fit` gives."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils.estimator_checks import parametrize_with_checks

from iclda import (
    AutoLDA,
    AverageLDA,
    ExpectationMaximizationLDA,
    OpenSetClassifier,
    SupervisedLDA,
    load_model,
    save_model,
)
from iclda._messages import FitError
from iclda.model_files import model_details
from iclda.model_selection import SemiSupervisedKFold, mask_labels
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
    assert fitted.classes_.tolist() == sorted({ord(name[0]) for name in y.dropna()})


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
    with pytest.raises(
        ValueError, match="X must have a column to learn from, got 'name'"
    ):
        TableClassifier().fit(named[["name"]], y)
    with pytest.raises(ValueError, match="learn from, got no column"):
        TableClassifier().fit(X[[]], y)
    with pytest.raises(ValueError, match="rows to learn from, got a frame of 0 rows"):
        TableClassifier().fit(X[:0], y[:0])


def test_an_array_is_refused_with_a_frame_of_its_columns_alone():
    """A frame with y among its columns would teach the classifier the target."""
    X, y = mixed()
    with pytest.raises(
        TypeError, match=r"got ndarray: pandas\.DataFrame\(X\) makes one"
    ):
        TableClassifier().fit(X.to_numpy(), y)
    fitted = TableClassifier(SupervisedLDA(shrinkage=0.1)).fit(X, y)
    with pytest.raises(TypeError, match="a pandas or polars DataFrame, got list"):
        fitted.predict([[1.0]])


def wine(unlabeled):
    """178 wines in a frame, their classes, and the same with 28 labels."""
    X, classes = load_wine(return_X_y=True, as_frame=True)
    return X, classes, mask_labels(classes, 28, random_state=0, unlabeled=unlabeled)


@pytest.mark.parametrize("unlabeled", [-1, None, "?"], ids=repr)
def test_unlabeled_rows_are_never_scored(unlabeled):
    X, _, y = wine(unlabeled)
    classifier = SupervisedLDA(unlabeled=unlabeled, shrinkage=0.1)
    fitted = TableClassifier(classifier).fit(X, y)
    inside = fitted.pipeline_[-1]
    is_labeled = [label in inside.classes_ for label in y]
    assert sum(is_labeled) == 28
    is_right = (fitted.predict(X) == y)[is_labeled]
    assert fitted.score(X, y) == is_right.mean()
    weights = np.arange(178)
    expected = np.average(is_right, weights=weights[is_labeled])
    assert fitted.score(X, y, sample_weight=weights) == pytest.approx(expected)


@pytest.mark.parametrize("unlabeled", [-1, None], ids=repr)
def test_cross_validation_scores_it_as_the_classifier_inside(unlabeled):
    X, _, y = wine(unlabeled)
    folds = SemiSupervisedKFold(3, random_state=0)
    alone = ExpectationMaximizationLDA()
    expected = cross_val_score(alone, X, y, cv=folds)
    assert expected.mean() > 0.9
    classifier = TableClassifier(alone)
    assert_allclose(cross_val_score(classifier, X, y, cv=folds), expected)
    grid = {"classifier__shrinkage": [None, 0.1]}
    search = GridSearchCV(classifier, grid, cv=folds).fit(X, y)
    assert_allclose(search.cv_results_["mean_test_score"][0], expected.mean())


def test_folds_of_scikit_learn_score_labeled_rows_alone():
    X, _, y = wine(-1)
    alone = ExpectationMaximizationLDA()
    expected = cross_val_score(alone, X, y, cv=3)
    assert_allclose(cross_val_score(TableClassifier(alone), X, y, cv=3), expected)


def test_the_marker_is_that_of_the_classifier_inside():
    X, classes, _ = wine(-1)
    signs = np.where(classes == 0, 1, -1)
    message = r"1 class \(1\).* Pass unlabeled=None to SupervisedLDA if it is one"
    with pytest.raises(FitError, match=message):
        TableClassifier(SupervisedLDA()).fit(X, signs)
    fitted = TableClassifier(SupervisedLDA(unlabeled=None)).fit(X, signs)
    assert fitted.classes_.tolist() == [-1, 1]
    assert fitted.score(X, signs) > 0.9


@pytest.mark.parametrize("unlabeled", [-1, None], ids=repr)
def test_a_supervised_classifier_refuses_unlabeled_rows(unlabeled):
    X, _, y = wine(unlabeled)
    message = "LogisticRegression takes labeled rows alone, and 150 of 178 rows are"
    with pytest.raises(FitError, match=message):
        TableClassifier(LogisticRegression()).fit(X, y)


def test_minus_one_beside_one_class_is_a_class_of_a_supervised_classifier():
    X, classes, _ = wine(-1)
    signs = np.where(classes == 0, 1, -1)
    fitted = TableClassifier(GaussianNB()).fit(X, signs)
    assert fitted.classes_.tolist() == [-1, 1]


@pytest.mark.parametrize("classifier", [OpenSetClassifier(), LabelSpreading("knn")])
def test_semi_supervised_classifiers_take_minus_one(classifier):
    X, _, y = wine(-1)
    assert -1 not in TableClassifier(classifier).fit(X, y).classes_


def test_weights_reach_the_classifier_inside():
    X, y, _ = wine(-1)
    weights = np.arange(178) % 3
    fitted = TableClassifier(SupervisedLDA()).fit(X, y, sample_weight=weights)
    alone = SupervisedLDA().fit(X, y, sample_weight=weights)
    assert_allclose(fitted.predict_proba(X), alone.predict_proba(X), atol=1e-12)
    with sklearn.config_context(enable_metadata_routing=True):
        classifier = TableClassifier(SupervisedLDA())
        routed = classifier.set_fit_request(sample_weight=True)
        routed.set_score_request(sample_weight=True)
        search = GridSearchCV(routed, {}, cv=SemiSupervisedKFold(3, random_state=0))
        search.fit(X, y, sample_weight=weights)
        probabilities = search.predict_proba(X)
    assert_allclose(probabilities, alone.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("classifier", [None, AverageLDA()], ids=repr)
def test_it_has_what_the_classifier_inside_has(classifier):
    X, y = mixed()
    fitted = TableClassifier(classifier).fit(X, y)
    inside = fitted.pipeline_[-1]
    low, high = fitted.error_interval_
    assert low <= fitted.error_ <= high
    assert 0 < fitted.loss_ == inside.loss_
    assert fitted.held_out_probabilities_ is inside.held_out_probabilities_


def test_it_lacks_what_the_classifier_inside_lacks():
    supervised = TableClassifier(SupervisedLDA(shrinkage=0.1)).fit(*mixed())
    assert not hasattr(supervised, "error_interval_")
    # Ridge regression has no probabilities.
    assert hasattr(supervised, "predict_proba")
    assert not hasattr(TableClassifier(RidgeClassifier()), "predict_proba")


def test_frames_of_polars_are_those_of_pandas():
    X, y = mixed()
    X["color"] = X["color"].astype("category")
    frame = pl.from_pandas(X)
    assert frame["color"].dtype == pl.Categorical
    classifier = TableClassifier(SupervisedLDA(shrinkage=0.1))
    expected = clone(classifier).fit(X, y).predict_proba(X)
    fitted = classifier.fit(frame, pl.Series(y.where(y.notna(), None).tolist()))
    assert_allclose(fitted.predict_proba(frame), expected)
    assert_allclose(fitted.predict_proba(X), expected)
    with pytest.raises(TypeError, match=r"not read yet.*X\.collect"):
        fitted.predict(frame.lazy())


def test_a_model_file_of_it_is_one_of_its_pipeline(tmp_path):
    X, y = mixed()
    classifier = TableClassifier(SupervisedLDA(shrinkage=0.1))
    assert clone(classifier).get_params()["classifier__shrinkage"] == 0.1
    fitted = classifier.fit(X, y)
    save_model(fitted, tmp_path / "table.skops")
    save_model(fitted.pipeline_, tmp_path / "pipeline.skops")
    loaded = load_model(tmp_path / "table.skops")
    assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.score(X, y) == fitted.score(X, y)
    details = [
        model_details(tmp_path / f"{name}.skops") for name in ("table", "pipeline")
    ]
    for key in ("classifier", "columns", "parameters", "n_features"):
        assert details[0][key] == details[1][key]
    # The commands take both.
    data = write(tmp_path, X, "flowers.csv")
    predictions = []
    for name in ("table", "pipeline"):
        out = tmp_path / f"{name}.csv"
        assert call("predict", tmp_path / f"{name}.skops", data, "--out", out)[0] == 0
        predictions.append(out.read_text())
    assert predictions[0] == predictions[1]
    assert call("show", tmp_path / "table.skops")[0] == 0


def test_a_model_file_has_no_held_out_probabilities(tmp_path):
    X, y = mixed()
    fitted = TableClassifier(AverageLDA()).fit(X, y)
    save_model(fitted, tmp_path / "m.skops")
    loaded = load_model(tmp_path / "m.skops")
    assert fitted.held_out_probabilities_ is not None
    assert loaded.held_out_probabilities_ is None
    assert loaded.error_ == fitted.error_


def frame_of(X):
    if isinstance(X, pd.DataFrame) or sparse.issparse(X):
        return pd.DataFrame(X)
    return pd.DataFrame(np.asarray(X))


class OfArrays(TableClassifier):
    """The same for the arrays that scikit-learn's checks pass: it makes frames."""

    def fit(self, X, y, *, sample_weight=None):
        return super().fit(frame_of(X), y, sample_weight=sample_weight)

    def predict(self, X):
        return super().predict(frame_of(X))

    def predict_proba(self, X):
        return super().predict_proba(frame_of(X))

    def score(self, X, y, sample_weight=None):
        return super().score(frame_of(X), y, sample_weight=sample_weight)


SPARSE = "No frame is made of a sparse matrix here."
FOUND_BY_NAME = "Columns are found by their names, and others are ignored."
OWN_WORDS = "The error is the right one, in other words than scikit-learn's."
NOT_FOR_FRAMES = {
    "check_estimator_sparse_array": SPARSE,
    "check_estimator_sparse_matrix": SPARSE,
    "check_fit1d": "A frame of one column is made of it.",
    "check_classifiers_train": FOUND_BY_NAME,
    "check_n_features_in_after_fitting": FOUND_BY_NAME,
    "check_fit2d_predict1d": FOUND_BY_NAME,
    "check_complex_data": OWN_WORDS,
    "check_estimators_empty_data_messages": OWN_WORDS,
}


# Some checks label too few rows for the columns, or all rows alike: warnings are due.
@pytest.mark.filterwarnings("ignore:The .* labeled rows are too few:UserWarning")
@pytest.mark.filterwarnings("ignore:Rows span .* dimensions:UserWarning")
@parametrize_with_checks(
    [OfArrays(SupervisedLDA(unlabeled=None))],
    expected_failed_checks=lambda _: NOT_FOR_FRAMES,
)
def test_scikit_learn_check_passes(estimator, check):
    check(estimator)


def test_the_error_of_a_column_of_text_names_it():
    X, y = mixed()
    with pytest.raises(
        ValueError, match=r"'color' holds text.*tabular\.TableClassifier"
    ):
        AutoLDA(unlabeled=None).fit(X[["color"]], y)
