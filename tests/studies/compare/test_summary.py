from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclda._statistics import corrected_t_test
from iclda.studies.compare.contestants import UNSHRUNK
from iclda.studies.compare.splits import LABELED_CURVE as LABELED
from iclda.studies.compare.splits import UNLABELED_CURVE as UNLABELED
from iclda.studies.compare.summary import (
    overlap,
    split_curve_points,
    summarize_comparison,
)
from iclda.studies.measures import BRIER, ERROR
from tests.helpers.comparisons import changed, contestants, result, results

SUPERVISED = [[0.2, 0.4], [0.4, 0.4], [0.2, 0.2]]
EM = [[0.2, 0.2], [0.8, 0.6], [0.2, 0.2]]
BOTH = results(supervised=SUPERVISED, em=EM)
TWO = contestants("supervised", "em")


def test_means_and_shares_are_over_repeats():
    summary = summarize_comparison(BOTH, TWO, 2)
    assert_allclose(summary.mean("supervised", ERROR), np.mean(SUPERVISED))
    assert_allclose(summary.mean("em", ERROR), np.mean(EM))
    assert summary.score("em", ERROR).share_worse_than_supervised == 1 / 3
    assert summary.score("supervised", ERROR).share_worse_than_supervised == 0
    assert summary.score("em", ERROR).repeats == 3


def test_folds_count_by_their_test_rows():
    some = [
        result("supervised", 0, 0, 0.5, n_test=2),
        result("supervised", 0, 1, 0.0, n_test=6),
    ]
    assert_allclose(summarize_comparison(some, TWO, 2).mean("supervised", ERROR), 1 / 8)


def test_a_difference_is_that_of_the_means_even_if_folds_differ_in_size():
    sizes = {0: 4, 1: 8}
    uneven = [replace(each, n_test=sizes[each.part]) for each in BOTH]
    summary = summarize_comparison(uneven, TWO, 2)
    expected = summary.mean("em", ERROR) - summary.mean("supervised", ERROR)
    assert_allclose(summary.difference("em", ERROR).difference, expected, atol=1e-12)


@pytest.mark.parametrize("measure", [ERROR, BRIER])
def test_differences_are_tested_as_the_paper_s_tables_are(measure):
    differences = np.ravel(EM) - np.ravel(SUPERVISED)
    found = summarize_comparison(BOTH, TWO, 2).difference("em", measure)
    assert_allclose(found.p, corrected_t_test(differences, overlap(2))[1])
    assert_allclose(found.p_holm, found.p)
    assert_allclose((found.low + found.high) / 2, found.difference)


@pytest.mark.parametrize("shift", np.linspace(0, 0.3, 13))
def test_intervals_exclude_zero_exactly_where_the_difference_is_marked(shift):
    rng = np.random.default_rng(0)
    tables = {
        name: rng.random((5, 4)) / 5 for name in ("supervised", "em", "iclda", "moment")
    }
    tables["em"] += shift
    tables["iclda"] += shift / 2
    summary = summarize_comparison(
        results(**{name: each.tolist() for name, each in tables.items()}),
        contestants(*tables),
        4,
    )
    for each in summary.differences:
        assert (not each.low <= 0 <= each.high) == bool(each.verdict)


def test_the_better_supervised_contestant_is_what_others_are_measured_by():
    three = contestants("supervised", f"supervised{UNSHRUNK}", "em")
    some = results(supervised=EM, supervised_unshrunk=SUPERVISED, em=EM)
    summary = summarize_comparison(some, three, 2)
    assert summary.baseline == f"supervised{UNSHRUNK}"
    assert summary.best["supervised"] == f"supervised{UNSHRUNK}"
    assert summary.score("supervised", ERROR).share_worse_than_supervised == 1 / 3
    assert {each.method for each in summary.differences} == {"em"}


def test_a_repeat_that_lacks_a_fold_does_not_count():
    lacking = [
        each for each in BOTH if (each.method, each.repeat, each.part) != ("em", 1, 0)
    ]
    assert summarize_comparison(lacking, TWO, 2).score("em", ERROR).repeats == 2
    failed = [
        replace(each, failure="x", values={}) if each.repeat == 1 else each
        for each in BOTH
    ]
    assert summarize_comparison(failed, TWO, 2).score("em", ERROR).repeats == 2


