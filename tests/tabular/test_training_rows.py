"""Rows that trained a model are found again where rows differ, whatever their order."""

import json

import numpy as np
import pandas as pd
import pytest

from iclda.tabular.training_rows import TrainingRows

ROWS = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
IS_LABELED = np.arange(40) < 10


def test_exactly_the_labeled_rows_are_found_in_any_order_and_after_storing():
    training = TrainingRows.of(ROWS, IS_LABELED)
    assert training.are_distinct
    stored = json.loads(json.dumps(training.to_json()))
    order = np.random.default_rng(1).permutation(40)
    found = TrainingRows.from_json(stored).find(ROWS.iloc[order])
    assert ((found != 0) == IS_LABELED[order]).all()


def test_a_row_of_other_cells_is_another_row_and_the_sign_of_zero_is_none():
    rows = ROWS.assign(a=0.0)
    training = TrainingRows.of(rows, IS_LABELED)
    assert (training.find(rows.assign(a=-0.0)) != 0).sum() == 10
    assert (training.find(rows.assign(a=1e-300)) != 0).sum() == 0


@pytest.mark.parametrize(("n_repeated", "are_distinct"), [(2, True), (3, False)])
def test_rows_that_often_have_equals_are_not_distinct(n_repeated, are_distinct):
    rows = pd.concat([ROWS, ROWS.iloc[:n_repeated]])
    # 5 % of 40 labeled rows are 2.
    is_labeled = np.arange(len(rows)) < 40
    assert TrainingRows.of(rows, is_labeled).are_distinct == are_distinct


@pytest.mark.parametrize("stored", [None, {}, 3, {"digests": "%", "are_distinct": 1}])
def test_a_model_that_was_saved_in_python_has_no_training_rows(stored):
    training = TrainingRows.from_json(stored)
    assert not training.find(ROWS).any()
