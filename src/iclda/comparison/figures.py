"""Figures of a comparison, drawn from its numbers by the displays of ``iclda.plots``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..experiments.drawing import new_figure, styled
from ..plots import ComparisonDisplay, LearningCurveDisplay, ReliabilityDisplay
from ..plots._reliability import ReliabilityCurve
from .curves import LOSS_DIFFERENCE, Point
from .results import COMPARISON, LABELED, N_BINS, UNLABELED
from .summary import BRIER, ERROR, pooled, repeat_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .findings import Findings

_NAMES = {
    ERROR: "Error",
    BRIER: "Brier score",
    LOSS_DIFFERENCE: "Loss minus that of supervised",
}
_VARIED = {UNLABELED: "n_unlabeled", LABELED: "n_labeled"}
_DRAWABLE = 10  # times the median difference in loss: a larger one would flatten all others


@styled
def draw_differences(findings: Findings, measure: str) -> Figure | None:
    """Every contestant less the supervised one: repeats as dots, corrected intervals as bars."""
    display = differences(findings, measure)
    if display is None:
        return None
    figure, grid = new_figure(5.8, 1.2 + 0.38 * len(display.differences))
    display.plot(ax=grid[0, 0])
    return figure


def differences(findings: Findings, measure: str) -> ComparisonDisplay | None:
    """The same, to be plotted; None without two contestants that have the measure."""
    outcome, baseline = findings.outcome, findings.outcome.baseline
    supervised = _repeat_values(findings, baseline or "", measure)
    found = {d.method: d for d in outcome.differences if d.measure == measure}
    paired = {}
    for name in found:
        own = _repeat_values(findings, name, measure)
        paired[name] = np.array([own[k] - supervised[k] for k in own if k in supervised])
    paired = {name: values for name, values in paired.items() if values.size}
    if not paired:
        return None
    return ComparisonDisplay(
        differences=paired,
        baseline=baseline or "",
        score_name=_NAMES[measure],
        greater_is_better=False,
        intervals={name: (found[name].low, found[name].high) for name in paired},
    )


def _repeat_values(findings: Findings, name: str, measure: str) -> dict[int, float]:
    chosen = [r for r in findings.results if r.experiment == COMPARISON and r.method == name]
    return repeat_values(chosen, measure, findings.settings["folds"])


@styled
def draw_curve(points: Sequence[Point], curve: str, measure: str) -> Figure | None:
    """One measure against the number of unlabeled, or of labeled, rows."""
    display = learning_curve(points, curve, measure)
    if display is None:
        return None
    figure, grid = new_figure(4.8, 3.2)
    if measure == LOSS_DIFFERENCE:
        grid[0, 0].set_ylim(*_limits(display, _reach(_chosen(points, curve, measure))))
    display.plot(ax=grid[0, 0])
    return figure


def undrawn(points: Sequence[Point], curve: str) -> list[Point]:
    """Points so far off in loss that the others could not be told apart beside them."""
    shown = _chosen(points, curve, LOSS_DIFFERENCE)
    return [point for point in shown if abs(point.mean) > _reach(shown)]


def _chosen(points: Sequence[Point], curve: str, measure: str) -> list[Point]:
    return [p for p in points if (p.curve, p.measure) == (curve, measure)]


def _reach(points: Sequence[Point]) -> float:
    """The largest difference in loss that is drawn; those of supervised to itself do not count."""
    sizes = [abs(point.mean) for point in points if point.mean]
    return _DRAWABLE * float(np.median(sizes)) if sizes else np.inf


def _limits(display: LearningCurveDisplay, reach: float) -> tuple[float, float]:
    """Ends of the axis: bands of fits that vary wildly are cut off at what is drawn."""
    ends = [0.0]
    for name, means in display.means.items():
        errors = np.nan_to_num((display.standard_errors or {})[name])
        ends += [*np.clip(means - errors, -reach, reach), *np.clip(means + errors, -reach, reach)]
    margin = 0.05 * (max(ends) - min(ends)) or 1.0
    return min(ends) - margin, max(ends) + margin


def learning_curve(
    points: Sequence[Point], curve: str, measure: str
) -> LearningCurveDisplay | None:
    """The same, to be plotted; None if there are no two points to connect."""
    shown = _chosen(points, curve, measure)
    if measure == LOSS_DIFFERENCE:
        shown = [point for point in shown if point not in undrawn(points, curve)]
    lines = {
        name: [p for p in shown if p.method == name]
        for name in dict.fromkeys(p.method for p in shown)
    }
    if max(map(len, lines.values()), default=0) < 2:
        return None
    return LearningCurveDisplay(
        sizes={name: np.array([p.size for p in line]) for name, line in lines.items()},
        means={name: np.array([p.mean for p in line]) for name, line in lines.items()},
        standard_errors={
            name: np.array([np.nan if p.se is None else p.se for p in line])
            for name, line in lines.items()
        },
        varied=_VARIED[curve],
        score_name=_NAMES[measure],
    )


@styled
def draw_reliability(findings: Findings, names: Sequence[str]) -> Figure | None:
    """How often contestants are right when they are so sure, over all test rows."""
    curves: dict[str, Any] = {}
    for name in names:
        bins = pooled(
            r for r in findings.results if r.experiment == COMPARISON and r.method == name
        )
        if bins[:, 0].any():
            with np.errstate(invalid="ignore"):
                curves[name] = ReliabilityCurve(
                    np.linspace(0, 1, N_BINS + 1),
                    bins[:, 0].astype(int),
                    bins[:, 1] / bins[:, 0],
                    bins[:, 2] / bins[:, 0],
                )
    if not curves:
        return None
    figure, grid = new_figure(4.6, 4.4)
    ReliabilityDisplay(curves=curves).plot(ax=grid[0, 0])
    return figure
