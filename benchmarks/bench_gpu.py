"""Seconds of fits to rows on a GPU: the table of docs/performance.md.

By hand, on a machine with an NVIDIA GPU and torch; about eight minutes:

    python benchmarks/bench_gpu.py --parts --out results/gpu.json

Rows are Gaussian classes in float32, made on the card; those with a label are anywhere
among them. Every case is the call that people write, ``fit(X, y)`` with -1 for the rows
without a label, beside ``fit(X_labeled, y_labeled, X_unlabeled=...)``, with the same
rows and the labeled ones in memory. It prints the seconds of both after a first fit,
their ratio, and how far their coefficients differ; of ``fit(X, y)`` also the seconds of
the first fit, how many times as long as EM it takes, the rows that get a wrong class,
and memory beyond the rows. A case ends when its time is up, and the next one begins:
the most important come first. ``--only`` chooses cases. With ``--parts`` it also prints
where the time of ``fit(X, y)`` goes: seconds in some functions, with the card
synchronized before and after, and what Python spends most time in. ``--quotas``
measures EM and the searches with ``proportions`` instead.
``--small`` runs the same program on the CPU with small numbers, to test it.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import importlib
import json
import pstats
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import iclda
from iclda._rows.device import ArrayRows

# Means of the classes are this times N(0, I).
SPREAD = 0.3
# Rows made at a time.
STEP = 1 << 20
# Rows whose predicted class is compared with the true one.
N_TESTED = 50_000
# Functions whose seconds ``--parts`` prints: modules and names. Some call others.
PARTS = [
    ("iclda._estimators.base", "BaseClassifier._prepare"),
    ("iclda._estimators.fit_inputs", "_labels_and_weights"),
    ("iclda._estimators.fit_inputs", "_labeled_source"),
    ("iclda._estimators.fit_inputs", "_find_frame"),
    ("iclda._estimators.fit_inputs", "summarize_labeled"),
    ("iclda._rows.device", "ArrayRows.moments"),
    ("iclda._rows.device", "ArrayRows.label_sums"),
    ("iclda._rows.device", "ArrayRows.placed_label_sums"),
    ("iclda._rows.device", "ArrayRows.sample"),
    ("iclda._rows.device", "ArrayRows.restricted"),
    ("iclda._estimators.auto", "_inputs_for"),
    ("iclda._estimators.averaging", "merge_copies"),
    ("iclda._estimators.averaging", "_find_neighbors"),
    ("iclda._estimators.averaging", "_fit_members"),
    ("iclda._estimators.averaging", "anchored_em"),
    ("iclda._estimators.averaging", "_logistic"),
    ("iclda._estimators.averaging", "_score_held_out"),
    ("iclda._estimators.averaging", "summarize_rows"),
    ("iclda._estimators.averaging", "_HeldOutScores.losses"),
    ("iclda._estimators.averaging", "_HeldOutScores.scale"),
    ("iclda._estimators.averaging", "mean_of_rules"),
    ("iclda._estimators.average", "average_rule"),
    ("iclda._estimators.average", "gaussians_of_rule"),
    ("iclda._estimators.average", "estimate_final_error"),
    ("iclda._estimators.other_rows", "Calibration.of_held_out"),
    ("iclda._core.solvers.anchored", "_Classes.refit"),
]


@dataclass(frozen=True)
class Case:
    """A fit of the table.

    ``goal`` and ``limit`` are in seconds; the limit holds for all fits of one call.
    ``small`` are the rows, features, classes and labels of a test.
    """

    name: str
    title: str
    n_rows: int
    n_features: int
    n_classes: int
    n_labels: int
    make: Callable[[], Any]
    goal: float | None
    limit: float
    small: tuple[int, int, int, int]

    def sized(self, is_small: bool) -> tuple[int, int, int, int]:
        if is_small:
            return self.small
        return self.n_rows, self.n_features, self.n_classes, self.n_labels


def em(**options: Any) -> Callable[[], Any]:
    return lambda: iclda.ExpectationMaximizationLDA(**options)


def implicit() -> Any:
    return iclda.ImplicitlyConstrainedLDA(tol=1e-5)


CASES = [
    Case(
        "em-1000",
        "EM",
        *(1_281_167, 768, 1_000, 8_000),
        em(),
        None,
        150,
        (3_000, 64, 40, 320),
    ),
    Case(
        "auto-1000",
        "AutoLDA",
        *(1_281_167, 768, 1_000, 8_000),
        iclda.AutoLDA,
        15,
        180,
        (3_000, 64, 40, 320),
    ),
    Case(
        "em-100", "EM", *(1_000_000, 384, 100, 800), em(), None, 10, (3_000, 64, 10, 80)
    ),
    Case(
        "average-100",
        "AverageLDA",
        *(1_000_000, 384, 100, 800),
        iclda.AverageLDA,
        2,
        25,
        (3_000, 64, 10, 80),
    ),
    Case(
        "shares-100",
        'EM, proportions="auto"',
        *(1_000_000, 384, 100, 800),
        em(proportions="auto"),
        3,
        45,
        (3_000, 64, 10, 80),
    ),
    Case("em-10", "EM", *(1_000_000, 384, 10, 80), em(), None, 10, (3_000, 64, 5, 40)),
    Case(
        "auto-10",
        "AutoLDA",
        *(1_000_000, 384, 10, 80),
        iclda.AutoLDA,
        1,
        20,
        (3_000, 64, 5, 40),
    ),
    Case(
        "shares-10",
        'EM, proportions="auto"',
        *(1_000_000, 384, 10, 80),
        em(proportions="auto"),
        None,
        20,
        (3_000, 64, 5, 40),
    ),
    Case(
        "implicit-10-few",
        "ICLDA",
        *(1_000_000, 384, 10, 80),
        implicit,
        None,
        40,
        (3_000, 64, 5, 40),
    ),
    Case(
        "implicit-10",
        "ICLDA",
        *(1_000_000, 384, 10, 640),
        implicit,
        None,
        25,
        (3_000, 64, 5, 160),
    ),
    Case(
        "implicit-2-few",
        "ICLDA",
        *(200_000_000, 32, 2, 16),
        implicit,
        2,
        40,
        (3_000, 32, 2, 16),
    ),
    Case(
        "implicit-2-half",
        "ICLDA",
        *(100_000_000, 32, 2, 64),
        implicit,
        None,
        15,
        (3_000, 32, 2, 64),
    ),
    Case(
        "implicit-2",
        "ICLDA",
        *(200_000_000, 32, 2, 64),
        implicit,
        None,
        15,
        (3_000, 32, 2, 64),
    ),
]

# Rows and features, and the shrinkage with which eight labels a class are enough.
_SIZES_WITH_QUOTAS = {(100_000, 64): None, (1_000_000, 384): 0.1}


def quota_cases() -> list[Case]:
    """Return EM, first of each size, and the searches with ``proportions="equal"``."""
    classifiers = {
        "em": iclda.ExpectationMaximizationLDA,
        "implicit": iclda.ImplicitlyConstrainedLDA,
        "pessimistic": iclda.PessimisticLDA,
    }
    cases = []
    for (n_rows, n_features), shrinkage in _SIZES_WITH_QUOTAS.items():
        for n_classes in (10, 50, 100):
            for name, classifier in classifiers.items():
                case = Case(
                    f"{name}-quotas-{n_features}-{n_classes}",
                    f"{classifier.__name__}, equal",
                    *(n_rows, n_features, n_classes, 8 * n_classes),
                    partial(classifier, proportions="equal", shrinkage=shrinkage),
                    None,
                    60,
                    (3_000, 20, 3, 60),
                )
                cases.append(case)
    return cases


class TimeIsUp(BaseException):
    """A case has used all of its time: no handler of errors may stop that."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise ``TimeIsUp`` once the time is up."""

    def stop(*_: Any) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Data:
    """Rows and their classes on the device, and what the two calls are given.

    ``y`` has -1 for the rows without a label. The labeled rows ``X_labeled`` are in
    memory, and ``X_unlabeled`` are all others, on the device.
    """

    rows: torch.Tensor
    classes: torch.Tensor
    y: np.ndarray
    X_labeled: np.ndarray
    y_labeled: np.ndarray
    X_unlabeled: torch.Tensor


