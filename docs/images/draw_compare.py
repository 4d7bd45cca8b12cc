"""Redraw the figure of the README from the folder that `iclda compare` wrote."""

import io
import sys
from pathlib import Path

from PIL import Image

from iclda.studies.compare.findings import read_findings
from iclda.studies.compare.plan import UNLABELED
from iclda.studies.compare.report import differences, learning_curve
from iclda.studies.drawing import new_figure, styled
from iclda.studies.measures import ERROR


@styled
def main(folder: str) -> None:
    """Differences in error, and error against unlabeled rows, side by side."""
    findings = read_findings(Path(folder))
    figure, grid = new_figure(10.2, 3.5, 1, 2)
    differences(findings, ERROR).plot(ax=grid[0, 0])
    grid[0, 0].set_title("Compared with supervised LDA")
    grid[0, 0].set_xlabel(
        "Difference in error   (\N{LEFTWARDS ARROW} better, worse \N{RIGHTWARDS ARROW})"
    )
    learning_curve(findings.points, UNLABELED, ERROR).plot(ax=grid[0, 1])
    grid[0, 1].set_title("With more and more unlabeled rows")
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=120, facecolor="white")
    path = Path(__file__).with_name("compare-wine.png")
    Image.open(drawn).convert("RGB").quantize(192).save(path, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1])
