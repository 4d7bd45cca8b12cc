import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import SelfTrainingClassifier

from iclda import SupervisedLDA
from iclda.methods import BASELINES
from iclda.studies.compare.baselines import OutsideClassifier

RNG = np.random.default_rng(0)
CODES = np.arange(60) % 2
X = RNG.standard_normal((60, 3)) + CODES[:, None]
Y = np.array(["no", "yes"], dtype=object)[CODES]
Y[20:] = None


@pytest.mark.parametrize("method", BASELINES, ids=lambda method: method.name)
def test_every_baseline_is_fitted_to_labels_with_gaps(method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = OutsideClassifier(method.name).fit(X, Y)
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)
    assert set(fitted.predict(X)) <= {"no", "yes"}


def test_logistic_regression_is_that_of_scikit_learn_on_the_labeled_rows():
    expected = LogisticRegression(max_iter=1_000).fit(X[:20], CODES[:20]).predict_proba(X)
    assert_allclose(OutsideClassifier("sklearn-logistic").fit(X, Y).predict_proba(X), expected)


def test_self_training_takes_the_unlabeled_rows():
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    codes = np.where(np.arange(60) < 20, CODES, -1)
    expected = SelfTrainingClassifier(lda).fit(X, codes).predict_proba(X)
    assert_allclose(OutsideClassifier("sklearn-self-training").fit(X, Y).predict_proba(X), expected)


def test_shrunk_lda_of_scikit_learn_is_our_shrunk_supervised_fit():
    ours = SupervisedLDA(shrinkage="auto", unlabeled=None).fit(X, Y).predict_proba(X)
    assert_allclose(OutsideClassifier("sklearn-lda").fit(X, Y).predict_proba(X), ours, atol=1e-8)
