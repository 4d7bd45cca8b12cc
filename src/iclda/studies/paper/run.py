"""Run the paper's experiments: plan the cells, fit the methods, store the rows.

``run_study`` runs both experiments. ``run_cell`` does the work of one cell: it splits a
data set into labeled, unlabeled and test rows (``splits``), fits every method to the
training rows (``fits``) and measures it on the test rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..._progress import Advance, show_nothing
from ..._system import versions
from ...datasets import make_gaussians, make_violated_gaussians
from ..engine import describe_run, record_fits, rng_of, run_missing
from ..measures import PAPER_MEASURES, compute_measures
from ..store import STORE, Cell, FitResult, Store, cells_of
from . import design
from .fits import CellRows, fit_method, predict_rows
from .splits import CodedSet, curve_sizes, curve_split, fold_split, load_sets
from .stored_settings import read_settings

# The toy problems of the paper: rows, features, and the variance of each class.
TOY_ROWS = 1000
TOY_FEATURES = 2
TOY_VARIANCE = 0.8
_TOYS = {design.GAUSSIAN: make_gaussians, design.VIOLATED: make_violated_gaussians}

# Cells and methods of an experiment.
Plan = tuple[Sequence[Cell], Sequence[str]]


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run that do not depend on its experiments.

    Attributes
    ----------
    out : Path
        Folder that keeps the rows.
    seed : int
        All splits and random starts follow from it.
    jobs : int
        Number of processes.
    data_dir : Path or None
        Folder of the user's own files of the data sets.
    command : str
        The command as it was typed, for the report.
    """

    out: Path
    seed: int = 0
    jobs: int = 1
    data_dir: Path | None = None
    command: str = ""

    @property
    def agreed(self) -> dict[str, Any]:
        """Settings on which rows depend: all runs of a folder have the same."""
        return {"seed": self.seed}


@dataclass(frozen=True)
class Study(RunSettings):
    """Settings of a run; ``tables`` and ``curves`` name the sets of the experiments.

    ``labels`` is the number of labeled rows of every set, 0 for that of the paper.
    ``drawing`` is one of ``design.DRAWINGS``.
    """

    tables: tuple[str, ...] = ()
    curves: tuple[str, ...] = ()
    methods: tuple[str, ...] = design.METHOD_NAMES
    table_repeats: int = design.TABLE_REPEATS
    curve_repeats: int = design.CURVE_REPEATS
    labels: int = 0
    drawing: str = design.WITH_REPLACEMENT

    @property
    def agreed(self) -> dict[str, Any]:
        return {**super().agreed, "labels": self.labels, "drawing": self.drawing}


