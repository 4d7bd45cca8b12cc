"""Cases of the benchmarks. A case yields rows, and a note for what it leaves out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .data import Data, Size, make_data
from .default import measure_auto, measure_beside_em, measure_commands
from .memory import measure_memory
from .methods import (
    CLASSES,
    fit_ours,
    fits_of,
    read_once,
    row_of,
    row_of_fit,
    takes_jobs,
)
from .rows import (
    MARKED,
    READ,
    Note,
    Row,
)
from .sets import measure_sets
from .settings import Settings
from .timing import Clock, take_turns

Found = Iterator[Row | Note]
Measure = Callable[[str, Settings, Clock], Found]
LARGE = Size(1_000_000, 50)
TEN = replace(LARGE, n_classes=10)
HUGE = Size(10_000_000, 20)
STEPS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
SMALL = Size(100_000, 10, n_labeled=20)
SMALL_STEPS = (100, 1_000, 4_000, 10_000, 100_000)
# Most unlabeled rows for scikit-learn's methods: beyond, they take too long or too much
# memory.
PEERS = {"LDA lsqr": 10_000_000, "SelfTraining": 1_000_000, "LabelSpreading": 10_000}
_THREAD_SEEDS = 3
_DEFAULT_SEEDS = 3


@dataclass(frozen=True)
class Case:
    """A name for ``--only``, a title, its share of the time, and how it is measured.

    Without a share it is measured only if it is named, or with ``--all``.
    """

    name: str
    title: str
    share: float
    measure: Measure


def product(data: Data) -> Callable[[], Any]:
    """The unit: X'X of all unlabeled rows, in float64."""
    X = data.unlabeled.astype(np.float64, copy=False)
    return lambda: X.T @ X


def fits(size: Size, methods: tuple[str, ...], also: tuple[str, ...] = ()) -> Measure:
    """Methods side by side, for every seed; ``also`` only with ``--all``."""

    def measure(case: str, settings: Settings, clock: Clock) -> Found:
        chosen = methods + (also if settings.is_everything else ())
        for seed in range(settings.n_seeds):
            if seed and clock.is_spent:
                yield _late(case, seed, settings)
                return
            data = make_data(settings.scaled(size), seed)
            yield from _fits_on(case, data, seed, chosen)

    return measure


def _late(case: str, n_done: int, settings: Settings) -> Note:
    return Note(case, f"time is up: {n_done} of {settings.n_seeds} seeds measured")


def _fits_on(
    case: str, data: Data, seed: int, methods: tuple[str, ...], most: int = 5
) -> Found:
    timings, unit = take_turns(fits_of(methods, data), product(data), most=most)
    for method, timing in timings.items():
        yield row_of_fit(case, method, data, seed, timing, unit)


def series(size: Size, steps: tuple[int, ...], methods: tuple[str, ...]) -> Measure:
    """The same methods on ever more rows; the others' on the first seed only."""

    def measure(case: str, settings: Settings, clock: Clock) -> Found:
        sizes = settings.steps(steps)
        for seed in range(settings.n_seeds):
            if seed and clock.is_spent:
                yield _late(case, seed, settings)
                return
            data = make_data(replace(size, n_unlabeled=max(sizes)), seed)
            for n_unlabeled in sizes:
                part = data.first(n_unlabeled)
                yield from _fits_on(case, part, seed, methods)
                if seed == 0:
                    peers = tuple(
                        name for name, most in PEERS.items() if n_unlabeled <= most
                    )
                    yield from _fits_on(
                        case, part, seed, peers, most=1 + 2 * (n_unlabeled < 10**5)
                    )

    return measure


def measure_threads(case: str, settings: Settings, clock: Clock) -> Found:
    """One and two threads of the classifier, in turn; BLAS has one."""
    if not takes_jobs():
        yield Note(case, "left out: the classifiers have no parameter n_jobs")
        return
    if (os.cpu_count() or 1) < 2:
        yield Note(case, "left out: this machine has one core")
        return
    for seed in range(min(_THREAD_SEEDS, settings.n_seeds)):
        if seed and clock.is_spent:
            yield _late(case, seed, settings)
            return
        yield from _threads_on(
            case, make_data(settings.scaled(LARGE), seed), seed, tuple(CLASSES)
        )
    huge = make_data(settings.scaled(HUGE), 0)
    yield from _threads_on(case, huge, 0, ("ICLDA", "MCLDA"))


