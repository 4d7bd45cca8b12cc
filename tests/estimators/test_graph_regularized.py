import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from iclda import SemiSupervisedDiscriminantAnalysis, SupervisedLDA
from tests.helpers.changes import assert_close, assert_same_fit
from tests.helpers.problems import fit_shares, one_hot


def roughness(rows, n_neighbors):
    """X L X', pair by pair."""
    distances = ((rows[:, None] - rows) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    found = np.zeros((rows.shape[1], rows.shape[1]))
    nearest = [set(np.argsort(each)[:n_neighbors].tolist()) for each in distances]
    for i in range(len(rows)):
        for j in range(i):
            if i in nearest[j] or j in nearest[i]:
                found += np.outer(rows[i] - rows[j], rows[i] - rows[j])
    return found


def test_the_covariance_has_the_terms_of_the_graph_and_the_identity(sample):
    fit = sample.fit(
        SemiSupervisedDiscriminantAnalysis(n_neighbors=4, alpha=0.2, beta=0.3)
    )
    weights, means, within = fit_shares(sample.X, one_hot(sample.y, sample.n_classes))
    more = 0.2 * roughness(sample.rows, 4) + 0.3 * np.eye(3)
    assert_close(fit.priors_, weights, 1e-12)
    assert_close(fit.means_, means, 1e-12)
    assert_close(fit.covariance_, within + more / len(sample.X), 1e-10)


def test_directions_are_those_of_the_generalized_eigenvalue_problem(sample):
    fit = sample.fit(SemiSupervisedDiscriminantAnalysis())
    total = np.cov(sample.X.T, bias=True) * len(sample.X)
    weights, means, _ = fit_shares(sample.X, one_hot(sample.y, sample.n_classes))
    centered = means - weights @ means
    between = (len(sample.X) * weights[:, None] * centered).T @ centered
    more = total + 0.1 * roughness(sample.rows, 5) + 0.1 * np.eye(3)
    n_found = min(sample.n_classes - 1, 3)
    vectors = scipy.linalg.eigh(between, more)[1][:, ::-1][:, :n_found]
    basis = scipy.linalg.orth(vectors)
    slopes = fit.transform(np.eye(3)) - fit.transform(np.zeros((1, 3)))
    assert_allclose(
        basis @ (basis.T @ slopes), slopes, atol=1e-8 * np.abs(slopes).max()
    )
    for one, two in zip(slopes.T, vectors.T, strict=True):
        cosine = one @ two / np.linalg.norm(one) / np.linalg.norm(two)
        assert abs(cosine) == pytest.approx(1, abs=1e-8)


def test_without_the_graph_and_almost_without_the_identity_it_is_lda(sample):
    fit = sample.fit(SemiSupervisedDiscriminantAnalysis(alpha=0, beta=1e-9))
    assert_same_fit(fit, SupervisedLDA().fit(sample.X, sample.y), 1e-6)


@pytest.mark.parametrize("n_unlabeled", [1, 2])
def test_fewer_rows_than_neighbors_and_equal_rows_have_a_fit(n_unlabeled):
    X = np.vstack([[[0.0, 1.0], [3.0, 4.0]], np.zeros((n_unlabeled, 2))])
    y = np.r_[0, 1, np.full(n_unlabeled, -1)]
    fit = SemiSupervisedDiscriminantAnalysis().fit(X, y)
    assert np.isfinite(fit.covariance_).all()
    assert fit.predict(X[:2]).tolist() == [0, 1]


@pytest.mark.filterwarnings("ignore:.* got no unlabeled rows:UserWarning")
def test_without_unlabeled_rows_nothing_advises_a_parameter_that_it_does_not_have():
    sda = SemiSupervisedDiscriminantAnalysis()
    rows = np.random.default_rng(2).standard_normal((4, 5))
    with pytest.warns(UserWarning, match=r"span 2 of 3 .*: .* Label more rows\.$"):
        sda.fit(rows, [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"do not vary .*: label more rows\.$"):
        sda.fit(rows[:2], [0, 1])
