import numpy as np
import pytest
from scipy.linalg import eigh, sqrtm

from iclda._core.solvers.moment_match import VARIANTS, match_moments
from problems import fit_shares, one_hot, problem_of


def maps_of(sample):
    """The map A of every variant in the units of the features, as the formulas are printed."""
    _, means, within = fit_shares(sample.X, one_hot(sample.y, sample.n_classes))
    labeled = np.cov(sample.X.T, bias=True)
    everything = np.cov(sample.rows.T, bias=True)
    eigenvalues, vectors = eigh(everything, labeled)
    symmetric = np.real(sqrtm(everything) @ np.linalg.inv(sqrtm(labeled)))
    invariant = labeled @ (vectors * np.sqrt(eigenvalues)) @ vectors.T
    maps = {"invariant": invariant, "symmetric": symmetric, "means-shifted": symmetric}
    return maps, means, within


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_labeled_fit_is_moved_by_the_printed_map(sample, variant):
    model = match_moments(problem_of(sample), variant)
    maps, means, within = maps_of(sample)
    A = maps[variant]
    shifted = means - sample.X.mean(axis=0)
    moved = shifted if variant == "means-shifted" else shifted @ A.T
    found = model.frame.restore(model.means)
    np.testing.assert_allclose(found, moved + sample.rows.mean(axis=0), rtol=1e-9, atol=1e-10)
    units = np.outer(model.frame.scale, model.frame.scale)
    np.testing.assert_allclose(model.covariance * units, A @ within @ A.T, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.class_weights, np.bincount(sample.y) / len(sample.y))
