"""Sets downloaded from a server on this machine, rebuilt, checked, and kept or refused."""

import dataclasses
import os
import re
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from openml_server import arff, openml_at_home

from iclda.datasets import BENCHMARKS, fetch_benchmark, find_benchmark, load_benchmark
from iclda.datasets.table import Table

DATA = os.environ.get("ICLDA_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="ICLDA_DATA does not name the benchmark sets")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    directory = tmp_path / "cache"
    monkeypatch.setenv("ICLDA_CACHE", str(directory))
    monkeypatch.delenv("ICLDA_DATA", raising=False)
    return directory


@pytest.fixture
def server(monkeypatch):
    with openml_at_home(monkeypatch) as server:
        yield server


@pytest.fixture
def toy(monkeypatch):
    """A made-up public copy of Transfusion: four columns, the third left out; classes 1 and 2."""
    X = np.random.default_rng(4).normal(size=(12, 4))
    codes = np.arange(12) % 2
    expected = Table(X[:, [0, 1, 3]], np.array(["0", "1"])[codes], ("V1", "V2", "V4"))
    benchmark = dataclasses.replace(BENCHMARKS["Transfusion"], n_rows=12, sha256=expected.sha256)
    monkeypatch.setitem(BENCHMARKS, "Transfusion", benchmark)
    text = arff(X, np.array(["1", "2"])[codes], class_values=["1", "2"])
    return benchmark, expected, text


def files_in(directory):
    return sorted(path.name for path in directory.rglob("*")) if directory.exists() else []


def test_a_fetched_set_is_the_expected_one_and_is_found_in_the_cache(cache, server, toy):
    benchmark, expected, text = toy
    server.offer(benchmark.openml_id, text)
    path = fetch_benchmark("Transfusion")
    assert path == cache / "Transfusion.csv"
    assert files_in(cache) == ["Transfusion.csv"]
    assert find_benchmark("Transfusion") == f"cache ({path})"
    dataset = load_benchmark("Transfusion")
    assert dataset.sha256 == expected.sha256
    assert dataset.origin == f"cache ({path})"
    assert dataset.feature_names == ("V1", "V2", "V4")
    assert_array_equal(dataset.X, expected.X)
    assert_array_equal(dataset.y, expected.y)


def test_a_cached_set_is_not_fetched_again(cache, server, toy):
    benchmark, _, text = toy
    server.offer(benchmark.openml_id, text)
    first = fetch_benchmark("Transfusion")
    n_asked = len(server.asked)
    assert n_asked > 0
    server.stop()
    assert fetch_benchmark("Transfusion") == first
    assert len(server.asked) == n_asked


def test_a_damaged_file_of_the_cache_is_refused_when_loaded_and_replaced_when_fetched(
    cache, server, toy
):
    benchmark, expected, text = toy
    server.offer(benchmark.openml_id, text)
    path = fetch_benchmark("Transfusion")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    damaged = Table(expected.X[:-1], expected.y[:-1], ()).sha256
    message = (
        f"{path} has changed since it was fetched: sha256 {expected.sha256} is expected, got "
        f"{damaged}. Delete it, or run `iclda datasets fetch Transfusion` to replace it."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        load_benchmark("Transfusion")
    path.write_text("".join(lines[:-1]) + "1,2")
    with pytest.raises(ValueError, match=re.escape(f"{path}, row 13: 4 columns are named")):
        load_benchmark("Transfusion")
    fetch_benchmark("Transfusion")
    assert load_benchmark("Transfusion").sha256 == expected.sha256


def test_cache_dir_is_where_the_file_goes(cache, server, toy, tmp_path):
    benchmark, _, text = toy
    server.offer(benchmark.openml_id, text)
    assert fetch_benchmark("Transfusion", tmp_path / "b") == tmp_path / "b" / "Transfusion.csv"
    assert files_in(cache) == []


def test_a_wrong_set_is_refused_with_both_checksums_and_not_kept(cache, server, toy):
    benchmark, expected, _ = toy
    wrong = expected.X.copy()
    wrong[3, 1] += 1e-9
    public = np.insert(wrong, 2, 0.0, axis=1)
    server.offer(benchmark.openml_id, arff(public, expected.y, class_values=["0", "1"]))
    found = Table(wrong, expected.y, ()).sha256
    message = (
        f"Transfusion from OpenML (data set 1464, 12 rows x 4 features) does not give the paper's "
        f"set: sha256 {expected.sha256} is expected, got {found}. Nothing was kept: set ICLDA_DATA"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        fetch_benchmark("Transfusion")
    assert files_in(cache) == []


@pytest.mark.parametrize("n_columns", [3, 5])
def test_a_set_with_other_columns_is_refused_and_not_kept(cache, server, toy, n_columns):
    benchmark, expected, _ = toy
    X = np.ones((12, n_columns))
    server.offer(benchmark.openml_id, arff(X, expected.y, class_values=["0", "1"]))
    shape = re.escape(f"Transfusion from OpenML (data set 1464, 12 rows x {n_columns} features)")
    with pytest.raises(ValueError, match=shape):
        fetch_benchmark("Transfusion")
    assert files_in(cache) == []


def test_a_set_with_three_classes_is_refused_and_not_kept(cache, server, toy):
    benchmark, expected, text = toy
    _, _, rows = text.partition("@DATA\n")
    server.offer(
        benchmark.openml_id,
        text.replace("{1,2}", "{1,2,3}").replace(rows, rows[: rows.rindex(",") + 1] + "3\n"),
    )
    with pytest.raises(ValueError, match=f"sha256 {expected.sha256} is expected, got"):
        fetch_benchmark("Transfusion")
    assert files_in(cache) == []


def test_a_file_that_was_damaged_on_its_way_is_refused_and_not_kept(cache, server, toy):
    benchmark, _, text = toy
    server.offer(benchmark.openml_id, text)
    server.answers["/data/v1/download/1464"] += b"\n"
    message = (
        r"^The answer of OpenML \(data set 1464\) for Transfusion cannot be read: ValueError: "
        r"The md5 checksum.* Nothing was kept: try again later, or set ICLDA_DATA"
    )
    with pytest.raises(ValueError, match=message):
        fetch_benchmark("Transfusion")
    assert files_in(cache) == []


@pytest.mark.parametrize("answer", [b"", b"<html>", b"{}", b'{"data_set_description": {}}'])
def test_an_answer_that_makes_no_sense_is_refused_and_nothing_kept(cache, server, toy, answer):
    server.answers["/api/v1/json/data/1464"] = answer
    with pytest.raises(ValueError, match=r"OpenML \(data set 1464\) for Transfusion cannot be"):
        fetch_benchmark("Transfusion")
    assert files_in(cache) == []


def test_an_unreachable_server_is_an_error_that_names_the_set(cache, server):
    server.stop()
    message = (
        r"^Sonar could not be fetched from OpenML \(data set 40\): .*refused.*\. Try again later, "
        r"or set ICLDA_DATA to a directory that holds Sonar\.csv\.$"
    )
    with pytest.raises(ConnectionError, match=message):
        fetch_benchmark("Sonar")
    assert files_in(cache) == []


def test_an_address_that_is_gone_is_an_error_that_names_the_set(cache, server):
    message = r"^Sonar could not be fetched from OpenML \(data set 40\): HTTP Error 404: Not Found"
    with pytest.raises(ConnectionError, match=message):
        fetch_benchmark("Sonar")
    assert files_in(cache) == []


def test_a_set_without_public_copy_is_an_error_that_says_where_it_comes_from(cache, server):
    message = r"^BCI has no public copy to fetch\. It comes from Chapelle.*set 4: set ICLDA_DATA"
    with pytest.raises(ValueError, match=message):
        fetch_benchmark("BCI")
    assert server.asked == []


def test_an_unknown_set_is_an_error_that_lists_the_known_ones(cache):
    with pytest.raises(ValueError, match=r"^name must be one of Haberman, .*, BCI; got 'haberman'"):
        fetch_benchmark("haberman")


def test_a_disk_that_fills_up_leaves_no_file_behind(cache, server, toy, monkeypatch):
    benchmark, _, text = toy
    server.offer(benchmark.openml_id, text)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("iclda._whole_file.os.replace", full)
    with pytest.raises(OSError, match="No space left on device"):
        fetch_benchmark("Transfusion")
    assert files_in(cache) == []


def test_nothing_is_imported_from_pandas(cache, server, toy, monkeypatch):
    benchmark, expected, text = toy
    for module in [name for name in sys.modules if name.partition(".")[0] == "pandas"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pandas", None)
    server.offer(benchmark.openml_id, text)
    fetch_benchmark("Transfusion")
    assert load_benchmark("Transfusion").sha256 == expected.sha256


# --- The paper's sets, from public copies made backwards from them -------------------------------


def two_files(X, y):
    """Training and test rows of SPECT and SPECTF, with a first row each that the paper lost."""
    train = (np.vstack([X[:1] + 1, X[:79]]), np.concatenate([["1"], y[:79]]))
    test = (np.vstack([X[:1] + 2, X[79:]]), np.concatenate([["1"], y[79:]]))
    return train, test


def stacked(*parts):
    return np.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def with_early_test_file(X, y):
    """The training file, and the test file of 269 rows that repeats it and one row of its own."""
    train, test = two_files(X, y)
    first, again = (train[0][:1], train[1][:1]), (test[0][5:6], test[1][5:6])
    ones, zeros = ((test[0][part], test[1][part]) for part in (slice(172), slice(172, None)))
    return train, stacked(first, ones, again, zeros, train)


def numbered(y, first):
    """Classes as many public copies name them."""
    return np.where(y == first, "1", "2")


# The public copy of a set of rows X and classes y, the values of its class, and what is peculiar.
PUBLIC = {
    "Haberman": (
        lambda X, y: (np.vstack([[30, 64, 1], X]), ["1", *y]),
        ["1", "2"],
        {"nominal": [1]},
    ),
    "Ionosphere": (
        lambda X, y: (np.column_stack([np.ones(len(X)), np.zeros(len(X)), X]), y),
        ["b", "g"],
        {},
    ),
    "Parkinsons": (
        lambda X, y: (np.column_stack([X[:, :3] + 100, X]), numbered(y, "0")),
        ["1", "2"],
        {},
    ),
    "Pima": (lambda X, y: (X, y), ["tested_negative", "tested_positive"], {}),
    "Sonar": (lambda X, y: (X, y), ["Rock", "Mine"], {}),
    "SPECT": (
        lambda X, y: stacked(*two_files(X, y)),
        ["0", "1"],
        {"nominal": range(22), "class_first": True},
    ),
    "SPECTF": (
        lambda X, y: stacked(*with_early_test_file(X, y)),
        ["0", "1"],
        {"class_first": True},
    ),
    "Transfusion": (
        lambda X, y: (np.insert(X, 2, 250 * X[:, 1], axis=1), numbered(y, "0")),
        ["1", "2"],
        {},
    ),
    "WDBC": (
        lambda X, y: (np.vstack([X[:1] + 1, X]), ["2", *numbered(y, "B")]),
        ["1", "2"],
        {},
    ),
}
OTHER_ORDERS = {
    "SPECT": lambda X, y: stacked(*two_files(X, y)[::-1]),
    "SPECTF": lambda X, y: stacked(*with_early_test_file(X, y)[::-1]),
    "SPECTF-267": lambda X, y: stacked(*two_files(X, y)),
}


@needs_data
@pytest.mark.parametrize("name", PUBLIC)
def test_every_set_is_rebuilt_from_its_public_copy(cache, server, name):
    original = load_benchmark(name, DATA)
    make, class_values, peculiar = PUBLIC[name]
    X, y = make(original.X, original.y)
    server.offer(BENCHMARKS[name].openml_id, arff(X, y, class_values=class_values, **peculiar))
    fetch_benchmark(name)
    fetched = load_benchmark(name)
    assert fetched.sha256 == BENCHMARKS[name].sha256
    assert fetched.origin == f"cache ({cache / name}.csv)"


def test_every_set_with_a_public_copy_is_tried():
    assert set(PUBLIC) == {b.name for b in BENCHMARKS.values() if b.openml_id is not None}


@needs_data
@pytest.mark.parametrize("case", OTHER_ORDERS)
def test_the_two_files_may_come_in_other_orders(cache, server, case):
    name = case.partition("-")[0]
    original = load_benchmark(name, DATA)
    X, y = OTHER_ORDERS[case](original.X, original.y)
    server.offer(BENCHMARKS[name].openml_id, arff(X, y, class_values=["0", "1"]))
    fetch_benchmark(name)
    assert load_benchmark(name).sha256 == BENCHMARKS[name].sha256


@pytest.mark.parametrize("n_rows", [1, 80, 266, 268])
def test_two_files_of_another_length_are_refused(cache, server, n_rows):
    X = np.random.default_rng(0).normal(size=(n_rows, 22))
    y = np.resize(["0", "1"], n_rows)
    server.offer(BENCHMARKS["SPECT"].openml_id, arff(X, y, class_values=["0", "1"]))
    found = Table(X, y, ()).sha256
    message = rf"^SPECT from OpenML \(data set 336, {n_rows} rows x 22 .* expected, got {found}\."
    with pytest.raises(ValueError, match=message):
        fetch_benchmark("SPECT")
    assert files_in(cache) == []
