"""A classifier that may answer "none of these classes"."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import cross_val_score

from iclda import (
    AverageLDA,
    LeastSquaresClassifier,
    OpenSetClassifier,
    ParameterError,
    SupervisedLDA,
    load_model,
    save_model,
)

# An unknown class moves the mean of the unlabeled rows.
pytestmark = pytest.mark.filterwarnings("ignore:The unlabeled rows seem")
RNG = np.random.default_rng(45)
Y = np.arange(300) % 3
X = RNG.normal(size=(300, 4)) + 5 * np.eye(3, 4)[Y]
# The last class has no label.
IS_LABELED = (Y < 2) & (np.arange(300) < 120)


def test_rows_whose_novelty_exceeds_one_minus_alpha_get_the_name():
    labels = np.where(IS_LABELED, Y, -1)
    for alpha in (0.05, 0.3):
        fitted = OpenSetClassifier(AverageLDA(), alpha=alpha, name=9).fit(X, labels)
        predicted = fitted.predict(X)
        is_named = fitted.novelty(X) > 1 - alpha
        assert_array_equal(predicted == 9, is_named)
        expected = fitted.estimator_.predict(X)
        assert_array_equal(predicted[~is_named], expected[~is_named])
        assert is_named[Y == 2].mean() > 0.5
        assert_array_equal(fitted.classes_, [0, 1])
        assert fitted.predict_proba(X).shape == (300, 2)


@pytest.mark.parametrize("name", ["other", -5, 2.5, None])
@pytest.mark.parametrize("kind", ["numbers", "text"])
def test_classes_and_name_keep_their_types(name, kind):
    classes = np.array([0, 1]) if kind == "numbers" else np.array(["a", "b"])
    labels = np.full(300, None, dtype=object)
    labels[IS_LABELED] = classes[Y[IS_LABELED]]
    fitted = OpenSetClassifier(AverageLDA(), name=name).fit(X, labels)
    found = set(fitted.predict(X).tolist())
    assert found == {*classes.tolist(), name}


def test_a_name_that_is_a_class_is_refused():
    with pytest.raises(ParameterError, match="name = 1 is a class in y"):
        OpenSetClassifier(AverageLDA(), name=1).fit(X, np.where(IS_LABELED, Y, -1))


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 5, None, "x"])
def test_alpha_is_a_share(alpha):
    with pytest.raises(ParameterError, match=f"between 0 and 1, got {alpha!r}"):
        OpenSetClassifier(alpha=alpha).fit(X, Y)


def test_the_score_counts_classes_and_names_of_any_kind():
    fitted = OpenSetClassifier(AverageLDA()).fit(X, np.where(IS_LABELED, Y, -1))
    truth = np.where(Y == 2, "other", Y.astype(object))
    predicted = fitted.predict(X)
    expected = np.mean([a == b for a, b in zip(truth, predicted, strict=True)])
    assert fitted.score(X, truth) == expected > 0.8
    assert fitted.score(X, Y) == np.mean(predicted == Y) < expected
    scores = cross_val_score(OpenSetClassifier(SupervisedLDA()), X, Y, cv=3)
    assert (scores > 0.5).all()
    with pytest.raises(ValueError, match="X has 300 rows, y has 299 labels"):
        fitted.score(X, truth[1:])


def test_a_classifier_without_novelty_is_refused():
    with pytest.raises(ValueError, match="LeastSquaresClassifier has no Gaussian"):
        OpenSetClassifier(LeastSquaresClassifier()).fit(X, Y)


def test_it_can_be_saved(tmp_path):
    fitted = OpenSetClassifier(AverageLDA()).fit(X, np.where(IS_LABELED, Y, -1))
    save_model(fitted, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.estimator_._known_rows_ is None
