"""ImplicitlyConstrainedLDA beside scikit-learn's self-training, on the sizes the R package reports.

20 labeled rows of two Gaussian classes in 10 dimensions, and ever more unlabeled rows. Both
classifiers are timed in turn, one BLAS thread each, whole fits with all checks and all starts; the
median of the repeats is shown. Seconds of the R package RSSL 0.9.7 are given data, measured on
another day on a like machine.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import scipy
import sklearn
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.semi_supervised import SelfTrainingClassifier
from threadpoolctl import threadpool_limits

import iclda

SIZES = {100: 0.07, 1_000: 12.0, 4_000: 286.0, 100_000: None}
N_LABELED, N_FEATURES = 20, 10


def make_data(n_unlabeled: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    means = 0.6 * rng.standard_normal((2, N_FEATURES))
    classes = np.concatenate([np.arange(N_LABELED) % 2, rng.integers(0, 2, n_unlabeled)])
    X = means[classes] + rng.standard_normal((len(classes), N_FEATURES))
    y = classes.copy()
    y[N_LABELED:] = -1
    return X, y


def seconds(fit) -> float:
    start = time.perf_counter()
    fit()
    return time.perf_counter() - start


def measure(n_unlabeled: int, repeats: int) -> dict:
    X, y = make_data(n_unlabeled)
    ours = iclda.ImplicitlyConstrainedLDA()
    peer = SelfTrainingClassifier(LinearDiscriminantAnalysis())
    ours.fit(X, y), peer.fit(X, y)
    times = [
        (seconds(lambda: ours.fit(X, y)), seconds(lambda: peer.fit(X, y))) for _ in range(repeats)
    ]
    return {
        "n_unlabeled": n_unlabeled,
        "iclda_s": statistics.median(t[0] for t in times),
        "self_training_s": statistics.median(t[1] for t in times),
        "rssl_s": SIZES[n_unlabeled],
        "objective": ours.objective_,
        "gap": ours.gap_,
        "n_passes": ours.n_passes_,
        "n_optima": ours.n_optima_,
        "converged": ours.converged_,
    }


def machine() -> dict:
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "iclda": iclda.__version__,
    }


def table(rows: list[dict]) -> str:
    lines = [
        "unlabeled   ICLDA     SelfTraining  ratio   RSSL      gap      passes",
        "---------   -------   ------------  ------  --------  -------  ------",
    ]
    for row in rows:
        rssl = "-" if row["rssl_s"] is None else f"{row['rssl_s']:.2f} s"
        ratio = row["iclda_s"] / row["self_training_s"]
        lines.append(
            f"{row['n_unlabeled']:>9,}   {row['iclda_s']:.4f} s  {row['self_training_s']:>8.4f} s"
            f"    {ratio:>6.2f}  {rssl:>8}  {row['gap']:.1e}  {row['n_passes']:>6}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7, help="fits a size (default 7)")
    parser.add_argument("--out", type=Path, help="write the rows and the machine here, as JSON")
    arguments = parser.parse_args()
    with threadpool_limits(1):
        rows = [measure(n, arguments.repeats) for n in SIZES]
    print(table(rows))
    if arguments.out:
        arguments.out.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
