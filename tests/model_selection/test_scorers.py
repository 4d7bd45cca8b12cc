"""Scorers by themselves, and in scikit-learn's cross-validation and searches."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import accuracy_score, f1_score, get_scorer, log_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

from iclda import SelfLearningLDA, SupervisedLDA
from iclda.model_selection import (
    SemiSupervisedKFold,
    mask_labels,
    semi_supervised_scorer,
)

TRUE = np.arange(150) % 3
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(150, 3)) + 1.5 * np.eye(3)[TRUE]) * [1.0, 3.0, 0.5] + [
    0.0,
    10.0,
    1.0,
]
Y = mask_labels(TRUE, 60, 15, random_state=1)
IS_LABELED = Y != -1
NAMES = np.array(["ant", "bee", "cat"])[TRUE]
CV = SemiSupervisedKFold(3, random_state=0)
GRID = {"shrinkage": [None, 0.3]}


def by_hand(estimator, cv=CV, groups=None):
    return [
        clone(estimator).fit(X[train], Y[train]).score(X[test], Y[test])
        for train, test in cv.split(X, Y, groups)
    ]


def scores_of(search, n_splits=3):
    results = search.cv_results_
    return np.array([results[f"split{fold}_test_score"] for fold in range(n_splits)]).T


@pytest.fixture(scope="module")
def fitted():
    return SelfLearningLDA().fit(X, Y)


def test_the_score_is_that_of_the_labeled_rows(fitted):
    X_labeled = X[IS_LABELED]
    y_labeled = Y[IS_LABELED]
    predicted = fitted.predict(X_labeled)
    assert semi_supervised_scorer()(fitted, X, Y) == accuracy_score(
        y_labeled, predicted
    )
    assert semi_supervised_scorer("f1_macro")(fitted, X, Y) == f1_score(
        y_labeled, predicted, average="macro"
    )
    probabilities = fitted.predict_proba(X_labeled)
    found = semi_supervised_scorer("neg_log_loss")(fitted, X, Y)
    assert_allclose(found, -log_loss(y_labeled, probabilities))


@pytest.mark.parametrize(
    ("marker", "y"),
    [
        ("?", np.where(IS_LABELED, NAMES, "?")),
        (None, np.where(IS_LABELED, NAMES.astype(object), None)),
        (np.nan, np.where(IS_LABELED, TRUE, np.nan)),
        (pd.NA, pd.Series(TRUE).where(IS_LABELED).astype("Int64")),
        (9, np.where(IS_LABELED, TRUE, 9).tolist()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_marker_is_read_from_the_classifier_or_the_pipeline_around_it(marker, y):
    classifier = SelfLearningLDA(unlabeled=marker).fit(X, y)
    assert semi_supervised_scorer()(classifier, X, y) == classifier.score(X, y)
    pipeline = make_pipeline(StandardScaler(), SelfLearningLDA(unlabeled=marker)).fit(
        X, y
    )
    assert semi_supervised_scorer()(pipeline, X, y) == pipeline.score(X, y)


def test_a_given_marker_goes_before_that_of_the_classifier():
    model = GaussianNB().fit(X, TRUE)
    y = np.where(IS_LABELED, TRUE, 7)
    expected = model.score(X[IS_LABELED], TRUE[IS_LABELED])
    assert semi_supervised_scorer(unlabeled=7)(model, X, y) == expected
    # -1, as in scikit-learn.
    assert semi_supervised_scorer()(model, X, Y) == expected


def test_two_markers_in_one_pipeline_are_refused():
    pipeline = make_pipeline(SupervisedLDA(), SelfLearningLDA(unlabeled=9))
    with pytest.raises(ValueError, match="unlabeled=-1 and unlabeled=9"):
        semi_supervised_scorer()(pipeline, X, Y)


def test_any_scorer_can_be_wrapped(fitted):
    def n_rows(estimator, X, y):
        return len(X)

    assert semi_supervised_scorer(n_rows)(fitted, X, Y) == 60
    assert (
        repr(semi_supervised_scorer(n_rows))
        == "semi_supervised_scorer('n_rows', unlabeled='auto')"
    )
    wrapped = semi_supervised_scorer(get_scorer("accuracy"), unlabeled="?")
    assert repr(wrapped).endswith(", unlabeled='?')")


def test_the_log_likelihood_is_scored_through_a_pipeline_and_a_search(fitted):
    scorer = semi_supervised_scorer("log_likelihood")
    expected = fitted.log_likelihood(X[IS_LABELED], Y[IS_LABELED]).mean()
    assert_allclose(scorer(fitted, X, Y), expected)
    pipeline = make_pipeline(StandardScaler(), "passthrough", SelfLearningLDA()).fit(
        X, Y
    )
    scaled = StandardScaler().fit_transform(X)
    by_hand = (
        SelfLearningLDA()
        .fit(scaled, Y)
        .log_likelihood(scaled[IS_LABELED], Y[IS_LABELED])
    )
    assert_allclose(scorer(pipeline, X, Y), by_hand.mean())
    search = GridSearchCV(
        SelfLearningLDA(), {"shrinkage": [None]}, scoring=scorer, cv=3
    ).fit(X, Y)
    assert_allclose(scorer(search, X, Y), expected)
    with pytest.raises(TypeError, match="GaussianNB has no method log_likelihood"):
        scorer(GaussianNB().fit(X, TRUE), X, Y)


def test_weights_are_cut_to_the_labeled_rows(fitted):
    weights = np.arange(150) % 4 + 0.5
    expected = accuracy_score(
        Y[IS_LABELED], fitted.predict(X[IS_LABELED]), sample_weight=weights[IS_LABELED]
    )
    assert semi_supervised_scorer()(fitted, X, Y, sample_weight=weights) == expected
    assert (
        semi_supervised_scorer()(fitted, X, Y, sample_weight=list(weights)) == expected
    )
    likelihoods = fitted.log_likelihood(X[IS_LABELED], Y[IS_LABELED])
    assert_allclose(
        semi_supervised_scorer("log_likelihood")(fitted, X, Y, sample_weight=weights),
        np.average(likelihoods, weights=weights[IS_LABELED]),
    )


def test_39_cross_validation_with_any_splitter_scores_labeled_rows_only():
    scoring = {
        "right": semi_supervised_scorer(),
        "f1": semi_supervised_scorer("f1_macro"),
    }
    result = cross_validate(SelfLearningLDA(), X, Y, cv=KFold(3), scoring=scoring)
    for fold, (train, test) in enumerate(KFold(3).split(X)):
        model = SelfLearningLDA().fit(X[train], Y[train])
        kept = test[Y[test] != -1]
        assert result["test_right"][fold] == model.score(X[kept], Y[kept])
        assert_allclose(
            result["test_f1"][fold],
            f1_score(Y[kept], model.predict(X[kept]), average="macro"),
        )


def test_rows_without_any_label_are_refused(fitted):
    with pytest.raises(ValueError, match="all 4 rows carry the marker -1"):
        semi_supervised_scorer()(fitted, X[:4], np.full(4, -1))


@pytest.mark.parametrize("scoring", [["accuracy"], None, 3])
def test_what_is_no_scorer_is_refused(scoring):
    with pytest.raises(ValueError, match="scoring must be the name of a scorer"):
        semi_supervised_scorer(scoring)


@pytest.mark.parametrize("classifier", [SelfLearningLDA(), LabelSpreading()], ids=str)
def test_39_plain_scorers_do_with_our_folds(classifier):
    found = cross_val_score(classifier, X, Y, cv=CV, scoring="accuracy")
    assert_array_equal(found, by_hand(classifier))


def test_weights_are_routed_to_classifier_and_scorer_through_a_pipeline_in_a_search():
    weights = np.arange(150) % 3 + 0.5
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(
            scaler, SelfLearningLDA().set_fit_request(sample_weight=True)
        )
        scorer = semi_supervised_scorer().set_score_request(sample_weight=True)
        search = GridSearchCV(
            pipeline, {"selflearninglda__tol": [0.0]}, cv=CV, scoring=scorer
        )
        search.fit(X, Y, sample_weight=weights)
    for score, (train, test) in zip(scores_of(search)[0], CV.split(X, Y), strict=True):
        scaler = StandardScaler().fit(X[train])
        model = SelfLearningLDA().fit(
            scaler.transform(X[train]), Y[train], weights[train]
        )
        assert_allclose(
            score, model.score(scaler.transform(X[test]), Y[test], weights[test])
        )


@pytest.mark.parametrize(
    "scoring", [None, "accuracy", semi_supervised_scorer()], ids=str
)
def test_a_grid_search_scores_labeled_rows_only_and_refits_on_all(scoring):
    search = GridSearchCV(SelfLearningLDA(), GRID, cv=CV, scoring=scoring).fit(X, Y)
    expected = [by_hand(SelfLearningLDA(shrinkage=s), CV) for s in GRID["shrinkage"]]
    assert_array_equal(scores_of(search), expected)
    best = SelfLearningLDA(**search.best_params_).fit(X, Y)
    assert_array_equal(search.best_estimator_.coef_, best.coef_)
    assert search.score(X[Y != -1], Y[Y != -1]) == best.score(X, Y)


@pytest.mark.parametrize(
    ("marker", "y"),
    [
        ("?", np.where(Y != -1, NAMES, "?")),
        (None, np.where(Y != -1, NAMES.astype(object), None)),
        (
            None,
            pd.Series(
                np.where(Y != -1, NAMES.astype(object), None), index=np.arange(150) + 9
            ),
        ),
        (pd.NA, pd.Series(TRUE).where(Y != -1).astype("Int64")),
        (None, pl.Series(np.where(Y != -1, NAMES.astype(object), None).tolist())),
    ],
    ids=["text", "None", "pandas text", "pandas Int64", "polars text"],
)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_search_through_a_pipeline_takes_any_marker_and_frame(marker, y, frame):
    rows = frame(dict(zip("abc", X.T, strict=True)))
    pipeline = make_pipeline(StandardScaler(), SelfLearningLDA(unlabeled=marker))
    grid = {"selflearninglda__shrinkage": [None, 0.3]}
    cv = SemiSupervisedKFold(3, unlabeled=marker, random_state=0)
    search = GridSearchCV(pipeline, grid, cv=cv, scoring="accuracy").fit(rows, y)
    plain = make_pipeline(StandardScaler(), SelfLearningLDA())
    expected = GridSearchCV(plain, grid, cv=CV).fit(X, Y)
    assert_array_equal(scores_of(search), scores_of(expected))
    assert_array_equal(
        search.predict(rows) == np.asarray(search.classes_)[TRUE],
        expected.predict(X) == TRUE,
    )


def test_groups_reach_the_splitter_with_and_without_routing():
    groups = np.arange(150) // 5
    expected = by_hand(SelfLearningLDA(), groups=groups)
    search = GridSearchCV(SelfLearningLDA(), {"shrinkage": [None]}, cv=CV)
    assert_array_equal(scores_of(search.fit(X, Y, groups=groups))[0], expected)
    assert_array_equal(
        cross_val_score(SelfLearningLDA(), X, Y, groups=groups, cv=CV), expected
    )
    with sklearn.config_context(enable_metadata_routing=True):
        assert_array_equal(scores_of(search.fit(X, Y, groups=groups))[0], expected)
        found = cross_val_score(
            SelfLearningLDA(), X, Y, cv=CV, params={"groups": groups}
        )
    assert_array_equal(found, expected)


def routed_pipeline():
    """The recipe of the documents. To be called with metadata routing on."""
    classifier = SelfLearningLDA().set_fit_request(X_unlabeled=True)
    steps = [("scale", StandardScaler()), ("classify", classifier)]
    return Pipeline(steps, transform_input=["X_unlabeled"])


def scaled_by_hand(train, test, X_labeled, y, X_unlabeled):
    scaler = StandardScaler().fit(X_labeled[train])
    model = SelfLearningLDA().fit(
        scaler.transform(X_labeled[train]),
        y[train],
        X_unlabeled=scaler.transform(X_unlabeled),
    )
    return model.score(scaler.transform(X_labeled[test]), y[test])


@pytest.mark.parametrize(
    "scoring", [None, "accuracy", semi_supervised_scorer()], ids=str
)
def test_unlabeled_rows_of_their_own_are_transformed_in_every_fold(scoring):
    apart = X[Y != -1], Y[Y != -1], X[Y == -1]
    expected = [
        scaled_by_hand(train, test, *apart) for train, test in CV.split(*apart[:2])
    ]
    X_labeled, y, X_unlabeled = apart
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            routed_pipeline(), {"classify__tol": [0.0]}, cv=CV, scoring=scoring
        )
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
    scoring = (
        {"one": scoring or "accuracy", "two": "f1_macro"} if is_several else scoring
    )
    refit = "one" if is_several else True
    search = GridSearchCV(
        SelfLearningLDA(), {"tol": [0.0]}, cv=CV, scoring=scoring, refit=refit
    )
    search.fit(X, Y, sample_weight=weights)
    best = SelfLearningLDA().fit(X, Y, weights)
    assert_array_equal(search.best_estimator_.coef_, best.coef_)


def test_nan_none_and_pandas_na_are_one_marker():
    pipeline = make_pipeline(
        SupervisedLDA(unlabeled=np.nan), SelfLearningLDA(unlabeled=None)
    )
    y = np.where(IS_LABELED, NAMES.astype(object), None)
    pipeline.fit(X, y)
    assert semi_supervised_scorer()(pipeline, X, y) == pipeline.score(X, y)


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))]
)
def test_a_copy_of_a_scorer_scores_the_same(duplicate, fitted):
    scorer = semi_supervised_scorer("balanced_accuracy")
    assert duplicate(scorer)(fitted, X, Y) == scorer(fitted, X, Y)
