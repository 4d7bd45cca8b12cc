"""Losses of the R package RSSL 0.9.7 on one split of each benchmark set.

ICLDA_REFERENCE holds reference/fits.csv and reference/splits.csv. For further methods
it holds reference/rssl-family.csv; for pessimistic LDA that is the optimum found by a
general convex solver, and where the package's own implementation stopped.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
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
    PessimisticLDA,
    SelfLearningLDA,
    SelfLearningLeastSquares,
    SupervisedLDA,
)
from iclda.datasets import BENCHMARKS, load_benchmark

REFERENCE = os.environ.get("ICLDA_REFERENCE")
pytestmark = pytest.mark.skipif(
    not REFERENCE, reason="ICLDA_REFERENCE does not name the reference fits"
)

SETS = sorted(BENCHMARKS)
CLOSED_FORM = {
    "LDA": SupervisedLDA(unlabeled=None),
    "SLLDA": SelfLearningLDA(unlabeled=None),
    "MCLDA_invariant": MomentConstrainedLDA(unlabeled=None),
}
# The reference stopped at 100 rounds on Transfusion, and shortly before the end on
# SPECTF.
EM_CONVERGED = [name for name in SETS if name not in ("Transfusion", "SPECTF")]


def tolerance(name):
    """Parkinsons is nearly collinear."""
    return 2e-5 if name == "Parkinsons" else 1e-6


@pytest.fixture(scope="module")
def tables():
    folder = Path(REFERENCE) / "reference"
    return pd.read_csv(folder / "fits.csv"), pd.read_csv(folder / "splits.csv")


def split_of(name, tables):
    """Rows and classes by role, and what is to be passed to ``fit``."""
    dataset = load_benchmark(name)
    X = dataset.X
    y = dataset.y.astype(object)
    splits = tables[1].query("dataset == @name")
    rows = {role: part["row"].to_numpy() for role, part in splits.groupby("role")}
    by_role = {role: (X[index], y[index]) for role, index in rows.items()}
    used = np.r_[rows["labeled"], rows["unlabeled"]]
    known = y[used].copy()
    known[len(rows["labeled"]) :] = None
    return by_role, X[used], known


def expected_of(name, method, tables):
    return tables[0].query("dataset == @name and method == @method").iloc[0]


def losses(estimator, name, tables):
    """Mean negative log likelihood of labeled and test rows, and the test error."""
    by_role, X, y = split_of(name, tables)
    fit = estimator.fit(X, y)
    labeled, test = (
        -fit.log_likelihood(*by_role[role]).mean() for role in ("labeled", "test")
    )
    return labeled, test, 1 - fit.score(*by_role["test"])


@pytest.mark.parametrize("method", CLOSED_FORM)
@pytest.mark.parametrize("name", SETS)
def test_losses_are_those_of_the_reference(name, method, tables):
    labeled, test, error = losses(CLOSED_FORM[method], name, tables)
    expected = expected_of(name, method, tables)
    assert labeled == pytest.approx(expected.nll_labeled, abs=tolerance(name))
    assert test == pytest.approx(expected.nll_test, abs=tolerance(name))
    assert error == pytest.approx(expected.error_test, abs=1e-9)


@pytest.mark.parametrize("name", EM_CONVERGED)
def test_expectation_maximization_reaches_the_losses_of_the_reference(name, tables):
    labeled, test, _ = losses(ExpectationMaximizationLDA(unlabeled=None), name, tables)
    expected = expected_of(name, "EMLDA", tables)
    assert labeled == pytest.approx(expected.nll_labeled, abs=1e-4)
    assert test == pytest.approx(expected.nll_test, abs=1e-4)


@pytest.mark.parametrize("name", SETS)
def test_the_implicitly_constrained_loss_is_no_higher_than_the_references(name, tables):
    estimator = ImplicitlyConstrainedLDA(unlabeled=None)
    labeled, _, _ = losses(estimator, name, tables)
    assert estimator.converged_
    assert labeled == pytest.approx(-estimator.objective_, abs=1e-8)
    assert labeled <= expected_of(name, "ICLDA", tables).nll_labeled + tolerance(name)


@pytest.mark.parametrize("name", SETS)
def test_the_implicitly_constrained_fit_is_certified_whichever_rows_are_labeled(
    name, tables
):
    _, X, y = split_of(name, tables)
    n_labeled = sum(label is not None for label in y)
    known = split_of(name, tables)[0]
    truth = np.r_[known["labeled"][1], known["unlabeled"][1]]
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(X))
        kept = np.r_[[order[truth[order] == k][:2] for k in np.unique(truth)]].ravel()
        others = order[~np.isin(order, kept)][: n_labeled - len(kept)]
        masked = np.full(len(X), None, dtype=object)
        masked[kept], masked[others] = truth[kept], truth[others]
        fit = ImplicitlyConstrainedLDA(unlabeled=None, random_state=0).fit(X, masked)
        assert fit.converged_, (seed, fit.gap_)


@pytest.fixture(scope="module")
def family():
    path = Path(REFERENCE) / "reference" / "rssl-family.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is missing")
    table = pd.read_csv(path)
    return table.set_index(["dataset", "method", "quantity"])["value"].sort_index()


def assert_stored(theta, expected, rtol, atol):
    stored = expected[[f"theta_{i}" for i in range(len(theta))]]
    np.testing.assert_allclose(
        theta, stored, rtol=rtol, atol=atol * np.abs(stored).max()
    )


@pytest.mark.parametrize("name", SETS)
def test_the_pessimistic_fit_is_the_optimum_of_a_general_convex_solver(
    name, tables, family
):
    by_role, X, y = split_of(name, tables)
    fit = PessimisticLDA(unlabeled=None).fit(X, y)
    expected = family[name, "MCPL_optimum"].astype(float)
    assert fit.converged_
    assert fit.gap_ <= 1e-8
    assert fit.objective_ == pytest.approx(expected["contrastive"], abs=1e-6)
    truth = np.r_[by_role["labeled"][1], by_role["unlabeled"][1]]
    likelihood = fit.log_likelihood(X, truth).mean()
    assert likelihood == pytest.approx(expected["loglik_train_true"], abs=1e-6)
    loss = -fit.log_likelihood(*by_role["test"]).mean()
    assert loss == pytest.approx(expected["nll_test"], abs=1e-6)
    # The log odds of the first class; those here are of the second.
    assert_stored(-np.r_[fit.intercept_, fit.coef_[0]], expected, 1e-6, 1e-6)


NEAREST_MEANS = {
    "NM": NearestMean(unlabeled=None),
    "MCNM": MomentConstrainedNearestMean(unlabeled=None, variant="variance-kept"),
    "MCNM_sigma": MomentConstrainedNearestMean(unlabeled=None),
    # Stopped at 100 rounds, with losses right to 1e-6.
    "EMNM_tight": ExpectationMaximizationNearestMean(unlabeled=None, tol=1e-10),
}


@pytest.mark.parametrize("method", NEAREST_MEANS)
@pytest.mark.parametrize("name", SETS)
def test_nearest_means_are_those_of_the_reference(name, method, tables, family):
    by_role, X, y = split_of(name, tables)
    fit = NEAREST_MEANS[method].fit(X, y)
    expected = family[name, method].astype(float)
    assert fit.covariance_[0, 0] == pytest.approx(expected["variance"], rel=1e-6)
    assert fit.priors_[0] == pytest.approx(expected["prior_first_class"], abs=1e-6)
    for role in ("labeled", "test"):
        loss = -fit.log_likelihood(*by_role[role]).mean()
        assert loss == pytest.approx(expected[f"nll_{role}"], abs=2e-6)
    assert 1 - fit.score(*by_role["test"]) == pytest.approx(
        expected["error_test"], abs=1e-9
    )
    assert_stored(-np.r_[fit.intercept_, fit.coef_[0]], expected, 1e-5, 1e-5)


LEAST_SQUARES = {
    "LS_white": LeastSquaresClassifier(unlabeled=None),
    "ICLS_QP_white": ImplicitlyConstrainedLeastSquares(unlabeled=None),
    "PROJ_QP_white": ImplicitlyConstrainedLeastSquares(
        unlabeled=None, variant="projected"
    ),
    "EMLS_hard_white": SelfLearningLeastSquares(unlabeled=None),
    "EMLS_soft_white": SelfLearningLeastSquares(unlabeled=None, labels="soft"),
}


@pytest.mark.parametrize("method", LEAST_SQUARES)
@pytest.mark.parametrize("name", SETS)
def test_least_squares_fits_are_those_of_the_reference(name, method, tables, family):
    by_role, X, y = split_of(name, tables)
    fit = LEAST_SQUARES[method].fit(X, y)
    expected = family[name, method].astype(float)
    # Predictions of the first class; the coefficients are those of the second less the
    # first.
    assert_stored(np.r_[1 - fit.intercept_, -fit.coef_[0]] / 2, expected, 1e-5, 2e-6)
    for role in ("labeled", "test"):
        loss = fit.squared_loss(*by_role[role]).mean()
        assert loss == pytest.approx(expected[f"sqloss_{role}"], abs=1e-6)
    assert 1 - fit.score(*by_role["test"]) == pytest.approx(
        expected["error_test"], abs=1e-9
    )
    if "objective" in expected:
        assert fit.converged_
        assert getattr(fit, "gap_", 0.0) < 1e-9
        assert fit.objective_ == pytest.approx(expected["objective"], abs=1e-7)
