import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from iclda._core.labelsums import LinearRule
from iclda._core.rows import Memory
from iclda._core.solvers.anchored import (
    Course,
    anchored_em,
    gaussians_of_rule,
    mean_of_rules,
    of_unit_spread,
    rule_at,
    starting_rules,
)
from tests.helpers.problems import draw_sample, problem_of


def scores_by_formulas(sample, shrinkages, shares=None):
    """Anchored EM in the user's units, as its definition reads; scores of all rows."""
    X = sample.X
    y = sample.y
    rows = sample.rows
    one_hot = np.eye(sample.n_classes)[y]
    counts = one_hot.sum(axis=0)
    d = X.shape[1]
    labeled_means = one_hot.T @ X / counts[:, None]

    def score(means, within, log_shares, shrinkage):
        covariance = (1 - shrinkage) * within + shrinkage * np.trace(
            within
        ) / d * np.eye(d)
        coef = np.linalg.solve(covariance, means.T)
        return rows @ coef + log_shares - (means.T * coef).sum(axis=0) / 2

    centered = X - labeled_means[y]
    log_shares = np.log(counts / counts.sum() if shares is None else shares)
    scores = score(
        labeled_means, centered.T @ centered / len(X), log_shares, shrinkages[0]
    )
    shift = np.zeros(sample.n_classes)
    for shrinkage in shrinkages:
        soft = np.vstack([one_hot, softmax(scores[len(X) :] + shift, axis=1)])
        total = soft.sum(axis=0)
        means = soft.T @ rows / total[:, None]
        pull = (counts / (counts + 8))[:, None]
        anchored = (1 - pull) * means + pull * labeled_means
        within = sum(
            (soft[:, [k]] * (rows - anchored[k])).T @ (rows - anchored[k])
            for k in range(sample.n_classes)
        )
        log_shares = np.log(total / len(rows) if shares is None else shares)
        scores = score(anchored, within / len(rows), log_shares, shrinkage)
        if shares is not None:
            shift += np.log(shares) - np.log(soft[len(X) :].mean(axis=0))
    return scores


def scores_of(problem, rule, sample):
    return rule.scores(problem.frame.apply(sample.rows)).T


def fit(problem, *courses):
    """Fit all courses together; return the rule of the first."""
    return rule_at(anchored_em(problem, courses), 0, Memory())


def supervised_rules(problem, *shrinkages):
    return starting_rules(problem, [Course((each,)) for each in shrinkages])


def differences(scores):
    return scores - scores[:, :1]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("shrinkages", [(0.3,), (0.9, 0.5, 0.1), (0.2,) * 12])
def test_it_is_em_with_means_drawn_to_the_labels(n_classes, shrinkages):
    sample = draw_sample(n_classes, n_classes=n_classes, n_features=3)
    problem = problem_of(sample)
    scores = scores_of(problem, fit(problem, Course(shrinkages)), sample)
    expected = scores_by_formulas(sample, shrinkages)
    assert_allclose(differences(scores), differences(expected), rtol=1e-7, atol=1e-7)


def test_fits_that_share_the_passes_are_those_made_alone():
    sample = draw_sample(6, n_classes=3, n_unlabeled=200, separation=2.0)
    problem = problem_of(sample)
    shares = np.array([0.2, 0.3, 0.5])
    courses = [
        Course((0.9, 0.3), is_anchored=False),
        Course((0.3,) * 5),
        Course((0.3,) * 4, np.column_stack([shares, shares])),
    ]
    together = anchored_em(problem, courses)
    for i, course in enumerate(courses):
        alone = fit(problem, course)
        assert_allclose(rule_at(together, i, Memory()).coef, alone.coef, rtol=1e-9)


def test_proportions_are_approached():
    sample = draw_sample(5, n_classes=3, n_unlabeled=300, separation=4.0)
    problem = problem_of(sample)
    shares = np.array([0.2, 0.3, 0.5])
    rule = fit(problem, Course((0.3,) * 6, np.column_stack([shares, shares])))
    expected = scores_by_formulas(sample, (0.3,) * 6, shares)
    assert_allclose(
        differences(scores_of(problem, rule, sample)),
        differences(expected),
        rtol=1e-6,
        atol=1e-6,
    )


def test_classes_of_one_row_each_start_at_the_nearest_mean():
    sample = draw_sample(1, n_classes=3, n_labeled=3)
    problem = problem_of(sample)
    nearest = (
        ((sample.rows[:, None] - sample.X[np.argsort(sample.y)]) ** 2)
        .sum(axis=2)
        .argmin(1)
    )
    rule = rule_at(supervised_rules(problem, 0.3), 0, Memory())
    scores = scores_of(problem, rule, sample)
    assert (scores.argmax(axis=1) == nearest).all()


def test_scores_of_unit_spread_have_mean_square_1_over_rows_and_classes():
    sample = draw_sample(2, n_classes=3)
    problem = problem_of(sample)
    rules = supervised_rules(problem, 0.1, 0.9)
    unit_rules = of_unit_spread(rules, problem.moments, Memory())
    scores = scores_of(problem, rule_at(unit_rules, 1, Memory()), sample)
    assert_allclose(scores.sum(axis=1), 0, atol=1e-12)
    assert_allclose((scores**2).mean(), 1)


def test_a_mean_of_one_rule_classifies_as_it_does_and_weight_zero_leaves_one_out():
    sample = draw_sample(3, n_classes=3)
    problem = problem_of(sample)
    rules = supervised_rules(problem, 0.1, 0.9)
    mean = mean_of_rules(rules, np.array([1.0, 0.0]), problem.moments, Memory())
    one = scores_of(problem, rule_at(rules, 0, Memory()), sample)
    two = scores_of(problem, mean, sample)
    assert (one.argmax(axis=1) == two.argmax(axis=1)).all()


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n_features", [1, 3])
def test_gaussian_classes_have_the_posteriors_of_the_rule(n_classes, n_features):
    sample = draw_sample(4, n_classes=n_classes, n_features=n_features)
    problem = problem_of(sample)
    rng = np.random.default_rng(0)
    rule = LinearRule(
        rng.standard_normal((n_features, n_classes)),
        rng.standard_normal(n_classes),
        is_soft=True,
    )
    model, _ = gaussians_of_rule(problem, rule, 0.3)
    posteriors = softmax(scores_of(problem, rule, sample), axis=1)
    assert_allclose(
        softmax(model.log_joint(sample.rows), axis=1), posteriors, rtol=1e-8
    )
    if n_features >= n_classes - 1:
        assert_allclose(np.exp(model.log_priors), model.class_weights, rtol=1e-8)
