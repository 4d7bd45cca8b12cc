"""Sentences with their values."""

import pytest

from iclda._messages import Hint, Text
from iclda.studies.compare.preflight import FINE, NOTE, WARNING
from iclda.studies.compare.sentences import SENTENCES, say


def test_values_are_formatted_and_parameters_are_hints():
    text = say("{n:,} rows of {name!r}: pass {shrinkage:auto}, or {drop}.", n=1200, name="a")
    assert text == "1,200 rows of 'a': pass shrinkage='auto', or drop."
    assert text.hints == (Hint("shrinkage", "auto"), Hint("drop"))


def test_parameters_of_a_value_are_kept():
    assert say("{note}", note=Text("See ", Hint("missing"), ".")).hints == (Hint("missing"),)


def test_a_value_that_is_not_given_is_an_error():
    with pytest.raises(KeyError, match="rows"):
        say("{rows} are rows")


def test_remarks_have_a_level():
    assert {level for level, _ in SENTENCES["preflight"].values()} == {FINE, NOTE, WARNING}