def _threads_on(case: str, data: Data, seed: int, methods: tuple[str, ...]) -> Found:
    reads = {str(n): partial(read_once, data, n) for n in (1, 2)}
    timings, unit = take_turns(reads, product(data))
    for n_jobs, timing in timings.items():
        yield replace(row_of(case, READ, data, seed, timing, unit), n_jobs=int(n_jobs))
    for method in methods:
        each = {str(n): partial(fit_ours, method, data, n) for n in (1, 2)}
        timings, unit = take_turns(each, product(data), most=3)
        for n_jobs, timing in timings.items():
            row = row_of_fit(case, method, data, seed, timing, unit)
            yield replace(row, n_jobs=int(n_jobs))


def measure_predict(case: str, settings: Settings, clock: Clock) -> Found:
    """Labels and posteriors of all rows beside their product with a d x K matrix."""
    for n_classes in (2, 10):
        data = make_data(settings.scaled(replace(LARGE, n_classes=n_classes)), 0)
        model = fit_ours("MCLDA", data)
        X = data.unlabeled
        W = np.ones((data.size.n_features, n_classes))
        each = {
            name: partial(getattr(model, name), X)
            for name in ("predict", "predict_proba")
        }
        timings, unit = take_turns(each, partial(np.matmul, X, W))
        for name, timing in timings.items():
            timing.result = model
            yield replace(row_of_fit(case, name, data, 0, timing, unit), unit="X @ W")


def measure_all_memory(case: str, settings: Settings, clock: Clock) -> Found:
    """Peak memory of the fits at every size, each size in a process of its own."""
    sizes = {
        Size(100_000, 20): ("ICLDA", "MCLDA"),
        LARGE: tuple(CLASSES),
        replace(LARGE, n_features=100): ("ICLDA",),
        replace(LARGE, dtype="float32"): ("ICLDA", "MCLDA"),
        TEN: ("ICLDA", "MCLDA"),
        HUGE: ("ICLDA", "MCLDA"),
    }
    for size, methods in list(sizes.items())[: 1 if settings.is_quick else None]:
        if clock.is_spent:
            yield Note(
                case, f"time is up: {size.n_unlabeled:,} x {size.n_features} left out"
            )
            continue
        yield from measure_memory(case, settings.scaled(size), methods)


def measure_default(case: str, settings: Settings, clock: Clock) -> Found:
    """The default, ICLDA beside EM and beside X'X, and the commands."""
    yield from measure_beside_em(case, settings)
    for size in (LARGE, TEN, TIED):
        for seed in range(min(_DEFAULT_SEEDS, settings.n_seeds)):
            data = make_data(settings.scaled(size), seed)
            yield from _fits_on(case, data, seed, ("ICLDA",))
    yield from measure_auto(case, settings)
    yield from measure_commands(case, settings)


CLOSE = Size(1_000_000, 50, n_labeled=1_000, spread=0.2)
TIED = replace(CLOSE, n_classes=3, spread=(0.2, 0.2, 0.8))
_BOTH = ("ICLDA", "MCLDA")
CASES = (
    Case(
        "large",
        "1,000,000 x 50, two classes",
        0.27,
        fits(LARGE, (*CLASSES, MARKED, "LDA lsqr"), also=("LDA svd", "SelfTraining")),
    ),
    Case(
        "wide",
        "1,000,000 x 100",
        0.06,
        fits(replace(LARGE, n_features=100), ("ICLDA",)),
    ),
    Case(
        "float32",
        "1,000,000 x 50, float32",
        0.06,
        fits(replace(LARGE, dtype="float32"), _BOTH),
    ),
    Case("classes", "1,000,000 x 50, ten classes", 0.12, fits(TEN, _BOTH)),
    Case(
        "interior",
        "interior optimum: two classes close together, 1,000 labels",
        0.05,
        fits(CLOSE, ("ICLDA",)),
    ),
    Case(
        "tied",
        "tied optimum: two classes close together and one apart, 1,000 labels",
        0.09,
        fits(TIED, ("ICLDA",)),
    ),
    Case("growth", "10,000 to 10,000,000 x 20", 0.12, series(HUGE, STEPS, _BOTH)),
    Case("threads", "two threads against one", 0.10, measure_threads),
    Case("predict", "predicting 1,000,000 x 50", 0.02, measure_predict),
    Case("sets", "the benchmark sets of the paper", 0.03, measure_sets),
    Case(
        "small",
        "the sizes of the R package: 10 features, 20 labels",
        0.03,
        series(SMALL, SMALL_STEPS, ("ICLDA",)),
    ),
    Case("memory", "peak memory beyond the input", 0.05, measure_all_memory),
    Case("default", "what people call first", 0.0, measure_default),
)
