from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sklearn.covariance import oas, shrunk_covariance

from iclda._core.frame import Frame, frame_of
from iclda._core.labelsums import GivenLabels
from iclda._core.problem import summarize_labeled
from iclda._core.solvers.supervised import (
    estimated_shrinkage,
    gains_over,
    most_probable_shrinkage,
    oracle_approximating,
    pooled_shrinkage,
    shrink_labeled,
    supervised_reference,
)
from iclda._rows.memory import MemoryRows
from tests.helpers.problems import (
    draw_sample,
    log_evidence,
    log_joint,
    one_hot,
    oracle_shrinkage,
    parameters,
    point_of,
    problem_of,
    random_shares,
)

RNG = np.random.default_rng(12)


@pytest.mark.parametrize(("n_rows", "n_features"), [(30, 3), (8, 8), (5, 20)])
def test_oracle_approximating_shrinkage_is_as_printed_and_near_scikit_learns(
    n_rows, n_features
):
    rows = RNG.standard_normal((n_rows, n_features)) * np.arange(1, n_features + 1)
    S = np.cov(rows.T, bias=True)
    p = n_features
    found = oracle_approximating(S, n_rows)
    assert found == pytest.approx(oracle_shrinkage(S, n_rows), rel=1e-12)
    # Which leaves out the terms 2 / p.
    assert found == pytest.approx(oas(rows)[1], rel=3 / p)
    assert oracle_approximating(S * 1e20, n_rows) == pytest.approx(found)
    padded = np.zeros((p + 2, p + 2))
    padded[:p, :p] = S
    assert oracle_approximating(S, n_rows, 2) == pytest.approx(
        oracle_approximating(padded, n_rows)
    )


def test_oracle_approximating_shrinkage_of_the_target_itself_is_none():
    assert oracle_approximating(2 * np.eye(3), 10) == 0
    assert oracle_approximating(np.array([[4.0]]), 10) == 0


@pytest.mark.parametrize(("n_rows", "n_features"), [(30, 3), (8, 8), (5, 20)])
def test_no_shrinkage_makes_the_rows_more_probable(n_rows, n_features):
    rows = RNG.standard_normal((n_rows, n_features)) * np.arange(1, n_features + 1)
    S = rows.T @ rows / n_rows
    found = most_probable_shrinkage(S, n_rows)
    best = log_evidence(S, n_rows, found)
    for other in np.r_[0.9 * found, 1.1 * found, np.geomspace(1e-6, 0.99, 50)]:
        if other < 1:
            assert log_evidence(S, n_rows, other) <= best + 1e-9
    assert most_probable_shrinkage(S * 1e20, n_rows) == pytest.approx(found)


def test_a_feature_that_does_not_vary_is_one_of_zeros():
    rows = RNG.standard_normal((4, 6))
    S = rows.T @ rows / 4
    padded = np.zeros((8, 8))
    padded[:6, :6] = S
    assert most_probable_shrinkage(S, 4, 2) == pytest.approx(
        most_probable_shrinkage(padded, 4)
    )


def test_a_direction_in_which_enough_rows_never_vary_does_not_decide():
    S = np.diag([1.0, 2.0, 3.0, 0.0])
    assert most_probable_shrinkage(S, 50) > 1e-3


def test_the_shrinkage_is_the_smaller_of_the_oracle_and_the_most_probable_one():
    small_variances = np.diag([1.0, 1e-6, 1e-6])
    probable = most_probable_shrinkage(small_variances, 20)
    assert estimated_shrinkage(small_variances, 20) == probable < 1e-4
    few_large = np.diag([10.0] * 3 + [1.0] * 60)
    oracle = oracle_approximating(few_large, 200)
    assert estimated_shrinkage(few_large, 200) == oracle
    assert oracle < most_probable_shrinkage(few_large, 200)


def test_an_overflow_leaves_the_shrinkage_to_the_check_of_sums():
    assert estimated_shrinkage(np.full((2, 2), np.nan), 10) == 1


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


def test_classes_without_spread_borrow_that_of_all_labeled_rows():
    rows = np.array([[0.0, 0.0], [2.0, 4.0]])
    frame = Frame(np.zeros(2), np.ones(2))
    labeled = summarize_labeled(
        MemoryRows(rows), GivenLabels(np.array([0, 1]), 2), frame
    )
    # Mean over the features of scatter 2 and 8.
    expected = 0.1 * np.diag([5.0, 5.0])
    np.testing.assert_allclose(shrink_labeled(labeled, 0.1, frame), expected)


def test_the_pooled_shrinkage_is_that_of_the_deviations_from_class_means():
    rows, codes = labeled_rows()
    labeled = summarize_labeled(MemoryRows(rows), GivenLabels(codes, 3), frame_of(rows))
    residuals = np.concatenate(
        [rows[codes == k] - rows[codes == k].mean(axis=0) for k in range(3)]
    )
    # 30 rows less 3 classes.
    expected = estimated_shrinkage(residuals.T @ residuals / 27, 27)
    assert expected < 1
    assert pooled_shrinkage(labeled, frame_of(rows)) == pytest.approx(
        expected, rel=1e-9
    )


def test_classes_without_spread_are_shrunk_wholly():
    rows = np.array([[0.0, 0.0], [2.0, 4.0]])
    labeled = summarize_labeled(
        MemoryRows(rows), GivenLabels(np.array([0, 1]), 2), frame_of(rows)
    )
    assert pooled_shrinkage(labeled, frame_of(rows)) == 1


# Gains over the supervised fit.


def tiny_problem(n_classes, *, n_unlabeled=6, **options):
    sample = draw_sample(
        [17, n_classes],
        n_classes=n_classes,
        n_labeled=5 * n_classes,
        n_unlabeled=n_unlabeled,
    )
    problem = problem_of(sample, **options)
    rng = np.random.default_rng(n_classes)
    rule = problem.rule_of(
        rng.standard_normal(problem.labeled_point.shape), is_soft=True
    )
    model = problem.model_of(point_of(problem, rule))
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
def test_no_soft_labeling_is_beyond_the_bounds_and_posteriors_give_the_expected_one(
    n_classes,
):
    weights = 1.0 + np.arange(5 * n_classes + 40) % 3
    sample, problem, model, reference = tiny_problem(
        n_classes, n_unlabeled=40, weights=weights
    )
    d = changes(sample, model, reference)
    known = one_hot(sample.y, n_classes)
    found = gains_over(problem, model, reference)
    rng = np.random.default_rng(0)

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
    sample, problem, model, reference = tiny_problem(
        n_classes, n_unlabeled=40, weights=weights
    )
    one, two = (
        log_joint(sample.X_unlabeled, *parameters(m)).argmax(axis=1)
        for m in (model, reference)
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
