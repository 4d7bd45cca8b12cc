"""Measure the cost of a Dask cluster against threads; estimate a fit of 1e12 rows.

Two worker processes against two threads on the same rows: whole fits, single passes,
the price of a block. The constants found are put together for a large cluster, on
paper.
"""

from __future__ import annotations

import argparse
import json
import logging
import pickle
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dask.array
import numpy as np
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits

from iclda import ExpectationMaximizationLDA, ImplicitlyConstrainedLDA
from iclda._core.frame import Frame, frame_of
from iclda._core.labelsums import LinearRule
from iclda._rows.dask import open_rows
from iclda._rows.memory import MemoryRows
from iclda._rows.protocol import Request
from iclda.rows import from_dask
from suite.machine import describe_machine, describe_versions
from suite.timing import seconds_of, take_turns

METHODS = {
    "implicitly constrained": ImplicitlyConstrainedLDA,
    "EM": partial(ExpectationMaximizationLDA, tol=1e-8),
}
N_PROCESSES = 2
# The estimated fit: rows of the benchmark of files, workers of common size.
PAPER = {
    "rows": 1e12,
    "features": 20,
    "workers": 1_000,
    "cores": 16,
    "bytes of a number": 4,
}
# Bytes a second that a worker reads, where blocks are read again in every pass.
DISK = 2e9
# Rows drawn for the frame and for the search.
SAMPLES = (4_096, 20_000)


def block(number: int, n_rows: int, n_features: int, dtype: str = "float64") -> Any:
    """Two classes, alternating; every block has random numbers of its own."""
    rng = np.random.default_rng([6, number])
    rows = rng.standard_normal((n_rows, n_features), dtype=np.dtype(dtype).type)
    rows[::2] += np.asarray(1.0 / np.sqrt(n_features) * 2, rows.dtype)
    return rows


def kept_blocks(n_blocks: int, n_rows: int, n_features: int) -> Any:
    """Rows on the workers, which keep them."""
    dtype = block(0, 1, n_features).dtype
    blocks = [dask.delayed(block)(i, n_rows, n_features) for i in range(n_blocks)]
    parts = [
        dask.array.from_delayed(each, (n_rows, n_features), dtype) for each in blocks
    ]
    return from_dask(dask.array.concatenate(parts).persist())


def labeled(n_features: int) -> tuple[Any, Any]:
    X = block(10**6, 100, n_features)
    return X, (np.arange(100) % 2).astype(int)


