"""Seconds of the default by the number of rows, in memory and on a GPU.

    python benchmarks/bench_growth.py                measure on one core of the CPU
    python benchmarks/bench_growth.py --gpu          measure on a GPU; needs torch
    python benchmarks/bench_growth.py --draw         measure nothing: docs/growth.svg

Rows have 64 features and ten Gaussian classes, in float32; 160 of them are labeled.
``LogisticRegression`` gets the class of every row, as the cost of a supervised fit of
this size. Seconds on the CPU are those of the processor. A method ends where it runs
out of time or memory. Results are kept in growth.json, each run in place of an earlier
one on the same kind of machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import signal
import time
import warnings
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

# Read when the libraries are loaded.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np

import iclda

HERE = Path(__file__).parent
STORED = HERE / "growth.json"
FIGURE = HERE.parent / "docs" / "growth.svg"

N_FEATURES = 64
N_CLASSES = 10
N_LABELS = 160
SPREAD = 0.3
CPU_ROWS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
GPU_ROWS = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
# A fit may take this long, and a process may use this much memory.
MAX_SECONDS = 30
MAX_GIBIBYTES = 8
# What ended a line.
TIME = "time"
MEMORY = "memory"

# Rows, their classes, and which of them are labeled: NumPy's or torch's rows.
Data = tuple[Any, np.ndarray, np.ndarray]


def fit_ours(make: Callable[[], Any]) -> Callable[[Data], Any]:
    def fit(data: Data) -> Any:
        rows, labeled, classes = data
        return make().fit(labeled, classes[: len(labeled)], X_unlabeled=rows)

    return fit


def fit_logistic(data: Data) -> Any:
    from sklearn.linear_model import LogisticRegression

    rows, labeled, classes = data
    return LogisticRegression(max_iter=200).fit(rows, classes[len(labeled) :])


def fit_spreading(data: Data) -> Any:
    from sklearn.semi_supervised import LabelSpreading

    rows, labeled, classes = data
    y = np.full(len(labeled) + len(rows), -1)
    y[: len(labeled)] = classes[: len(labeled)]
    return LabelSpreading(gamma=1 / N_FEATURES).fit(np.concatenate([labeled, rows]), y)


def implicit() -> Any:
    return iclda.ImplicitlyConstrainedLDA(tol=1e-5)


OURS = {
    "AutoLDA": fit_ours(iclda.AutoLDA),
    "EM": fit_ours(iclda.ExpectationMaximizationLDA),
    "ICLDA": fit_ours(implicit),
}
# Of the lines, in the order of the legend.
COLORS = {
    "AutoLDA": "#0072b2",
    "EM": "#d55e00",
    "ICLDA": "#c0479f",
    "LogisticRegression": "#777777",
    "LabelSpreading": "#b8a200",
}
PEERS = {"LogisticRegression": fit_logistic, "LabelSpreading": fit_spreading}


def make_data(n_rows: int) -> Data:
    """Return rows in memory, labeled rows, and the classes of labeled rows and rows."""
    rng = np.random.default_rng(7)
    means = SPREAD * rng.standard_normal((N_CLASSES, N_FEATURES))
    classes = rng.integers(N_CLASSES, size=N_LABELS + n_rows)
    classes[:N_LABELS] = np.arange(N_LABELS) % N_CLASSES
    rows = rng.standard_normal((N_LABELS + n_rows, N_FEATURES), dtype=np.float32)
    rows += means[classes].astype(np.float32)
    return rows[N_LABELS:], rows[:N_LABELS], classes


def measure_cpu() -> list[dict[str, Any]]:
    """Measure every fit in a process of its own."""
    points = []
    for name, fit in {**OURS, **PEERS}.items():
        for n_rows in CPU_ROWS:
            result = seconds_in_fork(fit, make_data(n_rows))
            points.append({"method": name, "rows": n_rows, **result})
            print(points[-1], flush=True)
            if "ended" in result:
                break
    return points


def seconds_in_fork(fit: Callable[[Data], Any], data: Data) -> dict[str, Any]:
    """Return the seconds of a fit, or what ended it."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send_seconds, args=(theirs, fit, data))
    process.start()
    theirs.close()
    try:
        found: dict[str, Any] = ours.recv()
    except EOFError:
        process.join()
        is_late = process.exitcode == -signal.SIGXCPU
        # The system may end a process that asks for too much memory.
        found = {"ended": TIME if is_late else MEMORY}
    process.join()
    return found


