import numpy as np
import pytest
import scipy.optimize

from iclda import ExpectationMaximizationLDA, SelfLearningLDA
from tests.helpers.changes import assert_close, assert_same_fit
from tests.helpers.problems import draw_sample, fit_shares, one_hot, total_covariance

# Likelihoods are known to about 14 digits, hence maxima of it to about 7.
FINISHED = ExpectationMaximizationLDA(tol=1e-15)


class MarginalLikelihood:
    """Log likelihood of all rows, free in (log priors, means, Cholesky root).

    Every step is analytic, so that a step along the imaginary axis gives exact
    derivatives.
    """

    def __init__(self, sample):
        self.sample = sample
        self.n_classes = sample.n_classes
        self.d = sample.X.shape[1]

    def pack(self, priors, means, covariance):
        root = np.linalg.cholesky(covariance)
        lower = root[np.tril_indices(self.d, -1)]
        return np.r_[np.log(priors), means.ravel(), np.log(np.diag(root)), lower]

    def unpack(self, flat):
        K = self.n_classes
        d = self.d
        priors = np.exp(flat[:K])
        root = np.diag(np.exp(flat[K + K * d : K + K * d + d]))
        root[np.tril_indices(d, -1)] = flat[K + K * d + d :]
        return priors / priors.sum(), flat[K : K + K * d].reshape(K, d), root

    def value(self, flat):
        priors, means, root = self.unpack(flat)
        rows = self.sample.rows
        joint = np.empty((self.n_classes, len(rows)), dtype=flat.dtype)
        for k in range(self.n_classes):
            distances = (np.linalg.solve(root, (rows - means[k]).T) ** 2).sum(axis=0)
            joint[k] = np.log(priors[k]) - distances / 2
        joint -= self.d / 2 * np.log(2 * np.pi) + np.log(np.diag(root)).sum()
        n_labeled = len(self.sample.y)
        labeled = joint[self.sample.y, np.arange(n_labeled)].sum()
        free = joint[:, n_labeled:]
        top = free.real.max(axis=0)
        return labeled + (top + np.log(np.exp(free - top).sum(axis=0))).sum()

    def loss_and_slope(self, flat):
        steps = 1e-30j * np.eye(len(flat))
        slope = [self.value(flat + step).imag / 1e-30 for step in steps]
        return -self.value(flat), -np.array(slope)

    def maximize(self, start):
        found = scipy.optimize.minimize(
            self.loss_and_slope,
            self.pack(*start),
            jac=True,
            method="BFGS",
            options={"gtol": 1e-7},
        )
        priors, means, root = self.unpack(found.x)
        return -found.fun, priors, means, root @ root.T


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_fit_of_three_classes_maximizes_the_marginal_likelihood(seed):
    sample = draw_sample(
        [5, seed], n_classes=3, n_labeled=15, n_unlabeled=60, separation=2.5
    )
    supervised = fit_shares(sample.X, one_hot(sample.y, 3))
    value, priors, means, covariance = MarginalLikelihood(sample).maximize(supervised)
    fit = sample.fit(FINISHED)
    assert fit.converged_
    assert fit.log_likelihood_path_[-1] == pytest.approx(value, rel=1e-10)
    assert_close(fit.priors_, priors, 1e-6)
    assert_close(fit.means_, means, 1e-6)
    assert_close(fit.covariance_, covariance, 1e-6)


def test_the_default_tolerance_ends_at_the_maximum(sample):
    early = sample.fit(ExpectationMaximizationLDA())
    late = sample.fit(FINISHED)
    assert early.converged_
    promised = late.log_likelihood_path_[-1] - early.log_likelihood_path_[-1]
    assert 0 <= promised + 1e-9 <= 1e-8 * len(sample.rows)


def penalized(fit, sample, unlabeled_weight=1.0, shrinkage=0.0):
    """Likelihood that EM climbs, from the public attributes."""
    weights = np.r_[
        np.ones(len(sample.X)), np.full(len(sample.X_unlabeled), unlabeled_weight)
    ]
    value = fit.log_likelihood(sample.X, sample.y).sum()
    value += unlabeled_weight * fit.score_samples(sample.X_unlabeled).sum()
    theta = np.cov(sample.rows.T, aweights=weights, bias=True)
    nu = np.trace(theta) / len(theta)
    prior_rows = weights.sum() * shrinkage / (1 - shrinkage)
    log_det = np.linalg.slogdet(fit.covariance_)[1]
    return value - prior_rows / 2 * (
        log_det + nu * np.trace(np.linalg.inv(fit.covariance_))
    )


