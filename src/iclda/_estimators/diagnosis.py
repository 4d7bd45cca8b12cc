"""Warnings about data: rare, and each with the way out."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.exceptions import ConvergenceWarning

from .._core.gaussian import Gaussians
from .._core.problem import WITHIN_TOLERANCE, Problem
from .._core.solvers.outcome import Outcome
from .._core.types import Array
from .._messages import Column, Hint, Text, plural
from .inputs import column_of
from .labels import Labels

_SHIFT_PROBABILITY = 1e-6
_LEAST_SHIFT = 5.0  # standard deviations within classes


_SHRINKAGE = Hint("shrinkage")


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn, pointing at the line of the user that called ``fit``."""
    warnings.warn(message, category, stacklevel=_frames_to_user())


def _frames_to_user() -> int:
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("iclda.", "sklearn.base")
    ):
        level, frame = level + 1, frame.f_back
    return level


def warn_of_single_labels(labels: Labels, *, is_supervised: bool) -> None:
    """One label a class leaves no spread within classes to learn from the labels."""
    guess = "set by shrinkage alone" if is_supervised else "guessed from all rows"
    n_labeled = int(labels.is_labeled.sum())
    if n_labeled == len(labels.classes):
        named = ", ".join(repr(c) for c in labels.classes.tolist())
        warn(
            f"Each of the classes {named} has one labeled row only: the spread within classes "
            f"is {guess}. Label more rows if you can."
        )


def warn_of_rank(estimator: Any, problem: Problem) -> None:
    """Rows, labeled or not, that vary in fewer directions than there are features."""
    warn_of_span(estimator, np.diag(problem.moments.covariance), problem.whitening.rank)


def warn_of_span(estimator: Any, variances: Array, rank: int) -> None:
    """Features of these variances that vary in fewer directions than there are of them."""
    n_features = len(variances)
    if rank == n_features:
        return
    constant = np.flatnonzero(variances == 0)
    reasons: list[str | Column] = []
    for column in constant[:5]:
        reasons += [", " if reasons else "", _column(estimator, column)]
    if constant.size:
        more = f" and {constant.size - 5} more" if constant.size > 5 else ""
        reasons.append(f"{more} {'are' if constant.size > 1 else 'is'} constant")
    if rank < n_features - constant.size:
        reasons.append(
            f"{'; the other' if constant.size else 'the'} {n_features - constant.size} columns "
            f"vary in {plural(rank, 'direction')} only (collinear columns, or too few rows)"
        )
    warn(
        Text(
            f"Rows span {rank} of {n_features} dimensions: ",
            *reasons,
            ". The fit is made in those dimensions and ignores the rest.",
        )
    )


def warn_of_shift(estimator: Any, problem: Problem) -> None:
    """Unlabeled rows whose mean no class of labeled rows would explain."""
    labeled, total = problem.labeled, problem.moments
    freedom = labeled.weight - problem.n_classes
    if freedom <= 0 or total.weight <= labeled.weight:
        return
    share = labeled.weight / total.weight
    unlabeled_mean = (total.mean - share * labeled.moments.mean) / (1 - share)
    deviation = np.sqrt(np.maximum(np.diag(labeled.within), 0) / freedom)
    quantile = student.isf(_SHIFT_PROBABILITY / len(deviation), freedom)
    allowed = max(quantile, _LEAST_SHIFT) * deviation
    low, high = labeled.means.min(axis=0), labeled.means.max(axis=0)
    outside = np.maximum(low - unlabeled_mean, unlabeled_mean - high)
    # A spread that is only rounding makes any distance look large.
    has_spread = deviation**2 > WITHIN_TOLERANCE * np.diag(total.covariance)
    is_far = (outside > allowed) & has_spread
    if is_far.any():
        column = int(np.argmax(np.where(is_far, outside / np.where(is_far, deviation, 1.0), 0)))
        restore = problem.frame.restore
        warn(
            Text(
                "The unlabeled rows seem to come from elsewhere: the mean of ",
                _column(estimator, column),
                f" is {restore(unlabeled_mean)[column]:.4g} among them, but "
                f"{restore(low)[column]:.4g} to {restore(high)[column]:.4g} in the labeled "
                "classes, whose standard deviation is "
                f"{deviation[column] * problem.frame.scale[column]:.3g}. Compare with ",
                Hint("method", "supervised", text="SupervisedLDA"),
                ".",
            )
        )


