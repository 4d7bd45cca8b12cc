"""A comparison from table to files, in one process."""

import re
from contextlib import suppress
from dataclasses import replace
from itertools import count

import numpy as np
import pandas as pd
import pytest

from tests.helpers.comparisons import make_table, table_of

pytest.importorskip("jinja2", reason="reports need iclda[experiments]")

from iclda._messages import say
from iclda._progress import show_nothing
from iclda.cli.messages import in_options
from iclda.methods import COMPARED, find_method
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
    score_lines,
    short_score_lines,
)
from iclda.studies.page import records_csv
from iclda.studies.store import Store, StoreError
from iclda.tabular import Source

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


OTHERS = {
    "seed": {"seed": 5},
    "folds": {"folds": 3},
    "labels kept": {"n_labeled": 8},
    "shrinkage": {"shrinkages": (0.5,)},
    "columns": {"drop": "x3"},
    "rows": {"sha256": "1" * 64},
    "column of ids": {"reading": {"id": "name"}},
}


@pytest.mark.parametrize("settings", OTHERS.values(), ids=OTHERS)
def test_other_data_and_settings_are_computed_and_those_before_are_kept(done, settings):
    findings, paths = done
    out = paths["report"].parent
    settings = dict(settings)
    table = make_table(n_features=3)
    if name := settings.pop("drop", None):
        features = table.features.drop(columns=name)
        table = replace(table, features=features, dropped=(name,))
    if digest := settings.pop("sha256", None):
        source = Source("data/table.csv", digest, len(table.labels))
        table = replace(table, sources=(source,))
    other = run(out, table, **settings)
    assert other.settings.key != findings.settings.key
    n_fits = 3 * other.settings.folds * len(other.settings.contestants)
    assert len(other.compared) == n_fits
    # The first comparison is found again, with the times of its fits.
    assert run(out).results == findings.results


def test_a_folder_without_a_comparison_says_what_to_run(tmp_path):
    Store(tmp_path / "rows.sqlite", kind="comparison").close()
    with pytest.raises(StoreError, match="run `iclda compare` first"):
        read_findings(tmp_path)


@pytest.mark.parametrize(("limit", "n_done"), [(1, 1), (25, 1), (45, 2), (1000, 3)])
def test_a_time_limit_ends_the_repeats_and_a_later_run_goes_on(
    done, tmp_path, monkeypatch, limit, n_done
):
    findings, _ = done
    # Every look at the clock finds it ten seconds later: a repeat takes ten.
    ticks = count(0, 10)
    with monkeypatch.context() as patch:
        patch.setattr("iclda.studies.compare.run.monotonic", lambda: next(ticks))
        with open_run(comparison(tmp_path, time=limit)) as opened:
            opened.compare(show_nothing)
    limited = read_findings(tmp_path)
    assert limited.settings.repeats == n_done
    assert limited.summary.score("em", "error").repeats == n_done
    said = f"{n_done} of 3 repeats fitted into the time given" if n_done < 3 else ""
    assert limited.pace.startswith(said)
    assert bool(limited.pace) == bool(said)
    assert values_of(run(tmp_path)) == values_of(findings)


@pytest.mark.parametrize(("repeats", "n_done"), [(None, 3), (4, 4)])
def test_repeats_end_when_the_choice_is_settled_unless_a_number_is_given(
    tmp_path, repeats, n_done
):
    # One method is certain to be the choice, so any three repeats agree.
    methods = (find_method("supervised"),)
    plan = comparison(tmp_path, methods=methods, repeats=repeats)
    with open_run(plan) as opened:
        assert opened.begin(show_nothing)
        assert not opened.begin(show_nothing)
        first = read_findings(tmp_path)
        opened.compare(show_nothing)
    assert {each.repeat for each in first.compared} == {0}
    settings = read_findings(tmp_path).settings
    assert (settings.repeats, settings.is_settled) == (n_done, repeats is None)
    assert read_findings(tmp_path).pace == ""
    is_told = any("the same without any one" in text for text in protocol(settings))
    assert is_told == settings.is_settled


def make_uneven_race(tmp_path, **settings):
    """A comparison in which one method is far behind from the first repeat on."""
    rng = np.random.default_rng(0)
    codes = np.arange(120) % 2
    ring = np.where(codes, 3.0, 0.5)[:, None] * rng.standard_normal((120, 2))
    labels = np.array(["in", "out"], dtype=object)[codes]
    labels[60:] = None
    table = table_of(pd.DataFrame(ring, columns=["x", "y"]), labels)
    methods = tuple(
        find_method(name, COMPARED)
        for name in ("moment", "supervised", "sklearn-forest")
    )
    # A forest finds the ring, and no linear method does.
    return comparison(
        tmp_path, table, methods=methods, repeats=None, shrinkages=("auto",), **settings
    )


def compare_all(plan):
    with open_run(plan) as opened:
        opened.compare(show_nothing)
    return read_findings(plan.out)


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    return compare_all(make_uneven_race(tmp_path_factory.mktemp("uneven")))


