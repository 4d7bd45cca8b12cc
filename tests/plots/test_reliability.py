"""Predicted against observed probabilities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import calibration_curve

from iclda import SupervisedLDA
from iclda.plots import ReliabilityDisplay

RNG = np.random.default_rng(3)
PROBABILITIES = RNG.uniform(size=400) ** 2
TRUE = (RNG.uniform(size=400) < PROBABILITIES).astype(int)


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose rows are the probabilities that it predicts."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X, X]) if X.shape[1] == 1 else X


def drawn_of(y, X=PROBABILITIES, **options):
    X = np.reshape(X, (len(y), -1))
    return ReliabilityDisplay.from_estimator(Given().fit(X, y), X, y, **options)


@pytest.mark.parametrize(("n_bins", "decimals"), [(4, 9), (10, 2)])
def test_bins_are_those_of_scikit_learn(n_bins, decimals):
    # To two decimals, many lie on edges.
    rounded = PROBABILITIES.round(decimals)
    display = drawn_of(TRUE, rounded, n_bins=n_bins)
    curve = display.curves["Given"]
    observed, predicted = calibration_curve(TRUE, rounded, n_bins=n_bins)
    is_full = curve.counts > 0
    assert_allclose(curve.observed[is_full], observed)
    assert_allclose(curve.predicted[is_full], predicted)
    assert curve.counts.sum() == 400
    assert_allclose(display.lines_["Given"].get_ydata(), observed)


def test_the_calibration_error_is_the_mean_distance_from_the_diagonal():
    curve = drawn_of(TRUE).curves["Given"]
    place = np.minimum((PROBABILITIES * 10).astype(int), 9)
    expected = sum(
        np.mean(place == b) * abs(np.mean((PROBABILITIES - TRUE)[place == b]))
        for b in range(10)
    )
    assert curve.calibration_error == pytest.approx(expected)


def test_of_two_classes_the_second_is_meant_unless_another_is_named():
    both = np.column_stack([1 - PROBABILITIES, PROBABILITIES])
    names = np.array(["no", "yes"])[TRUE]
    second = drawn_of(names, both)
    assert second.ax_.get_xlabel() == "Predicted probability of class yes"
    assert_allclose(
        second.curves["Given"].counts, drawn_of(TRUE, both).curves["Given"].counts
    )
    first = drawn_of(names, both, pos_label="no")
    assert_array_equal(
        first.curves["Given"].counts, second.curves["Given"].counts[::-1]
    )


def test_of_more_classes_the_predicted_one_is_meant():
    shares = RNG.dirichlet([1, 1, 1], size=300)
    truth = RNG.integers(3, size=300)
    display = drawn_of(truth, shares, n_bins=1)
    curve = display.curves["Given"]
    assert curve.observed[0] == pytest.approx(np.mean(shares.argmax(axis=1) == truth))
    assert curve.predicted[0] == pytest.approx(shares.max(axis=1).mean())
    assert display.ax_.get_xlabel() == "Predicted probability of the predicted class"
    one = drawn_of(truth, shares, pos_label=2, n_bins=1).curves["Given"]
    assert one.observed[0] == pytest.approx(np.mean(truth == 2))


def test_several_classifiers_are_named_with_their_errors(fitted):
    f = fitted(2, 2)
    models = {"LDA": SupervisedLDA().fit(f.X, f.y), "SLLDA": f.model}
    display = ReliabilityDisplay.from_estimator(models, f.X, f.true)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == [
        f"{name}  {curve.calibration_error:.3f}"
        for name, curve in display.curves.items()
    ]
    assert len({line.get_marker() for line in display.lines_.values()}) == 2
    single = ReliabilityDisplay.from_estimator(f.model, f.X, f.y)
    # Labeled rows only.
    assert single.curves["SelfLearningLDA"].counts.sum() == 24
    with pytest.raises(ValueError, match="y labels none of the 80 rows"):
        ReliabilityDisplay.from_estimator(f.model, f.X, np.full(80, -1))
    with pytest.raises(ValueError, match=r"same classes.*'three': \[0, 1, 2\]"):
        ReliabilityDisplay.from_estimator(
            {**models, "three": fitted(3, 2).model}, f.X, f.true
        )


def test_settings_reach_what_they_are_for():
    bare = drawn_of(TRUE, legend=False, linewidth=5)
    assert bare.lines_["Given"].get_linewidth() == 5
    assert bare.ax_.get_legend() is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pos_label": 7}, r"pos_label must be one of the classes \[0, 1\], got 7"),
        ({"n_bins": 0}, "n_bins must be a whole number of at least 1, got 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        drawn_of(TRUE, **arguments)


def test_bars_are_as_long_as_the_rows_are_few():
    curve = drawn_of([0, 1, 1, 1], [0.05, 0.95, 0.96, 0.97]).curves["Given"]
    low, high = curve.interval
    assert_allclose([low[0], high[0]], [0, 0.5])
    assert_allclose([low[9], high[9]], [0.75, 1])
