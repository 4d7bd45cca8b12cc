"""Fits of the experiments are those of the estimators that users import."""

import numpy as np
import pytest

import iclda
from iclda.studies.paper.fits import CellRows, fit_method, fit_published_em

ESTIMATORS = {
    "LDA": iclda.SupervisedLDA(),
    "MCLDA": iclda.MomentConstrainedLDA(variant="symmetric"),
    "EMLDA": iclda.ExpectationMaximizationLDA(),
    "SLLDA": iclda.SelfLearningLDA(),
    "ICLDA": iclda.ImplicitlyConstrainedLDA(),
    "STLDA": iclda.SelfTrainingLDA(),
}


def draw(seed, n_classes=2):
    rng = np.random.default_rng(seed)
    codes = np.arange(120) % n_classes
    X = rng.standard_normal((120, 3)) + 1.5 * rng.standard_normal((n_classes, 3))[codes]
    return CellRows(X[:24], codes[:24], X[24:], codes[24:], n_classes, 0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_method_of_the_experiments_is_the_estimator(name, n_classes):
    training = draw(1, n_classes)
    model = fit_method(name, training)
    fit = ESTIMATORS[name].fit(
        training.X, training.codes, X_unlabeled=training.X_unlabeled
    )
    joint = model.log_joint(training.rows)
    expected = fit.score_samples(training.rows)
    found = np.log(np.exp(joint).sum(axis=1))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.array_equal(joint.argmax(axis=1), fit.predict(training.rows))


def test_the_oracle_knows_every_label():
    training = draw(2)
    codes = np.concatenate([training.codes, training.codes_unlabeled])
    fit = iclda.SupervisedLDA().fit(training.rows, codes)
    joint = fit_method("LDAoracle", training).log_joint(training.rows)
    expected = fit.log_likelihood(training.rows, codes)
    np.testing.assert_allclose(
        joint[np.arange(len(codes)), codes], expected, rtol=1e-10
    )


def em_as_the_original_code(training, n_rounds):
    """The two faults on raw rows: means subtracted twice, no 1/2 in the exponent."""
    rows = training.rows
    n_labeled = len(training.codes)
    center = rows.mean(axis=0)
    shares = np.eye(2)[training.codes]
    weights = shares
    members = training.X - center
    for number in range(n_rounds + 1):
        counts = weights.sum(axis=0)
        means = weights.T @ members / counts[:, None]
        spread = sum(
            (members - means[k]).T @ ((members - means[k]) * weights[:, [k]])
            for k in range(2)
        )
        covariance = spread / counts.sum()
        if number == n_rounds:
            return counts / counts.sum(), means + center, covariance
        seen = rows[n_labeled:] - center - (center if number > 0 else 0)
        deviations = seen[:, None] - means
        distances = np.einsum(
            "nkd,de,nke->nk", deviations, np.linalg.inv(covariance), deviations
        )
        joint = np.log(counts / counts.sum()) - distances
        joint = np.exp(joint - joint.max(axis=1, keepdims=True))
        weights = np.vstack([shares, joint / joint.sum(axis=1, keepdims=True)])
        members = rows - center


@pytest.mark.parametrize("n_rounds", [1, 2, 5])
def test_em_as_published_has_the_two_faults_of_the_original_code(n_rounds):
    training = draw(3)
    fit = fit_published_em(training.problem, n_rounds)
    priors, means, covariance = em_as_the_original_code(training, n_rounds)
    frame = fit.frame
    np.testing.assert_allclose(fit.class_weights, priors, rtol=1e-9)
    np.testing.assert_allclose(frame.restore(fit.means), means, rtol=1e-8)
    scales = np.outer(frame.scale, frame.scale)
    np.testing.assert_allclose(fit.covariance * scales, covariance, rtol=1e-7)


def test_a_column_that_no_labeled_row_varies_in_does_not_stop_the_moment_fit():
    training = draw(4)
    X = training.X.copy()
    X[:, 1] = 1.0
    model = fit_method(
        "MCLDA", CellRows(X, training.codes, training.X_unlabeled, [], 2, 0)
    )
    assert np.isfinite(model.log_joint(training.X_unlabeled)).all()
