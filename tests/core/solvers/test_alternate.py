import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from iclda._core.likelihood import precision_weighted_means
from iclda._core.solvers import Limits, Outcome
from iclda._core.solvers.alternate import (
    alternate,
    marginal_log_likelihood,
    start_scores,
)
from tests.helpers.problems import (
    fit_shares,
    log_joint,
    one_hot,
    point_of_shares,
    problem_of,
)


def test_both_loops_start_at_the_supervised_posterior(sample):
    problem = problem_of(sample)
    rule = problem.rule_of(start_scores(problem), is_soft=True)
    found = problem.unlabeled.responsibilities(rule, problem.frame)
    supervised = fit_shares(sample.X, one_hot(sample.y, sample.n_classes))
    joint = log_joint(sample.X_unlabeled, *supervised)
    np.testing.assert_allclose(found, softmax(joint, axis=1), atol=1e-9)


@pytest.mark.parametrize(
    ("is_soft", "n_rounds"), [(False, 1), (False, 2), (False, 5), (True, 1)]
)
def test_every_round_labels_and_refits_everything(sample, is_soft, n_rounds):
    found = alternate(problem_of(sample), Limits(n_rounds), is_soft=is_soft)
    fitted = fit_shares(sample.X, one_hot(sample.y, sample.n_classes))
    for _ in range(found.n_iter + (found.outcome is Outcome.MAX_ITERATIONS)):
        joint = log_joint(sample.X_unlabeled, *fitted)
        shares = softmax(joint, axis=1)
        shares = shares if is_soft else one_hot(shares.argmax(axis=1), sample.n_classes)
        everything = np.vstack([one_hot(sample.y, sample.n_classes), shares])
        fitted = fit_shares(sample.rows, everything)
    np.testing.assert_allclose(found.point[:, 0], fitted[0], rtol=1e-8)


def test_the_marginal_likelihood_is_that_of_the_rows(sample):
    problem = problem_of(sample)
    codes = np.arange(len(sample.X_unlabeled)) % sample.n_classes
    point = point_of_shares(problem, one_hot(codes, sample.n_classes))
    rule = problem.rule_of(problem.posterior_scores(point), is_soft=True)
    log_sum = problem.unlabeled.label_sums(rule, problem.frame).log_sum
    everything = one_hot(np.r_[sample.y, codes], sample.n_classes)
    fitted = fit_shares(sample.rows, everything)
    labeled = log_joint(sample.X, *fitted)[np.arange(len(sample.y)), sample.y].sum()
    expected = labeled + logsumexp(log_joint(sample.X_unlabeled, *fitted), axis=1).sum()
    found = marginal_log_likelihood(
        problem, point, log_sum, precision_weighted_means(point)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-11)
