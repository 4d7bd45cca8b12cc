"""Splitters and scorers inside scikit-learn's cross-validation and searches."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

from iclda import (
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    MomentConstrainedLDA,
    SelfLearningLDA,
    SupervisedLDA,
)
from iclda.model_selection import (
    SemiSupervisedKFold,
    SemiSupervisedShuffleSplit,
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
TRUE = np.arange(150) % 3
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(150, 3)) + 1.5 * np.eye(3)[TRUE]) * [1.0, 3.0, 0.5] + [0.0, 10.0, 1.0]
Y = mask_labels(TRUE, 60, 15, random_state=1)
NAMES = np.array(["ant", "bee", "cat"])[TRUE]
CV = SemiSupervisedKFold(3, random_state=0)
GRID = {"shrinkage": [None, 0.3]}


def by_hand(estimator, cv=CV, y=Y, rows=X):
    return [
        clone(estimator).fit(rows[train], y[train]).score(rows[test], y[test])
        for train, test in cv.split(rows, y)
    ]


def scores_of(search, n_splits=3):
    results = search.cv_results_
    return np.array([results[f"split{fold}_test_score"] for fold in range(n_splits)]).T


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("scoring", [None, "accuracy"])
def test_39_plain_scorers_do_with_our_folds(classifier, scoring):
    found = cross_val_score(classifier(), X, Y, cv=CV, scoring=scoring)
    assert_array_equal(found, by_hand(classifier()))


@pytest.mark.parametrize("scoring", [None, "accuracy", semi_supervised_scorer()], ids=str)
@pytest.mark.parametrize("cv", [CV, SemiSupervisedShuffleSplit(3, random_state=0)], ids=str)
def test_a_grid_search_scores_labeled_rows_only_and_refits_on_all(scoring, cv):
    search = GridSearchCV(SelfLearningLDA(), GRID, cv=cv, scoring=scoring).fit(X, Y)
    expected = [by_hand(SelfLearningLDA(shrinkage=s), cv) for s in GRID["shrinkage"]]
    assert_array_equal(scores_of(search), expected)
    best = SelfLearningLDA(**search.best_params_).fit(X, Y)
    assert_array_equal(search.best_estimator_.coef_, best.coef_)
    assert search.score(X[Y != -1], Y[Y != -1]) == best.score(X, Y)


@pytest.mark.parametrize(
    ("marker", "y"),
    [
        ("?", np.where(Y != -1, NAMES, "?")),
        (None, np.where(Y != -1, NAMES.astype(object), None)),
        (None, pd.Series(np.where(Y != -1, NAMES.astype(object), None), index=np.arange(150) + 9)),
        (pd.NA, pd.Series(TRUE).where(Y != -1).astype("Int64")),
        (None, pl.Series(np.where(Y != -1, NAMES.astype(object), None).tolist())),
    ],
    ids=["text", "None", "pandas text", "pandas Int64", "polars text"],
)
@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_a_search_through_a_pipeline_takes_any_marker_and_frame(marker, y, frame):
    rows = X if frame is np.asarray else frame(dict(zip("abc", X.T, strict=True)))
    pipeline = make_pipeline(StandardScaler(), SelfLearningLDA(unlabeled=marker))
    grid = {"selflearninglda__shrinkage": [None, 0.3]}
    cv = SemiSupervisedKFold(3, unlabeled=marker, random_state=0)
    search = GridSearchCV(pipeline, grid, cv=cv, scoring="accuracy").fit(rows, y)
    plain = make_pipeline(StandardScaler(), SelfLearningLDA())
    expected = GridSearchCV(plain, grid, cv=CV).fit(X, Y)
    assert_array_equal(scores_of(search), scores_of(expected))
    assert_array_equal(
        search.predict(rows) == np.asarray(search.classes_)[TRUE], expected.predict(X) == TRUE
    )


def test_a_halving_search_takes_our_folds():
    search = HalvingGridSearchCV(
        SelfLearningLDA(), {"shrinkage": [0.0, 0.1, 0.3, 0.6]}, cv=CV, min_resources=75, factor=2,
        random_state=0,
    ).fit(X, Y)  # fmt: skip
    assert search.n_resources_ == [75, 150]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    # The last round has all rows: the splits are ours, subsampled to all of themselves.
    last = search.cv_results_["iter"] == 1
    for scores, parameters in zip(
        scores_of(search)[last], search.cv_results_["params"][-2:], strict=True
    ):
        assert_allclose(np.sort(scores), np.sort(by_hand(SelfLearningLDA(**parameters))))


def test_groups_reach_the_splitter_with_and_without_routing():
    groups = np.arange(150) // 5
    expected = [
        SelfLearningLDA().fit(X[train], Y[train]).score(X[test], Y[test])
        for train, test in CV.split(X, Y, groups)
    ]
    search = GridSearchCV(SelfLearningLDA(), {"shrinkage": [None]}, cv=CV)
    assert_array_equal(scores_of(search.fit(X, Y, groups=groups))[0], expected)
    assert_array_equal(cross_val_score(SelfLearningLDA(), X, Y, groups=groups, cv=CV), expected)
    with sklearn.config_context(enable_metadata_routing=True):
        assert_array_equal(scores_of(search.fit(X, Y, groups=groups))[0], expected)
        found = cross_val_score(SelfLearningLDA(), X, Y, cv=CV, params={"groups": groups})
    assert_array_equal(found, expected)


def routed_pipeline():
    """The recipe of the documents. To be called with metadata routing on."""
    classifier = SelfLearningLDA().set_fit_request(X_unlabeled=True)
    steps = [("scale", StandardScaler()), ("classify", classifier)]
    return Pipeline(steps, transform_input=["X_unlabeled"])


def scaled_by_hand(train, test, X_labeled, y, X_unlabeled):
    scaler = StandardScaler().fit(X_labeled[train])
    model = SelfLearningLDA().fit(
        scaler.transform(X_labeled[train]), y[train], X_unlabeled=scaler.transform(X_unlabeled)
    )
    return model.score(scaler.transform(X_labeled[test]), y[test])


@pytest.mark.parametrize("scoring", [None, "accuracy", semi_supervised_scorer()], ids=str)
def test_unlabeled_rows_of_their_own_are_transformed_in_every_fold(scoring):
    apart = X[Y != -1], Y[Y != -1], X[Y == -1]
    expected = [scaled_by_hand(train, test, *apart) for train, test in CV.split(*apart[:2])]
    X_labeled, y, X_unlabeled = apart
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(routed_pipeline(), {"classify__tol": [0.0]}, cv=CV, scoring=scoring)
        search.fit(X_labeled, y, X_unlabeled=X_unlabeled)
        result = cross_validate(
            routed_pipeline(), X_labeled, y, cv=CV, scoring=scoring,
            params={"X_unlabeled": X_unlabeled},
        )  # fmt: skip
    assert_allclose(scores_of(search)[0], expected, rtol=1e-12)
    assert_allclose(result["test_score"], expected, rtol=1e-12)


@pytest.mark.parametrize("scoring", [None, semi_supervised_scorer()], ids=str)
@pytest.mark.parametrize("is_several", [False, True])
def test_weights_without_routing_reach_the_classifier(scoring, is_several):
    weights = np.arange(150) % 3 + 0.5
    scoring = {"one": scoring or "accuracy", "two": "f1_macro"} if is_several else scoring
    refit = "one" if is_several else True
    search = GridSearchCV(SelfLearningLDA(), {"tol": [0.0]}, cv=CV, scoring=scoring, refit=refit)
    search.fit(X, Y, sample_weight=weights)
    best = SelfLearningLDA().fit(X, Y, weights)
    assert_array_equal(search.best_estimator_.coef_, best.coef_)


def test_semi_supervised_classifiers_of_others_take_our_folds():
    scores = cross_val_score(LabelSpreading(), X, Y, cv=CV, scoring="accuracy")
    assert_array_equal(scores, by_hand(LabelSpreading()))
