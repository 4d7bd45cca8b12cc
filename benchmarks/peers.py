"""Methods of the literature for few labels on features, from their papers' formulas.

``bench_features.py --peers`` and ``bench_ask.py --peers`` run them, with the published
settings. Rows are centered by the mean of all of them. Some papers center by a mean of
the classes that trained their network, which is not known here, and others not at all.

Classifiers take rows and class codes, -1 for unlabeled rows, and return the probability
of each class for every row. Those of ``INDUCTIVE`` also take new rows. Strategies take
rows, class codes, the number of rows to choose, the shares of the classes by a fit, or
None without labels, and a seed; they return indices of unlabeled rows.
"""

import numpy as np
from scipy.linalg import pinvh
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors


def unit_rows(X, mean=None):
    """Return rows of length 1 around a mean, by default their own."""
    centered = X - (X.mean(axis=0) if mean is None else mean)
    lengths = np.linalg.norm(centered, axis=1, keepdims=True)
    return centered / np.maximum(lengths, np.finfo(X.dtype).tiny)


def squared_distances(rows, others):
    """Return the squared distance of every row to every other one."""
    squares = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)
    return np.maximum(squares - 2 * rows @ others.T, 0)


def indicators(codes, n_classes):
    """Return one column for each class, 1 where a row has it."""
    return (codes[:, None] == np.arange(n_classes)).astype(float)


def means_of(shares, rows):
    """Return the mean of each class, to which rows belong by shares."""
    return shares.T @ rows / shares.sum(axis=0)[:, None]


def of_all_rows(shares, y):
    """Return probabilities of all rows, given those of the unlabeled ones."""
    probabilities = indicators(y, shares.shape[1])
    probabilities[y < 0] = shares
    return probabilities


def neighbor_graph(rows, n_neighbors, weigh=np.ones_like):
    """Return a symmetric matrix: a function of the cosine of neighbors, 0 of others."""
    search = NearestNeighbors(n_neighbors=n_neighbors).fit(rows)
    # Of the rows that were fitted, without themselves.
    neighbors = search.kneighbors(return_distance=False)
    cosines = (rows[:, None] * rows[neighbors]).sum(axis=2)
    starts = np.arange(0, neighbors.size + 1, n_neighbors)
    graph = csr_array(
        (weigh(cosines).ravel(), neighbors.ravel(), starts),
        shape=(len(rows), len(rows)),
    )
    return graph.maximum(graph.T)


def rectified_means(labeled, codes, unlabeled):
    """Return class means of labeled rows and of those nearest to them.

    The mean of the unlabeled rows was moved to that of the labeled ones. Rows weigh by
    the exponential of their cosine with the mean of their class.
    """
    n_classes = codes.max() + 1
    means = means_of(indicators(codes, n_classes), labeled)
    nearest = squared_distances(unlabeled, means).argmin(axis=1)
    rows = np.concatenate([labeled, unlabeled])
    classes = np.concatenate([codes, nearest])
    directions = means / np.linalg.norm(means, axis=1, keepdims=True)
    weights = np.exp((rows * directions[classes]).sum(axis=1))
    return means_of(weights[:, None] * indicators(classes, n_classes), rows)


def laplacian_rounds(costs, graph, weight, n_rounds):
    """Yield shares, each of which minimizes a bound on the energy at the last ones."""
    shares = softmax(-costs, axis=1)
    for _ in range(n_rounds):
        yield shares
        shares = softmax(weight * (graph @ shares) - costs, axis=1)
    yield shares


def laplacian_shot(X, y, *, n_neighbors=3, weight=0.7, n_rounds=20):
    """Nearest class means, with like labels of neighbors (LaplacianShot).

    Ziko, Dolz, Granger and Ben Ayed, Laplacian regularized few-shot learning, ICML
    2020. Cost of a class: squared distance to its rectified mean.
    """
    rows = unit_rows(X)
    labeled, unlabeled = rows[y >= 0], rows[y < 0]
    unlabeled = unlabeled + labeled.mean(axis=0) - unlabeled.mean(axis=0)
    means = rectified_means(labeled, y[y >= 0], unlabeled)
    costs = squared_distances(unlabeled, means)
    graph = neighbor_graph(unlabeled, n_neighbors)
    for shares in laplacian_rounds(costs, graph, weight, n_rounds):
        last = shares
    return of_all_rows(last, y)


