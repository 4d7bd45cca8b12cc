"""Problems to test on, and answers in plain NumPy by formulas as printed.

Everything is a function of its arguments: a seed gives the same problem everywhere.
"""

from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import pytest
import scipy.optimize
from scipy.stats import invwishart

from iclda._core.frame import frame_of
from iclda._core.labelsums import GivenLabels, LinearRule
from iclda._core.problem import Problem, summarize_labeled
from iclda._core.rows import Near
from iclda._core.solvers import settings
from iclda._rows.memory import MemoryRows
from iclda.methods import FITTED, FURTHER

# Every method with one linear rule; the ensemble, which has none, has its own tests.
METHOD_OF = {
    method.name: method
    for method in (*FITTED, *FURTHER)
    if not method.options and method.name != "ensemble"
}
WHOLE_FAMILY = {name: method.load_class() for name, method in METHOD_OF.items()}
# Linear discriminant analysis with shrinkage; without unlabeled rows all equal
# supervised LDA, as they say themselves. The average has other defaults, a member that
# depends on the units, and tests of its own.
ALL = {
    name: WHOLE_FAMILY[name]
    for name in METHOD_OF
    if "shrinkage" in METHOD_OF[name].parameters
    and WHOLE_FAMILY[name]()._needs.supervised == "SupervisedLDA"
    and name != "average"
}
FAMILY = {
    name: WHOLE_FAMILY[name] for name in METHOD_OF if METHOD_OF[name].uses_unlabeled
}
SEMI_SUPERVISED = {name: ALL[name] for name in ALL if name in FAMILY}
# Fits that some labeling of the unlabeled rows gives, and that need no supervised fit.
BY_LABELING = {name: ALL[name] for name in ("self-learning", "em", "iclda")}
# They hold no more than a sample of the rows.
STREAMED = {name: FAMILY[name] for name in FAMILY if name != "sda"}

every_classifier = pytest.mark.parametrize("classifier", ALL.values(), ids=ALL)
semi_supervised = pytest.mark.parametrize(
    "classifier", SEMI_SUPERVISED.values(), ids=SEMI_SUPERVISED
)
by_labeling = pytest.mark.parametrize(
    "classifier", BY_LABELING.values(), ids=BY_LABELING
)
whole_family = pytest.mark.parametrize(
    "classifier", WHOLE_FAMILY.values(), ids=WHOLE_FAMILY
)


@dataclass(frozen=True)
class Sample:
    """Labeled rows, their classes 0..K-1, and unlabeled rows."""

    X: np.ndarray
    y: np.ndarray
    X_unlabeled: np.ndarray

    @property
    def n_classes(self):
        return int(self.y.max()) + 1

    @property
    def rows(self):
        """All rows, labeled ones first."""
        return np.vstack([self.X, self.X_unlabeled])

    @property
    def labels(self):
        """Labels of all rows, -1 where there is none."""
        return np.r_[self.y, np.full(len(self.X_unlabeled), -1)]

    def fit(self, estimator):
        return estimator.fit(self.X, self.y, X_unlabeled=self.X_unlabeled)


def draw_sample(
    seed,
    *,
    n_classes=2,
    n_features=2,
    n_labeled=12,
    n_unlabeled=40,
    separation=2.0,
    freedom=None,
):
    """Classes of equal covariance, each with a label; ``freedom``: of Student's t."""
    rng = np.random.default_rng(seed)
    centers = separation * rng.standard_normal((n_classes, n_features))
    mix = rng.standard_normal((n_features, n_features)) + 2 * np.eye(n_features)
    y = np.r_[np.arange(n_classes), rng.integers(n_classes, size=n_labeled - n_classes)]
    hidden = rng.integers(n_classes, size=n_unlabeled)
    size = (n_labeled + n_unlabeled, n_features)
    if freedom is None:
        noise = rng.standard_normal(size)
    else:
        noise = rng.standard_t(freedom, size)
    rows = centers[np.r_[y, hidden]] + noise @ mix.T / 2
    return Sample(rows[:n_labeled], y, rows[n_labeled:])


