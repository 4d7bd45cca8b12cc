"""What a user can get wrong about a table: one line, exit code 2, nothing half-written.

What is refused, and why, is tested in tests/tabular; here is what commands make of it.
"""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.table_files import call, flowers, write


def fit(folder, frame, *options, name="data.csv"):
    """Fit a table in an empty folder; what it says, and whether it leaves a file."""
    data = write(folder, frame, name)
    out = folder / "m.skops"
    out.unlink(missing_ok=True)
    options = ("--target", "species", "--out", out, *options)
    # To choose a method takes seconds.
    if "--method" not in options:
        options = (*options, "--method", "moment")
    code, said, error = call("fit", data, *options)
    assert {path.name for path in folder.iterdir()} <= {name, "m.skops"}
    assert out.exists() == (code in (0, 3))
    return code, said, error


def labeled(**columns):
    return flowers().assign(**columns)


TABLES = {
    "an unknown prior": (
        flowers(),
        ["--prior", "iris=0.5", "--prior", "tulip=0.5"],
        "--prior must name the classes with labeled rows, ['iris', 'lily', 'rose'], "
        "got ['iris', ",
    ),
    "few labels": (
        flowers(n_labeled=3),
        ["--shrinkage", "0"],
        "or pass --shrinkage, for example",
    ),
    "names": (
        labeled(odd=[f"flower {i}" for i in range(90)]),
        ["--strict"],
        "Or leave out the column: --drop odd.",
    ),
    "overflow": (
        labeled(far=1e200 * np.arange(1.0, 91)),
        [],
        "and the limit is 1e150: empty these",
    ),
}


@pytest.mark.parametrize(("frame", "options", "message"), TABLES.values(), ids=TABLES)
def test_a_table_that_cannot_be_used_is_one_line_in_options(
    tmp_path, frame, options, message
):
    code, said, error = fit(tmp_path, frame, *options)
    assert (code, said) == (2, "")
    assert error.startswith("Error: ")
    assert error.count("\n") == 1
    assert message in error


def test_2_no_row_unlabeled_is_a_supervised_fit_with_one_warning(tmp_path):
    options = ("--method", "iclda", "--verbose")
    code, said, _ = fit(tmp_path, flowers(n_labeled=90), *options)
    assert code == 0
    assert said.count("Warning") == 1
    assert "Warning: No row is unlabeled, so this is a supervised fit." in said
    assert "to mark others, use --unlabeled or --unlabeled-file." in said
    assert "It learns from the labeled rows alone." in said