def transclip_rounds(X, y, log_prior, graph, labeled_weight, n_rounds, n_inner=5):
    """Yield shares of unlabeled rows, class means and variances after every update.

    Each update minimizes the energy, or a bound on it, in one of the three.
    """
    labeled, unlabeled = X[y >= 0], X[y < 0]
    given = indicators(y[y >= 0], log_prior.shape[1])
    given_weighted = given * labeled_weight / len(labeled)
    means = means_of(given, labeled)
    variances = np.full(X.shape[1], 1 / X.shape[1])
    shares = softmax(log_prior, axis=1)
    rows = np.concatenate([labeled, unlabeled])
    for _ in range(n_rounds):
        scale = np.sqrt(variances)
        costs = squared_distances(unlabeled / scale, means / scale) / 2
        for _ in range(n_inner):
            shares = softmax(log_prior - costs + graph @ shares, axis=1)
            yield shares, means, variances
        weights = np.concatenate([given_weighted, shares / len(unlabeled)])
        means = means_of(weights, rows)
        yield shares, means, variances
        squares = weights.sum(axis=1) @ rows**2 - weights.sum(axis=0) @ means**2
        variances = np.maximum(squares / weights.sum(), 1e-9)
        yield shares, means, variances


def transclip(
    X,
    y,
    *,
    prior="means",
    n_neighbors=3,
    prior_weight=0.5,
    labeled_weight=0.2,
    n_rounds=10,
):
    """Gaussian classes with one diagonal covariance, neighbors and a prior (TransCLIP).

    Zanella, Gerin and Ben Ayed, Boosting vision-language models with transduction,
    NeurIPS 2024. The prior stands for that of the text: the softmax of 100 times the
    cosines with labeled means, as there with the text, or logistic regression. The
    paper chooses the weight of the labeled rows on validation rows. Its code differs:
    the Gaussians weigh 1/50, and labeled rows are neighbors of unlabeled ones.
    """
    rows = unit_rows(X)
    is_labeled = y >= 0
    if prior == "means":
        directions = means_of(indicators(y[is_labeled], y.max() + 1), rows[is_labeled])
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        log_prior = 100 * rows[~is_labeled] @ directions.T
    else:
        clf = LogisticRegression(max_iter=200).fit(X[is_labeled], y[is_labeled])
        log_prior = clf.predict_log_proba(X[~is_labeled])
    graph = neighbor_graph(rows[~is_labeled], n_neighbors, lambda c: np.maximum(c, 0))
    for shares, _, _ in transclip_rounds(
        rows, y, prior_weight * log_prior, graph, labeled_weight, n_rounds
    ):
        last = shares
    return of_all_rows(last, y)


def power_sums(shares, alpha):
    """Return the derivative and the value of sum(shares**alpha) / (alpha - 1)."""
    powers = shares ** (alpha - 1)
    return alpha / (alpha - 1) * powers, (powers * shares).sum(axis=-1) / (alpha - 1)


def alpha_tim_loss(means, rows, y, alpha, scale):
    """Return cross-entropy less alpha mutual information, and its gradient by means."""
    is_labeled = y >= 0
    shares = softmax(-scale / 2 * squared_distances(rows, means), axis=1)
    labeled, unlabeled = shares[is_labeled], shares[~is_labeled]
    # Derivatives by the scores, that is, by the logarithms of shares before they are
    # normalized.
    by_scores = np.empty_like(shares)
    given = indicators(y[is_labeled], len(means))
    by_scores[is_labeled] = (labeled - given) / len(labeled)
    slopes, sums = power_sums(unlabeled, alpha)
    slopes_of_mean, sum_of_mean = power_sums(unlabeled.mean(axis=0), alpha)
    by_shares = (slopes_of_mean - slopes) * unlabeled
    by_shares -= unlabeled * by_shares.sum(axis=1, keepdims=True)
    by_scores[~is_labeled] = by_shares / len(unlabeled)
    cross_entropy = -np.log(labeled[given > 0]).mean()
    loss = cross_entropy - sums.mean() + sum_of_mean
    gradient = by_scores.T @ rows - by_scores.sum(axis=0)[:, None] * means
    return loss, scale * gradient


