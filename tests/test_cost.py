"""What is slow, and what callers can afford: decisions of compare and AutoLDA."""

import pytest

from iclda._cost import (
    AUTO_BUDGET,
    COMPARISON_BUDGET,
    DRAG_BUDGET,
    Cost,
    ProblemSize,
    affordable,
    cost_of,
    has_starts,
    is_search_slow,
    limit_starts,
    n_unknowns,
    table_cost,
    without_free_search,
)
from iclda.methods import BASELINES, COMPARED, FITTED, METHODS, find_method

DEFAULT = (*FITTED, *BASELINES)
SEARCHES = {"iclda", "iclda-proportions", "pessimistic"}
SPREADING = {"sklearn-label-spreading"}
SLOW_IF_WIDE = {"self-training", "pessimistic", "sklearn-self-training", "sklearn-lda"}


def left_out(size, budget, methods=DEFAULT):
    return {each.name for each in {*methods} - {*affordable(methods, size, budget)}}


@pytest.mark.parametrize(
    ("n_classes", "n_features", "for_auto", "for_compare"),
    [
        (2, 149, False, False),
        (2, 150, True, False),
        (2, 199, True, False),
        (2, 200, True, True),
        (10, 10, False, False),
        (11, 2, True, False),
    ],
)
def test_a_search_is_slow_by_its_unknowns_and_for_auto_by_its_classes(
    n_classes, n_features, for_auto, for_compare
):
    assert is_search_slow(n_classes, n_features, AUTO_BUDGET) == for_auto
    assert is_search_slow(n_classes, n_features, COMPARISON_BUDGET) == for_compare


@pytest.mark.parametrize(
    ("size", "for_compare", "for_auto"),
    [
        (ProblemSize(10_000, 400, 2), set(), set()),
        (ProblemSize(10_000, 401, 2), SLOW_IF_WIDE, SLOW_IF_WIDE),
        (ProblemSize(10_001, 2, 2), SPREADING, SPREADING),
        (ProblemSize(5_000, 70, 71), set(), set()),
        (ProblemSize(5_000, 70, 80), SEARCHES, set()),
        (ProblemSize(30, 5_000, 80), SLOW_IF_WIDE, SLOW_IF_WIDE),
        (ProblemSize(90, 5_000, 80), SLOW_IF_WIDE | SEARCHES, SLOW_IF_WIDE),
    ],
)
def test_methods_that_take_minutes_are_left_out(size, for_compare, for_auto):
    assert left_out(size, COMPARISON_BUDGET) == for_compare
    # AutoLDA compares on a sample of the rows, and has no limit on unknowns.
    assert left_out(size, AUTO_BUDGET) == for_auto


def test_what_is_slow_stays_if_nothing_else_is_left():
    wide = ProblemSize(100, 500, 2)
    slow = tuple(find_method(name, COMPARED) for name in sorted(SLOW_IF_WIDE))
    assert affordable(slow, wide, AUTO_BUDGET) == slow
    alone = (find_method("iclda"),)
    assert without_free_search(alone, 3, 10) == alone


def test_class_sizes_are_not_free_with_fewer_labels_than_features():
    assert without_free_search(METHODS, 10, 10) == METHODS
    fewer = without_free_search(METHODS, 9, 10)
    assert {each.name for each in {*METHODS} - {*fewer}} == {"iclda"}


@pytest.mark.parametrize(
    ("budget", "n_starts"),
    [(AUTO_BUDGET, 8), (COMPARISON_BUDGET, 32), (DRAG_BUDGET, 8)],
)
def test_a_slow_search_starts_once(budget, n_starts):
    classifier = find_method("iclda").classifier()
    limit_starts(classifier, 2, 3, budget)
    assert classifier.n_starts == n_starts
    limit_starts(classifier, 3, 100, budget)
    assert classifier.n_starts == 1


@pytest.mark.parametrize("method", COMPARED, ids=lambda method: method.name)
def test_only_searches_with_several_starts_are_limited(method):
    classifier = method.classifier()
    before = classifier.get_params()
    limit_starts(classifier, 30, 30, COMPARISON_BUDGET)
    assert (classifier.get_params() != before) == has_starts([method])
    cost = cost_of(method, ProblemSize(900, 30, 30), COMPARISON_BUDGET)
    assert cost == (Cost.SECONDS if has_starts([method]) else Cost.QUICK)


def test_large_tables_cost_more_whatever_the_method():
    assert table_cost(200_000, 50) == Cost.QUICK
    assert table_cost(200_001, 49) == Cost.SECOND
    assert table_cost(200_000, 51) == Cost.SECONDS


def test_unknowns_are_those_of_all_classes_but_one():
    assert n_unknowns(2, 10) == 11
    assert n_unknowns(4, 2) == 9
