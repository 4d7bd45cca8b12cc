"""Splits, fits and measures of one cell of the paper's experiments."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..._core.frame import frame_of
from ..._core.gaussian import Gaussians
from ..._core.labelsums import GivenLabels
from ..._core.likelihood import FLOOR, smallest_eigenvalue
from ..._core.problem import Problem, summarize_labeled
from ..._core.solvers.alternate import start_scores
from ..._core.solvers.attainable import hold_all
from ..._core.types import AnyArray, Array
from ..._rows.memory import MemoryRows
from ...datasets import make_gaussians, make_violated_gaussians
from ...methods import find_method, known_method
from .. import paper
from ..engine import record_fit, rng_of
from ..measures import Predictions, compute_measures, paper_measures
from ..store import Cell, FitResult

TOY_ROWS, TOY_LABELED, TOY_VARIANCE = 1000, 10, 0.8
GUARANTEED = 2  # labeled rows, and test rows, of every class
_LITTLE_SHRINKAGE = 1e-3
# Methods that need labeled rows that vary within classes in every direction.
_NEED_SPREAD = ("MCLDA", "MCPLDA", "MCLDA-likelihood")
_TOYS = {paper.GAUSSIAN: make_gaussians, paper.VIOLATED: make_violated_gaussians}
_PARAMETERS: dict[str, Any] = {"MCLDA": {"variant": "symmetric"}, "EMLDA": {"tol": 1e-10}}
_PUBLISHED_EM_ROUNDS = 100


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


def _draw_guaranteed(codes: AnyArray, rows: AnyArray, rng: np.random.Generator) -> AnyArray:
    """Draw the labeled rows that every class is guaranteed, with replacement.

    The code of the published curves did so. That the tables did too is inferred: of the ways that
    were tried, it fits the published errors of LDA on the two sets with ten labels and one rare
    class best.
    """
    classes = np.unique(codes)
    return np.concatenate([rng.choice(rows[codes[rows] == c], GUARANTEED) for c in classes])


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
        unlabeled = MemoryRows(self.X_unlabeled)
        return Problem(frame, labeled, unlabeled, unlabeled_moments=unlabeled.moments(frame))


def fit_published_em(problem: Problem, n_rounds: int = _PUBLISHED_EM_ROUNDS) -> Gaussians:
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
    classifier = _make_classifier(method)
    if method == "ICLDA":  # the seed of the study is that of the starts
        return classifier._solve(problem, seed=rows.seed).model
    if _fits_problems(classifier):
        return classifier._solve(problem).model
    fitted = classifier.fit(rows.rows, rows.y)
    return getattr(fitted, "_gaussians_", fitted)


def _fits_problems(classifier: Any) -> bool:
    """Whether a classifier is fitted to a prepared problem; others need the rows themselves."""
    base, kind = find_method("supervised").load_class().__bases__[0], type(classifier)
    if not issubclass(kind, base) or kind._solve is base._solve:
        return False
    return bool(kind._fit_all_rows is base._fit_all_rows)


def _make_classifier(method: str) -> Any:
    """An unfitted classifier by its name in the paper."""
    if method in paper.EXTRA_METHODS:
        return _make_extra_classifier(method)
    known = known_method(method)
    if known is None:
        raise KeyError(method)
    return known.classifier().set_params(**_PARAMETERS.get(method, {}))


def _make_extra_classifier(method: str) -> Any:
    """A classifier of scikit-learn; it has no density, and so an error but no loss."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

    if method == "sklearn-SelfTraining":
        return SelfTrainingClassifier(LinearDiscriminantAnalysis())
    return make_pipeline(StandardScaler(), LabelSpreading(kernel="knn"))


def run_cell(
    cell: Cell, sets: Mapping[str, CodedSet], methods: Sequence[str], seed: int
) -> list[FitResult]:
    """Fit every method once on the split of a cell."""
    if make := _TOYS.get(cell.dataset):
        rng = rng_of(seed, cell.experiment, cell.dataset, cell.repeat, cell.part, "rows")
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
        predictions = _predict(fit_method(method, rows), X[test], codes[test], rows)
        return {"values": compute_measures(predictions, paper_measures())}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # failed fits are stored, their warnings are not
        return [record_fit(cell, m, sizes, seed, partial(measure, m)) for m in methods]


def _predict(model: Any, X: Array, codes: AnyArray, rows: CellRows) -> Predictions:
    if not isinstance(model, Gaussians):
        return Predictions(codes, model.predict(X) != codes, model.predict_proba(X))
    joint, labeled = model.log_joint(X), model.log_joint(rows.X)
    shares = np.exp(joint - joint.max(axis=1, keepdims=True))
    return Predictions(
        codes,
        is_wrong=joint.argmax(axis=1) != codes,
        probabilities=shares / shares.sum(axis=1, keepdims=True),
        log_likelihood=joint[np.arange(len(codes)), codes],
        log_likelihood_labeled=labeled[np.arange(len(rows.codes)), rows.codes],
    )
