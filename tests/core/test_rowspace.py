"""Few rows of many features: the fit in their space is the fit in all features."""

import tracemalloc
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclda import (
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    SelfTrainingLDA,
    SupervisedLDA,
)
from iclda._estimators import fit_inputs
from iclda.methods import FITTED, FURTHER

SHRINKAGES = [None, 0.1, 0.7, "auto"]
NARROWED = [
    method
    for method in (*FITTED, *FURTHER)
    if not method.options
    and not method.classifier()._needs.all_features
    and method.name != "average"
]
EVERY = [
    (method, s)
    for method in NARROWED
    for s in SHRINKAGES
    if not method.classifier(shrinkage=s)._needs.all_features
]


def rows(n=30, d=60, n_classes=2):
    rng = np.random.default_rng(1)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 4, d) + 7
    # Far apart: one maximum.
    X[:, :6] += 12.0 * np.eye(3, 6)[y]
    # Collinear.
    X[:, 9] = X[:, 8] * 2
    # Constant.
    X[:, 11] = 3.0
    return X, np.where(np.arange(n) < 16, y, -1), rng.normal(size=(20, d)) + 7


def fitted(classifier, X, y, monkeypatch, *, is_narrowed, **more):
    monkeypatch.setattr(fit_inputs, "MIN_WIDE_FEATURES", 0 if is_narrowed else 10**9)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = classifier.fit(X, y, **more)
    assert (model._model_.gaussians.covariance is None) == is_narrowed
    return model, [str(one.message) for one in caught]


def both(make, X, y, monkeypatch, **more):
    return [
        fitted(make(), X, y, monkeypatch, is_narrowed=narrowed, **more)
        for narrowed in (True, False)
    ]


def assert_same(ours, plain, new, rtol=1e-6):
    close = {"rtol": rtol, "atol": rtol}
    for name in (
        "priors_",
        "means_",
        "covariance_",
        "coef_",
        "intercept_",
        "shrinkage_",
    ):
        assert_allclose(
            getattr(ours, name), getattr(plain, name), err_msg=name, **close
        )
    assert ours.rank_ == plain.rank_
    for name in ("predict_log_proba", "transform", "score_samples"):
        found = getattr(ours, name)(new)
        expected = getattr(plain, name)(new)
        assert_allclose(found, expected, err_msg=name, **close)


@pytest.mark.parametrize(
    ("method", "shrinkage"), EVERY, ids=lambda each: getattr(each, "name", each)
)
def test_every_method_gives_the_fit_of_all_features(method, shrinkage, monkeypatch):
    X, y, new = rows()

    def make():
        return method.classifier(shrinkage=shrinkage)

    if shrinkage is None and method.uses_unlabeled:
        if method.name in ("moment", "moment-likelihood", "pessimistic"):
            with pytest.raises(ValueError, match=r"span 14 of 29 dimensions"):
                both(make, X, y, monkeypatch)
            return
        (ours, said), (plain, heard) = both(make, X, y, monkeypatch)
        # The likelihood has no maximum, and the end of the search is not determined.
        assert (ours.rank_, said[0]) == (plain.rank_, heard[0])
        return
    (ours, said), (plain, heard) = both(make, X, y, monkeypatch)
    assert_same(ours, plain, new)
    assert said == heard
    if hasattr(ours, "objective_"):
        assert ours.objective_ == pytest.approx(plain.objective_, rel=1e-6)


@pytest.mark.parametrize("shrinkage", [None, 0.4, "auto"])
def test_fits_without_unlabeled_rows_too(shrinkage, monkeypatch):
    X, y, new = rows()
    kept = y >= 0
    make = lambda: ImplicitlyConstrainedLDA(shrinkage=shrinkage)  # noqa: E731
    (ours, said), (plain, heard) = both(make, X[kept], y[kept], monkeypatch)
    assert said == heard
    assert_same(ours, plain, new)
    # Without shrinkage variances at the floor are known to a few digits.
    assert ours.objective_ == pytest.approx(
        plain.objective_, rel=1e-4 if shrinkage is None else 1e-8
    )


@pytest.mark.parametrize("n_labeled", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("shrinkage", [0.4, "auto"])
@pytest.mark.parametrize("classifier", [SupervisedLDA, SelfTrainingLDA])
def test_very_few_labels_too(classifier, shrinkage, n_labeled, monkeypatch):
    X, y, new = rows()
    y[n_labeled:] = -1
    make = lambda: classifier(shrinkage=shrinkage)  # noqa: E731
    (ours, said), (plain, heard) = both(make, X, y, monkeypatch)
    assert said == heard
    assert_same(ours, plain, new)


def test_shifted_unlabeled_rows_are_named_by_their_column(monkeypatch):
    X, y, _ = rows()
    X[y < 0, 20] += 1e4
    make = lambda: ImplicitlyConstrainedLDA(shrinkage=0.5)  # noqa: E731
    (_, said), (_, heard) = both(make, X, y, monkeypatch)
    assert "the mean of column 20 is" in said[0]
    assert said == heard


def test_weighted_rows_are_fitted_in_all_features(monkeypatch):
    X, y, _ = rows()
    monkeypatch.setattr(fit_inputs, "MIN_WIDE_FEATURES", 0)
    weighted = SupervisedLDA(shrinkage=0.5).fit(X, y, np.full(len(y), 2.0))
    assert weighted._model_.gaussians.covariance is not None


@pytest.mark.filterwarnings("ignore::iclda.DegenerateFitWarning")
@pytest.mark.parametrize("method", NARROWED, ids=lambda method: method.name)
def test_memory_does_not_grow_with_the_square_of_the_features(method):
    X, y, new = rows(38, 5_000)
    shrinkage = next(
        s
        for s in ("auto", 0.7)
        if not method.classifier(shrinkage=s)._needs.all_features
    )
    tracemalloc.start()
    method.classifier(shrinkage=shrinkage).fit(X, y).predict_proba(new)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 5_000**2 / 4


@pytest.mark.parametrize("classifier", [SupervisedLDA, ExpectationMaximizationLDA])
def test_weights_of_unlabeled_rows_keep_the_fit_in_the_space_of_the_rows(
    monkeypatch, classifier
):
    X, y, new = rows()
    weights = np.where(y < 0, np.random.default_rng(0).uniform(0.5, 4, len(y)), 1.0)
    make = lambda: classifier(shrinkage=0.2)  # noqa: E731
    (ours, _), (plain, _) = both(make, X, y, monkeypatch, sample_weight=weights)
    assert_same(ours, plain, new, 1e-9)


@pytest.mark.parametrize("shrinkage", [0.1, 0.7, "auto"])
def test_the_likelihood_path_of_em_counts_the_directions_left_out(
    shrinkage, monkeypatch
):
    X, y, _ = rows()
    (ours, _), (plain, _) = both(
        lambda: ExpectationMaximizationLDA(shrinkage=shrinkage), X, y, monkeypatch
    )
    assert_allclose(
        ours.log_likelihood_path_[-1], plain.log_likelihood_path_[-1], rtol=1e-9
    )
