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
from tests.helpers.problems import (
    draw_sample,
    estimated_shrinkage,
    fit_shares,
    one_hot,
)

OF_ALL_ROWS = [
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    NormalizedLDA,
    SelfLearningLDA,
]


def sample_of(n_unlabeled=60):
    return draw_sample(17, n_features=6, n_labeled=12, n_unlabeled=n_unlabeled)


def of_labeled(sample):
    """Shrinkage of the covariance within classes, of the free rows."""
    within = fit_shares(sample.X, one_hot(sample.y, sample.n_classes))[2]
    n = len(sample.X)
    n_free = len(sample.X) - sample.n_classes
    return estimated_shrinkage(within * n / n_free, n_free)


@pytest.mark.parametrize("classifier", OF_ALL_ROWS)
def test_it_is_the_geometric_mean_of_that_of_labeled_and_of_all_rows(classifier):
    sample = sample_of()
    fit = sample.fit(classifier(shrinkage="auto"))
    of_all = estimated_shrinkage(np.cov(sample.rows.T, bias=True), len(sample.rows))
    expected = min(0.99, np.sqrt(of_labeled(sample) * of_all))
    # A maximum is known from its values to the root of their rounding only.
    assert fit.shrinkage_ == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "classifier", [MomentConstrainedLDA, PessimisticLDA, SupervisedLDA]
)
def test_fits_that_rest_on_labeled_rows_take_that_of_labeled_rows(classifier):
    sample = sample_of()
    fit = sample.fit(classifier(shrinkage="auto"))
    assert fit.shrinkage_ == pytest.approx(of_labeled(sample), rel=1e-5)


def test_it_keeps_the_small_variances_in_which_classes_differ():
    # As measures of one animal: its size is in every column, its kind in differences.
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    size = 10 * rng.standard_normal((400, 1))
    noise = 0.1 * rng.standard_normal((400, 5))
    X = size + noise + 0.3 * y[:, None] * [1, -1, 1, -1, 0]
    labels = np.where(np.arange(400) < 20, y, -1)
    plain = SupervisedLDA().fit(X, labels).score(X, y)
    for classifier in (SupervisedLDA, PessimisticLDA, ExpectationMaximizationLDA):
        fitted = classifier(shrinkage="auto").fit(X, labels)
        assert 0 < fitted.shrinkage_ < 1e-3
        assert fitted.score(X, y) >= plain - 0.02


def test_a_column_that_is_passed_twice_leaves_a_shrinkage():
    # Its difference never varies, and no shrinkage would make that most probable.
    sample = sample_of()
    plain = SupervisedLDA(shrinkage="auto").fit(sample.X, sample.y)
    twice = SupervisedLDA(shrinkage="auto").fit(
        np.column_stack([sample.X, sample.X[:, 0]]), sample.y
    )
    assert twice.shrinkage_ > plain.shrinkage_ / 10


def test_a_weight_of_two_is_a_repeated_row():
    sample = sample_of()
    weighted = SupervisedLDA(shrinkage="auto").fit(
        sample.X, sample.y, sample_weight=np.full(len(sample.y), 2.0)
    )
    repeated = SupervisedLDA(shrinkage="auto").fit(
        np.tile(sample.X, (2, 1)), np.tile(sample.y, 2)
    )
    assert weighted.shrinkage_ == pytest.approx(repeated.shrinkage_, rel=1e-10)


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
