import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from iclda import SelfLearningLDA, SelfTrainingLDA, SupervisedLDA
from tests.helpers.changes import assert_close, assert_same_fit
from tests.helpers.problems import draw_sample


@pytest.mark.parametrize("threshold", [0.6, 0.75, 0.95])
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_with_shrinkage_it_is_that_of_scikit_learn(load, threshold):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    order = np.random.default_rng(1).permutation(len(y))
    y[order[20:]] = -1
    ours = SelfTrainingLDA(shrinkage=0.1, threshold=threshold).fit(X, y)
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1)
    theirs = SelfTrainingClassifier(lda, threshold=threshold, max_iter=None).fit(X, y)
    np.testing.assert_allclose(
        ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9
    )
    assert ours.n_added_ == (theirs.transduction_ >= 0).sum() - 20
    assert ours.converged_


def test_it_is_the_supervised_fit_to_the_rows_that_were_added(sample):
    fit = sample.fit(SelfTrainingLDA())
    sure = fit.predict_proba(sample.X_unlabeled).max(axis=1)
    assert 0 < fit.n_added_ <= len(sample.X_unlabeled)
    assert (sure >= 0.75).sum() <= fit.n_added_
    if fit.n_added_ == len(sample.X_unlabeled):
        labels = fit.predict(sample.X_unlabeled)
        whole = SupervisedLDA().fit(sample.rows, np.r_[sample.y, labels])
        assert (whole.predict(sample.rows) == fit.predict(sample.rows)).mean() > 0.9


def test_a_threshold_that_no_row_reaches_gives_the_supervised_fit(sample):
    far = sample.X_unlabeled * 0 + sample.X.mean(axis=0)
    fit = SelfTrainingLDA(threshold=1.0).fit(sample.X, sample.y, X_unlabeled=far)
    assert (fit.n_added_, fit.n_iter_) == (0, 1)
    assert_same_fit(fit, SupervisedLDA().fit(sample.X, sample.y), 1e-9)


def test_of_many_rows_a_sample_is_used(sample):
    fit = sample.fit(SelfTrainingLDA(max_rows=20))
    assert fit.n_added_ <= 20


def test_the_fit_is_the_supervised_one_by_its_own_labels(sample):
    fit = sample.fit(SelfLearningLDA())
    assert fit.converged_
    y = np.r_[sample.y, fit.predict(sample.X_unlabeled)]
    assert_same_fit(fit, SupervisedLDA().fit(sample.rows, y), 1e-10)


def test_fixed_priors_are_kept_apart_from_the_class_weights(sample):
    priors = np.full(sample.n_classes, 1 / sample.n_classes)
    fit = sample.fit(SelfLearningLDA(priors=priors))
    assert_close(fit.priors_, priors, 1e-14)
    y = np.r_[sample.y, fit.predict(sample.X_unlabeled)]
    assert_close(fit.class_weights_, np.bincount(y) / len(y), 1e-12)
    expected = SupervisedLDA(priors=priors).fit(sample.rows, y)
    assert_close(fit.coef_, expected.coef_, 1e-10)


@pytest.mark.parametrize("weights", [None, 2.0])
def test_a_class_gets_the_surest_rows_up_to_its_share(weights):
    sample = draw_sample(41, n_labeled=16, n_unlabeled=60, separation=1.0)
    free = sample.fit(SelfTrainingLDA(threshold=0.5))
    fitted = SelfTrainingLDA(threshold=0.5, proportions=[0.2, 0.8])
    n_rows = len(sample.rows)
    fitted.fit(
        sample.rows,
        sample.labels,
        None if weights is None else np.full(n_rows, weights),
    )
    shares = fitted.class_weights_ * (16 + fitted.n_added_) - np.bincount(sample.y)
    assert shares[0] == pytest.approx(12)
    assert free.n_added_ == 60
    assert 12 < fitted.n_added_ < 60
    first = SelfTrainingLDA(threshold=0.5, proportions=[0.2, 0.8], max_iter=2)
    with pytest.warns(ConvergenceWarning):
        sample.fit(first)
    surest = sample.fit(SupervisedLDA()).predict_proba(sample.X_unlabeled)[:, 0]
    expected = sample.X_unlabeled[np.argsort(-surest)[:12]]
    total = expected.sum(axis=0) + sample.X[sample.y == 0].sum(axis=0)
    assert first.means_[0] == pytest.approx(total / (12 + np.sum(sample.y == 0)))