def test_a_method_that_cannot_win_any_more_is_stopped_and_the_answer_says_so(uneven):
    assert uneven.settings.stopped == {"moment": 1}
    assert uneven.verdict.method == "sklearn-forest"
    repeats = {
        name: {row.repeat for row in uneven.compared if row.method == name}
        for name in ("moment", "supervised", "sklearn-forest")
    }
    # The baseline goes on, since all others are compared with it.
    assert repeats["moment"] == {0}
    assert repeats["supervised"] == repeats["sklearn-forest"] == {0, 1, 2}
    said = "Stopped early, far behind in Brier score: moment."
    for lines in (score_lines, short_score_lines):
        assert said in " ".join(" ".join(lines(uneven, Terminal(80))).split())
    assert "moment" not in uneven.on_curves
    assert uneven.settings.n_compared == len(uneven.compared)


def test_with_a_number_of_repeats_no_method_is_stopped(tmp_path, uneven):
    plan = replace(make_uneven_race(tmp_path), repeats=3)
    asked = compare_all(plan)
    assert not asked.settings.stopped
    assert len(asked.compared) > len(uneven.compared)
    # Rows of this run that the other one would not have made are left out of it.
    again = compare_all(replace(plan, repeats=None))
    assert values_of(again) == values_of(uneven)


@pytest.mark.parametrize("n_cells", [1, 4, 7, 14, 19])
def test_a_comparison_that_is_interrupted_anywhere_goes_on_to_the_same_numbers(
    tmp_path, uneven, n_cells
):
    plan = make_uneven_race(tmp_path)
    n_advances = count()

    def interrupt(experiment, done, total, failed):
        if next(n_advances) == n_cells:
            raise KeyboardInterrupt

    with open_run(plan) as opened, suppress(KeyboardInterrupt):
        opened.compare(interrupt)
    found = compare_all(plan)
    assert values_of(found) == values_of(uneven)
    assert found.verdict == uneven.verdict
    assert found.settings.stopped == uneven.settings.stopped


def test_a_finished_comparison_that_is_run_again_and_interrupted_stays_finished(
    tmp_path, uneven
):
    compare_all(make_uneven_race(tmp_path))
    with open_run(make_uneven_race(tmp_path)):
        pass
    assert values_of(read_findings(tmp_path)) == values_of(uneven)


def values_of(findings):
    """What was measured, without the time that it took."""
    return [replace(result, seconds=0.0) for result in findings.results]


def test_the_measure_decides_and_is_no_reason_to_compute_anything_again(done):
    findings, paths = done
    with open_run(comparison(paths["report"].parent, measure="auc")) as opened:
        opened.compare(show_nothing)
    found = read_findings(paths["report"].parent)
    assert values_of(found) == values_of(findings)
    assert "area under the ROC curve" in found.verdict.sentence


def test_a_method_that_always_fails_is_told_and_the_others_are_compared(tmp_path):
    table = make_table(n_features=3, early=(np.arange(64) > 30) * 1.0)
    methods = (*METHODS, find_method("moment"))
    settings = {"methods": methods, "shrinkages": (None,), "repeats": 2}
    findings, paths = run_and_write(tmp_path, table, **settings)
    assert findings.failures["moment"][:2] == (4, 4)
    assert findings.summary.mean("em", "error") is not None
    assert "moment failed in 4 of 4 splits: The labeled rows" in "\n".join(
        answer_lines(findings, WIDE)
    )
    assert "4 fits failed" in paths["report"].read_text()
    assert ",moment" not in paths["curves"].read_text()


def test_a_baseline_that_cannot_be_fitted_to_so_few_labels_is_no_alarm(tmp_path):
    table = make_table(n_labeled=4)
    methods = (*METHODS, find_method("sklearn-lda", COMPARED))
    failed_fits = []

    def note(experiment, done, total, failed):
        failed_fits.append(failed)

    plan = comparison(tmp_path, table, methods=methods, repeats=2)
    with open_run(plan) as opened:
        opened.compare(note)
    findings = read_findings(tmp_path)
    assert findings.failures["sklearn-lda"][:2] == (4, 4)
    said = "\n".join(answer_lines(findings, WIDE))
    assert "sklearn-lda failed in 4 of 4 splits: sklearn-lda needs" in said
    # Neither the progress nor the page takes that for a mistake.
    assert set(failed_fits) == {0}
    report = write_files(tmp_path, findings)["report"].read_text()
    assert "4 of 12 fits failed. Repeats with" in report
    assert '<strong class="worse">' not in report
    assert ", <span>4 fits failed" in report

    # A mistake is one on both.
    mistaken = [
        result if result.failure is None else replace(result, failure="KeyError: 'a'")
        for result in findings.results
    ]
    findings = replace(findings, results=mistaken)
    said = "\n".join(answer_lines(findings, WIDE))
    assert "sklearn-lda failed in 4 of 4 splits: KeyError: 'a'" in said
    report = write_files(tmp_path, findings)["report"].read_text()
    assert '<strong class="worse">4 of 12 fits failed' in report
    assert ', <span class="worse">4 fits failed' in report


def test_where_labels_are_hidden_the_answer_is_for_as_many_as_are_kept(tmp_path):
    table = make_table(n_labeled=60, n_unlabeled=0)
    findings = run(tmp_path, table, n_labeled=10, repeats=2)
    assert findings.verdict.sentence.startswith("With 10 labels, ")
    assert fit_command(findings) == ""
    words = " ".join(protocol(findings.settings))
    assert "10 training rows, drawn at random, keep their labels" in words


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
    assert "Leave it out by <code>--drop</code> age." in paths["report"].read_text()
