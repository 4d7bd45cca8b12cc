"""Run the paper's experiments: load the data sets, draw the splits, fit the methods.

``run_study`` runs both experiments. ``run_cell`` does the work of one cell: it splits a
data set into labeled, unlabeled and test rows, fits every method to the training rows
(``fit_method``) and measures it on the test rows.
"""

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
from ..._core.solvers import Limits
from ..._core.solvers.alternate import start_scores
from ..._core.solvers.attainable import hold_all
from ..._core.solvers.implicit import maximize_labeled_likelihood
from ..._estimators.base import LinearGaussianClassifier
from ..._estimators.implicitly_constrained import ImplicitlyConstrainedLDA
from ..._estimators.linear_model import gaussian_model_of
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
from ..engine import record_fits, rng_of, run_missing
from ..measures import Predictions, compute_measures, paper_measures
from ..store import PAPER_FORMAT, STORE, Cell, FitResult, Store, cells_of
from . import design
from .stored_settings import read_settings

TOY_ROWS = 1000
TOY_LABELED = 10
TOY_VARIANCE = 0.8
# Every class has at least this many labeled rows, and this many test rows.
GUARANTEED_ROWS = 2
# The guaranteed labeled and test rows, and some to draw from.
_MIN_ROWS_PER_CLASS = 6
# Curves have points at 1, 2, 4, ... unlabeled rows, at most this many.
_MAX_CURVE_POINTS = 10
# Methods without a fit if the labeled rows do not vary within their classes in some
# direction. They get a little shrinkage then.
_NEED_SPREAD = ("MCLDA", "MCPLDA", "MCLDA-likelihood")
_LITTLE_SHRINKAGE = 1e-3
_TOYS = {design.GAUSSIAN: make_gaussians, design.VIOLATED: make_violated_gaussians}
# Parameters of the paper's methods that differ from the defaults of the classifiers.
_PARAMETERS: dict[str, dict[str, Any]] = {
    "MCLDA": {"variant": "symmetric"},
    "EMLDA": {"tol": 1e-10},
}
# The published EM stops after this many rounds ...
_PUBLISHED_EM_ROUNDS = 100
# ... or when no entry of the point changes by this much.
_PUBLISHED_EM_TOL = 1e-7

# Cells and methods of an experiment.
Plan = tuple[Sequence[Cell], Sequence[str]]


@dataclass(frozen=True)
class Study:
    """Settings of a run; ``tables`` and ``curves`` name the sets of the experiments."""

    out: Path
    tables: tuple[str, ...] = ()
    curves: tuple[str, ...] = ()
    methods: tuple[str, ...] = design.METHOD_NAMES
    table_repeats: int = design.TABLE_REPEATS
    curve_repeats: int = design.CURVE_REPEATS
    seed: int = 0
    jobs: int = 1
    data_dir: Path | None = None
    command: str = ""


