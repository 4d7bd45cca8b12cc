"""A comparison from table to files, in one process."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables_of_results import make_table, table_of

pytest.importorskip("jinja2", reason="reports need iclda[experiments]")

from iclda._messages import say
from iclda._progress import show_nothing
from iclda.cli.messages import in_options
from iclda.methods import find_method
from iclda.studies.compare.api import read_findings
from iclda.studies.compare.plan import ComparisonPlan, choose_n_folds
from iclda.studies.compare.report import write_files
from iclda.studies.compare.run import open_run
from iclda.studies.compare.settings import choose_settings
from iclda.studies.compare.summary import Score, SplitCurvePoint
from iclda.studies.compare.terminal import (
    Terminal,
    answer_lines,
    fit_command,
    protocol,
    score_lines,
)
from iclda.studies.page import records_csv
from iclda.studies.store import Store, StoreError, stored_kind
from iclda.tabular import Source, Table
from iclda.tabular.table import ReadOptions

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


def test_the_words_name_every_contestant_and_the_next_step(done):
    findings, _ = done
    table = score_lines(findings.summary, Terminal())
    for contestant in findings.settings.contestants:
        assert any(line.startswith(f"  {contestant.name}  ") for line in table)
    assert table[1].split()[0] == "supervised"
    answer = "\n".join(answer_lines(findings, Terminal(80, in_options)))
    assert "Next: iclda fit data/table.csv --target class --method" in answer
    assert max(len(line) for line in answer.splitlines() if "Next: " not in line) <= 80


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
    assert "moment failed in 4 of 4 splits: ValueError" in "\n".join(
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


def test_the_folds_are_as_many_as_the_rarest_class_allows(tmp_path):
    labels = ["a"] * 9 + ["b"] * 3 + [None] * 12
    table = table_of(pd.DataFrame({"x": np.arange(24.0) ** 2}), labels)
    assert comparison(tmp_path, table, folds=None).splits.n_folds == 3
    assert comparison(tmp_path, folds=None).splits.n_folds == 10


@pytest.mark.parametrize(
    ("labels", "settings", "message"),
    [
        (["a"] * 5 + ["b"] + [None] * 4, {}, "Class 'b' has 1 labeled row"),
        (["a", "b"] * 5, {}, "All 10 rows are labeled.*n_labeled=30"),
        (["a", "b"] * 3 + [None] * 4, {"folds": 4}, "folds=4 must lie between 2 and 3"),
        (
            ["a", "b"] * 5,
            {"n_labeled": 1},
            "n_labeled=1 must lie between 2, one label a class",
        ),
        (["a", "b"] * 5, {"n_labeled": 9}, "n_labeled=9 must lie between 2.* and 4"),
    ],
)
def test_labels_that_allow_no_comparison_are_explained(
    labels, settings, message, tmp_path
):
    table = table_of(pd.DataFrame({"x": np.arange(10.0)}), labels)
    with pytest.raises(ValueError, match=message):
        choose_n_folds(comparison(tmp_path, table, **settings))


def test_the_command_to_fit_repeats_how_the_table_was_read(done):
    findings, _ = done
    sources = [
        Source(path, "0" * 64, 9) for path in ("my data.csv", "l.csv", "more.csv")
    ]
    options = ReadOptions(
        "class", "?", Path("more.csv"), ["a b"], labels="l.csv", id="name"
    )
    given = {"reading": options.to_json(), "sources": sources}
    settings = replace(findings.settings, **given)
    command = in_options(fit_command(replace(findings, settings=settings)))
    assert command.startswith(
        "iclda fit 'my data.csv' --target class --unlabeled '?' --unlabeled-file "
        "more.csv --drop 'a b' --labels l.csv --id name --method "
    )


def test_where_fits_take_longer_there_are_fewer_by_default(tmp_path):
    labels = [f"class {k % 9}" for k in range(90)] + [None] * 200
    wide = pd.DataFrame(np.random.default_rng(0).standard_normal((290, 30)))
    table = table_of(wide.rename(columns=str), labels)
    slow = comparison(
        tmp_path, table, methods=(find_method("iclda"), *METHODS), repeats=None
    )
    known = choose_settings(slow)
    assert (known.repeats, known.is_slow, known.curve_splits) == (2, True, 4)
    assert "it starts once" in " ".join(protocol(known))
    assert choose_settings(replace(slow, methods=METHODS)).repeats == 10
    large = comparison(
        tmp_path, make_table(n_unlabeled=110_000), repeats=None, folds=None
    )
    assert (choose_settings(large).repeats, choose_settings(large).curve_splits) == (
        5,
        10,
    )
    assert choose_settings(replace(large, repeats=7)).repeats == 7


def test_a_fast_comparison_leaves_out_the_slowest_method_unless_it_is_named(tmp_path):
    named = (*METHODS, find_method("iclda-proportions"))
    fast, asked, full = (
        choose_settings(comparison(tmp_path, methods=methods, is_fast=is_fast))
        for methods, is_fast in ((None, True), (named, True), (None, False))
    )
    names = [
        {each.method.name for each in settings.contestants}
        for settings in (fast, asked, full)
    ]
    assert ["iclda-proportions" in each for each in names] == [False, True, True]
    said = " ".join(map(in_options, protocol(fast)))
    assert (
        "Left out, because slow here: iclda-proportions (--methods includes them)."
        in said
    )
    assert "Left out" not in " ".join(protocol(asked))


def test_searches_over_very_many_unknowns_are_left_out_and_named(tmp_path):
    labels = [f"class {k % 80}" for k in range(160)] + [None] * 40
    wide = pd.DataFrame(np.random.default_rng(0).standard_normal((200, 70)))
    plan = comparison(
        tmp_path, table_of(wide.rename(columns=str), labels), methods=None
    )
    settings = choose_settings(replace(plan, folds=2))
    assert settings.left_out == ["iclda", "pessimistic", "iclda-proportions"]
    assert "80 in 'class': 2 labels each" in settings.remarks[1].text
    named = replace(plan, folds=2, methods=(find_method("iclda"), *METHODS))
    assert choose_settings(named).left_out == []


def test_class_sizes_are_not_free_with_fewer_labels_than_features(tmp_path):
    wide = pd.DataFrame(np.random.default_rng(0).standard_normal((60, 20))).rename(
        columns=str
    )
    plan = comparison(
        tmp_path, table_of(wide, ["a", "b"] * 8 + [None] * 44), methods=None
    )
    settings = choose_settings(plan)
    names = {each.method.name for each in settings.contestants}
    assert ("iclda" in names, "iclda-proportions" in names) == (False, True)
    assert any(
        "or for ICLDA of free class sizes" in each.text for each in settings.remarks
    )


def test_labels_are_not_spread_to_many_rows(tmp_path, monkeypatch):
    plan = comparison(tmp_path, methods=None)
    assert choose_settings(plan).left_out == []
    monkeypatch.setattr("iclda._cost._MAX_SPREAD_ROWS", 60)
    assert choose_settings(plan).left_out == ["sklearn-label-spreading"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": 0, "kind": "paper"}, r"rows\.sqlite is a store of another study"),
        ({"kind": "comparison", "iclda": "0.1"}, r"another version of iclda \(0\.1\)"),
    ],
)
def test_folders_of_other_studies_and_versions_are_refused_with_the_way_out(
    tmp_path, settings, message
):
    store = Store(tmp_path / "rows.sqlite")
    store.note(**settings, remarks=[{"level": "fine"}])
    store.close()
    assert stored_kind(tmp_path) == settings["kind"]
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
