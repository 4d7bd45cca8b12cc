from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from iclda.methods import find_method
from iclda.tabular import read_table
from iclda.tabular.fit import FitReport, fit_table


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rng = np.random.default_rng(0)
    kinds = np.where(np.arange(60) % 2, "a", "b")
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["p", "q"])
    frame["kind"] = np.where(np.arange(60) < 20, kinds, None)
    path = tmp_path_factory.mktemp("tables") / "data.csv"
    frame.to_csv(path, index=False)
    table = read_table(path, target="kind")
    return fit_table(table, find_method("supervised"), command="iclda fit")[1]


def test_a_report_comes_back_from_its_json(report):
    assert report.labeled == {"a": 10, "b": 10}
    assert report.n_unlabeled == 40
    assert FitReport.from_json(report.to_json()) == report


def test_a_report_of_an_earlier_version_lacks_what_was_not_stored_then(report):
    stored = report.to_json()
    del stored["safety"], stored["error"]
    assert FitReport.from_json(stored) == replace(report, safety="", error=None)


@pytest.mark.parametrize(
    "change", [{"sources": "here"}, {"sources": [{"path": 1}]}, {"target": 0}]
)
def test_anything_else_is_no_report(report, change):
    stored = {**report.to_json(), **change}
    if "target" in change:
        del stored["target"]
    assert FitReport.from_json(stored) is None
    assert FitReport.from_json({}) is None
