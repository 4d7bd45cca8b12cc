"""The toy figure of the paper: unlabeled rows that help, and unlabeled rows that mislead."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.types import AnyArray, Array
from ..._estimators.expectation_maximization import ExpectationMaximizationLDA
from ..._estimators.implicitly_constrained import ImplicitlyConstrainedLDA
from ..._estimators.supervised import SupervisedLDA
from ...datasets import make_gaussians, make_violated_gaussians
from ...methods import FAINT, INK
from ...plots._look import mix
from ..drawing import COLORS, new_figure, styled
from ..engine import rng_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_ROWS, N_LABELED, VARIANCE = 1000, 10, 0.6
_CLASS_COLORS = (COLORS["MCLDA"], COLORS["EMLDA"])
_ROW_TITLES = ("Class boundary between the clusters", "Class boundary across the clusters")


@dataclass(frozen=True)
class ToyPanel:
    """One panel of the toy figure: a scatter, or the responsibilities of a method.

    ``y`` holds 0 and 1, and -1 for unlabeled rows; ``boundary`` is (coef, intercept) of the line
    coef @ x + intercept = 0; ``responsibilities`` is the share of class 1 of every row, labeled
    rows included, or None for the scatter.
    """

    title: str
    X: Array
    y: AnyArray
    boundary: tuple[Array, float]
    responsibilities: Array | None = None


def toy_panels(seed: int) -> list[ToyPanel]:
    """Two rows of three panels: supervised boundary, labels of ICLDA, labels of EMLDA."""
    between = make_gaussians(N_ROWS, rng_of(seed, "toy", "between"), VARIANCE)
    across = make_violated_gaussians(N_ROWS, rng_of(seed, "toy", "across"), VARIANCE)
    return [*_row_of_panels(*between), *_row_of_panels(*across)]


def _row_of_panels(X: Array, codes: AnyArray) -> list[ToyPanel]:
    """Fit to five labeled rows of each class, as in the figure of the paper."""
    labeled = np.concatenate([np.flatnonzero(codes == c)[: N_LABELED // 2] for c in (0, 1)])
    others = np.setdiff1d(np.arange(len(codes)), labeled)
    rows = X[np.concatenate([labeled, others])]
    y = np.concatenate([codes[labeled], np.full(len(others), -1)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        supervised = SupervisedLDA().fit(rows, y)
        constrained = ImplicitlyConstrainedLDA().fit(rows, y)
        em = ExpectationMaximizationLDA().fit(rows, y)
    panels: tuple[tuple[str, Any, Any], ...] = (
        ("Labels and LDA", supervised, None),
        ("ICLDA", constrained, constrained.impute(rows)[:, 1]),
        ("EMLDA", em, em.predict_proba(rows)[:, 1]),
    )
    return [
        ToyPanel(title, rows, y, (fit.coef_[0], float(fit.intercept_[0])), shares)
        for title, fit, shares in panels
    ]


@styled
def draw_toy(panels: Sequence[ToyPanel]) -> Figure:
    """Draw two rows of three panels, each row with its title."""
    figure, grid = new_figure(8.4, 6.0, 2, 3)
    for axes, panel in zip(grid.flat, panels, strict=True):
        _plot_toy(axes, panel)
        axes.set_title(panel.title)
    for axes, title in zip(grid[:, 0], _ROW_TITLES, strict=True):
        axes.set_ylabel(title)
    return figure


def _plot_toy(axes: Axes, panel: ToyPanel) -> None:
    is_labeled = panel.y >= 0
    rest = panel.X[~is_labeled]
    # Thousands of dots as pixels: a tenth of the size, and sharp enough at 200 dots an inch.
    dots: dict[str, Any] = {"s": 5, "linewidths": 0, "rasterized": True}
    if panel.responsibilities is None:
        axes.scatter(rest[:, 0], rest[:, 1], color=FAINT, alpha=0.55, **dots)
    else:
        shares = panel.responsibilities[~is_labeled]
        colors = mix(np.column_stack([1 - shares, shares]), _CLASS_COLORS)
        axes.scatter(rest[:, 0], rest[:, 1], c=colors, alpha=0.8, **dots)
    large: dict[str, Any] = {"s": 34, "edgecolor": INK, "linewidths": 1.0, "zorder": 3}
    for label, marker in ((0, "o"), (1, "s")):
        chosen = panel.X[panel.y == label]
        axes.scatter(*chosen.T, marker=marker, color=_CLASS_COLORS[label], **large)
    reach = 1.05 * float(np.abs(panel.X).max(initial=1.0))
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
    axes.set_aspect("equal")
    axes.spines[:].set_visible(False)
    coef, intercept = panel.boundary
    if norm := float(np.hypot(*coef)):
        foot = -intercept * coef / norm**2
        along = 3 * reach * np.array([-coef[1], coef[0]]) / norm
        axes.plot(*np.array([foot - along, foot + along]).T, color=INK, linewidth=1.4)
