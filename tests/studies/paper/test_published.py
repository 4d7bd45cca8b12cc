"""The paper's numbers as they stand in the project."""

import csv
import os
import statistics
from collections import defaultdict
from pathlib import Path

import pytest

from iclda.studies.cells import MEASURES, METHODS, PUBLISHED_CURVES
from iclda.studies.paper.published import (
    PRINTED_FEATURES,
    PUBLISHED_METHODS,
    PublishedCell,
    published_cells,
    published_name,
    published_points,
    z_score,
)


@pytest.fixture(scope="module")
def paper():
    folder = os.environ.get("ICLDA_REFERENCE")
    if not folder:
        pytest.skip("ICLDA_REFERENCE does not name a directory that holds paper/")
    return Path(folder) / "paper"


def test_every_set_has_a_cell_for_every_method_and_measure():
    expected = {(d, m, s) for d in PRINTED_FEATURES for m in PUBLISHED_METHODS for s in MEASURES}
    assert set(published_cells()) == expected


def test_cells_are_the_means_and_deviations_of_the_raw_repeats(paper):
    values = defaultdict(list)
    with open(paper / "cv-repeats.csv", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            values[line["dataset"], line["method"], line["measure"]].append(float(line["value"]))
    assert set(values) == set(published_cells())
    for key, cell in published_cells().items():
        assert len(values[key]) == cell.repeats
        assert cell.mean == pytest.approx(statistics.fmean(values[key]), abs=0.51e-4)
        assert cell.sd == pytest.approx(statistics.stdev(values[key]), rel=0.51e-3)


def test_points_are_those_of_the_raw_curves(paper):
    with open(paper / "learning-curves.csv", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(published_points())
    for line in lines:
        measure = line["measure"].removesuffix("_test")
        key = line["dataset"], int(line["n_unlabeled"]), line["method"], measure
        point = published_points()[key]
        assert (point.n_labeled, point.repeats) == (int(line["n_labeled"]), int(line["repeats"]))
        assert point.mean == pytest.approx(float(line["mean"]), rel=0.51e-4)
        assert point.se == pytest.approx(float(line["se"]), rel=0.51e-4)
        # Rounding must not matter where points are compared at 4 standard errors.
        assert abs(point.mean - float(line["mean"])) < 0.15 * point.se


def test_the_published_curves_are_those_that_are_run():
    assert {point.dataset for point in published_points().values()} == set(PUBLISHED_CURVES)


def test_only_em_as_published_is_compared_with_the_published_em():
    assert [published_name(m) for m in METHODS] == [
        "LDA",
        "LDAoracle",
        "MCLDA",
        None,
        "EMLDA",
        "SLLDA",
        "ICLDA",
    ]
    assert published_name("SelfTraining") is None


def test_z_is_the_difference_in_standard_errors_of_both_means():
    cell = PublishedCell("WDBC", "LDA", "error", 0.2, 0.04)
    # 0.03 / sqrt(0.03^2 / 9 + 0.04^2 / 20) = 0.03 / sqrt(1e-4 + 0.8e-4)
    assert z_score(0.23, 0.03, 9, cell) == pytest.approx(2.2360679775)
    assert z_score(0.23, None, 1, cell) is None
    assert z_score(0.2, 0.0, 5, PublishedCell("a", "b", "error", 0.2, 0.0)) is None
