"""A fit to a file larger than the memory it may use, as .npy and as Parquet.

    python benchmarks/bench_files.py              100,000,000 x 20 float32, 8 GB each
    python benchmarks/bench_files.py --rows 5000000      smaller, to see that it runs

Every fit runs in a process of its own that may not allocate more than the limit
(RLIMIT_DATA); beside it the time that plain reading of the file takes, by the same
library, before and after. With ``--cold`` it is fitted a second time, and the system
forgets the file before every pass, as it would if it did not fit into the cache of
files either. The files are deleted in the end, unless ``--keep``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

N_LABELED = 64
CHUNK = 1_000_000
SEED = 6
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)


# Data.


def class_means(n_features: int) -> Any:
    return 0.6 * np.random.default_rng([SEED, 0]).standard_normal((2, n_features))


def draw(n_rows: int, n_features: int, number: int) -> tuple[Any, Any]:
    """Two Gaussian classes with unit covariance."""
    rng = np.random.default_rng([SEED, 1, number])
    y = rng.integers(2, size=n_rows)
    rows = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    rows += class_means(n_features).astype(np.float32)[y]
    return rows, y


def chunks(n_rows: int, n_features: int) -> Iterator[Any]:
    for number, begin in enumerate(range(0, n_rows, CHUNK)):
        yield draw(min(CHUNK, n_rows - begin), n_features, 1 + number)[0]


def write_npy(path: Path, n_rows: int, n_features: int) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, n_features)}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for rows in chunks(n_rows, n_features):
            file.write(rows.data)


def write_parquet(path: Path, n_rows: int, n_features: int) -> None:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    schema = pa.schema([(f"x{j}", pa.float32()) for j in range(n_features)])
    # Random numbers have no dictionary: looking for one would only slow down the
    # writer.
    with ParquetWriter(path, schema, use_dictionary=False) as writer:
        for rows in chunks(n_rows, n_features):
            writer.write_table(
                pa.table(list(np.ascontiguousarray(rows.T)), schema=schema)
            )


WRITE = {"npy": write_npy, "parquet": write_parquet}


# Plain reading.


def read_npy(path: Path, n_features: int) -> None:
    buffer = bytearray(2**16 * n_features * 4)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def read_parquet(path: Path, n_features: int) -> None:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path, buffer_size=2**17, pre_buffer=False) as file:
        for _ in file.iter_batches(2**16, use_threads=False):
            pass


READ = {"npy": read_npy, "parquet": read_parquet}


def forget(path: Path) -> None:
    """Drop a file from the page cache of the system."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def seconds_to_read(path: Path, n_features: int, *, is_cold: bool) -> float:
    if is_cold:
        forget(path)
    begin = time.perf_counter()
    READ[path.suffix[1:]](path, n_features)
    return time.perf_counter() - begin


# The fit, in a process of its own.


def anonymous_mib() -> float:
    """Anonymous memory of this process: that which is not mapped from a file."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1024


@contextmanager
def peak_memory(found: dict[str, Any]) -> Iterator[None]:
    is_over = threading.Event()
    peak = anonymous_mib()

    def watch() -> None:
        nonlocal peak
        while not is_over.wait(0.005):
            peak = max(peak, anonymous_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
        found["peak anonymous MiB"] = round(max(peak, anonymous_mib()))


def fit(order: dict[str, Any]) -> dict[str, Any]:
    path = Path(order["path"])
    n_features = order["features"]
    limit = order["limit_mib"] * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    from iclda import ImplicitlyConstrainedLDA, rows

    X, y = draw(N_LABELED, n_features, 0)
    model = ImplicitlyConstrainedLDA(n_jobs=order["jobs"])
    found: dict[str, Any] = {"before MiB": round(anonymous_mib())}
    ends: dict[int, float] = {}

    def note(n_pass: int, n_done: int, n_all: int | None) -> None:
        ends[n_pass] = time.perf_counter()
        if n_done == n_all and order["is_cold"]:
            forget(path)

    if order["is_cold"]:
        forget(path)
    begin = time.perf_counter()
    work = time.process_time()
    with peak_memory(found), rows.bar(), rows.progress(note):
        model.fit(X.astype(np.float64), y, X_unlabeled=path)
    stops = [begin, *ends.values()]
    return {
        **found,
        "seconds": time.perf_counter() - begin,
        "seconds of processors": time.process_time() - work,
        "passes": model.n_passes_,
        "seconds of passes": [round(b - a, 2) for a, b in pairwise(stops)],
        "gap": model.gap_,
        "objective": model.objective_,
        "converged": bool(model.converged_),
    }


def fit_in_child(order: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--order", json.dumps(order)],
        env={**os.environ, **ONE_THREAD},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def measure(
    path: Path, options: argparse.Namespace, *, is_cold: bool
) -> dict[str, Any]:
    order = {
        "path": str(path),
        "features": options.features,
        "limit_mib": options.limit_mib,
        "jobs": options.jobs,
        "is_cold": is_cold,
    }
    before = seconds_to_read(path, options.features, is_cold=is_cold)
    found = fit_in_child(order)
    after = seconds_to_read(path, options.features, is_cold=is_cold)
    once = min(before, after)
    return {
        "format": path.suffix[1:],
        "rows": options.rows,
        "features": options.features,
        "gigabytes": round(path.stat().st_size / 1e9, 2),
        "jobs": options.jobs,
        "is_cold": is_cold,
        "load of the machine": os.getloadavg()[0],
        "limit MiB": options.limit_mib,
        "seconds to read once": [round(before, 2), round(after, 2)],
        "times passes x read once": round(
            found["seconds"] / (found["passes"] * once), 2
        ),
        **found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=Path("results/bench-files"))
    parser.add_argument(
        "--formats", nargs="+", default=list(WRITE), choices=list(WRITE)
    )
    parser.add_argument("--limit-mib", type=int, default=1024)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--keep", action="store_true", help="do not delete the files")
    parser.add_argument("--out", type=Path, default=Path("results/bench-files.json"))
    parser.add_argument("--order", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.order:
        print(json.dumps(fit(json.loads(options.order))))
        return
    from suite.machine import describe_machine, describe_versions

    options.folder.mkdir(parents=True, exist_ok=True)
    measured = []
    for name in options.formats:
        path = options.folder / f"rows-{options.rows}x{options.features}.{name}"
        if not path.exists():
            WRITE[name](path, options.rows, options.features)
        for is_cold in (False, True) if options.cold else (False,):
            measured.append(measure(path, options, is_cold=is_cold))
            print(json.dumps(measured[-1], indent=2), flush=True)
        if not options.keep:
            path.unlink()
    result = {
        "machine": describe_machine(),
        "versions": describe_versions(),
        "fits": measured,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
