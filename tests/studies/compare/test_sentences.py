"""The sentences of a comparison."""

from iclda.studies.compare.preflight import FINE, NOTE, WARNING
from iclda.studies.compare.sentences import SENTENCES


def test_remarks_have_a_level():
    assert {level for level, _ in SENTENCES["preflight"].values()} == {FINE, NOTE, WARNING}
