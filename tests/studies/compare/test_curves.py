from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose
from tables_of_results import result, results

from iclda.studies.compare.curves import LOSS_DIFFERENCE, Point, points_csv, summarize_curves
from iclda.studies.compare.figures import draw_curve, undrawn
from iclda.studies.compare.results import LABELED, UNLABELED

ALL = {UNLABELED: 100, LABELED: 16}  # rows that the comparison has
ERRORS = {"supervised": [[0.4, 0.2]] * 3, "em": [[0.2, 0.2]] * 3}
COMPARED = [replace(each, n_unlabeled=100) for each in results(**ERRORS)]


def curve(experiment, sizes, n_splits=4, **errors):
    return [
        result(
            name, split, size, error, experiment=experiment, n_unlabeled=size, n_labeled=size
        )
        for name, error in errors.items()
        for size in sizes
        for split in range(n_splits)
    ]  # fmt: skip


def line(points, method, measure):
    return [(p.size, p.mean) for p in points if (p.method, p.measure) == (method, measure)]


def test_a_curve_ends_with_the_same_splits_of_the_comparison():
    rows = [*COMPARED, *curve(UNLABELED, [10, 30], supervised=0.4, em=0.6)]
    points = summarize_curves(rows, ["supervised", "em"], "supervised", 2, ALL, is_capped=False)
    found = [p for p in points if p.curve == UNLABELED]
    assert_allclose(line(found, "em", "error"), [(10, 0.6), (30, 0.6), (100, 0.2)])
    assert_allclose(line(found, "supervised", "error"), [(10, 0.4), (30, 0.4), (100, 0.3)])
    assert {p.splits for p in found} == {4}


def test_the_loss_of_a_curve_is_less_that_of_the_reference_in_the_same_split():
    rows = curve(UNLABELED, [10], supervised=0.4, em=0.6)
    points = summarize_curves(rows, ["supervised", "em"], "supervised", 2, ALL, is_capped=False)
    assert_allclose(line(points, "em", "loss_difference"), [(10, 2.0)])
    assert_allclose(line(points, "supervised", "loss_difference"), [(10, 0.0)])
    assert "loss" not in {point.measure for point in points}


def test_labels_vary_with_fewer_unlabeled_rows_where_there_are_too_many():
    rows = [*COMPARED, *curve(LABELED, [6, 12], supervised=0.4, em=0.6)]
    both = [
        summarize_curves(rows, ["em"], "supervised", 2, ALL, is_capped=is_capped)
        for is_capped in (True, False)
    ]
    capped, whole = (
        line([p for p in points if p.curve == LABELED], "em", "error") for points in both
    )
    assert_allclose(capped, [(6, 0.6), (12, 0.6)])
    assert_allclose(whole, [(6, 0.6), (12, 0.6), (16, 0.2)])


def test_the_comparison_stands_on_a_curve_where_its_number_of_labels_does():
    rows = [*COMPARED, *curve(LABELED, [6, 30], supervised=0.4, em=0.6)]
    points = summarize_curves(rows, ["em"], "supervised", 2, ALL, is_capped=False)
    found = line([p for p in points if p.curve == LABELED], "em", "error")
    assert_allclose(found, [(6, 0.6), (16, 0.2), (30, 0.6)])


def test_failed_fits_and_infinite_losses_are_left_out():
    rows = curve(UNLABELED, [10], supervised=0.4, em=0.6)
    rows[0] = replace(rows[0], failure="x", error=None)
    rows[1] = replace(rows[1], loss=np.inf)
    points = summarize_curves(rows, ["supervised", "em"], "supervised", 2, ALL, is_capped=False)
    counts = {(p.method, p.measure): p.splits for p in points}
    assert counts["supervised", "error"] == 3
    assert counts["em", "loss_difference"] == 2


def test_points_are_written_one_a_line():
    rows = curve(UNLABELED, [10], supervised=0.4)
    points = summarize_curves(rows, ["supervised"], "supervised", 2, ALL, is_capped=False)
    lines = points_csv(points).splitlines()
    assert lines[0] == "curve,n_labeled,n_unlabeled,method,measure,mean,se,splits"
    assert lines[1] == "unlabeled,10,10,supervised,error,0.4,0,4"


def losses(**means):
    return [
        Point(LABELED, 4 * 2**k, 50, method, LOSS_DIFFERENCE, mean, 0.1, 10)
        for method, line in means.items()
        for k, mean in enumerate(line)
    ]


def drawn(points):
    return draw_curve(points, LABELED, LOSS_DIFFERENCE, "em").axes[0]


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


def test_differences_of_one_size_are_drawn_on_a_linear_axis():
    axes = drawn(losses(supervised=[3.0, 2, 1, 0.5], em=[0.0] * 4, iclda=[1.5, 1, 0.6, 0.4]))
    assert axes.get_yscale() == "linear"


def test_a_point_that_would_flatten_the_figure_is_left_out_and_told():
    points = losses(supervised=[6e12, 20, 3, 2], em=[0.0] * 4, iclda=[2.5, 2, 1, 0.6])
    assert [(p.method, p.size) for p in undrawn(points, LABELED)] == [("supervised", 4)]
    low, high = drawn(points).get_ylim()
    assert -1 < low < 0
    assert 20 < high < 60


def test_bands_of_fits_that_vary_wildly_do_not_flatten_the_figure():
    points = losses(supervised=[1.0, 2, 1, 0.5], em=[0.0] * 4)
    points[3] = replace(points[3], se=1e6)
    low, high = drawn(points).get_ylim()
    assert -12 < low < high < 12
