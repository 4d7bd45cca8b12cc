"""Rows of cells: what a fit was given, and how it did."""

import numpy as np

from iclda.methods import FURTHER
from iclda.methods import METHODS as MAIN
from iclda.studies.paper.design import CURVES, GAUSSIAN, N_FOLDS, TABLES
from iclda.studies.paper.run import run_cell
from iclda.studies.store import cells_of
from tests.helpers.paper_rows import coded_set

METHODS = ("LDA", "ICLDA")


SETS = {"set": coded_set()}


def test_a_row_tells_what_the_fit_was_given_and_how_it_did():
    (row, _) = run_cell(
        cells_of(TABLES, {"set": range(N_FOLDS)}, 1)[3], SETS, METHODS, 0
    )
    assert (row.experiment, row.dataset, row.part, row.method) == (
        TABLES,
        "set",
        3,
        "LDA",
    )
    assert (row.n_labeled, row.n_unlabeled, row.n_test) == (10, 62, 8)
    assert 0 <= row.values["error"] <= 1
    assert np.isfinite([row.values["nll"], row.values["nll_labeled"]]).all()


def test_the_number_of_labels_is_that_of_the_paper_unless_another_is_asked_for():
    (cell,) = cells_of(TABLES, {"set": [3]}, 1)
    for labels, n_labeled in ((0, 10), (24, 24)):
        (row,) = run_cell(cell, SETS, ["LDA"], 0, labels)
        assert (row.n_labeled, row.n_unlabeled) == (n_labeled, 72 - n_labeled)
    (toy,) = cells_of(CURVES, {GAUSSIAN: [4]}, 1)
    (row,) = run_cell(toy, {}, ["LDA"], 0, 24)
    assert (row.n_labeled, row.n_unlabeled) == (26, 4)


def test_toy_problems_are_drawn_anew_in_every_cell():
    cells = cells_of(CURVES, {GAUSSIAN: [4]}, 2)
    first, second = (run_cell(cell, {}, ["LDA"], 0)[0] for cell in cells)
    assert first.experiment == CURVES
    assert (first.n_labeled, first.n_unlabeled, first.n_test) == (12, 4, 984)
    assert first.values["nll"] != second.values["nll"]


def test_all_methods_are_fitted_and_have_a_loss_if_they_have_a_density():
    cell = cells_of(TABLES, {"set": range(N_FOLDS)}, 1)[0]
    names = [*(method.paper_name for method in (*MAIN, *FURTHER)), "AVLDA"]
    for row in run_cell(cell, SETS, names, 0):
        assert row.failure is None, row.failure
        assert 0 <= row.values["error"] <= 1
        is_gaussian = "LS" not in row.method
        assert ("nll" in row.values) == is_gaussian
