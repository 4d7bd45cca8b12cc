"""Methods of scikit-learn under names of comparisons, fitted to labels with gaps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from iclda import FitError, load_model, save_model
from iclda._estimators.outside import OutsideClassifier
from iclda.methods import BASELINES

LDA = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
EXPECTED = {
    "sklearn-logistic": LogisticRegression(max_iter=1_000),
    "sklearn-self-training": SelfTrainingClassifier(LDA),
    "sklearn-label-spreading": LabelSpreading(kernel="knn", max_iter=1_000),
    "sklearn-lda": LDA,
    "sklearn-forest": RandomForestClassifier(random_state=0),
}


def rows_and_labels(n_labeled=20):
    """120 rows of two classes, of which the first ones are labeled."""
    rng = np.random.default_rng(0)
    codes = np.arange(120) % 2
    X = rng.normal(size=(120, 3)) + 2.0 * codes[:, None]
    y = np.array(["no", "yes"], dtype=object)[codes]
    y[n_labeled:] = None
    return X, y, codes


@pytest.mark.parametrize("method", BASELINES, ids=lambda method: method.name)
def test_a_fit_is_that_of_scikit_learn_and_is_the_same_after_storing(method, tmp_path):
    X, y, codes = rows_and_labels()
    used = slice(None) if method.uses_unlabeled else slice(20)
    marked = np.where(np.arange(120) < 20, codes, -1)
    expected = EXPECTED[method.name].fit(X[used], marked[used])
    fitted = method.classifier().set_params(unlabeled=None).fit(X, y)
    assert_allclose(fitted.predict_proba(X), expected.predict_proba(X))
    assert (
        fitted.predict(X).tolist()
        == np.array(["no", "yes"])[expected.predict(X)].tolist()
    )
    save_model(fitted, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops")
    assert_allclose(again.predict_proba(X), fitted.predict_proba(X))


def test_rows_that_no_label_spreads_to_have_the_shares_of_the_classes():
    X, y, _ = rows_and_labels()
    far = np.random.default_rng(1).normal(size=(20, 3)) + 1e6
    rows = np.vstack([X, far])
    labels = np.append(y, [None] * 20)
    fitted = OutsideClassifier("sklearn-label-spreading", unlabeled=None).fit(
        rows, labels
    )
    assert_allclose(fitted.predict_proba(far), 0.5)


@pytest.mark.parametrize("method", BASELINES, ids=lambda method: method.name)
def test_too_few_labels_for_a_method_are_an_error_of_the_fit_that_counts_them(method):
    X, y, _ = rows_and_labels(n_labeled=2)
    classifier = OutsideClassifier(method.name, unlabeled=None)
    if method.name not in ("sklearn-lda", "sklearn-self-training"):
        assert len(classifier.fit(X, y).predict(X)) == 120
        return
    message = f"{method.name} needs more labels than classes, got 2 labels of 2 classes"
    with pytest.raises(FitError, match=message):
        classifier.fit(X, y)
