import re

import numpy as np
import pytest
from tables_of_results import changed, contestants, results

from iclda.studies.compare.summary import summarize_comparison
from iclda.studies.compare.verdict import HELPS, HURTS, SHARPENS, UNCLEAR, UNKNOWN, decide

RNG = np.random.default_rng(3)
HIGH = RNG.integers(3, 6, (10, 5)) / 10
LOW = RNG.integers(0, 2, (10, 5)) / 10


def verdict(brier=None, n_tested=50, **errors):
    """The verdict on errors; Brier scores of contestants may differ from these."""
    rows = results(**{name: table.tolist() for name, table in errors.items()})
    for name, change in (brier or {}).items():
        rows = [
            changed(r, brier=r.values["brier"] + change) if r.method == name else r for r in rows
        ]
    names = [name.replace("_shrunk", " (shrunk)").replace("_", "-") for name in errors]
    return decide(summarize_comparison(rows, contestants(*names), 5), n_tested)


def test_the_lowest_of_clearly_lower_errors_is_recommended():
    found = verdict(supervised=HIGH, em=LOW + 0.1, iclda=LOW)
    assert (found.kind, found.method) == (HELPS, "iclda")
    assert found.sentence.startswith(f"Use iclda: it gets {100 * LOW.mean():.1f} % of new rows")
    assert f"{100 * HIGH.mean():.1f} %" in found.sentence
    assert "worse in none of 10 repeats" in found.sentence
    assert found.sentence.count(".\n") == 0


def test_a_method_that_is_clearly_worse_is_never_recommended():
    found = verdict(supervised=LOW, em=HIGH, iclda=HIGH)
    assert (found.kind, found.method) == (HURTS, "supervised")
    assert "every method that uses the unlabeled rows is clearly worse" in found.sentence


def test_better_probabilities_are_recommended_for_those_who_use_them():
    noisy = HIGH + 0.02 * (RNG.random(HIGH.shape) - 0.5)
    found = verdict({"em": -0.2}, supervised=HIGH, em=noisy)
    assert (found.kind, found.method) == (SHARPENS, "em")
    assert "if you use the probabilities" in found.sentence


def test_better_probabilities_do_not_outweigh_a_clearly_higher_error():
    found = verdict({"em": -0.9}, supervised=LOW, em=HIGH)
    assert found.method == "supervised"


def test_a_difference_that_can_be_chance_leaves_supervised_and_says_what_would_show_it():
    found = verdict(supervised=HIGH, em=np.roll(HIGH, 7, axis=0) - 0.03, n_tested=30)
    assert (found.kind, found.method) == (UNCLEAR, "supervised")
    assert found.sentence.startswith("Stay with supervised LDA for now: em gets")
    assert "with 30 labeled rows to test on a difference below" in found.sentence
    told = r"; if em really is 3\.0 percentage points better, about [\d,]+ labeled rows to test on"
    assert re.search(told, found.sentence)


def test_a_difference_larger_than_there_can_be_is_not_asked_for():
    few = RNG.integers(0, 4, (10, 5)) / 4
    found = verdict(supervised=few, em=np.roll(few, 7, axis=0) * 0.9, n_tested=30)
    assert found.kind == UNCLEAR
    assert "even a method without any error could not be told from chance" in found.sentence


def test_where_nobody_gets_fewer_wrong_nothing_more_is_said():
    found = verdict(supervised=LOW, em=LOW)
    assert found.kind == UNCLEAR
    assert "no method that uses the unlabeled rows gets fewer wrong" in found.sentence


def test_the_shrunk_supervised_fit_is_named_as_such():
    found = verdict(supervised=HIGH, supervised_shrunk=LOW, em=LOW)
    assert "supervised LDA (shrunk)" in found.sentence
    assert found.method == "supervised (shrunk)"


def test_who_was_never_worse_in_likelihood_is_said():
    found = verdict(supervised=HIGH, em=LOW, iclda=HIGH + 0.1)
    assert found.also == (
        "In likelihood (loss) em was never worse than supervised LDA, in 10 repeats."
    )
    assert "every method was worse than" in verdict(supervised=LOW, em=HIGH).also


def test_where_labels_were_hidden_the_advice_is_for_as_many_as_were_kept():
    rows = results(supervised=HIGH.tolist(), em=LOW.tolist())
    found = decide(summarize_comparison(rows, contestants("supervised", "em"), 5), 50, n_kept=12)
    assert found.sentence.startswith("With 12 labels, use em: it gets")


def test_where_labels_were_hidden_labels_are_those_kept_and_nothing_else():
    rows = results(supervised=HIGH.tolist(), em=(np.roll(HIGH, 7, axis=0) - 0.03).tolist())
    found = decide(summarize_comparison(rows, contestants("supervised", "em"), 5), 30, n_kept=12)
    assert found.sentence.startswith("With 12 labels, stay with supervised LDA for now: em gets")
    assert "with 30 rows to test on a difference" in found.sentence
    assert re.search(r"about [\d,]+ rows to test on would show it\.", found.sentence)
    assert found.sentence.count("label") == 1


@pytest.mark.parametrize("errors", [{"supervised": HIGH}, {"em": LOW, "iclda": HIGH}])
def test_without_two_to_compare_there_is_no_answer(errors):
    found = verdict(**errors)
    assert found.kind == UNKNOWN
    assert found.sentence.startswith("No answer")