def make_data(
    n_rows: int, n_features: int, n_classes: int, n_labels: int, device: str
) -> Data:
    """Return Gaussian classes with unit covariance, with as many labels of each."""
    rng = np.random.default_rng(5)
    means = SPREAD * rng.standard_normal((n_classes, n_features))
    random = torch.Generator(device).manual_seed(5)
    placed_means = torch.asarray(means, dtype=torch.float32, device=device)
    rows = torch.empty((n_rows, n_features), device=device)
    classes = torch.randint(n_classes, (n_rows,), device=device, generator=random)
    order = torch.randperm(n_rows, device=device, generator=random)
    labeled = torch.sort(order[:n_labels]).values
    classes[labeled] = torch.arange(n_labels, device=device) % n_classes
    for start in range(0, n_rows, STEP):
        part = rows[start : start + STEP]
        part.normal_(generator=random)
        part += placed_means[classes[start : start + STEP]]

    is_unlabeled = torch.ones(n_rows, dtype=torch.bool, device=device)
    is_unlabeled[labeled] = False
    y_labeled = classes[labeled].cpu().numpy()
    y = np.full(n_rows, -1)
    y[labeled.cpu().numpy()] = y_labeled
    X_labeled = rows[labeled].cpu().numpy()
    return Data(rows, classes, y, X_labeled, y_labeled, rows[is_unlabeled])


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    synchronize()
    begin = time.perf_counter()
    result = function()
    synchronize()
    return time.perf_counter() - begin, result


