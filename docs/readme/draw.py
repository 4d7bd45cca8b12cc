"""Redraw the pictures of the README: `make pictures` runs this from the root."""

import io
import runpy
import subprocess
import tempfile
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
from PIL import Image
from sklearn.datasets import load_wine

from iclda.studies.compare.api import read_findings
from iclda.studies.compare.plan import UNLABELED_CURVE
from iclda.studies.compare.report import differences, learning_curve
from iclda.studies.measures import ERROR
from iclda.studies.page import new_figure, styled

HERE = Path(__file__).parent


def save(figure, name: str) -> None:
    """Save with 192 colors, a third of the size."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=120, facecolor="white")
    Image.open(drawn).convert("RGB").quantize(192).save(HERE / f"{name}.png", optimize=True)


def example(name: str) -> None:
    """Save the figure of an example of the gallery."""
    plt.show = lambda: None
    runpy.run_path(str(HERE.parents[1] / "examples" / f"plot_{name}.py"))
    save(plt.gcf(), name)


@styled
def compare() -> None:
    """Differences in error, and error against unlabeled rows, side by side."""
    with tempfile.TemporaryDirectory() as folder:
        wine, out = Path(folder) / "wine.csv", Path(folder) / "comparison"
        load_wine(as_frame=True).frame.to_csv(wine, index=False)
        command = ["iclda", "compare", str(wine), "--target", "target", "--labeled", "9"]
        subprocess.run([*command, "--out", str(out), "--quiet"], check=True)
        findings = read_findings(out)
    figure, grid = new_figure(10.2, 3.5, 1, 2)
    differences(findings, ERROR).plot(ax=grid[0, 0])
    grid[0, 0].set_title("Compared with supervised LDA")
    grid[0, 0].set_xlabel(
        "Difference in error   (\N{LEFTWARDS ARROW} better, worse \N{RIGHTWARDS ARROW})"
    )
    points = [p for p in findings.points if (p.curve, p.measure) == (UNLABELED_CURVE, ERROR)]
    learning_curve(points).plot(ax=grid[0, 1])
    grid[0, 1].set_title("With more and more unlabeled rows")
    save(figure, "compare")


if __name__ == "__main__":
    matplotlib.use("Agg")
    example("features")
    example("toy")
    compare()
