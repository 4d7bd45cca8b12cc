"""Peak memory of a fit beyond its input.

The largest resident size of a process (ru_maxrss) never falls. Hence one new process
for each size, which makes the rows and warms up BLAS, and from it one fork for each
method: the fork begins with the resident size of that moment, so that the difference at
its end is what the fit took. Run as a program it is that process: a size and methods
in, mebibytes out, as JSON.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from .data import Size, make_data
from .methods import fit_ours, warm_up
from .rows import Note, Row

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)


def measure_memory(
    case: str, size: Size, methods: tuple[str, ...]
) -> Iterator[Row | Note]:
    """A row for each method, or a note if the process failed."""
    if "fork" not in multiprocessing.get_all_start_methods():
        yield Note(case, "left out: this system cannot fork a process")
        return
    order = json.dumps({"size": asdict(size), "methods": methods})
    done = subprocess.run(
        [sys.executable, "-m", "suite.memory", order],
        cwd=Path(__file__).parents[1],
        env={**os.environ, **_ONE_THREAD},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        yield Note(
            case,
            f"{size.n_unlabeled:,} x {size.n_features} failed: {done.stderr[-500:]}",
        )
        return
    for method, mebibytes in json.loads(done.stdout).items():
        yield Row(
            case=case,
            method=method,
            n_unlabeled=size.n_unlabeled,
            n_features=size.n_features,
            n_classes=size.n_classes,
            n_labeled=size.n_labeled,
            dtype=size.dtype,
            extra_mib=mebibytes,
        )


def measure_here(size: Size, methods: list[str]) -> dict[str, float]:
    """Peak of every method, each in a fork of this process."""
    data = make_data(size, seed=0)
    data.unlabeled.T @ data.unlabeled
    warm_up()
    return {method: peak_in_fork(partial(fit_ours, method, data)) for method in methods}


def peak_in_fork(function: Callable[[], Any]) -> float:
    """Mebibytes that a call adds to those resident now, at its worst moment."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send_peak, args=(theirs, function))
    process.start()
    theirs.close()
    try:
        peak: float = ours.recv()
    finally:
        process.join()
    return peak


def _send_peak(pipe: Connection, function: Callable[[], Any]) -> None:
    # A fork inherits the data but not the code of the libraries, which counts once it
    # is used.
    warm_up()
    before = _largest_resident_mib()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function()
    pipe.send(_largest_resident_mib() - before)


def _largest_resident_mib() -> float:
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest / (2**20 if sys.platform == "darwin" else 2**10)


def main() -> None:
    order = json.loads(sys.argv[1])
    spread = order["size"].pop("spread")
    size = Size(
        spread=tuple(spread) if isinstance(spread, list) else spread, **order["size"]
    )
    print(json.dumps(measure_here(size, order["methods"])))


if __name__ == "__main__":
    main()
