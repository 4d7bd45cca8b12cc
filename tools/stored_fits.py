"""Two hundred fits, compared bit by bit between two versions of the code.

    python -m tools.stored_fits store before.npz   # with the code before a change
    python -m tools.stored_fits check before.npz   # with the code after it

Use it when the solvers or the estimators are restructured: results must not change. The
fits are those of small problems, of the ten benchmark sets, with class proportions, of
rows that are streamed, and of larger problems in memory. Each is stored as its fitted
numbers.
"""

from __future__ import annotations

import os

# Libraries read these when they are loaded.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import iclda
from iclda import datasets

ATTRIBUTES = (
    "coef_",
    "intercept_",
    "means_",
    "priors_",
    "class_weights_",
    "shrinkage_",
    "rank_",
    "objective_",
    "gap_",
    "gain_",
    "n_iter_",
    "n_passes_",
    "n_optima_",
    "converged_",
    "log_likelihood_path_",
    "error_",
    "loss_",
)
LDA_METHODS = (
    "SupervisedLDA",
    "SelfLearningLDA",
    "SelfTrainingLDA",
    "ExpectationMaximizationLDA",
    "MomentConstrainedLDA",
    "ImplicitlyConstrainedLDA",
    "PessimisticLDA",
    "AverageLDA",
)
OTHER_METHODS = (
    "NormalizedLDA",
    "NearestMean",
    "ExpectationMaximizationNearestMean",
    "MomentConstrainedNearestMean",
    "LeastSquaresClassifier",
    "ImplicitlyConstrainedLeastSquares",
    "SelfLearningLeastSquares",
    "SemiSupervisedDiscriminantAnalysis",
    "AutoLDA",
)
QUOTA_METHODS = (
    "ExpectationMaximizationLDA",
    "ImplicitlyConstrainedLDA",
    "PessimisticLDA",
)
Case = tuple[str, Callable[[], Any]]


