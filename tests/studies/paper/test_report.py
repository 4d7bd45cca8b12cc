"""The page: self-contained, escaped and true to what was run; its figures."""

import dataclasses
import re
from contextlib import closing
from html.parser import HTMLParser

import pytest
from numpy.testing import assert_allclose

from iclda.datasets import BENCHMARKS, make_gaussians, make_violated_gaussians
from iclda.plots._look import class_color, to_rgb
from iclda.studies.engine import rng_of
from tests.helpers.paper_rows import curve_rows, fail, table_row, table_rows

pytest.importorskip("jinja2", reason="reports need iclda[experiments]")

from iclda.studies.page import signed
from iclda.studies.paper.design import METHOD_NAMES
from iclda.studies.paper.published import read_points
from iclda.studies.paper.report import (
    Reproduction,
    draw_all_figures,
    draw_curves,
    draw_everything,
    draw_loss_and_error,
    draw_toy,
    render_report,
)
from iclda.studies.paper.stored_settings import StoredSettings
from iclda.studies.paper.summary import (
    describe_methods,
    summarize_curves,
    summarize_tables,
)
from iclda.studies.store import STORE, Store


class Page(HTMLParser):
    """Tags left open, ids, and the text of a page."""

    VOID = frozenset({"meta", "br", "link", "img", "hr"})

    def __init__(self, html):
        super().__init__()
        self.open = []
        self.ids = []
        self.attributes = []
        self.words = []
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_startendtag(self, tag, attrs):
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)


def report_of(rows, settings=None, with_figures=False):
    reproduction = Reproduction(rows, settings or StoredSettings())
    if not with_figures:
        return render_report(reproduction, {}, {})
    wide, narrow = (
        draw_all_figures(reproduction, is_narrow=is_narrow)
        for is_narrow in (False, True)
    )
    return render_report(reproduction, wide, narrow)


@pytest.fixture(scope="module")
def html():
    settings = StoredSettings(
        seed=2014,
        commands=["iclda reproduce --out <here>"],
        shapes={"WDBC": [568, 30, 2]},
        versions={"numpy": "2.4"},
        data={"WDBC": "abc123"},
        seconds_tables=80.0,
        seconds_curves=3.0,
    )
    rows = table_rows(("WDBC", "Pima")) + curve_rows()
    return report_of(rows, settings, with_figures=True)


def test_the_page_is_well_formed_and_loads_nothing_from_elsewhere(html):
    page = Page(html)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert "<script" not in html
    assert "<link" not in html
    assert "@import" not in html
    for name, value in page.attributes:
        if name in ("src", "href", "xlink:href"):
            assert value.startswith(("#", "data:"))
    assert not re.search(r"url\((?!#)", html)


def test_the_page_says_what_was_run_and_how(html):
    text = Page(html).text
    for words in (
        "2 data sets with 4 repeats of 10 folds",
        "in 1 min 23 s",
        "iclda reproduce --out <here>",
        "2014",
        "abc123",
        "Not the paper's data: WDBC.",
        f"None of {100 * len(METHOD_NAMES)}.",
    ):
        assert words in text


def test_the_numbers_on_the_page_are_those_of_the_cells(html):
    text = Page(html).text
    for cell in summarize_tables(table_rows(("WDBC", "Pima"))):
        if cell.measure == "error":
            assert f"{cell.mean:.3f} ± {cell.sd:.3f}" in text
        if cell.z is not None:
            assert f"z {signed(cell.z)}" in text


def test_every_name_of_a_method_is_spelled_out(html):
    text = Page(html).text
    assert "MCPLDA Pessimistic LDA . It improves most" in text
    for method in describe_methods(METHOD_NAMES):
        assert f"{method.name} {method.title} . {method.sentence}" in text
    assert len(describe_methods(METHOD_NAMES)) == len(METHOD_NAMES)


def test_46_names_and_tracebacks_are_escaped():
    evil = "<script>alert('x')</script>&"
    rows = table_rows((evil,), methods=("LDA", "ICLDA")) + curve_rows()
    rows = [*rows, table_row(evil, 9, 0, evil, None, None, failure=evil)]
    rows += [dataclasses.replace(row, dataset=evil) for row in curve_rows()]
    settings = StoredSettings(
        commands=[evil], shapes={evil: [9, 2, 2]}, origins={evil: evil}
    )
    html = report_of(rows, settings, with_figures=True)
    assert "<script" not in html
    page = Page(html)
    assert page.open == []
    assert page.text.count(evil) > 5


