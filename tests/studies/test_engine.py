import os
import signal
import sys
import warnings
from functools import partial

from cloudpickle import register_pickle_by_value

from iclda.studies.engine import run_tasks
from iclda.studies.paper.run import run_cell
from iclda.studies.paper.splits import CodedSet
from iclda.studies.store import cells_of
from tests.helpers.paper_rows import coded_set

METHODS = ("LDA", "ICLDA")


SETS = {"set": coded_set()}


def values(rows):
    key = lambda row: (row.dataset, row.repeat, row.part, row.method)  # noqa: E731
    return [(key(row), row.values) for row in sorted(rows, key=key)]


def run(cells, sets=SETS, jobs=1):
    tasks = [(cell, METHODS) for cell in cells]
    run_seeded = partial(run_cell, seed=0)
    return [row for rows in run_tasks(tasks, sets, run_seeded, jobs) for row in rows]


def test_rows_do_not_depend_on_jobs_or_order():
    cells = cells_of("tables", {"set": range(10)}, 2)
    expected = values(run(cells, jobs=1))
    assert values(run(cells[::-1], jobs=1)) == expected
    assert values(run(cells, jobs=2)) == expected


def test_47_a_run_that_stops_early_says_nothing_of_open_cells():
    cells = cells_of("tables", {"set": range(10)}, 5)
    tasks = [(cell, METHODS) for cell in cells]
    results = run_tasks(tasks, SETS, partial(run_cell, seed=0), jobs=2)
    next(results)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        results.close()
    assert shown == []


class Deadly(CodedSet):
    """Rows whose sight kills every process but the one that made them."""

    def __init__(self):
        super().__init__(SETS["set"].X, SETS["set"].codes)
        object.__setattr__(self, "maker", os.getpid())

    @property
    def n_classes(self):
        if os.getpid() != self.maker:
            os.kill(os.getpid(), signal.SIGKILL)
        return 2


def test_41_a_killed_worker_costs_its_own_cells_and_no_others():
    register_pickle_by_value(sys.modules[__name__])
    cells = [
        *cells_of("tables", {"set": range(10)}, 1),
        *cells_of("tables", {"deadly": range(10)}, 1)[:1],
    ]
    sets = {**SETS, "deadly": Deadly()}
    rows = run(cells, sets, jobs=2)
    failed = [row for row in rows if row.failure is not None]
    assert {row.dataset for row in failed} == {"deadly"}
    assert "was killed" in failed[0].failure
    assert values(row for row in rows if row.dataset == "set") == values(
        run(cells[:-1], jobs=1)
    )
