import numpy as np
import pytest

from iclda import (
    ImplicitlyConstrainedLDA,
    MomentConstrainedLDA,
    NormalizedLDA,
    SupervisedLDA,
)
from tests.helpers.changes import assert_close, assert_same_fit
from tests.helpers.problems import (
    draw_sample,
    fit_shares,
    labeled_log_likelihood,
    one_hot,
    total_covariance,
)

VARIANTS = ["invariant", "symmetric", "means-shifted", "likelihood"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("variant", ["invariant", "symmetric", "likelihood"])
def test_mean_and_covariance_of_all_rows_are_matched_exactly(sample, variant, weighted):
    rng = np.random.default_rng(2)
    weights = (
        rng.uniform(0.5, 2, len(sample.rows)) if weighted else np.ones(len(sample.rows))
    )
    n_labeled = len(sample.X)
    fit = MomentConstrainedLDA(variant=variant).fit(
        sample.X,
        sample.y,
        weights[:n_labeled],
        X_unlabeled=sample.X_unlabeled,
        sample_weight_unlabeled=weights[n_labeled:],
    )
    mean = np.average(sample.rows, axis=0, weights=weights)
    assert_close(fit.class_weights_ @ fit.means_, mean, 1e-12)
    total = total_covariance(fit.class_weights_, fit.means_, fit.covariance_)
    assert_close(total, np.cov(sample.rows.T, aweights=weights, bias=True), 1e-11)
    # Where they are a parameter.
    if variant != "likelihood":
        shares = np.bincount(sample.y, weights[:n_labeled]) / weights[:n_labeled].sum()
        assert_close(fit.class_weights_, shares, 1e-12)


def test_shifted_means_match_the_mean(sample):
    fit = sample.fit(MomentConstrainedLDA(variant="means-shifted"))
    assert_close(fit.class_weights_ @ fit.means_, sample.rows.mean(axis=0), 1e-12)
    supervised = SupervisedLDA().fit(sample.X, sample.y)
    shift = fit.means_ - supervised.means_
    assert_close(shift, np.tile(shift[0], (len(shift), 1)), 1e-10)


def test_the_printed_formula_without_its_misprints_misses_the_second_constraint(sample):
    """Means that are only shifted keep their scatter, which the other fit maps."""
    shifted = sample.fit(MomentConstrainedLDA(variant="means-shifted"))
    mapped = sample.fit(MomentConstrainedLDA(variant="symmetric"))
    between_shifted, between_mapped = (
        total_covariance(fit.class_weights_, fit.means_, fit.covariance_)
        - fit.covariance_
        for fit in (shifted, mapped)
    )
    total = shifted.covariance_ + between_shifted
    of_all_rows = np.cov(sample.rows.T, bias=True)
    assert_close(total, of_all_rows + between_shifted - between_mapped, 1e-11)
    assert np.abs(total - of_all_rows).max() > 1e-3 * np.abs(of_all_rows).max()


def test_moments_that_agree_already_leave_the_supervised_fit(sample):
    for variant in VARIANTS:
        fit = MomentConstrainedLDA(variant=variant).fit(
            sample.X, sample.y, X_unlabeled=np.vstack([sample.X, sample.X])
        )
        tol = 1e-6 if variant == "likelihood" else 1e-9
        assert_same_fit(fit, SupervisedLDA().fit(sample.X, sample.y), tol)


@pytest.mark.parametrize("variant", ["symmetric", "means-shifted"])
def test_the_symmetric_variants_depend_on_units(sample, variant):
    units = np.array([0.01, 1.0, 100.0])
    estimator = MomentConstrainedLDA(variant=variant)
    before = sample.fit(estimator).covariance_
    estimator.fit(sample.X * units, sample.y, X_unlabeled=sample.X_unlabeled * units)
    after = estimator.covariance_ / np.outer(units, units)
    assert np.abs(after - before).max() > 1e-3 * np.abs(before).max()


@pytest.mark.parametrize(
    ("variant", "shrinkage"),
    [
        ("invariant", 0.1),
        ("invariant", 0.9),
        ("invariant", "auto"),
        ("likelihood", 0.3),
    ],
)
def test_shrinkage_lets_few_labels_match_moments(variant, shrinkage):
    sample = draw_sample(3, n_features=8, n_labeled=5)
    with pytest.raises(ValueError, match="span 3 of 8 dimensions"):
        sample.fit(MomentConstrainedLDA(variant=variant))
    fit = sample.fit(MomentConstrainedLDA(variant=variant, shrinkage=shrinkage))
    s = fit.shrinkage_
    nu = sample.rows.var(axis=0).mean()
    assert 0 < s < 1
    unshrunk = (fit.covariance_ - s * nu * np.eye(8)) / (1 - s)
    total = total_covariance(fit.class_weights_, fit.means_, unshrunk)
    assert_close(total, np.cov(sample.rows.T, bias=True), 1e-9)


def test_no_model_with_the_moments_of_all_rows_makes_the_labeled_rows_likelier(sample):
    """Not the closed forms, not the best of all labelings, nor any model nearby."""
    fit = sample.fit(MomentConstrainedLDA(variant="likelihood"))
    best = fit.log_likelihood(sample.X, sample.y).mean()
    for variant in ("invariant", "symmetric"):
        other = sample.fit(MomentConstrainedLDA(variant=variant))
        assert best > other.log_likelihood(sample.X, sample.y).mean()
    # The best labeling may attain this very model.
    assert best >= sample.fit(ImplicitlyConstrainedLDA()).objective_ - 1e-9
    total = np.cov(sample.rows.T, bias=True)
    rng = np.random.default_rng(3)
    nearby = []
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(20):
            weights = fit.class_weights_ * np.exp(
                size * rng.standard_normal(sample.n_classes)
            )
            weights /= weights.sum()
            means = fit.means_ + size * rng.standard_normal(fit.means_.shape)
            means += sample.rows.mean(axis=0) - weights @ means
            covariance = total - total_covariance(weights, means, 0)
            if np.linalg.eigvalsh(covariance)[0] > 0:
                nearby.append(
                    labeled_log_likelihood(sample, weights, means, covariance)
                )
    assert len(nearby) > 30
    assert best > max(nearby)


def test_the_likelihood_variant_refuses_a_prior_of_0_and_the_maps_do_not(sample):
    priors = np.eye(sample.n_classes)[0]
    with pytest.raises(
        ValueError, match="maximizes their likelihood, which would be 0"
    ):
        sample.fit(MomentConstrainedLDA(variant="likelihood", priors=priors))
    assert_close(sample.fit(MomentConstrainedLDA(priors=priors)).priors_, priors, 0)


def test_normalized_means_are_of_the_labeled_rows_and_the_covariance_of_all(sample):
    fit = sample.fit(NormalizedLDA())
    weights, means, _ = fit_shares(sample.X, one_hot(sample.y, sample.n_classes))
    assert_close(fit.class_weights_, weights, 1e-12)
    assert_close(fit.means_, means, 1e-12)
    assert_close(fit.covariance_, np.cov(sample.rows.T, bias=True), 1e-12)


def test_normalized_lda_of_every_label_and_equal_classes_predicts_what_lda_predicts():
    sample = draw_sample(5, n_features=3, n_labeled=40)
    rows = sample.X[:40]
    y = np.arange(40) % 2
    # The same rows again, unlabeled: all moments are those of the labeled rows.
    fit = NormalizedLDA().fit(rows, y, X_unlabeled=rows)
    lda = SupervisedLDA().fit(rows, y)
    direction = fit.coef_[0] / np.linalg.norm(fit.coef_[0])
    assert_close(direction, lda.coef_[0] / np.linalg.norm(lda.coef_[0]), 1e-9)
    assert (fit.predict(sample.X_unlabeled) == lda.predict(sample.X_unlabeled)).all()


@pytest.mark.parametrize("shrinkage", [0.1, 0.9])
def test_normalized_shrinkage_is_that_of_the_covariance_of_all_rows(sample, shrinkage):
    fit = sample.fit(NormalizedLDA(shrinkage=shrinkage))
    total = np.cov(sample.rows.T, bias=True)
    expected = (1 - shrinkage) * total + shrinkage * np.trace(total) / 3 * np.eye(3)
    assert_close(fit.covariance_, expected, 1e-12)


def test_one_label_a_class_is_enough_for_normalized_lda():
    sample = draw_sample(4, n_features=8, n_labeled=2)
    fit = sample.fit(NormalizedLDA())
    assert_close(fit.means_, sample.X, 1e-12)
    assert fit.rank_ == 8
