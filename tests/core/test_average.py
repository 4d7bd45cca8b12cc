import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclda import (
    ExpectationMaximizationLDA,
    MomentConstrainedLDA,
    SelfLearningLDA,
)
from iclda._core.average import average
from problems import draw_sample

# Their fits to the same rows have the same frame.
CLASSIFIERS = [SelfLearningLDA, ExpectationMaximizationLDA, MomentConstrainedLDA]


def fits(sample, classifiers=CLASSIFIERS):
    return [sample.fit(classifier()) for classifier in classifiers]


def test_the_average_of_one_model_is_that_model():
    sample = draw_sample(0, n_classes=3)
    (fitted,) = fits(sample, [ExpectationMaximizationLDA])
    one = fitted._gaussians_
    for found in (average([one], None), average([one] * 3, None)):
        assert_allclose(found.class_weights, one.class_weights, rtol=1e-12)
        assert_allclose(found.log_joint(sample.rows), one.log_joint(sample.rows), rtol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_its_moments_are_those_of_rows_drawn_from_all_models(n_classes):
    models = fits(draw_sample(1, n_classes=n_classes))
    found = average([model._gaussians_ for model in models], None)
    frame = found.frame
    covariance = found.covariance * frame.scale[:, None] * frame.scale

    def squares(weights, means, covariance):
        return covariance + (weights[:, None] * means).T @ means

    weights = np.mean([model.class_weights_ for model in models], axis=0)
    sums = np.mean([model.class_weights_[:, None] * model.means_ for model in models], axis=0)
    total = np.mean([squares(m.class_weights_, m.means_, m.covariance_) for m in models], axis=0)
    means = frame.restore(found.means)
    assert_allclose(found.class_weights, weights, rtol=1e-12)
    assert_allclose(found.class_weights[:, None] * means, sums, atol=1e-10)
    assert_allclose(squares(found.class_weights, means, covariance), total, atol=1e-10)


def test_given_priors_are_kept():
    models = [model._gaussians_ for model in fits(draw_sample(2))]
    log_priors = np.log([0.3, 0.7])
    assert average(models, log_priors).log_priors is log_priors
