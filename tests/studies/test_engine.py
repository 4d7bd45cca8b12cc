import os
import signal
import sys
import threading
import warnings
from contextlib import closing
from functools import partial

import pytest
from cloudpickle import register_pickle_by_value

from iclda.studies.engine import CellWorkers, run_tasks
from iclda.studies.paper.run import run_cell
from iclda.studies.paper.splits import CodedSet
from iclda.studies.store import FitResult, cells_of
from tests.helpers.paper_rows import coded_set

METHODS = ("LDA", "ICLDA")


SETS = {"set": coded_set()}
RUN_SEEDED = partial(run_cell, seed=0)


def values(rows):
    key = lambda row: (row.dataset, row.repeat, row.part, row.method)  # noqa: E731
    return [(key(row), row.values) for row in sorted(rows, key=key)]


def run(cells, sets=SETS, jobs=1, workers=None, run_one=RUN_SEEDED):
    tasks = [(cell, METHODS) for cell in cells]
    results = run_tasks(tasks, sets, run_one, jobs, workers)
    return [row for rows in results for row in rows]


@pytest.fixture(params=[False, True])
def workers(request):
    """Nothing, or a worker beside this process."""
    if not request.param:
        yield None
        return
    with closing(CellWorkers(1)) as workers:
        yield workers


def test_rows_do_not_depend_on_jobs_or_order(workers):
    cells = cells_of("tables", {"set": range(10)}, 2)
    expected = values(run(cells, jobs=1))
    assert values(run(cells[::-1], jobs=1)) == expected
    assert values(run(cells, jobs=2, workers=workers)) == expected


def name_the_process(cell, sets, methods):
    return [FitResult(**vars(cell), method="LDA", values={"process": os.getpid()})]


def test_workers_share_small_cells_with_this_process_and_serve_again():
    register_pickle_by_value(sys.modules[__name__])
    cells = cells_of("tables", {"set": range(5)}, 1)

    def processes(cells):
        rows = run(cells, {}, 3, workers, run_one=name_the_process)
        assert len(rows) == len(cells)
        return {row.values["process"] for row in rows}

    with closing(CellWorkers(2)) as workers:
        assert processes(cells[:1]) == {os.getpid()}
        # The first cells are sent before this process takes one.
        first = processes(cells)
        assert os.getpid() in first
        assert len(first) in (2, 3)
        started = set(workers.executor._processes)
        assert len(started) == 2
        processes(cells)
        assert set(workers.executor._processes) == started


class PickledInMainThread(CodedSet):
    """Rows that no other thread may pickle, as this one may be changing them."""

    def __reduce__(self):
        assert threading.current_thread() is threading.main_thread()
        return CodedSet, (self.X, self.codes)


def test_data_sets_are_pickled_before_this_process_computes_with_them():
    rows = PickledInMainThread(SETS["set"].X, SETS["set"].codes)
    cells = cells_of("tables", {"set": range(4)}, 2)
    with closing(CellWorkers(1)) as workers:
        found = run(cells, {"set": rows}, 2, workers)
    assert values(found) == values(run(cells))


def test_47_a_run_that_stops_early_says_nothing_of_open_cells(workers):
    cells = cells_of("tables", {"set": range(10)}, 5)
    tasks = [(cell, METHODS) for cell in cells]
    results = run_tasks(tasks, SETS, RUN_SEEDED, jobs=2, workers=workers)
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


def test_41_a_killed_worker_costs_its_own_cells_and_no_others(workers):
    register_pickle_by_value(sys.modules[__name__])
    # The first of small cells is sent to a worker.
    cells = [
        *cells_of("tables", {"deadly": range(10)}, 1)[:1],
        *cells_of("tables", {"set": range(10)}, 1),
    ]
    sets = {**SETS, "deadly": Deadly()}
    rows = run(cells, sets, jobs=2, workers=workers)
    failed = [row for row in rows if row.failure is not None]
    assert {row.dataset for row in failed} == {"deadly"}
    assert "was killed" in failed[0].failure
    assert values(row for row in rows if row.dataset == "set") == values(
        run(cells[1:], jobs=1)
    )
