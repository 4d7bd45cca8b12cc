"""Rows unlike the training rows: another source, and other class shares.

    python benchmarks/bench_other_rows.py                    vowels, and two groups
    python benchmarks/bench_other_rows.py --shares FOLDER    class shares on features

Vowels: percent of the rows of seven new speakers that get a wrong class, and the
shrinkage that the training speakers would choose, each held out in turn. Two groups:
two classes whose new group has other class shares, an offset, or both; how often each
change is kept, and the error of the result.

``--shares``: FOLDER holds .npz files with arrays ``X`` and ``y``. 4 and 16 labels a
class; the unlabeled rows and the new rows have class shares drawn from a flat Dirichlet
distribution. Mean absolute error of the shares in percentage points, of counted
predictions and of ``class_shares``; how many classes of the new rows have their share
in the 90 % interval, and its mean width in percentage points. Then the same with 100
random labels among the new rows, against counting these labels alone. The strength of
the calibration was chosen on the sets marked "tuned".
"""

import argparse
import warnings
from pathlib import Path

import numpy as np

from iclda import (
    AverageLDA,
    ExpectationMaximizationLDA,
    SemiSupervisedEnsemble,
    SupervisedLDA,
)
from iclda.datasets import load_vowels

CHANGES = ("offset", "shares", "both")
SHRINKAGE = 0.3
# Tried for the vowels, with each training speaker held out in turn.
SHRINKAGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
TUNED = {"mnist_efflite0", "fashion_efflite0"}
N_FEATURES = 64
N_RANDOM = 100
N_LABELS = (4, 16)
# Quantile of the normal distribution that 90 % intervals reach to.
Z = 1.645


def percent(wrong):
    return f"{100 * np.mean(wrong):5.1f}"


def wrong_by_speaker(classifier, X, y, speakers, change=None):
    """Return which rows get a wrong class, after an adaptation to each speaker."""
    wrong = np.zeros(len(y), dtype=bool)
    for speaker in np.unique(speakers):
        rows = speakers == speaker
        fitted = classifier
        if change is not None:
            fitted = classifier.adapt(X[rows], change=change)
        wrong[rows] = fitted.predict(X[rows]) != y[rows]
    return wrong


def vowels():
    """Print the errors on new speakers, as they are and adapted."""
    X, y, speakers, is_new = load_vowels()
    train = X[~is_new], y[~is_new]
    new = X[is_new], y[is_new], speakers[is_new]
    groups = speakers[~is_new]

    print("vowels of new speakers, percent wrong")
    print("shrinkage  adapted   fit as it is  fit with groups  EM, groups")
    for shrinkage in (None, SHRINKAGE):
        lda = SupervisedLDA(shrinkage=shrinkage)
        em = ExpectationMaximizationLDA(shrinkage=shrinkage)
        plain = lda.fit(*train)
        with_groups = SupervisedLDA(shrinkage=shrinkage).fit(*train, groups=groups)
        em.fit(
            *train,
            X_unlabeled=X[is_new],
            groups=groups,
            groups_unlabeled=speakers[is_new],
        )
        for change in (None, *CHANGES):
            fitted = (plain, with_groups, em)
            errors = [percent(wrong_by_speaker(each, *new, change)) for each in fitted]
            print(f"{shrinkage!s:>9}  {change!s:8}  {'         '.join(errors)}")

    ensemble = SemiSupervisedEnsemble().fit(*train)
    errors = [
        percent(wrong_by_speaker(ensemble, *new, each)) for each in (None, "offset")
    ]
    print(f"ensemble: as fitted {errors[0]}, adapted by an offset {errors[1]}")
    held_out_speakers(*train, groups, new)


def held_out_speakers(X, y, speakers, new):
    """Print the shrinkage that adapts best to each training speaker held out."""
    held_out = {}
    for shrinkage in SHRINKAGES:
        wrong = []
        for speaker in np.unique(speakers):
            others = speakers != speaker
            lda = SupervisedLDA(shrinkage=shrinkage)
            lda.fit(X[others], y[others], groups=speakers[others])
            own = X[~others], y[~others], speakers[~others]
            wrong.append(wrong_by_speaker(lda, *own, "offset"))
        held_out[shrinkage] = np.mean(np.concatenate(wrong))
    best = min(held_out, key=held_out.get)
    lda = SupervisedLDA(shrinkage=best).fit(X, y, groups=speakers)
    chosen = percent(wrong_by_speaker(lda, *new, "offset"))
    print("each training speaker held out, fit with groups, offset, percent wrong:")
    print("  ".join(f"{each} {percent(held_out[each])}" for each in SHRINKAGES))
    print(f"new speakers with the best of these, shrinkage {best}: {chosen}")


