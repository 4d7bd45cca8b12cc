"""The labeling at the end: exact, and the same whatever rounds the sums."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclda import ImplicitlyConstrainedLDA
from iclda._core.labelsums import LinearRule
from iclda._core.solvers import Limits
from iclda._core.solvers.implicit import maximize_labeled_likelihood
from tests.helpers.problems import Sample, draw_sample, point_of, problem_of

OPTIONS = {"limits": Limits(200, 1e-6), "n_starts": 32, "seed": 0}


def rounded(sample):
    """Whole numbers, of which many rows are alike."""
    return Sample(np.rint(sample.X), sample.y, np.rint(sample.X_unlabeled))


def problems():
    """Hard and interior optima, tied classes beside hard ones, repeated rows."""
    for seed in range(30):
        sample = draw_sample(
            [77, seed],
            n_classes=2 + seed % 3,
            n_features=1 + seed // 3 % 4,
            n_labeled=4 * (2 + seed % 3),
            n_unlabeled=(60, 250, 700, 4000)[seed // 8],
            separation=(0.5, 2.0)[seed // 4 % 2],
        )
        yield pytest.param(rounded(sample) if seed % 5 == 0 else sample, id=str(seed))


every_problem = pytest.mark.parametrize("sample", list(problems()))


@every_problem
def test_the_labels_of_the_rule_attain_the_point_and_leave_nothing_to_gain(sample):
    problem = problem_of(sample)
    found = maximize_labeled_likelihood(problem, **OPTIONS)
    assert_allclose(point_of(problem, found.rule), found.point, atol=1e-13)
    assert found.gap <= 1e-12


@every_problem
def test_rounding_of_the_rows_moves_no_label(sample):
    """Another processor, another backend: as if the rows were not quite the same."""
    fit = sample.fit(ImplicitlyConstrainedLDA())
    for seed in range(3):
        noise = 1 + 1e-15 * np.random.default_rng(seed).standard_normal(
            sample.X_unlabeled.shape
        )
        moved = Sample(sample.X, sample.y, sample.X_unlabeled * noise)
        again = moved.fit(ImplicitlyConstrainedLDA())
        assert_allclose(
            again.responsibilities_, fit.responsibilities_, rtol=1e-9, atol=1e-9
        )
        assert_allclose(
            again.coef_, fit.coef_, rtol=1e-9, atol=1e-9 * np.abs(fit.coef_).max()
        )
        assert_allclose(again.objective_, fit.objective_, rtol=1e-12)


@every_problem
def test_labels_are_hard_but_for_few_rows_or_whole_classes_tie(sample):
    fit = sample.fit(ImplicitlyConstrainedLDA())
    shares = fit.responsibilities_
    others = np.setdiff1d(np.arange(len(shares)), fit.shared_rows_)
    assert_allclose(shares[others].max(axis=1), 1, atol=1e-12)
    rule = fit._imputation_
    if isinstance(rule, LinearRule):
        # All classes tie: the likelihood has no slope left.
        assert fit.gap_ < 1e-12
        assert len(fit.shared_rows_) > len(shares) / 2
        return
    first = rule.first.coef
    apart = [
        np.abs(first[:, k] - first[:, j]).max() > 1e-9 * np.abs(first).max()
        for k in range(fit.classes_.size)
        for j in range(k)
    ]
    if all(apart):
        distinct = np.unique(sample.X_unlabeled[fit.shared_rows_], axis=0)
        assert len(distinct) <= (sample.n_classes - 1) * (sample.X.shape[1] + 1)


@pytest.mark.parametrize("seed", [0, 1, 3, 5])
def test_of_two_symmetric_maxima_rounding_chooses_none(seed):
    """Rows that are their own mirror image, and labeled rows on the mirror."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((int(rng.integers(8, 40)), 2))
    half[:, 0] += rng.choice([0.3, 1, 2])
    rows = np.vstack([half, half * [-1, 1]])
    X, y = np.array([[0, 1.0], [0, 1.5], [0, -1.0], [0, -0.5]]), [0, 0, 1, 1]
    coefs = []
    for draw in range(6):
        order = np.random.default_rng(draw).permutation(len(rows))
        noise = 1 + 1e-15 * np.random.default_rng(draw).standard_normal(rows.shape)
        fit = ImplicitlyConstrainedLDA().fit(X, y, X_unlabeled=(rows * noise)[order])
        coefs.append(fit.coef_)
    assert abs(coefs[0][0, 0]) > 0.1  # not symmetric itself
    assert_allclose(coefs, [coefs[0]] * 6, rtol=1e-6)
