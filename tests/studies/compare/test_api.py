"""`iclda.compare`: the comparison of the command, from Python."""

import html
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import iclda
from iclda.studies.compare.report import json_summary
from tests.helpers.comparisons import make_table

OPTIONS = {
    "target": "class",
    "methods": ["em", "sklearn-logistic"],
    "repeats": 2,
    "folds": 3,
}


def frame():
    table = make_table(n_labeled=30, n_unlabeled=40)
    return table.features.assign(**{"class": table.labels})


@pytest.fixture(scope="module")
def findings():
    return iclda.compare(frame(), **OPTIONS)


def test_it_recommends_with_an_error_an_interval_and_the_rows_behind_it(findings):
    verdict = findings.verdict
    assert verdict.method in {"em", "supervised", "sklearn-logistic"}
    assert verdict.estimate.low <= verdict.estimate.error <= verdict.estimate.high
    assert verdict.estimate.n_rows == 30
    assert "90 % interval from 30 labeled rows" in str(findings)
    assert verdict.headline in repr(findings)


def test_scores_differences_and_curves_are_frames(findings):
    errors = findings.scores.query("measure == 'error'")
    assert (errors["low"] <= errors["mean"]).all()
    assert (errors["mean"] <= errors["high"]).all()
    assert (errors["n_rows"] == 30).all()
    assert {"difference", "p_holm", "verdict"} <= set(findings.differences.columns)
    assert set(findings.curves["curve"]) == {"unlabeled", "labeled"}


def test_the_report_and_numbers_can_be_saved(findings, tmp_path):
    paths = findings.save(tmp_path / "report")
    page = html.unescape(paths["report"].read_text())
    assert findings.verdict.headline in page
    found = json.loads(json.dumps(json_summary(findings, paths)))
    assert found["recommendation"]["error"]["text"] in page
    assert found["recommendation"]["headline"] in page


def test_a_file_and_a_polars_frame_give_what_a_pandas_frame_gives(findings, tmp_path):
    frame().to_parquet(tmp_path / "rows.parquet")
    for table in (tmp_path / "rows.parquet", pl.from_pandas(frame())):
        same = iclda.compare(table, **OPTIONS, curves=False)
        assert same.summary.scores == findings.summary.scores
        assert same.verdict.sentence == findings.verdict.sentence
        assert same.curves.empty


def test_a_folder_keeps_the_fits(tmp_path):
    first = iclda.compare(frame(), **OPTIONS, curves=False, out=tmp_path / "kept")
    again = iclda.compare(frame(), **OPTIONS, curves=False, out=tmp_path / "kept")
    assert (tmp_path / "kept" / "rows.sqlite").exists()
    assert again.results == first.results


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"methods": ["icld"]},
            "^Unknown method 'icld'. Did you mean 'iclda'. There are: iclda ",
        ),
        ({"n_labeled": 3.5}, "n_labeled must be a whole number of at least 1, got 3.5"),
        ({"folds": "a"}, "folds must be a whole number of at least 2, got 'a'"),
        ({"repeats": 1}, "repeats must be a whole number of at least 2, got 1"),
        ({"n_jobs": 0}, "n_jobs must be a whole number of at least 1, got 0"),
        ({"shrinkage": 2}, "shrinkage must be a number from 0 .* got '2'"),
        (
            {"target": "klass"},
            "^The table has no column 'klass', .*: set target to the column that does. "
            "Did you mean 'class'",
        ),
    ],
)
def test_wrong_parameters_are_named_before_anything_is_fitted(change, message):
    with pytest.raises(ValueError, match=message):
        iclda.compare(frame(), **{**OPTIONS, **change})


def test_a_name_is_one_column_and_a_fast_comparison_has_few_repeats_and_no_curves():
    table = frame()
    first = table.columns[0]
    options = {"target": "class", "methods": ["em"], "folds": np.int64(3)}
    found = iclda.compare(table, **options, drop=first, fast=True)
    assert list(found.settings.reading["drop"]) == [first]
    assert (found.settings.repeats, found.settings.folds) == (3, 3)
    assert found.curves.empty


def test_columns_are_kept_and_left_out_and_methods_shrunk_as_by_the_command():
    table = frame().assign(name=[f"row {number}" for number in range(70)])
    kept = list(table.columns[:2])
    options = {**OPTIONS, "methods": ["em"], "curves": False}
    found = iclda.compare(table, keep=[*kept, "name"], **options)
    assert list(found.settings.reading["keep"]) == [*kept, "name"]
    assert ": it was left out." in " ".join(
        each.text for each in found.settings.remarks
    )
    few = iclda.compare(table, keep=kept, n_labeled=4, **options)
    assert {each.name for each in few.settings.contestants} == {"supervised", "em"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": np.inf}, "^Column 'x' holds numbers up to inf in size"),
        (
            {"class": None},
            "^The table: column 'class' must label rows of at least 2 cl",
        ),
        ({"x": [1, "a"] * 35}, "^A column of the table cannot be read: .* column x "),
    ],
)
def test_what_is_wrong_with_a_frame_is_said_without_a_temporary_file(columns, message):
    with pytest.raises(ValueError, match=message):
        iclda.compare(frame().assign(**columns), target="class")


def test_what_is_no_table_and_names_of_columns_that_occur_twice_are_refused():
    with pytest.raises(TypeError, match="DataFrame or the path of a file, got ndarray"):
        iclda.compare(np.zeros((3, 2)), target="class")
    with pytest.raises(
        ValueError, match=r"Duplicate column names found.* the same name"
    ):
        iclda.compare(pd.concat([frame(), frame()[["class"]]], axis=1), target="class")


def test_notebooks_show_the_answer_and_the_table(findings):
    shown = findings._repr_html_()
    assert html.escape(findings.verdict.headline) in shown
    assert html.escape(str(findings)) in shown
    table = findings.table
    assert {"supervised", "em", "sklearn-logistic"} <= set(table.index)
    assert (table["error_low"] <= table["error"]).all()
    assert f"{table.loc['em', 'brier']:.3f}" in shown
