"""A fitted linear model: deviations and discriminants."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclda import LeastSquaresClassifier, SupervisedLDA
from iclda._estimators.linear_model import gaussian_model_of


def rows(n_classes, n_features=4):
    rng = np.random.default_rng(n_classes)
    y = np.arange(60) % n_classes
    X = rng.normal(size=(60, n_features)) * [1, 10, 0.1, 3]
    return X + 3 * np.eye(n_classes, n_features)[y], y


@pytest.mark.parametrize("n_classes", [2, 3])
def test_standardized_coefficients_do_not_depend_on_units(n_classes):
    X, y = rows(n_classes)
    units = np.array([1.0, 1000.0, 0.01, 7.0])
    found = [
        gaussian_model_of(SupervisedLDA().fit(each, y)).standardized_coefficients()
        for each in (X, X * units)
    ]
    assert found[0].coefficients.shape == (n_classes - 1, X.shape[1])
    assert_allclose(found[0].coefficients, found[1].coefficients, rtol=1e-8)
    assert_allclose(found[0].shares.sum(), 1)


def test_the_coefficients_of_two_classes_are_those_of_standardized_columns():
    X, y = rows(2)
    model = SupervisedLDA().fit(X, y)
    deviations = np.sqrt(np.diag(model.covariance_))
    found = gaussian_model_of(model).standardized_coefficients()
    standardized = SupervisedLDA().fit(X / deviations, y)
    assert_allclose(found.coefficients, standardized.coef_, rtol=1e-8)


def y_with_gaps(y):
    return np.where(np.arange(len(y)) < 30, y, -1)


def test_least_squares_have_no_gaussian_model():
    X, y = rows(2)
    model = LeastSquaresClassifier().fit(X, y)
    assert gaussian_model_of(model) is None
    assert gaussian_model_of(object()) is None
    assert_array_equal(model.predict(X), model._model_.labels()(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_function_of_a_model_gives_one_entry_for_each_row(n_classes):
    X, y = rows(n_classes)
    model = gaussian_model_of(SupervisedLDA().fit(X, y))
    functions = (
        model.labels(),
        model.probabilities(),
        model.log_probabilities(),
        model.decisions(),
        model.class_scores(),
        model.discriminants(),
        model.log_joint(),
        model.log_density(),
    )
    for function in functions:
        assert len(function(X[:7])) == 7
