import numpy as np
import pytest

from changes import (
    assert_close,
    assert_same_fit,
)
from iclda import SelfLearningLDA, SupervisedLDA
from problems import fit_shares, one_hot


def test_the_fit_is_the_supervised_one_by_its_own_labels(sample):
    fit = sample.fit(SelfLearningLDA())
    assert fit.converged_
    y = np.r_[sample.y, fit.predict(sample.X_unlabeled)]
    assert_same_fit(fit, SupervisedLDA().fit(sample.rows, y), 1e-10)


@pytest.mark.parametrize("shrinkage", [0.2, 0.8])
def test_shrinkage_mixes_in_the_mean_variance_of_all_rows(sample, shrinkage):
    fit = sample.fit(SelfLearningLDA(shrinkage=shrinkage))
    y = np.r_[sample.y, fit.predict(sample.X_unlabeled)]
    weights, means, covariance = fit_shares(sample.rows, one_hot(y, sample.n_classes))
    nu = sample.rows.var(axis=0).mean()
    assert_close(fit.class_weights_, weights, 1e-12)
    assert_close(fit.means_, means, 1e-11)
    assert_close(fit.covariance_, (1 - shrinkage) * covariance + shrinkage * nu * np.eye(3), 1e-11)


@pytest.mark.parametrize("factor", [0.1, 3.0])
def test_the_unlabeled_weight_multiplies_the_weights_of_unlabeled_rows(sample, factor):
    a = sample.fit(SelfLearningLDA(unlabeled_weight=factor))
    b = SelfLearningLDA().fit(
        sample.X,
        sample.y,
        X_unlabeled=sample.X_unlabeled,
        sample_weight_unlabeled=np.full(len(sample.X_unlabeled), factor),
    )
    assert_same_fit(a, b, 1e-10)
    y = np.r_[sample.y, a.predict(sample.X_unlabeled)]
    weights = np.r_[np.ones(len(sample.X)), np.full(len(sample.X_unlabeled), factor)]
    by_hand = fit_shares(sample.rows, one_hot(y, sample.n_classes), weights)
    for found, expected in zip((a.class_weights_, a.means_, a.covariance_), by_hand, strict=True):
        assert_close(found, expected, 1e-11)


def test_fixed_priors_are_kept_apart_from_the_class_weights(sample):
    priors = np.full(sample.n_classes, 1 / sample.n_classes)
    fit = sample.fit(SelfLearningLDA(priors=priors))
    assert_close(fit.priors_, priors, 1e-14)
    y = np.r_[sample.y, fit.predict(sample.X_unlabeled)]
    assert_close(fit.class_weights_, np.bincount(y) / len(y), 1e-12)
    expected = SupervisedLDA(priors=priors).fit(sample.rows, y)
    assert_close(fit.coef_, expected.coef_, 1e-10)
