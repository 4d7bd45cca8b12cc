"""Numbers compared with 60 digits, and solves judged as LAPACK's tests do."""

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

from iclda import SupervisedLDA
from iclda._core.frame import frame_of
from iclda._core.moments import whiten
from iclda._rows.memory import MemoryRows
from tests.helpers.problems import problem_of, random_shares, small_sample

EPSILON = np.finfo(float).eps
# LAPACK's: errors in units of what rounding of the input alone may cost.
RATIO = 30


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(60):
        yield


def exact(array):
    """The numbers as stored."""
    return mp.matrix(np.asarray(array).tolist())


def exact_fit(X, shares):
    """Class weights, means (columns) and covariance of soft labels, not rounded."""
    n = X.rows
    d = X.cols
    n_classes = shares.cols
    counts = [sum(shares[i, k] for i in range(n)) for k in range(n_classes)]
    means = [
        mp.matrix(
            [
                sum(shares[i, k] * X[i, j] for i in range(n)) / counts[k]
                for j in range(d)
            ]
        )
        for k in range(n_classes)
    ]
    covariance = mp.matrix(d, d)
    for i in range(n):
        for k in range(n_classes):
            away = X[i, :].T - means[k]
            covariance += shares[i, k] * (away * away.T)
    total = sum(counts)
    return [count / total for count in counts], means, covariance / total


def exact_log_joint(x, fit):
    """Log of prior times density in every class, of one row."""
    priors, means, covariance = fit
    constant = len(x) * mp.log(2 * mp.pi) + mp.log(mp.det(covariance))
    found = []
    for prior, mean in zip(priors, means, strict=True):
        away = x - mean
        distance = (away.T * mp.lu_solve(covariance, away))[0]
        found.append(mp.log(prior) - (distance + constant) / 2)
    return found


def draw(condition, kind):
    """Two classes in three columns.

    The condition is that of units, or of correlations.
    """
    rng = np.random.default_rng(12)
    y = np.arange(24) % 2
    X = rng.standard_normal((24, 3)) + y[:, None] * [2.0, 0.0, 1.0]
    small = condition**-0.5
    if kind == "units":
        return X * [1.0, small**0.5, small], y
    X[:, 2] = X[:, 0] + X[:, 1] + small * X[:, 2]
    return X, y


@pytest.mark.parametrize(
    ("kind", "condition", "cost"),
    [
        ("units", 1e12, 1e2),
        ("units", 1e20, 1e2),
        ("correlations", 1e8, 1e8),
        ("correlations", 1e10, 1e10),
    ],
)
def test_likelihood_and_posterior_are_those_of_60_digits(kind, condition, cost):
    X, y = draw(condition, kind)
    model = SupervisedLDA().fit(X, y)
    fit = exact_fit(exact(X), exact(np.eye(2)[y]))
    joint = [exact_log_joint(exact(x), fit) for x in X]
    likelihood = np.array([float(row[k]) for row, k in zip(joint, y, strict=True)])
    log_odds = np.array([float(row[1] - row[0]) for row in joint])
    # Units cost nothing; correlations what a change of the rows in their last digit may
    # cost.
    slack = RATIO * EPSILON * cost
    assert_allclose(model.log_likelihood(X, y), likelihood, rtol=slack, atol=slack)
    assert_allclose(model.decision_function(X), log_odds, rtol=slack, atol=slack)


@pytest.mark.parametrize("number", [0, 1, 2, 3])
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_the_gradient_of_the_likelihood_is_that_of_60_digits(number, scale):
    sample = small_sample(number)
    units = scale ** -np.arange(sample.X.shape[1], dtype=float)
    sample = type(sample)(sample.X * units, sample.y, sample.X_unlabeled * units)
    n_rows = len(sample.rows)
    n_labeled = len(sample.X)
    n_classes = sample.n_classes
    shares = random_shares(np.random.default_rng(number), n_rows - n_labeled, n_classes)
    problem = problem_of(sample)
    u = problem.frame.apply(sample.X_unlabeled)
    point = problem.point_of(shares.sum(axis=0), shares.T @ u)
    value, gradient = problem.likelihood.value_and_gradient(point)
    slopes = (
        np.column_stack([np.ones(len(u)), problem.whitening.points(u)])
        @ gradient.T
        / n_rows
    )

    rows = exact(sample.rows)
    everything = exact(np.vstack([np.eye(n_classes)[sample.y], shares]))
    step = mpf(10) ** -25

    def exact_value(row=0, moved=0):
        """With a share of one unlabeled row moved from the last class to the first."""
        changed = everything.copy()
        changed[n_labeled + row, 0] += moved
        changed[n_labeled + row, n_classes - 1] -= moved
        fit = exact_fit(rows, changed)
        return sum(
            exact_log_joint(rows[i, :].T, fit)[int(k)] for i, k in enumerate(sample.y)
        )

    assert_allclose(value, float(exact_value()), rtol=1e-11)
    for row in range(2):
        slope = (exact_value(row, step) - exact_value(row, -step)) / (2 * step)
        assert_allclose(
            slopes[row, 0] - slopes[row, -1], float(slope), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("scale", [1e-40, 1e-6, 1.0, 1e6, 1e40])
@pytest.mark.parametrize("d", [1, 2, 10, 50])
def test_whitening_leaves_the_residual_of_a_stable_solve(scale, d):
    rng = np.random.default_rng(d)
    rows = rng.standard_normal((4 * d + 2, d)) @ (
        np.eye(d) + rng.standard_normal((d, d)) / d
    )
    rows *= scale ** np.linspace(-1, 1, d)
    frame = frame_of(rows)
    moments = MemoryRows(rows).moments(frame)
    whitening = whiten(moments, frame)
    residual = (
        whitening.transform @ moments.covariance @ whitening.transform.T - np.eye(d)
    )
    spread = np.sqrt(np.diag(moments.covariance))
    condition = np.linalg.cond(moments.covariance / np.outer(spread, spread))
    assert np.abs(residual).max() < RATIO * d * EPSILON * condition
