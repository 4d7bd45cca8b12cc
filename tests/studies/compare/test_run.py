"""A comparison from table to files, in one process."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.comparisons import make_table

pytest.importorskip("jinja2", reason="reports need iclda[experiments]")

from iclda._messages import say
from iclda._progress import show_nothing
from iclda.cli.messages import in_options
from iclda.methods import find_method
from iclda.studies.compare.api import read_findings
from iclda.studies.compare.plan import ComparisonPlan
from iclda.studies.compare.report import write_files
from iclda.studies.compare.run import open_run
from iclda.studies.compare.summary import Score, SplitCurvePoint
from iclda.studies.compare.terminal import (
    Terminal,
    answer_lines,
    fit_command,
    protocol,
)
from iclda.studies.page import records_csv
from iclda.studies.store import Store, StoreError
from iclda.tabular import Source, Table

WIDE = Terminal(300)


METHODS = (find_method("em"), find_method("supervised"))


def comparison(out, table=None, **settings):
    settings = {"methods": METHODS, "repeats": 3, "folds": 2, **settings}
    return ComparisonPlan(
        make_table(n_features=3) if table is None else table, out, **settings
    )


def run(out, table=None, **settings):
    plan = comparison(out, table, **settings)
    with open_run(plan) as opened:
        opened.compare(show_nothing)
        opened.add_curves(show_nothing)
    return read_findings(out)


def run_and_write(out, table=None, **settings):
    findings = run(out, table, **settings)
    return findings, write_files(out, findings)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return run_and_write(tmp_path_factory.mktemp("done") / "out")


def test_a_second_run_changes_nothing(done):
    findings, paths = done
    again = run(paths["report"].parent)
    scores = records_csv(Score, again.summary.scores, left_out=["repeats"])
    assert scores == paths["comparison"].read_text()
    assert records_csv(SplitCurvePoint, again.points) == paths["curves"].read_text()
    assert again.results == findings.results


def test_the_page_is_self_contained_and_says_the_recommendation(done):
    findings, paths = done
    page = paths["report"].read_text()
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert findings.verdict.headline in page
    assert findings.verdict.why in page
    assert page.count("<svg") >= 5
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_more_repeats_go_on_where_fewer_ended_and_fewer_use_those_only(done):
    findings, paths = done
    longer = run(paths["report"].parent, repeats=4)
    assert longer.summary.score("em", "error").repeats == 4
    assert len(longer.results) > len(findings.results)
    assert all(result in longer.results for result in findings.results)
    assert run(paths["report"].parent, repeats=3).results == findings.results


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": 5}, "made with seed 0, and this run asks for seed 5"),
        ({"folds": 3}, "made with folds 2, and this run asks for folds 3"),
        ({"n_labeled": 8}, "made with labeled all, and this run asks for labeled 8"),
        (
            {"shrinkages": (0.5,)},
            "made with shrinkage auto, and this run asks for shrinkage 0.5",
        ),
        (
            {"table": make_table(n_features=3, seed=1)},
            "rows of other data for table.csv",
        ),
    ],
)
def test_other_settings_on_the_same_folder_are_refused(done, settings, message):
    _, paths = done
    if table := settings.pop("table", None):
        source = Source("data/table.csv", "1" * 64, len(table.labels))
        settings["table"] = Table(table.features, table.labels, "class", (source,))
    with pytest.raises(StoreError, match=message):
        run(paths["report"].parent, **settings)


def test_a_method_that_always_fails_is_told_and_the_others_are_compared(tmp_path):
    table = make_table(n_features=3, early=(np.arange(64) > 30) * 1.0)
    methods = (*METHODS, find_method("moment"))
    settings = {"methods": methods, "shrinkages": (None,), "repeats": 2}
    findings, paths = run_and_write(tmp_path, table, **settings)
    assert findings.failures["moment"][:2] == (4, 4)
    assert findings.summary.mean("em", "error") is not None
    assert "moment failed in 4 of 4 splits: FitError" in "\n".join(
        answer_lines(findings, WIDE)
    )
    assert "4 fits failed" in paths["report"].read_text()
    assert ",moment" not in paths["curves"].read_text()


def test_where_labels_are_hidden_the_answer_is_for_as_many_as_are_kept(tmp_path):
    table = make_table(n_labeled=60, n_unlabeled=0)
    findings = run(tmp_path, table, n_labeled=10, repeats=2)
    assert findings.verdict.sentence.startswith("With 10 labels, ")
    assert fit_command(findings) == ""
    words = " ".join(protocol(findings.settings))
    assert "10 keep their labels" in words


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": 0, "kind": "paper"}, r"rows\.sqlite is a store of another study"),
        ({"kind": "comparison", "format": 2}, r"another version of iclda, in format 2"),
    ],
)
def test_folders_of_other_studies_and_versions_are_refused_with_the_way_out(
    tmp_path, settings, message
):
    store = Store(tmp_path / "rows.sqlite")
    store.note(**settings)
    store.close()
    with pytest.raises(StoreError, match=message):
        read_findings(tmp_path) if settings["kind"] == "comparison" else run(tmp_path)


def test_remarks_are_stored_with_the_parameters_to_be_worded(tmp_path):
    noted = (say("Leave it out by {@drop=age}."),)
    table = replace(make_table(n_features=3), warnings=("Plain text.",), notes=noted)
    findings, paths = run_and_write(tmp_path, table, repeats=2)
    assert "Leave it out by drop='age'." in paths["report"].read_text().replace(
        "&#39;", "'"
    )
    write_files(tmp_path, findings, in_options, "iclda fit")
    assert "Leave it out by --drop age." in paths["report"].read_text()