def _send_seconds(pipe: Connection, fit: Callable[[Data], Any], data: Data) -> None:
    warnings.simplefilter("ignore")
    # The first fit imports what the others use.
    fit(make_data(500))
    limit = MAX_GIBIBYTES * 2**30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    begin = time.process_time()
    last_second = int(begin) + MAX_SECONDS
    # No file is worth writing when the time is up.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (last_second, last_second + 1))
    try:
        fit(data)
    except MemoryError:
        pipe.send({"ended": MEMORY})
        return
    pipe.send({"seconds": time.process_time() - begin})


def measure_gpu(sizes: tuple[int, ...], device: str) -> list[dict[str, Any]]:
    """Measure the second fit of every method and size."""
    from bench_gpu import make_data as make_placed
    from bench_gpu import timed

    points = []
    for n_rows in sizes:
        placed = make_placed(n_rows, N_FEATURES, N_CLASSES, N_LABELS, device)
        data = placed.X_unlabeled, placed.X_labeled, placed.y_labeled
        for name, fit in OURS.items():
            fit(data)
            point = {
                "method": name,
                "rows": n_rows,
                "seconds": timed(partial(fit, data))[0],
            }
            points.append(point)
            print(point, flush=True)
    return points


def draw(runs: dict[str, Any], path: Path) -> None:
    """Draw one panel for each kind of machine, log-log."""
    from iclda.studies.page import new_figure, styled

    @styled
    def figure_of_runs() -> Any:
        figure, grid = new_figure(4.8 * len(runs), 3.9, 1, len(runs))
        for axes, (kind, run) in zip(grid[0], runs.items(), strict=True):
            axes.set(xscale="log", yscale="log", xlabel="Unlabeled rows")
            axes.set_title(f"{kind}: {run['machine']}, {run['date']}", fontsize=9)
            for name, color in COLORS.items():
                draw_line(axes, name, run["points"], color)
            axes.legend(frameon=False, fontsize=8, loc="lower right")
        grid[0][0].set_ylabel("Seconds a fit")
        return figure

    figure = figure_of_runs()
    figure.savefig(path, metadata={"Date": None}, facecolor="white")


def draw_line(axes: Any, name: str, points: list[Any], color: str) -> None:
    line = [each for each in points if each["method"] == name]
    measured = [each for each in line if "seconds" in each]
    if not measured:
        return
    rows = [each["rows"] for each in measured]
    seconds = [each["seconds"] for each in measured]
    ended = line[-1].get("ended")
    label = name if ended is None else f"{name}, ended by {ended}"
    axes.plot(rows, seconds, marker="o", markersize=4, color=color, label=label)


def machine_name(gpu: bool) -> str:
    if gpu:
        import torch

        return str(torch.cuda.get_device_name(0))
    from suite.machine import describe_machine

    machine = describe_machine()
    return f"{machine['cores']} cores, {machine['memory_gib']:.0f} GiB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="store_true", help="rows on a GPU")
    parser.add_argument("--draw", action="store_true", help=f"write {FIGURE.name}")
    parser.add_argument("--out", type=Path, default=STORED, help="JSON file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = json.loads(options.out.read_text()) if options.out.exists() else {}
    if options.draw:
        draw(runs, FIGURE)
        return
    kind = "GPU" if options.gpu else "CPU"
    points = measure_gpu(GPU_ROWS, "cuda") if options.gpu else measure_cpu()
    runs[kind] = {
        "machine": machine_name(options.gpu),
        "date": time.strftime("%Y-%m-%d"),
        "points": points,
    }
    options.out.write_text(json.dumps(runs, indent=1) + "\n")


if __name__ == "__main__":
    main()
