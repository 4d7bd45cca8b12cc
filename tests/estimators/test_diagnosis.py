"""Warnings of fits that do not converge, and bounds of the gain on supervised LDA."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from iclda import (
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    NotConvergedWarning,
    PessimisticLDA,
    SelfLearningLDA,
    SupervisedLDA,
)
from iclda._core import problem
from iclda._estimators.diagnosis import GainBounds, _warn_of_score, safety_bounds
from iclda.methods import FITTED, FURTHER
from iclda.model_selection import semi_supervised_scorer
from problems import ALL, change_settings, draw_sample, semi_supervised

CLASSES = {method.class_name: method for method in (*FITTED, *FURTHER)}
ITERATIVE = [
    each.load_class() for each in CLASSES.values() if "max_iter" in each.parameters
]
SAMPLE = draw_sample(11, separation=0.3, n_unlabeled=200)


def fit_with_warning(classifier, match):
    with pytest.warns(NotConvergedWarning, match=match) as caught:
        fitted = SAMPLE.fit(classifier)
    assert not fitted.converged_
    assert [each.message.outcome for each in caught] == [fitted.outcome_]
    return fitted


@pytest.mark.parametrize("classifier", ITERATIVE)
def test_too_few_rounds_are_the_outcome_and_a_larger_max_iter_the_advice(classifier):
    assert SAMPLE.fit(classifier()).outcome_ == "converged"
    fitted = fit_with_warning(classifier(max_iter=1), r"Raise max_iter \(now 1\)")
    assert fitted.outcome_ == "max_iterations"
    assert fitted.n_iter_ >= 1


@pytest.mark.parametrize("classifier", [ExpectationMaximizationLDA, SelfLearningLDA])
def test_many_classes_limit_the_rounds_and_max_iter_is_not_advised(
    classifier, monkeypatch
):
    monkeypatch.setattr(problem, "_MANY_CLASSES", 1)
    monkeypatch.setattr(problem, "_MAX_SHARES_OF_FIT", 1)
    monkeypatch.setattr(problem, "_MIN_ROUNDS_OF_MANY_CLASSES", 1)
    fitted = fit_with_warning(classifier(), "pass fewer unlabeled rows, or raise tol")
    assert fitted.outcome_ == "many_classes"


def test_long_steps_are_the_outcome_before_max_iter_and_fewer_rows_the_advice(
    monkeypatch,
):
    change_settings(monkeypatch, "WORK", min_numbers_per_iteration=1)
    change_settings(monkeypatch, "NEWTON", reads_per_block=1e9)
    fitted = fit_with_warning(
        ImplicitlyConstrainedLDA(n_starts=1), "Pass fewer unlabeled rows"
    )
    assert fitted.outcome_ == "not_found"
    assert fitted.n_iter_ < fitted.max_iter


def test_where_rounding_forbids_the_tolerance_a_larger_one_is_advised():
    fitted = fit_with_warning(
        PessimisticLDA(tol=0), r"max_iter does not help: raise tol \(now 0\)"
    )
    assert fitted.outcome_ == "stalled"


def bounds_of(fitted, sample, **weights):
    return fitted.gain_bounds(
        sample.X, sample.y, X_unlabeled=sample.X_unlabeled, **weights
    )


@semi_supervised
@pytest.mark.parametrize("shrinkage", [None, 0.2, "auto"])
def test_the_change_under_any_labels_lies_within_the_bounds(
    classifier, sample, shrinkage
):
    fitted = sample.fit(classifier(shrinkage=shrinkage))
    found = bounds_of(fitted, sample)
    used = (
        fitted.shrinkage_ if np.ndim(fitted.shrinkage_) == 0 else "auto"
    )  # of every class
    supervised = SupervisedLDA(shrinkage=used).fit(sample.X, sample.y)
    rng = np.random.default_rng(0)
    for _ in range(10):
        y = np.r_[
            sample.y, rng.integers(sample.n_classes, size=len(sample.X_unlabeled))
        ]
        both = (m.log_likelihood(sample.rows, y).mean() for m in (fitted, supervised))
        change = next(both) - next(both)
        assert found.worst - 1e-9 <= change <= found.best + 1e-9
    is_other = fitted.predict(sample.X_unlabeled) != supervised.predict(
        sample.X_unlabeled
    )
    assert found.disagreement == pytest.approx(is_other.mean(), abs=1e-12)
    assert found.worst - 1e-9 <= found.expected <= found.best + 1e-9


@pytest.mark.parametrize("shrinkage", [None, 0.2, "auto"])
def test_the_supervised_fit_changes_nothing(sample, shrinkage):
    fitted = SupervisedLDA(shrinkage=shrinkage).fit(sample.rows, sample.labels)
    found = fitted.gain_bounds(sample.rows, sample.labels)
    assert found.is_safe
    np.testing.assert_allclose(list(vars(found).values())[:4], 0, atol=1e-12)
    assert "Both have the same likelihood." in found.sentence


def test_without_unlabeled_rows_nothing_changes(sample):
    with pytest.warns(UserWarning, match="no unlabeled rows"):
        fitted = ALL["self-learning"]().fit(sample.X, sample.y)
    found = fitted.gain_bounds(sample.X, sample.y)
    assert (found.n_unlabeled, found.disagreement) == (0, 0)
    assert found.worst == pytest.approx(0, abs=1e-12)
    assert found.sentence.startswith("There are no unlabeled rows")


def test_other_classes_than_those_of_the_fit_are_refused(sample):
    fitted = sample.fit(ALL["moment"]())
    with pytest.raises(
        ValueError, match=r"y holds the classes \['a', 'b'\], and the fit has \[0"
    ):
        fitted.gain_bounds(sample.X, np.where(sample.y > 0, "a", "b"))


def test_too_few_labels_for_a_supervised_fit_are_an_error_that_names_shrinkage():
    sample = draw_sample(3, n_features=6, n_labeled=5, n_unlabeled=40)
    fitted = sample.fit(ALL["em"]())
    with pytest.raises(ValueError, match=r"span 3 of 6 dimensions.* shrinkage"):
        bounds_of(fitted, sample)


SAID = {
    "-0.25 to +1.5": (
        GainBounds(-0.25, 1.5, 0.75, 0.125, 990),
        "Which of both has the higher likelihood depends on the true classes.",
    ),
    "0 to +1.5": (
        GainBounds(0.0, 1.5, 0.75, 0.125, 990),
        "its likelihood is higher than that of supervised LDA, which may come with more mistakes",
    ),
    "-2 to -0.5": (
        GainBounds(-2.0, -0.5, -0.75, 0.125, 990),
        "its likelihood is lower than that of supervised LDA, which may come with fewer mistakes",
    ),
}


@pytest.mark.parametrize("numbers", SAID)
def test_the_sentence_begins_with_mistakes_and_says_what_is_certain(numbers):
    bounds, words = SAID[numbers]
    beginning = "Of the 990 unlabeled rows, this fit may get up to 12.5 % more wrong than superv"
    assert bounds.sentence.startswith(beginning)
    assert words in bounds.sentence
    assert str(bounds) == bounds.sentence


def test_where_both_classify_alike_the_sentence_says_that():
    alike = GainBounds(-1, 1, 0, 0, 1)
    assert "supervised LDA classify the 1 unlabeled row alike. Which" in alike.sentence
    assert GainBounds(1, 2, 1, 0, 9).sentence.endswith(
        "likelihood is higher than that of supervised LDA."
    )
    same = GainBounds(0, 0, 0, 0, 9).sentence
    assert same.endswith("rows alike. Both have the same likelihood.")


def test_safety_in_words_is_left_out_where_nothing_can_be_said(sample):
    fitted = sample.fit(ALL["pessimistic"]())
    found = safety_bounds(fitted, sample.rows, sample.labels)
    assert found == fitted.gain_bounds(sample.rows, sample.labels)
    supervised = SupervisedLDA().fit(sample.X, sample.y)
    assert safety_bounds(supervised, sample.rows, sample.labels) is None
    assert safety_bounds(object(), sample.rows, sample.labels) is None
    few = draw_sample(3, n_features=6, n_labeled=5, n_unlabeled=40)
    fitted = few.fit(ALL["em"]())
    assert safety_bounds(fitted, few.rows, few.labels) is None


def test_bounds_of_a_supervised_fit_that_shrinkage_alone_has_given_a_covariance():
    rows, y = np.random.default_rng(0).standard_normal((8, 2)), [0, 1, *[-1] * 6]
    fitted = SupervisedLDA(shrinkage="auto").fit(rows, y)
    assert fitted.shrinkage_ == 0.99
    found = fitted.gain_bounds(rows, y)
    assert (found.disagreement, found.expected) == pytest.approx((0, 0), abs=1e-12)


@semi_supervised
def test_marked_rows_and_further_rows_give_the_same_bounds(classifier, sample):
    fitted = sample.fit(classifier())
    one = fitted.gain_bounds(sample.rows, sample.labels)
    two = bounds_of(fitted, sample)
    np.testing.assert_allclose(
        list(vars(one).values()), list(vars(two).values()), rtol=1e-9
    )


@pytest.mark.parametrize(
    "wrap", [lambda lda: lda, lambda lda: make_pipeline(StandardScaler(), lda)]
)
def test_a_score_that_counts_unlabeled_rows_as_wrong_warns_once_and_names_another(wrap):
    X, y = SAMPLE.rows, SAMPLE.labels
    folds = KFold(3, shuffle=True, random_state=0)
    _warn_of_score.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        cross_val_score(wrap(SupervisedLDA()), X, y, cv=folds, scoring="accuracy")
    (message,) = [str(each.message) for each in caught]
    assert message.startswith("Rows to score are unlabeled (y = -1)")
    assert "semi_supervised_scorer('accuracy')" in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_val_score(
            wrap(SupervisedLDA()), X, y, cv=folds, scoring=semi_supervised_scorer()
        )
        labeled = y != -1
        cross_val_score(
            wrap(SupervisedLDA()), X[labeled], y[labeled], cv=3, scoring="accuracy"
        )
