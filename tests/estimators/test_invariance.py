"""Changes of the data that leave the fit of every classifier, or that it follows."""

import numpy as np
import pytest

from iclda import (
    ExpectationMaximizationLDA,
    ExpectationMaximizationNearestMean,
    ImplicitlyConstrainedLDA,
    ImplicitlyConstrainedLeastSquares,
    LeastSquaresClassifier,
    MomentConstrainedLDA,
    MomentConstrainedNearestMean,
    NearestMean,
    NormalizedLDA,
    PessimisticLDA,
    SelfLearningLDA,
    SelfLearningLeastSquares,
    SemiSupervisedDiscriminantAnalysis,
    SupervisedLDA,
)
from tests.helpers.changes import (
    PAIRS,
    assert_close,
    assert_follows_affine_map,
    assert_follows_class_names,
    assert_same_fit,
    data_of,
)
from tests.helpers.problems import total_covariance

# Classifiers, and how exactly their fits are determined.
GAUSSIAN = [
    (SupervisedLDA(), 1e-10),
    (SupervisedLDA(shrinkage=0.3), 1e-10),
    (SupervisedLDA(shrinkage="auto"), 1e-10),
    (SelfLearningLDA(), 1e-10),
    (ExpectationMaximizationLDA(tol=1e-15), 1e-6),
    (MomentConstrainedLDA(), 1e-10),
    (MomentConstrainedLDA(variant="symmetric"), 1e-10),
    (MomentConstrainedLDA(variant="means-shifted"), 1e-10),
    (MomentConstrainedLDA(variant="likelihood"), 1e-6),
    (ImplicitlyConstrainedLDA(), 1e-7),
    (PessimisticLDA(), 1e-6),
    (NormalizedLDA(), 1e-10),
    (NearestMean(), 1e-10),
    (ExpectationMaximizationNearestMean(), 1e-4),
    (MomentConstrainedNearestMean(), 1e-10),
    (MomentConstrainedNearestMean(variant="variance-kept"), 1e-10),
    (SemiSupervisedDiscriminantAnalysis(), 1e-9),
]
LEAST_SQUARES = [
    LeastSquaresClassifier(),
    ImplicitlyConstrainedLeastSquares(),
    ImplicitlyConstrainedLeastSquares(variant="projected"),
    SelfLearningLeastSquares(),
    SelfLearningLeastSquares(labels="soft"),
]
IN_USERS_UNITS = (
    "NearestMean",
    "Discriminant",
    "shrinkage",
    "symmetric",
    "means-shifted",
)
INVARIANT = [
    each
    for each in GAUSSIAN
    if not any(word in str(each[0]) for word in IN_USERS_UNITS)
]
BY_LABELING = [
    SelfLearningLDA(),
    ExpectationMaximizationLDA(),
    ImplicitlyConstrainedLDA(),
]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(("classifier", "tol"), GAUSSIAN, ids=str)
def test_equal_data_give_equal_fits(sample, classifier, tol, pair):
    a, b = (data.fit(classifier) for data in PAIRS[pair](data_of(sample)))
    assert_same_fit(a, b, tol)
    assert getattr(a, "objective_", 0) == pytest.approx(
        getattr(b, "objective_", 0), abs=1e-9
    )


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("classifier", LEAST_SQUARES, ids=str)
def test_equal_data_give_equal_least_squares_fits(sample, classifier, pair):
    a, b = (data.fit(classifier) for data in PAIRS[pair](data_of(sample)))
    assert_close(a.coef_, b.coef_, 1e-6)
    assert_close(a.intercept_, b.intercept_, 1e-6)


@pytest.mark.parametrize(("classifier", "tol"), GAUSSIAN, ids=str)
def test_the_fit_follows_the_names_of_the_classes(sample, classifier, tol):
    assert_follows_class_names(classifier, data_of(sample), tol)


@pytest.mark.parametrize(("classifier", "tol"), INVARIANT, ids=str)
def test_the_fit_follows_affine_maps_of_the_features(sample, classifier, tol):
    assert_follows_affine_map(classifier, data_of(sample), max(tol, 1e-9))


@pytest.mark.parametrize("classifier", BY_LABELING, ids=str)
def test_the_fit_keeps_mean_and_covariance_of_all_rows(sample, classifier):
    fit = sample.fit(classifier)
    assert_close(fit.class_weights_ @ fit.means_, sample.rows.mean(axis=0), 1e-11)
    total = total_covariance(fit.class_weights_, fit.means_, fit.covariance_)
    assert_close(total, np.cov(sample.rows.T, bias=True), 1e-11)
