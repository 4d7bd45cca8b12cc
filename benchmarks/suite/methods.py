"""Methods of this package and of others: functions from data to a fitted model."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

import iclda

from .data import Data, Matrix, Size, make_data
from .rows import MARKED, Row
from .timing import Timing

CLASSES: dict[str, Any] = {
    "ICLDA": iclda.ImplicitlyConstrainedLDA,
    "MCLDA": iclda.MomentConstrainedLDA,
    "SLLDA": iclda.SelfLearningLDA,
    "EMLDA": iclda.ExpectationMaximizationLDA,
}
_JUDGED_ROWS = 10_000
_HARD = 0.999


def takes_jobs(method: str = "ICLDA") -> bool:
    """Return whether the classifier has a parameter for the number of threads."""
    return "n_jobs" in CLASSES[method]().get_params()


def classifier(method: str, n_jobs: int = 1) -> Any:
    """Return a classifier of this package with a number of threads."""
    return CLASSES[method](**({"n_jobs": n_jobs} if takes_jobs(method) else {}))


def fit_ours(method: str, data: Data, n_jobs: int = 1) -> Any:
    model = classifier(method, n_jobs)
    return model.fit(data.labeled, data.labels, X_unlabeled=data.unlabeled)


def fit_marked(data: Data, y: Matrix) -> Any:
    return classifier("ICLDA").fit(data.X, y)


def fit_every_label(solver: str, data: Data) -> Any:
    """scikit-learn's supervised fit of the same rows, given the class of each."""
    return LinearDiscriminantAnalysis(solver=solver).fit(data.unlabeled, data.truth)


def fit_self_training(data: Data, y: Matrix) -> Any:
    model = SelfTrainingClassifier(LinearDiscriminantAnalysis(solver="lsqr"))
    return model.fit(data.X, y)


def fit_label_spreading(data: Data, y: Matrix) -> Any:
    # Rows that no label reaches.
    with np.errstate(invalid="ignore"):
        return LabelSpreading(kernel="knn").fit(data.X, y)


def read_once(data: Data, n_jobs: int) -> None:
    """X @ w, each thread on its part of the rows: no pass over them can be faster."""
    w = np.ones(data.size.n_features)
    parts = np.array_split(data.unlabeled, n_jobs)
    with ThreadPoolExecutor(n_jobs) as pool:
        list(pool.map(lambda part: np.dot(part, w), parts))


def fits_of(methods: tuple[str, ...], data: Data) -> dict[str, Callable[[], Any]]:
    """The fits to be timed, by name.

    What they are given is made here, outside the clock.
    """
    needs_marks = {MARKED, "SelfTraining", "LabelSpreading"} & set(methods)
    y = data.marked() if needs_marks else data.labels
    others: dict[str, Callable[[], Any]] = {
        MARKED: partial(fit_marked, data, y),
        "LDA lsqr": partial(fit_every_label, "lsqr", data),
        "LDA svd": partial(fit_every_label, "svd", data),
        "SelfTraining": partial(fit_self_training, data, y),
        "LabelSpreading": partial(fit_label_spreading, data, y),
    }
    return {name: others.get(name) or partial(fit_ours, name, data) for name in methods}


def warm_up() -> None:
    """Fit once, so that what is loaded on first use is loaded.

    Errors are recorded later.
    """
    data = make_data(Size(300, 3, n_labeled=20), seed=0)
    for fit in fits_of((*CLASSES, "LDA lsqr"), data).values():
        with suppress(Exception):
            fit()


def row_of_fit(
    case: str, method: str, data: Data, seed: int, timing: Timing, unit: float
) -> Row:
    """Return the row of a timed fit, with measures of its quality."""
    found = {} if timing.failure else quality(timing.result, data)
    return replace(row_of(case, method, data, seed, timing, unit), **found)


def row_of(
    case: str, method: str, data: Data, seed: int, timing: Timing, unit: float
) -> Row:
    """Return the row of a timed operation on the data."""
    size = data.size
    return Row(
        case=case,
        method=method,
        n_unlabeled=size.n_unlabeled,
        n_features=size.n_features,
        n_classes=size.n_classes,
        n_labeled=size.n_labeled,
        dtype=size.dtype,
        seed=seed,
        seconds=timing.seconds,
        n_runs=len(timing.runs),
        unit_seconds=unit,
        failure=timing.failure,
    )


def quality(model: Any, data: Data) -> dict[str, Any]:
    """Objective, gap, passes and iterations where a model has them, and its error."""
    judged = slice(0, _JUDGED_ROWS)
    wrong = model.predict(data.unlabeled[judged]) != data.truth[judged]
    found: dict[str, Any] = {
        "objective": _objective(model, data),
        "gap": getattr(model, "gap_", None),
        "n_passes": getattr(model, "n_passes_", None),
        "n_iter": getattr(model, "n_iter_", None),
        "n_optima": getattr(model, "n_optima_", None),
        "converged": getattr(model, "converged_", None),
        "error": float(np.mean(wrong)),
    }
    if hasattr(model, "impute"):
        largest = model.impute(data.unlabeled[judged]).max(axis=1)
        found["soft"] = float(np.mean(largest < _HARD))
    return {name: _plain(value) for name, value in found.items()}


def _objective(model: Any, data: Data) -> float | None:
    """What the method maximizes: per labeled row, for EM per row."""
    path = getattr(model, "log_likelihood_path_", None)
    if path is not None:
        return float(path[-1]) / len(data.X)
    return getattr(model, "objective_", None)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
