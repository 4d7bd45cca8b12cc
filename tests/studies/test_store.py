import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest

from iclda.studies.store import Cell, FitResult, Store, StoreError

TABLES = "tables"
VALUES = {"error": 0.1, "nll": 1.5}
ROW = FitResult(TABLES, "a", 0, 0, "LDA", 10, 50, 7, VALUES, 0.01)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out" / "rows.sqlite"


@pytest.fixture
def store(path):
    store = Store(path)
    yield store
    store.close()


def test_rows_come_back_as_they_were(store, path):
    failed = replace(ROW, method="ICLDA", values={}, failure="Traceback: <b>&\n")
    store.add([ROW, failed])
    assert store.rows(TABLES) == [failed, ROW]
    store.close()
    again = Store(path)
    assert again.rows(TABLES) == [failed, ROW]
    again.close()


def test_only_what_has_no_row_is_missing(store):
    cells = [Cell(TABLES, "a", 0, fold) for fold in range(3)]
    store.add([ROW, replace(ROW, method="ICLDA", failure="x"), replace(ROW, part=1)])
    missing = store.missing(cells, ("LDA", "ICLDA"))
    assert missing == [(cells[1], ("ICLDA",)), (cells[2], ("LDA", "ICLDA"))]


def test_a_second_run_with_the_same_settings_goes_on_and_with_others_is_refused(store):
    store.note(seed=3, data={"a": "1", "b": "2"})
    merged = store.merge_settings(seed=3, data={"b": "2", "c": "3"})
    assert merged["data"] == {"a": "1", "b": "2", "c": "3"}
    refusal = (
        r"made with seed 3, and this run asks for seed 4: "
        r"use another out, or seed=3\."
    )
    with pytest.raises(StoreError, match=refusal):
        store.merge_settings(seed=4)
    with pytest.raises(StoreError, match="rows of other data for b"):
        store.merge_settings(data={"b": "changed"})


def test_42_another_run_on_the_same_folder_is_refused_while_the_first_lasts(
    store, path
):
    with pytest.raises(StoreError, match="Another run is writing to"):
        Store(path)
    store.close()
    Store(path).close()


def test_a_folder_without_rows_says_so(tmp_path):
    with pytest.raises(
        StoreError, match=r"rows\.sqlite does not exist: run an experiment"
    ):
        Store(tmp_path / "rows.sqlite", read_only=True)


def test_44_a_file_that_is_no_store_is_named(tmp_path):
    path = tmp_path / "rows.sqlite"
    path.write_text(
        "something else entirely, long enough to be read as a header of a file" * 20
    )
    with pytest.raises(
        StoreError, match=r"is not a store of this version of iclda, or it is damaged"
    ):
        Store(path)


@pytest.mark.parametrize("given", [2, 99])
def test_44_a_store_of_another_format_is_refused_with_the_way_out(given, store, path):
    read = store.merge_settings()["format"]
    store.note(format=given)
    store.close()
    words = rf"in format {given} in place of {read}: run again with another out, or rem"
    with pytest.raises(StoreError, match=words):
        Store(path)


def test_the_store_of_another_study_is_refused(store, path):
    store.note(kind="comparison")
    store.close()
    with pytest.raises(
        StoreError, match=r"is a store of another study \(comparison\): use another"
    ):
        Store(path, kind="paper", read_only=True)
    Store(path, kind="comparison", read_only=True).close()


def test_a_store_takes_new_measures(store):
    new = replace(ROW, part=1, values={**VALUES, "brier": 0.05})
    store.add([ROW])
    store.add([new])
    assert store.rows(TABLES) == [ROW, new]


def test_43_a_place_where_nothing_can_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file is a file: name a folder"):
        Store(tmp_path / "file" / "rows.sqlite")


def test_rows_are_kept_all_or_none(store):
    with pytest.raises(StoreError):
        store.add([ROW, replace(ROW, repeat={})])
    assert store.rows(TABLES) == []


@pytest.mark.parametrize("statements", [[], ["PRAGMA journal_mode=WAL"]])
def test_40_a_store_killed_as_it_is_made_is_an_empty_one(path, statements):
    path.parent.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()
    path.touch()
    reader = Store(path, kind="comparison", read_only=True)
    assert (reader.settings(), reader.rows(TABLES)) == ({}, [])
    reader.close()
    store = Store(path)
    store.add([ROW])
    assert store.rows(TABLES) == [ROW]
    store.close()


def test_40_a_killed_writer_leaves_whole_rows(path):
    script = f"""
import itertools, pathlib
from contextlib import closing
from dataclasses import replace
from iclda.studies.store import FitResult, Store
store = Store(pathlib.Path({str(path)!r}))
row = FitResult("tables", "a", 0, 0, "LDA", 10, 50, 7, dict(error=0.1), 0.01)
for i in itertools.count():
    store.add([replace(row, repeat=i, part=k) for k in range(3)])
    if i == 20:
        print("go", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"go\n"
    process.kill()
    process.wait()
    process.stdout.close()
    store = Store(path)
    repeats = [row.repeat for row in store.rows(TABLES)]
    store.close()
    assert len(repeats) == 3 * len(set(repeats)) >= 63
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
