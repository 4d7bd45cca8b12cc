"""A fit takes what a comparison of the same rows recommends, and nothing else."""

from pathlib import Path

import pytest

from iclda import compare
from iclda.studies.compare.plan import ComparisonPlan
from iclda.studies.compare.run import open_run
from iclda.studies.compare.stored import advice_of, default_folder
from iclda.studies.store import STORE
from iclda.tabular.fit import fit_table
from iclda.tabular.read_options import ReadOptions
from iclda.tabular.table import read_file
from tests.helpers.table_files import flowers, write

READING = ReadOptions("species")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """The path of a table, and the folder and the findings of its comparison."""
    folder = tmp_path_factory.mktemp("compared")
    data = write(folder)
    out = folder / default_folder(data)
    names = ["em", "sklearn-logistic"]
    options = {"methods": names, "repeats": 2, "folds": 3, "curves": False}
    return data, out, compare(data, target="species", out=out, **options)


def test_the_recommended_method_is_fitted_with_the_error_of_the_comparison(compared):
    data, out, findings = compared
    table = read_file(data, READING)
    advice = advice_of(out, table, READING)
    assert advice.method == findings.chosen.method
    assert advice.shrinkage == findings.chosen.shrinkage
    _, report = fit_table(table, advice=advice)
    assert report.method == findings.chosen.method.name
    assert "`iclda compare` found " in report.choice
    assert str(out) in report.choice
    assert report.error["error"] == findings.advice.estimate.error
    assert report.how_measured.startswith("`iclda compare` measured the error.")


@pytest.mark.parametrize(
    ("change", "why"),
    [("label", "is of other rows or labels"), ("drop", "was made with other options")],
)
def test_a_comparison_of_anything_else_is_not_used(compared, tmp_path, change, why):
    data, out, _ = compared
    reading = READING
    if change == "drop":
        reading = ReadOptions("species", drop=["q"])
    else:
        frame = flowers()
        frame.loc[80, "species"] = "rose"
        data = write(tmp_path, frame)
    advice = advice_of(out, read_file(data, reading), reading)
    assert advice.method is None
    assert why in advice.note
    assert str(out) in advice.note
    _, report = fit_table(read_file(data, reading), advice=advice)
    assert advice.note in report.notes


def test_a_later_comparison_of_other_columns_does_not_hide_that_of_the_same(tmp_path):
    data = write(tmp_path)
    options = {"methods": ["em"], "repeats": 2, "folds": 2, "curves": False}
    options |= {"target": "species", "out": tmp_path / "out"}
    findings = compare(data, **options)
    compare(data, drop="q", **options)
    reading = ReadOptions("species", drop=["q"])
    for chosen in (READING, reading):
        advice = advice_of(tmp_path / "out", read_file(data, chosen), chosen)
        assert "`iclda compare` found " in advice.sentence
    same = advice_of(tmp_path / "out", read_file(data, READING), READING)
    assert same.error == findings.advice.estimate


def test_the_answer_of_a_comparison_with_a_time_limit_is_used(tmp_path):
    data = write(tmp_path)
    options = {"methods": ["em"], "folds": 2, "target": "species", "time": 1e-9}
    found = compare(data, out=tmp_path / "out", **options)
    assert found.settings.repeats == 1
    assert found.curves.empty
    advice = advice_of(tmp_path / "out", read_file(data, READING), READING)
    assert advice.method == found.chosen.method


def test_an_unfinished_comparison_is_not_used(compared, tmp_path):
    data, _, _ = compared
    table = read_file(data, READING)
    plan = ComparisonPlan(table, tmp_path / "out", reading=READING.to_json())
    with open_run(plan):
        pass
    advice = advice_of(plan.out, table, READING)
    assert (advice.method, "is not finished" in advice.note) == (None, True)


def test_a_damaged_comparison_does_not_stop_the_fit(compared, tmp_path):
    data, _, _ = compared
    (tmp_path / STORE).write_bytes(b"no database")
    advice = advice_of(tmp_path, read_file(data, READING), READING)
    assert (advice.method, "cannot be read" in advice.note) == (None, True)


@pytest.mark.parametrize("n_labeled", [30, 4, 90], ids=["some", "few", "all"])
def test_without_a_comparison_it_is_named_if_it_is_possible(tmp_path, n_labeled):
    table = read_file(write(tmp_path, flowers(n_labeled=n_labeled)), READING)
    advice = advice_of(Path("nowhere"), table, READING)
    assert advice.method is None
    assert bool(advice.sentence) == (n_labeled == 30)