def fits(
    n_rows: int, n_features: int, n_blocks: int, patience: float
) -> list[dict[str, Any]]:
    """Seconds of whole fits, with rows in memory on both sides."""
    there = kept_blocks(n_blocks, n_rows // n_blocks, n_features)
    here = np.concatenate(
        [block(i, n_rows // n_blocks, n_features) for i in range(n_blocks)]
    )
    kept = open_rows(there, Request("X_unlabeled", n_features))
    assert kept.n_rows == len(here)
    X, y = labeled(n_features)
    found = []
    for name, method in METHODS.items():
        timings, unit = take_turns(
            {
                "2 threads": partial(
                    method(n_jobs=N_PROCESSES).fit, X, y, X_unlabeled=here
                ),
                "2 processes": partial(method().fit, X, y, X_unlabeled=there),
            },
            lambda: here.T @ here,
            most=5,
            patience=patience,
        )
        for place, timing in timings.items():
            if timing.failure is not None:
                raise RuntimeError(timing.failure)
            found.append(
                {
                    "method": name,
                    "place": place,
                    "seconds": timing.seconds,
                    "unit": unit,
                    "passes": getattr(
                        timing.result, "n_passes_", timing.result.n_iter_ + 1
                    ),
                    "objective": float(getattr(timing.result, "objective_", np.nan)),
                    "gap": float(getattr(timing.result, "gap_", np.nan)),
                }
            )
    return found


def rule_and_frame(rows: Any) -> tuple[LinearRule, Frame]:
    d = rows.shape[1]
    coef = np.random.default_rng(2).standard_normal((d, 2))
    return LinearRule(coef, np.zeros(2), is_soft=True), frame_of(rows[:4096])


def best_of(function: Callable[[], Any], times: int = 20) -> float:
    return min(seconds_of(function)[0] for _ in range(times))


def price_of_a_block(counts: tuple[int, ...]) -> list[dict[str, float]]:
    """Seconds of passes over nearly empty blocks.

    Beside the clock, processor time of this process, which holds client and scheduler.
    """
    prices = []
    for n_blocks in counts:
        rows = open_rows(kept_blocks(n_blocks, 10, 4), Request("X", n_features=4))
        rule, frame = rule_and_frame(block(0, 100, 4))
        rows.label_sums(rule, frame)
        begin = time.process_time()
        seconds = [
            seconds_of(partial(rows.label_sums, rule, frame))[0] for _ in range(10)
        ]
        spent = (time.process_time() - begin) / len(seconds)
        prices.append({"blocks": n_blocks, "seconds": min(seconds), "here": spent})
    return prices


def speed_of_a_core(n_rows: int) -> dict[str, float]:
    """Rows a second of one thread, and of two, in the passes of a float32 fit."""
    X = block(0, n_rows, PAPER["features"], "float32")
    rule, frame = rule_and_frame(X)
    found = {}
    for n_threads in (1, 2):
        rows = MemoryRows(X, n_threads=n_threads)
        found[f"moments, {n_threads}"] = n_rows / best_of(partial(rows.moments, frame))
        found[f"labels, {n_threads}"] = n_rows / best_of(
            partial(rows.label_sums, rule, frame)
        )
    return found


def on_paper(
    speed: dict[str, float], seconds_a_block: float, n_passes: int, blocks_a_worker: int
) -> dict[str, float]:
    """A fit of many rows on many workers, from what was measured here."""
    d = int(PAPER["features"])
    n_blocks = PAPER["workers"] * blocks_a_worker
    rows_a_worker = PAPER["rows"] / PAPER["workers"]
    bytes_a_worker = rows_a_worker * d * PAPER["bytes of a number"]
    efficiency = min(1.0, speed["labels, 2"] / speed["labels, 1"] / 2)
    cores = PAPER["cores"] * efficiency
    moments = rows_a_worker / speed["moments, 1"] / cores
    labels = rows_a_worker / speed["labels, 1"] / cores
    arithmetic = moments + (n_passes - 1) * labels
    # One more to inspect the blocks.
    n_rounds = n_passes + 1 + len(SAMPLES)
    waiting = n_rounds * n_blocks * seconds_a_block
    sums = bytes_of_sums(d)
    return {
        "blocks a worker": blocks_a_worker,
        "bytes of rows a worker": bytes_a_worker,
        "passes": n_passes,
        "rounds": n_rounds,
        "efficiency of cores": efficiency,
        "seconds of moments": moments,
        "seconds of a labeling pass": labels,
        "seconds of arithmetic": arithmetic,
        "seconds of scheduling": waiting,
        "seconds, rows kept": arithmetic + waiting,
        "seconds to read all rows once": bytes_a_worker / DISK,
        "seconds, rows read again": (n_passes + 1) * bytes_a_worker / DISK
        + arithmetic
        + waiting,
        "bytes of sums a block": sums,
        "bytes between workers": n_rounds * n_blocks * sums,
        "bytes to the client": n_rounds * sums + sum(SAMPLES) * (d + 1) * 8,
    }


def bytes_of_sums(n_features: int) -> int:
    """The largest result of a block: moments, or label sums with curvature."""
    X = block(0, 100, n_features)
    rule, frame = rule_and_frame(X)
    rows = MemoryRows(X)
    results = rows.moments(frame), rows.label_sums(rule, frame, curvature=True)
    return max(len(pickle.dumps(result)) for result in results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--patience", type=float, default=20.0, help="seconds a method")
    parser.add_argument("--out", type=Path, default=Path("results/bench-dask.json"))
    options = parser.parse_args()
    with (
        threadpool_limits(1),
        LocalCluster(
            n_workers=N_PROCESSES,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster),
    ):
        measured = fits(
            options.rows, options.features, options.blocks, options.patience
        )
        prices = price_of_a_block((8, 64, 512))
    speed = speed_of_a_core(min(options.rows, 2_000_000))
    few = prices[0]
    many = prices[-1]
    seconds_a_block = (many["seconds"] - few["seconds"]) / (
        many["blocks"] - few["blocks"]
    )
    passes = [
        row["passes"] for row in measured if row["method"] == "implicitly constrained"
    ]
    result = {
        "machine": describe_machine(),
        "versions": describe_versions(),
        "time": time.strftime("%Y-%m-%d %H:%M"),
        "size": {
            "rows": options.rows,
            "features": options.features,
            "blocks": options.blocks,
        },
        "fits": measured,
        "passes over empty blocks": prices,
        "seconds a block": seconds_a_block,
        "rows a second, float32": speed,
        "on paper": PAPER,
        "costs": [on_paper(speed, seconds_a_block, max(passes), n) for n in (1, 4)],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
