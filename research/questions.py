"""Run the experiments on the open questions of the paper, and store their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from iclda._progress import Advance, show_nothing
from iclda.datasets import BENCHMARKS
from iclda.studies.engine import record_fits
from iclda.studies.paper.run import RunSettings, run_experiments
from iclda.studies.paper.splits import CodedSet
from iclda.studies.store import Cell, FitResult, cells_of

from .fits import FITS
from .plan import EXPERIMENTS, KIND, PLAN
from .problems import load_tables, n_labeled_rows, split_of

# At most this share of the rows of a table is labeled. A fifth is tested, so that
# another fifth at least stays unlabeled.
_MAX_LABELED_SHARE = 0.6
_QUICK_REPEATS = 2
# A quick run takes every third number of labels.
_QUICK_STRIDE = 3


@dataclass(frozen=True)
class StudySettings(RunSettings):
    """Settings of a run; ``features`` is a folder of .npz files with X and y."""

    features: Path | None = None
    is_quick: bool = False


def run_questions(settings: StudySettings, advance: Advance = show_nothing) -> None:
    """Compute the missing cells of all experiments, and store every row at once."""
    sets = load_tables(settings.data_dir, settings.features)
    plans = {}
    for name, experiment in EXPERIMENTS.items():
        cells = plan_cells(name, sets, is_quick=settings.is_quick)
        plans[name] = (cells, experiment["methods"])
    run_experiments(KIND, settings, sets, plans, answer_cell, advance)


def plan_cells(
    name: str, sets: Mapping[str, CodedSet], *, is_quick: bool
) -> list[Cell]:
    """Return the cells of an experiment."""
    experiment = EXPERIMENTS[name]
    groups = _groups(sets)
    quick_sets = {*PLAN["quick"], *PLAN["examples"]}
    cells = []
    for group in experiment["sets"]:
        for dataset in groups[group]:
            if is_quick and dataset not in quick_sets:
                continue
            if dataset in sets:
                parts = _parts(name, sets[dataset], is_quick=is_quick)
                n_repeats = experiment["repeats"]
            else:
                # A drawn problem has one number of labels, given by its family.
                parts = [0]
                n_repeats = experiment.get("drawn_repeats", 1)
            if is_quick:
                n_repeats = min(n_repeats, _QUICK_REPEATS)
            cells += cells_of(name, {dataset: parts}, n_repeats)
    return cells


def _groups(sets: Mapping[str, CodedSet]) -> dict[str, Sequence[str]]:
    """Return the data sets of every group that an experiment may name."""
    families = [
        f"{setting} {value}"
        for setting, values in PLAN["families"].items()
        for value in values
    ]
    tables = PLAN["tables"]
    return {
        "benchmarks": [name for name in BENCHMARKS if name in sets],
        "examples": list(PLAN["examples"]),
        "families": ["base", *families],
        "features": PLAN["features"],
        "given": [
            name for name in sets if name not in BENCHMARKS and name not in tables
        ],
        "tables": list(tables),
        "toys": PLAN["toys"],
    }


def _parts(experiment: str, data: CodedSet, *, is_quick: bool) -> list[int]:
    """Return the numbers of labels for which a table has enough rows."""
    parts = EXPERIMENTS[experiment]["parts"]
    if is_quick:
        parts = parts[::_QUICK_STRIDE]
    limit = _MAX_LABELED_SHARE * len(data.codes)
    return [part for part in parts if n_labeled_rows(experiment, part, data) <= limit]


def answer_cell(
    cell: Cell, sets: Mapping[str, CodedSet], methods: Sequence[str], seed: int
) -> list[FitResult]:
    """Fit every method of an experiment once to the split of a cell."""
    # Every method of the cell gets the same split, so that their errors are paired.
    split = split_of(cell, sets, seed)
    sizes = len(split.rows.X), len(split.rows.X_unlabeled), len(split.X_test)
    fit: Any = partial(FITS[cell.experiment], split)
    return record_fits(cell, methods, sizes, seed, fit)
