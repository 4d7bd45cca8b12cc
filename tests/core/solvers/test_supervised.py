from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf_shrinkage, oas, shrunk_covariance

from iclda import ExpectationMaximizationLDA, MomentConstrainedLDA, SelfLearningLDA
from iclda._core.frame import Frame, frame_of
from iclda._core.labelsums import GivenLabels
from iclda._core.problem import summarize_labeled
from iclda._core.solvers.supervised import (
    gains_over,
    ledoit_wolf,
    oracle_approximating,
    shrink_each_class,
    shrink_labeled,
    supervised_reference,
)
from iclda._rows.memory import MemoryRows
from problems import draw_sample, log_joint, one_hot, parameters, problem_of, random_shares

RNG = np.random.default_rng(12)


@pytest.mark.parametrize(("n_rows", "n_features"), [(30, 3), (8, 8), (5, 20), (200, 1)])
def test_ledoit_wolf_is_scikit_learns(n_rows, n_features):
    rows = RNG.standard_normal((n_rows, n_features)) * np.arange(1, n_features + 1)
    expected = ledoit_wolf_shrinkage(rows)
    assert ledoit_wolf(rows, np.ones(n_rows)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("factor", [1e-160, 1e160])
def test_ledoit_wolf_has_no_units(factor):
    rows, weights = RNG.standard_normal((20, 3)), np.ones(20)
    assert ledoit_wolf(factor * rows, weights) == pytest.approx(ledoit_wolf(rows, weights))


def test_weights_count_like_repetitions():
    rows, times = RNG.standard_normal((10, 3)), np.array([1, 2, 3, 1, 1, 2, 1, 1, 4, 1])
    repeated = np.repeat(rows, times, axis=0)
    expected = ledoit_wolf(repeated, np.ones(len(repeated)))
    assert ledoit_wolf(rows, times.astype(float)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n_rows", "n_features"), [(30, 3), (8, 8), (5, 20)])
def test_oracle_approximating_shrinkage_is_as_printed_and_near_scikit_learns(n_rows, n_features):
    rows = RNG.standard_normal((n_rows, n_features)) * np.arange(1, n_features + 1)
    S, p = np.cov(rows.T, bias=True), n_features
    square, trace = np.trace(S @ S), np.trace(S)
    noise = (1 - 2 / p) * square + trace**2
    expected = min(1, noise / ((n_rows + 1 - 2 / p) * (square - trace**2 / p)))
    found = oracle_approximating(S, n_rows)
    assert found == pytest.approx(expected, rel=1e-12)
    assert found == pytest.approx(oas(rows)[1], rel=3 / p)  # which leaves out the terms 2 / p
    assert oracle_approximating(S * 1e20, n_rows) == pytest.approx(found)
    padded = np.zeros((p + 2, p + 2))
    padded[:p, :p] = S
    assert oracle_approximating(S, n_rows, 2) == pytest.approx(oracle_approximating(padded, n_rows))


def test_oracle_approximating_shrinkage_of_the_target_itself_is_none():
    assert oracle_approximating(2 * np.eye(3), 10) == 0
    assert oracle_approximating(np.array([[4.0]]), 10) == 0


def labeled_rows():
    codes = np.arange(30) % 3
    rows = RNG.standard_normal((30, 4)) * [0.1, 1, 5, 20] + 3 * codes[:, None]
    return rows, codes


@pytest.mark.parametrize("shrinkage", [0.01, 0.5, 0.99])
def test_the_scatter_within_classes_is_shrunk_in_the_users_units(shrinkage):
    rows, codes = labeled_rows()
    frame = frame_of(rows)
    labeled = summarize_labeled(MemoryRows(rows), GivenLabels(codes, 3), frame)
    units = np.outer(frame.scale, frame.scale)
    found = shrink_labeled(labeled, shrinkage, frame) * units
    expected = shrunk_covariance(labeled.within * units, shrinkage)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_each_class_is_shrunk_on_standardized_features():
    rows, codes = labeled_rows()
    within, shrinkages = shrink_each_class(rows, codes, np.ones(30))
    expected = np.zeros((4, 4))
    for k in range(3):
        members = rows[codes == k]
        deviations = members.std(axis=0)
        standardized = (members - members.mean(axis=0)) / deviations
        assert shrinkages[k] == pytest.approx(ledoit_wolf_shrinkage(standardized), rel=1e-10)
        shrunk = shrunk_covariance(np.cov(standardized.T, bias=True), shrinkages[k])
        expected += len(members) * shrunk * np.outer(deviations, deviations)
    np.testing.assert_allclose(within, expected, rtol=1e-10, atol=1e-10)


def test_classes_without_spread_borrow_that_of_all_labeled_rows():
    rows = np.array([[0.0, 0.0], [2.0, 4.0]])
    frame = Frame(np.zeros(2), np.ones(2))
    labeled = summarize_labeled(MemoryRows(rows), GivenLabels(np.array([0, 1]), 2), frame)
    expected = 0.1 * np.diag([5.0, 5.0])  # mean over the features of scatter 2 and 8
    np.testing.assert_allclose(shrink_labeled(labeled, 0.1, frame), expected)


@pytest.mark.parametrize("scale", [1.0, 0.1, 1e-3, 1e5])
def test_a_feature_constant_in_a_class_is_not_standardized_by_its_rounding(scale):
    rng = np.random.default_rng(5)
    codes, weights = np.arange(30) % 2, np.full(30, 0.1)
    rows = scale * rng.standard_normal((30, 3))
    rows[codes == 0, 1] = scale * 0.3  # whose mean, of thirds and tenths, is not quite it
    within, shrinkages = shrink_each_class(rows, codes, weights)
    exact = rows.copy()
    exact[codes == 0, 1] = 0
    expected, expected_shrinkages = shrink_each_class(exact, codes, weights)
    np.testing.assert_allclose(within, expected, rtol=1e-9, atol=1e-12 * scale**2)
    np.testing.assert_allclose(shrinkages, expected_shrinkages, rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_a_covariance_that_is_its_own_target_is_not_shrunk(seed):
    rng = np.random.default_rng(seed)
    assert ledoit_wolf(np.full((4, 2), 3.0), np.ones(4)) == 0
    assert ledoit_wolf(rng.standard_normal((7, 1)), rng.uniform(0.1, 1, 7)) == 0
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]) @ [[0.6, 0.8], [-0.8, 0.6]]
    assert ledoit_wolf(corners * rng.uniform(), np.full(4, rng.uniform())) == 0


# Their fits to the same rows have the same frame.
CLASSIFIERS = [SelfLearningLDA, ExpectationMaximizationLDA, MomentConstrainedLDA]


def fits(sample, classifiers=CLASSIFIERS):
    return [sample.fit(classifier()) for classifier in classifiers]


# Gains over the supervised fit.


def fitted_to(problem, scores):
    """The model that a soft labeling gives."""
    rule = problem.rule_of(scores, is_soft=True)
    sums = problem.unlabeled.label_sums(rule, problem.frame)
    return problem.model_of(problem.point_of(sums.counts, sums.sums))


def tiny_problem(n_classes, *, n_unlabeled=6, **options):
    sample = draw_sample(
        [17, n_classes], n_classes=n_classes, n_labeled=5 * n_classes, n_unlabeled=n_unlabeled
    )
    problem = problem_of(sample, **options)
    rng = np.random.default_rng(n_classes)
    model = fitted_to(problem, rng.standard_normal(problem.labeled_point.shape))
    return sample, problem, model, supervised_reference(problem)


def changes(sample, model, reference):
    """(n, K): change of log prior times density of every row in every class."""
    return log_joint(sample.rows, *parameters(model)) - log_joint(
        sample.rows, *parameters(reference)
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", [{}, {"shrinkage": 0.3}], ids=["plain", "shrunk"])
def test_bounds_are_the_extremes_over_all_labelings(n_classes, options):
    sample, problem, model, reference = tiny_problem(n_classes, **options)
    d = changes(sample, model, reference)
    values = [
        d[np.arange(len(d)), np.r_[sample.y, labels]].mean()
        for labels in product(range(n_classes), repeat=len(sample.X_unlabeled))
    ]
    found = gains_over(problem, model, reference)
    assert found.worst == pytest.approx(min(values), abs=1e-10)
    assert found.best == pytest.approx(max(values), abs=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_no_soft_labeling_is_beyond_the_bounds_and_posteriors_give_the_expected_one(n_classes):
    weights = 1.0 + np.arange(5 * n_classes + 40) % 3
    sample, problem, model, reference = tiny_problem(n_classes, n_unlabeled=40, weights=weights)
    d, known = changes(sample, model, reference), one_hot(sample.y, n_classes)
    found, rng = gains_over(problem, model, reference), np.random.default_rng(0)

    def gain(shares):
        everything = np.vstack([known, shares])
        return float(weights @ (d * everything).sum(axis=1) / weights.sum())

    for _ in range(20):
        shares = random_shares(rng, 40, n_classes, sharpness=3.0)
        assert found.worst - 1e-12 <= gain(shares) <= found.best + 1e-12
    joint = log_joint(sample.X_unlabeled, *parameters(model))
    posteriors = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)
    assert found.expected == pytest.approx(gain(posteriors), abs=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_disagreement_is_the_share_of_weight_with_two_different_classes(n_classes):
    weights = 1.0 + np.arange(5 * n_classes + 40) % 3
    sample, problem, model, reference = tiny_problem(n_classes, n_unlabeled=40, weights=weights)
    one, two = (
        log_joint(sample.X_unlabeled, *parameters(m)).argmax(axis=1) for m in (model, reference)
    )
    unlabeled = weights[len(sample.y) :]
    expected = unlabeled @ (one != two) / unlabeled.sum()
    assert 0 < expected < 1
    found = gains_over(problem, model, reference)
    assert found.disagreement == pytest.approx(expected, abs=1e-12)


def test_a_class_of_prior_zero_does_not_spoil_the_bounds():
    with np.errstate(divide="ignore"):
        log_priors = np.log([0.0, 1.0])
    _, problem, model, reference = tiny_problem(2)
    fixed = [replace(each, log_priors=log_priors) for each in (model, reference)]
    found = gains_over(problem, *fixed)
    assert np.isfinite([found.worst, found.best, found.expected]).all()
    assert found.disagreement == 0
