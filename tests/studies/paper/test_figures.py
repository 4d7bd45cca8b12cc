"""Figures: what is drawn, and that it is drawn the same every time."""

import itertools
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from result_rows import curve_rows, table_rows, toy_panels

pytest.importorskip("matplotlib", reason="figures need iclda[experiments]")

import matplotlib

from iclda.studies.cells import EXTRA_METHODS, METHODS
from iclda.studies.drawing import COLORS, INK, require, spread
from iclda.studies.paper.curves import summarize_curves
from iclda.studies.paper.figures import (
    draw_curves,
    draw_table_overview,
    draw_toy,
    draw_toy_panel,
    file_name,
    save,
    to_inline_svg,
    write_figures,
)
from iclda.studies.paper.published import published_points
from iclda.studies.paper.tables import summarize


@pytest.fixture(scope="module")
def points():
    return summarize_curves(curve_rows())


@pytest.fixture(scope="module")
def published():
    return list(published_points().values())


def texts_of(axes):
    return [text.get_text() for text in axes.texts]


def test_every_method_has_a_color_of_its_own():
    assert set(METHODS + EXTRA_METHODS) <= set(COLORS)
    assert len(set(COLORS.values())) == len(COLORS)


def test_curves_show_error_and_loss_with_every_method_named_beside_its_line(points, published):
    figure = draw_curves(points, published, "Pima")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Error", "Loss"]
    for axes in figure.axes:
        assert set(texts_of(axes)) == set(METHODS)
        assert axes.get_xscale() == "log"


def test_published_means_are_open_circles(points, published):
    axes = draw_curves(points, published, "Pima", ["error"]).axes[0]
    circles = [line for line in axes.lines if line.get_marker() == "o" and len(line.get_xdata())]
    assert {line.get_markeredgecolor() for line in circles} == {
        COLORS[m] for m in ("LDA", "LDAoracle", "MCLDA", "SLLDA", "ICLDA")
    }
    assert {line.get_markerfacecolor() for line in circles} == {"none"}


def test_a_line_far_above_the_others_is_named_with_its_range(published):
    rows = curve_rows(methods=("LDAoracle", "MCLDA", "SLLDA", "ICLDA"))
    rows += [type(r)(**{**vars(r), "error": 9.0, "method": "LDA"}) for r in rows]
    axes = draw_curves(summarize_curves(rows), published, "Pima", ["error"]).axes[0]
    assert "\N{UPWARDS ARROW} LDA lies above: 9 to 9" in texts_of(axes)
    assert axes.get_ylim()[1] < 1


def test_curves_of_nothing_are_empty_axes():
    assert len(draw_curves([], [], "Pima").axes) == 2


def test_the_overview_shows_differences_to_lda():
    cells = summarize(table_rows(("Pima", "WDBC")))
    axes = draw_table_overview(cells).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Pima", "WDBC"]
    means = {(c.dataset, c.method): c.mean for c in cells if c.measure == "error"}
    (line,) = [line for line in axes.lines if line.get_label() == "ICLDA"]
    expected = [means[d, "ICLDA"] - means[d, "LDA"] for d in ("Pima", "WDBC")]
    assert line.get_xdata() == pytest.approx(expected)


def test_the_toy_figure_has_two_rows_of_three():
    figure = draw_toy(toy_panels())
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["Labels", "ICLDA", "EMLDA"] * 2
    assert len(draw_toy_panel(toy_panels()[0]).axes) == 1


def test_the_boundary_is_drawn_where_it_is():
    panel = toy_panels()[0]
    (line,) = draw_toy_panel(panel).axes[0].lines
    for x, y in zip(*line.get_data(), strict=True):
        assert x + 2 * y + 0.5 == pytest.approx(0, abs=1e-9)


def test_labels_keep_their_distance_and_their_order():
    wanted = [0.5, 0.51, 0.1, 0.52, 0.9]
    placed = spread(wanted, 0.1)
    assert np.argsort(placed).tolist() == np.argsort(wanted).tolist()
    assert min(b - a for a, b in itertools.pairwise(sorted(placed))) >= 0.1 - 1e-12
    assert (placed[2], placed[4]) == (0.1, 0.9)
    assert spread([], 0.1) == []


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_files_are_the_same_every_time(tmp_path, points, published, kind):
    first, second = (
        {p.suffix: p.read_bytes() for p in save(draw_curves(points, published, "Pima"), path)}
        for path in (tmp_path / "a", tmp_path / "b")
    )
    assert first[f".{kind}"] == second[f".{kind}"]
    assert len(first[f".{kind}"]) > 1000


def test_inline_svg_is_well_formed_and_takes_the_color_of_the_page(points, published):
    svg = to_inline_svg(draw_curves(points, published, "Pima"), "a b", 'say "<b>"')
    root = ET.fromstring(svg)
    assert root.get("aria-label") == 'say "<b>"'
    assert root.get("width") is None
    assert root.get("viewBox")
    assert INK not in svg
    assert "currentColor" in svg


def test_inline_svgs_of_one_page_share_no_id(points, published):
    ids = []
    for name in ("one", "two"):
        root = ET.fromstring(to_inline_svg(draw_curves(points, published, "Pima"), name))
        ids.append({element.get("id") for element in root.iter()} - {None})
        text = ET.tostring(root, encoding="unicode")
        assert all(f'"{i}"' in text or f"#{i}" in text for i in ids[-1])
    assert not ids[0] & ids[1]


def test_drawing_leaves_matplotlib_as_it_was(points, published):
    before = dict(matplotlib.rcParams)
    draw_curves(points, published, "Pima")
    assert dict(matplotlib.rcParams) == before


def test_every_figure_is_written(tmp_path, points):
    paths = write_figures(tmp_path, summarize(table_rows()), points, toy=toy_panels())
    assert {path.stem for path in paths} == {"curve-Pima", "tables", "toy"}
    assert {path.suffix for path in paths} == {".svg", ".png", ".pdf"}
    assert all(path.parent == tmp_path / "figures" for path in paths)


def test_names_of_sets_cannot_leave_the_folder():
    assert file_name("../../etc/x y") == "-..-etc-x-y"
    assert file_name("..") == "set"


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"matplotlib is needed .* 'iclda\[experiments\]'"):
        require("matplotlib")
