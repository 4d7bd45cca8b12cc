import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, RidgeClassifier

from iclda import (
    ImplicitlyConstrainedLeastSquares,
    LeastSquaresClassifier,
    SelfLearningLeastSquares,
)
from tests.helpers.problems import draw_sample, one_hot

FORMS = {
    "supervised": LeastSquaresClassifier(),
    "labeled": ImplicitlyConstrainedLeastSquares(),
    "projected": ImplicitlyConstrainedLeastSquares(variant="projected"),
    "self-learning": SelfLearningLeastSquares(),
    "soft": SelfLearningLeastSquares(labels="soft"),
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
constrained = pytest.mark.parametrize(
    "form", [FORMS["labeled"], FORMS["projected"]], ids=str
)


def predictions_by_labels(sample, shares, rows):
    """Of ordinary least squares on all rows with soft labels of the unlabeled ones."""
    targets = np.vstack([one_hot(sample.y, sample.n_classes), shares])
    return LinearRegression().fit(sample.rows, targets).predict(rows)


def value_of(form, sample, predicted, predicted_all):
    """Of the function that a form minimizes, by predictions of labeled and all rows."""
    if form.variant == "labeled":
        return (
            ((predicted - one_hot(sample.y, sample.n_classes)) ** 2).sum()
            / len(sample.y)
            / 2
        )
    supervised = LinearRegression().fit(sample.X, one_hot(sample.y, sample.n_classes))
    change = predicted_all - supervised.predict(sample.rows)
    return (change**2).sum() / len(sample.rows) / 2


def own_predictions(fit, rows):
    """(n, K), whatever the number of classes."""
    found = fit.decision_function(rows)
    return np.column_stack([1 - found, 1 + found]) / 2 if found.ndim == 1 else found


def test_the_supervised_fit_is_that_of_scikit_learn(sample):
    fit = LeastSquaresClassifier().fit(sample.X, sample.y)
    theirs = LinearRegression().fit(sample.X, one_hot(sample.y, sample.n_classes))
    expected = theirs.predict(sample.X_unlabeled)
    assert_allclose(own_predictions(fit, sample.X_unlabeled), expected, atol=1e-9)
    ridge = RidgeClassifier(alpha=1e-10).fit(sample.X, sample.y)
    assert (fit.predict(sample.X_unlabeled) == ridge.predict(sample.X_unlabeled)).all()
    truth = np.arange(len(sample.X_unlabeled)) % sample.n_classes
    loss = ((expected - one_hot(truth, sample.n_classes)) ** 2).sum(axis=1) / 2
    assert_allclose(fit.squared_loss(sample.X_unlabeled, truth), loss, atol=1e-9)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fit.squared_loss(sample.X_unlabeled, truth[:-1])


@constrained
def test_no_labeling_has_a_smaller_value(sample, form):
    fit = sample.fit(form)
    assert fit.converged_
    found = value_of(
        form, sample, own_predictions(fit, sample.X), own_predictions(fit, sample.rows)
    )
    assert found == pytest.approx(fit.objective_, abs=1e-10)
    rng = np.random.default_rng(0)
    best = fit.predict_proba(sample.X_unlabeled)
    for softness in (0.0, 0.5, 1.0):
        for _ in range(20):
            shares = rng.dirichlet(np.ones(sample.n_classes), size=len(best))
            shares = softness * shares + (1 - softness) * one_hot(
                best.argmax(axis=1), sample.n_classes
            )
            value = value_of(
                form,
                sample,
                predictions_by_labels(sample, shares, sample.X),
                predictions_by_labels(sample, shares, sample.rows),
            )
            assert value >= found - fit.gap_ - 1e-12


def violations(seeds, n_classes=2):
    """Squared loss of all training rows, with true labels, over the supervised one."""
    found = []
    for seed in seeds:
        n_features = 1 + seed % 7
        sample = draw_sample(
            [1602, seed],
            n_classes=n_classes,
            n_features=n_features,
            n_labeled=n_classes + n_features + 1 + seed % 5,
            n_unlabeled=5 + seed % 50,
            separation=(0.1, 1.0, 3.0)[seed % 3],
            freedom=(None, 2)[seed % 2],
        )
        fit = sample.fit(FORMS["projected"])
        supervised = LeastSquaresClassifier().fit(sample.X, sample.y)
        # Any labels will do, also those that no model would give.
        hidden = np.random.default_rng(seed).integers(
            n_classes, size=len(sample.X_unlabeled)
        )
        truth = np.r_[sample.y, hidden]
        ours, theirs = (
            each.squared_loss(sample.rows, truth).mean() for each in (fit, supervised)
        )
        found.append(ours - theirs)
    return np.array(found)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_whatever_the_labels_are_the_projected_fit_has_no_larger_squared_loss(
    n_classes,
):
    changes = violations(range(60), n_classes)
    assert changes.max() <= 1e-9
    assert changes.min() < -1e-3


def test_self_learning_ends_where_its_labels_give_the_same_fit_again(sample):
    fit = sample.fit(SelfLearningLeastSquares())
    assert fit.converged_
    own = one_hot(fit.predict(sample.X_unlabeled), sample.n_classes)
    expected = predictions_by_labels(sample, own, sample.rows)
    assert_allclose(own_predictions(fit, sample.rows), expected, atol=1e-9)


def mean_loss(predicted, targets):
    return ((predicted - targets) ** 2).sum(axis=1).mean() / 2


def nearest_shares(predicted):
    """Euclidean projection on the simplex, by bisection of the shift of every row."""
    low = predicted.min(axis=1) - 1
    high = predicted.max(axis=1)
    for _ in range(100):
        middle = (low + high) / 2
        is_much = np.maximum(predicted - middle[:, None], 0).sum(axis=1) > 1
        low = np.where(is_much, middle, low)
        high = np.where(is_much, high, middle)
    return np.maximum(predicted - low[:, None], 0)


def test_soft_labels_are_the_nearest_to_predictions_and_give_the_same_fit_again(sample):
    fit = sample.fit(FORMS["soft"])
    assert fit.converged_
    own = nearest_shares(own_predictions(fit, sample.X_unlabeled))
    expected = predictions_by_labels(sample, own, sample.rows)
    assert_allclose(own_predictions(fit, sample.rows), expected, atol=1e-9)
    targets = np.vstack([one_hot(sample.y, sample.n_classes), own])
    assert fit.objective_ == pytest.approx(mean_loss(expected, targets), abs=1e-12)
    assert_allclose(fit.class_weights_, targets.mean(axis=0), atol=1e-12)


def test_no_other_labels_agree_better_with_their_fit_than_the_soft_ones(sample):
    hard = sample.fit(FORMS["self-learning"])
    soft = sample.fit(FORMS["soft"])
    own = one_hot(hard.predict(sample.X_unlabeled), sample.n_classes)
    rng = np.random.default_rng(0)
    drawn = [rng.dirichlet(np.ones(sample.n_classes), size=len(own)) for _ in range(20)]
    near = nearest_shares(own_predictions(soft, sample.X_unlabeled))
    for shares in (own, *drawn, *(0.99 * near + 0.01 * other for other in drawn)):
        targets = np.vstack([one_hot(sample.y, sample.n_classes), shares])
        predicted = predictions_by_labels(sample, shares, sample.rows)
        assert mean_loss(predicted, targets) >= soft.objective_ - 1e-12
    expected = np.vstack([one_hot(sample.y, sample.n_classes), own])
    loss = mean_loss(own_predictions(hard, sample.rows), expected)
    assert hard.objective_ == pytest.approx(loss, abs=1e-10)


@every_form
def test_predictions_do_not_depend_on_the_units_of_the_features(sample, form):
    A = np.array([[2.0, 0.3, 0.0], [0.0, 1e3, 0.5], [1.0, 0.0, 1e-2]])
    before = sample.fit(form).decision_function(sample.rows)
    after = form.fit(sample.X @ A + 7, sample.y, X_unlabeled=sample.X_unlabeled @ A + 7)
    assert_allclose(after.decision_function(sample.rows @ A + 7), before, atol=1e-6)


@every_form
def test_probabilities_are_clipped_predictions(sample, form):
    fit = sample.fit(form)
    far = np.vstack([sample.rows, 100 * sample.rows])
    found = fit.predict_proba(far)
    predicted = own_predictions(fit, far)
    expected = np.maximum(predicted, 0)
    assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), atol=1e-12)
    assert (fit.classes_[found.argmax(axis=1)] == fit.predict(far)).all()
    with np.errstate(divide="ignore"):
        assert_allclose(fit.predict_log_proba(far), np.log(found))


@pytest.mark.parametrize("name", FORMS)
def test_fewer_labels_than_features_have_a_fit(name):
    sample = draw_sample(3, n_features=8, n_labeled=5, n_unlabeled=30)
    if name != "supervised":
        fit = sample.fit(FORMS[name])
        assert fit.converged_
        assert np.isfinite(fit.coef_).all()
        return
    message = "Rows span 4 of 8 dimensions: along 4 of 8 directions, rows differ by"
    with pytest.warns(UserWarning, match=message):
        fit = sample.fit(FORMS[name])
    assert_allclose(fit.squared_loss(sample.X, sample.y), 0, atol=1e-20)


@constrained
def test_many_rows_are_read_a_few_times_and_the_gap_is_closed(form):
    sample = draw_sample(9, n_classes=3, n_features=4, n_labeled=15, n_unlabeled=60_000)
    fit = sample.fit(form)
    assert fit.converged_
    assert fit.gap_ <= fit.tol
    assert 2 <= fit.n_passes_ <= 20
