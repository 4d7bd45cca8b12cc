"""Files and names made to do harm, or cut off anywhere."""

import pickle
import sqlite3

import numpy as np
import pyarrow as pa
import pytest
from sklearn.utils.fixes import parse_version

from iclda import load_model
from iclda._messages import is_formula
from iclda.studies.page import csv_text
from iclda.studies.store import FitResult, Store, StoreError
from tests.helpers.table_files import call

N_CUTS = 200


@pytest.fixture
def store(tmp_path):
    """Path, bytes and rows of a store."""
    path = tmp_path / "rows.sqlite"
    rows = [
        FitResult("tables", "a", i, 0, "LDA", values={"error": i / 7})
        for i in range(300)
    ]
    store = Store(path)
    store.note(seed=0, data={"a": "1"})
    store.add(rows)
    store.close()
    return path, path.read_bytes(), rows


def test_44_a_store_cut_off_anywhere_is_refused(store):
    path, data, rows = store
    for place in np.linspace(1, len(data) - 1, N_CUTS).astype(int):
        path.write_bytes(data[:place])
        with pytest.raises(StoreError, match=r"rows\.sqlite"):
            read_store(path)
        with pytest.raises(StoreError, match=r"rows\.sqlite"):
            Store(path).rows("tables")
    path.write_bytes(data)
    assert read_store(path) == rows


def read_store(path, read_only=True):
    store = Store(path, read_only=read_only)
    try:
        return store.rows("tables")
    finally:
        store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rows SET dataset = CAST(x'ff61' AS TEXT) WHERE repeat = 7",
        "UPDATE settings SET value = CAST(x'ff61' AS TEXT) WHERE name = 'seed'",
        "UPDATE settings SET value = '{' WHERE name = 'seed'",
    ],
)
def test_44_a_store_with_bytes_that_are_no_text_is_refused(store, statement):
    path, _, _ = store
    connection = sqlite3.connect(path)
    connection.executescript(statement)
    connection.close()
    for is_read_only in (True, False):
        with pytest.raises(
            StoreError, match=r"rows\.sqlite .* damaged .*: restore it from a copy"
        ):
            read_store(path, read_only=is_read_only)


class Payload:
    def __reduce__(self):
        return (open, ("ran", "w"))


def test_45_a_pickle_is_no_model_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(ValueError, match="m is not a model file"):
        load_model(tmp_path / "m")
    assert not (tmp_path / "ran").exists()


FORMULAS = [
    "=1+1",
    "@SUM(A1)",
    "+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "\t=1",
    "\r=1",
]
HARMLESS = ["", "-", "-1.5", "+2", "-1e-5", ".5", "a=b", "x@y", "1-2", " =1"]


def test_46_formulas_are_told_from_numbers_and_words():
    assert all(map(is_formula, FORMULAS))
    assert not any(map(is_formula, HARMLESS))
    assert not is_formula(-1.5)


def test_46_tables_of_studies_hold_no_formulas():
    text = csv_text(["set", "error"], [["=1+1", -0.5], ["b", "-0.25"]])
    assert text == "set,error\n'=1+1,-0.5\nb,-0.25\n"


BYTES = {
    "NUL bytes": b"a,b,species\n1,\x00,x\n2,3,y\n" * 3,
    "a pickle": pickle.dumps(Payload()),
    "commas": b"," * 10_000,
    "an endless line": b"a,b,species\n" + b"1," * 10**6,
}


if parse_version(pa.__version__) < parse_version("20"):
    # Ends Arrow itself, in C++.
    del BYTES["an endless line"]


@pytest.mark.parametrize("content", BYTES.values(), ids=BYTES)
def test_44_bytes_that_are_no_table_end_in_one_line(tmp_path, content, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(content)
    code, _, error = call("fit", "t.csv", "--target", "species", "--out", "m.skops")
    assert code == 2
    assert "Traceback" not in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]
