import numpy as np
from tables_of_results import contestants, results

from iclda.studies.compare.alternatives import curve_text, differences_text, reliability_text
from iclda.studies.compare.summary import SplitCurvePoint, summarize_comparison

RNG = np.random.default_rng(0)
HIGH = 0.6 + 0.2 * RNG.integers(0, 2, (6, 5))
SUMMARY = summarize_comparison(
    results(supervised=HIGH, em=HIGH - 0.6, iclda=np.roll(HIGH, 1, axis=0)),
    contestants("supervised", "em", "iclda"),
    5,
)


def test_differences_begin_with_what_is_clear_and_give_every_method_its_interval():
    text = differences_text(SUMMARY, "error", "supervised LDA")
    assert text.startswith("error minus that of supervised LDA, with 95 % intervals; below 0 is")
    assert "Clearly better: em. em −0.600 (−0.600 to −0.600), iclda " in text


def test_without_a_clear_difference_the_text_says_so():
    same = summarize_comparison(
        results(supervised=HIGH, em=HIGH), contestants("supervised", "em"), 5
    )
    assert "No method differs clearly." in differences_text(same, "error", "supervised LDA")


def test_reliability_gives_how_sure_and_how_right():
    text = reliability_text({"em": (0.94, 0.9)})
    assert text.endswith("em is 94 % sure on average and right in 90 %.")


def test_curves_give_both_ends_of_every_method_the_lowest_first():
    points = [
        SplitCurvePoint("unlabeled", 20, n, name, "error", value, None, 3)
        for name, values in {"em": (0.3, 0.2), "iclda": (0.3, 0.1)}.items()
        for n, value in zip((0, 1000), values, strict=True)
    ]
    assert curve_text(points, "error") == (
        "error, from 0 to 1,000 unlabeled rows, the lowest at the end first: "
        "iclda from 0.300 to 0.100, em from 0.300 to 0.200."
    )
