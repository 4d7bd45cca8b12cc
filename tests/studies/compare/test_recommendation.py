"""What is recommended follows from the losses of rows."""

import json
from dataclasses import replace

import numpy as np
import pytest

from iclda.methods import BASELINES, METHODS
from iclda.studies.compare.contestants import Size, line_up
from iclda.studies.compare.recommendation import (
    contestants_to_stop,
    is_settled,
    means_of_rows,
    recommend,
)
from tests.helpers.comparisons import changed, contestants, results, rows_json

ERRORS = [[0.2, 0.4], [0.4, 0.4], [0.2, 0.2]]


def test_losses_are_means_over_repeats_of_every_row():
    means = means_of_rows(results(supervised=ERRORS, em=ERRORS), ["em", "supervised"])
    losses, is_wrong = means["em"]
    assert losses.shape == is_wrong.shape == (10,)
    assert is_wrong.mean() == pytest.approx(np.mean(ERRORS))
    assert losses[:5] == pytest.approx([1, 1 / 3, 0, 0, 0])


def test_losses_have_the_mean_of_the_measure_that_decides():
    # Three rows of the first class, of which one is wrong, and one of the second.
    rows = [[0, 0.9, 1, 0, 0.0], [2, 0.1, 0, 0, 0.3], [4, 0.2, 0, 0, 0.9]]
    rows += [[7, 0.4, 1, 1, 0.4]]
    (one,) = results(em=[[0.5]])
    given = [changed(one, rows=json.dumps(rows))]
    means = {"brier": 0.4, "error": 0.5, "balanced": (1 / 3 + 1) / 2, "auc": 0.4}
    for measure, mean in means.items():
        losses, is_wrong = means_of_rows(given, ["em"], measure)["em"]
        assert losses.mean() == pytest.approx(mean)
        assert is_wrong.tolist() == [1, 0, 0, 1]


def test_the_measure_decides():
    """One method finds the rare class, the other is right more often."""
    codes = [0] * 64 + [1] * 16
    often = [[k, 0.3 * c, c, c, 0.5] for k, c in enumerate(codes)]
    rare = [[k, 0.9 * (k < 24), int(k < 24), c, 0.1] for k, c in enumerate(codes)]
    rows = {"supervised": json.dumps(often), "em": json.dumps(rare)}
    both = [
        changed(r, rows=rows[r.method]) for r in results(em=[[0.5]], supervised=[[0.5]])
    ]
    two = contestants("supervised", "em")
    chosen = {
        measure: recommend(both, two, measure=measure).chosen.name
        for measure in ("brier", "error", "balanced", "auc")
    }
    assert chosen == {
        "brier": "supervised",
        "error": "supervised",
        "balanced": "em",
        "auc": "em",
    }


def test_a_choice_is_settled_if_no_single_repeat_decides():
    two = contestants("supervised", "em")
    worse = [[1.0, 1.0]] * 3
    assert is_settled(results(supervised=worse, em=[[0.0, 0.0]] * 3), two, 3)
    # The supervised one is clearly worse in the first repeat only.
    once = [[1.0, 1.0], [0.2, 0.0], [0.2, 0.0]]
    both = results(supervised=once, em=[[0.0, 0.0]] * 3)
    assert recommend(both, two).chosen.name == "em"
    assert not is_settled(both, two, 3)
    # Further repeats are not looked at.
    assert not is_settled(both + results(em=[[0.0, 0.0]] * 9)[6:], two, 3)


def test_only_a_clearly_worse_contestant_is_stopped_and_never_the_baseline():
    three = contestants("supervised", "em", "iclda")
    clear = results(supervised=[[1.0, 1.0]], em=[[0.0, 0.0]], iclda=[[0.8, 1.0]])
    assert contestants_to_stop(clear, three, 1) == ["iclda"]
    # One row of ten says little, and so do rows of later repeats.
    close = results(supervised=[[0.0, 0.2]], em=[[0.0, 0.0]], iclda=[[0.2, 0.0]])
    assert contestants_to_stop(close, three, 1) == []
    assert (
        contestants_to_stop(close + results(iclda=[[0, 0], [1, 1]])[2:], three, 1) == []
    )


def test_a_contestant_that_may_not_be_recommended_stops_no_other_one():
    first, *others = contestants("em", "supervised", "iclda")
    barred = replace(first, is_eligible=False)
    rows = results(em=[[0.0, 0.0]], supervised=[[1.0, 1.0]], iclda=[[0.8, 1.0]])
    assert contestants_to_stop(rows, [first, *others], 1) == ["iclda"]
    assert contestants_to_stop(rows, [barred, *others], 1) == []


def test_a_contestant_that_lacks_a_split_has_no_losses_and_is_not_chosen():
    both = results(supervised=ERRORS, em=ERRORS)
    lacking = [r for r in both if (r.method, r.repeat, r.part) != ("supervised", 1, 0)]
    assert set(means_of_rows(lacking, ["supervised", "em"])) == {"em"}
    assert recommend(lacking, contestants("supervised", "em")).chosen.name == "em"
    assert recommend([], contestants("supervised", "em")) is None


def test_equal_losses_go_to_the_default_and_shrunk_before_unshrunk():
    ordered = ["ensemble", "average", "self-training", "sklearn-logistic"]
    ordered += ["sklearn-forest", "em", "iclda", "sklearn-self-training"]
    names = [*ordered, "em without shrinkage", "supervised without shrinkage"]
    rows = [changed(r, rows=rows_json(0, [0.1] * 9)) for r in results(em=ERRORS)]
    rows = [type(r)(**{**vars(r), "method": name}) for r in rows for name in names]
    for k, expected in enumerate(ordered):
        found = recommend(rows, contestants(*reversed(names[k:])))
        assert found.chosen.name == expected
        assert found.is_default == (expected == "ensemble")
    on_network = recommend(rows, contestants(*names), is_network=True)
    assert (on_network.chosen.name, on_network.is_default) == ("average", True)


def test_unshrunk_variants_are_not_eligible_where_labels_are_few():
    few = Size(20, 2, 10)
    many = Size(500, 2, 10)
    methods = (*METHODS, *BASELINES)
    eligible = {c.name for c in line_up(methods, (None, "auto"), few) if c.is_eligible}
    assert {"em", *(each.name for each in BASELINES)} <= eligible
    assert "em without shrinkage" not in eligible
    assert all(c.is_eligible for c in line_up(methods, (None, "auto"), many))
    assert all(c.is_eligible for c in line_up(methods, (None,), few))
