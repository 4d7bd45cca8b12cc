"""The answer in words."""

from dataclasses import replace

import numpy as np
import pytest

from iclda.methods import BASELINES, FITTED
from iclda.studies.compare.contestants import UNSHRUNK, Contestant, Size, line_up
from iclda.studies.compare.recommendation import recommend
from iclda.studies.compare.summary import summarize_comparison
from iclda.studies.compare.verdict import (
    HELPS,
    HURTS,
    OUTSIDE,
    SHARPENS,
    UNCLEAR,
    UNKNOWN,
    decide,
    rule_text,
)
from iclda.studies.measures import Confusion
from tests.helpers.comparisons import changed, contestants, results, rows_json

RNG = np.random.default_rng(3)


HIGH = RNG.integers(3, 6, (10, 5)) / 10


LOW = RNG.integers(0, 2, (10, 5)) / 10


def verdict(brier=None, n_kept=None, **errors):
    """The verdict on errors; Brier scores of contestants may differ from these."""
    rows = results(**{name: table.tolist() for name, table in errors.items()})
    for name, value in (brier or {}).items():
        losses = np.full(5, value) + 0.01 * np.arange(5)
        rows = [
            changed(r, brier=float(losses.mean()), rows=rows_json(5 * r.part, losses))
            if r.method == name
            else r
            for r in rows
        ]
    names = [name.replace("_unshrunk", UNSHRUNK).replace("_", "-") for name in errors]
    lined_up = contestants(*names)
    return decide(
        summarize_comparison(rows, lined_up, 5), recommend(rows, lined_up), n_kept
    )


NOISY = HIGH + 0.02 * (RNG.random(HIGH.shape) - 0.5)


@pytest.mark.parametrize(
    ("kind", "method", "brier", "errors", "words"),
    [
        (HELPS, "iclda", {}, {"supervised": HIGH, "em": LOW + 0.1, "iclda": LOW},
         "Its error is clearly lower than that of supervised LDA, by "),
        (HURTS, "supervised", {}, {"supervised": LOW, "em": HIGH, "iclda": HIGH},
         "every other method is clearly worse"),
        (SHARPENS, "em", {"em": 0.05}, {"supervised": HIGH, "em": NOISY},
         "Its probabilities are clearly better than those of supervised LDA"),
        (UNCLEAR, "supervised", {"em": 0.35}, {"supervised": HIGH, "em": HIGH},
         "The labels cannot tell several methods from the best, and this one comes "),
        (UNCLEAR, "ensemble", {"em": 0.35},
         {"supervised": HIGH, "em": HIGH, "ensemble": HIGH},
         "25 labels cannot tell the 3 methods apart, so this is the default."),
        (OUTSIDE, "ensemble", {}, {"supervised": HIGH, "em": HIGH, "ensemble": LOW},
         "Its error is clearly lower than that of supervised LDA, by "),
        (HELPS, "ensemble", {},
         {"supervised": HIGH, "em": LOW, "ensemble": LOW},
         ", and so is that of em: the unlabeled rows help."),
        (OUTSIDE, "ensemble", {"ensemble": 0.05},
         {"supervised": HIGH, "em": HIGH, "ensemble": NOISY},
         "probabilities are clearly better than those of supervised LDA, but its "),
        (OUTSIDE, "sklearn-logistic", {},
         {"supervised": HIGH, "em": HIGH, "sklearn-logistic": 0 * LOW},
         "Use scikit-learn's logistic regression: expect up to 11 % of new rows wrong"),
        (UNKNOWN, None, {}, {"em": LOW, "iclda": HIGH}, "No answer: supervised LDA"),
    ],
)  # fmt: skip
def test_the_answer_follows_from_clear_differences(kind, method, brier, errors, words):
    found = verdict(brier, **errors)
    assert (found.kind, found.method) == (kind, method)
    assert words in found.sentence
    if method:
        assert str(found.estimate)[:-1] in found.sentence
        assert "corrected for choosing the method on them)" in found.sentence
        assert "90 % interval from 25 labeled rows" in found.sentence


