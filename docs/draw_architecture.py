"""Draw the two pictures of architecture.md: the floors of the package, and a fit.

`make pictures` draws them. They are committed, so that the page shows them in a
checkout, too; a test compares what they say with what is drawn here.
"""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

INK = "#1f2328"
FAINT = "#6e7781"
COLORS = {
    "user": "#ffffff",
    "edge": "#f3e8ff",
    "_estimators": "#dbeafe",
    "_rows": "#dcfce7",
    "_core": "#fef3c7",
}
# Floors from the top: kind, then (folder or module, what it is for) of each room.
FLOORS = [
    ("edge", [("cli/", "the command line")]),
    (
        "edge",
        [
            ("studies/", "compare/ on tables, paper/: experiments"),
            ("playground/", "the page in the browser"),
            ("labeling/", "rounds and a page to label on"),
        ],
    ),
    (
        "edge",
        [
            ("tabular/", "tables: read, encode, fit, predict"),
            ("model_files.py", "fitted models as files"),
        ],
    ),
    (
        "edge",
        [
            ("datasets/", "toys, benchmark sets"),
            ("plots/", "pictures"),
            ("model_selection/", "splits, scores, curves"),
        ],
    ),
    ("_estimators", [("_estimators/", "classifiers: fit, predict, score")]),
    (
        "_rows",
        [
            ("_rows/", "sums over rows in memory, in files, on a device, on a cluster"),
            ("methods.py", "the table of methods"),
        ],
    ),
    ("_core", [("_core/", "the mathematics: arrays in, arrays out; solvers")]),
]
# Steps of a fit: column, row, kind, module, what it does, what it returns.
STEPS = [
    (0, 0, "user", "ImplicitlyConstrainedLDA().fit(X, y)", "", ""),
    (
        0,
        1,
        "_estimators",
        "base",
        "fit: the steps on the right, from top to bottom",
        "",
    ),
    (1, 1, "_estimators", "rows_reader", "opens X once, notes its features", "rows"),
    (
        2,
        1,
        "_rows",
        "kinds, memory",
        "arrays, files, a device, Dask: blocks and sums",
        "Rows",
    ),
    (
        1,
        2,
        "_estimators",
        "fit_inputs",
        "prepare: checks y, weights, priors; few rows: reduces",
        "FitInputs",
    ),
    (
        2,
        2,
        "_estimators",
        "labels",
        "classes, codes and unlabeled rows from y",
        "Labels",
    ),
    (1, 3, "_core", "problem", "labeled rows in summary, moments of all", "Problem"),
    (
        2,
        3,
        "_core",
        "frame, moments, likelihood",
        "units; unit covariance; L, derivatives",
        "",
    ),
    (
        1,
        4,
        "_estimators",
        "implicitly_constrained",
        "_solve: one call into the core",
        "Fit",
    ),
    (
        2,
        4,
        "_core",
        "solvers/search",
        "candidates, paths, certificate",
        "Solution",
    ),
    (1, 5, "_core", "gaussian", "the model at the point found", "Gaussians"),
    (
        2,
        5,
        "_core",
        "solvers/sets, labelsums",
        "points that labelings attain; the gap",
        "",
    ),
    (
        1,
        6,
        "_estimators",
        "base, linear_model",
        "judges and stores the fit; the model predicts",
        "",
    ),
    (0, 6, "user", "means_, covariance_, coef_, gap_, ...", "", ""),
]
WIDTH = 3.55
HEIGHT = 0.62
GAP_X = 0.55
GAP_Y = 0.36


