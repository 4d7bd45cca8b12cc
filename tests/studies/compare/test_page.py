"""Figures of the report: what is drawn, left out and scaled."""

import numpy as np

from iclda.studies.compare.page import draw, learning_curve
from iclda.studies.compare.plan import LABELED_CURVE
from iclda.studies.compare.summary import LOSS_DIFFERENCE, SplitCurvePoint


def losses(**means):
    return [
        SplitCurvePoint(LABELED_CURVE, 4 * 2**k, 50, method, LOSS_DIFFERENCE, mean, 0.1, 10)
        for method, line in means.items()
        for k, mean in enumerate(line)
    ]


def drawn(points):
    display = learning_curve(points, "em")
    return draw(display, 4.8, 3.2, is_loss=True).axes[0]


def heights(axes):
    """Where lines end, in heights of the axes."""
    ends = [line.get_xydata()[-1] for line in axes.lines if line.get_label()[0] != "_"]
    return sorted((axes.transScale + axes.transLimits).transform(ends)[:, 1])


def test_methods_are_told_apart_beside_one_that_is_far_off():
    axes = drawn(losses(supervised=[230.0, 90, 50, 20], em=[0.0] * 4, iclda=[1.5, 1, 0.6, 0.4]))
    assert np.diff(heights(axes)).min() > 0.15
    assert axes.get_ylabel() == "Loss minus that of em"
    names = [label.get_text() for label in axes.texts]
    assert sorted(names) == ["em", "iclda", "supervised"]
    assert np.diff(sorted(label.xyann[1] for label in axes.texts)).min() > 0.15


def test_differences_below_a_standard_error_are_not_drawn_large():
    points = losses(supervised=[230.0, 90, 50, 20], em=[0.0] * 4, iclda=[2e-3, -1e-3, 2e-3, 1e-3])
    top, middle = heights(drawn(points))[-1], heights(drawn(points))[:2]
    assert np.diff(middle) < 0.02
    assert top > middle[1] + 0.3


def test_a_point_that_would_flatten_the_figure_is_beyond_its_axis():
    points = losses(supervised=[6e12, 20, 3, 2], em=[0.0] * 4, iclda=[2.5, 2, 1, 0.6])
    low, high = drawn(points).get_ylim()
    assert -1 < low < 0
    assert 20 < high < 1e4
