"""Frames are read as the Parquet files that hold them, without writing one."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow", reason="tables need iclda[data]")

from iclda.tabular.read_options import ReadOptions
from iclda.tabular.table import read_file, read_frame

N = 12
LABELS = ["a", "b", None] * 4
NUMBERS = np.arange(N) ** 2 % 7
COLUMNS = {
    "floats with gaps": np.where(NUMBERS == 4, np.nan, NUMBERS / 3),
    "whole": NUMBERS,
    "bytes": NUMBERS.astype(np.int8),
    "half": NUMBERS.astype(np.float16),
    "nullable": pd.array([None, *NUMBERS[1:]], dtype="Int64"),
    "yes or no": NUMBERS > 2,
    "yes, no or empty": pd.array([None, True, False] * 4, dtype="boolean"),
    "text": ["red", "green", None] * 4,
    "strings": pd.array(["red", None, "blue"] * 4, dtype="string"),
    "categories": pd.Categorical(["red", "green", None] * 4),
    "categories of numbers": pd.Categorical(NUMBERS),
    "categories of floats": pd.Categorical([0.5, None, 2.5] * 4),
    "times": pd.date_range("2020-02-01", periods=N, freq="7h"),
    "times with a zone": pd.date_range("2020-02-01", periods=N, tz="UTC"),
    "days": [datetime.date(2020, 1, 1 + int(k)) for k in NUMBERS],
    "decimals": [decimal.Decimal(f"1.{k}") for k in NUMBERS],
    "lists": [[k / 2, k + 1.0] for k in NUMBERS.tolist()],
    7: NUMBERS - 3,
}


def both(frame, folder, **options):
    options = ReadOptions("class", **options)
    frame.rename(columns=str).to_parquet(folder / "table.parquet")
    stored = read_file(folder / "table.parquet", options)
    return read_frame(frame, options), stored


@pytest.mark.parametrize("name", COLUMNS)
def test_a_frame_is_read_as_the_parquet_file_that_holds_it(name, tmp_path):
    frame = pd.DataFrame({"class": LABELS}).assign(x=NUMBERS / 2)
    frame[name] = COLUMNS[name]
    read, stored = both(frame, tmp_path)
    pd.testing.assert_frame_equal(read.features, stored.features)
    assert read.labels.tolist() == stored.labels.tolist()
    assert (read.notes, read.warnings) == (stored.notes, stored.warnings)


def test_columns_made_of_lists_are_left_out_by_the_name_of_the_lists(tmp_path):
    frame = pd.DataFrame({"class": LABELS, "x": NUMBERS, "at": COLUMNS["lists"]})
    assert list(read_frame(frame, ReadOptions("class")).features) == [
        "x",
        "at_0",
        "at_1",
    ]
    read, stored = both(frame, tmp_path, drop=["at"])
    assert list(read.features) == list(stored.features) == ["x"]


def test_the_checksum_is_that_of_the_cells_and_not_of_the_index():
    frame = pd.DataFrame({"class": LABELS, "x": NUMBERS / 2})

    def checksum(rows):
        (source,) = read_frame(rows, ReadOptions("class")).sources
        return source.sha256

    assert checksum(frame) == checksum(frame.copy().set_index(np.arange(N)[::-1]))
    assert checksum(frame) != checksum(frame.assign(x=NUMBERS))
    assert checksum(frame) != checksum(frame.rename(columns={"x": "z"}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"x": [[1.0, 2.0]] * 11 + [[1.0]]},
            "^The table, column 'x', row 11 must hold",
        ),
        ({"x": COLUMNS["lists"], "x_0": 1}, "^The table .*'x_0'"),
        ({"x\0": 1}, "^The table: the column 'x.x00' holds a zero byte"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(columns, message):
    frame = pd.DataFrame({"class": LABELS}).assign(**columns)
    with pytest.raises(ValueError, match=message):
        read_frame(frame, ReadOptions("class"))
