import numpy as np
import pytest
from scipy.linalg import eigh, sqrtm

from iclda._core.solvers import Outcome
from iclda._core.solvers.moment_match import (
    CLOSED_FORMS,
    match_moments,
    maximize_under_moments,
)
from iclda._core.solvers.supervised import labeled_log_likelihood
from tests.helpers.problems import draw_sample, fit_shares, one_hot, problem_of


def maps_of(sample):
    """The map A of every variant in the units of the features, by its formula."""
    _, means, within = fit_shares(sample.X, one_hot(sample.y, sample.n_classes))
    labeled = np.cov(sample.X.T, bias=True)
    everything = np.cov(sample.rows.T, bias=True)
    eigenvalues, vectors = eigh(everything, labeled)
    symmetric = np.real(sqrtm(everything) @ np.linalg.inv(sqrtm(labeled)))
    invariant = labeled @ (vectors * np.sqrt(eigenvalues)) @ vectors.T
    maps = {"invariant": invariant, "symmetric": symmetric, "means-shifted": symmetric}
    return maps, means, within


@pytest.mark.parametrize("variant", CLOSED_FORMS)
def test_the_labeled_fit_is_moved_by_the_printed_map(sample, variant):
    model = match_moments(problem_of(sample), variant)
    maps, means, within = maps_of(sample)
    A = maps[variant]
    shifted = means - sample.X.mean(axis=0)
    moved = shifted if variant == "means-shifted" else shifted @ A.T
    found = model.frame.restore(model.means)
    np.testing.assert_allclose(
        found, moved + sample.rows.mean(axis=0), rtol=1e-9, atol=1e-10
    )
    units = np.outer(model.frame.scale, model.frame.scale)
    np.testing.assert_allclose(
        model.covariance * units, A @ within @ A.T, rtol=1e-8, atol=1e-10
    )
    np.testing.assert_allclose(
        model.class_weights, np.bincount(sample.y) / len(sample.y)
    )


@pytest.mark.parametrize("number", range(24))
def test_a_maximum_is_found_from_wherever_the_closed_form_lies(number):
    """Few labels, classes near and far: some Newton steps lead far outside the set."""
    n_classes = 2 + number % 3
    n_features = 1 + number // 3 % 4
    sample = draw_sample(
        [2012, number],
        n_classes=n_classes,
        n_features=n_features,
        n_labeled=2 * n_classes + n_features,
        n_unlabeled=60,
        separation=(0.3, 1.0, 5.0)[number % 3],
        freedom=(None, 2)[number // 12],
    )
    problem = problem_of(sample, shrinkage=(0.0, 0.2)[number % 2])
    model, outcome = maximize_under_moments(problem)
    assert outcome is Outcome.CONVERGED
    if problem.shrinkage == 0:
        closed_form = match_moments(problem, "invariant")
        value = labeled_log_likelihood(closed_form, problem.labeled)
        assert labeled_log_likelihood(model, problem.labeled) >= value - 1e-9
    assert np.isfinite(model.covariance).all()