def draw_box(axes, x, y, width, kind, name, purpose, result=""):
    style = "round,pad=0.02,rounding_size=0.06"
    axes.add_patch(
        FancyBboxPatch(
            (x, y),
            width,
            HEIGHT,
            boxstyle=style,
            facecolor=COLORS[kind],
            edgecolor=FAINT,
        )
    )
    middle = y + (HEIGHT * 0.68 if purpose else HEIGHT / 2)
    axes.text(
        x + 0.1, middle, name, va="center", fontsize=9, color=INK, family="monospace"
    )
    axes.text(x + 0.1, y + HEIGHT * 0.27, purpose, va="center", fontsize=7.5, color=INK)
    if result:
        arrow = f"\N{RIGHTWARDS ARROW} {result}"
        axes.text(
            x + width - 0.1,
            middle,
            arrow,
            va="center",
            ha="right",
            fontsize=8,
            color=FAINT,
        )


def draw_floors(axes):
    full = 3 * WIDTH
    for floor, (kind, rooms) in enumerate(FLOORS):
        width = (full - 0.15 * (len(rooms) - 1)) / len(rooms)
        for room, (name, purpose) in enumerate(rooms):
            y = -floor * (HEIGHT + 0.14)
            draw_box(axes, room * (width + 0.15), y, width, kind, name, purpose)
    return full, len(FLOORS) * (HEIGHT + 0.14)


def corner(column, row):
    return column * (WIDTH + GAP_X), -row * (HEIGHT + GAP_Y)


def draw_fit(axes):
    for column, row, kind, module, purpose, result in STEPS:
        name = module if kind == "user" else f"{kind}/{module}"
        draw_box(axes, *corner(column, row), WIDTH, kind, name, purpose, result)
    arrow = {
        "arrowstyle": "-|>",
        "color": FAINT,
        "linewidth": 0.9,
        "shrinkA": 0,
        "shrinkB": 0,
    }
    places = {(column, row) for column, row, *_ in STEPS}
    for column, row in places:
        x, y = corner(column, row)
        # To the box below.
        if (column, row) in {(0, 0), (2, 4)}:
            axes.annotate(
                "", (x + WIDTH / 2, y - GAP_Y), (x + WIDTH / 2, y), arrowprops=arrow
            )
        if (column + 1, row) in places and (column, row) not in {
            (0, 0),
            (0, 6),
            (1, 5),
        }:
            start = (x + WIDTH, y + HEIGHT / 2)
            end = (x + WIDTH + GAP_X, y + HEIGHT / 2)
            axes.annotate("", end, start, arrowprops=arrow)
    # The base class calls the second column from top to bottom, then sets the
    # attributes.
    x = corner(0, 1)[0] + WIDTH
    trunk = corner(0, 1)[0] + WIDTH + GAP_X / 2
    top = corner(0, 1)[1] + HEIGHT / 2
    bottom = corner(0, 6)[1] + HEIGHT / 2
    axes.plot([trunk, trunk], [top, bottom], color=FAINT, linewidth=0.9)
    for row in (2, 3, 4, 5, 6):
        y = corner(1, row)[1] + HEIGHT / 2
        axes.annotate("", (corner(1, row)[0], y), (trunk, y), arrowprops=arrow)
    axes.annotate("", (x, bottom), (trunk, bottom), arrowprops=arrow)
    return 3 * WIDTH + 2 * GAP_X, 7 * HEIGHT + 6 * GAP_Y


def draw_to(folder: Path) -> None:
    """Write floors.svg and fit.svg."""
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "iclda"}):
        for name, draw in {"floors": draw_floors, "fit": draw_fit}.items():
            figure = Figure()
            axes = figure.add_axes((0, 0, 1, 1))
            width, height = draw(axes)
            figure.set_size_inches(width + 0.2, height + 0.2)
            axes.set_xlim(-0.1, width + 0.1)
            axes.set_ylim(HEIGHT - height - 0.1, HEIGHT + 0.1)
            axes.axis("off")
            figure.savefig(
                folder / f"{name}.svg",
                facecolor="white",
                # Without the date and the version, a new drawing is no change.
                metadata={"Date": None, "Creator": None},
            )


if __name__ == "__main__":
    draw_to(Path(__file__).parent / "architecture")
