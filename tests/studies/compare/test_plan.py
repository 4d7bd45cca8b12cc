"""Folds follow from the labels, or an error says why there are none."""

import numpy as np
import pandas as pd
import pytest

from iclda.methods import find_method
from iclda.studies.compare.plan import ComparisonPlan, choose_n_folds
from tests.helpers.comparisons import make_table, table_of

METHODS = (find_method("em"), find_method("supervised"))


def comparison(out, table=None, **settings):
    settings = {"methods": METHODS, "repeats": 3, "folds": 2, **settings}
    return ComparisonPlan(
        make_table(n_features=3) if table is None else table, out, **settings
    )


def test_the_folds_are_as_many_as_the_rarest_class_allows(tmp_path):
    labels = ["a"] * 9 + ["b"] * 3 + [None] * 12
    table = table_of(pd.DataFrame({"x": np.arange(24.0) ** 2}), labels)
    assert comparison(tmp_path, table, folds=None).splits.n_folds == 3
    assert comparison(tmp_path, folds=None).splits.n_folds == 10


@pytest.mark.parametrize(
    ("labels", "settings", "message"),
    [
        (["a"] * 5 + ["b"] + [None] * 4, {}, "Class 'b' has 1 labeled row"),
        (["a", "b"] * 5, {}, "All 10 rows are labeled.*n_labeled=30"),
        (["a", "b"] * 3 + [None] * 4, {"folds": 4}, "folds=4 must lie between 2 and 3"),
        (
            ["a", "b"] * 5,
            {"n_labeled": 1},
            "n_labeled=1 must lie between 2, one label of each class",
        ),
        (["a", "b"] * 5, {"n_labeled": 9}, "n_labeled=9 must lie between 2.* and 4"),
    ],
)
def test_labels_that_allow_no_comparison_are_explained(
    labels, settings, message, tmp_path
):
    table = table_of(pd.DataFrame({"x": np.arange(10.0)}), labels)
    with pytest.raises(ValueError, match=message):
        choose_n_folds(comparison(tmp_path, table, **settings))