def test_failed_fits_are_counted_and_shown():
    rows = table_rows(methods=("LDA", "ICLDA"))
    rows[1] = fail(rows[1], "ValueError: rank")
    text = Page(report_of(rows)).text
    assert "1 of 80 fits failed" in text
    assert "ValueError: rank" in text
    assert "WDBC, ICLDA: 3 of 4 repeats are complete." in text


@pytest.mark.parametrize(
    ("rows", "absent", "present"),
    [
        (
            [],
            ["Cross-validation", "Learning curves", "agree"],
            ["No fits were counted."],
        ),
        (table_rows(("Mine",)), ["agree with the paper"], ["Mine"]),
        (
            table_rows(methods=("LDA", "MCLDA")),
            ["EM on", "ICLDA has"],
            ["of 4 table cells agree"],
        ),
        (
            table_rows(methods=("ICLDA",)),
            ["ICLDA has no higher loss"],
            ["Cross-validation"],
        ),
        (
            table_rows(repeats=1),
            ["agree with the paper"],
            ["1 data set with 1 repeat of 10"],
        ),
        (curve_rows(), ["Cross-validation"], ["Learning curves", "Furthest apart"]),
        (
            curve_rows("Mine"),
            ["Furthest apart"],
            ["The paper shows no curve of this set."],
        ),
    ],
    ids=[
        "nothing",
        "own set",
        "two methods",
        "no baseline",
        "one repeat",
        "curves",
        "own curve",
    ],
)
def test_the_page_adapts_to_what_was_run(rows, absent, present):
    page = Page(report_of(rows))
    assert page.open == []
    assert not [words for words in absent if words in page.text]
    assert not [words for words in present if words not in page.text]


def test_stored_rows_become_a_report_figures_and_files(tmp_path):
    store = Store(tmp_path / STORE)
    store.add(table_rows() + curve_rows())
    store.close()
    path = tmp_path / "report.html"
    assert draw_everything(tmp_path)["report"] == str(path)
    figures = {
        f"{n}.{kind}"
        for n in ("curve-Pima", "loss-and-error", "toy")
        for kind in ("svg", "png", "pdf")
    }
    assert {path.name for path in (tmp_path / "figures").iterdir()} == figures
    lines = (tmp_path / "tables" / "cells.csv").read_text().splitlines()
    assert (
        lines[0]
        == "dataset,method,measure,mean,sd,repeats,published_mean,published_sd,z,"
        "marks,published_marks"
    )
    assert len(lines) == 1 + 2 * len(METHOD_NAMES)
    lines = (tmp_path / "curves" / "points.csv").read_text().splitlines()
    columns = (
        "dataset,n_unlabeled,method,measure,mean,se,repeats,"
        "published_mean,published_se,z"
    )
    assert lines[0] == columns
    assert len(lines) == 1 + len(METHOD_NAMES) * 4 * 3


def test_the_toy_figure_has_two_rows_of_three_with_ten_labels_each():
    figure = draw_toy(0)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["True classes, LDA", "ICLDA", "EMLDA"] * 2
    for axes in figure.axes:
        dots = [len(collection.get_offsets()) for collection in axes.collections]
        assert {5, 990} <= set(dots)


def test_the_first_panels_of_the_toy_figure_show_the_true_classes_of_unlabeled_rows():
    figure = draw_toy(0)
    for name, make, axes in (
        ("between", make_gaussians, figure.axes[0]),
        ("across", make_violated_gaussians, figure.axes[3]),
    ):
        X, codes = make(1000, rng_of(0, "toy", name))
        (dots,) = [each for each in axes.collections if len(each.get_offsets()) == 990]
        code_by_row = {tuple(row): code for row, code in zip(X, codes, strict=True)}
        shown = [code_by_row[tuple(row)] for row in dots.get_offsets()]
        colors = [class_color(code) for code in shown]
        assert_allclose(dots.get_facecolor()[:, :3], [to_rgb(each) for each in colors])