@contextmanager
def parts_timed(found: dict[str, list[float]]) -> Iterator[None]:
    """Collect the seconds of every call of the functions in ``PARTS``."""
    replaced = []
    for module, path in PARTS:
        owner = importlib.import_module(module)
        *holders, name = path.split(".")
        for holder in holders:
            owner = getattr(owner, holder, None)
        # Not every version has all of them.
        if owner is None or name not in vars(owner):
            continue
        original = vars(owner)[name]
        setattr(owner, name, _timed_part(original, path, found))
        replaced.append((owner, name, original))
    try:
        yield
    finally:
        for owner, name, original in replaced:
            setattr(owner, name, original)


def _timed_part(original: Any, path: str, found: dict[str, list[float]]) -> Any:
    function = original.__func__ if isinstance(original, classmethod) else original

    def part(*args: Any, **options: Any) -> Any:
        duration, result = timed(lambda: function(*args, **options))
        found.setdefault(path, []).append(duration)
        return result

    return classmethod(part) if isinstance(original, classmethod) else part


def show_parts(fit: Callable[[], Any]) -> dict[str, list[float]]:
    """Fit once more, and print where the time goes."""
    found: dict[str, list[float]] = {}
    profile = cProfile.Profile()
    with parts_timed(found):
        profile.enable()
        try:
            duration, _ = timed(fit)
        finally:
            profile.disable()
    print(f"    parts of a fit of {duration:.2f} s (inclusive):")
    for path, durations in sorted(found.items(), key=lambda item: -sum(item[1])):
        print(f"      {sum(durations):8.3f} s {len(durations):5d} x  {path}")
    print("    functions that take most time themselves:")
    stats: Any = pstats.Stats(profile)
    own = sorted(stats.stats.items(), key=lambda item: -item[1][2])
    for (file, line, name), (_, n_calls, own_time, total, _) in own[:15]:
        where = f"{Path(file).name}:{line}({name})"
        print(f"      {own_time:8.3f} s {n_calls:6d} x  {total:8.3f} s in all  {where}")
    return found


def describe(model: Any, data: Data) -> dict[str, Any]:
    """Return how good a fit is, and how it ended."""
    tested = data.rows[:N_TESTED]
    predicted = torch.as_tensor(np.asarray(model.predict(tested).tolist()))
    is_wrong = predicted != data.classes[:N_TESTED].cpu()
    found = {"wrong": float(is_wrong.double().mean())}
    names = ("n_passes_", "n_iter_", "gap_", "outcome_", "error_", "member_weights_")
    for name in names:
        value = getattr(model, name, None)
        if value is not None:
            found[name] = value
    return found


def fitted(fit: Callable[[], Any], fits: int, row: dict[str, Any], name: str) -> Any:
    """Fit once, and then some times more; note the seconds, and return a model."""
    row[f"first {name}"], model = timed(fit)
    row[name] = []
    for _ in range(fits):
        row[name].append(timed(fit)[0])
    return model


def largest_difference(model: Any, other: Any) -> float:
    """Return by how much coefficients differ, as a share of the largest one."""
    return float(np.abs(model.coef_ - other.coef_).max() / np.abs(other.coef_).max())


def measure(
    case: Case, data: Data, fits: int, with_parts: bool, device: str
) -> dict[str, Any]:
    """Fit by both calls until the time is up; return what was measured."""
    row: dict[str, Any] = {"case": case.name, "method": case.title}
    row["goal"] = case.goal

    def fit() -> Any:
        return case.make().fit(data.rows, data.y)

    def fit_apart() -> Any:
        return case.make().fit(
            data.X_labeled, data.y_labeled, X_unlabeled=data.X_unlabeled
        )

    try:
        with limited(case.limit):
            apart = fitted(fit_apart, fits, row, "apart")
        with limited(case.limit):
            before = 0
            if device == "cuda":
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
            model = fitted(fit, fits, row, "seconds")
            if device == "cuda":
                row["mebibytes"] = (torch.cuda.max_memory_allocated() - before) / 2**20
            row["ratio"] = np.median(row["seconds"]) / np.median(row["apart"])
            # An ensemble has no coefficients.
            if hasattr(model, "coef_") and hasattr(apart, "coef_"):
                row["differ"] = largest_difference(model, apart)
            row |= describe(model, data)
            if with_parts:
                row["parts"] = show_parts(fit)
    except TimeIsUp:
        row["ended"] = f"time is up after {case.limit:g} s"
    # A case that fails must not keep the others from being measured.
    except Exception as error:
        row["ended"] = f"{type(error).__name__}: {error}"[:500]
    return row


