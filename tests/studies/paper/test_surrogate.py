"""Differences in loss beside differences in error, by set and split."""

import pytest
from numpy.testing import assert_allclose

from iclda.studies.paper.surrogate import (
    compare_loss_and_error,
    differences_from_lda,
    rank_correlation,
)
from tests.helpers.paper_rows import table_row

# Differences from LDA in loss and error on four splits.
DIFFERENCES = [(-4.0, -0.1), (-3.0, 0.1), (-2.0, 0.0), (1.0, 0.2)]


def rows_of(dataset="A"):
    rows = []
    for fold, (loss, error) in enumerate(DIFFERENCES):
        lda_loss = 7.0 * fold
        rows.append(table_row(dataset, 0, fold, "LDA", 0.3, lda_loss))
        rows.append(table_row(dataset, 0, fold, "LDAoracle", 0.1, lda_loss - 9))
        rows.append(table_row(dataset, 0, fold, "ICLDA", 0.3 + error, lda_loss + loss))
    return rows


def test_a_method_is_paired_with_lda_split_by_split():
    (key, pairs), *others = differences_from_lda(rows_of()).items()
    assert (key, others) == (("A", "ICLDA"), [])
    assert_allclose(pairs, DIFFERENCES, atol=1e-12)
    # The order of the errors is 1 3 2 4.
    assert rank_correlation(pairs) == pytest.approx(0.8)


def test_errors_are_counted_where_the_loss_is_lower():
    differences = differences_from_lda([*rows_of(), *rows_of("B")])
    (compared,) = compare_loss_and_error(differences)
    assert (compared.n_splits, compared.n_lower_loss) == (8, 6)
    shares = compared.lower, compared.same, compared.higher
    assert shares == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert compared.correlations == pytest.approx([0.8, 0.8])


def test_without_lda_there_is_nothing_to_compare():
    rows = [row for row in rows_of() if row.method != "LDA"]
    assert differences_from_lda(rows) == {}
