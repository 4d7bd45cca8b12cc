"""Learning curves as pictures."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclda import SelfLearningLDA, SupervisedLDA
from iclda.model_selection import LearningCurve, semi_supervised_learning_curve
from iclda.plots import LearningCurveDisplay

SIZES = [0, 4, 16, 64]
SCORES = np.random.default_rng(0).uniform(0.7, 0.9, size=(4, 6))


def band_of(collection):
    """Lower and upper end of a band at its sizes."""
    vertices = collection.get_paths()[0].vertices
    x, y = vertices.T
    return {size: (y[x == size].min(), y[x == size].max()) for size in np.unique(x)}


def curve_of(scores, sizes=SIZES):
    sizes = np.array(sizes)
    counts = np.ones(np.shape(scores), dtype=int)
    return LearningCurve(
        "n_unlabeled", sizes, np.asarray(scores), counts, counts, "score"
    )


def test_a_band_is_one_standard_error_to_either_side():
    display = LearningCurveDisplay.from_curve({"LDA": curve_of(SCORES)})
    mean = SCORES.mean(axis=1)
    error = SCORES.std(axis=1, ddof=1) / np.sqrt(6)
    assert_allclose(display.lines_["LDA"].get_ydata(), mean)
    for size, (low, high) in band_of(display.bands_["LDA"]).items():
        place = SIZES.index(size)
        assert_allclose(
            [low, high], [mean[place] - error[place], mean[place] + error[place]]
        )


def test_what_model_selection_returns_is_drawn_as_it_is(fitted):
    f = fitted(2, 2)
    curves = {
        name: semi_supervised_learning_curve(
            model, f.X, f.y, n_unlabeled=[0, 10, 40], cv=3, random_state=0
        )
        for name, model in {"LDA": SupervisedLDA(), "SLLDA": SelfLearningLDA()}.items()
    }
    display = LearningCurveDisplay.from_curve(curves)
    for name, curve in curves.items():
        assert_array_equal(display.lines_[name].get_xdata(), curve.sizes)
        assert_allclose(display.lines_[name].get_ydata(), curve.mean)
        assert_allclose(display.standard_errors[name], curve.standard_error)
    assert display.ax_.get_xlabel() == "Unlabeled rows"
    assert display.ax_.get_ylabel() == "Accuracy"
    assert {label.get_text() for label in display.labels_} == {"LDA", "SLLDA"}
    single = LearningCurveDisplay.from_curve(curves["LDA"], as_error=True)
    assert single.labels_ == []
    assert single.ax_.get_ylabel() == "Error"
    assert_allclose(single.means[""], 1 - curves["LDA"].mean)
    assert_allclose(single.standard_errors[""], curves["LDA"].standard_error)
    curves["SLLDA"] = replace(curves["LDA"], score_name="neg_log_loss")
    with pytest.raises(
        ValueError, match=r"one score .*\('n_unlabeled', 'neg_log_loss'\)"
    ):
        LearningCurveDisplay.from_curve(curves)
    with pytest.raises(ValueError, match="nothing to draw: the dict is empty"):
        LearningCurveDisplay.from_curve({})


def test_settings_reach_what_they_are_for(fitted):
    f = fitted(2, 2)
    curve = semi_supervised_learning_curve(
        SelfLearningLDA(), f.X, f.y, n_labeled=[4, 12], cv=2
    )
    display = LearningCurveDisplay.from_curve({"a": curve}, as_error=True, linewidth=4)
    assert display.ax_.get_xlabel() == "Labeled rows"
    assert display.ax_.get_ylabel() == "Error"
    assert display.lines_["a"].get_linewidth() == 4


@pytest.mark.parametrize(
    ("sizes", "scale"),
    [
        ([0, 4, 64], "symlog"),
        ([4, 64], "log"),
        ([10, 20, 30], "linear"),
        ([0], "linear"),
    ],
)
def test_the_axis_is_logarithmic_where_sizes_span_much(sizes, scale):
    ax = LearningCurveDisplay.from_curve(curve_of(SCORES[: len(sizes)], sizes)).ax_
    assert ax.get_xscale() == scale
    assert [label.get_text() for label in ax.get_xticklabels()] == [
        str(size) for size in sizes
    ]
