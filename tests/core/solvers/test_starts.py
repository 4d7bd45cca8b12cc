import numpy as np
import pytest

from iclda._core.solvers.starts import StartMaker
from tests.helpers.problems import draw_sample, problem_of


def _problem(n_classes=3, seed=0):
    sample = draw_sample(n_classes=n_classes, seed=seed)
    return problem_of(sample)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_starts_of_all_kinds_are_there_and_more_of_them_only_add(n_classes):
    problem = _problem(n_classes)
    few, many = (
        StartMaker(problem, 0).first(n) for n in (n_classes + 4, n_classes + 9)
    )
    assert len(few) == n_classes + 4
    np.testing.assert_array_equal(few[1], 0)  # equal shares
    for k in range(n_classes):  # each class alone
        assert few[2 + k, :, 0].argmax() == k
    np.testing.assert_array_equal(many[: n_classes + 2], few[: n_classes + 2])


@pytest.mark.parametrize("n_classes", [2, 4])
def test_variations_are_made_of_their_parents(n_classes):
    problem = _problem(n_classes)
    parents = np.random.default_rng(0).standard_normal(
        (3, *problem.labeled_point.shape)
    )
    starts = StartMaker(problem, 0)
    varied = starts.varied(parents, np.array([1.0, 1.0]), 20, 1)
    again = starts.varied(parents, np.array([1.0, 1.0]), 20, 1)
    np.testing.assert_array_equal(varied, again)
    assert not np.array_equal(
        varied, starts.varied(parents, np.array([1.0, 1.0]), 20, 2)
    )
    rows = parents[:, :, 1:].reshape(-1, parents.shape[2] - 1)
    is_known = (varied[:, :, None, 1:] == rows).all(axis=-1).any(axis=-1).all(axis=-1)
    assert np.count_nonzero(is_known) == 16  # all but those with noise
