"""What all displays promise: documented as they are, drawn where asked."""

import inspect
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import iclda.plots
from iclda import SelfLearningLDA
from tests.helpers.docstrings import (
    assert_parameters_are_documented,
    bare_signature,
    entries,
    parameters_of,
)

DISPLAYS = [getattr(iclda.plots, name) for name in iclda.plots.__all__]
every_display = pytest.mark.parametrize(
    "display", DISPLAYS, ids=lambda display: display.__name__
)
METHODS = [
    (display, name)
    for display in DISPLAYS
    for name in vars(display)
    if not name.startswith("_") and callable(getattr(display, name))
]
every_method = pytest.mark.parametrize(
    ("display", "name"), METHODS, ids=[f"{d.__name__}.{n}" for d, n in METHODS]
)


def drawn(display, ax=None):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.standard_normal((60, 2)) + 2 * y[:, None]
    marked = np.where(np.arange(60) < 20, y, -1)
    model = SelfLearningLDA().fit(X, marked)
    name = display.__name__
    if name == "ComparisonDisplay":
        differences = {"a": np.array([1.0, -1.0, 3.0])}
        return display(
            differences=differences, intervals={"a": (0.0, 2.0)}, baseline="b"
        ).plot(ax)
    if name == "LearningCurveDisplay":
        sizes = {"a": np.array([1, 2, 4])}
        means = {"a": rng.uniform(size=3)}
        return display(sizes=sizes, means=means).plot(ax=ax)
    return display.from_estimator(model, X, marked, ax=ax)


@every_method
def test_parameters_are_documented_with_their_defaults_and_in_the_api(display, name):
    method = getattr(display, name)
    assert_parameters_are_documented(method)
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    assert f"{display.__name__}.{name}{bare_signature(method)}\n" in text


@every_display
def test_the_constructor_is_documented(display):
    assert_parameters_are_documented(display)
    assert {one.kind for one in parameters_of(display)} == {
        inspect.Parameter.KEYWORD_ONLY
    }


@every_display
def test_constructor_arguments_are_attributes(display):
    found = drawn(display)
    again = display(
        **{one.name: getattr(found, one.name) for one in parameters_of(display)}
    )
    _, ax = plt.subplots()
    assert again.plot(ax=ax) is again
    assert again.ax_ is ax


@every_display
def test_what_is_drawn_is_kept_under_the_documented_names(display):
    found = drawn(display)
    public = {
        name for name in vars(found) if name.endswith("_") and not name.startswith("_")
    }
    assert public == set(entries(display, "Attributes"))


@every_display
def test_the_axes_given_are_drawn_in_and_no_others(display):
    figure, (ax, other) = plt.subplots(1, 2)
    found = drawn(display, ax)
    assert (found.ax_, found.figure_) == (ax, figure)
    assert not other.has_data()
    assert plt.get_fignums() == [figure.number]


@every_display
@pytest.mark.parametrize("style", ["default", "dark_background", "grayscale"])
def test_drawing_leaves_the_style_as_it_was_and_goes_with_any(display, style):
    with plt.style.context(style):
        before = dict(matplotlib.rcParams)
        drawn(display).figure_.canvas.draw()
        assert dict(matplotlib.rcParams) == before


NAMES = np.array(["_hidden", "$a_{$b", "<b>&amp;", "é ", "long " * 30], dtype=object)


def test_names_from_the_data_are_shown_as_they_are(fitted):
    f = fitted(5, 2)
    table = pd.DataFrame(f.X, columns=["$x_{$", "_y"])
    y = np.where(f.y == -1, None, NAMES[f.y])
    model = SelfLearningLDA(unlabeled=None).fit(table, y)
    rng = np.random.default_rng(0)
    scores = {name: rng.uniform(size=(2, 4)) for name in ("LDA", *NAMES[:3])}
    displays = [
        iclda.plots.DecisionBoundaryDisplay.from_estimator(
            model, table, y, grid_resolution=9
        ),
        iclda.plots.ReliabilityDisplay.from_estimator(
            dict.fromkeys(NAMES[:3], model), table, y, pos_label=NAMES[1]
        ),
        iclda.plots.LearningCurveDisplay(
            sizes=dict.fromkeys(scores, np.array([1, 2])),
            means={name: one[:, 0] for name, one in scores.items()},
        ).plot(),
        iclda.plots.ComparisonDisplay(
            differences={name: one[0] for name, one in scores.items()},
            intervals=dict.fromkeys(scores, (-1, 1)),
            baseline=NAMES[0],
        ).plot(),
    ]
    for display in displays:
        display.figure_.canvas.draw()
    shown = [text.get_text() for text in displays[0].ax_.get_legend().get_texts()]
    assert shown[:3] == [r"\$a_{\$b", "<b>&amp;", " _hidden"]
    assert len(shown[3]) == 40
    assert shown[4] == "é "
    assert len(displays[1].ax_.get_legend().get_texts()) == 3


@every_display
def test_without_matplotlib_the_error_names_the_extra(display, monkeypatch):
    for module in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"matplotlib is needed .* 'iclda\[plots\]'"):
        drawn(display)
