"""Where benchmark sets are looked for, and what is said of files that are not right."""

import os
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from iclda.datasets import BENCHMARKS, find_benchmark, load_benchmark
from iclda.datasets.benchmark import cache_directory
from iclda.datasets.table import Table, read_table, write_table

DATA = os.environ.get("ICLDA_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="ICLDA_DATA does not name the benchmark sets")


@pytest.fixture(autouse=True)
def nothing_at_hand(tmp_path, monkeypatch):
    monkeypatch.delenv("ICLDA_DATA", raising=False)
    monkeypatch.setenv("ICLDA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    """A data directory with a Pima of two rows, which is not the paper's."""
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "Pima.csv").write_text('"a","b","class"\n1,-2.5,"-1"\n1e3, 4 ,1\n')
    return directory


def test_the_registry_keeps_the_order_and_shapes_of_the_paper():
    shapes = {name: (b.n_rows, b.n_features) for name, b in BENCHMARKS.items()}
    assert list(shapes.items()) == [
        ("Haberman", (305, 3)),
        ("Ionosphere", (351, 32)),
        ("Parkinsons", (195, 19)),
        ("Pima", (768, 8)),
        ("Sonar", (208, 60)),
        ("SPECT", (265, 22)),
        ("SPECTF", (265, 44)),
        ("Transfusion", (748, 3)),
        ("WDBC", (568, 30)),
        ("BCI", (400, 117)),
    ]
    assert all(name == benchmark.name for name, benchmark in BENCHMARKS.items())


@needs_data
@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_set_of_the_data_directory_is_the_paper_s(name):
    benchmark, dataset = BENCHMARKS[name], load_benchmark(name, DATA)
    assert dataset.name == name
    assert dataset.sha256 == benchmark.sha256
    assert dataset.X.shape == (benchmark.n_rows, benchmark.n_features)
    assert dataset.X.dtype == np.float64
    assert len(dataset.feature_names) == benchmark.n_features
    assert dataset.y.dtype.kind == "U"
    assert tuple(np.unique(dataset.y).tolist()) == benchmark.classes
    assert dataset.origin == find_benchmark(name, DATA)
    assert "not the paper's" not in dataset.origin


@needs_data
def test_wdbc_of_scikit_learn_is_that_of_the_data_directory():
    inside, file = load_benchmark("WDBC"), load_benchmark("WDBC", DATA)
    assert_array_equal(inside.X, file.X)
    assert_array_equal(inside.y, file.y)


def test_wdbc_needs_no_file():
    assert find_benchmark("WDBC") == "scikit-learn, without the first row"
    dataset = load_benchmark("WDBC")
    assert dataset.sha256 == BENCHMARKS["WDBC"].sha256
    assert dataset.origin == "scikit-learn, without the first row"
    assert dataset.feature_names[0] == "mean radius"


def test_another_wdbc_inside_scikit_learn_is_refused(monkeypatch):
    import sklearn.datasets

    changed = sklearn.datasets.load_breast_cancer()
    changed.data[5, 5] = 0.0
    monkeypatch.setattr(sklearn.datasets, "load_breast_cancer", lambda: changed)
    found = Table(changed.data[1:], np.array(["M", "B"])[changed.target[1:]], ()).sha256
    message = f"sha256 {BENCHMARKS['WDBC'].sha256} is expected, got {found}"
    with pytest.raises(ValueError, match=message):
        load_benchmark("WDBC")


def test_a_file_of_the_user_s_own_is_loaded_and_its_origin_says_so(folder):
    dataset = load_benchmark("Pima", folder)
    assert_array_equal(dataset.X, [[1, -2.5], [1000, 4]])
    assert dataset.y.tolist() == ["-1", "1"]
    assert dataset.feature_names == ("a", "b")
    assert dataset.origin == (
        f"data directory ({folder / 'Pima.csv'}), which is not the paper's set: sha256 "
        f"{dataset.sha256} instead of {BENCHMARKS['Pima'].sha256}"
    )
    assert find_benchmark("Pima", folder) == f"data directory ({folder / 'Pima.csv'})"


def test_the_argument_comes_before_the_environment_and_that_before_the_cache(
    folder, tmp_path, monkeypatch
):
    for place in ("other", "cache"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "Pima.csv").write_text("a,class\n1,x\n")
    monkeypatch.setenv("ICLDA_DATA", str(tmp_path / "other"))
    assert load_benchmark("Pima", folder).feature_names == ("a", "b")
    assert load_benchmark("Pima").feature_names == ("a",)
    assert find_benchmark("Pima") == f"data directory ({tmp_path / 'other' / 'Pima.csv'})"
    monkeypatch.setenv("ICLDA_DATA", "")  # unset, not the current directory
    monkeypatch.chdir(folder)
    assert find_benchmark("Pima") == f"cache ({tmp_path / 'cache' / 'Pima.csv'})"


def test_the_cache_is_the_user_s_unless_told_otherwise(tmp_path, monkeypatch):
    assert cache_directory() == tmp_path / "cache"
    monkeypatch.delenv("ICLDA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "iclda"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "iclda"


def test_a_set_that_is_not_at_hand_is_an_error_that_says_how_to_get_it(folder):
    assert find_benchmark("Sonar", folder) is None
    message = (
        "Sonar is not at hand: run `iclda datasets fetch Sonar`, or set ICLDA_DATA to a directory "
        "that holds Sonar.csv."
    )
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(message)}$"):
        load_benchmark("Sonar", folder)
    message = "BCI is not at hand: set ICLDA_DATA to a directory that holds BCI.csv (it cannot be"
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(message)}"):
        load_benchmark("BCI")


