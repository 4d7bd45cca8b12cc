"""Rows of none of the classes: novelty, and how many rows of known classes it flags.

    python benchmarks/bench_novelty.py --features FOLDER    features of networks
    python benchmarks/bench_novelty.py --features FOLDER --ask    rows to label next
    python benchmarks/bench_novelty.py --tables tuned       tables, then --tables kept
    python benchmarks/bench_novelty.py --warning            unlabeled rows of no class

30 % of the classes have no label, the others 4 or 16 each. Half of the other rows are
unlabeled, half are new. Printed are areas under the ROC curve (AUROC) of "a row of an
unknown class" among the new rows, means over draws of classes and labels, and the share
in percent of the rows of known and of unknown classes whose novelty exceeds 0.95.

``--features``: FOLDER holds .npz files with arrays ``X`` and ``y``; 64 columns are
used. Novelty is that of ``AverageLDA``, against 1 - its largest probability, and
against the relative Mahalanobis distance that novelty is made of (labeled means, the
covariance within labeled classes shrunk by 0.5, that of all rows by 0.1). Pools: "all"
rows; "uneven", where the numbers of rows fall fiftyfold from class to class; "steep",
where two classes have most rows; and "merged", where two classes that were made of many
similar ones do. Settings were chosen on the sets of TUNED, with "uneven" and "merged"
of banking77 and "steep" of the others.

``--ask``: six labels for each known class, and 20 rows that `rows_to_label` chooses, by
default and with ``unknown=True``: the share of them that is of unknown classes, and how
many of these classes are among them.

``--tables``: tables of few_labels/sets.py with three or more classes, SemiSupervised-
Ensemble against LocalOutlierFactor(novelty=True) and IsolationForest of scikit-learn,
which are fitted to the standardized labeled rows.

``--warning``: how often `iclda fit` and `iclda compare` warn that many unlabeled rows
resemble none of the classes, on the same tables: with labels of all classes, drawn at
random, and without labels of 30 % of them.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

from iclda import AverageLDA, SemiSupervisedEnsemble
from iclda.model_selection import rows_to_label
from iclda.tabular.unknown_rows import share_of_no_class

TUNED_FEATURES = {"mnist_efflite0", "fashion_efflite0", "banking77_minilm"}
POOLS = ("all", "uneven", "steep", "merged")
N_FEATURES = 64
N_LABELS = (4, 16)
SHARE_UNKNOWN = 0.3
MAX_ROWS = 1_500
# Novelty above this is flagged.
FLAGGED = 0.95


def merged(X, y, seed):
    """Return classes of which two are made of many similar ones, and come first."""
    rng = np.random.default_rng(100 + seed)
    n_classes = y.max() + 1
    means = np.stack([X[y == k].mean(axis=0) for k in range(n_classes)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    order = np.argsort(-(means @ means[rng.integers(n_classes)]))
    n_first = max(2, round(0.25 * n_classes))
    n_second = max(2, round(0.12 * n_classes))
    codes = np.zeros(n_classes, dtype=int)
    codes[order[n_first : n_first + n_second]] = 1
    rest = order[n_first + n_second :]
    codes[rest] = 2 + np.arange(len(rest))
    return codes[y]


def shares_of_rows(pool, n_classes, rng):
    """Return the share of its rows that every class keeps, and which must be known."""
    order = rng.permutation(n_classes)
    if pool == "all":
        return np.ones(n_classes), order[:0]
    if pool == "uneven":
        return 0.02 ** (order / (n_classes - 1)), order[:0]
    shares = 0.05 * rng.uniform(0.3, 1.7, n_classes)
    largest = order[:2] if pool == "steep" else np.arange(2)
    shares[largest] = (1.0, 0.6)
    return shares, largest


def draw(y, n_labels, seed, pool="all", share_unknown=SHARE_UNKNOWN):
    """Return labeled, unlabeled and new rows, and which rows are of unknown classes."""
    rng = np.random.default_rng(seed)
    n_classes = y.max() + 1
    shares, known = shares_of_rows(pool, n_classes, rng)
    candidates = np.setdiff1d(rng.permutation(n_classes), known)
    n_unknown = max(1, round(share_unknown * n_classes)) if share_unknown else 0
    unknown = rng.permutation(candidates)[:n_unknown]
    labeled = []
    others = []
    for k in range(n_classes):
        rows = rng.permutation(np.flatnonzero(y == k))
        if k not in unknown:
            n = min(n_labels, max(1, len(rows) // 2))
            labeled.append(rows[:n])
            rows = rows[n:]
        others.append(rows[: max(2, int(shares[k] * len(rows)))])
    others = rng.permutation(np.concatenate(others))
    half = len(others) // 2
    new = others[half:][:MAX_ROWS]
    return (
        np.concatenate(labeled),
        others[:half][:MAX_ROWS],
        new,
        np.isin(y, unknown),
    )


def shrunk(covariance, shrinkage):
    target = np.trace(covariance) / len(covariance)
    return (1 - shrinkage) * covariance + shrinkage * target * np.eye(len(covariance))


def squared_distances(rows, points, covariance):
    root = np.linalg.inv(np.linalg.cholesky(covariance))
    rows = rows @ root.T
    points = points @ root.T
    products = rows @ points.T
    return (rows**2).sum(1)[:, None] - 2 * products + (points**2).sum(1)


def relative_mahalanobis(X, y, labeled, unlabeled, new):
    """Return the distance to the nearest class less that to the mean of all rows."""
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    codes = np.unique(y[labeled], return_inverse=True)[1]
    rows = X[labeled]
    means = np.stack([rows[codes == k].mean(axis=0) for k in range(codes.max() + 1)])
    residuals = rows - means[codes]
    n_free = max(1, len(rows) - len(means))
    within = shrunk(residuals.T @ residuals / n_free, 0.5)
    every = np.concatenate([rows, X[unlabeled]])
    of_all = shrunk(np.cov(every.T, bias=True), 0.1)
    nearest = squared_distances(X[new], means, within).min(axis=1)
    center = every.mean(axis=0, keepdims=True)
    return nearest - squared_distances(X[new], center, of_all)[:, 0]


def features(folder, names, pools, n_draws):
    """Print AUROC and flagged rows for features of networks."""
    print(f"{'':38} | AUROC                      | novelty > 0.95, %")
    print(f"{'set':22}{'pool':8} labels | novelty  1-max p  rel. Mah. | known  unknown")
    summary = {}
    for path in sorted(folder.glob("*.npz")):
        stored = np.load(path)
        codes = np.unique(stored["y"], return_inverse=True)[1]
        is_left_out = names and path.stem not in names
        # Sets of all columns, and of three classes or fewer, are left out.
        if is_left_out or codes.max() < 3 or stored["X"].shape[1] > 256:
            continue
        X = stored["X"][:, :N_FEATURES].astype(np.float64)
        for pool in pools:
            # Merging needs enough classes.
            if pool == "merged" and codes.max() < 19:
                continue
            for n_labels in N_LABELS:
                rows = []
                for seed in range(n_draws):
                    y = merged(X, codes, seed) if pool == "merged" else codes
                    rows.append(measured(X, y, draw(y, n_labels, seed, pool)))
                means = np.mean(rows, axis=0)
                is_tuned = path.stem in TUNED_FEATURES
                summary.setdefault((pool, n_labels, is_tuned), []).append(means)
                print(
                    f"{path.stem:22}{pool:8}{n_labels:5}{'*' if is_tuned else ' ':2} | "
                    f"{means[0]:7.3f} {means[1]:8.3f} {means[2]:10.3f} | "
                    f"{100 * means[3]:5.1f} {100 * means[4]:8.1f}",
                    flush=True,
                )
    print("\nmeans; * sets that settings were chosen on")
    for (pool, n_labels, is_tuned), rows in sorted(summary.items()):
        means = np.mean(rows, axis=0)
        lowest = np.min(rows, axis=0)[0]
        print(
            f"{pool:8} {n_labels:3}{'*' if is_tuned else ' '} {len(rows)} sets | "
            f"{means[0]:.3f} (lowest {lowest:.3f}) {means[1]:.3f} {means[2]:.3f} | "
            f"{100 * means[3]:.1f} {100 * means[4]:.1f}"
        )


def asked(folder, names, n_draws):
    """Print how many rows of unknown classes are chosen to be labeled."""
    print("share of 20 rows of unknown classes, and number of these classes")
    print(f"{'set':24} of all rows | by default    | unknown first")
    for name in names or sorted(TUNED_FEATURES):
        stored = np.load(folder / f"{name}.npz")
        y = np.unique(stored["y"], return_inverse=True)[1]
        X = stored["X"][:, :N_FEATURES].astype(np.float64)
        rows = []
        for seed in range(n_draws):
            labeled, unlabeled, _, is_unknown = draw(y, 6, seed)
            index = np.concatenate([labeled, unlabeled])
            labels = np.where(np.arange(len(index)) < len(labeled), y[index], -1)
            found = [is_unknown[unlabeled].mean()]
            for unknown in (False, True):
                chosen = rows_to_label(X[index], 20, labels, unknown=unknown)
                of_unknown = index[chosen][is_unknown[index[chosen]]]
                found += [len(of_unknown) / 20, len(np.unique(y[of_unknown]))]
            rows.append(found)
        of_all, share, n, share_first, n_first = np.mean(rows, axis=0)
        print(
            f"{name:24}{100 * of_all:9.0f} %  | {100 * share:5.0f} %{n:6.1f} | "
            f"{100 * share_first:5.0f} %{n_first:6.1f}",
            flush=True,
        )


def measured(X, y, drawn):
    """Return three AUROC, and the shares of known and unknown rows flagged."""
    labeled, unlabeled, new, is_unknown = drawn
    is_unknown = is_unknown[new]
    classifier = AverageLDA().fit(X[labeled], y[labeled], X_unlabeled=X[unlabeled])
    novelty = classifier.novelty(X[new])
    doubt = 1 - classifier.predict_proba(X[new]).max(axis=1)
    distance = relative_mahalanobis(X, y, labeled, unlabeled, new)
    areas = [roc_auc_score(is_unknown, each) for each in (novelty, doubt, distance)]
    is_flagged = novelty > FLAGGED
    return [*areas, is_flagged[~is_unknown].mean(), is_flagged[is_unknown].mean()]


def tables(which, names, n_draws):
    """Print AUROC and flagged rows for tables."""
    from few_labels.sets import KEPT, TUNED

    print(f"{'':30} | AUROC                             | novelty > 0.95, %")
    print(f"{'table':22} labels | novelty   LOF  forest  1-max p | known  unknown")
    summary = {n_labels: [] for n_labels in N_LABELS}
    for name, load in {"tuned": TUNED, "kept": KEPT}[which].items():
        if names and name not in names:
            continue
        X, y = load()
        if y.max() < 2:
            continue
        for n_labels in N_LABELS:
            rows = []
            for seed in range(n_draws):
                drawn = draw(y, n_labels, seed)
                if 0 < drawn[3][drawn[2]].mean() < 1:
                    rows.append(measured_table(X, y, drawn))
            means = np.mean(rows, axis=0)
            summary[n_labels].append(means)
            print(table_line(f"{name:22}{n_labels:5}", means), flush=True)
    for n_labels, rows in summary.items():
        title = f"mean of {len(rows)} tables"
        print(table_line(f"{title:22}{n_labels:5}", np.mean(rows, axis=0)))


def table_line(title, means):
    areas = " ".join(f"{each:7.3f}" for each in means[:4])
    return f"{title}    | {areas} | {100 * means[4]:5.1f} {100 * means[5]:8.1f}"


def measured_table(X, y, drawn):
    """Return AUROC of four scores, and the shares of known and unknown rows flagged."""
    labeled, unlabeled, new, is_unknown = drawn
    is_unknown = is_unknown[new]
    classifier = SemiSupervisedEnsemble(outside=False)
    classifier.fit(X[labeled], y[labeled], X_unlabeled=X[unlabeled])
    novelty = classifier.novelty(X[new])
    scaler = StandardScaler().fit(X[labeled])
    rows = scaler.transform(X[labeled])
    n_neighbors = min(20, len(rows) - 1)
    factor = LocalOutlierFactor(n_neighbors=n_neighbors, novelty=True).fit(rows)
    forest = IsolationForest(random_state=0).fit(rows)
    scores = (
        novelty,
        -factor.score_samples(scaler.transform(X[new])),
        -forest.score_samples(scaler.transform(X[new])),
        1 - classifier.predict_proba(X[new]).max(axis=1),
    )
    is_flagged = novelty > FLAGGED
    return [
        *(roc_auc_score(is_unknown, each) for each in scores),
        is_flagged[~is_unknown].mean(),
        is_flagged[is_unknown].mean(),
    ]


def warned(names, n_draws):
    """Print how often rows of no class are reported, rightly and wrongly."""
    from few_labels.sets import KEPT, TUNED

    counts = {}
    for name, load in {**TUNED, **KEPT}.items():
        if names and name not in names:
            continue
        X, y = load()
        n_classes = y.max() + 1
        for n_labels in (*N_LABELS, 40):
            for seed in range(n_draws):
                for share_unknown in (0.0, SHARE_UNKNOWN):
                    found = warned_table(X, y, n_labels, seed, share_unknown)
                    if found is None or (share_unknown and n_classes < 3):
                        continue
                    key = share_unknown, n_labels
                    counts.setdefault(key, []).append(found > 0)
                    if found and not share_unknown:
                        print(f"false: {name}, {n_labels} labels, {found:.2f}")
    for (share_unknown, n_labels), found in sorted(counts.items()):
        which = "30 % unknown" if share_unknown else "all known"
        print(
            f"{which:14}{n_labels:3} labels a class: warned in {sum(found)} of "
            f"{len(found)} fits"
        )


def warned_table(X, y, n_labels, seed, share_unknown):
    """Return the share that a warning states, 0 without one; None for few rows."""
    rng = np.random.default_rng(seed)
    classes = rng.permutation(y.max() + 1)
    n_unknown = max(1, round(share_unknown * len(classes))) if share_unknown else 0
    known = rng.permutation(np.flatnonzero(~np.isin(y, classes[:n_unknown])))
    labeled = known[: n_labels * (len(classes) - n_unknown)]
    # Every known class needs a label, and half of the rows have none.
    n_seen = len(np.unique(y[labeled]))
    if n_seen < max(2, len(classes) - n_unknown) or len(labeled) > len(y) // 2:
        return None
    others = rng.permutation(np.setdiff1d(np.arange(len(y)), labeled))[:MAX_ROWS]
    classifier = AverageLDA(view="standardize")
    classifier.fit(X[labeled], y[labeled], X_unlabeled=X[others])
    return share_of_no_class(classifier, X[others])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=Path, metavar="FOLDER")
    parser.add_argument("--ask", action="store_true")
    parser.add_argument("--tables", choices=("tuned", "kept"))
    parser.add_argument("--warning", action="store_true")
    parser.add_argument("--pools", nargs="*", choices=POOLS, default=POOLS)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--sets", nargs="*", help="Names of sets; default: all.")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.ask:
        asked(given.features, given.sets, given.draws)
    elif given.features is not None:
        features(given.features, given.sets, given.pools, given.draws)
    if given.tables is not None:
        tables(given.tables, given.sets, given.draws)
    if given.warning:
        warned(given.sets, given.draws)


if __name__ == "__main__":
    main()