def every_set(**kinds):
    return table_rows(tuple(BENCHMARKS), **kinds)


def test_the_page_marks_cells_and_counts_how_many_are_marked_as_in_print():
    html = report_of(every_set(repeats=2))
    cells = summarize_tables(every_set(repeats=2))
    for cell in cells:
        if cell.marks == "bold":
            number = f"{cell.mean:.3f}" if cell.measure == "error" else ""
            assert f"<strong>{number}" in html
    assert "paper&nbsp;<strong><u>0.198</u></strong>" in html
    text = Page(html).text
    assert "The paper's marks" in text
    assert "Two tests, two questions" in text
    for test in ("Welch, repeats independent", "paired, shared rows allowed for"):
        assert test in text


def test_sentences_are_checked_if_all_ten_sets_were_run_with_both_fits_of_em():
    assert "Sentences of the paper, checked" in Page(report_of(every_set())).text
    for rows in (
        table_rows(),
        every_set(methods=("LDA", "MCLDA", "EMLDA", "SLLDA", "ICLDA")),
    ):
        assert "Sentences of the paper" not in Page(report_of(rows)).text


def test_the_figure_of_loss_and_error_has_a_panel_a_set_and_a_dot_a_split():
    differences = Reproduction(table_rows(("WDBC", "Pima")), StoredSettings())
    of_iclda = {
        dataset: each
        for (dataset, method), each in differences.differences.items()
        if method == "ICLDA"
    }
    for is_narrow in (False, True):
        figure = draw_loss_and_error(of_iclda, is_narrow=is_narrow)
        panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
        assert [axes.get_title(loc="left").split()[0] for axes in panels] == [
            "Pima",
            "WDBC",
        ]
        for axes in panels:
            dots = axes.lines[-1]
            assert len(dots.get_xdata()) == 40
            for value, (low, high) in (
                (dots.get_xdata(), axes.get_xlim()),
                (dots.get_ydata(), axes.get_ylim()),
            ):
                assert low < min(value) <= max(value) < high


def test_rows_of_another_labeling_are_not_compared_with_the_paper(tmp_path):
    with closing(Store(tmp_path / STORE)) as store:
        store.note(labels=12, drawing="without-replacement")
        store.add(table_rows() + curve_rows())
    summary = draw_everything(tmp_path)
    names = {each["dataset"] for each in (*summary["cells"], *summary["points"])}
    assert names == {
        "WDBC (12 labels, drawn without-replacement)",
        "Pima (12 labels, drawn without-replacement)",
    }
    assert all(cell["published_mean"] is None for cell in summary["cells"])
    text = Page((tmp_path / "report.html").read_text()).text
    assert "Not labeled as in the paper: 12 labels, drawn without-replacement." in text


def test_narrow_figures_show_the_same_as_the_others_in_fewer_columns():
    points = summarize_curves(curve_rows())

    def drawn(is_narrow):
        """Grids of the figures, and what their panels show, in any order."""
        toy = draw_toy(0, is_narrow=is_narrow)
        curves = draw_curves(points, "Pima", is_narrow=is_narrow)
        grids = [
            figure.axes[0].get_gridspec().get_geometry() for figure in (toy, curves)
        ]
        lines = [[line.get_xydata() for line in axes.lines] for axes in curves.axes]
        dots = [[each.get_offsets() for each in axes.collections] for axes in toy.axes]
        return grids, sorted(map(repr, lines)), sorted(map(repr, dots))

    grids, *shown = drawn(False)
    narrow_grids, *narrow_shown = drawn(True)
    assert (grids, narrow_grids) == ([(2, 3), (1, 2)], [(3, 2), (2, 1)])
    assert narrow_shown == shown


def test_curves_show_error_and_loss_with_every_method_named_and_the_published_means():
    figure = draw_curves(summarize_curves(curve_rows()), "Pima")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Error", "Loss"]
    for axes, measure in zip(figure.axes, ("error", "nll"), strict=True):
        assert {text.get_text() for text in axes.texts} == set(METHOD_NAMES)
        circles = [line.get_ydata() for line in axes.lines if line.get_marker() == "o"]
        points = [
            read_points()["Pima", size, "LDA", measure].mean for size in (1, 2, 4, 8)
        ]
        assert_allclose(circles[0], points)
