"""Settings follow from the table where they are not given."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.helpers.comparisons import make_table, table_of

pytest.importorskip("jinja2", reason="reports need iclda[experiments]")

from iclda.cli.messages import in_options
from iclda.methods import find_method
from iclda.studies.compare.plan import ComparisonPlan
from iclda.studies.compare.settings import choose_settings
from iclda.studies.compare.terminal import protocol

METHODS = (find_method("em"), find_method("supervised"))


def comparison(out, table=None, **settings):
    settings = {"methods": METHODS, "repeats": 3, "folds": 2, **settings}
    return ComparisonPlan(
        make_table(n_features=3) if table is None else table, out, **settings
    )


def test_where_fits_take_longer_there_are_fewer_by_default(tmp_path):
    labels = [f"class {k % 9}" for k in range(90)] + [None] * 200
    wide = pd.DataFrame(np.random.default_rng(0).standard_normal((290, 30)))
    table = table_of(wide.rename(columns=str), labels)
    slow = comparison(
        tmp_path, table, methods=(find_method("iclda"), *METHODS), repeats=None
    )
    known = choose_settings(slow)
    assert (known.repeats, known.is_slow, known.curve_splits) == (2, True, 4)
    assert "it starts once" in " ".join(protocol(known))
    assert choose_settings(replace(slow, methods=METHODS)).repeats == 10
    large = comparison(
        tmp_path, make_table(n_unlabeled=110_000), repeats=None, folds=None
    )
    assert (choose_settings(large).repeats, choose_settings(large).curve_splits) == (
        5,
        10,
    )
    assert choose_settings(replace(large, repeats=7)).repeats == 7


def test_a_fast_comparison_leaves_out_the_slowest_method_unless_it_is_named(tmp_path):
    named = (*METHODS, find_method("iclda-proportions"))
    fast, asked, full = (
        choose_settings(comparison(tmp_path, methods=methods, is_fast=is_fast))
        for methods, is_fast in ((None, True), (named, True), (None, False))
    )
    names = [
        {each.method.name for each in settings.contestants}
        for settings in (fast, asked, full)
    ]
    assert ["iclda-proportions" in each for each in names] == [False, True, True]
    said = " ".join(map(in_options, protocol(fast)))
    assert (
        "Left out because they would be slow: iclda-proportions (--methods includes"
        in said
    )
    assert "Left out" not in " ".join(protocol(asked))


def test_searches_over_very_many_unknowns_are_left_out_and_named(tmp_path):
    labels = [f"class {k % 80}" for k in range(160)] + [None] * 40
    wide = pd.DataFrame(np.random.default_rng(0).standard_normal((200, 70)))
    plan = comparison(
        tmp_path, table_of(wide.rename(columns=str), labels), methods=None
    )
    settings = choose_settings(replace(plan, folds=2))
    assert settings.left_out == ["iclda", "pessimistic", "iclda-proportions"]
    assert "80 in 'class': 2 labels each" in settings.remarks[1].text
    named = replace(plan, folds=2, methods=(find_method("iclda"), *METHODS))
    assert choose_settings(named).left_out == []


def test_class_sizes_are_not_free_with_fewer_labels_than_features(tmp_path):
    wide = pd.DataFrame(np.random.default_rng(0).standard_normal((60, 20))).rename(
        columns=str
    )
    plan = comparison(
        tmp_path, table_of(wide, ["a", "b"] * 8 + [None] * 44), methods=None
    )
    settings = choose_settings(plan)
    names = {each.method.name for each in settings.contestants}
    assert ("iclda" in names, "iclda-proportions" in names) == (False, True)
    assert any(
        "and for ICLDA with free class sizes" in each.text for each in settings.remarks
    )


def test_labels_are_not_spread_to_many_rows(tmp_path, monkeypatch):
    plan = comparison(tmp_path, methods=None)
    assert choose_settings(plan).left_out == []
    monkeypatch.setattr("iclda._cost._MAX_SPREAD_ROWS", 60)
    assert choose_settings(plan).left_out == ["sklearn-label-spreading"]


@pytest.mark.parametrize("is_network", [False, True])
def test_the_default_takes_part_but_not_on_features_of_a_network(tmp_path, is_network):
    n_features = 70 if is_network else 5
    table = make_table(n_labeled=40, n_features=n_features)
    known = choose_settings(comparison(tmp_path, table, methods=None))
    names = [each.method.name for each in known.contestants]
    assert known.is_network == is_network
    assert ("ensemble" in names) != is_network
    assert {"average", "sklearn-forest", "sklearn-logistic"} <= {*names}
    remark = next(each for each in known.remarks if each.subject == "Taken for")
    assert remark.text.startswith("features of" if is_network else "a table")
    other = "ensemble" if is_network else "average"
    assert f"--methods {other}" in in_options(remark.text)
    named = (*METHODS, find_method("ensemble"))
    asked = choose_settings(comparison(tmp_path, table, methods=named))
    assert "ensemble" in [each.method.name for each in asked.contestants]
