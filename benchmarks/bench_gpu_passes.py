"""Fit rows that lie on a GPU: passes, seconds, speed of memory, memory, agreement.

By hand, on a machine with an NVIDIA GPU, torch and Triton:

    python benchmarks/bench_gpu_passes.py --rows 500000000 --out results/gpu.json

Without options the rows fill the card.

Rows are two Gaussian classes (``--classes`` for more) in float32, made on the card; 64
more are labeled (``--labels``). The fit ends at a gap of 1e-5 per labeled row. Times
are medians with the kernels built; "first" is the first fit of the process, which
builds them unless they are cached. Pin BLAS to one thread (OPENBLAS_NUM_THREADS=1):
what is left on the CPU is small, and many threads only slow it down.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from iclda import ImplicitlyConstrainedLDA
from iclda._core.frame import frame_of
from iclda._core.labelsums import LinearRule
from iclda._rows.device import ArrayRows
from iclda._rows.protocol import Request

# Rows made at a time.
_STEP = 1 << 22
_TOL = 1e-5


@dataclass(frozen=True)
class Problem:
    """Unlabeled rows on the card, labeled ones in memory."""

    rows: torch.Tensor
    X: np.ndarray
    y: np.ndarray

    @property
    def gigabytes(self) -> float:
        return self.rows.numel() * self.rows.element_size() / 1e9


def make_problem(size: argparse.Namespace) -> Problem:
    """Classes with unit covariance and means of ``spread`` x N(0, I)."""
    n_rows = size.rows
    n_features = size.features
    n_classes = size.classes
    n_labeled = size.labels
    spread = size.spread
    rng = np.random.default_rng(5)
    means = spread * rng.standard_normal((n_classes, n_features))
    y = np.arange(n_labeled) % n_classes
    X = means[y] + rng.standard_normal((n_labeled, n_features))
    random = torch.Generator("cuda").manual_seed(5)
    rows = torch.empty((n_rows, n_features), device="cuda")
    on_card = torch.asarray(means, dtype=torch.float32, device="cuda")
    for start in range(0, n_rows, _STEP):
        part = rows[start : start + _STEP]
        part.normal_(generator=random)
        codes = torch.randint(n_classes, (len(part),), device="cuda", generator=random)
        # In small blocks, to save memory.
        for k in range(0, len(part), 1 << 18):
            part[k : k + (1 << 18)] += on_card[codes[k : k + (1 << 18)]]
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return Problem(rows, X.astype(np.float32), y)


def seconds(function: Callable[[], Any], repeats: int) -> list[float]:
    found = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        function()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - begin)
    return found


def steady(function: Callable[[], Any], repeats: int = 5) -> float:
    function()
    return median(seconds(function, repeats))


@contextmanager
def environment(**settings: str) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Stopwatch:
    """Time spent in each method of ``ArrayRows``, with the GPU synchronized."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        methods = {
            name: getattr(ArrayRows, name)
            for name in ("moments", "label_sums", "sample")
        }
        for name, method in methods.items():
            setattr(ArrayRows, name, self._timed(name, method))
        try:
            yield
        finally:
            for name, method in methods.items():
                setattr(ArrayRows, name, method)

    def _timed(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            begin = time.perf_counter()
            result = method(*args, **options)
            torch.cuda.synchronize()
            detail = " + rows near boundaries" if options.get("near") else ""
            self.seconds.setdefault(name + detail, []).append(
                time.perf_counter() - begin
            )
            return result

        return timed


def fit(problem: Problem, rows: Any) -> ImplicitlyConstrainedLDA:
    model = ImplicitlyConstrainedLDA(tol=_TOL)
    return model.fit(problem.X, problem.y, X_unlabeled=rows)


def time_passes(problem: Problem) -> dict[str, float]:
    """Seconds of one read of all rows, by what it is for."""
    n_classes = int(problem.y.max()) + 1
    n_features = problem.rows.shape[1]
    rng = np.random.default_rng(6)
    coef = rng.standard_normal((n_features, n_classes)) / np.sqrt(n_features) * 20
    intercept = rng.standard_normal(n_classes)
    frame = frame_of(ArrayRows(problem.rows, Request("X")).sample(4096, 0)[0])
    rows = ArrayRows(problem.rows, Request("X"))
    # Computed here, since label sums of two classes use them.
    rows.moments(frame)

    return {
        "sum of all numbers (torch)": steady(problem.rows.sum),
        "X'X in float32 (torch)": steady(lambda: problem.rows.T @ problem.rows),
        "moments": steady(lambda: ArrayRows(problem.rows, Request("X")).moments(frame)),
        "soft labels": steady(
            lambda: rows.label_sums(LinearRule(coef, intercept, True), frame)
        ),
        "hard labels": steady(
            lambda: rows.label_sums(LinearRule(coef, intercept, False), frame)
        ),
    }


def time_fit(problem: Problem, repeats: int) -> dict[str, Any]:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    first = seconds(lambda: fit(problem, problem.rows), 1)[0]
    times = seconds(lambda: fit(problem, problem.rows), repeats)
    peak = torch.cuda.max_memory_allocated() - before
    watch = Stopwatch()
    with watch.running():
        watched = seconds(lambda: fit(problem, problem.rows), 1)[0]
    model = fit(problem, problem.rows)
    on_card = sum(map(sum, watch.seconds.values()))
    return {
        "seconds": median(times),
        "fastest": min(times),
        "first": first,
        "passes": model.n_passes_,
        "gap": model.gap_,
        "objective": model.objective_,
        "converged": model.converged_,
        "gigabytes_per_second": model.n_passes_ * problem.gigabytes / median(times),
        "memory_beyond_rows_megabytes": peak / 1e6,
        "seconds_elsewhere": watched - on_card,
        "reads": {
            name: [round(t, 4) for t in found] for name, found in watch.seconds.items()
        },
    }


def compare_with_cpu(problem: Problem, n_rows: int) -> dict[str, Any]:
    """The same fit of some of the rows on the card and in memory."""
    rows = problem.rows[:n_rows]
    on_card = fit(problem, rows)
    in_memory = fit(problem, rows.cpu().numpy())
    with environment(ICLDA_FUSED="0"):
        unfused = fit(problem, rows)
    found = {}
    for name, model in {"kernels": on_card, "array functions": unfused}.items():
        apart = abs(model.objective_ - in_memory.objective_) / abs(in_memory.objective_)
        scale = np.abs(in_memory.coef_).max()
        found[name] = {
            "objective": apart,
            "coef": float(np.abs(model.coef_ - in_memory.coef_).max() / scale),
            "passes": model.n_passes_,
        }
    labels = on_card.predict(rows).cpu().numpy()
    found["predictions that differ"] = float(
        (labels != in_memory.predict(rows.cpu().numpy())).mean()
    )
    return {"rows": n_rows, "relative to the fit in memory": found}


def machine() -> dict[str, Any]:
    card = torch.cuda.get_device_properties(0)
    return {
        "card": card.name,
        "memory_gibibytes": round(card.total_memory / 2**30),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def measure(size: argparse.Namespace) -> dict[str, Any]:
    problem = make_problem(size)
    found = {**vars(size), "out": str(size.out), "gigabytes": problem.gigabytes}
    found["fit"] = time_fit(problem, size.repeats)
    show_fit(found)
    found["seconds_a_pass"] = time_passes(problem)
    show_passes(found)
    if not size.kernels_only:
        with environment(ICLDA_FUSED="0"):
            times = seconds(lambda: fit(problem, problem.rows), size.repeats)
        found["seconds_without_kernels"] = median(times)
        print(f"    fit without kernels: {median(times):.3f} s", flush=True)
    found["against the CPU"] = compare_with_cpu(problem, min(size.rows, size.compared))
    print("    against the CPU:", found["against the CPU"], flush=True)
    return found


def show_fit(found: dict[str, Any]) -> None:
    fitted = found["fit"]
    print(
        f"{found['rows']:,} x {found['features']}, {found['classes']} classes, "
        f"{found['labels']} labels, {found['gigabytes']:.1f} GB: "
        f"fit {fitted['seconds']:.3f} s ({fitted['passes']} passes, "
        f"{fitted['gigabytes_per_second'] / 1e3:.2f} TB/s, gap {fitted['gap']:.1e}, "
        f"{fitted['memory_beyond_rows_megabytes']:.0f} MB beyond the rows), "
        f"first {fitted['first']:.2f} s, "
        f"{fitted['seconds_elsewhere']:.3f} s of it on the CPU\n"
        f"    reads: {fitted['reads']}",
        flush=True,
    )


def show_passes(found: dict[str, Any]) -> None:
    for name, duration in found["seconds_a_pass"].items():
        speed = found["gigabytes"] / duration / 1e3
        print(f"    {name:28s} {1e3 * duration:7.1f} ms   {speed:.2f} TB/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--labels", type=int, default=64)
    parser.add_argument("--spread", type=float, default=0.3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--compared", type=int, default=2_000_000, help="rows fitted in memory too"
    )
    parser.add_argument("--kernels-only", action="store_true")
    parser.add_argument("--out", type=Path)
    size = parser.parse_args()
    size.rows = size.rows or int(0.8 * torch.cuda.mem_get_info()[0]) // (
        4 * size.features
    )
    # A fit that did not converge, kernels that did not run.
    warnings.simplefilter("error")
    found = {**machine(), **measure(size)}
    if size.out:
        size.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