@pytest.mark.parametrize("shrinkage", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("unlabeled_weight", [1.0, 0.2])
def test_the_path_holds_the_penalized_likelihood_and_never_falls(
    sample, shrinkage, unlabeled_weight
):
    fit = sample.fit(
        ExpectationMaximizationLDA(
            shrinkage=shrinkage, unlabeled_weight=unlabeled_weight
        )
    )
    path = fit.log_likelihood_path_
    assert len(path) == fit.n_iter_
    assert np.all(np.diff(path) >= -1e-12 * np.abs(path[0]))
    expected = penalized(fit, sample, unlabeled_weight, shrinkage)
    assert path[-1] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("separation", [0.0, 0.5, 5.0])
@pytest.mark.parametrize("freedom", [None, 2])
def test_the_path_never_falls_however_classes_lie(separation, freedom):
    for n_classes in (2, 3, 4):
        sample = draw_sample(
            [6, n_classes],
            n_classes=n_classes,
            n_labeled=5 * n_classes,
            n_unlabeled=150,
            separation=separation,
            freedom=freedom,
        )
        path = sample.fit(ExpectationMaximizationLDA()).log_likelihood_path_
        assert np.all(np.diff(path) >= -1e-12 * np.abs(path[0]))


def test_the_fit_is_the_one_by_its_own_posteriors(sample):
    fit = sample.fit(FINISHED)
    shares = np.vstack(
        [one_hot(sample.y, sample.n_classes), fit.predict_proba(sample.X_unlabeled)]
    )
    by_hand = fit_shares(sample.rows, shares)
    for found, expected in zip(
        (fit.class_weights_, fit.means_, fit.covariance_), by_hand, strict=True
    ):
        assert_close(found, expected, 1e-6)


@pytest.mark.parametrize("factor", [0.1, 3.0])
@pytest.mark.parametrize("classifier", [ExpectationMaximizationLDA, SelfLearningLDA])
def test_the_unlabeled_weight_multiplies_the_weights_of_unlabeled_rows(
    sample, classifier, factor
):
    a = sample.fit(classifier(unlabeled_weight=factor))
    weights = np.full(len(sample.X_unlabeled), factor)
    b = classifier().fit(
        sample.X,
        sample.y,
        X_unlabeled=sample.X_unlabeled,
        sample_weight_unlabeled=weights,
    )
    assert_same_fit(a, b, 1e-10)
    if classifier is ExpectationMaximizationLDA:
        assert_close(a.log_likelihood_path_, b.log_likelihood_path_, 1e-12)


def test_fixed_priors_are_kept_apart_from_the_class_weights(sample):
    priors = np.full(sample.n_classes, 1 / sample.n_classes)
    fit = sample.fit(ExpectationMaximizationLDA(priors=priors))
    assert_close(fit.priors_, priors, 1e-14)
    shares = fit.predict_proba(sample.X_unlabeled).sum(axis=0) + np.bincount(sample.y)
    assert_close(fit.class_weights_, shares / shares.sum(), 1e-4)
    path = fit.log_likelihood_path_
    assert np.all(np.diff(path) >= -1e-12 * np.abs(path[0]))
    assert path[-1] == pytest.approx(penalized(fit, sample), rel=1e-10)


@pytest.mark.parametrize("n_classes", [3, 6])
def test_rounds_are_the_same_in_any_order_of_the_classes(n_classes):
    # Extrapolation that left out the last class ended elsewhere within the tolerance,
    # by 1e-4.
    sample = draw_sample(
        n_classes + 3,
        n_classes=n_classes,
        n_features=3,
        n_labeled=4 * n_classes,
        n_unlabeled=200,
        separation=1.0,
    )
    order = np.roll(np.arange(n_classes), 1)
    model = ExpectationMaximizationLDA().fit(sample.rows, sample.labels)
    labels = np.where(sample.labels < 0, -1, order[sample.labels])
    other = ExpectationMaximizationLDA().fit(sample.rows, labels)
    assert other.n_iter_ == model.n_iter_
    found = other.predict_proba(sample.rows)[:, order]
    np.testing.assert_allclose(
        found, model.predict_proba(sample.rows), rtol=0, atol=1e-9
    )


@pytest.mark.filterwarnings(
    "ignore:.*still rises after:sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.parametrize("shrinkage", [0.0, 0.4])
def test_every_entry_of_the_path_is_the_likelihood_at_that_round(sample, shrinkage):
    estimator = ExpectationMaximizationLDA(shrinkage=shrinkage, tol=0.0)
    path = sample.fit(estimator.set_params(max_iter=6)).log_likelihood_path_
    for n_rounds in (2, 4):
        fit = sample.fit(estimator.set_params(max_iter=n_rounds))
        np.testing.assert_allclose(
            fit.log_likelihood_path_, path[:n_rounds], rtol=1e-13
        )


@pytest.mark.parametrize("shrinkage", [0.2, 0.8])
@pytest.mark.parametrize("classifier", [ExpectationMaximizationLDA, SelfLearningLDA])
def test_shrinkage_mixes_in_the_mean_variance_of_all_rows(
    sample, classifier, shrinkage
):
    fit = sample.fit(classifier(shrinkage=shrinkage))
    nu = sample.rows.var(axis=0).mean()
    unshrunk = (fit.covariance_ - shrinkage * nu * np.eye(3)) / (1 - shrinkage)
    total = total_covariance(fit.class_weights_, fit.means_, unshrunk)
    assert_close(total, np.cov(sample.rows.T, bias=True), 1e-10)
