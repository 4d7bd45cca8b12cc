"""From rows to points, and from points to figures."""

import csv
import random
import statistics
from importlib.util import find_spec

import pytest
from result_rows import curve_rows, fail, table_rows

from iclda.studies.paper.curves import curve_files, draw_curves, summarize_curves
from iclda.studies.paper.published import METHOD_NAMES, read_points

needs_matplotlib = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="figures need iclda[experiments]"
)


@pytest.fixture(scope="module")
def points():
    return summarize_curves(curve_rows())


def texts_of(axes):
    return [text.get_text() for text in axes.texts]


def test_a_point_is_mean_and_standard_error_over_repeats():
    rows = curve_rows()
    values = [r.values["error"] for r in rows if (r.method, r.n_unlabeled) == ("ICLDA", 4)]
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
    rows[0] = fail(rows[0])
    assert {point.repeats for point in summarize_curves(rows)} == {4}


def test_points_do_not_depend_on_the_order_of_the_rows_nor_on_other_experiments():
    rows = curve_rows()
    shuffled = random.Random(1).sample(rows, len(rows))
    assert summarize_curves(shuffled + table_rows()) == summarize_curves(rows)


def test_points_of_the_paper_are_compared_in_combined_standard_errors():
    columns = {"EMLDA-as-published": "EMLDA"} | {
        name: name for name in ("LDA", "LDAoracle", "MCLDA", "SLLDA", "ICLDA")
    }
    points = summarize_curves(curve_rows("2DGaussian"))
    compared = [point for point in points if point.z is not None]
    assert {point.method for point in compared} == set(columns)
    for point in compared:
        key = point.dataset, point.n_unlabeled, columns[point.method], point.measure
        published = read_points()[key]
        assert (point.published_mean, point.published_se) == (published.mean, published.se)
        error = (point.se**2 + published.se**2) ** 0.5
        assert point.z == pytest.approx((point.mean - published.mean) / error)
    assert all(point.z is None for point in summarize_curves(curve_rows("Mine")))


def test_points_csv_has_the_promised_columns():
    rows = curve_rows()
    files = curve_files(summarize_curves(rows))
    lines = list(csv.DictReader(files["points.csv"].splitlines()))
    assert ",".join(lines[0]) == "dataset,n_unlabeled,method,measure,mean,se,repeats"
    assert len(lines) == len(summarize_curves(rows)) == len(METHOD_NAMES) * 4 * 3
    header, *compared = files["comparison.csv"].splitlines()
    assert header == f"{','.join(lines[0])},published_mean,published_se,z"
    assert compared


@needs_matplotlib
def test_curves_show_error_and_loss_with_every_method_named_beside_its_line(points):
    figure = draw_curves(points, "Pima")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Error", "Loss"]
    for axes in figure.axes:
        assert set(texts_of(axes)) == set(METHOD_NAMES)
        assert axes.get_xscale() == "log"
