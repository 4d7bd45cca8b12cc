"""What is passed in place of an array: paths, queries, settings."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
pq = pytest.importorskip("pyarrow.parquet")
pyarrow_dataset = pytest.importorskip("pyarrow.dataset")

from iclda import SupervisedLDA, rows
from iclda._rows.kinds import KINDS
from tests.helpers.file_rows import FEW, FRAMED, SAMPLE, fit, named
from tests.helpers.problems import SEMI_SUPERVISED
from tests.helpers.row_sources import opened, table

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.words)
def test_every_kind_of_rows_stands_in_the_documents(kind):
    assert kind.words in " ".join(rows.__doc__.split())
    assert kind.words in (ROOT / "docs" / "scaling.md").read_text()


WITHOUT_ROWS = {
    "lazy frame": lambda: pl.LazyFrame(named(FEW)).filter(pl.col("x0") > 1e9),
    "dataset": lambda: pyarrow_dataset.dataset(table(FEW)).filter(
        pyarrow_dataset.field("x0") > 1e9
    ),
}


@pytest.mark.parametrize("source", WITHOUT_ROWS.values(), ids=WITHOUT_ROWS)
@pytest.mark.parametrize("method", SEMI_SUPERVISED.values(), ids=SEMI_SUPERVISED)
def test_a_query_without_rows_is_as_an_array_without_rows(source, method):
    with pytest.warns(UserWarning, match="got no unlabeled rows") as warned:
        model = method().fit(FRAMED, SAMPLE.y, X_unlabeled=source())
    assert len(warned) == 1
    assert_allclose(
        model.coef_, SupervisedLDA().fit(FRAMED, SAMPLE.y).coef_, rtol=1e-12
    )


def test_paths_that_lead_nowhere_are_named(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"X_unlabeled: there is no file .*none\.npy"
    ):
        fit(tmp_path / "none.npy")
    (tmp_path / "_SUCCESS").touch()
    missing = {
        tmp_path / "none": r"there is no file .*none\. Relative paths start at ",
        tmp_path / "*.npy": r"there is no file that matches .*\*\.npy\. ",
        tmp_path: r"there is no file in .* that ends in \.npy",
    }
    for path, message in missing.items():
        with pytest.raises(FileNotFoundError, match=message):
            fit(str(path))
        with pytest.raises(FileNotFoundError, match="^X: " + message):
            rows.open(str(path))


@pytest.mark.parametrize(
    ("pattern", "n_rows"),
    [("", 20), ("*.npy", 13), ("**/*.npy", 35), ("_more/*.npy", 7)],
)
def test_a_folder_is_read_without_hidden_files_and_a_pattern_as_glob_does(
    pattern, n_rows, tmp_path
):
    (tmp_path / "folder.npy").mkdir()
    files = {"a": 10, "_a": 3, ".a": 4, "sub/a": 10, "sub/_a": 5, "_more/a": 7}
    for file, n in files.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        np.save(tmp_path / f"{file}.npy", FEW[:n])
    assert opened(str(tmp_path / pattern)).n_rows == n_rows


def test_files_of_unknown_or_several_formats_are_refused_with_the_way_out(tmp_path):
    (tmp_path / "rows.csv").write_text("x0,x1,x2\n1,2,3\n")
    with pytest.raises(ValueError, match=r"format of .*rows\.csv.*from_batches"):
        fit(tmp_path / "rows.csv")
    np.save(tmp_path / "rows.npy", FEW)
    pq.write_table(table(FEW), tmp_path / "rows.parquet")
    with pytest.raises(
        ValueError, match=r"mixes files of several formats \(.*rows\.npy"
    ):
        fit(tmp_path)


SENSELESS = {
    "n_rows of text": ({"n_rows": "x"}, "n_rows must be an instance of int"),
    "memory": ({"memory": 0}, "memory == 0, must be > 0"),
}


@pytest.mark.parametrize(("settings", "message"), SENSELESS.values(), ids=SENSELESS)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        rows.from_batches(lambda: [FEW], **settings)


@pytest.mark.parametrize("names", ["x0", b"x0", 3])
def test_names_are_a_list(names, folder):
    with pytest.raises(
        TypeError, match=f"columns must be a list of names, got {names!r}"
    ):
        rows.open(folder / "rows.parquet", columns=names)


def test_names_differ(folder):
    with pytest.raises(ValueError, match="columns has 2 columns called 'x1'"):
        rows.open(folder / "rows.parquet", columns=["x1", "x0", "x1"])


NO_SOURCES = {
    "None": (None, TypeError, "must be a path, .* got NoneType"),
    "a table in memory": (
        named(FEW),
        TypeError,
        "got DataFrame.* to a classifier as they are",
    ),
    "a source": (
        rows.from_batches(lambda: [FEW]),
        TypeError,
        "must be a path, .* got Batches",
    ),
    "no paths": ([], TypeError, "a list of at least one path, .*got list"),
    "arrays": ([FEW, FEW], TypeError, "for a list of them, .*from_batches"),
    "a scanner": (
        pyarrow_dataset.dataset(table(FEW)).scanner(),
        TypeError,
        "got Scanner",
    ),
}


@pytest.mark.parametrize(("X", "error", "message"), NO_SOURCES.values(), ids=NO_SOURCES)
def test_what_cannot_be_opened_is_refused_with_what_can(X, error, message):
    with pytest.raises(error, match=message):
        rows.open(X)


def test_an_array_of_an_unknown_library_is_led_to_batches():
    unknown = type("Grid", (), {"shape": (500, 3), "__module__": "grids.core"})()
    with pytest.raises(
        TypeError, match=r"type grids\.Grid are not read: .*rows\.from_batches"
    ):
        fit(unknown)


def test_a_source_says_what_it_is(folder):
    assert repr(rows.open(folder / "rows.npy")) == "<150000 x 3 rows of a .npy file>"
    assert repr(rows.from_batches(lambda: [FEW])) == "<? x 3 rows of batches of arrays>"
    lazy = pl.from_pandas(named(FEW)).lazy()
    assert repr(rows.open(lazy)) == "<? x 3 rows of a polars LazyFrame>"