def draw_apart(n_classes, n_unlabeled, separation, n_labels=8, seed=71):
    """Classes more or less apart in three dimensions, with ``n_labels`` on average."""
    return draw_sample(
        [seed, n_classes],
        n_classes=n_classes,
        n_features=3,
        n_labeled=n_labels * n_classes,
        n_unlabeled=n_unlabeled,
        separation=separation,
    )


def draw_marked(n_labeled=8, n_unlabeled=24, n_features=3, n_classes=2, distance=2.5):
    """Rows, labels (-1: unlabeled) and true classes.

    The first ``n_labeled`` of each are known.
    """
    rng = np.random.default_rng(0)
    true = np.arange(n_labeled * n_classes + n_unlabeled) % n_classes
    centers = distance * np.eye(n_classes, n_features)
    X = centers[true] + rng.standard_normal((len(true), n_features))
    return X, np.where(np.arange(len(true)) < n_labeled * n_classes, true, -1), true


def small_sample(number):
    """Problem ``number`` of a series of small, hard ones with few labels."""
    rng = np.random.default_rng([2014, number])
    n_classes = 2 + number % 2
    return draw_sample(
        [2014, number, 1],
        n_classes=n_classes,
        n_features=1 + number // 2 % 3,
        n_labeled=n_classes + int(rng.integers(0, 5)),
        n_unlabeled=int(rng.integers(4, 13) if n_classes == 2 else rng.integers(3, 8)),
        separation=(0.3, 1.0, 3.0, 8.0)[number // 6 % 4],
        freedom=(None, 2)[number // 24 % 2],
    )


def near_all(rule, n=1):
    """Options of ``label_sums``: with the rows near boundaries, every n-th of them."""
    if not isinstance(rule, LinearRule) or not rule.is_soft:
        return {}
    return {"near": Near(np.full((rule.n_classes, rule.n_classes), n))}


def problem_of(sample, *, log_priors=None, shrinkage=0.0, weights=None, tile_rows=None):
    """The sample as the core sees it. ``weights``: of all rows, labeled ones first."""
    n_labeled = len(sample.X)
    first = None if weights is None else weights[:n_labeled]
    rest = None if weights is None else weights[n_labeled:]
    frame = frame_of(sample.rows)
    labels = GivenLabels(sample.y, sample.n_classes)
    labeled = MemoryRows(sample.X, first, tile_rows=tile_rows)
    return Problem(
        frame=frame,
        labeled=summarize_labeled(labeled, labels, frame),
        unlabeled=MemoryRows(sample.X_unlabeled, rest, tile_rows=tile_rows),
        log_priors=log_priors,
        shrinkage=shrinkage,
    )


def point_of(problem, rule):
    """The point of the labels that a rule gives."""
    sums = problem.unlabeled.label_sums(rule, problem.frame)
    return problem.point_of(sums.counts, sums.sums)


def point_of_shares(problem, shares):
    return point_of(problem, GivenLabels(shares, problem.n_classes))


def change_settings(monkeypatch, group, **changes):
    """Search with other settings of a group, such as "STARTS"."""
    changed = replace(getattr(settings, group), **changes)
    monkeypatch.setattr(settings, group, changed)


def rising_shares(n_classes):
    """Shares that grow from class to class."""
    return np.arange(1.0, n_classes + 1) / (n_classes * (n_classes + 1) / 2)


def one_hot(codes, n_classes):
    return np.eye(n_classes)[codes]


def random_shares(rng, n_rows, n_classes, sharpness=1.0):
    """Rows on the simplex."""
    shares = rng.dirichlet(np.ones(n_classes), size=n_rows) ** sharpness
    return shares / shares.sum(axis=1, keepdims=True)


def fit_shares(rows, shares, weights=None):
    """Linear discriminant analysis by soft labels: class weights, means, covariance."""
    weights = np.ones(len(rows)) if weights is None else weights
    shares = shares * weights[:, None]
    counts = shares.sum(axis=0)
    means = (shares.T @ rows) / counts[:, None]
    covariance = np.zeros((rows.shape[1], rows.shape[1]))
    for k, mean in enumerate(means):
        covariance += ((rows - mean) * shares[:, k : k + 1]).T @ (rows - mean)
    return counts / counts.sum(), means, covariance / counts.sum()


def parameters(model):
    """Priors, means and covariance of a model in the units of the features."""
    scale = model.frame.scale
    covariance = model.full_covariance() * np.outer(scale, scale)
    return np.exp(model.log_priors), model.frame.restore(model.means), covariance


def log_joint(rows, priors, means, covariance):
    """(n, K): log of prior times density."""
    deviations = rows[:, None, :] - means
    distances = np.einsum(
        "nkd,nkd->nk", deviations @ np.linalg.inv(covariance), deviations
    )
    constant = rows.shape[1] * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1]
    return np.log(priors) - (distances + constant) / 2


def labeled_log_likelihood(sample, priors, means, covariance):
    """Mean over the labeled rows of log prior times density of their own class."""
    joint = log_joint(sample.X, priors, means, covariance)
    return joint[np.arange(len(sample.y)), sample.y].mean()


def value_of_shares(sample, shares):
    """Log likelihood per labeled row of the fit that the shares give, and its gradient.

    The gradient is that of the chain rule through priors, means and covariance in the
    units of the features, with the number of rows held.
    """
    n_rows = len(sample.rows)
    n_labeled = len(sample.X)
    everything = np.vstack([one_hot(sample.y, sample.n_classes), shares])
    priors, means, covariance = fit_shares(sample.rows, everything)
    value = labeled_log_likelihood(sample, priors, means, covariance)
    precision = np.linalg.inv(covariance)
    deviations = sample.X - means[sample.y]
    scatter = deviations.T @ deviations / n_labeled
    bend = precision @ scatter @ precision / 2 - precision / 2
    gradient = np.empty_like(shares)
    for k in range(sample.n_classes):
        ahead = sample.X_unlabeled - means[k]
        pull = precision @ deviations[sample.y == k].sum(axis=0)
        through_prior = (sample.y == k).sum() / priors[k] / n_labeled
        through_mean = ahead @ pull / priors[k] / n_labeled
        through_covariance = ((ahead @ bend) * ahead).sum(axis=1)
        gradient[:, k] = (through_prior + through_mean + through_covariance) / n_rows
    return value, gradient


def gap_of_shares(sample, shares):
    """What the best change of labels promises to first order, per labeled row."""
    _, gradient = value_of_shares(sample, shares)
    return float((gradient.max(axis=1) - (gradient * shares).sum(axis=1)).sum())


def best_hard_labeling(sample):
    """Labels with the highest log likelihood per labeled row, and that value."""
    n_classes = sample.n_classes
    n_labeled, d = sample.X.shape
    every = np.array(list(product(range(n_classes), repeat=len(sample.X_unlabeled))))
    codes = np.hstack([np.tile(sample.y, (len(every), 1)), every])
    shares = one_hot(codes, n_classes)
    rows = sample.rows
    priors = shares.mean(axis=1)
    means = np.einsum("lnk,nd->lkd", shares, rows) / (len(rows) * priors[..., None])
    own = np.take_along_axis(means, codes[..., None], axis=1)
    deviations = rows - own
    covariance = np.einsum("lnd,lne->lde", deviations, deviations) / len(rows)
    labeled = deviations[:, :n_labeled]
    distances = (labeled @ np.linalg.inv(covariance) * labeled).sum(axis=(1, 2))
    distances = distances / n_labeled
    log_det = np.linalg.slogdet(covariance)[1]
    log_prior = np.log(priors[:, sample.y]).mean(axis=1)
    values = log_prior - (distances + d * np.log(2 * np.pi) + log_det) / 2
    return every[values.argmax()], float(values.max())


def soft_maxima(sample, n_starts, seed=0):
    """Values that bounded optimizations over soft labels end at, from random starts."""
    rng = np.random.default_rng([seed, 7])
    size = (len(sample.X_unlabeled), sample.n_classes)
    values = []
    for i in range(n_starts):
        start = random_shares(rng, *size, sharpness=(1, 0.2, 5)[i % 3])
        values.append(climb(sample, start))
    return np.array(values)


def climb(sample, start):
    """Value that a bounded optimization over soft labels ends at."""
    return value_of_shares(sample, climb_shares(sample, start))[0]


def climb_shares(sample, start):
    """Soft labels that a bounded optimization ends at."""
    by_bounds = _climb_two_classes if sample.n_classes == 2 else _climb_simplices
    return by_bounds(sample, start)


def best_value_known(sample, n_starts):
    """Best of all hard labelings, and of soft ones started there and at random."""
    codes, hard = best_hard_labeling(sample)
    improved = climb(sample, one_hot(codes, sample.n_classes))
    return max(hard, improved, *soft_maxima(sample, n_starts))


def _climb_two_classes(sample, start):
    def loss(first):
        value, gradient = value_of_shares(sample, np.column_stack([first, 1 - first]))
        return -value, gradient[:, 1] - gradient[:, 0]

    found = scipy.optimize.minimize(
        loss,
        start[:, 0],
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, 1)] * len(start),
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 500},
    )
    return np.column_stack([found.x, 1 - found.x])


