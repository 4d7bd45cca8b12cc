import os
import signal
import sys

import numpy as np
import pytest
from cloudpickle import register_pickle_by_value

from iclda.studies.cells import CURVES, GAUSSIAN, TABLES, plan_curves, plan_tables
from iclda.studies.paper import methods
from iclda.studies.paper.runner import Arrays, curve_sizes, run_cell, run_cells

METHODS = ("LDA", "ICLDA")


def arrays():
    rng = np.random.default_rng(0)
    codes = np.arange(80) % 2
    return Arrays(rng.standard_normal((80, 2)) + 2 * codes[:, None], codes)


SETS = {"set": arrays()}


def values(rows):
    key = lambda row: (row.dataset, row.repeat, row.part, row.method)  # noqa: E731
    return [(key(row), row.error, row.nll, row.nll_labeled) for row in sorted(rows, key=key)]


def run(cells, **options):
    tasks = [(cell, METHODS) for cell in cells]
    return [row for rows in run_cells(tasks, SETS, seed=0, **options) for row in rows]


def test_rows_do_not_depend_on_jobs_or_order():
    cells = plan_tables(["set"], 2)
    expected = values(run(cells, jobs=1))
    assert values(run(cells[::-1], jobs=1)) == expected
    assert values(run(cells, jobs=2)) == expected


def test_a_row_tells_what_the_fit_was_given_and_how_it_did():
    (row, _) = run_cell(plan_tables(["set"], 1)[3], SETS, METHODS, 0)
    assert (row.experiment, row.dataset, row.part, row.method) == (TABLES, "set", 3, "LDA")
    assert (row.n_labeled, row.n_unlabeled, row.n_test) == (10, 62, 8)
    assert 0 <= row.error <= 1
    assert np.isfinite([row.nll, row.nll_labeled]).all()


def test_a_failed_fit_is_a_row_with_its_traceback_and_the_others_go_on(monkeypatch):
    def fail(training):
        raise RuntimeError("no such luck")

    monkeypatch.setitem(methods.FITS, "LDA", fail)
    failed, fine = run_cell(plan_tables(["set"], 1)[0], SETS, METHODS, 0)
    assert "no such luck" in failed.failure
    assert (failed.error, failed.nll) == (None, None)
    assert fine.failure is None
    assert fine.error is not None


def test_toy_problems_are_drawn_anew_in_every_cell():
    cells = plan_curves({GAUSSIAN: [4]}, 2)
    first, second = (run_cell(cell, {}, ["LDA"], 0)[0] for cell in cells)
    assert first.experiment == CURVES
    assert (first.n_labeled, first.n_unlabeled, first.n_test) == (12, 4, 984)
    assert first.nll != second.nll


def test_extra_methods_have_an_error_and_no_loss():
    row, other = run_cell(plan_tables(["set"], 1)[0], SETS, list(methods.EXTRA_FITS), 0)
    assert row.failure is None
    assert other.failure is None
    assert row.nll is None
    assert 0 <= row.error <= 1


@pytest.mark.parametrize(
    ("n_rows", "n_labeled", "largest"), [(1000, 10, 512), (195, 38, 128), (208, 120, 64)]
)
def test_curves_reach_as_far_as_there_are_rows_to_test(n_rows, n_labeled, largest):
    sizes = curve_sizes(n_rows, n_labeled, 2)
    assert sizes == [2**k for k in range(len(sizes))]
    assert sizes[-1] == largest


class Deadly(Arrays):
    """Rows whose sight kills every process but the one that made them."""

    def __init__(self):
        super().__init__(SETS["set"].X, SETS["set"].codes)
        object.__setattr__(self, "maker", os.getpid())

    @property
    def n_classes(self):
        if os.getpid() != self.maker:
            os.kill(os.getpid(), signal.SIGKILL)
        return 2


def test_a_killed_worker_costs_its_own_cells_and_no_others():
    register_pickle_by_value(sys.modules[__name__])
    cells = [*plan_tables(["set"], 1), *plan_tables(["deadly"], 1)[:1]]
    sets = {**SETS, "deadly": Deadly()}
    tasks = [(cell, METHODS) for cell in cells]
    rows = [row for some in run_cells(tasks, sets, seed=0, jobs=2) for row in some]
    failed = [row for row in rows if row.failure is not None]
    assert {row.dataset for row in failed} == {"deadly"}
    assert "was killed" in failed[0].failure
    assert values(row for row in rows if row.dataset == "set") == values(run(cells[:-1], jobs=1))
