"""Draw a fit, module by module."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

INK, FAINT = "#1f2328", "#6e7781"
COLORS = {"_estimators": "#dbeafe", "_rows": "#dcfce7", "_core": "#fef3c7", "user": "#ffffff"}
# Column, row, package, module, what it does, what it returns.
STEPS = [
    (0, 0, "user", "ImplicitlyConstrainedLDA().fit(X, y)", "", ""),
    (0, 1, "_estimators", "base", "fit: the steps on the right, from top to bottom", ""),
    (1, 1, "_estimators", "inputs", "checks or opens X, notes its features", "RowSource"),
    (2, 1, "_rows", "backends, memory", "arrays, files, a device, Dask: blocks and sums", "Rows"),
    (1, 2, "_estimators", "prepare", "checks y, weights and priors", "FitInputs"),
    (2, 2, "_estimators", "labels", "classes, codes and unlabeled rows from y", "Labels"),
    (1, 3, "_core", "problem", "labeled rows in summary, moments of all", "Problem"),
    (
        2,
        3,
        "_core",
        "frame, whitening, likelihood",
        "units; unit covariance; L and derivatives",
        "",
    ),
    (1, 4, "_estimators", "implicitly_constrained", "one call into the core", ""),
    (2, 4, "_core", "solvers/search", "starts, continuation, finish", "Solution"),
    (1, 5, "_core", "gaussian", "the model at the point found", "Gaussians"),
    (2, 5, "_core", "solvers/attainable, labelsums", "points that labelings attain; the gap", ""),
    (1, 6, "_estimators", "diagnosis", "warnings about the data and the search", ""),
    (0, 6, "user", "means_, covariance_, coef_, gap_, ...", "", ""),
]
WIDTH, HEIGHT, GAP_X, GAP_Y = 3.55, 0.62, 0.55, 0.36


def corner(column, row):
    return column * (WIDTH + GAP_X), -row * (HEIGHT + GAP_Y)


def draw(axes):
    for column, row, package, module, purpose, result in STEPS:
        x, y = corner(column, row)
        style = "round,pad=0.02,rounding_size=0.06"
        axes.add_patch(
            FancyBboxPatch(
                (x, y), WIDTH, HEIGHT, boxstyle=style, facecolor=COLORS[package], edgecolor=FAINT
            )
        )
        name = module if package == "user" else f"{package}/{module}"
        middle = y + (HEIGHT * 0.68 if purpose else HEIGHT / 2)
        axes.text(x + 0.1, middle, name, va="center", fontsize=9, color=INK, family="monospace")
        axes.text(x + 0.1, y + HEIGHT * 0.27, purpose, va="center", fontsize=7.5, color=INK)
        axes.text(
            x + WIDTH - 0.1, middle, result and f"\N{RIGHTWARDS ARROW} {result}",
            va="center", ha="right", fontsize=8, color=FAINT,
        )  # fmt: skip
    arrow = {"arrowstyle": "-|>", "color": FAINT, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
    places = {(column, row) for column, row, *_ in STEPS}
    for column, row in places:
        x, y = corner(column, row)
        if (column, row) in {(0, 0), (2, 4)}:  # to the box below
            axes.annotate("", (x + WIDTH / 2, y - GAP_Y), (x + WIDTH / 2, y), arrowprops=arrow)
        if (column + 1, row) in places and (column, row) not in {(0, 0), (0, 6), (1, 5)}:
            axes.annotate(
                "", (x + WIDTH + GAP_X, y + HEIGHT / 2), (x + WIDTH, y + HEIGHT / 2),
                arrowprops=arrow,
            )  # fmt: skip
    # The base class calls the second column from top to bottom, then sets the attributes.
    x, trunk = corner(0, 1)[0] + WIDTH, corner(0, 1)[0] + WIDTH + GAP_X / 2
    top, bottom = corner(0, 1)[1] + HEIGHT / 2, corner(0, 6)[1] + HEIGHT / 2
    axes.plot([trunk, trunk], [top, bottom], color=FAINT, linewidth=0.9)
    for row in (2, 3, 4, 5, 6):
        y = corner(1, row)[1] + HEIGHT / 2
        axes.annotate("", (corner(1, row)[0], y), (trunk, y), arrowprops=arrow)
    axes.annotate("", (x, bottom), (trunk, bottom), arrowprops=arrow)


def draw_to(path: Path) -> None:
    width, height = 3 * WIDTH + 2 * GAP_X + 0.2, 7 * HEIGHT + 6 * GAP_Y + 0.2
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "iclda"}):
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(-0.1, width - 0.1)
        axes.set_ylim(corner(0, 6)[1] - 0.1, HEIGHT + 0.1)
        axes.axis("off")
        draw(axes)
        figure.savefig(path, facecolor="white", metadata={"Date": None})