def maximize_over_shares(value_of, start, *quotas, ftol=1e-13):
    """All shares are free within bounds and quotas, and add up to one in every row."""
    add_up = np.kron(np.eye(len(start)), np.ones(start.shape[1]))

    def loss(flat):
        value, gradient = value_of(flat.reshape(start.shape))
        return -value, -gradient.ravel()

    of_rows = {"type": "eq", "fun": lambda x: add_up @ x - 1, "jac": lambda x: add_up}
    return scipy.optimize.minimize(
        loss,
        start.ravel(),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * start.size,
        constraints=[of_rows, *quotas],
        options={"ftol": ftol, "maxiter": 500},
    )


def _climb_simplices(sample, start):
    found = maximize_over_shares(partial(value_of_shares, sample), start)
    # A share outside its bounds by rounding must not count for more than it may.
    shares = np.clip(found.x.reshape(start.shape), 0, 1)
    return shares / shares.sum(axis=1, keepdims=True)


def oracle_shrinkage(S, n):
    """Chen et al.'s shrinkage of a covariance of n rows, as printed."""
    p = len(S)
    square = np.trace(S @ S)
    trace = np.trace(S)
    noise = (1 - 2 / p) * square + trace**2
    return min(1, noise / ((n + 1 - 2 / p) * (square - trace**2 / p)))


