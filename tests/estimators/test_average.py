"""The average of several fits, its weights, and what held-out labels say of it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclda import AverageLDA, ExpectationMaximizationLDA, SupervisedLDA
from iclda._core.rows import Memory
from iclda._core.solvers.anchored import Course, rule_at, starting_rules
from iclda._estimators import averaging
from iclda._rows.memory import MemoryRows
from tests.helpers.changes import assert_same_fit
from tests.helpers.problems import Sample, draw_sample, problem_of


def clusters(
    n_classes=5, n_labels=1, n_features=20, n_unlabeled=400, separation=1.2, shares=None
):
    """Rows of separated classes in many dimensions, labels, and true classes."""
    rng = np.random.default_rng(0)
    hidden = rng.choice(n_classes, size=n_unlabeled, p=shares)
    true = np.r_[np.repeat(np.arange(n_classes), n_labels), hidden]
    centers = separation * rng.standard_normal((n_classes, n_features))
    rows = centers[true] + rng.standard_normal((len(true), n_features))
    return rows, np.where(np.arange(len(true)) < n_classes * n_labels, true, -1), true


@pytest.mark.parametrize("n_labels", [1, 3])
def test_unlabeled_rows_help_where_classes_are_clusters(n_labels):
    rows, labels, true = clusters(n_labels=n_labels)
    fitted = AverageLDA().fit(rows, labels)
    supervised = SupervisedLDA(shrinkage=0.5).fit(rows, labels)
    assert fitted.score(rows, true) > 0.97
    assert fitted.score(rows, true) > supervised.score(rows, true)


def test_more_classes_than_can_be_held_out_are_refused():
    y = np.r_[np.repeat(np.arange(2_001), 2), [-1] * 10]
    rows = np.random.default_rng(0).normal(size=(len(y), 2))
    message = "AverageLDA takes at most 2,000 classes, and there are 2,001: use"
    with pytest.raises(ValueError, match=message):
        AverageLDA().fit(rows, y)


def test_members_are_weighed_by_their_errors_on_held_out_labels():
    rows, labels, _ = clusters(n_labels=4, separation=0.5)
    weights = AverageLDA().fit(rows, labels).member_weights_
    assert list(weights) == ["em", "annealed", "labeled shares", "logistic"]
    assert_allclose(sum(weights.values()), 1)
    # Rows are clusters.
    assert weights["em"] > weights["logistic"]


def test_without_labels_to_hold_out_weights_are_fixed():
    rows, labels, _ = clusters(n_labels=1)
    weights = AverageLDA().fit(rows, labels).member_weights_
    assert_allclose(list(weights.values()), np.array([2, 2, 1, 1]) / 6)


def test_probabilities_are_as_sure_as_held_out_labels_allow():
    def mean_confidence(rows):
        fitted = AverageLDA().fit(rows, labels)
        return fitted.predict_proba(rows).max(axis=1).mean()

    rows, labels, _ = clusters(n_classes=3, n_labels=12)
    # Noise says nothing about the classes.
    noise = np.random.default_rng(1).standard_normal(rows.shape)
    assert mean_confidence(rows) > 0.9
    assert mean_confidence(noise) < 0.6


def test_proportions_that_are_known_help():
    shares = [0.8, 0.1, 0.1]
    rows, labels, true = clusters(
        n_classes=3,
        n_labels=2,
        n_features=30,
        separation=0.55,
        shares=shares,
        n_unlabeled=1_000,
    )
    free = AverageLDA().fit(rows, labels)
    known = AverageLDA(proportions=shares).fit(rows, labels)
    assert known.score(rows, true) > free.score(rows, true)
    assert list(known.member_weights_) == ["em", "annealed", "logistic"]


def test_shares_of_chosen_labels_can_be_left_unused():
    # Four of five labels are of class 0, and the other classes have most of the rows.
    rows, _, true = clusters(n_classes=3, n_labels=4, separation=0.4)
    kept = np.r_[np.flatnonzero(true == 0)[:16], [5, 6], [9, 10]]
    labels = np.where(np.isin(np.arange(len(true)), kept), true, -1)
    free = AverageLDA(proportions="free").fit(rows, labels)
    assert list(free.member_weights_) == ["em", "annealed", "logistic"]
    misled = AverageLDA().fit(rows, labels)
    assert list(misled.member_weights_)[2] == "labeled shares"
    assert (free.predict(rows) == 0).sum() < (misled.predict(rows) == 0).sum()


@pytest.mark.parametrize("n_features", [20, 64])
def test_weight_2_is_a_row_twice(n_features):
    rows, labels, _ = clusters(n_labels=3, n_unlabeled=60, n_features=n_features)
    weights = np.where(labels < 0, 2.0, 1.0)
    is_twice = np.repeat(np.arange(len(rows)), weights.astype(int))
    weighted = AverageLDA().fit(rows, labels, sample_weight=weights)
    assert_same_fit(weighted, AverageLDA().fit(rows[is_twice], labels[is_twice]), 1e-8)


def test_few_rows_of_many_features_are_fitted_in_their_own_space():
    rows, labels, true = clusters(n_features=600, n_unlabeled=80, n_labels=2)
    fitted = AverageLDA().fit(rows, labels)
    assert fitted.coef_.shape == (5, 600)
    assert fitted.score(rows, true) > 0.97


def test_all_unlabeled_rows_are_read_as_often_as_it_says(monkeypatch):
    counts = []
    label_sums = MemoryRows.label_sums

    def counted(self, *args, **options):
        counts.append(self.n_rows)
        return label_sums(self, *args, **options)

    monkeypatch.setattr(MemoryRows, "label_sums", counted)
    rows, labels, _ = clusters(n_labels=1)
    fitted = AverageLDA().fit(rows, labels)
    # One pass more is that of the moments.
    assert fitted.n_passes_ == 1 + sum(n == 400 for n in counts)


def fits_on_device_and_in_memory(rows, labels, **parameters):
    """Fit rows whose unlabeled ones are on a device, and all of them in memory."""
    strict = pytest.importorskip("array_api_strict")
    is_labeled = labels >= 0
    unlabeled = rows[~is_labeled]
    # This device counts as a fast one: see ``ArrayRows.held_at``.
    placed = strict.asarray(unlabeled, device=strict.Device("device1"))
    known = rows[is_labeled], labels[is_labeled]
    on_device = AverageLDA(**parameters).fit(*known, X_unlabeled=placed)
    return on_device, AverageLDA(**parameters).fit(*known, X_unlabeled=unlabeled)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_features", [5, 64])
@pytest.mark.parametrize("priors", [None, "given"])
def test_members_are_fitted_on_the_device_of_the_rows(n_classes, n_features, priors):
    rows, labels, _ = clusters(
        n_classes=n_classes, n_labels=4, n_features=n_features, separation=0.7
    )
    if priors is not None:
        priors = np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum()
    fitted, in_memory = fits_on_device_and_in_memory(rows, labels, priors=priors)
    assert_same_fit(fitted, in_memory, 1e-7)
    assert_allclose(
        fitted.held_out_probabilities_, in_memory.held_out_probabilities_, atol=1e-7
    )
    assert fitted.error_ == pytest.approx(in_memory.error_)


# On a device they are fitted in all features, in memory in the space of the rows.
@pytest.mark.parametrize("shrinkage", ["auto", None])
@pytest.mark.parametrize("view", ["auto", None])
@pytest.mark.filterwarnings("ignore:Rows span 131 of 300 dimensions")
def test_more_features_than_rows_get_the_same_fit_on_a_device(shrinkage, view):
    rows, labels, _ = clusters(
        n_classes=3, n_labels=4, n_features=300, n_unlabeled=120, separation=0.3
    )
    # Columns in several units, far from zero.
    rows = rows * np.where(np.arange(300) % 2, 3.0, 1.0) + 1.0
    found, expected = fits_on_device_and_in_memory(
        rows, labels, shrinkage=shrinkage, view=view
    )
    assert_same_fit(found, expected, 1e-7)
    assert_allclose(
        found.held_out_probabilities_, expected.held_out_probabilities_, atol=1e-7
    )
    new = np.random.default_rng(5).standard_normal((20, 300)) + 1.0
    assert_allclose(found.predict_proba(new), expected.predict_proba(new), atol=1e-7)
    assert_allclose(
        found.log_likelihood(new, [0] * 20), expected.log_likelihood(new, [0] * 20)
    )


def test_their_work_is_bounded_alike_on_a_device(monkeypatch):
    # In memory there are half as many coordinates as features.
    rows, labels, _ = clusters(
        n_classes=3, n_labels=4, n_features=300, n_unlabeled=138, separation=0.3
    )
    monkeypatch.setattr(averaging, "_MIN_SAMPLE_ROWS", 10)
    monkeypatch.setattr(averaging, "_SAMPLE_WORK", 60 * 150 * 3)
    monkeypatch.setattr(averaging, "_LOGISTIC_WORK", 12 * 12 * 150 * 3)
    monkeypatch.setattr(averaging, "_LOGISTIC_TOL", 0.0)
    found, expected = fits_on_device_and_in_memory(rows, labels)
    assert_same_fit(found, expected, 1e-7)
    assert_allclose(
        found.held_out_probabilities_, expected.held_out_probabilities_, atol=1e-7
    )


@pytest.mark.parametrize("n_classes", [2, 5])
def test_rotated_features_get_the_same_probabilities(n_classes):
    n_features = 64
    rows, labels, _ = clusters(
        n_classes=n_classes, n_labels=4, n_features=n_features, separation=0.5
    )
    # Where one column separates the classes, its entry is most of the gradient.
    rows[:, 0] *= 3.0
    rng = np.random.default_rng(2)
    rotation = np.linalg.qr(rng.standard_normal((n_features, n_features)))[0]
    fitted = AverageLDA(view=None).fit(rows, labels)
    rotated = AverageLDA(view=None).fit(rows @ rotation, labels)
    # If single entries of a gradient ended logistic regression, some would differ by
    # 1e-5 to 1e-2.
    assert_allclose(
        rotated.predict_proba(rows @ rotation), fitted.predict_proba(rows), atol=1e-8
    )
    assert_array_equal(rotated.predict(rows @ rotation), fitted.predict(rows))
    assert_allclose(
        rotated.held_out_probabilities_, fitted.held_out_probabilities_, atol=1e-8
    )


def test_without_unlabeled_rows_it_is_supervised_lda():
    sample = draw_sample(4)
    with pytest.warns(UserWarning, match="got no unlabeled rows"):
        fitted = AverageLDA(shrinkage=None).fit(sample.X, sample.y)
    supervised = SupervisedLDA(view="standardize").fit(sample.X, sample.y)
    assert_array_equal(fitted.coef_, supervised.coef_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_given_priors_are_those_that_predict(n_classes):
    sample = draw_sample(1, n_classes=n_classes)
    weights = np.array([0.2, 0.8, 0.5])[:n_classes]
    priors = weights / weights.sum()
    assert_allclose(sample.fit(AverageLDA(priors=priors)).priors_, priors, rtol=1e-6)


def test_with_many_features_labels_spread_to_neighbors():
    # Each class is a chain of rows, and on half of it the nearer label is that of the
    # other class.
    chain = np.zeros((60, 64))
    chain[:, 0] = np.linspace(0, 6, 60)
    rows = np.concatenate([chain, chain + 3 * np.eye(64)[1]])
    rows += 0.01 * np.random.default_rng(0).standard_normal(rows.shape)
    true = np.repeat([0, 1], 60)
    given = [0, 119]
    sample = Sample(rows[given], true[given], np.delete(rows, given, axis=0))
    problem = replace(problem_of(sample, shrinkage=0.1), has_network_features=True)
    labeled = problem.frame.apply(sample.X), sample.y, np.ones(2)
    every = problem.frame.apply(rows)
    start = averaging._find_neighbors(problem, labeled).spread(sample.y, 2)
    rules = starting_rules(problem, [Course((0.1,)), Course((0.1,), start=start)])
    nearest = rule_at(rules, 0, Memory()).scores(every).argmax(axis=0)
    spread = rule_at(rules, 1, Memory()).scores(every).argmax(axis=0)
    assert np.mean(nearest == true) < 0.8
    assert np.mean(spread == true) > 0.95


def test_equal_rows_of_two_classes_do_not_hide_a_class_with_one_label():
    rows, labels, _ = clusters(n_labels=2, n_features=64, n_classes=3)
    # All labels of class 0, and one of class 1.
    rows[0] = rows[1] = rows[2]
    fitted = AverageLDA().fit(rows, labels)
    assert fitted.predict_proba(rows).shape == (len(rows), 3)
    assert np.isfinite(fitted.coef_).all()


@pytest.mark.parametrize("n_features", [5, 64])
@pytest.mark.filterwarnings("ignore:Rows span 0 of")
def test_rows_that_are_all_equal_get_the_shares_of_the_labels(n_features):
    rows = np.ones((50, n_features))
    labels = np.r_[[0, 1, 2] * 2, [-1] * 44]
    fitted = AverageLDA().fit(rows, labels)
    assert_allclose(fitted.predict_proba(rows[:1]), np.full((1, 3), 1 / 3))
    learned = ExpectationMaximizationLDA(proportions="auto").fit(rows, labels)
    assert np.isfinite(learned.predict_proba(rows[:1])).all()


def test_the_error_does_not_depend_on_the_order_of_the_rows():
    rows, labels, _ = clusters(n_labels=6, separation=0.4)
    fitted = AverageLDA().fit(rows, labels)
    order = np.random.default_rng(1).permutation(len(rows))
    other = AverageLDA().fit(rows[order], labels[order])
    assert 0 < fitted.error_ < 1
    assert_allclose(other.error_, fitted.error_)
    assert_allclose(other.error_interval_, fitted.error_interval_)
