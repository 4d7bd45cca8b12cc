"""From rows to cells, tests and the figure."""

import dataclasses
import itertools
import random
import statistics
from importlib.util import find_spec
from math import sqrt

import pytest
from result_rows import fail, replace_values, table_row, table_rows

from iclda._statistics import holm
from iclda.studies.paper.published import read_cells
from iclda.studies.paper.tables import (
    compare_with_baseline,
    count_worse_folds,
    draw_table_overview,
    find_gaps,
    repeat_values_by_method,
    summarize_tables,
)


def cell_of(cells, method, measure="error"):
    return next(c for c in cells if (c.method, c.measure) == (method, measure))


def test_a_repeat_weighs_its_folds_by_their_test_rows():
    rows = [table_row("A", 0, fold, "LDA", 0.1, 1.0, n_test=10) for fold in range(9)]
    rows.append(table_row("A", 0, 9, "LDA", 0.5, 3.0, n_test=30))
    assert repeat_values_by_method(rows, "error") == {("A", "LDA"): [pytest.approx(24 / 120)]}
    assert repeat_values_by_method(rows, "nll") == {("A", "LDA"): [pytest.approx(1.5)]}


def test_a_repeat_counts_only_if_every_fold_has_a_finite_value():
    rows = [table_row("A", k, fold, "LDA", 0.2, 1.0) for k in range(4) for fold in range(9)]
    rows.append(table_row("A", 0, 9, "LDA", 0.2, 1.0))
    rows.append(table_row("A", 1, 9, "LDA", float("nan"), 1.0))
    rows.append(table_row("A", 2, 9, "LDA", 0.2, 1.0, failure="x"))
    assert repeat_values_by_method(rows, "error") == {("A", "LDA"): [pytest.approx(0.2)]}


def test_a_cell_is_mean_and_deviation_over_repeats_beside_the_published_one():
    rows = table_rows(repeats=5)
    values = repeat_values_by_method(rows, "error")["WDBC", "ICLDA"]
    cell = cell_of(summarize_tables(rows), "ICLDA")
    published = read_cells()["WDBC", "ICLDA", "error"]
    assert (cell.mean, cell.sd) == pytest.approx(
        (statistics.fmean(values), statistics.stdev(values))
    )
    assert (cell.published_mean, cell.published_sd) == (published.mean, published.sd)
    standard_error = (cell.sd**2 / 5 + published.sd**2 / 20) ** 0.5
    assert cell.z == pytest.approx((cell.mean - published.mean) / standard_error)


def test_a_failed_fit_costs_its_repeat_and_is_said():
    rows = table_rows(methods=("LDA", "ICLDA"))
    rows[1] = fail(rows[1])
    cells = summarize_tables(rows)
    assert cell_of(cells, "ICLDA").repeats == 3
    assert cell_of(cells, "LDA").repeats == 4
    sentence = "WDBC, ICLDA: 3 of 4 repeats are complete, 1 failed fit"
    assert find_gaps(rows) == {("WDBC", "ICLDA"): sentence}


def test_a_method_that_always_fails_is_empty_and_never_zero():
    rows = [fail(row) for row in table_rows(methods=("ICLDA",))]
    cell = cell_of(summarize_tables(rows), "ICLDA")
    assert (cell.mean, cell.sd, cell.repeats, cell.z) == (None, None, 0, None)
    [gap] = find_gaps(rows).values()
    assert gap.endswith("0 of 4 repeats are complete, 40 failed fits")


def test_a_measure_that_a_method_does_not_have_is_left_out():
    rows = [
        replace_values(row, nll=None) for row in table_rows(methods=("sklearn-LabelSpreading",))
    ]
    assert {cell.measure for cell in summarize_tables(rows)} == {"error"}
    assert find_gaps(rows) == {}


def test_cells_do_not_depend_on_the_order_of_the_rows_nor_on_other_experiments():
    rows = table_rows(("WDBC", "Pima"))
    shuffled = random.Random(1).sample(rows, len(rows))
    others = [dataclasses.replace(row, experiment="curves") for row in rows]
    assert summarize_tables(shuffled + others) == summarize_tables(rows)


def test_methods_are_paired_with_lda_split_by_split():
    rows = []
    for repeat, fold in itertools.product(range(2), range(10)):
        hardness = 0.01 * (fold + 3 * repeat)
        rows.append(table_row("WDBC", repeat, fold, "LDA", 0.2 + hardness, 1.0))
        tiny = 1e-4 * (-1) ** fold
        rows.append(table_row("WDBC", repeat, fold, "ICLDA", 0.19 + hardness + tiny, 1.0))
        rows.append(table_row("WDBC", repeat, fold, "LDAoracle", 0.1, 1.0))
    (comparison,) = compare_with_baseline(rows, "error").values()
    assert (comparison.method, comparison.n_splits) == ("ICLDA", 20)
    assert comparison.difference == pytest.approx(-0.01)
    assert comparison.verdict == "better"
    # 50 test rows, 450 training rows
    assert comparison.t == pytest.approx(-0.01 / sqrt((1 / 20 + 1 / 9) * 20 / 19 * 1e-8))


def test_holm_spans_the_whole_table():
    rows = table_rows(("A", "B"), ("LDA", "MCLDA", "SLLDA"))
    comparisons = compare_with_baseline(rows, "error")
    assert list(comparisons) == list(itertools.product("AB", ("MCLDA", "SLLDA")))
    p_values = [(c.p, c.p_holm) for c in comparisons.values()]
    assert [adjusted for _, adjusted in p_values] == holm([p for p, _ in p_values])


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="figures need iclda[experiments]")
def test_the_overview_shows_differences_to_lda():
    cells = summarize_tables(table_rows(("Pima", "WDBC")))
    axes = draw_table_overview(cells).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Pima", "WDBC"]
    means = {(c.dataset, c.method): c.mean for c in cells if c.measure == "error"}
    (line,) = [line for line in axes.lines if line.get_label() == "ICLDA"]
    expected = [means[d, "ICLDA"] - means[d, "LDA"] for d in ("Pima", "WDBC")]
    assert line.get_xdata() == pytest.approx(expected)


def test_folds_on_which_a_method_is_worse_than_lda_are_counted_in_pairs():
    rows = [
        table_row("WDBC", 0, 0, "LDA", 0.2, 3.0),
        table_row("WDBC", 0, 0, "ICLDA", 0.3, 2.0),
        table_row("WDBC", 0, 1, "LDA", 0.2, 3.0),
        table_row("WDBC", 0, 1, "ICLDA", 0.2, 4.0),
        table_row("Pima", 0, 0, "LDA", 0.2, 3.0),
        table_row("Pima", 0, 0, "ICLDA", 0.1, 2.0),
        table_row("Pima", 0, 1, "ICLDA", 0.9, 9.0),  # LDA is missing
    ]
    counts = count_worse_folds(rows)
    assert list(counts) == ["ICLDA"]
    for found in counts["ICLDA"].values():
        assert (found.n_worse, found.n_folds) == (1, 3)
    assert count_worse_folds(rows[:1]) == {}
