"""The numbers of the paper, and the difference from them in standard errors."""

import csv
import os
import statistics
from collections import defaultdict
from math import sqrt
from pathlib import Path

import pytest

from iclda.studies.paper.design import (
    METHOD_NAMES,
    PUBLISHED_METHODS,
    TABLE_MEASURES,
    TABLE_REPEATS,
)
from iclda.studies.paper.published import (
    PRINTED_FEATURES,
    PublishedMean,
    counterpart_of,
    read_cells,
    read_points,
    z_score,
)


@pytest.fixture(scope="module")
def paper():
    folder = os.environ.get("ICLDA_REFERENCE")
    if not folder:
        pytest.skip("ICLDA_REFERENCE does not name a directory that holds paper/")
    return Path(folder) / "paper"


def test_every_set_has_a_cell_for_every_method_and_measure():
    measures = TABLE_MEASURES
    expected = {
        (d, m, s) for d in PRINTED_FEATURES for m in PUBLISHED_METHODS for s in measures
    }
    assert set(read_cells()) == expected


def test_cells_are_the_means_and_deviations_of_the_raw_repeats(paper):
    values = defaultdict(list)
    with open(paper / "cv-repeats.csv", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            values[line["dataset"], line["method"], line["measure"]].append(
                float(line["value"])
            )
    assert set(values) == set(read_cells())
    for key, cell in read_cells().items():
        assert len(values[key]) == TABLE_REPEATS
        assert cell.mean == pytest.approx(statistics.fmean(values[key]), abs=0.51e-4)
        assert cell.sd == pytest.approx(statistics.stdev(values[key]), rel=0.51e-3)


def test_points_are_those_of_the_raw_curves(paper):
    with open(paper / "learning-curves.csv", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(read_points())
    for line in lines:
        measure = line["measure"].removesuffix("_test")
        key = line["dataset"], int(line["n_unlabeled"]), line["method"], measure
        point = read_points()[key]
        assert point.mean == pytest.approx(float(line["mean"]), rel=0.51e-4)
        assert point.se == pytest.approx(float(line["se"]), rel=0.51e-4)
        # Rounding must not matter where points are compared at 4 standard errors.
        assert abs(point.mean - float(line["mean"])) < 0.15 * point.se


def test_only_em_as_published_is_compared_with_the_published_em():
    columns = {m: counterpart_of(m) for m in METHOD_NAMES if counterpart_of(m)}
    same = ("LDA", "LDAoracle", "MCLDA", "SLLDA", "ICLDA")
    assert columns == {name: name for name in same} | {"EMLDA-as-published": "EMLDA"}


def test_z_is_the_difference_in_standard_errors_of_both_means():
    published = PublishedMean(0.2, 0.04 / sqrt(20))
    # 0.03 / sqrt(0.03^2 / 9 + 0.04^2 / 20) = 0.03 / sqrt(1e-4 + 0.8e-4)
    assert z_score(0.23, 0.03 / sqrt(9), published) == pytest.approx(2.2360679775)
    assert z_score(0.23, None, published) is None
    assert z_score(0.2, 0.0, PublishedMean(0.2, 0.0)) is None
