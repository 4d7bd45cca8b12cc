from dataclasses import replace

import pytest

from iclda.methods import METHODS, find_method
from iclda.studies.compare.contestants import (
    Size,
    default_shrinkages,
    line_up,
    on_curves,
    parse_shrinkages,
    shrinkage_text,
)

MANY, FEW, FEWER = Size(500, 2, 10), Size(30, 2, 10), Size(8, 2, 10)


def names(*arguments):
    return [contestant.name for contestant in line_up(*arguments)]


def test_supervised_comes_first_and_one_shrinkage_needs_no_mention():
    assert names(METHODS, ["auto"], FEW)[0] == "supervised"
    assert set(names(METHODS, [0.3], FEW)) == {method.name for method in METHODS}


def test_names_tell_several_shrinkages_apart():
    chosen = [find_method("iclda"), find_method("supervised")]
    assert names(chosen, [None, "auto", 0.2], FEW) == [
        "supervised", "supervised (shrunk)", "supervised (0.2)",
        "iclda", "iclda (shrunk)", "iclda (0.2)",
    ]  # fmt: skip


def test_methods_run_with_and_without_shrinkage_where_labels_are_few():
    assert default_shrinkages(FEW) == (None, "auto")
    assert default_shrinkages(MANY) == (None,)


def test_fits_that_cannot_do_without_shrinkage_do_not_try():
    assert "supervised" not in names(METHODS, [None, "auto"], FEWER)
    assert "moment" not in names(METHODS, [None, "auto"], FEWER)
    assert {"em", "iclda"} <= set(names(METHODS, [None, "auto"], FEWER))
    assert "supervised" in names(METHODS, [None], FEWER)


@pytest.mark.parametrize(
    ("text", "values"),
    [("0", (None,)), ("auto", ("auto",)), (" 0, 0.25 ,auto,0", (None, 0.25, "auto"))],
)
def test_shrinkages_are_read_as_they_are_written(text, values):
    assert parse_shrinkages(text) == values
    assert parse_shrinkages(shrinkage_text(values)) == values


@pytest.mark.parametrize("text", ["1", "-0.1", "some", "0.1,nan"])
def test_what_is_no_shrinkage_is_named(text):
    with pytest.raises(ValueError, match=rf"^shrinkage must be .* got '{text.split(',')[-1]}'"):
        parse_shrinkages(text)


def test_a_search_over_many_unknowns_starts_once():
    (contestant,) = line_up([find_method("iclda")], [None], MANY)
    assert contestant.classifier(0, 100).n_starts == 32
    assert contestant.classifier(0, 1000).n_starts == 1
    assert contestant.classifier(7, 100).get_params()["random_state"] == 7
    assert contestant.classifier(0, 100).unlabeled is None


def test_what_a_method_takes_is_its_own_matter_and_not_that_of_its_name():
    renamed = [replace(method, name=f"my {method.name}") for method in METHODS]
    lined_up = line_up(renamed, [None, "auto"], FEWER)
    assert [c.name for c in lined_up] == [
        f"my {name}" for name in names(METHODS, [None, "auto"], FEWER)
    ]
    assert [c.name for c in lined_up if c.is_supervised] == ["my supervised (shrunk)"]
    (search,) = [c for c in lined_up if c.name == "my iclda"]
    assert search.classifier(7, 1000).get_params()["random_state"] == 7
    assert search.classifier(0, 1000).n_starts == 1
    both = line_up(renamed, [None, "auto"], FEW)
    assert on_curves({"my moment": "my moment"}, both) == ["my moment (shrunk)"]


def test_curves_show_the_best_variants_that_few_labels_do_not_fail():
    both = line_up(METHODS, [None, "auto"], FEW)
    best = {"supervised": "supervised", "em": "em", "moment": "moment"}
    assert on_curves(best, both) == ["supervised", "em", "moment (shrunk)"]
    assert on_curves(best, line_up(METHODS, [None], FEW)) == ["supervised", "em", "moment"]