def line_of(row: dict[str, Any]) -> str:
    """Return the row of the table."""

    def shown(name: str, style: str) -> str:
        value = row.get(name)
        if isinstance(value, list):
            value = np.median(value) if value else None
        return "-" if value is None else format(value, style)

    cells = [
        f"{row['rows']:,} x {row['features']}, {row['classes']:,} classes, "
        f"{row['labels']:,} labels",
        row["method"],
        shown("seconds", ".2f"),
        shown("goal", "g"),
        shown("apart", ".2f"),
        shown("ratio", ".2f"),
        shown("differ", ".0e"),
        shown("first seconds", ".2f"),
        shown("times_em", ".1f"),
        str(row.get("n_passes_", "-")),
        shown("wrong", ".2%"),
        shown("mebibytes", ",.0f"),
        " ".join(
            str(row[name]) for name in ("gap_", "outcome_", "ended") if name in row
        ),
    ]
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "| rows | method | seconds | goal | with X_unlabeled | ratio | differ | first fit "
    "| times EM | passes | wrong | MiB beyond the rows | end |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def compare_with_memory(device: str) -> None:
    """Print how far fits on the device are from the same ones in memory."""
    data = make_data(20_000, 128, 10, 80, device)
    for name in ("AutoLDA", "ExpectationMaximizationLDA"):
        make = getattr(iclda, name)
        there = make().fit(data.rows, data.y)
        here = make().fit(data.rows.cpu().numpy(), data.y)
        print(
            f"{name}, 20,000 x 128 on the device and in memory: coefficients differ by "
            f"{largest_difference(there, here):.1e} of the largest",
            flush=True,
        )


def warm_up(device: str) -> None:
    """Load the libraries of the device, which takes seconds."""
    data = make_data(5_000, 64, 10, 80, device)
    for make in (iclda.AutoLDA, em(), em(proportions="auto"), implicit):
        make().fit(data.rows, data.y)
        make().fit(data.X_labeled, data.y_labeled, X_unlabeled=data.X_unlabeled)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", action="append", choices=[case.name for case in CASES]
    )
    parser.add_argument(
        "--quotas", action="store_true", help="the searches with proportions instead"
    )
    parser.add_argument("--fits", type=int, default=1, help="timed fits of each case")
    parser.add_argument("--parts", action="store_true", help="where the time goes")
    parser.add_argument("--small", action="store_true", help="on the CPU, a test")
    parser.add_argument("--out", type=Path, help="JSON file")
    options = parser.parse_args()
    device = "cpu" if options.small else "cuda"
    if options.small:
        # As if the CPU were a device on which rows are held.
        ArrayRows._is_on_cpu = False
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    warm_up(device)
    where = "CPU" if options.small else torch.cuda.get_device_name(0)
    print(
        f"{where}, torch {torch.__version__}, NumPy {np.__version__}, "
        f"{torch.get_num_threads()} threads; warm after "
        f"{time.perf_counter() - start:.1f} s\n\n{HEAD}",
        flush=True,
    )
    rows = []
    size: tuple[int, ...] = ()
    em_seconds: dict[tuple[int, ...], float] = {}
    for case in quota_cases() if options.quotas else CASES:
        if options.only and case.name not in options.only:
            continue
        if case.sized(options.small) != size:
            # The rows of the last case go before the next ones are made.
            data = None
            gc.collect()
            size = case.sized(options.small)
            data = make_data(*size, device)
        row = measure(case, data, options.fits, options.parts, device)
        names = ("rows", "features", "classes", "labels")
        row |= dict(zip(names, size, strict=True))
        if row.get("seconds"):
            if case.name.startswith("em-"):
                em_seconds[size] = float(np.median(row["seconds"]))
            if size in em_seconds:
                row["times_em"] = float(np.median(row["seconds"])) / em_seconds[size]
        rows.append(row)
        print(line_of(row), flush=True)
        if options.out:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(rows, indent=1, default=str))
    if not options.only and not options.quotas:
        compare_with_memory(device)
    print(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