def draw(
    seed: int, n_classes: int, n_features: int, n_labeled: int, n_unlabeled: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gaussian classes: labeled rows, their labels, unlabeled rows."""
    rng = np.random.default_rng(seed)
    means = rng.normal(scale=1.5, size=(n_classes, n_features))
    classes = np.r_[
        np.resize(np.arange(n_classes), n_labeled),
        rng.integers(n_classes, size=n_unlabeled),
    ]
    rows = means[classes] + rng.normal(size=(len(classes), n_features))
    return rows[:n_labeled], classes[:n_labeled], rows[n_labeled:]


def fitted(name: str, X: Any, y: Any, unlabeled: Any, **parameters: Any) -> Any:
    """Return a classifier of the given class, fitted without its warnings."""
    classifier = getattr(iclda, name)(**parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return classifier.fit(X, y, X_unlabeled=unlabeled)


def small_problems() -> Iterator[Case]:
    """Every classifier on four small problems, two of them with further parameters."""
    shapes = ((2, 2, 10, 30), (3, 4, 24, 60), (2, 6, 8, 40), (4, 3, 40, 200))
    for seed, shape in enumerate(shapes):
        X, y, unlabeled = draw(seed, *shape)
        for name in (*LDA_METHODS, *OTHER_METHODS):
            parameters: dict[str, Any] = {}
            if seed == 2 and name in LDA_METHODS:
                parameters["shrinkage"] = "auto"
            yield (
                f"small {seed} {name}",
                lambda name=name, p=parameters, d=(X, y, unlabeled): fitted(
                    name, *d, **p
                ),
            )
        for name in LDA_METHODS[:7]:
            yield (
                f"small {seed} {name} without unlabeled rows",
                lambda name=name, d=(X, y, None): fitted(name, *d, shrinkage=0.2),
            )


def moment_variants() -> Iterator[Case]:
    """The four variants of the moment-constrained fit."""
    X, y, unlabeled = draw(11, 3, 4, 24, 60)
    for variant in ("invariant", "symmetric", "means-shifted", "likelihood"):
        yield (
            f"moment constrained, {variant}",
            lambda v=variant: fitted(
                "MomentConstrainedLDA", X, y, unlabeled, variant=v
            ),
        )


def benchmark_sets() -> Iterator[Case]:
    """The ten sets, two labels a feature."""
    for name in datasets.BENCHMARKS:
        if datasets.find_benchmark(name) is None:
            continue
        benchmark = datasets.load_benchmark(name)
        X = np.asarray(benchmark.X, dtype=float)
        y = np.asarray(benchmark.y)
        rng = np.random.default_rng(0)
        order = rng.permutation(len(y))
        n_labeled = max(10, 2 * X.shape[1])
        labeled = order[:n_labeled]
        rest = order[n_labeled:]
        for method in LDA_METHODS:
            if method == "AverageLDA":
                continue
            yield (
                f"{name} {method}",
                lambda m=method, d=(X[labeled], y[labeled], X[rest]): fitted(m, *d),
            )


def quotas() -> Iterator[Case]:
    """Fits with proportions, given in every way."""
    X, y, unlabeled = draw(21, 3, 4, 24, 150)
    given = {
        "labeled": "labeled",
        "equal": "equal",
        "auto": "auto",
        "numbers": [0.2, 0.3, 0.5],
        "dict": {0: 0.25, 1: 0.25, 2: 0.5},
        "intervals": {0: (0.1, 0.3), 1: (0.2, 0.6), 2: (0.2, 0.6)},
    }
    for kind, proportions in given.items():
        for name in QUOTA_METHODS:
            yield (
                f"proportions {kind} {name}",
                lambda n=name, p=proportions: fitted(n, X, y, unlabeled, proportions=p),
            )
    for seed in range(22, 26):
        data = draw(seed, 2, 5, 12, 120)
        for name in QUOTA_METHODS:
            yield (
                f"proportions labeled {seed} {name}",
                lambda n=name, d=data: fitted(n, *d, proportions="labeled"),
            )


def streamed(folder: Path) -> Iterator[Case]:
    """Rows read from a file, fewer and more than are held."""
    for seed, shape in ((31, (2, 5, 20, 3_000)), (32, (3, 8, 30, 40_000))):
        X, y, unlabeled = draw(seed, *shape)
        path = folder / f"rows{seed}.npy"
        np.save(path, unlabeled)
        for name in (*LDA_METHODS[:7], "NearestMean", "LeastSquaresClassifier"):
            yield (
                f"streamed {seed} {name}",
                lambda n=name, d=(X, y, path): fitted(n, *d),
            )
    for seed, shape in ((33, (2, 10, 30, 1_000_000)), (34, (3, 10, 40, 900_000))):
        X, y, unlabeled = draw(seed, *shape)
        path = folder / f"rows{seed}.npy"
        np.save(path, unlabeled)
        for name in ("ImplicitlyConstrainedLDA", "PessimisticLDA"):
            yield (
                f"streamed {seed} {name}",
                lambda n=name, d=(X, y, path): fitted(n, *d),
            )
            yield (
                f"in memory {seed} {name}",
                lambda n=name, d=(X, y, unlabeled): fitted(n, *d),
            )
    X, y, unlabeled = draw(35, 2, 4, 20, 3_000_000)
    path = folder / "rows35.npy"
    np.save(path, unlabeled)
    yield (
        "streamed 35 with proportions",
        lambda: fitted(
            "ImplicitlyConstrainedLDA", X, y, path, proportions="labeled", tol=1e-4
        ),
    )


def larger() -> Iterator[Case]:
    """More unknowns, more classes, few rows of many features, weights, a proof."""
    shapes = (
        (41, (5, 40, 60, 800)),
        (42, (10, 20, 60, 2_000)),
        (43, (2, 100, 40, 1_500)),
        (44, (2, 400, 20, 100)),
    )
    for seed, shape in shapes:
        X, y, unlabeled = draw(seed, *shape)
        for name in ("ExpectationMaximizationLDA", *QUOTA_METHODS[1:]):
            yield (
                f"larger {seed} {name}",
                lambda n=name, d=(X, y, unlabeled): fitted(n, *d, shrinkage=0.2),
            )
        yield (
            f"larger {seed} AverageLDA",
            lambda d=(X, y, unlabeled): fitted("AverageLDA", *d),
        )


def all_cases(folder: Path) -> Iterator[Case]:
    yield from small_problems()
    yield from moment_variants()
    yield from benchmark_sets()
    yield from quotas()
    yield from larger()
    yield from streamed(folder)


def numbers_of(classifier: Any) -> dict[str, np.ndarray]:
    numbers = {}
    for name in ATTRIBUTES:
        value = getattr(classifier, name, None)
        if value is not None:
            numbers[name] = np.asarray(value, dtype=float)
    return numbers


def fit_all() -> dict[str, np.ndarray]:
    """Return the fitted numbers of all cases, by case and attribute."""
    found: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as folder:
        for case, fit in all_cases(Path(folder)):
            try:
                numbers = numbers_of(fit())
            except (ValueError, ImportError) as error:
                numbers = {"failed": np.array([0.0])}
                print(f"{case}: {type(error).__name__}: {error}", file=sys.stderr)
            for name, value in numbers.items():
                found[f"{case} | {name}"] = value
    return found


def main() -> int:
    """Store the numbers of all fits, or compare them with stored ones."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("store", "check"))
    parser.add_argument("file", type=Path, help="an .npz file")
    options = parser.parse_args()

    start = time.perf_counter()
    found = fit_all()
    n_fits = len({key.partition(" | ")[0] for key in found})
    seconds = time.perf_counter() - start
    print(f"{n_fits} fits in {seconds:.0f} s by {iclda.__file__}")
    if options.action == "store":
        # Given a name without .npz, NumPy would add it.
        with options.file.open("wb") as file:
            np.savez(file, **found)
        return 0
    differences = compare(np.load(options.file), found)
    print(*differences, sep="\n")
    print(f"{len(differences)} of {len(found)} numbers differ")
    return int(bool(differences))


def compare(
    stored: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]
) -> list[str]:
    """Return a line for each number that is not the same to the last bit."""
    lines = []
    for key in sorted({*stored, *found}):
        if key not in stored or key not in found:
            lines.append(f"{key}: only {'after' if key in found else 'before'}")
            continue
        before = stored[key]
        after = found[key]
        if np.array_equal(before, after, equal_nan=True):
            continue
        if before.shape != after.shape:
            lines.append(f"{key}: shape {before.shape}, now {after.shape}")
        else:
            lines.append(f"{key}: differs by {np.abs(before - after).max():.3g}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
