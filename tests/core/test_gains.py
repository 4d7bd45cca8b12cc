from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from iclda._core.gains import gains_over
from iclda._core.solvers.supervised import supervised_reference
from problems import draw_sample, log_joint, one_hot, parameters, problem_of, random_shares


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


def test_the_supervised_fit_gains_nothing_on_itself(sample):
    problem = problem_of(sample)
    model = supervised_reference(problem)
    found = gains_over(problem, model, model)
    assert (found.worst, found.best, found.expected, found.disagreement) == (0, 0, 0, 0)


def test_a_class_of_prior_zero_does_not_spoil_the_bounds():
    with np.errstate(divide="ignore"):
        log_priors = np.log([0.0, 1.0])
    _, problem, model, reference = tiny_problem(2)
    fixed = [replace(each, log_priors=log_priors) for each in (model, reference)]
    found = gains_over(problem, *fixed)
    assert np.isfinite([found.worst, found.best, found.expected]).all()
    assert found.disagreement == 0
