"""The classifiers inside scikit-learn's own machinery."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from iclda import (
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    MomentConstrainedLDA,
    SelfLearningLDA,
    SupervisedLDA,
)

CLASSIFIERS = [
    SupervisedLDA,
    SelfLearningLDA,
    ExpectationMaximizationLDA,
    MomentConstrainedLDA,
    ImplicitlyConstrainedLDA,
]
every_classifier = pytest.mark.parametrize("classifier", CLASSIFIERS)


@pytest.fixture
def problem():
    """150 rows of three classes in three features, of different units, all labeled."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 50)
    X = rng.standard_normal((150, 3)) + 1.5 * np.eye(3)[y]
    order = rng.permutation(150)
    return X[order] * [1.0, 3.0, 0.5] + [0.0, 10.0, 1.0], y[order]


@pytest.fixture
def marked(problem):
    """The same with the labels of the last 90 rows taken away."""
    X, y = problem
    return X, np.where(np.arange(150) < 60, y, -1)


@pytest.fixture
def apart(problem):
    """The same as labeled rows, their classes and unlabeled rows of their own."""
    X, y = problem
    return X[:60], y[:60], X[60:]


@every_classifier
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
    assert_array_equal(pipeline.predict_proba(X), by_hand.predict_proba(scaler.transform(X)))


def test_39_a_grid_search_trains_on_unlabeled_rows_and_never_scores_them(marked):
    X, y = marked
    grid = {"n_starts": [2, 8], "shrinkage": [None, 0.3]}
    search = GridSearchCV(ImplicitlyConstrainedLDA(), grid, cv=StratifiedKFold(3)).fit(X, y)
    scores = np.zeros((4, 3))
    for i, parameters in enumerate(search.cv_results_["params"]):
        for fold, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
            fitted = ImplicitlyConstrainedLDA(**parameters).fit(X[train], y[train])
            kept = test[y[test] != -1]
            scores[i, fold] = np.mean(fitted.predict(X[kept]) == y[kept])
            assert len(fitted.responsibilities_) == (y[train] == -1).sum()
    found = np.column_stack([search.cv_results_[f"split{fold}_test_score"] for fold in range(3)])
    assert_allclose(found, scores, rtol=0, atol=1e-12)
    assert_array_equal(search.best_estimator_.classes_, [0, 1, 2])


@every_classifier
def test_39_cross_validation_gives_every_fold_all_unlabeled_rows(classifier, apart):
    X, y, X_unlabeled = apart
    with sklearn.config_context(enable_metadata_routing=True):
        result = cross_validate(
            classifier().set_fit_request(X_unlabeled=True),
            X,
            y,
            cv=KFold(3),
            params={"X_unlabeled": X_unlabeled},
        )
    by_hand = [
        classifier().fit(X[train], y[train], X_unlabeled=X_unlabeled).score(X[test], y[test])
        for train, test in KFold(3).split(X)
    ]
    assert_array_equal(result["test_score"], by_hand)


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
        by_hand = ImplicitlyConstrainedLDA().fit(X[train], y[train], X_unlabeled=X_unlabeled)
        assert_array_equal(fitted.estimator.coef_, by_hand.coef_)
