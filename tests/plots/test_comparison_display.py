"""Methods against the supervised one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import t as student
from sklearn.model_selection import cross_validate

from iclda import SelfLearningLDA, SupervisedLDA
from iclda._statistics import corrected_t_test
from iclda.model_selection import SemiSupervisedKFold, SemiSupervisedShuffleSplit
from iclda.plots import ComparisonDisplay

DIFFERENCES = {
    "SLLDA": np.array([-0.05, 0.0, -0.02, 0.01, -0.03]),
    "ICLDA": np.array([0.01, 0.02, 0.0, -0.02, 0.03]),
}
INTERVALS = {"ICLDA": (-0.4, 0.3), "SLLDA": (-0.2, 0.1)}


def display_of(**options):
    options = {"differences": DIFFERENCES, "intervals": INTERVALS, "baseline": "LDA", **options}
    return ComparisonDisplay(**options).plot()


@pytest.mark.parametrize("greater_is_better", [True, False])
def test_the_best_method_stands_on_top_with_mean_interval_and_count_of_worse_repeats(
    greater_is_better,
):
    display = display_of(greater_is_better=greater_is_better)
    order = ["ICLDA", "SLLDA"] if greater_is_better else ["SLLDA", "ICLDA"]
    assert display.methods_ == order
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == order
    low, high = display.ax_.get_ylim()
    assert low > high
    arrows = "\N{LEFTWARDS ARROW} worse" if greater_is_better else "\N{LEFTWARDS ARROW} better"
    assert arrows in display.ax_.get_xlabel()
    for place, name in enumerate(order):
        lines = [line for line in display.ax_.lines if set(line.get_ydata()) == {place}]
        assert tuple(lines[0].get_xdata()) == INTERVALS[name]
        assert lines[1].get_xdata() == pytest.approx([DIFFERENCES[name].mean()])
    # A tie is not worse.
    counts = {"ICLDA": "1 of 5", "SLLDA": "3 of 5"}
    if not greater_is_better:
        counts = {"ICLDA": "3 of 5", "SLLDA": "1 of 5"}
    shown = [text.get_text() for text in display.ax_.texts]
    assert shown == [*(counts[name] for name in order), "repeats\nworse"]


def test_classifiers_are_cross_validated_on_the_same_folds(fitted):
    f = fitted(2, 2)
    models = {"SLLDA": SelfLearningLDA(), "LDA": SupervisedLDA()}
    display = ComparisonDisplay.from_estimator(
        models, f.X, f.y, cv=3, n_repeats=2, random_state=0, scoring="accuracy", confidence=0.9
    )
    assert display.baseline == "LDA"
    seed = np.random.RandomState(0).randint(2**31 - 1)
    cv = SemiSupervisedKFold(3, n_repeats=2, random_state=seed)
    folds = {m: cross_validate(models[m], f.X, f.y, cv=cv)["test_score"] for m in models}
    means = {name: one.reshape(2, 3).mean(axis=1) for name, one in folds.items()}
    assert_allclose(display.differences["SLLDA"], means["SLLDA"] - means["LDA"])
    assert display.ax_.get_xlabel().startswith("Accuracy minus that of LDA")
    t, _ = corrected_t_test(list(folds["SLLDA"] - folds["LDA"]), 1 / 2)
    low, high = display.intervals["SLLDA"]
    error = np.mean(display.differences["SLLDA"]) / t
    assert (high - low) / 2 == pytest.approx(student.ppf(0.95, 5) * error)


def test_splits_of_a_splitter_are_single_differences_and_any_method_can_be_the_baseline(fitted):
    f = fitted(2, 2)
    models = {"a": SupervisedLDA(), "b": SelfLearningLDA()}
    splits = SemiSupervisedShuffleSplit(4, random_state=0)
    display = ComparisonDisplay.from_estimator(models, f.X, f.y, cv=splits)
    assert (display.baseline, display.unit) == ("a", "splits")
    assert len(display.differences["b"]) == 4
    other = ComparisonDisplay.from_estimator(models, f.X, f.y, cv=splits, baseline="b")
    assert_allclose(other.differences["a"], -display.differences["b"])
    with pytest.raises(ValueError, match="dict of at least 2 classifiers"):
        ComparisonDisplay.from_estimator(SelfLearningLDA(), f.X, f.y)
    with pytest.raises(ValueError, match=r"baseline must be one of \['a', 'b'\], got 'c'"):
        ComparisonDisplay.from_estimator(models, f.X, f.y, baseline="c")