def alpha_tim(X, y, new=None, *, alpha=None, scale=15, rate=1e-4, n_steps=1000):
    """Class means by gradient steps on the alpha mutual information (alpha-TIM).

    Veilleux, Boudiaf, Piantanida and Ben Ayed, Realistic evaluation of transductive
    few-shot learning, NeurIPS 2021. The published alpha is 2 with one label a class, 7
    with five or more, and 5 else; steps are those of Adam.
    """
    n_classes = y.max() + 1
    if alpha is None:
        n_each = (y >= 0).sum() / n_classes
        alpha = 2 if n_each <= 1 else 7 if n_each >= 5 else 5
    rows = unit_rows(X)
    means = means_of(indicators(y[y >= 0], n_classes), rows[y >= 0])
    slope, square = 0.0, 0.0
    for step in range(1, n_steps + 1):
        _, gradient = alpha_tim_loss(means, rows, y, alpha, scale)
        slope = 0.9 * slope + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        length = np.sqrt(square / (1 - 0.999**step)) + 1e-8
        means = means - rate * slope / (1 - 0.9**step) / length
    asked = rows if new is None else unit_rows(new, X.mean(axis=0))
    return softmax(-scale / 2 * squared_distances(asked, means), axis=1)


def sinkhorn(costs, row_sum, column_sums, scale, tol=1e-6, max_rounds=200):
    """Return the plan of these sums, with small costs and a large entropy."""
    plan = np.exp(-scale * (costs - costs.min(axis=1, keepdims=True)))
    for _ in range(max_rounds):
        plan *= column_sums / np.maximum(plan.sum(axis=0), np.finfo(float).tiny)
        plan *= row_sum / plan.sum(axis=1, keepdims=True)
        excess = plan.sum(axis=0) - column_sums
        if np.abs(excess).max() <= tol * column_sums.sum():
            break
    return plan


def pt_map(X, y, *, sizes=None, power=0.5, scale=10, rate=0.2, n_rounds=20):
    """Class means by optimal transport of rows to classes of known sizes (PT-MAP).

    Hu, Gripon and Pateux, Leveraging the feature distribution in transfer-based
    few-shot learning, 2020. The power is that of absolute values, as features may be
    negative. Settings are those of its code. ``sizes`` has the unlabeled rows of each
    class: by default equal ones.
    """
    is_labeled = y >= 0
    n_classes = y.max() + 1
    if sizes is None:
        sizes = np.full(n_classes, (~is_labeled).sum() / n_classes)
    powers = np.sign(X) * (np.abs(X) + 1e-6) ** power
    rows = unit_rows(powers / np.linalg.norm(powers, axis=1, keepdims=True))
    given = indicators(y[is_labeled], n_classes)
    means = means_of(given, rows[is_labeled])
    for _ in range(n_rounds):
        costs = squared_distances(rows[~is_labeled], means)
        plan = of_all_rows(sinkhorn(costs, 1.0, sizes, scale), y)
        means = means + rate * (means_of(plan, rows) - means)
    costs = squared_distances(rows[~is_labeled], means)
    return of_all_rows(sinkhorn(costs, 1.0, sizes, scale), y)


def ks_precision(residuals):
    """Return the inverse covariance of Kubokawa and Srivastava (2008).

    It is the identity if all residuals are zero, as with one label a class.
    """
    n_features = residuals.shape[1]
    covariance = np.cov(residuals, rowvar=False)
    trace = np.trace(covariance)
    if trace == 0:
        return np.eye(n_features)
    ridge = trace * np.eye(n_features)
    return n_features * pinvh((len(residuals) - 1) * covariance + ridge)


def ks_lda(X, y, new=None):
    """LDA with equal priors and the KS inverse, of labeled rows alone.

    Wang, Liang, Sheng, He, Wang and Tan, A hard-to-beat baseline for training-free
    CLIP-based adaptation, ICLR 2024, without its text. The paper has several views of
    each labeled image. Here, with one row a class, the rule is that of nearest means.
    """
    rows = unit_rows(X)
    labeled, codes = rows[y >= 0], y[y >= 0]
    means = means_of(indicators(codes, y.max() + 1), labeled)
    weights = means @ ks_precision(labeled - means[codes])
    asked = rows if new is None else unit_rows(new, X.mean(axis=0))
    return softmax(asked @ weights.T - (weights * means).sum(axis=1) / 2, axis=1)