def choose(given: Sequence[str], known: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the known names among ``given``, in any case, each once.

    A ValueError lists the known names if there are others, or none at all.
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


def default_curves(at_hand: Sequence[str]) -> tuple[str, ...]:
    """Return the toy problems, and the published curves whose sets can be loaded."""
    published = [name for name in design.PUBLISHED_CURVES if name in at_hand]
    return (*design.TOYS, *published)


# Data sets.


def load_sets(names: Sequence[str], data_dir: Path | None) -> dict[str, Dataset]:
    """Load the benchmark sets among the names; toy problems are drawn in each cell."""
    sets = {
        name: load_benchmark(name, data_dir) for name in names if name in BENCHMARKS
    }
    for data in sets.values():
        _check_size(data)
    return sets


def _check_size(data: Dataset) -> None:
    """Raise a ValueError if a set is too small for the splits of the experiments."""
    classes, counts = np.unique(data.y, return_counts=True)
    name = f"{data.name} ({data.origin})"
    if len(classes) < 2 or counts.min() < _MIN_ROWS_PER_CLASS:
        rule = f"at least 2 classes of {_MIN_ROWS_PER_CLASS} rows each"
        rows_of_classes = zip(classes.tolist(), counts, strict=True)
        given = ", ".join(f"{label} {count}" for label, count in rows_of_classes)
        raise ValueError(f"{name} needs {rule}, and has {given}.")

    n_rows, n_features = data.X.shape
    # Nine of ten folds train: they have the labeled rows, and some rows to draw from.
    n_needed = (design.n_labeled_of(n_features) + design.N_FOLDS) / 0.9
    if n_rows < n_needed:
        raise ValueError(
            f"{name} needs {np.ceil(n_needed):.0f} rows to be split, and has {n_rows}."
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


# Splits.


def curve_sizes(n_rows: int, n_labeled: int, n_classes: int) -> list[int]:
    """Return the numbers 1, 2, 4, ... of unlabeled rows that leave rows to test."""
    # ``curve_split`` labels one row of each class more, and tests two of each at least.
    n_unlabeled = n_rows - n_labeled - 3 * n_classes
    return [2**k for k in range(_MAX_CURVE_POINTS) if 2**k <= n_unlabeled]


def fold_split(codes: AnyArray, n_labeled: int, seed: int, cell: Cell) -> CellSplit:
    """Test one of ten folds, and label ``n_labeled`` others, at least 2 of a class."""
    # All folds of a repeat must see the same division: its generator leaves out the
    # part.
    names = (cell.experiment, cell.dataset, cell.repeat)
    folds = _folds(codes, rng_of(seed, *names))
    rng = rng_of(seed, *names, cell.part)
    train = np.flatnonzero(folds != cell.part)
    test = np.flatnonzero(folds == cell.part)
    guaranteed = _draw_guaranteed(codes, train, rng)
    others = rng.permutation(np.setdiff1d(train, guaranteed))
    n_more = max(0, n_labeled - len(guaranteed))
    labeled = np.concatenate([guaranteed, others[:n_more]])
    return CellSplit(labeled, others[n_more:], test)


def curve_split(codes: AnyArray, n_labeled: int, seed: int, cell: Cell) -> CellSplit:
    """Leave ``cell.part`` rows unlabeled and test the rest, at least 2 rows of a class.

    The published curves count the guaranteed rows by half: n_labeled + K rows carry a
    label.
    """
    rng = rng_of(seed, cell.experiment, cell.dataset, cell.repeat, cell.part)
    classes = np.unique(codes)
    rows = np.arange(len(codes))

    guaranteed = _draw_guaranteed(codes, rows, rng)
    others = rng.permutation(np.setdiff1d(rows, guaranteed))
    n_more = max(0, n_labeled - len(guaranteed) // GUARANTEED_ROWS)
    labeled = np.concatenate([guaranteed, others[:n_more]])

    # Set the guaranteed test rows aside before the unlabeled rows are taken.
    others = others[n_more:]
    tested = np.concatenate(
        [others[codes[others] == k][:GUARANTEED_ROWS] for k in classes]
    )
    others = others[~np.isin(others, tested)]
    test = np.concatenate([tested, others[cell.part :]])
    return CellSplit(labeled, others[: cell.part], test)


def _draw_guaranteed(
    codes: AnyArray, rows: AnyArray, rng: np.random.Generator
) -> AnyArray:
    """Draw the labeled rows that every class is guaranteed, with replacement.

    The code of the published curves did so. That the tables did too is inferred: of the
    ways that were tried, it fits the published errors of LDA on the two sets with ten
    labels and one rare class best.
    """
    classes = np.unique(codes)
    return np.concatenate(
        [rng.choice(rows[codes[rows] == k], GUARANTEED_ROWS) for k in classes]
    )


def _folds(codes: AnyArray, rng: np.random.Generator) -> AnyArray:
    """Draw the fold of every row; folds have equal size and rows of every class."""
    n_rows = len(codes)
    n_folds = design.N_FOLDS
    folds = np.full(n_rows, -1)
    # Deal the guaranteed test rows of every class to the folds in turn.
    for k in np.unique(codes):
        rows = rng.permutation(np.flatnonzero(codes == k))
        dealt = rows[: GUARANTEED_ROWS * n_folds]
        folds[dealt] = np.arange(len(dealt)) % n_folds
    # Fill the folds up with the other rows, at random.
    sizes = np.bincount(folds[folds >= 0], minlength=n_folds)
    wanted = n_rows // n_folds + (np.arange(n_folds) < n_rows % n_folds)
    vacancies = np.repeat(np.arange(n_folds), np.maximum(wanted - sizes, 0))
    folds[folds < 0] = rng.permutation(vacancies)
    return folds


# Fits.


@dataclass(frozen=True)
class CellRows:
    """Training rows of a cell. Only the oracle uses ``codes_unlabeled``."""

    X: Array
    codes: AnyArray
    X_unlabeled: Array
    codes_unlabeled: AnyArray
    n_classes: int
    seed: int

    @cached_property
    def rows(self) -> Array:
        """All training rows: labeled ones first, then unlabeled ones."""
        return np.concatenate([self.X, self.X_unlabeled])

    @property
    def y(self) -> AnyArray:
        """Classes of ``rows``, -1 for unlabeled rows."""
        return np.concatenate([self.codes, np.full(len(self.X_unlabeled), -1)])

    @cached_property
    def problem(self) -> Problem:
        """The problem of the cell. All methods share it, so moments are summed once."""
        frame = frame_of(self.rows)
        labels = GivenLabels(self.codes, self.n_classes)
        labeled = summarize_labeled(MemoryRows(self.X), labels, frame)
        return Problem(frame, labeled, MemoryRows(self.X_unlabeled))


def fit_published_em(
    problem: Problem, n_rounds: int = _PUBLISHED_EM_ROUNDS
) -> Gaussians:
    """Fit EMLDA with the two faults of the code behind the published numbers.

    In every E step after the first it subtracted the feature means from the unlabeled
    rows a second time, and throughout it dropped the factor 1/2 in the exponent of the
    density.
    """
    feature_means = problem.frame.restore(problem.moments.mean) / problem.frame.scale
    # What the second subtraction moves the rows by, in whitened coordinates.
    shift = problem.whitening.transform @ feature_means
    log_priors = np.log(problem.labeled.counts / problem.labeled.weight)
    scores = _without_half(start_scores(problem), log_priors)
    rows = hold_all(problem)
    point = problem.labeled_point
    for _ in range(n_rounds):
        used_scores = scores
        point_before = point
        point = rows.soft_point(used_scores)[0]
        has_converged = np.abs(point - point_before).max() < _PUBLISHED_EM_TOL
        if has_converged or smallest_eigenvalue(point) <= FLOOR:
            break
        scores = _without_half(problem.posterior_scores(point), np.log(point[:, 0]))
        scores[:, 0] -= scores[:, 1:] @ shift
    return problem.model_of(point, problem.rule_of(used_scores, is_soft=True))


def _without_half(scores: Array, log_priors: Array) -> Array:
    """Double the exponents: a score is the log prior plus the exponent."""
    doubled = 2 * scores
    doubled[:, 0] -= log_priors
    return doubled


def fit_method(method: str, rows: CellRows) -> Any:
    """Fit a method, by its name in the paper, to the training rows of a cell.

    Returns ``Gaussians``, or a fitted classifier without a density. Most methods are
    fitted to the problem that they share: if each called ``fit``, with its checks and
    moments of its own, a cell would take twice as long.
    """
    problem = rows.problem
    if method == design.ORACLE:
        problem = _with_all_labels(rows)
        method = design.BASELINE
    if method in _NEED_SPREAD and problem.labeled_rank < problem.whitening.rank:
        # This happens with a column of SPECT now and then.
        problem = replace(problem, shrinkage=_LITTLE_SHRINKAGE)
    if method == design.PUBLISHED_EM:
        return fit_published_em(problem)

    classifier = _classifier_of(method)
    if isinstance(classifier, ImplicitlyConstrainedLDA):
        # Random starts of the search depend on the seed of the study.
        limits = Limits(classifier.max_iter, classifier.tol)
        best = maximize_labeled_likelihood(
            problem, limits, n_starts=classifier.n_starts, seed=rows.seed
        )
        return problem.model_of(best.point, best.rule)
    if takes_problem(classifier):
        return classifier._solve(problem.recast(classifier._needs.problem)).model
    fitted = clone(classifier).fit(rows.rows, rows.y)
    model = gaussian_model_of(fitted)
    return fitted if model is None else model.gaussians


def _with_all_labels(rows: CellRows) -> Problem:
    """Return the problem of a cell in which all training rows are labeled."""
    codes = np.concatenate([rows.codes, rows.codes_unlabeled])
    labels = GivenLabels(codes, rows.n_classes)
    frame = rows.problem.frame
    labeled = summarize_labeled(MemoryRows(rows.rows), labels, frame)
    return replace(rows.problem, labeled=labeled)


def takes_problem(classifier: Any) -> bool:
    """Return whether a classifier can be fitted to a problem, without the rows."""
    is_gaussian = isinstance(classifier, LinearGaussianClassifier)
    return is_gaussian and not classifier._needs.labeled_rows


@cache
def _classifier_of(method: str) -> Any:
    """Return an unfitted classifier.

    All cells share it, since making one takes longer than fitting a few dozen rows.
    """
    classifier = find_method(method, COMPARED).classifier()
    classifier.set_params(**_PARAMETERS.get(method, {}))
    return classifier


def run_cell(
    cell: Cell, sets: Mapping[str, CodedSet], methods: Sequence[str], seed: int
) -> list[FitResult]:
    """Fit every method once on the split of a cell, and measure it on the test rows."""
    if cell.dataset in _TOYS:
        data = _draw_toy_set(cell, seed)
        n_labeled = TOY_LABELED
    else:
        data = sets[cell.dataset]
        n_labeled = design.n_labeled_of(data.X.shape[1])
    draw_split = fold_split if cell.experiment == design.TABLES else curve_split
    split = draw_split(data.codes, n_labeled, seed, cell)

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

    def measure(method: str) -> dict[str, Any]:
        model = fit_method(method, rows)
        predictions = predict_rows(model, X_test, codes_test, rows)
        return compute_measures(predictions, paper_measures())

    sizes = len(split.labeled), len(split.unlabeled), len(split.test)
    return record_fits(cell, methods, sizes, seed, measure)


def _draw_toy_set(cell: Cell, seed: int) -> CodedSet:
    """Draw the rows of a toy problem, which differ from cell to cell."""
    names = cell.experiment, cell.dataset, cell.repeat, cell.part, "rows"
    X, codes = _TOYS[cell.dataset](TOY_ROWS, rng_of(seed, *names), TOY_VARIANCE)
    return CodedSet(X, codes)


def predict_rows(model: Any, X: Array, codes: AnyArray, rows: CellRows) -> Predictions:
    """Predict test rows of known classes, and the labeled training rows.

    ``model`` is ``Gaussians`` or a fitted classifier, as ``fit_method`` returns it.
    Only the former has a likelihood.
    """
    if not isinstance(model, Gaussians):
        return Predictions(codes, model.predict(X) != codes, model.predict_proba(X))
    joint = model.log_joint(X)
    joint_labeled = model.log_joint(rows.X)
    return Predictions(
        truth=codes,
        is_wrong=joint.argmax(axis=1) != codes,
        probabilities=softmax(joint, axis=1),
        log_likelihood=joint[np.arange(len(codes)), codes],
        log_likelihood_labeled=joint_labeled[np.arange(len(rows.codes)), rows.codes],
    )


# Runs.


def run_study(study: Study, advance: Advance = lambda *_: None) -> None:
    """Run both experiments: compute the missing cells and store every row at once.

    Rows depend on seed and cell alone, not on ``jobs`` or the order of computation.
    """

    def plan(sets: Mapping[str, CodedSet]) -> dict[str, Plan]:
        folds = dict.fromkeys(study.tables, range(design.N_FOLDS))
        sizes = {name: _curve_sizes_of(name, sets) for name in study.curves}
        cells = {
            design.TABLES: cells_of(design.TABLES, folds, study.table_repeats),
            design.CURVES: cells_of(design.CURVES, sizes, study.curve_repeats),
        }
        return {name: (cells[name], study.methods) for name in cells if cells[name]}

    loaded = load_sets((*study.tables, *study.curves), study.data_dir)
    run_experiments(design.KIND, study, loaded, plan, run_cell, advance)


def _curve_sizes_of(name: str, sets: Mapping[str, CodedSet]) -> list[int]:
    if name in design.TOYS:
        return curve_sizes(TOY_ROWS, TOY_LABELED, 2)
    n_rows, n_features = sets[name].X.shape
    n_labeled = design.n_labeled_of(n_features)
    return curve_sizes(n_rows, n_labeled, sets[name].n_classes)


def run_experiments(
    kind: str,
    study: Any,
    loaded: Mapping[str, Dataset],
    plan: Callable[[Mapping[str, CodedSet]], Mapping[str, Plan]],
    run: Callable[..., list[FitResult]],
    advance: Advance,
) -> None:
    """Run the experiments of a plan and store their rows.

    Parameters
    ----------
    kind : str
        Name of the study in the settings of the store.
    study : object
        Has the attributes ``out``, ``seed``, ``jobs`` and ``command``.
    loaded : mapping of str to Dataset
        The data sets.
    plan : function
        Takes the data sets with coded classes; returns cells and methods by experiment.
    run : function
        Fits the methods of a cell; called as ``run(cell, sets, methods, seed=seed)``.
    advance : function
        Shows the progress.
    """
    sets = {
        name: CodedSet(data.X, np.unique(data.y, return_inverse=True)[1])
        for name, data in loaded.items()
    }
    run_seeded = partial(run, seed=study.seed)
    with closing(Store(study.out / STORE, kind=kind)) as store:
        _note_run(store, kind, study, loaded)
        for experiment, (cells, methods) in plan(sets).items():
            run_missing(
                store,
                experiment,
                cells,
                methods,
                advance,
                sets=sets,
                run=run_seeded,
                jobs=study.jobs,
            )


def _note_run(store: Store, kind: str, study: Any, sets: Mapping[str, Dataset]) -> None:
    """Store the settings of a run.

    Raises a StoreError if the rows of the store depend on other settings.
    """
    agreed = store.merge_settings(
        kind=kind,
        format=PAPER_FORMAT,
        seed=study.seed,
        iclda=versions()["iclda"],
        data={name: data.sha256 for name, data in sets.items()},
    )
    store.note(**agreed)

    # Earlier runs of the folder may have had other data sets and commands: keep those.
    earlier = read_settings(store)
    shapes = {
        name: [*data.X.shape, len(np.unique(data.y))] for name, data in sets.items()
    }
    origins = {name: data.origin for name, data in sets.items()}
    store.note(
        commands=list(dict.fromkeys([*earlier.commands, study.command])),
        versions=versions(),
        machine=f"{platform.machine()}, {platform.system()}",
        jobs=study.jobs,
        shapes={**earlier.shapes, **shapes},
        origins={**earlier.origins, **origins},
        began=time.strftime("%Y-%m-%d %H:%M"),
    )