def two_groups(n_draws=20):
    """Print what is done with a new group that differs in one way or in two."""
    print("\ntwo classes, 400 new rows: percent of draws in which a change is kept,")
    print("and percent wrong (as the model is, then after each change)")
    for distance in (1.5, 3.0):
        for share, offset in ((0.5, 0.0), (0.9, 0.0), (0.5, 1.0), (0.9, 1.0)):
            kept = np.zeros(3)
            wrong = np.zeros(4)
            for seed in range(n_draws):
                rng = np.random.default_rng(seed)
                y = np.arange(400) % 2
                X = rng.normal(size=(400, 4))
                X[:, 0] += distance * y
                classifier = SupervisedLDA().fit(X, y)
                y_new = (rng.random(400) < share).astype(int)
                X_new = rng.normal(size=(400, 4)) + offset
                X_new[:, 0] += distance * y_new
                wrong[0] += np.mean(classifier.predict(X_new) != y_new)
                for i, change in enumerate(CHANGES):
                    adapted = classifier.adapt(X_new, change=change)
                    kept[i] += adapted.adaptation_.is_kept
                    wrong[i + 1] += np.mean(adapted.predict(X_new) != y_new)
            shown = "  ".join(
                f"{change} {100 * n / n_draws:3.0f}"
                for change, n in zip(CHANGES, kept, strict=True)
            )
            errors = " ".join(percent(each / n_draws) for each in wrong)
            group = f"distance {distance}, share {share}, offset {offset}"
            print(f"{group}: {shown} | {errors}")


def draw(y, n_labels, rng):
    """Return labeled, unlabeled and new rows, the last two with other class shares."""
    n_classes = y.max() + 1
    shares = rng.dirichlet(np.ones(n_classes))
    counts = rng.multinomial(min(len(y) // 2, 4_000), shares)
    labeled = []
    others = []
    for k, count in enumerate(counts):
        of_class = rng.permutation(np.flatnonzero(y == k))
        labeled.append(of_class[:n_labels])
        others.append(of_class[n_labels : n_labels + count])
    others = rng.permutation(np.concatenate(others))
    half = len(others) // 2
    return np.concatenate(labeled), others[:half], others[half:]


def covered(truth, low, high):
    return (truth >= low - 1e-9) & (truth <= high + 1e-9)


def class_shares(path, n_labels, n_draws):
    """Print a row of the table of class shares."""
    stored = np.load(path)
    X = stored["X"][:, :N_FEATURES].astype(np.float64)
    y = np.unique(stored["y"], return_inverse=True)[1]
    n_classes = y.max() + 1
    columns = {name: [] for name in ("counted", "em", "in", "width", "in random")}
    widths = []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        labeled, unlabeled, new = draw(y, n_labels, rng)
        classifier = AverageLDA().fit(X[labeled], y[labeled], X_unlabeled=X[unlabeled])
        truth = np.bincount(y[new], minlength=n_classes) / len(new)
        codes = classifier.predict(X[new])
        counted = np.bincount(codes, minlength=n_classes) / len(new)
        found = classifier.class_shares(X[new])
        columns["counted"].append(np.abs(counted - truth))
        columns["em"].append(np.abs(found.shares - truth))
        columns["in"].append(covered(truth, found.low, found.high))
        columns["width"].append(found.high - found.low)

        checked = np.full(len(new), -1)
        random = rng.choice(len(new), min(N_RANDOM, len(new)), replace=False)
        checked[random] = y[new[random]]
        found = classifier.class_shares(X[new], checked)
        columns["in random"].append(covered(truth, found.low, found.high))
        # Wilson's width for the labels alone, with the same correction for rows that
        # are labeled already.
        n = len(random)
        share = np.bincount(checked[random], minlength=n_classes) / n
        variance = share * (1 - share) / (n - 1) + (Z / n) ** 2 / 4
        half = Z * np.sqrt(variance * (1 - n / len(new)))
        alone = np.clip(share + half, 0, 1) - np.clip(share - half, 0, 1)
        widths.append([np.mean(found.high - found.low), alone.mean()])
    means = [100 * np.mean(column) for column in columns.values()]
    corrected, alone = 100 * np.mean(widths, axis=0)
    n_narrower = sum(own < other for own, other in widths)
    tuned = "tuned" if path.stem in TUNED else ""
    print(
        f"{path.stem:22} {tuned:5} {n_labels:3} | {means[0]:5.1f} {means[1]:5.1f} "
        f"{means[2]:5.0f} {means[3]:6.1f} | {means[4]:5.0f} {corrected:6.1f} "
        f"{alone:6.1f}   {n_narrower} of {n_draws}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shares", type=Path, metavar="FOLDER")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sets", nargs="*", help="Names of sets; default: all.")
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if given.shares is None:
        vowels()
        two_groups()
        return
    print(f"{'':33}| error         intervals | random labels")
    print(f"{'set':18}labels a class | counted  EM   in  width |  in  width  alone")
    for path in sorted(given.shares.glob("*.npz")):
        if not given.sets or path.stem in given.sets:
            for n_labels in N_LABELS:
                class_shares(path, n_labels, given.draws)


if __name__ == "__main__":
    main()
