"""Answers from stored rows: tables, sentences, figures, the page; runs that go on."""

import json
import re

import pytest

pytest.importorskip("jinja2", reason="reports need iclda[experiments]")

from contextlib import closing

from typer.testing import CliRunner

from iclda.studies.store import STORE, FitResult, Store, StoreError
from research.__main__ import make_app
from research.answers import draw_answers, spread_table, with_several_points
from research.plan import EXPERIMENTS, KIND, PLAN
from research.questions import StudySettings, run_questions

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of a few cells, and what it said about its progress."""
    out = tmp_path_factory.mktemp("answers")
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ICLDA_DATA", raising=False)
        patch.setitem(
            PLAN, "quick", ["labels 4", "classes 3", "Haberman", "across clusters"]
        )
        # AutoLDA is fitted on one table only.
        patch.setattr("research.fits._AUTO_COLUMNS", 3)
        for asked in EXPERIMENTS.values():
            patch.setitem(asked, "repeats", 1)
        for name, part in {"maxima": 200, "proportions": 8, "methods": 20}.items():
            patch.setitem(EXPERIMENTS[name], "parts", [part])
        settings = StudySettings(
            out, is_quick=True, command="python -m research --quick"
        )
        run_questions(settings, lambda *counts: said.append(counts))
        n_first = len(said)
        run_questions(settings, lambda *counts: said.append(counts))
    return out, draw_answers(out), said[:n_first], said[n_first:]


def test_a_second_run_computes_nothing(finished):
    _, summary, first, second = finished
    assert first[0][:2] == ("example", 0)
    assert all(done == total for _, done, total, _ in second)
    assert [name for name, *_ in second] == list(EXPERIMENTS)
    assert summary["failed_fits"] == 0


def test_every_question_has_an_answer_and_a_table(finished):
    out, summary, *_ = finished
    assert len(summary["answers"]) == 7
    for name, (title, *sentences) in summary["answers"].items():
        assert title.endswith("?")
        assert sentences
        assert any(isinstance(block, list) for block in sentences) or (
            name == "constraints"
        )
        assert (out / "tables" / f"{name}-0.csv").read_text().count("\n") > 1
        assert any(len(table) > 1 for table in summary["tables"][name].values())
    maxima = summary["answers"]["uniqueness"][3]
    assert [row[0] for row in maxima[1:]] == ["smallest"] * 2 + ["deep"] * 2
    # The other figures are lines, which need more than the one size that was run.
    for name in ("uniqueness", "constraints", "em"):
        assert (out / "figures" / f"{name}.svg").stat().st_size > 5_000
    html = (out / "report.html").read_text()
    assert html.count("<svg") == len(list((out / "figures").glob("*.svg")))
    assert "<script" not in html
    # Names of the paper.
    assert not re.search("EMLDA|SLLDA|MCP?LDA|STLDA", html)
    assert "A quick run" in html


def test_numbers_are_those_of_the_rows(finished):
    out, summary, *_ = finished
    with closing(Store(out / STORE, kind=KIND, read_only=True)) as store:
        rows = [row for row in store.rows("em") if row.dataset == "across clusters"]
        errors = [row.values["error"] for row in rows if row.method == "em"]
        [worse] = store.query(
            "SELECT COUNT(*) AS n FROM rows AS i "
            "JOIN rows AS b USING (dataset, repeat, part) "
            "WHERE i.experiment = 'safety' AND b.experiment = 'safety' AND "
            "i.method = 'iclda' AND b.method = 'supervised' AND i.error > b.error "
            "AND part = 50"
        )
    [heading, *lines] = summary["tables"]["em"][next(iter(summary["tables"]["em"]))]
    line = next(each for each in lines if each[0] == "across clusters")
    assert line[heading.index("em")] == f"{sum(errors) / len(errors):.3f}"
    [heading, *lines] = next(
        block for block in summary["answers"]["safety"] if isinstance(block, list)
    )
    line = next(each for each in lines if each[0] == "iclda")
    cell = line[heading.index("d/2")]
    assert cell.startswith(f"{100 * worse['n']:.0f} % (")


def test_panels_of_a_single_x_are_left_out():
    records = [
        {"panel": "labels", "line": "em", "x": 4, "y": 0.5},
        {"panel": "labels", "line": "em", "x": 10, "y": 0.2},
        {"panel": "classes", "line": "em", "x": 2, "y": 0.1},
        {"panel": "classes", "line": "iclda", "x": 2, "y": 0.1},
    ]
    assert with_several_points(records) == records[:2]


def run(*arguments):
    """The command in this process."""
    return CliRunner().invoke(make_app(), arguments)


@pytest.fixture
def no_fits(monkeypatch):
    """The command finds all rows in the store."""
    monkeypatch.setattr("research.__main__.run_questions", lambda *_: None)


@pytest.mark.usefixtures("no_fits")
def test_the_command_draws_stored_rows(finished):
    out, summary, *_ = finished
    done = run("--out", str(out), "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["answers"] == summary["answers"]
    done = run("--out", str(out))
    assert done.exit_code == 0
    assert "Is the optimum unique?\nNo.\n" in done.stdout
    assert done.stdout.endswith(f"Report: {out / 'report.html'}\n")


def test_another_seed_is_refused(finished):
    with pytest.raises(StoreError, match="made with seed 0"):
        run_questions(StudySettings(finished[0], seed=1, is_quick=True))


@pytest.mark.usefixtures("no_fits")
def test_a_folder_that_is_not_complete_says_what_is_missing(tmp_path):
    with closing(Store(tmp_path / STORE, kind=KIND)) as store:
        store.note(kind=KIND)
        store.add(
            [FitResult("example", "deep", 0, 0, "objective", values={"grid": "[]"})]
        )
    done = run("--out", str(tmp_path), "--quiet")
    assert done.exit_code == 2
    assert "has no rows of maxima, constraints, safety" in done.stderr
    assert f"--out {tmp_path}" in done.stderr


def test_a_table_of_three_columns_is_spread():
    records = [
        {"set": "a", "method": "one", "error": 1.0},
        {"set": "a", "method": "two", "error": 2.0},
        {"set": "b", "method": "two", "error": 3.0},
    ]
    assert spread_table(records) == [
        ["set", "one", "two"],
        ["a", 1.0, 2.0],
        ["b", None, 3.0],
    ]
    assert spread_table([{"n": 1, "m": 2}]) == [["n", "m"], [1, 2]]
