"""From rows to points."""

import csv
import dataclasses
import random
import statistics

import pytest
from result_rows import curve_rows, table_rows

from iclda.studies.paper.curves import (
    Point,
    compare_with_published,
    points_csv,
    summarize_curves,
    write_curves,
)
from iclda.studies.paper.published import published_points


def test_a_point_is_mean_and_standard_error_over_repeats():
    rows = curve_rows()
    values = [r.error for r in rows if (r.method, r.n_unlabeled) == ("ICLDA", 4)]
    (point,) = [
        p
        for p in summarize_curves(rows)
        if (p.method, p.n_unlabeled, p.measure) == ("ICLDA", 4, "error")
    ]
    assert point.mean == pytest.approx(statistics.fmean(values))
    assert point.se == pytest.approx(statistics.stdev(values) / len(values) ** 0.5)
    assert point.repeats == len(values)


def test_failed_fits_lower_the_number_of_repeats():
    rows = curve_rows(methods=("LDA",), sizes=(1,))
    rows[0] = dataclasses.replace(rows[0], error=None, nll=None, nll_labeled=None, failure="x")
    assert {point.repeats for point in summarize_curves(rows)} == {4}


def test_points_do_not_depend_on_the_order_of_the_rows_nor_on_other_experiments():
    rows = curve_rows()
    shuffled = random.Random(1).sample(rows, len(rows))
    assert summarize_curves(shuffled + table_rows()) == summarize_curves(rows)


def test_one_repeat_has_no_standard_error_and_no_comparison():
    points = summarize_curves(curve_rows(repeats=1))
    assert {point.se for point in points} == {None}
    assert compare_with_published(points) == []


def test_the_difference_is_in_combined_standard_errors():
    published = published_points()["Pima", 4, "ICLDA", "error"]
    point = Point("Pima", 4, "ICLDA", "error", published.mean + 0.1, published.se, 500)
    (comparison,) = compare_with_published([point])
    assert comparison.z == pytest.approx(0.1 / (2**0.5 * published.se))


def test_only_points_of_the_paper_are_compared():
    points = [
        Point("Pima", 3, "LDA", "error", 0.3, 0.01, 500),
        Point("Mine", 4, "LDA", "error", 0.3, 0.01, 500),
        Point("2DGaussian", 4, "EMLDA", "error", 0.3, 0.01, 500),
        Point("2DGaussian", 4, "EMLDA-as-published", "error", 0.3, 0.01, 500),
    ]
    (comparison,) = compare_with_published(points)
    assert (comparison.point.method, comparison.published.method) == (
        "EMLDA-as-published",
        "EMLDA",
    )


def test_points_csv_has_the_promised_columns(tmp_path):
    rows = curve_rows()
    write_curves(tmp_path, rows)
    text = (tmp_path / "curves" / "points.csv").read_text(encoding="utf-8")
    lines = list(csv.DictReader(text.splitlines()))
    assert ",".join(lines[0]) == "dataset,n_unlabeled,method,measure,mean,se,repeats"
    assert len(lines) == len(summarize_curves(rows)) == 7 * 4 * 3
    assert text == points_csv(summarize_curves(rows))
    assert (tmp_path / "curves" / "comparison.csv").read_text(encoding="utf-8").count("\n") > 1
