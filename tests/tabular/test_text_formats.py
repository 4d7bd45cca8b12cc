"""Excel files and text of other encodings are read like CSV files of UTF-8 text."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from iclda import SupervisedLDA, _system
from iclda.model_files import column_kinds
from iclda.tabular import pipeline, preprocessing, read_table
from iclda.tabular.files import open_data
from iclda.tabular.labels import row_ids
from iclda.tabular.predict import predict_file

TEXT = "size;color;class\n1,5;grün;a\n2;blau;b\n2,5;grün;\n4;;\n"


def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": [None, *rng.normal(size=39).round(3)],
            "count": [*range(5, 44), None],
            "visit": pd.date_range("2024-01-30", periods=40),
            "color": ["red", "grün"] * 20,
            "class": [*["a", "b"] * 10, *[None] * 20],
        }
    )


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_byte_order_mark_tells_the_encoding(tmp_path, encoding, pack):
    (tmp_path / "plain.csv").write_text(TEXT, encoding="utf-8")
    (tmp_path / "data.csv").write_bytes(pack(TEXT.encode(encoding)))
    expected = read_table(tmp_path / "plain.csv", target="class")
    table = read_table(tmp_path / "data.csv", target="class")
    assert_frame_equal(table.features, expected.features)
    assert table.labels.tolist() == ["a", "b", None, None]


def test_an_excel_file_is_read_and_predicted_like_a_csv_file(tmp_path, monkeypatch):
    pytest.importorskip("openpyxl")
    monkeypatch.chdir(tmp_path)
    frame().to_excel("data.xlsx", index=False)
    frame().to_csv("data.csv", index=False)
    table = read_table("data.xlsx", target="class")
    expected = read_table("data.csv", target="class")
    # The unit of times may differ: seconds or milliseconds.
    assert_frame_equal(table.features, expected.features, check_dtype=False)
    assert table.labels.tolist() == expected.labels.tolist()
    assert str(table.features["visit"].dtype).startswith("datetime64")
    model = pipeline(preprocessing(table.features), SupervisedLDA(shrinkage=0.1))
    model.fit(table.features, table.labels)
    for name in ("data.xlsx", "data.csv"):
        predict_file(model, column_kinds(model), Path(name), Path(f"{name}.csv"))
    assert Path("data.xlsx.csv").read_text() == Path("data.csv.csv").read_text()


def test_rows_of_an_excel_file_have_the_numbers_of_the_sheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "data.xlsx"
    book = openpyxl.Workbook()
    cells = {"A3": "size", "B3": "kind", "A4": 1, "B4": "x", "A6": 2, "B6": "y"}
    for place, value in cells.items():
        book.active[place] = value
    book.save(path)
    file = open_data(path)
    assert (file.columns, file.n_rows) == (("size", "kind"), 3)
    # Row 5 is empty.
    numbered = dict(zip(row_ids(file, "file_row"), file.column("kind"), strict=True))
    assert {row: kind.as_py() for row, kind in numbered.items()} == {
        "4": "x",
        "5": "",
        "6": "y",
    }


def test_without_a_reader_of_excel_files_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("iclda.tabular.text_formats.find_spec", lambda name: None)
    monkeypatch.setattr(_system, "find_spec", lambda name: None)
    (tmp_path / "data.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(ImportError, match=r"openpyxl is .*iclda\[excel\]"):
        read_table(tmp_path / "data.xlsx", target="class")
