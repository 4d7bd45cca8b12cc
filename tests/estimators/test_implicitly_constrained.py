import numpy as np
import pytest

from iclda import ImplicitlyConstrainedLDA
from iclda._estimators import implicitly_constrained as _implicitly_constrained
from tests.helpers.changes import assert_close
from tests.helpers.problems import (
    Sample,
    best_value_known,
    draw_apart,
    fit_shares,
    gap_of_shares,
    labeled_log_likelihood,
    one_hot,
    rising_shares,
    small_sample,
    total_covariance,
    value_of_shares,
)


def everything(sample, fit):
    """Labels of all rows: given ones, then the imputed."""
    return np.vstack([one_hot(sample.y, sample.n_classes), fit.responsibilities_])


# Both numbers of classes, all dimensions and tails; 35, 93 and 112 are nearly
# degenerate.
QUICK = [(number, 8) for number in (0, 3, 4, 5, 9, 10, 26, 27, 31, 35, 93, 112)]
THOROUGH = [pytest.param(number, 50, marks=pytest.mark.slow) for number in range(200)]


@pytest.mark.filterwarnings("ignore:The unlabeled rows seem to come:UserWarning")
@pytest.mark.parametrize(("number", "n_starts"), QUICK + THOROUGH)
def test_no_labeling_beats_the_fit(number, n_starts):
    sample = small_sample(number)
    fit = sample.fit(ImplicitlyConstrainedLDA())
    assert fit.converged_
    assert fit.gap_ <= fit.tol
    assert best_value_known(sample, n_starts) <= fit.objective_ + 1e-7


def test_the_objective_is_the_mean_log_likelihood_of_the_labeled_rows(sample):
    fit = sample.fit(ImplicitlyConstrainedLDA())
    assert fit.objective_ == pytest.approx(
        fit.log_likelihood(sample.X, sample.y).mean(), rel=1e-10
    )
    value = labeled_log_likelihood(sample, fit.priors_, fit.means_, fit.covariance_)
    assert fit.objective_ == pytest.approx(value, rel=1e-10)
    assert fit.objective_ == pytest.approx(
        value_of_shares(sample, fit.responsibilities_)[0], abs=1e-8
    )


def test_the_fit_is_the_one_by_its_responsibilities(sample):
    fit = sample.fit(ImplicitlyConstrainedLDA())
    np.testing.assert_allclose(fit.responsibilities_.sum(axis=1), 1, rtol=1e-12)
    weights, means, covariance = fit_shares(sample.rows, everything(sample, fit))
    assert_close(fit.class_weights_, weights, 1e-8)
    assert_close(fit.priors_, weights, 1e-8)
    assert_close(fit.means_, means, 1e-8)
    assert_close(fit.covariance_, covariance, 1e-8)


@pytest.mark.parametrize("shrinkage", [0.2, 0.8, "auto"])
def test_shrinkage_mixes_in_the_mean_variance_of_all_rows(sample, shrinkage):
    fit = sample.fit(ImplicitlyConstrainedLDA(shrinkage=shrinkage))
    weights, means, covariance = fit_shares(sample.rows, everything(sample, fit))
    s = fit.shrinkage_
    nu = sample.rows.var(axis=0).mean()
    assert_close(fit.covariance_, (1 - s) * covariance + s * nu * np.eye(3), 1e-8)
    value = labeled_log_likelihood(sample, weights, means, fit.covariance_)
    assert fit.objective_ == pytest.approx(value, abs=1e-8)


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-7])
@pytest.mark.parametrize("separation", [0.0, 1.0, 6.0])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_gap_is_below_the_tolerance_over_all_labelings(n_classes, separation, tol):
    sample = draw_apart(n_classes, 300, separation, n_labels=6, seed=8)
    fit = sample.fit(ImplicitlyConstrainedLDA(tol=tol))
    assert fit.converged_
    assert 0 <= fit.gap_ <= tol
    assert gap_of_shares(sample, fit.responsibilities_) <= tol


def test_imputing_the_unlabeled_rows_gives_their_responsibilities(sample):
    fit = sample.fit(ImplicitlyConstrainedLDA())
    # Labels are nearly hard: scores of 1e9 make the last digit of a row the seventh of
    # a share.
    np.testing.assert_allclose(
        fit.impute(sample.X_unlabeled), fit.responsibilities_, atol=1e-9
    )


