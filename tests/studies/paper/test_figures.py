"""Figures of the paper's experiments: what they show."""

import pytest
from numpy.testing import assert_allclose
from result_rows import curve_rows, table_rows

pytest.importorskip("matplotlib", reason="figures need iclda[experiments]")

from iclda.studies.paper.figures import draw_curves, draw_table_overview, draw_toy
from iclda.studies.paper.published import METHOD_NAMES, read_points
from iclda.studies.paper.summary import summarize_curves, summarize_tables


def test_the_toy_figure_has_two_rows_of_three_with_ten_labels_each():
    figure = draw_toy(0)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["Labels and LDA", "ICLDA", "EMLDA"] * 2
    for axes in figure.axes:
        dots = [len(collection.get_offsets()) for collection in axes.collections]
        assert {5, 990} <= set(dots)


def test_the_overview_shows_differences_to_lda():
    cells = summarize_tables(table_rows(("Pima", "WDBC")))
    axes = draw_table_overview(cells).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Pima", "WDBC"]
    means = {(c.dataset, c.method): c.mean for c in cells if c.measure == "error"}
    (line,) = [line for line in axes.lines if line.get_label() == "ICLDA"]
    expected = [means[d, "ICLDA"] - means[d, "LDA"] for d in ("Pima", "WDBC")]
    assert line.get_xdata() == pytest.approx(expected)


def test_curves_show_error_and_loss_with_every_method_named_and_the_published_means():
    figure = draw_curves(summarize_curves(curve_rows()), "Pima")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Error", "Loss"]
    for axes, measure in zip(figure.axes, ("error", "nll"), strict=True):
        assert {text.get_text() for text in axes.texts} == set(METHOD_NAMES)
        circles = [line.get_ydata() for line in axes.lines if line.get_marker() == "o"]
        points = [read_points()["Pima", size, "LDA", measure].mean for size in (1, 2, 4, 8)]
        assert_allclose(circles[0], points)
