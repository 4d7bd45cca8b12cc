"""Parquet files: columns of lists of numbers become columns of numbers."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from iclda._rows.parquet import ParquetFile
from iclda.tabular import read_table
from iclda.tabular.files import open_table

LISTS = [[float(k), k / 2] for k in range(4)]


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.float32()), pa.list_(pa.float16(), 2), pa.large_list(pa.int8())],
    ids=str,
)
def test_lists_of_numbers_are_a_feature_a_number(tmp_path, kind):
    number = kind.value_type.to_pandas_dtype()
    lists = [[number(v) for v in row] for row in LISTS]
    columns = {
        "embedding": pa.array(lists, kind),
        "size": [1.0, 2, 3, 5],
        "class": list("abab"),
    }
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    table = read_table(tmp_path / "data.parquet", target="class")
    assert sorted(table.features) == ["embedding_0", "embedding_1", "size"]
    assert_array_equal(table.features[["embedding_0", "embedding_1"]], lists)
    only = read_table(tmp_path / "data.parquet", target="class", keep="embedding")
    assert list(only.features) == ["embedding_0", "embedding_1"]


BAD_LISTS = {
    "another length": ([1.0], "1 numbers"),
    "no list": (None, "no numbers"),
    "nan": ([1.0, np.nan], "NaN, infinity or an empty entry"),
    "an empty entry": ([1.0, None], "NaN, infinity or an empty entry"),
}


@pytest.mark.parametrize(("bad", "message"), BAD_LISTS.values(), ids=BAD_LISTS)
def test_lists_that_cannot_be_used_are_named_with_their_row(tmp_path, bad, message):
    lists = [*LISTS[:2], bad, LISTS[3]]
    pq.write_table(
        pa.table({"e": lists, "class": list("abab")}), tmp_path / "data.parquet"
    )
    # The names of the columns are row 1, as in a spreadsheet.
    place = r"data\.parquet, column 'e', row 4 must hold a list of 2 numbers"
    with pytest.raises(ValueError, match=f"{place}.*holds {message}"):
        read_table(tmp_path / "data.parquet", target="class")
    pq.write_table(
        pa.table({"e": lists, "x": [1.0, 2, 4, 5], "class": list("abab")}),
        tmp_path / "data.parquet",
    )
    table = read_table(tmp_path / "data.parquet", target="class", drop="e")
    assert list(table.features) == ["x"]


def test_a_number_that_has_changed_on_disk_is_refused(tmp_path):
    path = tmp_path / "data.parquet"
    numbers = np.arange(100) / 7
    rows = pa.table({"x": numbers, "class": ["a", "b"] * 50})
    options = {"use_dictionary": False, "write_page_checksum": True}
    pq.write_table(rows, path, compression="none", **options)
    data = bytearray(path.read_bytes())
    # Another number, as plausible as any.
    data[data.index(numbers[50].tobytes())] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"data\.parquet cannot be read: .*checksum"):
        read_table(path, target="class")


def test_the_number_of_rows_is_known_without_reading_them(tmp_path, monkeypatch):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"x": [1.0, 2.0, 4.0]}), path)
    file = open_table(path)
    monkeypatch.setattr(ParquetFile, "read", None)
    monkeypatch.setattr(ParquetFile, "batches", None)
    assert file.n_rows == 3
