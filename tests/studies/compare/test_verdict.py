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
    RULE,
    SHARPENS,
    UNCLEAR,
    UNKNOWN,
    decide,
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
         "rows help."),
        (HURTS, "supervised", {}, {"supervised": LOW, "em": HIGH, "iclda": HIGH},
         "every other method is clearly worse"),
        (SHARPENS, "em", {"em": 0.05}, {"supervised": HIGH, "em": NOISY},
         "Its probabilities are clearly better than those of supervised LDA"),
        (UNCLEAR, "supervised", {"em": 0.35}, {"supervised": HIGH, "em": HIGH},
         "well as the best, this one comes first in the order from the default on"),
        (UNCLEAR, "ensemble", {"em": 0.35},
         {"supervised": HIGH, "em": HIGH, "ensemble": HIGH},
         "; they cannot tell the 3 methods apart, so this is the default. More"),
        (OUTSIDE, "ensemble", {}, {"supervised": HIGH, "em": HIGH, "ensemble": LOW},
         "It is clearly better than supervised LDA on the same rows"),
        (HELPS, "ensemble", {},
         {"supervised": HIGH, "em": LOW, "ensemble": LOW},
         ", and so is em: the unlabeled rows help."),
        (OUTSIDE, "ensemble", {"ensemble": 0.05},
         {"supervised": HIGH, "em": HIGH, "ensemble": NOISY},
         "(its probabilities are, and the numbers of wrong rows do not differ)."),
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
        assert (
            "corrected for choosing the method by them; in the table " in found.sentence
        )
        assert "90 % interval from 25 labeled rows" in found.sentence


def test_ties_in_error_go_to_the_lower_loss():
    """The unshrunk fit is as often right, and far too sure of it when it is not."""
    brier = {"supervised without shrinkage": 0.4, "supervised": 0.1, "em": 0.5}
    found = verdict(brier, supervised_unshrunk=LOW, supervised=LOW, em=LOW)
    assert found.method == "supervised"


@pytest.mark.parametrize(
    ("wrong", "learned", "words"),
    [
        (0, "clear", "is clearly better than that"),
        (
            8,
            "unclear",
            "Calling every row 'a' gets 48 % wrong: with so few labels supervised LDA",
        ),
        (
            13,
            "nothing",
            "25 labels cannot show that anything was learned: calling every row 'a' g",
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
    order = RULE.split("on other tables: ")[1].split(", and then")[0]
    assert order.replace(
        " (of em, self-training, pessimistic and supervised)", ""
    ) == ", ".join(names)
