import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from iclda import MomentConstrainedLDA, SupervisedLDA
from iclda._core.solvers import supervised
from tests.helpers.changes import assert_close, assert_same_fit
from tests.helpers.problems import fit_shares, log_joint, one_hot, rising_shares


@pytest.fixture(params=[None, 0.1, 0.9])
def both(request, sample):
    """scikit-learn's fit and ours."""
    theirs = LinearDiscriminantAnalysis(
        solver="lsqr", shrinkage=request.param, store_covariance=True
    )
    return theirs.fit(sample.X, sample.y), sample.fit(
        SupervisedLDA(shrinkage=request.param)
    )


def test_the_model_is_scikit_learns(sample, both):
    theirs, ours = both
    for name in ("means_", "covariance_", "priors_"):
        assert getattr(ours, name).shape == getattr(theirs, name).shape
        assert_close(getattr(ours, name), getattr(theirs, name), 1e-10)
    rows = sample.X_unlabeled
    np.testing.assert_allclose(
        ours.predict_proba(rows), theirs.predict_proba(rows), atol=1e-10
    )
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))


def test_the_coefficients_are_scikit_learns(both):
    theirs, ours = both
    for name in ("coef_", "intercept_"):
        assert getattr(ours, name).shape == getattr(theirs, name).shape
        assert_close(getattr(ours, name), getattr(theirs, name), 1e-10)


def test_features_of_very_different_size_leave_the_fit_scikit_learns(sample):
    units = np.array([1e-2, 1.0, 1e2])
    theirs = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True)
    theirs.fit(sample.X * units, sample.y)
    ours = SupervisedLDA().fit(sample.X * units, sample.y)
    for name in ("coef_", "intercept_"):
        found = getattr(ours, name)
        expected = getattr(theirs, name)
        sizes = units if name == "coef_" else 1.0
        assert_close(
            (found - found[-1]) * sizes, (expected - expected[-1]) * sizes, 1e-8
        )


def test_the_projection_is_scikit_learns_up_to_sign_and_origin(sample):
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(sample.X, sample.y)
    expected = theirs.transform(sample.X)
    found = SupervisedLDA().fit(sample.X, sample.y).transform(sample.X)
    assert found.shape == (len(sample.X), min(sample.n_classes - 1, 3))
    expected = expected - sample.X.mean(axis=0) @ theirs.scalings_[:, : found.shape[1]]
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, signs * expected, rtol=1e-8, atol=1e-8)


def test_the_fit_is_maximum_likelihood(sample):
    fit = SupervisedLDA().fit(sample.X, sample.y)
    priors, means, covariance = fit_shares(
        sample.X, one_hot(sample.y, sample.n_classes)
    )
    assert_close(fit.priors_, priors, 1e-14)
    assert_close(fit.means_, means, 1e-12)
    assert_close(fit.covariance_, covariance, 1e-12)
    joint = log_joint(sample.X, priors, means, covariance)
    own = joint[np.arange(len(sample.y)), sample.y]
    assert_close(fit.log_likelihood(sample.X, sample.y), own, 1e-10)
    marginal = np.log(np.exp(joint).sum(axis=1))
    assert_close(fit.score_samples(sample.X), marginal, 1e-10)


@pytest.mark.parametrize("classifier", [SupervisedLDA, MomentConstrainedLDA])
def test_fixed_priors_move_the_intercept_only(sample, classifier):
    free = sample.fit(classifier())
    priors = rising_shares(sample.n_classes)
    fixed = sample.fit(classifier(priors=priors))
    assert_close(fixed.priors_, priors, 1e-14)
    for name in ("coef_", "means_", "covariance_", "class_weights_"):
        assert_close(getattr(fixed, name), getattr(free, name), 1e-12)
    shift = np.log(priors / free.priors_)
    shift = np.diff(shift) if sample.n_classes == 2 else shift
    np.testing.assert_allclose(fixed.intercept_ - free.intercept_, shift, atol=1e-10)


def test_of_300_classes_the_most_probable_is_predicted():
    rng = np.random.default_rng(0)
    y = np.arange(900) % 300
    X = rng.standard_normal((900, 3)) + 10 * rng.standard_normal((300, 3))[y]
    model = SupervisedLDA().fit(X, y)
    expected = model.decision_function(X).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[expected])


@pytest.mark.parametrize("shrinkage", [None, 0.1])
def test_far_from_the_floor_the_careful_way_gives_the_same_fit(
    sample, shrinkage, monkeypatch
):
    fit = SupervisedLDA(shrinkage=shrinkage).fit(sample.X, sample.y)
    monkeypatch.setattr(supervised, "_MAX_SAFE_VARIANCE_RATIO", 0.0)
    assert_same_fit(
        SupervisedLDA(shrinkage=shrinkage).fit(sample.X, sample.y), fit, 1e-11
    )


def test_the_decision_function_is_scikit_learns(sample, both):
    theirs, ours = both
    rows = sample.X_unlabeled
    assert_close(ours.decision_function(rows), theirs.decision_function(rows), 1e-10)
    by_hand = np.squeeze(rows @ ours.coef_.T + ours.intercept_)
    assert_close(ours.decision_function(rows), by_hand, 1e-10)
