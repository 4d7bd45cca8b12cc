from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose
from tables_of_results import result, results

from iclda.comparison.curves import LOSS_DIFFERENCE, Point, points_csv, summarize_curves
from iclda.comparison.figures import draw_curve, undrawn
from iclda.comparison.results import LABELED, UNLABELED

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
    points = summarize_curves(rows, ["supervised", "em"], "supervised", 2, is_capped=False)
    found = [p for p in points if p.curve == UNLABELED]
    assert_allclose(line(found, "em", "error"), [(10, 0.6), (30, 0.6), (100, 0.2)])
    assert_allclose(line(found, "supervised", "error"), [(10, 0.4), (30, 0.4), (100, 0.3)])
    assert {p.splits for p in found} == {4}


def test_the_loss_of_a_curve_is_less_that_of_supervised_in_the_same_split():
    rows = curve(UNLABELED, [10], supervised=0.4, em=0.6)
    points = summarize_curves(rows, ["supervised", "em"], "supervised", 2, is_capped=False)
    assert_allclose(line(points, "em", "loss_difference"), [(10, 2.0)])
    assert_allclose(line(points, "supervised", "loss_difference"), [(10, 0.0)])
    assert "loss" not in {point.measure for point in points}


def test_labels_vary_with_fewer_unlabeled_rows_where_there_are_too_many():
    rows = [*COMPARED, *curve(LABELED, [6, 16], supervised=0.4, em=0.6)]
    both = [
        summarize_curves(rows, ["em"], "supervised", 2, is_capped=is_capped)
        for is_capped in (True, False)
    ]
    capped, whole = (
        line([p for p in points if p.curve == LABELED], "em", "error") for points in both
    )
    assert_allclose(capped, [(6, 0.6), (16, 0.6)])
    assert_allclose(whole, [(6, 0.6), (16, 0.6), (16, 0.2)])


def test_failed_fits_and_infinite_losses_are_left_out():
    rows = curve(UNLABELED, [10], supervised=0.4, em=0.6)
    rows[0] = replace(rows[0], failure="x", error=None)
    rows[1] = replace(rows[1], loss=np.inf)
    points = summarize_curves(rows, ["supervised", "em"], "supervised", 2, is_capped=False)
    counts = {(p.method, p.measure): p.splits for p in points}
    assert counts["supervised", "error"] == 3
    assert counts["em", "loss_difference"] == 2


def test_points_are_written_one_a_line():
    points = summarize_curves(
        curve(UNLABELED, [10], supervised=0.4), ["supervised"], "supervised", 2, is_capped=False
    )
    lines = points_csv(points).splitlines()
    assert lines[0] == "curve,n_labeled,n_unlabeled,method,measure,mean,se,splits"
    assert lines[1] == "unlabeled,10,10,supervised,error,0.4,0,4"


def losses(**means):
    return [
        Point(LABELED, 4 * 2**k, 50, method, LOSS_DIFFERENCE, mean, 0.1, 10)
        for method, line in means.items()
        for k, mean in enumerate(line)
    ]


def test_a_point_that_would_flatten_the_figure_is_left_out_and_told():
    points = losses(supervised=[0.0] * 4, em=[-900.0, -2, -1, -0.5], iclda=[-2.5, -2, -1, -0.6])
    assert [(p.method, p.size) for p in undrawn(points, LABELED)] == [("em", 4)]
    low, high = draw_curve(points, LABELED, LOSS_DIFFERENCE).axes[0].get_ylim()
    assert -3.5 < low < -2.5
    assert 0 <= high < 0.5


def test_bands_of_fits_that_vary_wildly_do_not_flatten_the_figure():
    points = losses(supervised=[0.0] * 4, em=[-1.0, -2, -1, -0.5])
    points[-1] = replace(points[-1], se=1e6)
    low, high = draw_curve(points, LABELED, LOSS_DIFFERENCE).axes[0].get_ylim()
    assert -12 < low < high < 12
