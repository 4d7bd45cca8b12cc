"""Methods against the supervised one."""

import numpy as np
import pytest

from iclda.plots import ComparisonDisplay
from iclda.plots._look import method_styles

DIFFERENCES = {
    "SLLDA": np.array([-0.05, 0.0, -0.02, 0.01, -0.03]),
    "ICLDA": np.array([0.01, 0.02, 0.0, -0.02, 0.03]),
}
INTERVALS = {"ICLDA": (-0.4, 0.3), "SLLDA": (-0.2, 0.1)}


def display_of(**options):
    options = {
        "differences": DIFFERENCES,
        "intervals": INTERVALS,
        "baseline": "LDA",
        **options,
    }
    return ComparisonDisplay(**options).plot()


@pytest.mark.parametrize("greater_is_better", [True, False])
def test_the_best_method_stands_on_top_with_mean_interval_and_count_of_worse_repeats(
    greater_is_better,
):
    display = display_of(greater_is_better=greater_is_better)
    order = ["ICLDA", "SLLDA"] if greater_is_better else ["SLLDA", "ICLDA"]
    assert display.methods_ == order
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == order
    low, high = display.ax_.get_ylim()
    assert low > high
    arrows = (
        "\N{LEFTWARDS ARROW} worse"
        if greater_is_better
        else "\N{LEFTWARDS ARROW} better"
    )
    assert arrows in display.ax_.get_xlabel()
    for place, name in enumerate(order):
        lines = [line for line in display.ax_.lines if set(line.get_ydata()) == {place}]
        assert tuple(lines[0].get_xdata()) == INTERVALS[name]
        assert lines[1].get_xdata() == pytest.approx([DIFFERENCES[name].mean()])
    # A tie is not worse.
    counts = {"ICLDA": "1 of 5", "SLLDA": "3 of 5"}
    if not greater_is_better:
        counts = {"ICLDA": "3 of 5", "SLLDA": "1 of 5"}
    shown = [text.get_text() for text in display.ax_.texts]
    assert shown == [*(counts[name] for name in order), "repeats\nworse"]


def test_colors_by_method_replace_those_of_all_plots():
    display = display_of(colors={"ICLDA": "#123456"})
    means = [line for line in display.ax_.lines if line.get_marker() == "o"]
    colors = {line.get_label(): line.get_color() for line in means}
    assert colors["ICLDA"] == "#123456"
    assert colors["SLLDA"] == method_styles(["SLLDA"])["SLLDA"]["color"]
