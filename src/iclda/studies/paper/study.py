"""One reproduction: which experiments, on which sets, into which folder."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from ..._packages import versions
from ..._progress import Advance
from ...datasets import BENCHMARKS, Dataset, find_benchmark, load_benchmark
from ..cells import (
    CURVES,
    EXTRA_METHODS,
    GAUSSIAN,
    METHODS,
    N_FOLDS,
    PUBLISHED_CURVES,
    TABLES,
    VIOLATED,
    Cell,
    plan_curves,
    plan_tables,
)
from ..engine import run_missing
from ..store import FORMAT, Store
from .runner import TOY_LABELED, TOY_ROWS, Arrays, curve_sizes, run_cells
from .splits import n_labeled_of

TABLE_REPEATS, CURVE_REPEATS = 20, 500
TOYS = (GAUSSIAN, VIOLATED)
STORE = "rows.sqlite"
LEAST_OF_A_CLASS = 6  # 2 labeled and 2 tested for sure, and some to choose from


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
    if not given:
        raise UnknownNameError(f"No {what} is named. There are: {', '.join(known)}.")
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
    """The toy problems, and the published curves whose sets can be loaded."""
    return TOYS + tuple(name for name in PUBLISHED_CURVES if name in at_hand)


def load_sets(names: Sequence[str], data_dir: Path | None) -> dict[str, Dataset]:
    """The benchmark sets among the names; toy problems are drawn when they are needed."""
    sets = {name: load_benchmark(name, data_dir) for name in names if name in BENCHMARKS}
    for data in sets.values():
        _check_size(data)
    return sets


def _check_size(data: Dataset) -> None:
    """ValueError for a set too small to be split as the experiments do."""
    classes, counts = np.unique(data.y, return_counts=True)
    if len(classes) < 2 or counts.min() < LEAST_OF_A_CLASS:
        found = ", ".join(f"{c} {n}" for c, n in zip(classes.tolist(), counts, strict=True))
        raise ValueError(
            f"{data.name} ({data.origin}) needs at least 2 classes of {LEAST_OF_A_CLASS} rows "
            f"each, and has {found}."
        )
    least = n_labeled_of(data.X.shape[1]) + N_FOLDS
    if 0.9 * len(data.X) < least:
        raise ValueError(
            f"{data.name} ({data.origin}) has {len(data.X)} rows of {data.X.shape[1]} features, "
            f"and needs {int(np.ceil(least / 0.9))} for its labeled, unlabeled and test rows."
        )


def run_study(study: Study, advance: Advance) -> None:
    """Compute the cells that are missing, keeping every row as soon as it is there."""
    store = Store(study.store_path)
    try:
        hashes = {name: data.sha256 for name, data in study.sets.items()}
        store.agree(format=FORMAT, seed=study.seed, iclda=versions()["iclda"], data=hashes)
        _note_run(store, study)
        sets = {name: _arrays(data) for name, data in study.sets.items()}
        for experiment, cells in plans(study).items():
            compute = partial(run_cells, sets=sets, seed=study.seed, jobs=study.jobs)
            run_missing(store, experiment, cells, study.methods, compute, advance)
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


def _note_run(store: Store, study: Study) -> None:
    known = store.settings()
    commands = [*known.get("commands", []), study.command]
    shapes = {name: [*data.X.shape, len(np.unique(data.y))] for name, data in study.sets.items()}
    origins = {name: data.origin for name, data in study.sets.items()}
    store.note(
        commands=list(dict.fromkeys(commands)),
        versions=versions(),
        machine=f"{platform.machine()}, {platform.system()}",
        jobs=study.jobs,
        shapes={**known.get("shapes", {}), **shapes},
        origins={**known.get("origins", {}), **origins},
        began=time.strftime("%Y-%m-%d %H:%M"),
    )


def _arrays(data: Dataset) -> Arrays:
    return Arrays(data.X, np.unique(data.y, return_inverse=True)[1])


def _sizes(name: str, sets: dict[str, Dataset]) -> list[int]:
    if name in TOYS:
        return curve_sizes(TOY_ROWS, TOY_LABELED, 2)
    data = sets[name]
    return curve_sizes(len(data.X), n_labeled_of(data.X.shape[1]), len(np.unique(data.y)))