def test_a_contestant_whose_fits_all_failed_has_a_score_without_numbers():
    failed = [
        replace(e, failure="x", values={}) if e.method == "em" else e for e in BOTH
    ]
    summary = summarize_comparison(failed, TWO, 2)
    assert summary.score("em", ERROR).mean is None
    assert summary.differences == ()
    assert summary.baseline == "supervised"


def test_the_measure_that_decides_ranks_and_finds_the_baseline():
    unshrunk = f"supervised{UNSHRUNK}"
    three = contestants("supervised", unshrunk, "em")
    rows = results(supervised=EM, supervised_unshrunk=SUPERVISED, em=EM)
    auc = {"supervised": 0.9, unshrunk: 0.6, "em": 0.8}
    rows = [changed(each, auc=auc[each.method]) for each in rows]
    summary = summarize_comparison(rows, three, 2, "auc")
    assert summary.baseline == "supervised"
    assert sorted(auc, key=summary.rank) == ["supervised", "em", unshrunk]
    assert summary.score("em", "auc").share_worse_than_supervised == 1
    assert summary.main == "auc"
    assert summarize_comparison(rows, three, 2).main == ERROR
    assert summarize_comparison(rows, three, 2).baseline == unshrunk


def test_ties_are_not_worse():
    same = summarize_comparison(results(supervised=SUPERVISED, em=SUPERVISED), TWO, 2)
    assert same.score("em", ERROR).share_worse_than_supervised == 0
    assert same.difference("em", ERROR).p == 1


# The comparison has 100 unlabeled and 16 labeled rows, in two folds.
SETTINGS = SimpleNamespace(
    n_unlabeled=100, size=SimpleNamespace(n_labeled=16), folds=2, is_capped=False
)
ERRORS = {"supervised": [[0.4, 0.2]] * 3, "em": [[0.2, 0.2]] * 3}
COMPARED = [replace(each, n_unlabeled=100) for each in results(**ERRORS)]


def curve(experiment, sizes, n_splits=4, **errors):
    return [
        result(
            name,
            split,
            size,
            error,
            experiment=experiment,
            n_unlabeled=size,
            n_labeled=size,
        )
        for name, error in errors.items()
        for size in sizes
        for split in range(n_splits)
    ]


def line(points, method, measure):
    return [
        (p.size, p.mean) for p in points if (p.method, p.measure) == (method, measure)
    ]


def test_a_curve_ends_with_the_same_splits_of_the_comparison():
    rows = [*COMPARED, *curve(UNLABELED, [10, 30], supervised=0.4, em=0.6)]
    points = split_curve_points(rows, ["supervised", "em"], SETTINGS)
    found = [p for p in points if p.curve == UNLABELED]
    assert_allclose(line(found, "em", "error"), [(10, 0.6), (30, 0.6), (100, 0.2)])
    assert_allclose(
        line(found, "supervised", "error"), [(10, 0.4), (30, 0.4), (100, 0.3)]
    )
    assert {p.splits for p in found} == {4}


def test_labels_vary_with_fewer_unlabeled_rows_where_there_are_too_many():
    rows = [*COMPARED, *curve(LABELED, [6, 12], supervised=0.4, em=0.6)]
    both = [
        split_curve_points(rows, ["em"], settings)
        for settings in (
            SimpleNamespace(**{**vars(SETTINGS), "is_capped": True}),
            SETTINGS,
        )
    ]
    capped, whole = (
        line([p for p in points if p.curve == LABELED], "em", "error")
        for points in both
    )
    assert_allclose(capped, [(6, 0.6), (12, 0.6)])
    assert_allclose(whole, [(6, 0.6), (12, 0.6), (16, 0.2)])


def test_failed_fits_are_left_out():
    rows = curve(UNLABELED, [10], supervised=0.4, em=0.6)
    rows[0] = replace(rows[0], failure="x", values={})
    points = split_curve_points(rows, ["supervised", "em"], SETTINGS)
    counts = {(p.method, p.measure): p.splits for p in points}
    assert counts["supervised", "error"] == 3
    assert counts["em", "error"] == 4
