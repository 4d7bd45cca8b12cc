"""Contestants: methods with their shrinkage, in order."""

import pytest

from iclda.methods import FURTHER, METHODS, find_method
from iclda.studies.compare.contestants import (
    Size,
    default_shrinkages,
    line_up,
    parse_shrinkages,
    shrinkage_text,
)

FEW = Size(30, 2, 10)


def names(*arguments):
    return [contestant.name for contestant in line_up(*arguments)]


def test_supervised_comes_first_and_one_shrinkage_needs_no_mention():
    assert names(METHODS, ["auto"], FEW)[0] == "supervised"
    assert set(names(METHODS, [0.3], FEW)) == {method.name for method in METHODS}


def test_names_tell_several_shrinkages_apart():
    chosen = [find_method("iclda"), find_method("supervised")]
    assert names(chosen, [None, "auto", 0.2], FEW) == [
        "supervised without shrinkage", "supervised", "supervised with shrinkage 0.2",
        "iclda without shrinkage", "iclda", "iclda with shrinkage 0.2",
    ]  # fmt: skip


def test_fits_without_shrinkage_take_part_where_labels_are_many():
    assert default_shrinkages(Size(49, 2, 10)) == ("auto",)
    assert default_shrinkages(Size(50, 2, 10)) == (None, "auto")


@pytest.mark.parametrize(
    ("text", "values"),
    [("0", (None,)), ("auto", ("auto",)), (" 0, 0.25 ,auto,0", (None, 0.25, "auto"))],
)
def test_shrinkages_are_read_as_they_are_written(text, values):
    assert parse_shrinkages(text) == values
    assert parse_shrinkages(shrinkage_text(values)) == values


@pytest.mark.parametrize("text", ["1", "-0.1", "some", "0.1,nan"])
def test_what_is_no_shrinkage_is_named(text):
    with pytest.raises(
        ValueError, match=rf"^shrinkage must be .* got '{text.split(',')[-1]}'"
    ):
        parse_shrinkages(text)


def test_further_methods_are_compared_but_never_recommended():
    lined_up = line_up((*FURTHER, *METHODS), [None, "auto"], FEW)
    assert {
        c.method.name for c in lined_up if not c.is_eligible and c.shrinkage == "auto"
    } == {method.name for method in FURTHER if "shrinkage" in method.parameters}
    assert {c.method for c in lined_up} == {*FURTHER, *METHODS}
