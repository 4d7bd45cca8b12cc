import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclda import (
    ExpectationMaximizationNearestMean,
    MomentConstrainedNearestMean,
    NearestMean,
)
from tests.helpers.changes import assert_close
from tests.helpers.problems import (
    draw_sample,
    fit_shares,
    labeled_log_likelihood,
    one_hot,
)

FORMS = {
    "supervised": NearestMean(),
    "em": ExpectationMaximizationNearestMean(),
    "shifted": MomentConstrainedNearestMean(variant="variance-kept"),
    "shifted, variance anew": MomentConstrainedNearestMean(),
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def spherical_fit(rows, shares):
    """Class weights, means and the variance in all directions, by soft labels."""
    weights, means, covariance = fit_shares(rows, shares)
    return weights, means, np.trace(covariance) / rows.shape[1]


def test_the_supervised_fit_is_the_mean_variance_within_classes(sample):
    fit = NearestMean().fit(sample.X, sample.y)
    weights, means, variance = spherical_fit(
        sample.X, one_hot(sample.y, sample.n_classes)
    )
    assert_close(fit.priors_, weights, 1e-12)
    assert_close(fit.means_, means, 1e-12)
    assert_close(fit.covariance_, variance * np.eye(3), 1e-12)


def test_em_ends_where_posteriors_give_the_same_fit_again(sample):
    fit = sample.fit(ExpectationMaximizationNearestMean())
    assert fit.converged_
    shares = np.vstack(
        [one_hot(sample.y, sample.n_classes), fit.predict_proba(sample.X_unlabeled)]
    )
    weights, means, variance = spherical_fit(sample.rows, shares)
    assert_close(fit.priors_, weights, 1e-4)
    assert_close(fit.means_, means, 1e-4)
    assert_close(fit.covariance_, variance * np.eye(3), 1e-4)


def test_em_follows_the_likelihood_of_all_rows_and_never_lowers_it(sample):
    fit = sample.fit(ExpectationMaximizationNearestMean())
    labeled = fit.log_likelihood(sample.X, sample.y).sum()
    marginal = fit.score_samples(sample.X_unlabeled).sum()
    assert fit.log_likelihood_path_[-1] == pytest.approx(labeled + marginal, abs=1e-6)
    assert (np.diff(fit.log_likelihood_path_) >= -1e-9).all()
    start = NearestMean().fit(sample.X, sample.y)
    first = start.log_likelihood(sample.X, sample.y).sum()
    assert (
        fit.log_likelihood_path_[-1]
        > first + start.score_samples(sample.X_unlabeled).sum()
    )


@pytest.mark.parametrize("variant", ["variance-kept", "variance-anew"])
def test_the_mean_of_all_rows_is_matched_and_the_differences_of_means_stay(
    sample, variant
):
    fit = sample.fit(MomentConstrainedNearestMean(variant=variant))
    supervised = NearestMean().fit(sample.X, sample.y)
    assert_close(fit.class_weights_ @ fit.means_, sample.rows.mean(axis=0), 1e-12)
    shift = fit.means_ - supervised.means_
    assert_close(shift, np.tile(shift[0], (sample.n_classes, 1)), 1e-10)
    more = (shift[0] ** 2).mean() if variant == "variance-anew" else 0
    assert fit.covariance_[0, 0] == pytest.approx(supervised.covariance_[0, 0] + more)


def test_no_means_of_that_mean_make_the_labeled_rows_likelier(sample):
    fit = sample.fit(MomentConstrainedNearestMean())
    best = fit.log_likelihood(sample.X, sample.y).mean()
    rng = np.random.default_rng(4)
    for size in (1e-3, 0.1):
        for _ in range(20):
            change = size * rng.standard_normal(fit.means_.shape)
            means = fit.means_ + change - fit.priors_ @ change
            covariance = fit.covariance_ * np.exp(size * rng.standard_normal())
            assert labeled_log_likelihood(sample, fit.priors_, means, covariance) < best


@every_form
def test_the_fit_follows_rotations_shifts_and_one_change_of_units(sample, form):
    turn = np.linalg.qr(np.random.default_rng(6).standard_normal((3, 3)))[0]
    before = sample.fit(form)
    proba = before.predict_proba(sample.rows)
    means = before.means_
    form.fit(
        100 * sample.X @ turn + 7,
        sample.y,
        X_unlabeled=100 * sample.X_unlabeled @ turn + 7,
    )
    assert_close(form.means_, 100 * means @ turn + 7, 1e-4)
    assert_allclose(form.predict_proba(100 * sample.rows @ turn + 7), proba, atol=1e-4)


@every_form
def test_constant_and_collinear_columns_and_many_features_are_no_problem(form):
    sample = draw_sample(8, n_features=30, n_labeled=6, n_unlabeled=10)
    X, unlabeled = (
        np.column_stack([rows, np.full(len(rows), 3.0), rows[:, 0]])
        for rows in (sample.X, sample.X_unlabeled)
    )
    fit = form.fit(X, sample.y, X_unlabeled=unlabeled)
    assert fit.rank_ == 32
    assert np.isfinite(fit.predict_log_proba(unlabeled)).all()


def test_labeled_rows_without_spread_are_an_error_and_em_uses_the_others():
    X = [[0.0, 1.0], [3.0, 4.0]]
    y = [0, 1]
    unlabeled = [[0.5, 1.0], [3.0, 5.0], [2.0, 4.0]]
    with pytest.raises(
        ValueError, match="The 2 labeled rows do not vary within their classes"
    ):
        NearestMean().fit(X, y)
    with pytest.raises(
        ValueError, match="The 2 labeled rows do not vary within their classes"
    ):
        MomentConstrainedNearestMean().fit(X, y, X_unlabeled=unlabeled)
    fit = ExpectationMaximizationNearestMean().fit(X, y, X_unlabeled=unlabeled)
    assert np.isfinite(fit.covariance_).all()
    assert fit.predict(X).tolist() == y


def test_with_equal_priors_rows_go_to_the_nearest_mean(sample):
    priors = np.full(sample.n_classes, 1 / sample.n_classes)
    fit = NearestMean(priors=priors).fit(sample.X, sample.y)
    distances = ((sample.X_unlabeled[:, None] - fit.means_) ** 2).sum(axis=2)
    assert (fit.predict(sample.X_unlabeled) == distances.argmin(axis=1)).all()
