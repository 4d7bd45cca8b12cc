"""Corrected tests and intervals of values from splits that share rows."""

from math import inf, sqrt

import pytest
from numpy.testing import assert_allclose
from scipy import stats

from iclda._statistics import (
    corrected_standard_error,
    corrected_t_test,
    holm,
    mean_interval,
)

VALUES = [1.0, 2.5, 3.0, 4.5, 2.0]


def test_the_corrected_t_test_agrees_with_the_formula_by_hand():
    # mean 2, variance 2/3 x 1 = (1 + 1 + 0 + 0) / 3, factor 1/4 + 1/9
    t, p = corrected_t_test([1.0, 3.0, 2.0, 2.0], 1 / 9)
    assert t == pytest.approx(2 / sqrt((1 / 4 + 1 / 9) * 2 / 3))
    assert p == pytest.approx(2 * stats.t.sf(t, 3))


@pytest.mark.parametrize(
    ("differences", "answer"),
    [([0.0, 0.0], (0.0, 1.0)), ([-1.0, -1.0], (-inf, 0.0))],
)
def test_the_corrected_t_test_answers_where_there_is_no_spread(differences, answer):
    assert corrected_t_test(differences, 0.1) == answer


def test_without_the_correction_error_and_interval_are_those_of_a_mean():
    assert corrected_standard_error(VALUES) == pytest.approx(stats.sem(VALUES))
    expected = stats.ttest_1samp(VALUES, 0).confidence_interval(0.9)
    assert_allclose(mean_interval(VALUES, 0.9), expected)


def test_holm_agrees_with_a_computation_by_hand():
    # 4 x 0.01 = 0.04; 3 x 0.011 = 0.033, raised to 0.04; 2 x 0.03 = 0.06; 1 x 0.5
    assert holm([0.03, 0.01, 0.5, 0.011]) == pytest.approx([0.06, 0.04, 0.5, 0.04])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
