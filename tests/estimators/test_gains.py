import numpy as np
import pytest

from iclda import SupervisedLDA
from iclda._estimators.gains import GainBounds, safety_bounds
from problems import ALL, SEMI_SUPERVISED, draw_sample

every_method = pytest.mark.parametrize("classifier", SEMI_SUPERVISED.values(), ids=SEMI_SUPERVISED)


def bounds_of(fitted, sample, **weights):
    return fitted.gain_bounds(sample.X, sample.y, X_unlabeled=sample.X_unlabeled, **weights)


@every_method
@pytest.mark.parametrize("shrinkage", [None, 0.2, "auto"])
def test_the_change_under_any_labels_lies_within_the_bounds(classifier, sample, shrinkage):
    fitted = sample.fit(classifier(shrinkage=shrinkage))
    found = bounds_of(fitted, sample)
    used = fitted.shrinkage_ if np.ndim(fitted.shrinkage_) == 0 else "auto"  # of every class
    supervised = SupervisedLDA(shrinkage=used).fit(sample.X, sample.y)
    rng = np.random.default_rng(0)
    for _ in range(10):
        y = np.r_[sample.y, rng.integers(sample.n_classes, size=len(sample.X_unlabeled))]
        both = (m.log_likelihood(sample.rows, y).mean() for m in (fitted, supervised))
        change = next(both) - next(both)
        assert found.worst - 1e-9 <= change <= found.best + 1e-9
    is_other = fitted.predict(sample.X_unlabeled) != supervised.predict(sample.X_unlabeled)
    assert found.disagreement == pytest.approx(is_other.mean(), abs=1e-12)
    assert found.worst - 1e-9 <= found.expected <= found.best + 1e-9


@every_method
def test_marked_rows_and_further_rows_give_the_same_bounds(classifier, sample):
    fitted = sample.fit(classifier())
    one = fitted.gain_bounds(sample.rows, sample.labels)
    two = bounds_of(fitted, sample)
    np.testing.assert_allclose(list(vars(one).values()), list(vars(two).values()), rtol=1e-9)


@pytest.mark.parametrize("shrinkage", [None, 0.2, "auto"])
def test_the_supervised_fit_changes_nothing(sample, shrinkage):
    fitted = SupervisedLDA(shrinkage=shrinkage).fit(sample.rows, sample.labels)
    found = fitted.gain_bounds(sample.rows, sample.labels)
    assert found.is_safe
    np.testing.assert_allclose(list(vars(found).values())[:4], 0, atol=1e-12)
    assert "exactly as likely as under supervised LDA" in found.details
    assert "Both describe the training rows equally well." in found.sentence


def test_without_unlabeled_rows_nothing_changes(sample):
    with pytest.warns(UserWarning, match="no unlabeled rows"):
        fitted = ALL["self-learning"]().fit(sample.X, sample.y)
    found = fitted.gain_bounds(sample.X, sample.y)
    assert (found.n_unlabeled, found.disagreement) == (0, 0)
    assert found.worst == pytest.approx(0, abs=1e-12)
    assert found.sentence.startswith("There are no unlabeled rows")


def test_other_classes_than_those_of_the_fit_are_refused(sample):
    fitted = sample.fit(ALL["moment-constrained"]())
    with pytest.raises(ValueError, match=r"y holds the classes \['a', 'b'\], and the fit has \[0"):
        fitted.gain_bounds(sample.X, np.where(sample.y > 0, "a", "b"))


def test_too_few_labels_for_a_supervised_fit_are_an_error_that_names_shrinkage():
    sample = draw_sample(3, n_features=6, n_labeled=5, n_unlabeled=40)
    fitted = sample.fit(ALL["expectation-maximization"]())
    with pytest.raises(ValueError, match=r"span 3 of 6 dimensions.* shrinkage"):
        bounds_of(fitted, sample)


SAID = {
    "between 0.25 less likely and 1.5 likelier": (
        GainBounds(-0.25, 1.5, 0.75, 0.125, 990),
        "Whether this fit describes the training rows better than supervised LDA does depends",
    ),
    "likelier by 0 to 1.5 than": (
        GainBounds(0.0, 1.5, 0.75, 0.125, 990),
        "Whatever the true classes of these rows are, this fit describes the training rows better",
    ),
    "less likely by 0.5 to 2 than": (
        GainBounds(-2.0, -0.5, -0.75, 0.125, 990),
        "Whatever the true classes of these rows are, this fit describes the training rows worse",
    ),
}


@pytest.mark.parametrize("numbers", SAID)
def test_the_sentence_says_what_is_certain_and_details_have_the_numbers(numbers):
    bounds, words = SAID[numbers]
    assert words in bounds.sentence
    assert "the 990 unlabeled rows, would give 12.5 % of them another class" in bounds.sentence
    assert "differ by 12.5 percentage points at most" in bounds.sentence
    assert str(bounds) == bounds.sentence
    begin = "Whatever the true classes of the 990 unlabeled rows are, the training rows are"
    assert bounds.details.startswith(f"{begin} {numbers}")


def test_where_both_classify_alike_the_sentence_says_that():
    alike = GainBounds(-1, 1, 0, 0, 1)
    assert "the 1 unlabeled row, would give them the same class. Whether" in alike.sentence
    assert "true class of the 1 unlabeled row is" in alike.details
    same = GainBounds(0, 0, 0, 0, 9).sentence
    assert same.endswith("the same classes. Both describe the training rows equally well.")


def test_safety_in_words_is_left_out_where_nothing_can_be_said(sample):
    fitted = sample.fit(ALL["pessimistic"]())
    found = safety_bounds(fitted, sample.rows, sample.labels)
    assert found == fitted.gain_bounds(sample.rows, sample.labels)
    assert "the training rows are likelier by" in found.details
    supervised = SupervisedLDA().fit(sample.X, sample.y)
    assert safety_bounds(supervised, sample.rows, sample.labels) is None
    assert safety_bounds(object(), sample.rows, sample.labels) is None
    few = draw_sample(3, n_features=6, n_labeled=5, n_unlabeled=40)
    fitted = few.fit(ALL["expectation-maximization"]())
    assert safety_bounds(fitted, few.rows, few.labels) is None


def test_bounds_of_a_supervised_fit_that_shrinkage_alone_has_given_a_covariance():
    rows, y = np.random.default_rng(0).standard_normal((8, 2)), [0, 1, *[-1] * 6]
    with pytest.warns(UserWarning, match="one labeled row only"):
        fitted = SupervisedLDA(shrinkage="auto").fit(rows, y)
    assert fitted.shrinkage_ == 1.0
    found = fitted.gain_bounds(rows, y)
    assert (found.disagreement, found.expected) == pytest.approx((0, 0), abs=1e-12)
