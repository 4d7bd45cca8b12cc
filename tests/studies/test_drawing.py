"""Figures: that they are drawn the same every time, and suit a page."""

import itertools
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from result_rows import curve_rows

pytest.importorskip("matplotlib", reason="figures need iclda[experiments]")


from iclda.methods import INK
from iclda.plots._look import spread
from iclda.studies.drawing import COLORS, save, to_inline_svg
from iclda.studies.paper.curves import draw_curves, summarize_curves
from iclda.studies.paper.published import EXTRA_METHODS, METHOD_NAMES


@pytest.fixture(scope="module")
def points():
    return summarize_curves(curve_rows())


def test_every_method_has_a_color_of_its_own():
    assert set(METHOD_NAMES + EXTRA_METHODS) <= set(COLORS)
    assert len(set(COLORS.values())) == len(COLORS)


def test_labels_keep_their_distance_and_their_order():
    wanted = [0.5, 0.51, 0.1, 0.52, 0.9]
    placed = spread(wanted, 0.1)
    assert np.argsort(placed).tolist() == np.argsort(wanted).tolist()
    assert min(b - a for a, b in itertools.pairwise(sorted(placed))) >= 0.1 - 1e-12
    assert (placed[2], placed[4]) == (0.1, 0.9)


def test_files_are_the_same_every_time(tmp_path, points):
    first, second = (
        {p.suffix: p.read_bytes() for p in save(draw_curves(points, "Pima"), path)}
        for path in (tmp_path / "a", tmp_path / "b")
    )
    assert set(first) == {".svg", ".png", ".pdf"}
    assert first == second


def test_inline_svg_is_well_formed_and_takes_the_color_of_the_page(points):
    svg = to_inline_svg(draw_curves(points, "Pima"), "a b", 'say "<b>"')
    root = ET.fromstring(svg)
    assert root.get("aria-label") == 'say "<b>"'
    assert root.get("width") is None
    assert root.get("viewBox")
    assert INK not in svg
    assert "currentColor" in svg
