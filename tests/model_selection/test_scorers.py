"""Scores that leave unlabeled rows out."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.metrics import accuracy_score, f1_score, get_scorer, log_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from iclda import SelfLearningLDA, SupervisedLDA
from iclda.model_selection import semi_supervised_scorer

RNG = np.random.default_rng(5)
TRUE = np.arange(90) % 3
X = RNG.normal(size=(90, 3)) + 1.2 * np.eye(3)[TRUE]
IS_LABELED = RNG.permutation(90) < 45
Y = np.where(IS_LABELED, TRUE, -1)
NAMES = np.array(["ant", "bee", "cat"])[TRUE]


@pytest.fixture(scope="module")
def fitted():
    return SelfLearningLDA().fit(X, Y)


def test_the_score_is_that_of_the_labeled_rows(fitted):
    X_labeled, y_labeled = X[IS_LABELED], Y[IS_LABELED]
    predicted = fitted.predict(X_labeled)
    assert semi_supervised_scorer()(fitted, X, Y) == accuracy_score(y_labeled, predicted)
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
    pipeline = make_pipeline(StandardScaler(), SelfLearningLDA(unlabeled=marker)).fit(X, y)
    assert semi_supervised_scorer()(pipeline, X, y) == pipeline.score(X, y)


def test_a_given_marker_goes_before_that_of_the_classifier():
    model = GaussianNB().fit(X, TRUE)
    y = np.where(IS_LABELED, TRUE, 7)
    expected = model.score(X[IS_LABELED], TRUE[IS_LABELED])
    assert semi_supervised_scorer(unlabeled=7)(model, X, y) == expected
    assert semi_supervised_scorer()(model, X, Y) == expected  # -1, as in scikit-learn


def test_two_markers_in_one_pipeline_are_refused():
    pipeline = make_pipeline(SupervisedLDA(), SelfLearningLDA(unlabeled=9))
    with pytest.raises(ValueError, match="unlabeled=-1 and unlabeled=9"):
        semi_supervised_scorer()(pipeline, X, Y)


def test_nan_none_and_pandas_na_are_one_marker():
    pipeline = make_pipeline(SupervisedLDA(unlabeled=np.nan), SelfLearningLDA(unlabeled=None))
    y = np.where(IS_LABELED, NAMES.astype(object), None)
    pipeline.fit(X, y)
    assert semi_supervised_scorer()(pipeline, X, y) == pipeline.score(X, y)


def test_any_scorer_can_be_wrapped(fitted):
    def n_rows(estimator, X, y):
        return len(X)

    assert semi_supervised_scorer(n_rows)(fitted, X, Y) == 45
    assert repr(semi_supervised_scorer(n_rows)) == "semi_supervised_scorer('n_rows')"
    wrapped = semi_supervised_scorer(get_scorer("accuracy"), unlabeled="?")
    assert repr(wrapped).endswith(", unlabeled='?')")


def test_the_log_likelihood_is_scored_through_a_pipeline_and_a_search(fitted):
    scorer = semi_supervised_scorer("log_likelihood")
    expected = fitted.log_likelihood(X[IS_LABELED], Y[IS_LABELED]).mean()
    assert_allclose(scorer(fitted, X, Y), expected)
    pipeline = make_pipeline(StandardScaler(), "passthrough", SelfLearningLDA()).fit(X, Y)
    scaled = StandardScaler().fit_transform(X)
    by_hand = SelfLearningLDA().fit(scaled, Y).log_likelihood(scaled[IS_LABELED], Y[IS_LABELED])
    assert_allclose(scorer(pipeline, X, Y), by_hand.mean())
    search = GridSearchCV(SelfLearningLDA(), {"shrinkage": [None]}, scoring=scorer, cv=3).fit(X, Y)
    assert_allclose(scorer(search, X, Y), expected)
    with pytest.raises(TypeError, match="GaussianNB has no method log_likelihood"):
        scorer(GaussianNB().fit(X, TRUE), X, Y)


def test_weights_are_cut_to_the_labeled_rows(fitted):
    weights = np.arange(90) % 4 + 0.5
    expected = accuracy_score(
        Y[IS_LABELED], fitted.predict(X[IS_LABELED]), sample_weight=weights[IS_LABELED]
    )
    assert semi_supervised_scorer()(fitted, X, Y, sample_weight=weights) == expected
    assert semi_supervised_scorer()(fitted, X, Y, sample_weight=list(weights)) == expected
    likelihoods = fitted.log_likelihood(X[IS_LABELED], Y[IS_LABELED])
    assert_allclose(
        semi_supervised_scorer("log_likelihood")(fitted, X, Y, sample_weight=weights),
        np.average(likelihoods, weights=weights[IS_LABELED]),
    )


def test_39_cross_validation_with_any_splitter_scores_labeled_rows_only():
    scoring = {"right": semi_supervised_scorer(), "f1": semi_supervised_scorer("f1_macro")}
    result = cross_validate(SelfLearningLDA(), X, Y, cv=KFold(3), scoring=scoring)
    for fold, (train, test) in enumerate(KFold(3).split(X)):
        model = SelfLearningLDA().fit(X[train], Y[train])
        kept = test[Y[test] != -1]
        assert result["test_right"][fold] == model.score(X[kept], Y[kept])
        assert_allclose(
            result["test_f1"][fold], f1_score(Y[kept], model.predict(X[kept]), average="macro")
        )


@pytest.mark.parametrize("scoring", ["accuracy", "log_likelihood"])
def test_requested_weights_are_routed_to_the_scorer(scoring):
    weights = np.arange(90) % 4 + 0.5
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = semi_supervised_scorer(scoring).set_score_request(sample_weight=True)
        found = cross_val_score(
            SelfLearningLDA().set_fit_request(sample_weight=False),
            X,
            Y,
            cv=KFold(3),
            scoring=scorer,
            params={"sample_weight": weights},
        )
    for score, (train, test) in zip(found, KFold(3).split(X), strict=True):
        model = SelfLearningLDA().fit(X[train], Y[train])
        by_hand = semi_supervised_scorer(scoring)
        assert score == by_hand(model, X[test], Y[test], sample_weight=weights[test])


def test_a_scorer_asks_for_what_the_scorer_inside_asks_for():
    inside, wrapped = get_scorer("accuracy"), semi_supervised_scorer("accuracy")
    with sklearn.config_context(enable_metadata_routing=True):
        assert str(wrapped.get_metadata_routing()) == str(inside.get_metadata_routing())
        inside.set_score_request(sample_weight="weights")
        wrapped.set_score_request(sample_weight="weights")
        assert str(wrapped.get_metadata_routing()) == str(inside.get_metadata_routing())


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copy_of_a_scorer_scores_the_same(duplicate, fitted):
    scorer = semi_supervised_scorer("balanced_accuracy")
    assert duplicate(scorer)(fitted, X, Y) == scorer(fitted, X, Y)


def test_rows_without_any_label_are_refused(fitted):
    with pytest.raises(ValueError, match="all 4 rows carry the marker -1"):
        semi_supervised_scorer()(fitted, X[:4], np.full(4, -1))


@pytest.mark.parametrize("scoring", [["accuracy"], None, 3])
def test_what_is_no_scorer_is_refused(scoring):
    with pytest.raises(ValueError, match="scoring must be the name of a scorer"):
        semi_supervised_scorer(scoring)