def test_ties_in_error_go_to_the_lower_loss():
    """The unshrunk fit is as often right, and far too sure of it when it is not."""
    brier = {"supervised without shrinkage": 0.4, "supervised": 0.1, "em": 0.5}
    found = verdict(brier, supervised_unshrunk=LOW, supervised=LOW, em=LOW)
    assert found.method == "supervised"


@pytest.mark.parametrize(
    ("wrong", "learned", "words"),
    [
        (0, "clear", "this method is clearly better."),
        (
            8,
            "unclear",
            "Always predicting 'a' is wrong 48 % of the time; on so few labels this",
        ),
        (
            13,
            "nothing",
            "25 labels cannot show that anything was learned: always predicting 'a' is",
        ),
    ],
)
def test_the_answer_says_whether_a_method_beats_the_most_frequent_class(
    wrong, learned, words
):
    errors = np.zeros((10, 25))
    errors[:, :wrong] = 1
    rows = results(supervised=errors.reshape(10, 5, 5).mean(axis=2).tolist())
    lined_up = contestants("supervised")
    confusion = Confusion(("a", "b"), np.array([[13.0 - wrong, wrong], [0, 12]]))
    advice = recommend(rows, lined_up)
    found = decide(summarize_comparison(rows, lined_up, 5), advice, confusion=confusion)
    assert found.learned == learned
    assert words in found.base
    assert (found.base in found.sentence) == (learned != "clear")
    assert found.headline.startswith("25 labels cannot show") == (learned == "nothing")
    assert ("About 270 labels would show" in found.sentence) == (learned == "nothing")


@pytest.mark.parametrize(
    ("measure", "value", "learned", "words"),
    [
        ("balanced", 0.1, "clear", "The balanced error of guessing is 0.500; that of "),
        ("balanced", 0.6, "nothing", "Nothing was learned from these columns: the bal"),
        (
            "auc",
            0.9,
            "clear",
            "The area under the ROC curve of guessing is 0.500; that",
        ),
        ("auc", 0.51, "unclear", "is 0.520, which is not clearly better."),
    ],
)
def test_where_classes_count_the_same_guessing_is_what_a_method_has_to_beat(
    measure, value, learned, words
):
    lined_up = contestants("supervised")
    values = value + 0.05 * (-1.0) ** np.arange(5)
    rows = [
        changed(each, **{measure: values[each.part]})
        for each in results(supervised=np.full((4, 5), 0.2).tolist())
    ]
    confusion = Confusion(("a", "b"), np.array([[20.0, 0], [4, 1]]))
    summary = summarize_comparison(rows, lined_up, 5, measure)
    found = decide(summary, recommend(rows, lined_up, measure=measure), None, confusion)
    assert found.learned == learned
    assert words in found.base
    assert found.base in found.sentence
    if learned == "nothing":
        assert found.headline == "Nothing was learned: no method beats guessing"


def test_with_many_labels_it_says_that_nothing_was_learned():
    lined_up = contestants("supervised")
    rows = results(supervised=np.full((10, 5), 0.6).tolist())
    advice = replace(recommend(rows, lined_up), n_rows=300)
    confusion = Confusion(("a", "b"), np.array([[60.0, 90], [90, 60]]))
    found = decide(summarize_comparison(rows, lined_up, 5), advice, confusion=confusion)
    assert found.headline.startswith("Nothing was learned: no method beats")
    assert found.base.startswith("Nothing was learned from these columns: ")


def test_the_rule_names_all_candidates_in_the_order_in_which_they_are_preferred():
    lined_up = line_up((*FITTED, *BASELINES), ("auto",), Size(40, 2, 3))
    names = [each.name for each in sorted(lined_up, key=Contestant.rank)]
    order = rule_text("brier").split("The order is: ")[1].split(". ")[0]
    assert order == ", ".join(names)