def random_rows(X, y, n, shares, seed):
    """Rows drawn at random."""
    return np.random.default_rng(seed).choice(np.flatnonzero(y < 0), n, replace=False)


def typiclust(X, y, n, shares, seed, *, n_neighbors=20, min_size=5, max_clusters=500):
    """The row in the densest place of each of the largest clusters without labels.

    Hacohen, Dekel and Weinshall, Active learning on a budget: opposite strategies suit
    high and low budgets, ICML 2022. Typicality: 1 by the mean distance to neighbors in
    the cluster.
    """
    rows = unit_rows(X)
    is_open = y < 0
    n_clusters = min((~is_open).sum() + n, max_clusters)
    clusters = KMeans(n_clusters, n_init=1, random_state=seed).fit_predict(rows)
    counts = np.bincount(clusters, minlength=n_clusters)
    n_labeled = np.bincount(clusters[~is_open], minlength=n_clusters)
    chosen = []
    while len(chosen) < n:
        n_open = np.bincount(clusters[is_open], minlength=n_clusters)
        # Clusters that are too small come last: there may be no others.
        order = np.lexsort((-counts, n_labeled, counts < min_size, n_open == 0))
        cluster = order[0]
        members = np.flatnonzero((clusters == cluster) & is_open)
        distances = np.sqrt(squared_distances(rows[members], rows[members]))
        nearest = np.sort(distances, axis=1)[:, 1 : n_neighbors + 1]
        best = nearest.mean(axis=1).argmin() if len(members) > 1 else 0
        chosen.append(members[best])
        is_open[members[best]] = False
        n_labeled[cluster] += 1
    return np.array(chosen)


def herd(rows, y, n, weights, width):
    """Choose rows one by one, each of which raises the weighted coverage most.

    A row is covered as the nearest labeled or chosen one: by exp(-(d / width)**2).
    """
    kernel = np.exp(-squared_distances(rows, rows) / width**2)
    covered = kernel[:, y >= 0].max(axis=1, initial=0)
    is_open = y < 0
    chosen = []
    for _ in range(n):
        gains = weights @ np.maximum(kernel - covered[:, None], 0)
        best = np.where(is_open, gains, -1).argmax()
        chosen.append(best)
        is_open[best] = False
        covered = np.maximum(covered, kernel[:, best])
    return np.array(chosen)


def max_herding(X, y, n, shares, seed):
    """Herding with equal weights and width 1.

    Bae, Noh and Sutherland, Generalized coverage for more robust low-budget active
    learning, ECCV 2024.
    """
    return herd(unit_rows(X), y, n, np.ones(len(X)), 1.0)


def uherding(X, y, n, shares, seed):
    """Herding, weighted by doubt, as wide as the smallest distance of labeled rows.

    Bae, Oliveira and Sutherland, Uncertainty herding: one active learning method for
    all label budgets, ICLR 2025. Doubt is 1 less the margin of calibrated shares, which
    are those of ``AutoLDA`` here.
    """
    rows = unit_rows(X)
    if shares is None:
        return herd(rows, y, n, np.ones(len(X)), 1.0)
    labeled = rows[y >= 0]
    distances = squared_distances(labeled, labeled)[np.triu_indices(len(labeled), 1)]
    width = np.sqrt(max(distances.min(initial=1.0), 1e-4))
    ordered = np.sort(shares, axis=1)
    return herd(rows, y, n, 1 - ordered[:, -1] + ordered[:, -2], width)


def medoids(X, n, seed):
    """The rows nearest to n centers of k-means.

    A row that is the nearest to two is completed by others.
    """
    nearest = KMeans(n, n_init=1, random_state=seed).fit(X).transform(X).argmin(axis=0)
    others = np.random.default_rng(seed).permutation(len(X))
    return np.array([*dict.fromkeys([*nearest, *others])][:n])


TRANSDUCTIVE = {
    "LaplacianShot": laplacian_shot,
    "TransCLIP, prior: means": transclip,
    "TransCLIP, prior: logistic": lambda X, y: transclip(X, y, prior="logistic"),
    "PT-MAP, equal sizes": pt_map,
}
INDUCTIVE = {"alpha-TIM": alpha_tim, "LDA, KS inverse": ks_lda}
STRATEGIES = {
    "TypiClust": typiclust,
    "MaxHerding": max_herding,
    "UHerding": uherding,
}
