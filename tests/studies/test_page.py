"""Figures drawn the same every time and fit for a page, and tables of text."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from tests.helpers.paper_rows import curve_rows

pytest.importorskip("matplotlib", reason="figures need iclda[experiments]")


from iclda.methods import INK
from iclda.studies.measures import Confusion
from iclda.studies.page import (
    class_error_lines,
    code,
    confusion_lines,
    save,
    to_inline_svg,
    to_inline_svgs,
)
from iclda.studies.paper.report import draw_curves
from iclda.studies.paper.summary import summarize_curves


@pytest.fixture(scope="module")
def points():
    return summarize_curves(curve_rows())


def test_files_are_the_same_every_time(tmp_path, points):
    first, second = (
        {p.suffix: p.read_bytes() for p in save(draw_curves(points, "Pima"), path)}
        for path in (tmp_path / "a", tmp_path / "b")
    )
    assert set(first) == {".svg", ".png", ".pdf"}
    assert first == second


def test_inline_svg_is_well_formed_and_takes_the_color_of_the_page(points):
    figure = draw_curves(points, "Pima")
    figure.set_label('say "<b>"')
    svg = to_inline_svg(figure, "a b")
    root = ET.fromstring(svg)
    assert root.get("aria-label") == 'say "<b>"'
    assert root.get("width") is None
    assert root.get("viewBox")
    assert INK not in svg
    assert "currentColor" in svg


def test_a_page_holds_two_drawings_of_a_figure_without_an_id_of_both(points):
    wide, narrow = (
        draw_curves(points, "Pima", is_narrow=is_narrow) for is_narrow in (False, True)
    )
    root = ET.fromstring(f"<figure>{to_inline_svgs(wide, narrow, 'a')}</figure>")
    assert [each.get("class") for each in root] == ["on-wide", "on-narrow"]
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert len(ids) == len(set(ids))
    widths = [float(each[0].get("viewBox").split()[2]) for each in root]
    assert widths[1] < widths[0] / 2


def test_the_tables_have_a_line_a_class():
    found = Confusion(("yes", "no"), np.array([[18.0, 2], [0, 20]]))
    assert not found.is_uneven
    assert class_error_lines(found) == [
        "class  rows  wrong   error    90 % interval",
        "yes      20      2  10.0 %  1.8 % to 28.3 %",
        "no       20      0   0.0 %  0.0 % to 13.9 %",
    ]
    assert confusion_lines(found)[1] == "yes                18   2"
    assert confusion_lines(Confusion(tuple("abcdefghijklm"), np.eye(13))) == []


def test_numbers_stand_for_long_names_above_a_confusion_matrix():
    names = ("a" * 40, "b" * 41)
    found = Confusion(names, np.array([[18.0, 2], [0, 20]]))
    assert confusion_lines(found) == [
        "true \\ predicted" + " " * 30 + "1   2",
        f"1 {names[0]}   18   2",
        f"2 {names[1]}   0  20",
    ]


def test_of_many_classes_the_largest_errors_are_shown():
    counts = 10 * np.eye(25)
    counts[7, 8] = 10.0
    lines = class_error_lines(Confusion(tuple("abcdefghijklmnopqrstuvwxy"), counts))
    assert len(lines) == 22
    assert lines[1].split()[:3] == ["h", "20", "10"]
    assert lines[-1] == "and 5 classes with smaller errors"


def test_commands_and_options_are_code_and_all_else_is_escaped():
    text = "`iclda fit` of a -- b <c> (--repeats asks, --method=em.) 'self--learning'"
    assert code(text) == (
        "<code>iclda fit</code> of a -- b &lt;c&gt; (<code>--repeats</code> asks, "
        "<code>--method=em</code>.) &#39;self--learning&#39;"
    )
