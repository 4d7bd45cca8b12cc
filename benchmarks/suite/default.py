"""What people call first: the default, ICLDA beside EM, and two commands on a table."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import iclda
from bench_compare import run_command, run_fit, write_wine
from bench_search import Rows, digits, gaussian_rows

from .data import Size, make_data
from .rows import BESIDE_EM, COMPARE_ANSWER, COMPARE_FIRST, FIT_COMMAND, Note, Row
from .settings import Settings
from .timing import seconds_of

# Unlabeled rows, features, classes, labeled rows.
BESIDE_EM_SIZES = (
    (5_000, 100, 5, 50),
    (20_000, 100, 10, 100),
    (20_000, 384, 2, 40),
)
_QUICK_SIZE = (1_000, 10, 2, 20)
_N_TURNS = 3
AUTO = Size(100_000, 384, n_classes=100, n_labeled=800, dtype="float32", spread=0.3)
_QUICK_AUTO = replace(AUTO, n_unlabeled=1_000, n_features=8, n_classes=3, n_labeled=24)
# The wines of scikit-learn.
_WINE = Size(178, 13, n_classes=3, n_labeled=9)
# Number of labels, and the table that has them.
_FITTED = ((178, "wine.csv"), (30, "wine-30.csv"))


def measure_beside_em(case: str, settings: Settings) -> Iterator[Row]:
    """Measure fits of ICLDA, in units of EM on the same rows; processor seconds."""
    if not settings.is_quick:
        yield _beside_em(case, digits(0.1), "digits")
    for size in [_QUICK_SIZE] if settings.is_quick else BESIDE_EM_SIZES:
        yield _beside_em(case, gaussian_rows(*size), None)


def _beside_em(case: str, rows: Rows, dataset: str | None) -> Row:
    own = []
    of_em = []
    for _ in range(_N_TURNS):
        of_em.append(_processor_seconds(iclda.ExpectationMaximizationLDA, rows)[0])
        seconds, model = _processor_seconds(iclda.ImplicitlyConstrainedLDA, rows)
        own.append(seconds)
    return Row(
        case=case,
        method=BESIDE_EM,
        dataset=dataset,
        n_unlabeled=len(rows.X_unlabeled),
        n_features=rows.X.shape[1],
        n_classes=len(model.classes_),
        n_labeled=len(rows.X),
        seconds=statistics.median(own),
        n_runs=_N_TURNS,
        unit="EM",
        unit_seconds=statistics.median(of_em),
        objective=model.objective_,
        gap=model.gap_,
        n_passes=model.n_passes_,
    )


def _processor_seconds(make: Callable[..., Any], rows: Rows) -> tuple[float, Any]:
    begin = time.process_time()
    model = make(shrinkage=rows.shrinkage)
    model.fit(rows.X, rows.y, X_unlabeled=rows.X_unlabeled)
    return time.process_time() - begin, model


def measure_auto(case: str, settings: Settings) -> Iterator[Row]:
    """Measure one fit of the default to features of many classes."""
    size = _QUICK_AUTO if settings.is_quick else AUTO
    data = make_data(size, 0)
    begin = time.process_time()
    fit = partial(iclda.AutoLDA().fit, data.labeled, data.labels)
    seconds, model = seconds_of(partial(fit, X_unlabeled=data.unlabeled))
    yield replace(
        _row_of_size(case, "AutoLDA", size),
        seconds=seconds,
        processor_seconds=time.process_time() - begin,
        error=float((model.predict(data.unlabeled) != data.truth).mean()),
    )


def measure_commands(case: str, settings: Settings) -> Iterator[Row | Note]:
    """Measure `iclda compare` and `iclda fit` on the wines, as people run them."""
    if settings.is_quick:
        yield Note(case, "left out: the commands, which take their time on any rows")
        return
    wine = replace(_row_of_size(case, COMPARE_FIRST, _WINE), dataset="wine", n_jobs=2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_wine(folder)
        comparison = run_command(folder, wine.n_jobs, [])
        fits = {n_labeled: run_fit(folder, table) for n_labeled, table in _FITTED}
    wall = comparison["wall"]
    yield replace(wine, seconds=wall["first ranking"])
    yield replace(
        wine,
        method=COMPARE_ANSWER,
        seconds=wall["answer"],
        processor_seconds=comparison["processor"],
    )
    for n_labeled, fit in fits.items():
        yield replace(
            wine,
            method=FIT_COMMAND,
            n_jobs=1,
            n_labeled=n_labeled,
            seconds=fit["wall"],
            processor_seconds=fit["processor"],
        )


def _row_of_size(case: str, method: str, size: Size) -> Row:
    return Row(
        case=case,
        method=method,
        n_unlabeled=size.n_unlabeled,
        n_features=size.n_features,
        n_classes=size.n_classes,
        n_labeled=size.n_labeled,
        dtype=size.dtype,
        n_runs=1,
    )
