"""Figures of the paper's experiments: toy problems, overview of the tables, learning curves."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.types import AnyArray, Array
from ..._estimators.expectation_maximization import ExpectationMaximizationLDA
from ..._estimators.implicitly_constrained import ImplicitlyConstrainedLDA
from ..._estimators.supervised import SupervisedLDA
from ...datasets import make_gaussians, make_violated_gaussians
from ...methods import FAINT, INK
from ...plots import DecisionBoundaryDisplay, LearningCurveDisplay
from ...plots._look import method_styles
from ..engine import rng_of
from ..page import new_figure, styled
from . import published
from .summary import ReproducedPoint, TableCell, arrange

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TOY_ROWS, _TOY_LABELS_OF_CLASS = 1000, 5


@styled
def draw_toy(seed: int) -> Figure:
    """Draw the toy figure: labels that LDA, ICLDA and EM give, on rows that help or mislead."""
    toys = {
        "Class boundary between the clusters": ("between", make_gaussians),
        "Class boundary across the clusters": ("across", make_violated_gaussians),
    }
    panels = {
        "Labels and LDA": (SupervisedLDA(), None),
        "ICLDA": (ImplicitlyConstrainedLDA(), "auto"),
        "EMLDA": (ExpectationMaximizationLDA(), "auto"),
    }
    figure, grid = new_figure(8.4, 6.0, len(toys), len(panels))
    for row, (title, (name, make)) in zip(grid, toys.items(), strict=True):
        X, codes = make(_TOY_ROWS, rng_of(seed, "toy", name))
        y = _keep_first_labels(codes)
        for axes, (panel, (classifier, shares)) in zip(row, panels.items(), strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                classifier.fit(X, y)
            options: Any = {"responsibilities": shares, "legend": False, "ax": axes}
            DecisionBoundaryDisplay.from_estimator(classifier, X, y, **options)
            axes.set(title=panel, xlabel="", ylabel="", xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        row[0].set_ylabel(title)
    return figure


def _keep_first_labels(codes: AnyArray) -> AnyArray:
    """Return the classes of five rows of each class, -1 for all others."""
    y = np.full(len(codes), -1)
    for code in (0, 1):
        y[np.flatnonzero(codes == code)[:_TOY_LABELS_OF_CLASS]] = code
    return y


@styled
def draw_table_overview(cells: Sequence[TableCell], measure: str = "error") -> Figure:
    """Draw for each data set how far each method lies from LDA: left is better."""
    datasets, methods, by_key = arrange(cells, measure)
    styles = method_styles(methods)
    means = {key: cell.mean for key, cell in by_key.items() if cell.mean is not None}
    shown = [method for method in methods if method != published.BASELINE]
    figure, grid = new_figure(5.0, 1.1 + 0.36 * max(len(datasets), 1))
    axes = grid[0, 0]
    axes.axvline(0, color=INK, linewidth=0.8)
    for rank, method in enumerate(shown):
        shift = 0.5 * (rank / max(len(shown) - 1, 1) - 0.5)  # equal dots do not hide each other
        known = {
            place + shift: means[name, method] - means[name, published.BASELINE]
            for place, name in enumerate(datasets)
            if {(name, method), (name, published.BASELINE)} <= means.keys()
        }
        is_reference = method == published.ORACLE
        axes.plot(
            list(known.values()),
            list(known),
            linestyle="none",
            marker="|" if is_reference else "o",
            markersize=8 if is_reference else 5,
            markeredgewidth=1.6 if is_reference else 1.2,
            markeredgecolor=styles[method]["color"],
            markerfacecolor="none" if method == published.PUBLISHED_EM else styles[method]["color"],
            label=method,
            zorder=3 if method == "ICLDA" else 2,
        )
    axes.set_yticks(range(len(datasets)), datasets)
    axes.set_ylim(max(len(datasets), 1) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", color=FAINT, linewidth=0.4, alpha=0.5)
    axes.set_axisbelow(True)
    axes.set_xlabel(
        f"{published.table_measures()[measure].axis} minus that of LDA  "
        "(\N{LEFTWARDS ARROW} better, worse \N{RIGHTWARDS ARROW})"
    )
    if shown:
        figure.legend(
            loc="outside upper left", ncols=3, frameon=False, handletextpad=0.2, fontsize=8.5
        )
    return figure


@styled
def draw_curves(points: Iterable[ReproducedPoint], dataset: str) -> Figure:
    """Draw the measures of one data set side by side, against the number of unlabeled rows."""
    measures = published.table_measures()
    figure, grid = new_figure(4.7 * len(measures), 3.3, 1, len(measures))
    ours = [point for point in points if point.dataset == dataset]
    for axes, (name, measure) in zip(grid[0], measures.items(), strict=True):
        _plot_curves(axes, [point for point in ours if point.measure == name])
        axes.set(title=measure.axis, ylabel="")
    return figure


def _plot_curves(axes: Axes, ours: Sequence[ReproducedPoint]) -> None:
    """Draw means with a band of one standard error, and published means as open circles."""
    methods = dict.fromkeys(point.method for point in ours)
    lines = {method: [p for p in ours if p.method == method] for method in methods}
    sizes = _columns(lines, "n_unlabeled", int)
    means, errors = _columns(lines, "mean"), _columns(lines, "se")
    # The faults of the published EM may take it so far up that the others would be one line.
    others = [mean for method, mean in means.items() if method != published.PUBLISHED_EM]
    if others:
        low, high = np.min(others), np.max(others)
        axes.set_ylim(low - 0.08 * (high - low), high + 0.3 * (high - low))
    display = LearningCurveDisplay(sizes=sizes, means=means, standard_errors=errors).plot(ax=axes)
    circles: Any = {"linestyle": "none", "marker": "o", "markersize": 3.4}
    circles |= {"markerfacecolor": "none", "markeredgewidth": 0.8}
    for method, published_means in _columns(lines, "published_mean").items():
        color = display.lines_[method].get_color()
        axes.plot(sizes[method], published_means, markeredgecolor=color, **circles)


def _columns(
    lines: dict[str, list[ReproducedPoint]], name: str, dtype: Any = float
) -> dict[str, Array]:
    """Values of an attribute of the points, by method; NaN for None."""
    return {
        method: np.array([getattr(point, name) for point in line], dtype)
        for method, line in lines.items()
    }
