"""Bold, underline, and the rule of today."""

import itertools
from math import inf, sqrt

import numpy as np
import pytest
from result_rows import table_row, table_rows
from scipy import stats

from iclda.studies.paper.significance import (
    Contest,
    Summary,
    bold,
    check_published_underlines,
    compare_with_baseline,
    contest_of_the_paper,
    contest_with_runner_up,
    welch,
)
from iclda.studies.resampling import corrected_t_test, holm


def test_welch_agrees_with_scipy():
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 1, 20), rng.normal(0.5, 3, 12)
    summaries = [Summary(x.mean(), x.std(ddof=1), len(x)) for x in (a, b)]
    assert welch(*summaries) == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)


@pytest.mark.parametrize(
    ("a", "b", "p"),
    [
        (Summary(1, 0, 5), Summary(1, 0, 5), 1.0),
        (Summary(1, 0, 5), Summary(2, 0, 5), 0.0),
        (Summary(1, 0, 1), Summary(2, 1, 5), 1.0),
    ],
)
def test_welch_answers_where_there_is_no_spread(a, b, p):
    assert welch(a, b) == p


def test_bold_is_better_than_lda_and_never_the_oracle():
    summaries = {
        "LDA": Summary(0.3, 0.01, 20),
        "LDAoracle": Summary(0.1, 0.01, 20),
        "MCLDA": Summary(0.25, 0.01, 20),
        "EMLDA": Summary(0.4, 0.01, 20),
        "SLLDA": Summary(0.299, 0.01, 20),
    }
    assert bold(summaries) == {"MCLDA"}
    assert bold({"MCLDA": Summary(0.1, 0.01, 20)}) == frozenset()


def test_the_winner_meets_the_second_best_of_the_four():
    summaries = {
        "LDA": Summary(0.1, 0.01, 20),
        "MCLDA": Summary(0.21, 0.01, 20),
        "EMLDA": Summary(0.5, 0.01, 20),
        "EMLDA-as-published": Summary(0.2, 0.01, 20),
        "ICLDA": Summary(0.2, 0.01, 20),
    }
    contest = contest_with_runner_up(summaries)
    assert (contest.winner, contest.opponent) == ("ICLDA", "MCLDA")
    assert contest.is_won
    assert contest_with_runner_up({"ICLDA": Summary(0.2, 0.01, 20)}) is None


@pytest.mark.parametrize(
    ("winner", "opponent"),
    [("MCLDA", "LDA"), ("EMLDA", "LDAoracle"), ("SLLDA", "MCLDA"), ("ICLDA", "EMLDA")],
)
def test_the_paper_took_the_column_two_to_the_left_of_the_winner(winner, opponent):
    methods = ("LDA", "LDAoracle", "MCLDA", "EMLDA", "SLLDA", "ICLDA")
    summaries = {m: Summary(0.1 if m == winner else 0.3, 0.01, 20) for m in methods}
    contest = contest_of_the_paper(summaries)
    assert (contest.winner, contest.opponent) == (winner, opponent)
    assert contest_of_the_paper({winner: summaries[winner]}) is None


@pytest.mark.parametrize(
    ("measure", "n_printed", "kept"),
    [
        ("error", 8, ["SPECT", "WDBC"]),
        ("nll", 8, ["BCI", "Ionosphere", "Parkinsons", "Pima", "SPECT", "Transfusion"]),
    ],
)
def test_few_published_underlines_survive_the_true_runner_up(measure, n_printed, kept):
    checks = check_published_underlines(measure)
    assert len(checks) == 10
    assert sum(check.as_published.is_won for check in checks) == n_printed
    assert [check.dataset for check in checks if check.survives] == kept


def test_a_contest_is_won_below_five_percent():
    assert Contest("a", "b", 0.0499).is_won
    assert not Contest("a", "b", 0.05).is_won


def test_the_corrected_t_test_agrees_with_the_formula_by_hand():
    # mean 2, variance 2/3 x 1 = (1 + 1 + 0 + 0) / 3, factor 1/4 + 1/9
    t, p = corrected_t_test([1.0, 3.0, 2.0, 2.0], 1 / 9)
    assert t == pytest.approx(2 / sqrt((1 / 4 + 1 / 9) * 2 / 3))
    assert p == pytest.approx(2 * stats.t.sf(t, 3))


def test_without_the_correction_it_is_the_paired_t_test():
    a, b = [1.0, 2.5, 3.0, 4.5], [0.5, 2.0, 3.5, 3.0]
    ours = corrected_t_test([x - y for x, y in zip(a, b, strict=True)], 0.0)
    assert ours == pytest.approx(tuple(stats.ttest_rel(a, b)))


@pytest.mark.parametrize(
    ("differences", "answer"),
    [([0.0, 0.0], (0.0, 1.0)), ([-1.0, -1.0], (-inf, 0.0)), ([3.0], (0.0, 1.0)), ([], (0.0, 1.0))],
)
def test_the_corrected_t_test_answers_where_there_is_no_spread(differences, answer):
    assert corrected_t_test(differences, 0.1) == answer


def test_holm_agrees_with_a_computation_by_hand():
    # 4 x 0.01 = 0.04; 3 x 0.011 = 0.033, raised to 0.04; 2 x 0.03 = 0.06; 1 x 0.5
    assert holm([0.03, 0.01, 0.5, 0.011]) == pytest.approx([0.06, 0.04, 0.5, 0.04])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_depends_on_the_values_and_not_on_their_order():
    values = [0.2, 0.001, 0.04, 0.01]
    expected = dict(zip(values, holm(values), strict=True))
    for order in itertools.permutations(values):
        assert holm(order) == [expected[p] for p in order]


def test_methods_are_paired_with_lda_split_by_split():
    rows = []
    for repeat, fold in itertools.product(range(2), range(10)):
        hardness = 0.01 * (fold + 3 * repeat)
        rows.append(table_row("WDBC", repeat, fold, "LDA", 0.2 + hardness, 1.0))
        tiny = 1e-4 * (-1) ** fold
        rows.append(table_row("WDBC", repeat, fold, "ICLDA", 0.19 + hardness + tiny, 1.0))
        rows.append(table_row("WDBC", repeat, fold, "LDAoracle", 0.1, 1.0))
    (comparison,) = compare_with_baseline(rows, "error")
    assert (comparison.method, comparison.n_splits) == ("ICLDA", 20)
    assert comparison.difference == pytest.approx(-0.01)
    assert comparison.verdict == "better"
    # 50 test rows, 450 training rows
    assert comparison.t == pytest.approx(-0.01 / sqrt((1 / 20 + 1 / 9) * 20 / 19 * 1e-8))


def test_splits_that_one_of_the_two_lacks_are_left_out():
    rows = table_rows(methods=("LDA", "ICLDA"), repeats=2)
    rows[0] = table_row("WDBC", 0, 0, "LDA", None, None, failure="Traceback")
    rows[3] = table_row("WDBC", 0, 1, "ICLDA", float("nan"), 1.0)
    (comparison,) = compare_with_baseline(rows, "error")
    assert comparison.n_splits == 18


def test_holm_spans_the_whole_table():
    rows = table_rows(("A", "B"), ("LDA", "MCLDA", "SLLDA"))
    comparisons = compare_with_baseline(rows, "error")
    assert [(c.dataset, c.method) for c in comparisons] == list(
        itertools.product("AB", ("MCLDA", "SLLDA"))
    )
    assert [c.p_holm for c in comparisons] == holm([c.p for c in comparisons])
