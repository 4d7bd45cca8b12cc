"""Rows along a discriminant."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from iclda import SelfLearningLDA
from iclda.plots import DiscriminantHistogramDisplay

draw = DiscriminantHistogramDisplay.from_estimator


def heights(patch):
    """Signed heights of the bars of a group, without those below them."""
    data = patch.get_data()
    return data.values - (0 if data.baseline is None else data.baseline)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_lie_along_the_discriminant_asked_for(fitted, n_classes):
    f = fitted(n_classes, 3)
    for component in range(n_classes - 1):
        display = draw(f.model, f.X, f.y, component=component)
        assert_array_equal(display.values, f.model.transform(f.X)[:, component])
    name = "Discriminant" if n_classes == 2 else f"Discriminant {n_classes - 1}"
    assert display.ax_.get_xlabel() == name


def test_unlabeled_rows_are_counted_upwards_and_labeled_ones_downwards(fitted):
    f = fitted(3, 3)
    display = draw(f.model, f.X, f.y)
    assert heights(display.unlabeled_).sum() == f.n_unlabeled
    bars = {name: heights(patch) for name, patch in display.labeled_.items()}
    scale = bars[0].sum() / 12
    assert scale < 0
    for name, bar in bars.items():
        assert_allclose(bar.sum() / scale, (f.y == name).sum())
    stacked = sum(bars.values())
    assert_allclose(-stacked.min(), 0.45 * heights(display.unlabeled_).max())


def test_labeled_or_unlabeled_rows_alone_are_counted_upwards(fitted):
    f = fitted(2, 3)
    display = draw(f.model, f.X, f.true)
    assert display.unlabeled_ is None
    assert heights(display.labeled_[0]).sum() == (f.true == 0).sum()
    assert not display.ax_.texts
    display = draw(f.model, f.X)
    assert display.labeled_ == {}
    assert heights(display.unlabeled_).sum() == len(f.X)


def test_the_threshold_of_two_classes_is_where_predictions_change(fitted):
    f = fitted(2, 3)
    model = SelfLearningLDA(priors=[0.2, 0.8]).fit(f.X, f.y)
    display = draw(model, f.X, f.y)
    values = model.transform(f.X)[:, 0]
    assert_array_equal(values > display.threshold, model.predict(f.X) == 1)
    assert display.threshold_.get_xdata()[0] == display.threshold
    assert draw(fitted(3, 3).model, fitted(3, 3).X).threshold_ is None
    one_class = SelfLearningLDA(priors=[0, 1]).fit(f.X, f.y)
    assert draw(one_class, f.X, f.y).threshold_ is None
    # At the threshold two classes are equally probable.
    f = fitted(2, 1)
    pipeline = make_pipeline(StandardScaler(), SelfLearningLDA(priors=[0.2, 0.8])).fit(f.X, f.y)
    low, high = pipeline.transform([[0.0], [1.0]])[:, 0]
    row = (draw(pipeline, f.X, f.y).threshold - low) / (high - low)
    assert_allclose(pipeline.predict_proba([[row]]), [[0.5, 0.5]])


def test_curves_expect_as_many_rows_as_there_are(fitted):
    f = fitted(2, 3)
    display = draw(f.model, f.X, f.y, bins=np.linspace(-12, 12, 49))
    areas = [
        np.trapezoid(line.get_ydata(), line.get_xdata()) / 0.5 for line in display.curves_.values()
    ]
    assert_allclose(areas, f.model.priors_ * f.n_unlabeled, rtol=1e-3)
    peaks = [line.get_xdata()[line.get_ydata().argmax()] for line in display.curves_.values()]
    assert_allclose(peaks, f.model.transform(f.model.means_)[:, 0], atol=0.1)


@pytest.mark.parametrize("component", [-1, 2])
def test_a_discriminant_that_is_not_there_is_refused(fitted, component):
    f = fitted(3, 3)
    with pytest.raises(ValueError, match=f"2 discriminants of 3 classes, 0 to 1, got {component}"):
        draw(f.model, f.X, f.y, component=component)


def test_settings_reach_what_they_are_for(fitted):
    f = fitted(2, 2)
    style = {"linewidth": 3, "unlabeled_kw": {"alpha": 0.2}, "curve_kw": {"linewidth": 5}}
    display = draw(f.model, f.X, f.y, bins=7, legend=False, **style)
    assert len(heights(display.unlabeled_)) == 7
    assert display.labeled_[0].get_linewidth() == 3
    assert display.unlabeled_.get_alpha() == 0.2
    assert display.curves_[1].get_linewidth() == 5
    assert display.ax_.get_legend() is None


def test_a_classifier_without_discriminants_is_refused(fitted):
    f = fitted(2, 2)
    with pytest.raises(ValueError, match=r"LogisticRegression has no transform.*of two columns"):
        draw(LogisticRegression().fit(f.X, f.true), f.X)
