"""Run the paper's experiments: settings, data sets, splits, fits and measures of every cell."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import clone

from ..._core import AnyArray, Array
from ..._core.frame import frame_of
from ..._core.gaussian import Gaussians
from ..._core.labelsums import GivenLabels
from ..._core.likelihood import FLOOR, smallest_eigenvalue
from ..._core.problem import Problem, summarize_labeled
from ..._core.solvers.alternate import start_scores
from ..._core.solvers.attainable import hold_all
from ..._progress import Advance
from ..._rows.memory import MemoryRows
from ..._system import versions
from ...datasets import (
    BENCHMARKS,
    Dataset,
    load_benchmark,
    make_gaussians,
    make_violated_gaussians,
)
from ...methods import COMPARED, find_method
from .. import paper, record_fits, rng_of, run_missing
from ..measures import Predictions, compute_measures, paper_measures
from ..store import PAPER_FORMAT, STORE, Cell, FitResult, Store, cells_of

TOY_ROWS, TOY_LABELED, TOY_VARIANCE = 1000, 10, 0.8
GUARANTEED = 2  # labeled rows, and test rows, of every class
LEAST_OF_A_CLASS = 6  # rows: 2 are labeled and 2 tested in any case, and some are drawn
_LITTLE_SHRINKAGE = 1e-3
# Methods that need labeled rows that vary within classes in every direction.
_NEED_SPREAD = ("MCLDA", "MCPLDA", "MCLDA-likelihood")
_TOYS = {paper.GAUSSIAN: make_gaussians, paper.VIOLATED: make_violated_gaussians}
_PARAMETERS: dict[str, Any] = {
    "MCLDA": {"variant": "symmetric"},
    "EMLDA": {"tol": 1e-10},
}
_PUBLISHED_EM_ROUNDS = 100
Plan = tuple[Sequence[Cell], Sequence[str]]  # cells and methods of an experiment


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
        raise ValueError(
            f"Unknown {what} {', '.join(unknown)}. There are: {', '.join(known)}."
        )
    return tuple(dict.fromkeys(spelled[name.casefold()] for name in given))


def default_curves(at_hand: Sequence[str]) -> tuple[str, ...]:
    """The toy problems, and the published curves whose sets can be loaded."""
    return paper.TOYS + tuple(
        name for name in paper.PUBLISHED_CURVES if name in at_hand
    )


def load_sets(names: Sequence[str], data_dir: Path | None) -> dict[str, Dataset]:
    """Load the benchmark sets among the names; toy problems are drawn by each cell."""
    sets = {
        name: load_benchmark(name, data_dir) for name in names if name in BENCHMARKS
    }
    for data in sets.values():
        _check_size(data)
    return sets


def _check_size(data: Dataset) -> None:
    """ValueError for a set too small to be split as the experiments do."""
    classes, counts = np.unique(data.y, return_counts=True)
    name = f"{data.name} ({data.origin})"
    if len(classes) < 2 or counts.min() < LEAST_OF_A_CLASS:
        given = ", ".join(
            f"{c} {n}" for c, n in zip(classes.tolist(), counts, strict=True)
        )
        rule = f"at least 2 classes of {LEAST_OF_A_CLASS} rows each"
        raise ValueError(f"{name} needs {rule}, and has {given}.")
    n_rows, n_features = data.X.shape
    least = (paper.n_labeled_of(n_features) + paper.N_FOLDS) / 0.9
    if n_rows < least:
        raise ValueError(
            f"{name} needs {np.ceil(least):.0f} rows to be split, and has {n_rows}."
        )


@dataclass(frozen=True)
class CodedSet:
    """A data set with classes numbered from 0."""

    X: Array
    codes: AnyArray

    @property
    def n_classes(self) -> int:
        return int(self.codes.max()) + 1


@dataclass(frozen=True)
class CellSplit:
    """Row indices of the three parts of a cell."""

    labeled: AnyArray
    unlabeled: AnyArray
    test: AnyArray


def curve_sizes(n_rows: int, n_labeled: int, n_classes: int) -> list[int]:
    """Numbers of unlabeled rows 1, 2, 4, ... that leave rows to test."""
    room = n_rows - n_labeled - 3 * n_classes
    return [2**k for k in range(10) if 2**k <= room]


def fold_split(codes: AnyArray, n_labeled: int, seed: int, cell: Cell) -> CellSplit:
    """Test one fold of ten, and label ``n_labeled`` of the other rows, at least 2 a class."""
    names = (cell.experiment, cell.dataset, cell.repeat)
    folds = _folds(codes, rng_of(seed, *names))
    rng = rng_of(seed, *names, cell.part)
    train = np.flatnonzero(folds != cell.part)
    guaranteed = _draw_guaranteed(codes, train, rng)
    rest = rng.permutation(np.setdiff1d(train, guaranteed))
    n_more = max(0, n_labeled - len(guaranteed))
    labeled = np.concatenate([guaranteed, rest[:n_more]])
    return CellSplit(labeled, rest[n_more:], np.flatnonzero(folds == cell.part))


def curve_split(codes: AnyArray, n_labeled: int, seed: int, cell: Cell) -> CellSplit:
    """Leave ``cell.part`` rows unlabeled and test the rest, at least 2 rows a class.

    The published curves count the guaranteed rows by half: n_labeled + K rows carry a label.
    """
    rng = rng_of(seed, cell.experiment, cell.dataset, cell.repeat, cell.part)
    everything = np.arange(len(codes))
    guaranteed = _draw_guaranteed(codes, everything, rng)
    order = rng.permutation(np.setdiff1d(everything, guaranteed))
    n_more = max(0, n_labeled - len(guaranteed) // GUARANTEED)
    order, more = order[n_more:], order[:n_more]
    classes = np.unique(codes)
    tested = np.concatenate([order[codes[order] == c][:GUARANTEED] for c in classes])
    free = order[~np.isin(order, tested)]
    test = np.concatenate([tested, free[cell.part :]])
    return CellSplit(np.concatenate([guaranteed, more]), free[: cell.part], test)


def _draw_guaranteed(
    codes: AnyArray, rows: AnyArray, rng: np.random.Generator
) -> AnyArray:
    """Draw the labeled rows that every class is guaranteed, with replacement.

    The code of the published curves did so. That the tables did too is inferred: of the ways that
    were tried, it fits the published errors of LDA on the two sets with ten labels and one rare
    class best.
    """
    classes = np.unique(codes)
    return np.concatenate(
        [rng.choice(rows[codes[rows] == c], GUARANTEED) for c in classes]
    )


def _folds(codes: AnyArray, rng: np.random.Generator) -> AnyArray:
    """Draw the fold of every row: folds of equal size, each with rows of every class."""
    n_folds, folds = paper.N_FOLDS, np.full(len(codes), -1)
    for c in np.unique(codes):
        dealt = rng.permutation(np.flatnonzero(codes == c))[: GUARANTEED * n_folds]
        folds[dealt] = np.arange(len(dealt)) % n_folds
    sizes = np.bincount(folds[folds >= 0], minlength=n_folds)
    wanted = len(codes) // n_folds + (np.arange(n_folds) < len(codes) % n_folds)
    places = np.repeat(np.arange(n_folds), np.maximum(wanted - sizes, 0))
    folds[folds < 0] = rng.permutation(places)
    return folds


@dataclass(frozen=True)
class CellRows:
    """Training rows of a cell; the true classes of the unlabeled ones are for the oracle."""

    X: Array
    codes: AnyArray
    X_unlabeled: Array
    codes_unlabeled: AnyArray
    n_classes: int
    seed: int

    @cached_property
    def rows(self) -> Array:
        """Labeled rows, then unlabeled ones."""
        return np.concatenate([self.X, self.X_unlabeled])

    @property
    def y(self) -> AnyArray:
        """Classes of ``rows``, -1 for unlabeled rows."""
        return np.concatenate([self.codes, np.full(len(self.X_unlabeled), -1)])

    @cached_property
    def problem(self) -> Problem:
        """The problem that all methods of the cell share: checks and moments are computed once."""
        frame = frame_of(self.rows)
        labels = GivenLabels(self.codes, self.n_classes)
        labeled = summarize_labeled(MemoryRows(self.X), labels, frame)
        return Problem(frame, labeled, MemoryRows(self.X_unlabeled))


def fit_published_em(
    problem: Problem, n_rounds: int = _PUBLISHED_EM_ROUNDS
) -> Gaussians:
    """Fit EMLDA with the two faults of the code behind the published numbers.

    In every E step after the first it subtracted the feature means from the unlabeled rows a
    second time, and throughout it dropped the factor 1/2 in the exponent of the density.
    """
    means = problem.frame.restore(problem.moments.mean) / problem.frame.scale
    shift = problem.whitening.transform @ means
    log_priors = np.log(problem.labeled.counts / problem.labeled.weight)
    scores = _without_half(start_scores(problem), log_priors)
    rows, point = hold_all(problem), problem.labeled_point
    for _ in range(n_rounds):
        used = scores
        before, point = point, rows.soft_point(used)[0]
        if np.abs(point - before).max() < 1e-7 or smallest_eigenvalue(point) <= FLOOR:
            break
        scores = _without_half(problem.posterior_scores(point), np.log(point[:, 0]))
        scores[:, 0] -= scores[:, 1:] @ shift
    return problem.model_of(point, problem.rule_of(used, is_soft=True))


def _without_half(scores: Array, log_priors: Array) -> Array:
    doubled = 2 * scores
    doubled[:, 0] -= log_priors
    return doubled


def fit_method(method: str, rows: CellRows) -> Any:
    """Fit a method, by its name in the paper, to the training rows of a cell.

    Returns ``Gaussians``, or a fitted classifier without a density. Most methods are fitted to the
    problem that they share: with the checks of ``fit`` and moments of its own for each, a cell
    takes twice as long.
    """
    problem = rows.problem
    if method == paper.ORACLE:
        codes = np.concatenate([rows.codes, rows.codes_unlabeled])
        labels = GivenLabels(codes, rows.n_classes)
        labeled = summarize_labeled(MemoryRows(rows.rows), labels, problem.frame)
        method, problem = paper.BASELINE, replace(problem, labeled=labeled)
    if method in _NEED_SPREAD and problem.labeled_rank < problem.whitening.rank:
        # Labeled rows do not vary within their classes in some direction (a column of SPECT, now
        # and then): no fit exists, and a little shrinkage makes one.
        problem = replace(problem, shrinkage=_LITTLE_SHRINKAGE)
    if method == paper.PUBLISHED_EM:
        return fit_published_em(problem)
    classifier, fits_problems = _classifier_of(method)
    if method == "ICLDA":  # the seed of the study is that of the starts
        return classifier._solve(problem, seed=rows.seed).model
    if fits_problems:
        return classifier._solve(problem).model
    fitted = clone(classifier).fit(rows.rows, rows.y)
    return getattr(fitted, "_gaussians_", fitted)


@cache
def _classifier_of(method: str) -> tuple[Any, bool]:
    """Return an unfitted classifier, and whether it is fitted to a prepared problem.

    Others need the rows themselves. All cells share the classifier: to make one takes longer than
    to fit a few dozen rows.
    """
    classifier = find_method(method, COMPARED).classifier()
    classifier.set_params(**_PARAMETERS.get(method, {}))
    base, kind = find_method(paper.BASELINE).load_class().__bases__[0], type(classifier)
    if not issubclass(kind, base) or kind._solve is base._solve:
        return classifier, False
    return classifier, bool(kind._fit_all_rows is base._fit_all_rows)


def run_cell(
    cell: Cell, sets: Mapping[str, CodedSet], methods: Sequence[str], seed: int
) -> list[FitResult]:
    """Fit every method once on the split of a cell."""
    if make := _TOYS.get(cell.dataset):
        rng = rng_of(
            seed, cell.experiment, cell.dataset, cell.repeat, cell.part, "rows"
        )
        data, n_labeled = CodedSet(*make(TOY_ROWS, rng, TOY_VARIANCE)), TOY_LABELED
    else:
        data = sets[cell.dataset]
        n_labeled = paper.n_labeled_of(data.X.shape[1])
    split_of = {paper.TABLES: fold_split, paper.CURVES: curve_split}[cell.experiment]
    split = split_of(data.codes, n_labeled, seed, cell)
    X, codes = data.X, data.codes
    train, free, test = split.labeled, split.unlabeled, split.test
    rows = CellRows(X[train], codes[train], X[free], codes[free], data.n_classes, seed)
    sizes = len(train), len(free), len(test)

    def measure(method: str) -> dict[str, Any]:
        predictions = predict_rows(fit_method(method, rows), X[test], codes[test], rows)
        return {**compute_measures(predictions, paper_measures())}

    return record_fits(cell, methods, sizes, seed, measure)


def predict_rows(model: Any, X: Array, codes: AnyArray, rows: CellRows) -> Predictions:
    """Predictions of Gaussians, or of a fitted classifier, for test rows and labeled rows."""
    if not isinstance(model, Gaussians):
        return Predictions(codes, model.predict(X) != codes, model.predict_proba(X))
    joint, labeled = model.log_joint(X), model.log_joint(rows.X)
    return Predictions(
        codes,
        is_wrong=joint.argmax(axis=1) != codes,
        probabilities=softmax(joint, axis=1),
        log_likelihood=joint[np.arange(len(codes)), codes],
        log_likelihood_labeled=labeled[np.arange(len(rows.codes)), rows.codes],
    )


def run_study(study: Study, advance: Advance = lambda *_: None) -> None:
    """Compute the cells that are missing, storing every row as soon as it is computed.

    Rows depend on seed and cell alone, never on ``jobs`` or the order.
    """
    folds = dict.fromkeys(study.tables, range(paper.N_FOLDS))

    def plan(sets: Mapping[str, CodedSet]) -> dict[str, Plan]:
        sizes = {name: _sizes(name, sets) for name in study.curves}
        planned = {
            paper.TABLES: cells_of(paper.TABLES, folds, study.table_repeats),
            paper.CURVES: cells_of(paper.CURVES, sizes, study.curve_repeats),
        }
        return {
            name: (cells, study.methods) for name, cells in planned.items() if cells
        }

    loaded = load_sets((*study.tables, *study.curves), study.data_dir)
    run_experiments(paper.KIND, study, loaded, plan, run_cell, advance)


def run_experiments(
    kind: str,
    study: Any,
    loaded: Mapping[str, Dataset],
    plan: Callable[[Mapping[str, CodedSet]], Mapping[str, Plan]],
    run: Callable[..., list[FitResult]],
    advance: Advance,
) -> None:
    """Run the experiments that ``plan`` makes of coded sets, each cell by ``run``.

    ``study`` has the folder, the seed, the jobs and the command.
    """
    sets = {
        name: CodedSet(data.X, np.unique(data.y, return_inverse=True)[1])
        for name, data in loaded.items()
    }
    how: Any = {"sets": sets, "run": partial(run, seed=study.seed), "jobs": study.jobs}
    with closing(Store(study.out / STORE, kind=kind)) as store:
        _note_run(store, kind, study, loaded)
        for experiment, (cells, methods) in plan(sets).items():
            run_missing(store, experiment, cells, methods, advance, **how)


def _note_run(store: Store, kind: str, study: Any, sets: Mapping[str, Dataset]) -> None:
    """Store the settings of a run; StoreError if the rows were made with others."""
    agreed = {
        "kind": kind,
        "format": PAPER_FORMAT,
        "seed": study.seed,
        "iclda": versions()["iclda"],
    }
    hashes = {name: data.sha256 for name, data in sets.items()}
    store.note(**store.merge_settings(**agreed, data=hashes))
    known = paper.read_settings(store)
    shapes = {
        name: [*data.X.shape, len(np.unique(data.y))] for name, data in sets.items()
    }
    store.note(
        commands=list(dict.fromkeys([*known.commands, study.command])),
        versions=versions(),
        machine=f"{platform.machine()}, {platform.system()}",
        jobs=study.jobs,
        shapes={**known.shapes, **shapes},
        origins={**known.origins, **{name: data.origin for name, data in sets.items()}},
        began=time.strftime("%Y-%m-%d %H:%M"),
    )


def _sizes(name: str, sets: Mapping[str, CodedSet]) -> list[int]:
    if name in paper.TOYS:
        return curve_sizes(TOY_ROWS, TOY_LABELED, 2)
    data = sets[name]
    return curve_sizes(len(data.X), paper.n_labeled_of(data.X.shape[1]), data.n_classes)