def log_evidence(S, n, shrinkage):
    """Log probability of n rows with covariance S, whose own covariance is unknown.

    It has an inverse Wishart distribution about the mean variance of S. By Bayes'
    formula the probability is prior times likelihood over posterior at any covariance.
    """
    d = len(S)
    n_added = n * shrinkage / (1 - shrinkage)
    target = np.trace(S) / d * np.eye(d)
    freedom = n_added + d + 1
    prior = invwishart(freedom, n_added * target)
    posterior = invwishart(freedom + n, n_added * target + n * S)
    covariance = S + target
    log_det = np.linalg.slogdet(covariance)[1]
    likelihood = -n / 2 * (log_det + np.trace(np.linalg.solve(covariance, S)))
    return prior.logpdf(covariance) + likelihood - posterior.logpdf(covariance)


def estimated_shrinkage(S, n):
    """The smaller of Chen et al.'s shrinkage and the most probable one."""
    best = scipy.optimize.minimize_scalar(
        lambda log_odds: -log_evidence(S, n, 1 / (1 + np.exp(-log_odds))),
        bounds=(-20, 4.6),
        options={"xatol": 1e-9},
    )
    return min(oracle_shrinkage(S, n), 1 / (1 + np.exp(-best.x)))


def total_covariance(class_weights, means, covariance):
    """Covariance of all rows that a fit implies: within classes plus between them."""
    centered = means - class_weights @ means
    return covariance + (class_weights[:, None] * centered).T @ centered
