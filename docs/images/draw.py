"""Redraw the figures of docs/plots.md: run every example and save its figure in this folder."""

import io
import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
from PIL import Image

HERE = Path(__file__).parent


def main() -> None:
    """Run every example and save its figure with 128 colors, a third of the size."""
    matplotlib.use("Agg")
    plt.show = lambda: None
    for example in sorted((HERE.parents[1] / "examples").glob("plot_*.py")):
        runpy.run_path(str(example))
        drawn = io.BytesIO()
        plt.gcf().savefig(drawn, dpi=110)
        plt.close("all")
        name = example.stem.removeprefix("plot_").replace("_", "-")
        Image.open(drawn).convert("RGB").quantize(128).save(HERE / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
