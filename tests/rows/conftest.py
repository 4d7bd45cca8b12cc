"""Files that many tests read."""

import numpy as np
import pytest

from tests.helpers.file_rows import X
from tests.helpers.row_sources import table


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    np.save(path / "rows.npy", X)
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(table(X), path / "rows.parquet", row_group_size=40_000)
    return path
