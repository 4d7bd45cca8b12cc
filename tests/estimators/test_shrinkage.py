"""Automatic shrinkage: between that of the labeled rows and that of all rows."""

import numpy as np
import pytest

import iclda
from iclda import (
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    MomentConstrainedLDA,
    NormalizedLDA,
    PessimisticLDA,
    SelfLearningLDA,
    SupervisedLDA,
)
from tests.helpers.problems import draw_sample, fit_shares, one_hot, oracle_shrinkage

OF_ALL_ROWS = [
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    NormalizedLDA,
    SelfLearningLDA,
]


def sample_of(n_unlabeled=60):
    return draw_sample(17, n_features=6, n_labeled=12, n_unlabeled=n_unlabeled)


def of_labeled(sample):
    """Chen et al.'s shrinkage of the covariance within classes, of the free rows."""
    within = fit_shares(sample.X, one_hot(sample.y, sample.n_classes))[2]
    n = len(sample.X)
    n_free = len(sample.X) - sample.n_classes
    return oracle_shrinkage(within * n / n_free, n_free)


@pytest.mark.parametrize("classifier", OF_ALL_ROWS)
def test_it_is_the_geometric_mean_of_that_of_labeled_and_of_all_rows(classifier):
    sample = sample_of()
    fit = sample.fit(classifier(shrinkage="auto"))
    of_all = oracle_shrinkage(np.cov(sample.rows.T, bias=True), len(sample.rows))
    expected = min(0.99, np.sqrt(of_labeled(sample) * of_all))
    assert fit.shrinkage_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "classifier", [MomentConstrainedLDA, PessimisticLDA, SupervisedLDA]
)
def test_fits_that_rest_on_labeled_rows_take_that_of_labeled_rows(classifier):
    sample = sample_of()
    fit = sample.fit(classifier(shrinkage="auto"))
    assert fit.shrinkage_ == pytest.approx(of_labeled(sample), rel=1e-9)


def test_it_is_the_same_from_batches_and_with_weights_for_repeated_rows():
    sample = sample_of()
    plain = sample.fit(NormalizedLDA(shrinkage="auto"))
    source = iclda.rows.from_batches(
        lambda: iter(np.array_split(sample.X_unlabeled, 7))
    )
    batched = NormalizedLDA(shrinkage="auto").fit(
        sample.X, sample.y, X_unlabeled=source
    )
    assert batched.shrinkage_ == pytest.approx(plain.shrinkage_, rel=1e-10)
    times = 1 + np.arange(60) % 3
    weighted = NormalizedLDA(shrinkage="auto").fit(
        sample.X,
        sample.y,
        X_unlabeled=sample.X_unlabeled,
        sample_weight_unlabeled=times,
    )
    repeated = NormalizedLDA(shrinkage="auto").fit(
        sample.X, sample.y, X_unlabeled=np.repeat(sample.X_unlabeled, times, axis=0)
    )
    assert weighted.shrinkage_ == pytest.approx(repeated.shrinkage_, rel=1e-10)


@pytest.mark.parametrize("factor", [1e-40, 1e40])
def test_it_has_no_units(factor):
    sample = sample_of()
    plain = sample.fit(NormalizedLDA(shrinkage="auto"))
    scaled = NormalizedLDA(shrinkage="auto").fit(
        factor * sample.X, sample.y, X_unlabeled=factor * sample.X_unlabeled
    )
    assert scaled.shrinkage_ == pytest.approx(plain.shrinkage_, rel=1e-8)