def test_32_a_fit_without_a_maximum_names_the_column_and_ends_with_code_3(tmp_path):
    names = np.array(["iris", "rose"], dtype=object)[np.arange(90) % 2]
    frame = labeled(species=np.where(np.arange(90) < 30, names, None), scent=names)
    code, said, _ = fit(tmp_path, frame, "--method", "iclda", "--shrinkage", "0")
    assert code == 3
    assert "It did not converge" in said
    assert "'scent' is iris for iris, rose for rose in all labeled rows" in said
    assert "Next:" not in said
    assert "column 'scent = rose' takes (nearly) one value per class" in said
    assert "pass --shrinkage, for example 0.1" in said
    assert fit(tmp_path, frame, "--method", "iclda", "--shrinkage", "0", "--quiet") == (
        3,
        "",
        "",
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("usage")
    fit(folder, flowers())
    write(folder, flowers().assign(**{"class": 1}), "class.csv")
    write(folder, flowers()[:0], "empty.csv")
    return folder


PREDICTED = {
    "text for numbers": (
        {"q": "large"},
        "csv",
        "row 2, column 'q' must hold numbers, got 'large'. Empty the cell if its value",
    ),
    "dates": (
        {"q": pd.Timestamp("2020-01-01")},
        "parquet",
        "column 'q': must hold numbers, as in",
    ),
    "lists": (
        {"color": [["red", "blue"]] * 90},
        "parquet",
        "column 'color': must hold text",
    ),
}


@pytest.mark.parametrize(
    ("columns", "kind", "message"), PREDICTED.values(), ids=PREDICTED
)
def test_34_other_kinds_of_cells_are_named_with_their_place(
    folder, tmp_path, columns, kind, message
):
    data = write(tmp_path, labeled(**columns), f"new.{kind}")
    code, said, error = call(
        "predict", folder / "m.skops", data, "--out", tmp_path / "p.csv"
    )
    assert (code, said, error.count("\n")) == (2, "", 1)
    assert f"new.{kind}" in error
    assert message in error
    assert [path.name for path in tmp_path.iterdir()] == [data.name]


def test_44_damage_in_the_middle_of_a_table_leaves_no_predictions(folder, tmp_path):
    lines = write(tmp_path).read_bytes().splitlines(keepends=True)
    (tmp_path / "new.csv").write_bytes(b"".join(lines + lines[1:] * 500) + b"1,2\n")
    command = (
        "predict",
        folder / "m.skops",
        tmp_path / "new.csv",
        "--out",
        tmp_path / "p.csv",
    )
    code, _, error = call(*command)
    assert code == 2
    assert "Row #45092: Expected 5 columns, got 2" in error
    assert not [path for path in tmp_path.iterdir() if "p.csv" in path.name]


FIT = ("fit", "data.csv", "--target", "species")
USAGE = {
    "no such table": (
        ("fit", "nowhere.csv", "--target", "y"),
        "nowhere.csv: No such file",
    ),
    "no model to show": (
        ("show", "data.csv"),
        "data.csv is not a model file, or damaged",
    ),
    "the model last": (
        ("predict", "data.csv", "m.skops"),
        "name the model first, as in m.skops data.csv.",
    ),
    "unknown method": (
        (*FIT, "--method", "svm"),
        "Unknown method 'svm'. There are: auto, iclda",
    ),
    "method to compare only": (
        (*FIT, "--method", "SDA"),
        "'sda' can be compared, but not chosen",
    ),
    "prior twice": (
        (*FIT, "--prior", "iris=0.5", "--prior", "iris=0.2"),
        "--prior must be CLASS=SHARE, an option for each class",
    ),
    "prior of nothing": (
        (*FIT, "--prior", "iris=0", "--prior", "lily=0.5", "--prior", "rose=0.5"),
        "--prior gives 0 to ['iris'], which has labeled rows",
    ),
    "proportions of one class": (
        (*FIT, "--proportions", "iris=0.2:0.4"),
        "--proportions must name the classes with labeled rows, ['iris', 'lily', "
        "'rose'], got ['ir",
    ),
    "proportions without use": (
        (*FIT, "--method", "moment", "--proportions", "labeled"),
        "--proportions is for iclda, em, self-training, pessimistic, "
        "average, ensemble, iclda-proportions",
    ),
    "no model file": (
        (*FIT, "--out", "m.csv"),
        "--out must name a .skops file, got 'm.csv'",
    ),
    "no such id": (
        ("predict", "m.skops", "data.csv", "--id", "key"),
        "no column 'key' to copy",
    ),
    "the id is taken": (
        ("predict", "m.skops", "class.csv", "--id", "class"),
        "two columns 'class'",
    ),
    "over the data": (
        ("predict", "m.skops", "data.csv", "--out", "data.csv"),
        "that is read",
    ),
    "no table to write": (
        ("predict", "m.skops", "data.csv", "--out", "p.txt"),
        "got '.txt'",
    ),
    "no rows": (("predict", "m.skops", "empty.csv"), "has no data rows"),
}


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE)
def test_wrong_arguments_are_one_line_and_write_nothing(
    folder, monkeypatch, arguments, message
):
    monkeypatch.chdir(folder)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    code, said, error = call(*arguments)
    assert (code, said, error.count("\n")) == (2, "", 1)
    assert message in error
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
