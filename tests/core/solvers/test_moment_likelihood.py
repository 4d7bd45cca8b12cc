import numpy as np
import pytest

from iclda._core.solvers import Outcome
from iclda._core.solvers.moment_likelihood import maximize_under_moments
from iclda._core.solvers.moment_match import match_moments
from iclda._core.solvers.supervised import labeled_log_likelihood
from problems import draw_sample, problem_of


@pytest.mark.parametrize("number", range(24))
def test_a_maximum_is_found_from_wherever_the_closed_form_lies(number):
    """Few labels, classes near and far: Newton's method tries steps far outside the set."""
    n_classes, n_features = 2 + number % 3, 1 + number // 3 % 4
    sample = draw_sample(
        [2012, number],
        n_classes=n_classes,
        n_features=n_features,
        n_labeled=2 * n_classes + n_features,
        n_unlabeled=60,
        separation=(0.3, 1.0, 5.0)[number % 3],
        freedom=(None, 2)[number // 12],
    )
    problem = problem_of(sample, shrinkage=(0.0, 0.2)[number % 2])
    model, outcome = maximize_under_moments(problem)
    assert outcome is Outcome.CONVERGED
    if problem.shrinkage == 0:
        values = [
            labeled_log_likelihood(each, problem.labeled)
            for each in (model, match_moments(problem, "invariant"))
        ]
        assert values[0] >= values[1] - 1e-9
    assert np.isfinite(model.covariance).all()
