"""Methods against the supervised one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import t as student
from scipy.stats import ttest_rel
from sklearn.model_selection import cross_validate

from iclda import SelfLearningLDA, SupervisedLDA
from iclda._statistics import corrected_t_test
from iclda.model_selection import SemiSupervisedKFold, SemiSupervisedShuffleSplit
from iclda.plots import ComparisonDisplay

RNG = np.random.default_rng(5)
SCORES = {
    "ICLDA": 0.82 + 0.02 * RNG.standard_normal(20),
    "LDA": 0.80 + 0.02 * RNG.standard_normal(20),
    "SLLDA": 0.75 + 0.02 * RNG.standard_normal(20),
}


def drawn(display, name):
    """Ends of the interval, one standard error to either side of the mean, and the mean."""
    place = display.methods_.index(name)
    lines = [line for line in display.ax_.lines if set(line.get_ydata()) == {place}]
    return [list(line.get_xdata()) for line in lines]


def test_means_intervals_and_counts_are_those_of_a_paired_test():
    display = ComparisonDisplay.from_scores(SCORES, confidence=0.9)
    words = [text.get_text() for text in display.ax_.texts]
    assert display.baseline == "LDA"
    for name in ("ICLDA", "SLLDA"):
        test = ttest_rel(SCORES[name], SCORES["LDA"])
        interval, (low, high), (mean,) = drawn(display, name)
        assert mean == pytest.approx(np.mean(SCORES[name] - SCORES["LDA"]))
        assert mean / ((high - low) / 2) == pytest.approx(test.statistic)
        assert_allclose(interval, test.confidence_interval(0.9))
        assert f"{(SCORES[name] < SCORES['LDA']).sum()} of 20" in words
    assert words[-1] == "repeats\nworse"


def test_any_method_can_be_the_baseline():
    display = ComparisonDisplay.from_scores(SCORES, baseline="ICLDA", score_name="log_likelihood")
    assert set(display.differences) == {"LDA", "SLLDA"}
    assert display.ax_.get_xlabel().startswith("Log likelihood minus that of ICLDA")
    for name, baseline in [("SupervisedLDA", "SupervisedLDA"), ("a", "b")]:
        named = ComparisonDisplay.from_scores({"b": [1.0, 2.0], name: [1.0, 3.0]})
        assert named.baseline == baseline


@pytest.mark.parametrize("greater_is_better", [True, False])
def test_the_best_method_stands_on_top(greater_is_better):
    display = ComparisonDisplay.from_scores(SCORES, greater_is_better=greater_is_better)
    order = ["ICLDA", "SLLDA"] if greater_is_better else ["SLLDA", "ICLDA"]
    assert display.methods_ == order
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == order
    low, high = display.ax_.get_ylim()
    assert low > high
    arrows = "\N{LEFTWARDS ARROW} worse" if greater_is_better else "\N{LEFTWARDS ARROW} better"
    assert arrows in display.ax_.get_xlabel()


def test_repeats_that_failed_are_left_out_in_pairs():
    display = ComparisonDisplay.from_scores({"LDA": [0.5, np.nan, 0.7], "x": [0.6, 0.6, np.nan]})
    assert_allclose(display.differences["x"], [0.1])
    interval, mean = drawn(display, "x")
    assert interval == pytest.approx([0.1, 0.1])
    assert mean == pytest.approx([0.1])
    with pytest.raises(ValueError, match="'x' has no finite score in a repeat in which 'LDA'"):
        ComparisonDisplay.from_scores({"LDA": [0.5, np.nan], "x": [np.nan, 0.6]})


def test_classifiers_are_cross_validated_on_the_same_folds(fitted):
    f = fitted(2, 2)
    models = {"LDA": SupervisedLDA(), "SLLDA": SelfLearningLDA()}
    display = ComparisonDisplay.from_estimator(
        models, f.X, f.y, cv=3, n_repeats=2, random_state=0, scoring="accuracy"
    )
    seed = np.random.RandomState(0).randint(2**31 - 1)
    cv = SemiSupervisedKFold(3, n_repeats=2, random_state=seed)
    means = {
        name: cross_validate(model, f.X, f.y, cv=cv)["test_score"].reshape(2, 3).mean(axis=1)
        for name, model in models.items()
    }
    assert_allclose(display.differences["SLLDA"], means["SLLDA"] - means["LDA"])
    assert display.ax_.get_xlabel().startswith("Accuracy minus that of LDA")
    folds = {m: cross_validate(models[m], f.X, f.y, cv=cv)["test_score"] for m in models}
    t, _ = corrected_t_test(list(folds["SLLDA"] - folds["LDA"]), 1 / 2)
    error = display.standard_errors["SLLDA"]
    assert np.mean(display.differences["SLLDA"]) == pytest.approx(t * error)
    low, high = display.intervals["SLLDA"]
    assert (high - low) / 2 == pytest.approx(student.ppf(0.975, 5) * error)
    splits = SemiSupervisedShuffleSplit(4, random_state=0)
    display = ComparisonDisplay.from_estimator(models, f.X, f.y, cv=splits)
    assert len(display.differences["SLLDA"]) == 4
    assert display.unit == "splits"
    with pytest.raises(ValueError, match="dict of at least 2 classifiers"):
        ComparisonDisplay.from_estimator(SelfLearningLDA(), f.X, f.y)


@pytest.mark.parametrize(
    ("scores", "baseline", "message"),
    [
        ({"a": [1.0]}, None, r"at least 2 methods to compare, got \['a'\]"),
        ({"a": [1.0], "b": [1.0]}, "c", r"baseline must be one of \['a', 'b'\], got 'c'"),
        ({"a": [1.0, 2.0], "b": [1.0]}, None, r"'a' has shape \(2,\), 'b' has shape \(1,\)"),
        ({"a": [[1.0]], "b": [1.0]}, None, r"'a' has shape \(1, 1\)"),
    ],
)
def test_scores_that_do_not_pair_are_refused(scores, baseline, message):
    with pytest.raises(ValueError, match=message):
        ComparisonDisplay.from_scores(scores, baseline=baseline)


def test_intervals_that_are_given_are_drawn_instead_of_those_of_independent_repeats():
    differences = {"em (shrunk)": np.array([-0.1, 0.0, -0.05])}
    display = ComparisonDisplay(
        differences=differences, baseline="supervised", intervals={"em (shrunk)": (-0.4, 0.3)}
    ).plot()
    ends = [list(line.get_xdata()) for line in display.ax_.lines]
    assert [-0.4, 0.3] in ends
    assert len([xs for xs in ends if len(xs) == 2 and xs[0] != xs[1]]) == 1


@pytest.mark.parametrize("greater_is_better", [True, False])
def test_a_tie_is_not_worse(greater_is_better):
    scores = {"LDA": [0.5, 0.5, 0.5], "x": [0.5, 0.6, 0.4]}
    display = ComparisonDisplay.from_scores(scores, greater_is_better=greater_is_better)
    assert display.ax_.texts[0].get_text() == "1 of 3"
