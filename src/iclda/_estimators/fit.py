"""What ``_solve`` of a classifier returns, and the supervised fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .._core.problem import Problem
from .._core.solvers import Outcome
from .._core.solvers.supervised import fit_labeled, shrink_labeled, target_of_labeled
from .._messages import FitError, Text, say


@dataclass(frozen=True)
class Fit:
    """Result of ``_solve`` of a classifier.

    Attributes
    ----------
    model : Gaussians or LinearRule
        In the frame of the problem; a rule has the functions of least squares.
    attributes : mapping
        Further fitted attributes by their names.
    outcome : Outcome or None
        How the iteration ended; None if the fit has a closed form.
    detail : str
        What was still to be done where the iteration stopped.
    rule : rule or None
        The rule that labels the unlabeled rows.
    variance_left_out : float or None
        Variance of directions in which no row varies. If it is None, a fit that rests
        on the labeled rows has no such directions; others take that of the problem.
    labeled_span : LabeledSpan or None
        How far the labeled rows determine a fit that rests on them alone. Without it a
        fit is judged as one of all rows.
    """

    model: Any
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None
    detail: str = ""
    rule: Any = None
    variance_left_out: float | None = None
    labeled_span: LabeledSpan | None = None

    @property
    def rests_on_labeled_rows(self) -> bool:
        """Whether the labeled rows alone decide how well the fit is determined."""
        return self.labeled_span is not None

    @classmethod
    def of_solution(
        cls,
        model: Any,
        solution: Any,
        detail: str,
        *,
        rule: Any = None,
        **attributes: Any,
    ) -> Fit:
        """Return the fit of an iteration, with its counts and its outcome."""
        counts = {"n_iter_": solution.n_iter, "n_passes_": solution.n_passes}
        return cls(model, {**counts, **attributes}, solution.outcome, detail, rule)

    def having(self, **attributes: Any) -> Fit:
        """Return the fit with further attributes."""
        return replace(self, attributes={**self.attributes, **attributes})


@dataclass(frozen=True)
class LabeledSpan:
    """Dimensions that the labeled rows span: within their classes, and in all.

    ``left_out`` counts further dimensions, which shrinkage alone determines.
    """

    within: int
    total: int
    left_out: int = 0


def supervised_fit(problem: Problem, *, can_shrink: bool = True) -> Fit:
    """Return the fit to the labeled rows of a problem.

    ``can_shrink`` says whether the classifier has the parameter ``shrinkage``, which
    errors advise then.
    """
    labeled = problem.labeled
    frame = problem.frame
    shrinkage = problem.shrinkage
    # Without shrinkage, directions in which no row varies are not part of the fit.
    n_left_out = problem.n_left_out if shrinkage else 0
    shrunk = None
    variance_left_out = None
    if shrinkage > 0:
        shrunk = shrink_labeled(labeled, shrinkage, frame, n_left_out)
    if n_left_out:
        # The target is one variance of all features, in the user's units.
        target = target_of_labeled(labeled, frame, n_left_out) / labeled.weight
        variance_left_out = float(shrinkage * (target * frame.scale**2)[0])
    model, rank = fit_labeled(frame, labeled, problem.log_priors, shrunk)
    # Where no column varies at all, both ranks are 0 and no covariance is needed.
    if rank == 0 and model.rank > 0:
        or_shrink: Text | str = ""
        if can_shrink:
            or_shrink = say(", or pass {@shrinkage}, for example 0.1")
        raise FitError(
            say(
                "The {n} labeled rows do not vary within their classes, which leaves "
                "no covariance to estimate: label more rows{or_shrink}.",
                n=labeled.n_rows,
                or_shrink=or_shrink,
            )
        )
    return Fit(
        model,
        {"shrinkage_": shrinkage, "rank_": rank + n_left_out},
        rule=model.score_rule(),
        variance_left_out=variance_left_out,
        labeled_span=LabeledSpan(rank, model.rank, n_left_out),
    )
