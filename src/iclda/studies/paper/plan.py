"""Plan and run the paper's experiments; list the benchmark sets."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._packages import versions
from ..._progress import Advance
from ...datasets import BENCHMARKS, Dataset, find_benchmark, load_benchmark
from .. import paper
from ..engine import run_missing
from ..page import align
from ..store import PAPER_FORMAT, STORE, Store, cells_of
from .fits import TOY_LABELED, TOY_ROWS, CodedSet, curve_sizes, run_cell

LEAST_OF_A_CLASS = 6  # rows: 2 are labeled and 2 tested in any case, and some are drawn

_LICENSES = (
    "CC BY 4.0: https://creativecommons.org/licenses/by/4.0/. The notices that come with the data "
    "are in iclda/datasets/data/LICENSES.md."
)


@dataclass(frozen=True)
class Study:
    """Settings of a run. ``tables`` and ``curves`` name the sets of the two experiments."""

    out: Path
    tables: tuple[str, ...] = ()
    curves: tuple[str, ...] = ()
    methods: tuple[str, ...] = paper.METHOD_NAMES
    table_repeats: int = paper.TABLE_REPEATS
    curve_repeats: int = paper.CURVE_REPEATS
    seed: int = 0
    jobs: int = 1
    data_dir: Path | None = None
    command: str = ""


def choose(given: Sequence[str], known: Sequence[str], what: str) -> tuple[str, ...]:
    """Known names that are given in any case; ValueError with the known ones for others."""
    if not given:
        raise ValueError(f"No {what} is named. There are: {', '.join(known)}.")
    spelled = {name.casefold(): name for name in known}
    unknown = [name for name in given if name.casefold() not in spelled]
    if unknown:
        raise ValueError(f"Unknown {what} {', '.join(unknown)}. There are: {', '.join(known)}.")
    return tuple(dict.fromkeys(spelled[name.casefold()] for name in given))


def default_curves(at_hand: Sequence[str]) -> tuple[str, ...]:
    """The toy problems, and the published curves whose sets can be loaded."""
    return paper.TOYS + tuple(name for name in paper.PUBLISHED_CURVES if name in at_hand)


def load_sets(names: Sequence[str], data_dir: Path | None) -> dict[str, Dataset]:
    """Load the benchmark sets among the names; toy problems are drawn by each cell."""
    sets = {name: load_benchmark(name, data_dir) for name in names if name in BENCHMARKS}
    for data in sets.values():
        _check_size(data)
    return sets


def _check_size(data: Dataset) -> None:
    """ValueError for a set too small to be split as the experiments do."""
    classes, counts = np.unique(data.y, return_counts=True)
    name = f"{data.name} ({data.origin})"
    if len(classes) < 2 or counts.min() < LEAST_OF_A_CLASS:
        given = ", ".join(f"{c} {n}" for c, n in zip(classes.tolist(), counts, strict=True))
        rule = f"at least 2 classes of {LEAST_OF_A_CLASS} rows each"
        raise ValueError(f"{name} needs {rule}, and has {given}.")
    n_rows, n_features = data.X.shape
    least = (paper.n_labeled_of(n_features) + paper.N_FOLDS) / 0.9
    if n_rows < least:
        raise ValueError(f"{name} needs {np.ceil(least):.0f} rows to be split, and has {n_rows}.")


def run_study(study: Study, advance: Advance = lambda *_: None) -> None:
    """Compute the cells that are missing, storing every row as soon as it is computed.

    Rows depend on seed and cell alone, never on ``jobs`` or the order.
    """
    loaded = load_sets((*study.tables, *study.curves), study.data_dir)
    sets = {
        name: CodedSet(data.X, np.unique(data.y, return_inverse=True)[1])
        for name, data in loaded.items()
    }
    folds = dict.fromkeys(study.tables, range(paper.N_FOLDS))
    sizes = {name: _sizes(name, sets) for name in study.curves}
    planned = {
        paper.TABLES: cells_of(paper.TABLES, folds, study.table_repeats),
        paper.CURVES: cells_of(paper.CURVES, sizes, study.curve_repeats),
    }
    how: Any = {"sets": sets, "run": partial(run_cell, seed=study.seed), "jobs": study.jobs}
    with closing(Store(study.out / STORE, kind=paper.KIND)) as store:
        _note_run(store, study, loaded)
        for experiment, cells in planned.items():
            if cells:
                run_missing(store, experiment, cells, study.methods, advance, **how)


def _note_run(store: Store, study: Study, sets: dict[str, Dataset]) -> None:
    """Store the settings of a run; StoreError if the rows were made with others."""
    hashes = {name: data.sha256 for name, data in sets.items()}
    agreed = {
        "kind": paper.KIND,
        "format": PAPER_FORMAT,
        "seed": study.seed,
        "iclda": versions()["iclda"],
    }
    store.note(**store.merge_settings(**agreed, data=hashes))
    known = paper.read_settings(store)
    shapes = {name: [*data.X.shape, len(np.unique(data.y))] for name, data in sets.items()}
    store.note(
        commands=list(dict.fromkeys([*known.commands, study.command])),
        versions=versions(),
        machine=f"{platform.machine()}, {platform.system()}",
        jobs=study.jobs,
        shapes={**known.shapes, **shapes},
        origins={**known.origins, **{name: data.origin for name, data in sets.items()}},
        began=time.strftime("%Y-%m-%d %H:%M"),
    )


def _sizes(name: str, sets: dict[str, CodedSet]) -> list[int]:
    if name in paper.TOYS:
        return curve_sizes(TOY_ROWS, TOY_LABELED, 2)
    data = sets[name]
    return curve_sizes(len(data.X), paper.n_labeled_of(data.X.shape[1]), data.n_classes)


def describe_sets(data_dir: Path | None) -> list[dict[str, Any]]:
    """Shape, origin and place of the ten sets, for programs."""
    sets = []
    for name, each in BENCHMARKS.items():
        texts = {key: getattr(each, key) for key in ("license", "source", "citation", "changes")}
        shape = {"rows": each.n_rows, "features": each.n_features}
        sets.append({"name": name, **shape, **texts, "at_hand": find_benchmark(name, data_dir)})
    return sets


def list_sets(data_dir: Path | None) -> str:
    """A line for each of the ten sets; below it citation, changes, and where it is read from."""
    sets, header = describe_sets(data_dir), ("name", "rows", "features", "license", "source")
    rows = [[str(each[name]) for name in header] for each in sets]
    first, *lines = align([header, *rows], "lrrll")
    paragraphs = [first]
    for line, each in zip(lines, sets, strict=True):
        place = each["at_hand"] or "nowhere (pip install 'iclda[experiments]')"
        remarks = [f"{each['citation']}.", f"Changes: {each['changes']}", f"Read from: {place}"]
        paragraphs.append("\n  ".join([line, *remarks]))
    return "\n\n".join([*paragraphs, _LICENSES])
