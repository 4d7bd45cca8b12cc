"""The methods and the numbers of labeled rows of the paper's experiments."""

import pytest

from iclda.methods import FURTHER, METHODS
from iclda.studies.paper.design import (
    EVERY_METHOD,
    METHOD_NAMES,
    method_rank,
    n_labeled_of,
)


def test_all_methods_are_those_of_the_paper_first_and_then_the_rest_of_the_family():
    assert EVERY_METHOD[: len(METHOD_NAMES)] == METHOD_NAMES
    assert {method.paper_name for method in (*METHODS, *FURTHER)} <= set(EVERY_METHOD)
    assert len(EVERY_METHOD) == len(set(EVERY_METHOD))


def test_methods_are_sorted_as_in_the_tables_and_unknown_ones_by_name_at_the_end():
    assert sorted(EVERY_METHOD, key=method_rank) == list(EVERY_METHOD)
    assert sorted(["b", "LDA", "a"], key=method_rank) == ["LDA", "a", "b"]


@pytest.mark.parametrize(
    ("n_features", "n_labeled"), [(3, 10), (5, 10), (6, 12), (117, 234)]
)
def test_the_paper_labels_twice_as_many_rows_as_features_but_ten_at_least(
    n_features, n_labeled
):
    assert n_labeled_of(n_features) == n_labeled
