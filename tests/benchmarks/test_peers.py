"""The published methods keep what their papers promise."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

import peers

N_CLASSES = 3


@pytest.fixture
def pool():
    """Three classes of rows in 8 features, of which four rows each have labels."""
    rng = np.random.default_rng(0)
    y_true = np.arange(120) % N_CLASSES
    X = 2 * rng.standard_normal((N_CLASSES, 8))[y_true] + rng.standard_normal((120, 8))
    return X, np.where(np.arange(120) < 12, y_true, -1), y_true


def positive_semidefinite(n, seed):
    rows = np.random.default_rng(seed).random((n, 4))
    return rows @ rows.T


@pytest.mark.parametrize("name", [*peers.TRANSDUCTIVE, *peers.INDUCTIVE])
def test_every_method_returns_probabilities_and_finds_clear_classes(name, pool):
    X, y, y_true = pool
    probabilities = {**peers.TRANSDUCTIVE, **peers.INDUCTIVE}[name](X, y)
    assert probabilities.shape == (len(X), N_CLASSES)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert (probabilities.argmax(axis=1) == y_true).mean() > 0.9


@pytest.mark.parametrize("name", peers.INDUCTIVE)
def test_new_rows_get_the_classes_of_equal_rows_of_the_pool(name, pool):
    X, y, _ = pool
    method = peers.INDUCTIVE[name]
    assert_allclose(method(X, y, X[20:30]), method(X, y)[20:30], atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_every_round_of_laplacian_shot_lowers_its_energy(seed):
    costs = 3 * np.random.default_rng(seed).random((30, N_CLASSES))
    graph = positive_semidefinite(30, seed)
    energies = []
    for shares in peers.laplacian_rounds(costs, graph, 0.7, 10):
        smoothness = 0.35 * (shares * (graph @ shares)).sum()
        energies.append((shares * (np.log(shares) + costs)).sum() - smoothness)
    assert np.diff(energies).max() <= 1e-10
    assert energies[0] > energies[-1] + 1e-3


@pytest.mark.parametrize("labeled_weight", [0.02, 0.2])
def test_every_update_of_transclip_lowers_its_energy(labeled_weight, pool):
    X, y, _ = pool
    rows = peers.unit_rows(X)
    labeled, unlabeled = rows[y >= 0], rows[y < 0]
    given = peers.indicators(y[y >= 0], N_CLASSES)
    graph = positive_semidefinite(len(unlabeled), 0) / 100
    prior = np.log(softmax(unlabeled[:, :N_CLASSES], axis=1))

    def energy(shares, means, variances):
        scale = np.sqrt(variances)
        costs = [
            peers.squared_distances(part / scale, means / scale) / 2
            + np.log(variances).sum() / 2
            for part in (unlabeled, labeled)
        ]
        logs = np.log(np.maximum(shares, 1e-300))
        smoothness = (shares * (graph @ shares)).sum() / 2
        fit = (shares * (costs[0] + logs - prior)).sum() - smoothness
        weight = labeled_weight * len(unlabeled) / len(labeled)
        return fit + weight * (given * costs[1]).sum()

    rounds = peers.transclip_rounds(rows, y, prior, graph, labeled_weight, 4)
    energies = [energy(*state) for state in rounds]
    assert len(energies) == 4 * 7
    assert np.diff(energies).max() <= 1e-8


@pytest.mark.parametrize("alpha", [2, 5, 7])
def test_the_gradient_of_alpha_tim_is_that_of_differences(alpha, pool):
    X, y, _ = pool
    rows = peers.unit_rows(X)
    means = np.random.default_rng(0).standard_normal((N_CLASSES, 8)) / 4

    def loss(changed):
        return peers.alpha_tim_loss(changed, rows, y, alpha, 15)[0]

    _, gradient = peers.alpha_tim_loss(means, rows, y, alpha, 15)
    for k, j in np.ndindex(means.shape):
        step = np.zeros_like(means)
        step[k, j] = 1e-6
        difference = (loss(means + step) - loss(means - step)) / 2e-6
        assert difference == pytest.approx(gradient[k, j], rel=1e-5, abs=1e-7)


def test_alpha_mutual_information_is_largest_for_sure_and_balanced_shares():
    # Without labels its maximum is the alpha entropy of equal shares.
    sure = np.eye(4)[np.arange(20) % 4]
    for alpha in (2, 5):
        one = peers.power_sums(sure, alpha)[1].mean()
        of_mean = peers.power_sums(sure.mean(axis=0), alpha)[1]
        entropy = (1 - 4 ** (1 - alpha)) / (alpha - 1)
        assert one - of_mean == pytest.approx(entropy)


@pytest.mark.parametrize("sizes", [[10, 10, 10], [25, 4, 1]])
def test_the_plan_of_sinkhorn_has_its_sums(sizes):
    costs = np.random.default_rng(0).random((30, N_CLASSES))
    plan = peers.sinkhorn(costs, 1.0, np.array(sizes, dtype=float), 10)
    assert_allclose(plan.sum(axis=0), sizes, atol=1e-4)
    assert_allclose(plan.sum(axis=1), 1)
    # It is exp(-scale * costs) but for a factor of each row and of each column.
    logs = np.log(plan) + 10 * costs
    logs = logs - logs.mean(axis=0)
    assert_allclose(logs, logs.mean(axis=1, keepdims=True) * np.ones(3), atol=1e-8)


def test_pt_map_gives_every_class_its_size(pool):
    X, y, y_true = pool
    sizes = np.bincount(y_true[y < 0]).astype(float)
    for given in (None, sizes):
        shares = peers.pt_map(X, y, sizes=given)[y < 0]
        assert_allclose(shares.sum(axis=0), sizes, rtol=1e-3)


def test_the_ks_inverse_follows_its_formula_with_fewer_rows_than_features():
    residuals = np.random.default_rng(0).standard_normal((5, 8))
    covariance = np.cov(residuals, rowvar=False)
    inverse = peers.ks_precision(residuals)
    regularized = (4 * covariance + np.trace(covariance) * np.eye(8)) / 8
    assert_allclose(inverse @ regularized, np.eye(8), atol=1e-10)
    assert np.linalg.eigvalsh(inverse).min() > 0


def test_lda_with_the_ks_inverse_takes_the_nearest_mean_with_one_label_a_class(pool):
    X, y, _ = pool
    y = np.where(np.arange(len(y)) < N_CLASSES, y, -1)
    rows = peers.unit_rows(X)
    nearest = peers.squared_distances(rows, rows[:N_CLASSES]).argmin(axis=1)
    assert peers.ks_lda(X, y).argmax(axis=1).tolist() == nearest.tolist()


@pytest.mark.parametrize("name", ["random", *peers.STRATEGIES])
def test_every_strategy_chooses_distinct_unlabeled_rows(name, pool):
    X, y, y_true = pool
    shares = np.full((len(X), N_CLASSES), 1 / N_CLASSES)
    strategy = {"random": peers.random_rows, **peers.STRATEGIES}[name]
    for labels, given in ((y, shares), (np.full(len(y), -1), None)):
        for n in (N_CLASSES, 50):
            chosen = strategy(X, labels, n, given, 0)
            assert len(set(chosen.tolist())) == n
            assert (labels[chosen] < 0).all()
    if name != "random":
        first = strategy(X, np.full(len(y), -1), N_CLASSES, None, 0)
        assert sorted(y_true[first]) == [0, 1, 2]


def coverage(rows, chosen, width):
    distances = peers.squared_distances(rows, rows[list(chosen)])
    return np.exp(-distances.min(axis=1) / width**2).sum()


def test_herding_covers_at_least_its_share_of_the_best_choice(pool):
    # Coverage is submodular: the greedy choice has at least 1 - 1 / e of the best.
    rows = peers.unit_rows(pool[0])[:12]
    pairs = [(i, j) for i in range(12) for j in range(i)]
    best = max(coverage(rows, pair, 0.5) for pair in pairs)
    y = np.full(12, -1)
    chosen = peers.herd(rows, y, 2, np.ones(12), 0.5)
    assert coverage(rows, chosen, 0.5) >= (1 - 1 / np.e) * best
    single = max(range(12), key=lambda i: coverage(rows, [i], 0.5))
    assert chosen[0] == single


def test_uherding_prefers_doubtful_rows_and_is_max_herding_without_labels(pool):
    X, y, _ = pool
    nothing = np.full(len(y), -1)
    first = peers.uherding(X, nothing, 5, None, 0)
    assert first.tolist() == peers.max_herding(X, nothing, 5, None, 0).tolist()
    shares = np.tile([1.0, 0.0, 0.0], (len(X), 1))
    shares[60:70] = [0.5, 0.5, 0.0]
    assert 60 <= peers.uherding(X, y, 1, shares, 0)[0] < 70


def test_typiclust_takes_the_densest_row_of_the_clusters_without_labels():
    rng = np.random.default_rng(0)
    y_true = np.arange(60) % N_CLASSES
    X = 9 * np.eye(N_CLASSES)[y_true] + rng.standard_normal((60, N_CLASSES))
    y = np.where(np.arange(60) == 0, 0, -1)
    chosen = peers.typiclust(X, y, 2, None, 0)
    assert sorted(y_true[chosen]) == [1, 2]
    for row in chosen:
        members = np.flatnonzero(y_true == y_true[row])
        rows = peers.unit_rows(X)[members]
        distances = np.sqrt(peers.squared_distances(rows, rows))
        nearest = np.sort(distances, axis=1)[:, 1:21].mean(axis=1)
        assert members[nearest.argmin()] == row


def test_medoids_are_distinct_rows():
    X = np.repeat(np.arange(4.0)[:, None], 5, axis=0)
    with pytest.warns(UserWarning, match="distinct clusters"):
        chosen = peers.medoids(X, 6, 0)
    assert len(set(chosen.tolist())) == 6
