"""What a user can get wrong about a table: one line, exit code 2, nothing half-written.

The numbers are those of a list of faults that every part of the package is checked against.
"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_files import call, flowers, write


def fit(folder, frame, *options, name="data.csv"):
    """Fit a table in an empty folder; what it says, and whether anything new lies there."""
    data, out = write(folder, frame, name), folder / "m.skops"
    out.unlink(missing_ok=True)
    options = ("--target", "species", "--method", "moment", "--out", out, *options)
    code, said, error = call("fit", data, *options)  # to choose a method takes seconds
    assert {path.name for path in folder.iterdir()} - {name, "more.csv"} <= {"m.skops"}
    assert out.exists() == (code in (0, 3))
    return code, said, error


def refused(folder, frame, *options, name="data.csv"):
    code, said, error = fit(folder, frame, *options, name=name)
    assert (code, said) == (2, "")
    assert error.startswith("Error: ")
    assert error.count("\n") == 1
    return error


def labeled(**columns):
    return flowers().assign(**columns)


def test_1_every_row_unlabeled(tmp_path):
    error = refused(tmp_path, labeled(species=None))
    assert "column 'species' labels no row, all 90 cells are empty" in error
    error = refused(tmp_path, labeled(species="?"), "--unlabeled", "?")
    assert "all 90 cells are empty or '?'" in error


@pytest.mark.parametrize("method", ["iclda", "em", "self-learning", "moment"])
def test_2_no_row_unlabeled_is_a_supervised_fit_with_one_warning(tmp_path, method):
    code, said, _ = fit(tmp_path, flowers(n_labeled=90), "--method", method)
    assert code == 0
    assert said.count("Warning") == 1
    assert "Warning: No row is unlabeled, so that this is a supervised fit." in said
    assert "It learns from the labeled rows alone." in said
    assert "some labeling of the unlabeled rows" not in said


@pytest.mark.parametrize("method", ["iclda", "em", "self-learning"])
def test_3_one_label_a_class_works_with_a_warning_that_names_the_classes(tmp_path, method):
    code, said, _ = fit(tmp_path, flowers(n_labeled=3), "--method", method)
    assert code == (3 if "did not converge" in said else 0)
    assert "Each of the classes 'iris', 'lily', 'rose' has one labeled row only" in said


@pytest.mark.parametrize("method", ["supervised", "moment"])
def test_3_one_label_a_class_is_not_enough_for_fits_that_rest_on_labels(tmp_path, method):
    error = refused(tmp_path, flowers(n_labeled=3), "--method", method, "--shrinkage", "0")
    assert "or pass --shrinkage, for example 0.1" in error
    options = ("--method", method, "--shrinkage", "0.1")
    assert fit(tmp_path, flowers(n_labeled=3), *options)[0] == 0


def test_4_a_prior_for_a_class_without_labels(tmp_path):
    error = refused(tmp_path, flowers(), "--prior", "iris=0.5", "--prior", "tulip=0.5")
    assert "--prior must name the classes with labeled rows, ['iris'" in error
    error = refused(tmp_path, flowers(), "--prior", "iris=0.5")
    assert "['iris', 'lily', 'rose'], got ['iris']." in error


def test_5_one_class_only(tmp_path):
    error = refused(tmp_path, labeled(species=["iris", None] * 45))
    assert "at least 2 classes, got 1 class ('iris') in 45 labeled rows" in error


def test_6_minus_one_is_a_class_unless_told(tmp_path):
    signs = np.where(flowers()["p"] > 0, 1, -1)
    code, said, _ = fit(tmp_path, labeled(species=signs))
    assert code == 0
    assert "  -1 " in said
    error = refused(tmp_path, labeled(species=signs), "--unlabeled", "-1")
    assert "'-1' marks unlabeled rows: leave that out if it is one of your classes" in error


@pytest.mark.parametrize("mark", ["?", "unknown", "none of them"])
def test_7_any_text_can_mark_unlabeled_rows(tmp_path, mark):
    marked = labeled(species=flowers()["species"].fillna(mark))
    code, said, _ = fit(tmp_path, marked, "--unlabeled", mark)
    assert code == 0
    assert "60 unlabeled rows" in said


@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
def test_8_missing_numbers_are_unlabeled_rows(tmp_path, name):
    codes = flowers()["species"].map({"iris": 0.0, "lily": 1.0, "rose": 2.0})
    code, said, _ = fit(tmp_path, labeled(species=codes.astype(float)), name=name)
    assert code == 0
    assert "60 unlabeled rows" in said
    assert "  2 " in said


DTYPES = {
    "bool": (np.arange(90) % 2 == 0, "True"),
    "int8": (np.arange(90, dtype=np.int8) % 3, "2"),
    "uint64": (np.arange(90, dtype=np.uint64) % 3, "2"),
    "floats": (np.arange(90) % 3 * 1.0, "2"),
    "categories": (pd.Categorical(["p", "q", "q"] * 30, categories=["p", "q", "unused"]), "q"),
    "nullable": (pd.array([1, 2, None] * 30, dtype="Int64"), "2"),
}


@pytest.mark.parametrize(("values", "name"), DTYPES.values(), ids=DTYPES)
def test_9_labels_of_any_type_become_names(tmp_path, values, name):
    code, said, _ = fit(tmp_path, labeled(species=values), name="data.parquet")
    assert code == 0
    assert f"\n  {name} " in said
    assert "unused" not in said


def test_10_measurements_and_ids_are_no_classes(tmp_path):
    error = refused(tmp_path, labeled(species=np.linspace(0.25, 9, 90)))
    assert "column 'species' holds numbers with fractions, for example 0.25" in error
    error = refused(tmp_path, labeled(species=np.arange(90)))
    assert "holds 90 different values in 90 labeled rows" in error


def test_10_rows_of_another_length(tmp_path):
    data = write(tmp_path)
    data.write_text(data.read_text() + "1,2,red\n")
    code, _, error = call("fit", data, "--target", "species", "--out", tmp_path / "m.skops")
    assert code == 2
    assert "flowers.csv, row 92: 5 columns are named in row 1, got 3 cells." in error


def test_11_the_marker_as_a_prior(tmp_path):
    marked = labeled(species=flowers()["species"].fillna("?"))
    error = refused(tmp_path, marked, "--unlabeled", "?", "--prior", "?=0.5", "--prior", "iris=0.5")
    assert "got ['?', 'iris']." in error


def test_20_gaps_are_filled_in_or_refused_and_infinity_is_refused(tmp_path):
    error = refused(tmp_path, flowers(), "--missing", "refuse")
    assert "Column 'p' is empty in 5 of 90 rows" in error
    error = refused(tmp_path, labeled(q=np.where(np.arange(90) == 40, -np.inf, 1.5)))
    assert "data.csv, row 42, column 'q': holds infinity" in error
    error = refused(tmp_path, flowers(), "--missing", "forbid")
    assert "--missing must be impute or refuse, got 'forbid'" in error


ODD_COLUMNS = {
    "complex": ([f"{i}+{i}j" for i in range(90)], "Column 'odd' holds 90 different texts"),
    "times": (["1:30 pm", "12:45 pm"] * 45, "Column 'odd' holds dates or times"),
    "names": ([f"flower {i}" for i in range(90)], "for example 'flower 0'"),
    "mixed": (["1", "2.5", "three"] * 30, "text in 30 of 90 rows, for example 'three'"),
}


@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
@pytest.mark.parametrize(("values", "message"), ODD_COLUMNS.values(), ids=ODD_COLUMNS)
def test_23_columns_that_are_no_numbers_are_named_with_the_way_out(tmp_path, values, message, name):
    error = refused(tmp_path, labeled(odd=values), name=name)
    assert message in error
    assert "leave the column out by --drop 'odd'" in error
    assert fit(tmp_path, labeled(odd=values), "--drop", "odd", name=name)[0] == 0


def test_32_a_column_that_agrees_with_the_labels_is_named(tmp_path):
    names = np.array(["iris", "rose"], dtype=object)[np.arange(90) % 2]
    frame = labeled(species=np.where(np.arange(90) < 30, names, None), scent=names)
    code, said, _ = fit(tmp_path, frame, "--method", "iclda", "--shrinkage", "0")
    assert code == 3
    assert "It did not converge" in said
    assert "'scent' is iris for iris, rose for rose in all labeled rows" in said
    assert "Next:" not in said
    assert "column 'scent = rose' takes (nearly) one value per class" in said
    assert "pass --shrinkage, for example 0.1" in said


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    assert fit(folder, flowers())[0] == 0
    return folder / "m.skops"


def unpredicted(folder, model, frame, *options, name="new.csv"):
    code, said, error = call("predict", model, write(folder, frame, name), *options)
    assert (code, said, error.count("\n")) == (2, "", 1)
    return error


def test_34_missing_columns_are_named(model, tmp_path):
    out = ("--out", tmp_path / "p.csv")
    error = unpredicted(tmp_path, model, flowers().drop(columns=["q", "wild"]), *out)
    assert "new.csv lacks 2 of the 4 columns that the model was fitted to: 'q', 'wild'" in error
    error = unpredicted(tmp_path, model, flowers().rename(columns={"q": "Q"}), *out)
    assert "lacks 1 of the 4 columns that the model was fitted to: 'q'" in error
    assert not (tmp_path / "p.csv").exists()


KINDS = {
    "text for numbers": ({"q": "large"}, "column 'q': must hold a number, got 'large'"),
    "a blank before NA": ({"q": " NA"}, "row 2, column 'q': must hold a number, got ' NA'"),
    "text for booleans": ({"wild": "maybe"}, "column 'wild': must hold true or false, got 'maybe'"),
    "infinity": ({"q": np.inf}, "row 2, column 'q': holds infinity"),
}


@pytest.mark.parametrize(("columns", "message"), KINDS.values(), ids=KINDS)
def test_34_other_kinds_of_columns_are_named_with_their_row(model, tmp_path, columns, message):
    error = unpredicted(tmp_path, model, labeled(**columns), "--out", tmp_path / "p.csv")
    assert message in error
    assert {path.name for path in tmp_path.iterdir()} == {"model", "new.csv"}


@pytest.mark.parametrize(("name", "row"), [("new.csv", 902), ("new.parquet", 901)])
def test_20_rows_are_counted_from_the_top_of_the_file(model, tmp_path, monkeypatch, name, row):
    monkeypatch.setattr("iclda.tabular.table_files._BLOCK_BYTES", 2000)
    monkeypatch.setattr("iclda.tabular.table_files._BATCH_ROWS", 50)
    long = pd.concat([flowers()] * 11, ignore_index=True)
    long.loc[900, "q"] = np.inf
    out = ("--out", tmp_path / "p.csv")
    error = unpredicted(tmp_path, model, long, *out, name=name)
    assert f"{name}, row {row}, column 'q': holds infinity" in error


@pytest.mark.parametrize("values", ["large", pd.Timestamp("2020-01-01")])
def test_34_other_types_in_parquet_are_named(model, tmp_path, values):
    out = ("--out", tmp_path / "p.csv")
    error = unpredicted(tmp_path, model, labeled(q=values), *out, name="new.parquet")
    assert (
        "new.parquet, column 'q': must hold numbers, as in the data the model was fitted" in error
    )
    assert {path.name for path in tmp_path.iterdir()} == {"model", "new.parquet"}


def test_44_a_model_that_is_damaged_or_cut_off_is_named(model, tmp_path):
    data = write(tmp_path)
    whole = model.read_bytes()
    for content in (whole[:-20], whole[:500], whole.replace(b"iris", b"lily", 1)):
        model.write_bytes(content)
        for command in (("predict", model, data), ("show", model)):
            code, said, error = call(*command)
            assert (code, said, error.count("\n")) == (2, "", 1)
            assert f"{model} is " in error


def test_44_damage_in_the_middle_of_a_table_leaves_no_predictions(model, tmp_path):
    lines = write(tmp_path).read_bytes().splitlines(keepends=True)
    (tmp_path / "new.csv").write_bytes(b"".join(lines + lines[1:] * 500) + b"1,2\n")
    code, _, error = call("predict", model, tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert code == 2
    assert "row 45092: 5 columns are named in row 1, got 2 cells" in error
    assert not [path for path in tmp_path.iterdir() if "p.csv" in path.name]


def test_45_a_malicious_model_is_refused(model, tmp_path):
    import skops.io

    skops.io.dump({"run": __import__("os").system}, tmp_path / "evil.skops")
    code, _, error = call("predict", tmp_path / "evil.skops", write(tmp_path))
    assert (code, "was not written by iclda" in error) == (2, True)


THREE_HALVES = ("--prior", "iris=0.5", "--prior", "lily=0.5", "--prior", "rose=0.5")
NOTHING_FOR_IRIS = ("--prior", "iris=0", "--prior", "lily=0.5", "--prior", "rose=0.5")
USAGE = {
    "no such table": (
        ("fit", "nowhere.csv", "--target", "y"),
        "nowhere.csv does not exist: check its name",
    ),
    "a folder as a table": (("fit", ".", "--target", "y"), "is a folder: name a file in it"),
    "a folder as a model": (("show", "."), "is a folder: name a file in it"),
    "no such model": (("predict", "nowhere", "data.csv"), "nowhere does not exist: check its name"),
    "no such model to show": (("show", "nowhere.skops"), "nowhere.skops does not exist"),
    "unknown method": (
        ("fit", "data.csv", "--target", "species", "--method", "svm"),
        "Unknown method 'svm'. There are: auto, iclda (ICLDA), em (EMLDA)",
    ),
    "method to compare only": (
        ("fit", "data.csv", "--target", "species", "--method", "SDA"),
        "Method 'SDA' can be named in a comparison (sda) and used in Python "
        "(iclda.SemiSupervisedDiscriminantAnalysis), but not chosen here. There are: "
        "auto, iclda (ICLDA)",
    ),
    "unknown target": (("fit", "data.csv", "--target", "specie"), "Did you mean 'species'?"),
    "target in capitals": (("fit", "data.csv", "--target", "SPECIES"), "Did you mean 'species'?"),
    "prior twice": (
        ("fit", "data.csv", "--target", "species", "--prior", "iris=0.5", "--prior", "iris=0.2"),
        "--prior names class 'iris' twice",
    ),
    "prior of nothing": (
        ("fit", "data.csv", "--target", "species", *NOTHING_FOR_IRIS),
        "--prior gives 0 to ['iris'], which has labeled rows",
    ),
    "no number": (
        ("fit", "data.csv", "--target", "species", "--shrinkage", "much"),
        "--shrinkage must be a number from 0 to below 1, or auto, got 'much'",
    ),
    "too much shrinkage": (
        ("fit", "data.csv", "--target", "species", "--shrinkage", "1"),
        "got '1'",
    ),
    "no prior": (
        ("fit", "data.csv", "--target", "species", "--prior", "iris"),
        "--prior must be CLASS=SHARE, for example yes=0.3, got 'iris'",
    ),
    "priors do not add up": (
        ("fit", "data.csv", "--target", "species", *THREE_HALVES),
        "--prior must add up to 1",
    ),
    "no proportions": (
        ("fit", "data.csv", "--target", "species", "--proportions", "most"),
        "--proportions must be CLASS=SHARE, for example yes=0.3, got 'most'",
    ),
    "proportions of one class": (
        ("fit", "data.csv", "--target", "species", "--proportions", "iris=0.2:0.4"),
        "must name the classes with labeled rows, ['iris', 'lily', 'rose'], got ['iris']",
    ),
    "proportions without use": (
        (
            "fit",
            "data.csv",
            "--target",
            "species",
            "--method",
            "moment",
            "--proportions",
            "labeled",
        ),
        "--proportions is for iclda, em and pessimistic only, and the method is moment: leave",
    ),
    "no model file": (("fit", "data.csv", "--target", "species", "--out", "m.csv"), ".skops file"),
    "no folder": (
        ("fit", "data.csv", "--target", "species", "--out", "no/m.skops"),
        "The folder no of m.skops does not exist: make it first",
    ),
    "no such id": (("predict", "m.skops", "data.csv", "--id", "key"), "no column 'key' to keep"),
    "the id is taken": (
        ("predict", "m.skops", "class.csv", "--id", "class"),
        "two columns named 'class'",
    ),
    "over the data": (("predict", "m.skops", "data.csv", "--out", "data.csv"), "that is read"),
    "no table to write": (("predict", "m.skops", "data.csv", "--out", "p.txt"), "got '.txt'"),
    "no rows": (("predict", "m.skops", "empty.csv"), "holds no rows"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("usage")
    fit(folder, flowers())
    write(folder, flowers().assign(**{"class": 1}), "class.csv")
    write(folder, flowers()[:0], "empty.csv")
    return folder


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE)
def test_wrong_arguments_are_one_line_and_write_nothing(folder, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    code, said, error = call(*arguments)
    assert (code, said, error.count("\n")) == (2, "", 1)
    assert message in error
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.parametrize("cell", [[1, 2], {"a": 1}])
def test_23_a_column_of_lists_or_structs(tmp_path, cell):
    error = refused(tmp_path, labeled(odd=[cell] * 90), name="data.parquet")
    assert "Column 'odd' holds values that are neither numbers nor text" in error
    assert "--drop 'odd'" in error


def test_two_columns_of_one_name(tmp_path):
    data, out = write(tmp_path), tmp_path / "out.skops"
    text = data.read_text().replace("p,q,color", "p,p,color", 1)
    data.write_text(text)
    frame = pd.read_csv(data, header=None, skiprows=1, names=range(5)).set_axis(
        ["p", "p", "color", "wild", "species"], axis=1
    )
    table = pa.Table.from_arrays([pa.array(frame.iloc[:, k]) for k in range(5)], frame.columns)
    pq.write_table(table, tmp_path / "flowers.parquet")
    for path in (data, tmp_path / "flowers.parquet"):
        for command in ("fit", "compare"):
            code, said, error = call(command, path, "--target", "species", "--out", out, "--quiet")
            assert (code, said, error.count("\n")) == (2, "", 1)
            assert "the column name 'p' occurs 2 times" in error
    assert not out.exists()


def test_a_column_called_like_a_feature_made_of_another(tmp_path):
    error = refused(tmp_path, labeled(**{"color = red": 1.5}))
    assert "'color = red' and 'color' would both become a feature named 'color = red'" in error
    assert "leave the column out by --drop 'color = red'" in error
    options = ("--drop", "color = red")
    assert fit(tmp_path, labeled(**{"color = red": 1.5}), *options)[0] == 0


def test_23_lists_in_place_of_categories_at_prediction(tmp_path):
    assert fit(tmp_path, flowers())[0] == 0
    data = write(tmp_path, labeled(color=[[1, 2]] * 90), "lists.parquet")
    code, _, error = call("predict", tmp_path / "m.skops", data, "--out", tmp_path / "p.csv")
    assert code == 2
    assert "column 'color': must hold text" in error


EXTREMES = [
    (1e200, "numbers up to 9e+201 in size, with a standard deviation of 2.6e+201"),
    (1e-300, "numbers up to 9e-299 in size, with a standard deviation of 2.6e-299"),
]


@pytest.mark.parametrize("options", [(), ("--shrinkage", "auto")])
@pytest.mark.parametrize(("unit", "told"), EXTREMES)
def test_19_numbers_whose_squares_are_none(tmp_path, unit, told, options):
    error = refused(tmp_path, labeled(far=unit * np.arange(1.0, 91)), *options)
    assert f"Column 'far' holds {told}" in error
    assert "rescale the column, for example divide it by 1e" in error
    assert "--drop 'far'" in error


@pytest.mark.parametrize(("unit", "told"), EXTREMES)
def test_19_such_numbers_are_not_compared_either(tmp_path, unit, told):
    data = write(tmp_path, labeled(far=unit * np.arange(1.0, 91)))
    out = tmp_path / "out"
    options = ["--target", "species", "--out", out, "--jobs", 1, "--quiet"]
    code, said, error = call("compare", data, *options)
    assert (code, said) == (2, "")
    assert f"Column 'far' holds {told}" in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_19_a_constant_column_of_such_numbers(tmp_path):
    error = refused(tmp_path, labeled(far=1e200), "--shrinkage", "auto")
    assert "Column 'far' holds numbers up to 1e+200 in size" in error