@pytest.mark.parametrize("function", [load_benchmark, find_benchmark])
def test_a_name_or_directory_that_is_none_is_an_error_that_shows_it(
    function, tmp_path, monkeypatch
):
    with pytest.raises(ValueError, match=r"one of Haberman, .*, WDBC, BCI; got 'Iris'\.$"):
        function("Iris")
    gone = str(tmp_path / "gone")
    with pytest.raises(NotADirectoryError, match=f"^data_dir must be .*, got {gone!r}"):
        function("Pima", gone)
    monkeypatch.setenv("ICLDA_DATA", gone)
    with pytest.raises(NotADirectoryError, match=f"^ICLDA_DATA must be .*, got {gone!r}"):
        function("WDBC")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", " is empty: row 1 must name the feature columns, then 'class'."),
        ("\n\n", " is empty: row 1 must name the feature columns, then 'class'."),
        (
            "a,b\n1,2\n",
            ", row 1: the last column must be named 'class', got 'b' in column 2.",
        ),
        (
            "class,a\nx,2\n",
            ", row 1: the last column must be named 'class', got 'a' in column 2.",
        ),
        ("class\nx\n", ", row 1: there is no feature column before 'class'."),
        ("a,class\n", " holds no rows below its header (row 1)."),
        ("a,b,class\n1,2,x\n\n1,x\n", ", row 4: 3 columns are named in row 1, got 2."),
        ("a,class\n1,x\n1,2,x\n", ", row 3: 2 columns are named in row 1, got 3."),
        (
            "a,b,class\n1,2,x\n1,two,x\n",
            ", row 3, column 'b': features must be finite numbers, got 'two'.",
        ),
        ("a,class\n,x\n", ", row 2, column 'a': features must be finite numbers, got ''."),
        ("a,class\nNA,x\n", ", row 2, column 'a': features must be finite numbers, got 'NA'."),
        ("a,class\nnan,x\n", ", row 2, column 'a': features must be finite numbers, got 'nan'."),
        ("a,class\n1e999,x\n", ", row 2, column 'a': features must be finite numbers, got '1e999'"),
        ("a,class\n1,\n", ", row 2, column 'class': the class is missing."),
        ('a,class\n1,"x\n', " is no CSV file: unexpected end of data."),
    ],
)
def test_a_bad_file_is_an_error_that_names_file_row_and_column(folder, content, message):
    path = folder / "Pima.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path) + message)}"):
        load_benchmark("Pima", folder)


def test_a_file_that_is_no_text_is_an_error_that_names_it(folder):
    path = folder / "Pima.csv"
    path.write_bytes(b"a,class\n1,\xff\n")
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} is no UTF-8 text: byte 10 "):
        load_benchmark("Pima", folder)


def test_files_of_spreadsheets_are_read(folder):
    (folder / "Pima.csv").write_bytes('\ufeff"a","class"\r\n1,"ä, b"\r\n'.encode())
    dataset = load_benchmark("Pima", folder)
    assert dataset.feature_names == ("a",)
    assert dataset.y.tolist() == ["ä, b"]


def test_a_table_comes_back_from_its_file_to_the_last_bit(tmp_path):
    X = np.array([[0.1, -0.0], [1e-300, 1 / 3], [-1e22, 5]])
    table = Table(X, np.array(["-1", 'a "b", c', "1"]), ("x, y", "x2"))
    write_table(tmp_path / "new" / "t.csv", table)
    again = read_table(tmp_path / "new" / "t.csv")
    assert again.X.tobytes() == X.tobytes()
    assert again.y.tolist() == table.y.tolist()
    assert again.feature_names == table.feature_names


def test_the_checksum_sees_numbers_and_classes_and_nothing_else():
    X, y = np.array([[1.0, -0.0], [3.0, 4.0]]), np.array(["a", "b"])
    checksum = Table(X, y, ("p", "q")).sha256
    assert Table(np.asfortranarray(np.abs(X)), y.astype("<U9"), ("r", "s")).sha256 == checksum
    assert Table(X, y[::-1], ()).sha256 != checksum
    assert Table(X[::-1], y, ()).sha256 != checksum
    assert Table(np.nextafter(X, 9), y, ()).sha256 != checksum
