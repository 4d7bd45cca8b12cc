import numpy as np
import pytest

from changes import (
    assert_close,
)
from iclda import NormalizedLDA, SupervisedLDA
from problems import draw_sample, fit_shares, one_hot


def test_means_are_of_the_labeled_rows_and_the_covariance_of_all(sample):
    fit = sample.fit(NormalizedLDA())
    weights, means, _ = fit_shares(sample.X, one_hot(sample.y, sample.n_classes))
    assert_close(fit.class_weights_, weights, 1e-12)
    assert_close(fit.means_, means, 1e-12)
    assert_close(fit.covariance_, np.cov(sample.rows.T, bias=True), 1e-12)


def test_with_every_label_and_equal_classes_it_predicts_what_lda_predicts():
    sample = draw_sample(5, n_features=3, n_labeled=40)
    rows, y = sample.X[:40], np.arange(40) % 2
    # The same rows again, unlabeled: all moments are those of the labeled rows.
    fit = NormalizedLDA().fit(rows, y, X_unlabeled=rows)
    lda = SupervisedLDA().fit(rows, y)
    direction = fit.coef_[0] / np.linalg.norm(fit.coef_[0])
    assert_close(direction, lda.coef_[0] / np.linalg.norm(lda.coef_[0]), 1e-9)
    assert (fit.predict(sample.X_unlabeled) == lda.predict(sample.X_unlabeled)).all()


@pytest.mark.parametrize("shrinkage", [0.1, 0.9])
def test_shrinkage_is_that_of_the_covariance_of_all_rows(sample, shrinkage):
    fit = sample.fit(NormalizedLDA(shrinkage=shrinkage))
    total = np.cov(sample.rows.T, bias=True)
    expected = (1 - shrinkage) * total + shrinkage * np.trace(total) / 3 * np.eye(3)
    assert_close(fit.covariance_, expected, 1e-12)


def test_one_label_a_class_is_enough():
    sample = draw_sample(4, n_features=8, n_labeled=2)
    with pytest.warns(UserWarning, match="one labeled row only"):
        fit = sample.fit(NormalizedLDA())
    assert_close(fit.means_, sample.X, 1e-12)
    assert fit.rank_ == 8