def warn_of_floor(estimator: Any, model: Gaussians) -> None:
    """A direction that takes one value per class: the likelihood has no maximum."""
    sharpest = np.abs(model.projection[_sharpest(model)])
    share = sharpest * np.sqrt(np.maximum(np.diag(model.covariance), 0))
    columns = np.argsort(-share)
    column = int(columns[0])
    only = share[column] > 0.9 * share.sum()
    warn(
        Text(
            f"{type(estimator).__name__}: {'' if only else 'a mix of columns, '}",
            _column(estimator, column),
            f"{'' if only else ' first'} takes (nearly) one value per class on all rows, so the "
            "likelihood has no maximum and the variance there was held at its floor. "
            "Probabilities will be 0 or 1: pass ",
            _SHRINKAGE,
            ", for example 0.1 or 'auto', or ",
            Hint("drop", text="drop the column", kind="column"),
            ".",
        ),
        ConvergenceWarning,
    )


def _sharpest(model: Gaussians) -> int:
    """The standardized coordinate in which the class means lie furthest apart."""
    return int(np.argmax(np.ptp(model.class_points, axis=0)))


def warn_of_few_labels(estimator: Any, rank: int, needed: int, n_rows: int) -> None:
    """Labeled rows that do not vary within classes in every direction they vary in."""
    warn(
        Text(
            f"The {n_rows} labeled rows vary within their classes in {rank} of {needed} "
            f"directions: {type(estimator).__name__} separates them perfectly along the others, "
            "and its probabilities will be 0 or 1. Label more rows, or pass "
            f"{'' if estimator.shrinkage is None else 'another '}",
            _SHRINKAGE,
            ", for example 0.1.",
        )
    )


def _warn_of_too_few_rows(estimator: Any, problem: Problem) -> None:
    """Every labeling separates so few rows perfectly: the likelihood has no maximum."""
    n_rows = problem.labeled.n_rows + problem.unlabeled.n_rows
    warn(
        Text(
            f"{type(estimator).__name__}: {n_rows} rows vary in {problem.whitening.rank} "
            f"directions, more than {n_rows} - {problem.n_classes}, so every labeling separates "
            "them perfectly and the likelihood has no maximum; the fit is where the search "
            "stopped. Pass ",
            _SHRINKAGE,
            ", for example 0.1 or 'auto', or ",
            Hint("drop", text="drop columns", kind="columns"),
            ".",
        ),
        ConvergenceWarning,
    )


def judge(
    estimator: Any, problem: Problem, model: Gaussians, outcome: Outcome, detail: str
) -> bool:
    """Whether a fit converged; if not, one ConvergenceWarning that says why and what to do."""
    if problem.is_unbounded and not model.is_floored:
        _warn_of_too_few_rows(estimator, problem)
        return False
    if model.is_floored or outcome is Outcome.UNBOUNDED:
        warn_of_floor(estimator, model)
        return False
    if outcome is not Outcome.CONVERGED:
        warn(
            f"{type(estimator).__name__} {outcome.value}: {detail}. Raise max_iter "
            f"(now {estimator.max_iter}) or tol (now {estimator.tol:g}).",
            ConvergenceWarning,
        )
    return outcome is Outcome.CONVERGED


def _column(estimator: Any, column: int) -> Column:
    return column_of(int(column), getattr(estimator, "feature_names_in_", None))
