"""One reproduction: which experiments, on which sets, into which folder."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets import BENCHMARKS, Dataset, find_benchmark, load_benchmark
from .cells import (
    CURVES,
    EXTRA_METHODS,
    GAUSSIAN,
    METHODS,
    PUBLISHED_CURVES,
    TABLES,
    VIOLATED,
    Cell,
    plan_curves,
    plan_tables,
)
from .runner import TOY_LABELED, TOY_ROWS, Arrays, curve_sizes, run_cells
from .splits import n_labeled_of
from .store import Store

TABLE_REPEATS, CURVE_REPEATS = 20, 500
TOYS = (GAUSSIAN, VIOLATED)
STORE = "rows.sqlite"
Advance = Callable[[str, int, int, int], None]  # experiment, cells done, cells in all, failed fits


@dataclass(frozen=True)
class Study:
    """Settings of a run. ``tables`` and ``curves`` name the sets of the two experiments."""

    out: Path
    tables: tuple[str, ...] = ()
    curves: tuple[str, ...] = ()
    methods: tuple[str, ...] = METHODS
    table_repeats: int = TABLE_REPEATS
    curve_repeats: int = CURVE_REPEATS
    seed: int = 0
    jobs: int = 1
    data_dir: Path | None = None
    command: str = ""
    sets: dict[str, Dataset] = field(default_factory=dict)

    @property
    def store_path(self) -> Path:
        """The file that keeps the rows."""
        return self.out / STORE


class UnknownNameError(ValueError):
    """A data set or method that does not exist."""


def choose(given: Sequence[str], known: Sequence[str], what: str) -> tuple[str, ...]:
    """Names as they are spelled here, whatever their case; an error lists what there is."""
    spelled = {name.casefold(): name for name in known}
    unknown = [name for name in given if name.casefold() not in spelled]
    if unknown:
        raise UnknownNameError(
            f"Unknown {what} {', '.join(unknown)}. There are: {', '.join(known)}."
        )
    return tuple(dict.fromkeys(spelled[name.casefold()] for name in given))


def known_methods() -> tuple[str, ...]:
    """The methods of the paper, and extra ones from scikit-learn."""
    return METHODS + EXTRA_METHODS


def split_at_hand(names: Sequence[str], data_dir: Path | None) -> tuple[list[str], list[str]]:
    """Benchmark sets that can be loaded, and those that cannot."""
    is_here = {name: find_benchmark(name, data_dir) is not None for name in names}
    return [n for n in names if is_here[n]], [n for n in names if not is_here[n]]


def default_curves(at_hand: Sequence[str]) -> tuple[str, ...]:
    """The toy problems, and the published curves whose sets are at hand."""
    return TOYS + tuple(name for name in PUBLISHED_CURVES if name in at_hand)


def load_sets(names: Sequence[str], data_dir: Path | None) -> dict[str, Dataset]:
    """The benchmark sets among the names; toy problems are drawn when they are needed."""
    return {name: load_benchmark(name, data_dir) for name in names if name in BENCHMARKS}


def run_study(study: Study, advance: Advance) -> None:
    """Compute the cells that are missing, keeping every row as soon as it is there."""
    store = Store(study.store_path)
    try:
        hashes = {name: data.sha256 for name, data in study.sets.items()}
        store.agree(format=1, seed=study.seed, data=hashes)
        _note_run(store, study)
        sets = {name: _arrays(data) for name, data in study.sets.items()}
        for experiment, cells in plans(study).items():
            _run_experiment(store, study, experiment, cells, sets, advance)
    finally:
        store.close()


def plans(study: Study) -> dict[str, list[Cell]]:
    """Cells of every experiment of a study."""
    sizes = {name: _sizes(name, study.sets) for name in study.curves}
    planned = {
        TABLES: plan_tables(study.tables, study.table_repeats),
        CURVES: plan_curves(sizes, study.curve_repeats),
    }
    return {experiment: cells for experiment, cells in planned.items() if cells}


def _run_experiment(
    store: Store,
    study: Study,
    experiment: str,
    cells: list[Cell],
    sets: dict[str, Arrays],
    advance: Advance,
) -> None:
    missing = store.missing(cells, study.methods)
    n_done, n_failed = len(cells) - len(missing), 0
    advance(experiment, n_done, len(cells), n_failed)
    start = time.time()
    for rows in run_cells(missing, sets, seed=study.seed, jobs=study.jobs):
        store.add(rows)
        n_done += len({row.cell for row in rows})
        n_failed += sum(row.failure is not None for row in rows)
        advance(experiment, n_done, len(cells), n_failed)
    spent = store.settings().get(f"seconds_{experiment}", 0.0)
    store.note(**{f"seconds_{experiment}": spent + time.time() - start})


def _note_run(store: Store, study: Study) -> None:
    facts: dict[str, Any] = {
        "command": study.command,
        "versions": versions(),
        "machine": f"{platform.machine()}, {platform.system()}",
        "jobs": study.jobs,
        "origins": {name: data.origin for name, data in study.sets.items()},
        "finished": time.strftime("%Y-%m-%d %H:%M"),
    }
    known = store.settings().get("origins", {})
    facts["origins"] = {**known, **facts["origins"]}
    store.note(**facts)


def versions() -> dict[str, str]:
    """Of Python and of the packages that decide the numbers."""
    names = ("iclda", "numpy", "scipy", "scikit-learn")
    return {"python": sys.version.split()[0], **{name: version(name) for name in names}}


def _arrays(data: Dataset) -> Arrays:
    return Arrays(data.X, np.unique(data.y, return_inverse=True)[1])


def _sizes(name: str, sets: dict[str, Dataset]) -> list[int]:
    if name in TOYS:
        return curve_sizes(TOY_ROWS, TOY_LABELED, 2)
    data = sets[name]
    return curve_sizes(len(data.X), n_labeled_of(data.X.shape[1]), len(np.unique(data.y)))
