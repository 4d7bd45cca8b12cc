"""Every example runs, and draws the answer to the question in its title."""

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


def test_every_display_of_a_classifier_has_an_example():
    shown = [
        "decision_boundary",
        "discriminant_histogram",
        "learning_curve",
        "reliability",
    ]
    assert {f"plot_{name}" for name in shown} <= {path.stem for path in EXAMPLES}


@every_example
def test_an_example_asks_one_question_in_its_title(example):
    title, line, blank, *_ = ast.get_docstring(
        ast.parse(example.read_text())
    ).splitlines()
    assert title.endswith("?")
    assert line == "=" * len(title)
    assert not blank


# Examples that take long, with less to compute; `make docs` runs all of them as they
# stand.
SMALLER = {
    "plot_features": ("[1, 2, 4, 8, 16])\nn_draws = 10", "[1, 4])\nn_draws = 2"),
    "plot_many_rows": ("N_ROWS = 10_000_000", "N_ROWS = 500_000"),
    "plot_labels_or_unlabeled": ("n_repeats=12", "n_repeats=2"),
    "plot_maxima": ("np.arange(0, 360, 3)", "np.arange(0, 360, 12)"),
}


@pytest.mark.usefixtures("_no_window")
@every_example
def test_an_example_runs_and_draws(example, tmp_path):
    # What other tests left open.
    plt.close("all")
    given, smaller = SMALLER.get(example.stem, ("", ""))
    source = example.read_text()
    assert given in source
    (tmp_path / example.name).write_text(source.replace(given, smaller, 1))
    runpy.run_path(str(tmp_path / example.name))
    assert len(plt.get_fignums()) == 1
    assert all(ax.has_data() for ax in plt.gcf().axes)
