"""How long `iclda compare` and `iclda fit` take on the wines of the README, and why.

The command is run once as people run it, for the wall-clock time to its first line, to
its first ranking and to its answer, the processor time of all its processes, and the
number of fits. `iclda fit` is run with all labels and with 30. The same comparison is
then run in this process, phase by phase, where processor time can be divided: encoding
a fold, fitting each method, measuring the fits, and the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

# The command sets the same for its fits; libraries read these variables when they are
# loaded.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

ARGUMENTS = ("--target", "target", "--labeled", "9")
# Lines of the output, and the phase that has ended when they appear.
MARKS = {
    "Comparing": "first line",
    "First ranking": "first ranking",
    "Answer": "answer",
    "Report:": "end",
}


def write_wine(folder: Path) -> None:
    """Run in another process, so that imports are measured as a phase."""
    lines = "from sklearn.datasets import load_wine; "
    lines += "wine = load_wine(as_frame=True).frame; "
    lines += "wine.to_csv('wine.csv', index=False); "
    lines += "labels = wine['target'].sample(30, random_state=0); "
    lines += "few = wine.assign(target=labels.astype(str)); "
    lines += "few.to_csv('wine-30.csv', index=False)"
    subprocess.run([sys.executable, "-c", lines], cwd=folder, check=True)


def run_command(folder: Path, jobs: int, options: list[str]) -> dict[str, Any]:
    """Wall-clock seconds to each mark, and processor seconds with those of workers."""
    command = [
        sys.executable,
        "-m",
        "iclda",
        "compare",
        "wine.csv",
        *ARGUMENTS,
        *options,
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    wall = {}
    with subprocess.Popen(
        [*command, "--jobs", str(jobs), "--out", f"jobs-{jobs}"],
        cwd=folder,
        stdout=subprocess.PIPE,
        # The first ranking is written there.
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            for mark, name in MARKS.items():
                if line.startswith(mark):
                    wall[name] = round(time.perf_counter() - start, 2)
    if process.returncode:
        raise SystemExit(
            f"{' '.join(command)} ended with exit code {process.returncode}."
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "jobs": jobs,
        "wall": wall,
        "processor": round(spent, 1),
        "fits": count_fits(folder / f"jobs-{jobs}"),
    }


def count_fits(out: Path) -> dict[str, int]:
    """Fits of the comparison by method, and those of the learning curves."""
    statement = "SELECT experiment, method, COUNT(*) FROM rows GROUP BY 1, 2"
    counts: Counter[str] = Counter()
    with closing(sqlite3.connect(out / "rows.sqlite")) as connection:
        for experiment, method, n_fits in connection.execute(statement):
            name = method if experiment == "comparison" else "learning curves"
            counts[name] += n_fits
    return dict(counts.most_common())


def run_fit(folder: Path, table: str) -> dict[str, Any]:
    """Processor and wall-clock seconds of `iclda fit` on a table."""
    options = ["--target", "target", "--out", "wine.skops", "--force", "--quiet"]
    command = [sys.executable, "-m", "iclda", "fit", table, *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stderr=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"table": table, "wall": round(wall, 2), "processor": round(spent, 2)}


class Phases:
    """Processor seconds by name.

    What runs inside another phase counts for itself alone.
    """

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._inner = [0.0]

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        start = time.process_time()
        self._inner.append(0.0)
        try:
            yield
        finally:
            spent = time.process_time() - start
            self.seconds[name] += spent - self._inner.pop()
            self._inner[-1] += spent

    def around(self, owner: Any, name: str, title: str | Callable[..., str]) -> None:
        """Time every call of a function of a module or class."""
        function = getattr(owner, name)

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self.timed(title if isinstance(title, str) else title(*args)):
                return function(*args, **kwargs)

        setattr(owner, name, run)


def run_phases(folder: Path, options: list[str]) -> dict[str, float]:
    """Processor seconds of the phases of one process."""
    phases = Phases()
    with phases.timed("imports"):
        from iclda.__main__ import make_app
        from iclda._estimators import base as _base
        from iclda.studies.compare import cells, report, run
        from iclda.studies.store import Store

    phases.around(cells, "encode", "encoding of folds")
    phases.around(cells, "measure_fit", "measuring of fits")
    phases.around(
        _base.LinearGaussianClassifier,
        "fit",
        lambda model, *_: f"fits: {type(model).__name__}",
    )
    phases.around(run, "fit_cell", "rest of a fold")
    phases.around(run.ComparisonRun, "compare", "rest of the comparison")
    phases.around(run.ComparisonRun, "add_curves", "rest of the curves")
    phases.around(Store, "add", "storing")
    phases.around(report, "write_files", "report")
    files = [f"{folder / 'wine.csv'}", "--out", f"{folder / 'phases'}"]
    with phases.timed("reading, preflight and the rest"):
        arguments = ["compare", *files, *ARGUMENTS, *options, "--jobs", "1", "--quiet"]
        make_app()(arguments, standalone_mode=False)
    return {name: round(seconds, 2) for name, seconds in phases.seconds.most_common()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--jobs", type=int, action="append", help="processes; repeatable"
    )
    parser.add_argument(
        "--quick", action="store_true", help="two repeats, to see that it runs"
    )
    parser.add_argument(
        "--only-commands", action="store_true", help="leave out the phases"
    )
    parser.add_argument("--out", type=Path, default=Path("results/bench/compare.json"))
    options = parser.parse_args()
    more = ["--repeats", "2"] if options.quick else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_wine(folder)
        commands = [run_command(folder, jobs, more) for jobs in options.jobs or [1, 2]]
        fits = [run_fit(folder, table) for table in ("wine.csv", "wine-30.csv")]
        phases = {} if options.only_commands else run_phases(folder, more)
    from suite.machine import describe_machine, describe_versions

    result = {
        "machine": describe_machine(),
        "versions": describe_versions(),
        "time": time.strftime("%Y-%m-%d %H:%M"),
        "command": " ".join(["iclda compare wine.csv", *ARGUMENTS, *more]),
        "commands": commands,
        "iclda fit": fits,
        "processor seconds of one process": phases,
        "in all": round(sum(phases.values()), 1),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
