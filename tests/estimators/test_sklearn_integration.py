"""The classifiers inside scikit-learn's own machinery."""

import re

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from iclda import (
    AutoLDA,
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    MomentConstrainedLDA,
    SelfLearningLDA,
    SupervisedLDA,
)
from iclda._messages import FitError
from iclda.model_selection import (
    SemiSupervisedKFold,
    mask_labels,
    semi_supervised_scorer,
)

CLASSIFIERS = [
    SupervisedLDA,
    SelfLearningLDA,
    ExpectationMaximizationLDA,
    MomentConstrainedLDA,
    ImplicitlyConstrainedLDA,
]


@pytest.fixture
def problem():
    """150 rows of three classes in three features, of different units, all labeled."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 50)
    X = rng.standard_normal((150, 3)) + 1.5 * np.eye(3)[y]
    order = rng.permutation(150)
    return X[order] * [1.0, 3.0, 0.5] + [0.0, 10.0, 1.0], y[order]


@pytest.fixture
def apart(problem):
    """The same as labeled rows, their classes and unlabeled rows of their own."""
    X, y = problem
    return X[:60], y[:60], X[60:]


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_routed_unlabeled_rows_and_weights_reach_the_last_step(classifier, apart):
    X, y, X_unlabeled = apart
    weights = {
        "sample_weight": np.arange(60) % 3 + 1.0,
        "sample_weight_unlabeled": np.arange(90) % 2 + 0.5,
    }
    with sklearn.config_context(enable_metadata_routing=True):
        requests = dict.fromkeys(("X_unlabeled", *weights), True)
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            classifier().set_fit_request(**requests),
            transform_input=["X_unlabeled"],
        ).fit(X, y, X_unlabeled=X_unlabeled, **weights)
    scaler = StandardScaler().fit(X)
    by_hand = classifier().fit(
        scaler.transform(X), y, X_unlabeled=scaler.transform(X_unlabeled), **weights
    )
    assert_array_equal(pipeline[-1].coef_, by_hand.coef_)
    assert_array_equal(
        pipeline.predict_proba(X), by_hand.predict_proba(scaler.transform(X))
    )


def test_calibration_takes_labeled_rows_and_routed_unlabeled_ones(apart):
    X, y, X_unlabeled = apart
    folds = StratifiedKFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        calibrated = CalibratedClassifierCV(
            ImplicitlyConstrainedLDA().set_fit_request(X_unlabeled=True), cv=folds
        ).fit(X, y, X_unlabeled=X_unlabeled)
    assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)
    assert_array_equal(calibrated.classes_, [0, 1, 2])
    for fitted, (train, _) in zip(
        calibrated.calibrated_classifiers_, folds.split(X, y), strict=True
    ):
        by_hand = ImplicitlyConstrainedLDA().fit(
            X[train], y[train], X_unlabeled=X_unlabeled
        )
        assert_array_equal(fitted.estimator.coef_, by_hand.coef_)


@pytest.mark.parametrize("scoring", [None, semi_supervised_scorer()], ids=str)
def test_a_fold_without_a_class_is_told_and_the_splitter_has_none(scoring):
    """scikit-learn takes KFold for a y of objects with None, and rows are sorted."""
    X, y = load_wine(return_X_y=True)
    y = mask_labels(y, 28, random_state=0, unlabeled=None)
    with pytest.warns(UserWarning, match="no label of the fit has") as told:
        plain = cross_val_score(
            SupervisedLDA(shrinkage=0.1), X, y, cv=3, scoring=scoring
        )
    assert "has: [0]. If this is a fold" in str(told[0].message)
    folds = SemiSupervisedKFold(3, random_state=0)
    scores = cross_val_score(SupervisedLDA(shrinkage=0.1), X, y, cv=folds)
    assert plain.min() == 0
    assert scores.min() > 0.5


def test_the_score_names_the_classes_that_the_fit_had_no_label_of():
    X = [[0.0], [1.0], [5.0], [6.0], [9.0]]
    fitted = SupervisedLDA().fit(X, ["a", "a", "b", "b", None])
    message = r"counts 1 row as wrong, of classes .*: \['c'\]\.$"
    with pytest.warns(UserWarning, match=message):
        assert fitted.score(X, ["a", "a", "b", "b", "c"]) == 0.8


@pytest.mark.parametrize("label", ["a", None])
@pytest.mark.parametrize(
    ("marker", "given"), [(-1, ""), ("?", "unlabeled='?'"), (np.nan, "unlabeled=None")]
)
def test_a_fold_of_one_class_or_none_names_the_splitter(label, marker, given):
    message = rf"is a fold .* cv=SemiSupervisedKFold\({re.escape(given)}\) "
    with pytest.raises(FitError, match=message):
        AutoLDA(unlabeled=marker).fit([[0.0], [1.0], [2.0]], [label, label, None])


def test_without_a_missing_label_there_is_no_word_of_folds():
    """scikit-learn stratifies the folds of such a y."""
    with pytest.raises(FitError, match="at least 2 classes") as told:
        SupervisedLDA().fit([[0.0], [1.0], [2.0]], [1, 1, -1])
    assert "fold" not in str(told.value)


def test_a_column_vector_of_labels_is_told_once_a_fold():
    X, y = load_wine(return_X_y=True)
    folds = SemiSupervisedKFold(3, random_state=0)
    with pytest.warns(DataConversionWarning) as told:
        cross_val_score(SupervisedLDA(), X, y[:, None], cv=folds)
    assert len(told) == 3
