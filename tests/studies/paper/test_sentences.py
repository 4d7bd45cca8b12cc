"""Sentences of the paper, on its own numbers and on others."""

import pytest

from iclda.studies.paper.marks import published_table
from iclda.studies.paper.sentences import check_sentences


def with_samples(measure, **methods):
    """The published table, in which methods have the samples of others."""
    table = published_table()
    for (dataset, of_measure), samples in table.items():
        if of_measure == measure:
            changed = {name: samples[other] for name, other in methods.items()}
            table[dataset, measure] = {**samples, **changed}
    return table


def test_every_sentence_holds_on_the_numbers_of_the_paper():
    checked = check_sentences(published_table())
    assert all(each.holds for each in checked)
    numbers = [each.numbers for each in checked]
    assert "MCLDA has the lowest error on 8 of 10 sets" in numbers[0]
    assert numbers[1] == "on 2: Pima, WDBC"
    assert numbers[2] == "ICLDA has the lowest loss on 8 of 10 sets"
    assert numbers[3] == "MCLDA has the higher loss on 10 of 10 sets"
    assert "on 10 of 10 sets" in numbers[4]


@pytest.mark.parametrize(
    ("measure", "methods", "failing"),
    [
        ("error", {"MCLDA": "LDA"}, {0, 1}),
        ("error", {"ICLDA": "LDA"}, {1}),
        ("nll", {"ICLDA": "LDA"}, {2, 3}),
        ("error", {"EMLDA": "SLLDA"}, {4}),
    ],
)
def test_a_sentence_does_not_hold_on_other_numbers(measure, methods, failing):
    checked = check_sentences(with_samples(measure, **methods))
    assert {i for i, each in enumerate(checked) if not each.holds} == failing
