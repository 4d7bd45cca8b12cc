import numpy as np
import pytest

from iclda import PessimisticLDA, SupervisedLDA
from tests.helpers.problems import draw_sample


def worst_change(fitted, sample):
    """Smallest change of the mean log likelihood over all labels, row by row."""
    supervised = SupervisedLDA(shrinkage=fitted.shrinkage_, priors=fitted.priors)
    supervised.fit(sample.X, sample.y)
    changes = [
        fitted.log_likelihood(sample.rows, np.full(len(sample.rows), k))
        - supervised.log_likelihood(sample.rows, np.full(len(sample.rows), k))
        for k in range(sample.n_classes)
    ]
    least = np.min(changes, axis=0)
    known = np.arange(len(sample.y))
    least[known] = np.array(changes)[sample.y, known]
    return least.mean()


def test_whatever_the_labels_are_the_training_rows_are_no_less_likely(sample):
    fitted = sample.fit(PessimisticLDA())
    worst = worst_change(fitted, sample)
    assert worst >= -1e-12
    assert worst == pytest.approx(fitted.objective_ - fitted.gap_, abs=1e-9)
    bounds = fitted.gain_bounds(sample.rows, sample.labels)
    assert bounds.worst == pytest.approx(worst, abs=1e-9)
    assert bounds.is_safe


def test_fixed_priors_keep_the_guarantee(sample):
    priors = np.arange(1.0, 1 + sample.n_classes)
    fitted = sample.fit(PessimisticLDA(priors=priors / priors.sum()))
    assert worst_change(fitted, sample) == pytest.approx(fitted.objective_, abs=1e-9)
    np.testing.assert_allclose(fitted.priors_, priors / priors.sum())


def test_no_other_classifier_has_a_better_worst_case(sample):
    fitted = sample.fit(PessimisticLDA())
    rng = np.random.default_rng(0)
    for _ in range(20):
        y = np.r_[
            sample.y, rng.integers(sample.n_classes, size=len(sample.X_unlabeled))
        ]
        other = SupervisedLDA().fit(sample.rows, y)
        assert (
            other.gain_bounds(sample.rows, sample.labels).worst
            <= fitted.objective_ + 1e-9
        )


def test_too_few_labels_are_an_error_that_names_shrinkage():
    sample = draw_sample(3, n_features=6, n_labeled=5, n_unlabeled=40)
    with pytest.raises(ValueError, match=r"span 3 of 6 dimensions.*shrinkage"):
        sample.fit(PessimisticLDA())
    fitted = sample.fit(PessimisticLDA(shrinkage=0.1))
    assert fitted.converged_
    assert fitted.objective_ >= 0


@pytest.mark.parametrize("shrinkage", [0.05, 0.5, "auto"])
def test_shrinkage_is_that_of_the_supervised_fit(sample, shrinkage):
    fitted = sample.fit(PessimisticLDA(shrinkage=shrinkage))
    assert fitted.converged_
    assert fitted.objective_ >= fitted.gap_ - 1e-12
    # With the penalty of shrinkage the guarantee is the same, whatever the labels are.
    s = fitted.shrinkage_
    d = sample.X.shape[1]
    nu = np.trace(np.cov(sample.rows.T, bias=True)) / d
    strength = s / (1 - s)

    def penalty(covariance):
        trace = np.trace(np.linalg.inv(covariance))
        return strength / 2 * (np.linalg.slogdet(covariance)[1] + nu * trace)

    supervised = SupervisedLDA(shrinkage=s).fit(sample.X, sample.y)
    penalized = worst_change(fitted, sample) - penalty(fitted.covariance_)
    penalized += penalty(supervised.covariance_)
    assert penalized == pytest.approx(fitted.objective_ - fitted.gap_, abs=1e-8)
