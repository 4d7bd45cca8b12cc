"""Every example runs as it stands, and draws the answer to the question in its title."""

import ast
import runpy
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="examples need iclda[plots]")

import matplotlib
import matplotlib.pyplot as plt

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)


@pytest.fixture
def _no_window(monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    yield
    plt.close("all")


def test_every_display_has_an_example():
    names = {path.stem for path in EXAMPLES}
    assert names >= {
        f"plot_{name}"
        for name in (
            "comparison",
            "decision_boundary",
            "discriminant_histogram",
            "learning_curve",
            "reliability",
        )
    }


@every_example
def test_an_example_asks_one_question_in_its_title(example):
    title, line, blank, *_ = ast.get_docstring(ast.parse(example.read_text())).splitlines()
    assert title.endswith("?")
    assert line == "=" * len(title)
    assert not blank


@pytest.mark.usefixtures("_no_window")
@every_example
def test_an_example_runs_and_draws(example):
    plt.close("all")  # what other tests left open
    runpy.run_path(str(example))
    assert len(plt.get_fignums()) == 1
    assert all(ax.has_data() for ax in plt.gcf().axes)
