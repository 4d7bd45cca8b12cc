"""Figures of a comparison, drawn from its numbers by the displays of ``iclda.plots``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.types import Array
from ...plots import ComparisonDisplay, LearningCurveDisplay, ReliabilityDisplay
from ...plots._reliability import ReliabilityCurve
from ..drawing import FAINT, new_figure, styled
from .curves import LOSS_DIFFERENCE, Point
from .results import COMPARISON, LABELED, N_BINS, UNLABELED
from .summary import BRIER, ERROR, pooled, repeat_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .findings import Findings

_NAMES = {ERROR: "Error", BRIER: "Brier score"}
_VARIED = {UNLABELED: "n_unlabeled", LABELED: "n_labeled"}
_WIDE = 10  # times what methods differ by in loss: a larger difference calls for a log axis,
_DRAWABLE = 1000  # and one so many times the median would flatten the others on that too


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
def draw_curve(
    points: Sequence[Point], curve: str, measure: str, reference: str | None = None
) -> Figure | None:
    """One measure against the number of unlabeled, or of labeled, rows.

    A loss is that above the one of ``reference``.
    """
    display = learning_curve(points, curve, measure, reference)
    if display is None:
        return None
    figure, grid = new_figure(4.8, 3.2)
    if measure == LOSS_DIFFERENCE:
        _set_loss_axis(grid[0, 0], display)
    display.plot(ax=grid[0, 0])
    return figure


def undrawn(points: Sequence[Point], curve: str) -> list[Point]:
    """Points so far off in loss that the others could not be told apart beside them."""
    shown = _chosen(points, curve, LOSS_DIFFERENCE)
    most = _DRAWABLE * _median_size(np.array([point.mean for point in shown]))
    return [point for point in shown if abs(point.mean) > most]


def _chosen(points: Sequence[Point], curve: str, measure: str) -> list[Point]:
    return [p for p in points if (p.curve, p.measure) == (curve, measure)]


def _median_size(differences: Array) -> float:
    """The median; differences of the reference to itself do not count."""
    sizes = np.abs(differences[differences != 0])
    return float(np.median(sizes)) if sizes.size else 0.0


def _set_loss_axis(ax: Any, display: LearningCurveDisplay) -> None:
    """Scale and ends of the axis; bands of fits that vary wildly are cut off."""
    spreads = display.standard_errors or {}
    # Less than a standard error is noise, and no matter of magnitudes.
    rivals = [
        max(_median_size(mean), _median_size(np.nan_to_num(spreads[name])))
        for name, mean in display.means.items()
        if mean.any()
    ]
    typical = sorted(rivals)[(len(rivals) - 1) // 2] if rivals else 1.0
    means = np.concatenate(list(display.means.values()))
    errors = np.nan_to_num(np.concatenate(list(spreads.values())))
    reach = max(np.abs(means).max(), _WIDE * typical)
    ends = np.clip([*(means - errors), *(means + errors), 0.0], -reach, reach)
    if reach > _WIDE * typical:
        ax.set_yscale("symlog", linthresh=10 ** np.floor(np.log10(typical)))
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:,g}".replace("-", "\N{MINUS SIGN}"))
        ax.axhline(0, color=FAINT, linewidth=0.6)
    scale = ax.transScale
    low, high = (scale.transform((1, end))[1] for end in (ends.min(), ends.max()))
    margin = 0.05 * (high - low) or 1.0
    inverse = scale.inverted()
    ax.set_ylim(*(inverse.transform((1, end))[1] for end in (low - margin, high + margin)))


def learning_curve(
    points: Sequence[Point], curve: str, measure: str, reference: str | None = None
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
        score_name=_NAMES.get(measure, f"Loss minus that of {reference}"),
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