def test_marker_rows_come_first_in_the_responsibilities(sample):
    marked = sample.X_unlabeled[:7]
    apart = sample.X_unlabeled[7:]
    X = np.vstack([marked[:3], sample.X, marked[3:]])
    y = np.r_[[-1] * 3, sample.y, [-1] * 4]
    fit = ImplicitlyConstrainedLDA().fit(X, y, X_unlabeled=apart)
    expected = fit.impute(np.vstack([marked, apart]))
    np.testing.assert_allclose(fit.responsibilities_, expected, atol=1e-9)


def test_responsibilities_too_many_to_store_are_left_to_impute(sample, monkeypatch):
    n_entries = len(sample.X_unlabeled) * sample.n_classes
    monkeypatch.setattr(_implicitly_constrained, "_MAX_STORED_SHARES", n_entries)
    stored = sample.fit(ImplicitlyConstrainedLDA())
    assert stored.responsibilities_.size == n_entries
    monkeypatch.setattr(_implicitly_constrained, "_MAX_STORED_SHARES", n_entries - 1)
    fit = sample.fit(ImplicitlyConstrainedLDA())
    with pytest.raises(AttributeError, match=r"impute\(X\)"):
        _ = fit.responsibilities_
    np.testing.assert_allclose(
        fit.impute(sample.X_unlabeled), stored.responsibilities_, atol=1e-9
    )


def test_fixed_priors_are_kept_apart_from_the_class_weights(sample):
    priors = rising_shares(sample.n_classes)
    fit = sample.fit(ImplicitlyConstrainedLDA(priors=priors))
    assert_close(fit.priors_, priors, 1e-14)
    weights, means, covariance = fit_shares(sample.rows, everything(sample, fit))
    assert_close(fit.class_weights_, weights, 1e-8)
    assert np.abs(fit.class_weights_ - priors).max() > 1e-3
    value = labeled_log_likelihood(sample, priors, means, covariance)
    assert fit.objective_ == pytest.approx(value, abs=1e-8)
    total = total_covariance(fit.class_weights_, fit.means_, fit.covariance_)
    assert_close(total, np.cov(sample.rows.T, bias=True), 1e-10)


def test_a_problem_with_two_maxima_is_said_to_have_them():
    # Exchanging the two features changes nothing but the order of rows, so the mirror
    # image of a fit is as good as the fit itself: one that is not its own image is one
    # of two maxima.
    arm = np.array([[3.0, 0.0], [3.0, 1.0], [4.0, 0.0], [4.0, -1.0]])
    cross = np.vstack([arm, -arm, arm[:, ::-1], -arm[:, ::-1]])
    diagonal = np.array([[-4.0, -4.0], [-4.5, -4.5], [4.0, 4.0], [4.5, 4.5]])
    sample = Sample(diagonal, np.array([0, 0, 1, 1]), cross)
    fit = sample.fit(ImplicitlyConstrainedLDA())
    assert fit.converged_
    assert np.abs(fit.means_ - fit.means_[:, ::-1]).max() > 1
    mirrored = labeled_log_likelihood(
        sample, fit.priors_, fit.means_[:, ::-1], fit.covariance_[::-1, ::-1]
    )
    assert mirrored == pytest.approx(fit.objective_, abs=1e-9)
    assert fit.n_optima_ >= 2


@pytest.mark.parametrize("rare", [0, 1])
def test_a_class_of_a_single_row_among_many_is_found_in_few_passes(rare):
    rng = np.random.default_rng(3)
    X_unlabeled = rng.standard_normal((100_000, 5))
    X_unlabeled[50_000] += 8
    X = np.r_[rng.standard_normal((30, 5)), rng.standard_normal((2, 5)) + 8]
    y = np.r_[np.full(30, 1 - rare), np.full(2, rare)]
    fit = ImplicitlyConstrainedLDA(random_state=0).fit(X, y, X_unlabeled=X_unlabeled)
    assert fit.converged_
    assert fit.class_weights_[rare] < 1e-4
    assert fit.n_passes_ <= 15


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("separation", [0.5, 2.0, 10.0])
def test_large_problems_are_certified_too(n_classes, separation):
    sample = draw_apart(n_classes, 60_000, separation)
    fit = sample.fit(ImplicitlyConstrainedLDA())
    assert fit.converged_
    assert gap_of_shares(sample, fit.responsibilities_) <= 1e-6
    assert fit.n_passes_ <= {2: 40, 3: 60, 5: 100}[n_classes]