def choose(given: Sequence[str], known: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the given names in the spelling of the known ones, each once.

    A ValueError lists the known names if a name is not among them, or none is given.
    ``what`` says what the names are of.
    """
    if not given:
        raise ValueError(f"No {what} is named. There are: {', '.join(known)}.")
    spelling = {name.casefold(): name for name in known}
    unknown = [name for name in given if name.casefold() not in spelling]
    if unknown:
        raise ValueError(
            f"Unknown {what} {', '.join(unknown)}. There are: {', '.join(known)}."
        )
    return tuple(dict.fromkeys(spelling[name.casefold()] for name in given))


def default_curves(available: Sequence[str]) -> tuple[str, ...]:
    """Return the toy problems, and the published curves whose sets are available."""
    published = [name for name in design.PUBLISHED_CURVES if name in available]
    return (*design.TOYS, *published)


def run_cell(
    cell: Cell,
    sets: Mapping[str, CodedSet],
    methods: Sequence[str],
    seed: int,
    labels: int = 0,
    drawing: str = design.WITH_REPLACEMENT,
) -> list[FitResult]:
    """Fit every method once on the split of a cell, and measure it on the test rows."""
    is_toy = cell.dataset in _TOYS
    data = _draw_toy_set(cell, seed) if is_toy else sets[cell.dataset]
    # Toy problems have two features: ten labeled rows, as all sets with few features.
    n_labeled = design.n_labeled_of(data.X.shape[1], labels)
    draw_split = fold_split if cell.experiment == design.TABLES else curve_split
    split = draw_split(data.codes, n_labeled, seed, cell, drawing)

    rows = CellRows(
        X=data.X[split.labeled],
        codes=data.codes[split.labeled],
        X_unlabeled=data.X[split.unlabeled],
        codes_unlabeled=data.codes[split.unlabeled],
        n_classes=data.n_classes,
        seed=seed,
    )
    X_test = data.X[split.test]
    codes_test = data.codes[split.test]

    # All methods are measured on the same split, so that their differences are paired.
    def measure(method: str) -> dict[str, Any]:
        model = fit_method(method, rows)
        predictions = predict_rows(model, X_test, codes_test, rows)
        return compute_measures(predictions, PAPER_MEASURES)

    sizes = len(split.labeled), len(split.unlabeled), len(split.test)
    return record_fits(cell, methods, sizes, seed, measure)


def _draw_toy_set(cell: Cell, seed: int) -> CodedSet:
    """Draw the rows of a toy problem, which differ from cell to cell."""
    draw = _TOYS[cell.dataset]
    # The last name keeps these random numbers apart from those of the split.
    names = cell.experiment, cell.dataset, cell.repeat, cell.part, "rows"
    X, codes = draw(TOY_ROWS, rng_of(seed, *names), TOY_VARIANCE)
    return CodedSet(X, codes)


def run_study(study: Study, advance: Advance = show_nothing) -> None:
    """Run both experiments: compute the missing cells and store every row at once.

    Rows depend on seed and cell alone, not on ``jobs`` or the order of computation.
    """
    sets = load_sets((*study.tables, *study.curves), study.data_dir, study.labels)
    # A cell of the tables is a fold, one of the curves a number of unlabeled rows.
    folds = dict.fromkeys(study.tables, range(design.N_FOLDS))
    sizes = {name: _curve_sizes_of(name, sets, study.labels) for name in study.curves}
    cells_by_experiment = {
        design.TABLES: cells_of(design.TABLES, folds, study.table_repeats),
        design.CURVES: cells_of(design.CURVES, sizes, study.curve_repeats),
    }
    # A run may be of one of the two experiments only.
    plans = {
        experiment: (cells, study.methods)
        for experiment, cells in cells_by_experiment.items()
        if cells
    }
    run = partial(run_cell, labels=study.labels, drawing=study.drawing)
    run_experiments(design.KIND, study, sets, plans, run, advance)


def _curve_sizes_of(name: str, sets: Mapping[str, CodedSet], labels: int) -> list[int]:
    if name in design.TOYS:
        n_labeled = design.n_labeled_of(TOY_FEATURES, labels)
        return curve_sizes(TOY_ROWS, n_labeled, n_classes=2)
    data = sets[name]
    n_rows, n_features = data.X.shape
    n_labeled = design.n_labeled_of(n_features, labels)
    return curve_sizes(n_rows, n_labeled, data.n_classes)


def run_experiments(
    kind: str,
    settings: RunSettings,
    sets: Mapping[str, CodedSet],
    plans: Mapping[str, Plan],
    run: Callable[..., list[FitResult]],
    advance: Advance,
) -> None:
    """Run experiments, given by their plans, and store their rows.

    ``kind`` is the name of the study. ``run`` fits the methods of a cell; it is called
    as ``run(cell, sets, methods, seed=seed)``.
    """
    # Unlike a nested function, a partial one can be sent to other processes.
    run_seeded = partial(run, seed=settings.seed)
    with closing(Store(settings.out / STORE, kind=kind)) as store:
        _note_run(store, kind, settings, sets)
        for experiment, (cells, methods) in plans.items():
            run_missing(
                store,
                experiment,
                cells,
                methods,
                advance,
                sets=sets,
                run=run_seeded,
                jobs=settings.jobs,
            )


def _note_run(
    store: Store, kind: str, settings: RunSettings, sets: Mapping[str, CodedSet]
) -> None:
    """Store the settings of a run.

    A StoreError is raised if the rows of the store were made with other settings.
    """
    agreed = store.merge_settings(
        kind=kind,
        **settings.agreed,
        iclda=versions()["iclda"],
        data={name: data.sha256 for name, data in sets.items()},
    )
    store.note(**agreed)

    # Earlier runs of the folder may have had other data sets and commands: keep those.
    earlier = read_settings(store)
    shapes = {name: [*data.X.shape, data.n_classes] for name, data in sets.items()}
    origins = {name: data.origin for name, data in sets.items()}
    # A command that is run again, to continue, is listed once.
    commands = list(dict.fromkeys([*earlier.commands, settings.command]))
    store.note(
        commands=commands,
        versions=versions(),
        jobs=settings.jobs,
        shapes={**earlier.shapes, **shapes},
        origins={**earlier.origins, **origins},
        **describe_run(),
    )
