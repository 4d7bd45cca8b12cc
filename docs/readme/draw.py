"""Make the pictures and the output of commands in the README, by `make pictures`."""

import io
import os
import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
from PIL import Image
from sklearn.datasets import load_wine

from iclda.plots._scores import display_points
from iclda.studies.compare.api import read_findings
from iclda.studies.compare.report import differences, highlight
from iclda.studies.compare.splits import UNLABELED_CURVE
from iclda.studies.measures import ERROR
from iclda.studies.page import new_figure, styled

HERE = Path(__file__).parent
README = HERE.parents[1] / "README.md"
SHOWN = re.compile(r"(--labeled 6\n```\n\n```text\n)(.*?)(?=```)", re.DOTALL)


def save(figure, name: str) -> None:
    """Save with 192 colors, a third of the size."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=120, facecolor="white")
    Image.open(drawn).convert("RGB").quantize(192).save(
        HERE / f"{name}.png", optimize=True
    )


def example(name: str) -> None:
    """Save the figure of an example of the gallery."""
    plt.show = lambda: None
    runpy.run_path(str(HERE.parents[1] / "examples" / f"plot_{name}.py"))
    save(plt.gcf(), name)


def compare_wines(folder: Path) -> str:
    """Run the example in a folder; return what it prints to 80 columns."""
    load_wine(as_frame=True).frame.to_csv(folder / "wine.csv", index=False)
    command = [
        sys.executable,
        "-m",
        "iclda",
        "compare",
        "wine.csv",
        "--target",
        "target",
    ]
    done = subprocess.run(
        [*command, "--labeled", "6"],
        cwd=folder,
        env={**os.environ, "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


@styled
def compare() -> None:
    """Draw differences in error, and error against unlabeled rows, side by side.

    The output of the command goes into the README.
    """
    with tempfile.TemporaryDirectory() as folder:
        shown = compare_wines(Path(folder))
        findings = read_findings(Path(folder) / "wine-comparison")
    README.write_text(SHOWN.sub(lambda found: found[1] + shown, README.read_text()))
    figure, grid = new_figure(10.2, 3.5, 1, 2)
    every = [each.method for each in findings.summary.differences]
    differences(findings, ERROR, every).plot(ax=grid[0, 0])
    grid[0, 0].set_title("Compared with supervised LDA")
    grid[0, 0].set_xlabel(
        "Difference in error   (\N{LEFTWARDS ARROW} better, worse \N{RIGHTWARDS ARROW})"
    )
    points = [
        p for p in findings.points if (p.curve, p.measure) == (UNLABELED_CURVE, ERROR)
    ]
    colors = highlight(findings)
    display_points(points, "n_unlabeled", "Error", colors).plot(ax=grid[0, 1])
    grid[0, 1].set_title("With more and more unlabeled rows")
    save(figure, "compare")


if __name__ == "__main__":
    matplotlib.use("Agg")
    example("features")
    example("toy")
    compare()
