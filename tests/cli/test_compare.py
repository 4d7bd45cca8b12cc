"""`iclda compare` as people call it: what it prints, writes, refuses and survives."""

import csv
import json
import re
import subprocess
import sys
from itertools import chain

import pytest

from tests.helpers.table_files import call, flowers, write

pytest.importorskip("jinja2", reason="reports need iclda[experiments]")

# Lines of an answer to a table without faults, on a terminal of 80 columns.
MOST_LINES = 25
SMALL = {
    "--methods": "em",
    "--repeats": "2",
    "--folds": "2",
    "--shrinkage": "auto",
    "--jobs": "1",
}


def compare(folder, *options, data="flowers.csv"):
    for name, value in {**SMALL, "--out": folder / "out"}.items():
        if name not in options:
            options = [*options, name, value]
    return call("compare", folder / data, "--target", "species", *options)


def first_line(name):
    return f"Comparing methods on {name}, target 'species'\n"


def refused(folder, frame, *options, name="data.csv"):
    """One line of error, exit code 2, and nothing new in the folder."""
    write(folder, frame, name)
    before = set(folder.iterdir())
    code, said, error = compare(folder, *options, data=name)
    assert code == 2
    assert said == ("" if "--quiet" in options else first_line(name))
    assert error.startswith("Error: ")
    assert error.count("\n") == 1
    assert set(folder.iterdir()) == before
    return error


def scores(folder, out="out"):
    with (folder / out / "comparison.csv").open() as file:
        return list(csv.DictReader(file))


def test_without_what_the_report_needs_nothing_is_computed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    error = refused(tmp_path, flowers())
    assert "jinja2 is needed for figures and reports" in error
    assert "pip install 'iclda[experiments]'" in error


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("done")
    write(folder)
    return folder, compare(folder)


def test_it_looks_at_the_table_compares_and_answers(done):
    folder, (code, said, _) = done
    assert code == 0
    parts = [
        "Comparing methods",
        "Answer",
        "Next: iclda fit",
        "error",
        "Next, the learning curves",
        "Report: ",
    ]
    places = [said.index(part) for part in parts]
    assert places == sorted(places)
    assert said.startswith(first_line("flowers.csv"))
    assert len(said.splitlines()) <= MOST_LINES
    assert "How" not in said
    verbose = compare(folder, "--verbose")[1]
    assert "90: 30 labeled, 60 unlabeled" in verbose
    assert "10 of 'iris', 10 of 'lily', 10 of 'rose'" in verbose
    assert verbose.index("Answer") < verbose.index("\nHow\n")
    assert {"report.html", "comparison.csv", "curves.csv", "rows.sqlite"} <= {
        path.name for path in (folder / "out").iterdir()
    }


def test_the_numbers_are_there_for_other_programs(done):
    folder, _ = done
    lines = scores(folder)
    assert list(lines[0]) == [
        *("method", "measure", "mean", "se", "share_worse_than_supervised"),
        *("low", "high", "n_rows"),
    ]
    assert {line["method"] for line in lines} == {"supervised", "em"}
    assert {line["measure"] for line in lines} == {"error", "brier", "balanced"}


def test_the_answer_is_drawn_anew_from_the_rows_as_json_for_programs(done):
    folder, _ = done
    (folder / "out" / "report.html").unlink()
    code, said, error = call("report", folder / "out", "--json")
    assert (folder / "out" / "report.html").exists()
    found = json.loads(said, parse_constant=pytest.fail)
    assert (code, error) == (0, "")
    assert found["recommendation"]["method"] in ("em", "supervised")
    assert found["recommendation"]["shrinkage"] == "auto"
    assert found["failed_fits"] == 0


def test_two_files_of_other_kinds_give_the_same_in_a_folder_called_after_the_first(
    done, tmp_path, monkeypatch
):
    folder, _ = done
    monkeypatch.chdir(tmp_path)
    write(tmp_path, flowers()[:30], "flowers.parquet")
    write(tmp_path, flowers()[30:].drop(columns="species"), "more.csv")
    options = [*chain(*SMALL.items()), "--unlabeled-file", "more.csv", "--quiet"]
    assert call("compare", "flowers.parquet", "--target", "species", *options) == (
        0,
        "",
        "",
    )
    assert scores(tmp_path, "flowers-comparison") == scores(folder)


REFUSED = {
    "method": (
        ["--methods", "svm"],
        "Unknown method 'svm'. There are: iclda (ICLDA), em",
    ),
    "folds": (
        ["--folds", "11"],
        "--folds 11 must lie between 2 and 10, the number of labeled",
    ),
    "labeled": (
        ["--labeled", "2"],
        "--labeled 2 must lie between 3, one label of each class, and 14",
    ),
    "measure": (
        ["--measure", "f1"],
        "--measure f1 is not a measure that can decide: choose one of brier, error, b",
    ),
    "measure of two classes": (
        ["--measure", "auc"],
        "--measure auc needs two classes, got 3: pass --measure balanced, which takes",
    ),
    "time": (
        ["--time", "soon"],
        "--time soon is not a time: pass seconds, or a number with a unit, such as 60s",
    ),
    "folder": (
        ["--out", __file__ + "/out", "--quiet"],
        ": Not a directory: use another --out",
    ),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_options_that_cannot_be_are_explained(tmp_path, options, message):
    assert message in refused(tmp_path, flowers(), *options)


def test_without_any_supervised_fit_there_is_a_report_and_exit_code_1(tmp_path):
    write(tmp_path, flowers(n_labeled=6))
    code, said, error = compare(tmp_path, "--shrinkage", "0", "--methods", "moment")
    assert code == 1
    assert (
        "Error: No answer: supervised LDA, the baseline of the comparison, could"
        in error
    )
    assert "No method has scores: every fit failed." in said
    assert (tmp_path / "out" / "report.html").exists()


def test_a_report_of_someone_else_is_not_overwritten(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.html").write_text("mine")
    error = refused(tmp_path, flowers())
    assert "holds report.html, but no comparison wrote it there" in error
    assert (tmp_path / "out" / "report.html").read_text() == "mine"


def test_46_names_with_html_and_commands_for_the_terminal_are_shown_as_text(tmp_path):
    evil = "<script>\x1b[31m"
    frame = flowers().rename(columns={"p": evil, "species": f"{evil}?"})
    frame["copy"] = frame[evil]
    frame[f"{evil}?"] = frame[f"{evil}?"].map(
        {"iris": evil, "lily": "<b>", "rose": "&"}
    )
    write(tmp_path, frame, "<b>.csv")
    options = [*chain(*SMALL.items()), "--out", tmp_path / "out"]
    code, said, _ = call(
        "compare", tmp_path / "<b>.csv", "--target", f"{evil}?", *options
    )
    assert code == 0
    assert "\x1b" not in said
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script" not in page
    assert "<b>" not in page
    assert page.count("&lt;script&gt;") >= 3


STOPS_AT_ITS_FIRST_WORD = """
import sys
from itertools import chain

class Output:
    def write(self, text):
        if text:
            heavy = {"numpy", "scipy", "sklearn", "pandas", "joblib"} & set(sys.modules)
            sys.exit(f"said {text!r} after importing {sorted(heavy)}")

    def flush(self): pass

sys.stdout = Output()
from iclda.__main__ import make_app
make_app()()
"""


def test_the_first_line_is_printed_before_anything_heavy_is_imported(tmp_path):
    write(tmp_path)
    command = [sys.executable, "-c", STOPS_AT_ITS_FIRST_WORD, "compare", "flowers.csv"]
    run = subprocess.run(
        [*command, "--target", "species"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "Comparing methods on flowers.csv" in run.stderr
    assert "after importing []" in run.stderr


def test_the_answer_is_printed_before_the_curves_are_computed(
    done, tmp_path, monkeypatch
):
    folder, (_, complete, _) = done
    write(tmp_path)
    complete = complete.replace(str(folder), str(tmp_path))

    def interrupt(self, advance):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("iclda.studies.compare.run.ComparisonRun.add_curves", interrupt)
        code, said, error = compare(tmp_path)
    assert code == 130
    assert (
        "Interrupted. What was computed is kept: run the same command to continue."
        in error
    )
    assert "Next: iclda fit" in said
    assert complete.startswith(said)
    assert not (tmp_path / "out" / "report.html").exists()
    code, said, error = compare(tmp_path)
    assert (code, said) == (0, complete)
    # A slow machine reports its progress there.
    assert "First ranking" not in error
    for name in ("comparison.csv", "curves.csv"):
        assert (tmp_path / "out" / name).read_text() == (
            folder / "out" / name
        ).read_text()


def test_all_methods_are_answered_in_25_lines_and_again_with_other_columns(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write(tmp_path)
    command = ["compare", "flowers.csv", "--target", "species", "--fast", "--jobs", "1"]
    command += ["--folds", "2", "--repeats", "2"]
    code, said, _ = call(*command)
    assert code == 0
    lines = said.splitlines()
    # The command to go on with is copied: it is not broken into lines.
    assert max(len(line) for line in lines if not line.startswith("Next")) <= 80
    assert len(lines) <= MOST_LINES
    assert "Next: iclda fit flowers.csv --target species\n" in said
    assert "compare` found" in call("fit", "flowers.csv", "--target", "species")[1]

    assert call(*command, "--drop", "color", "--quiet") == (0, "", "")
    # The first comparison is still there, for the command and for a fit.
    assert call(*command) == (0, said, "")
    model = tmp_path / "model.skops"
    model.unlink()
    assert "compare` found" in call("fit", "flowers.csv", "--target", "species")[1]


def test_a_time_limit_gives_an_answer_that_a_later_run_completes(tmp_path):
    write(tmp_path)
    options = ["--repeats", "3"]
    code, said, _ = compare(tmp_path, *options, "--time", "0.001s")
    assert code == 0
    assert "1 of 3 repeats fitted into the time given" in " ".join(said.split())
    assert "without --time" in " ".join(said.split())
    assert "learning curves" not in said
    rest = compare(tmp_path, *options)[1]
    assert "repeats fitted" not in rest
    done = scores(tmp_path)
    assert compare(tmp_path, *options, "--out", tmp_path / "once")[0] == 0
    assert scores(tmp_path, "once") == done


def test_two_uneven_classes_show_the_balanced_error_and_the_area_under_the_curve(
    tmp_path,
):
    frame = flowers()
    frame["species"] = frame["species"].map({"iris": "b", "lily": "a", "rose": "a"})
    write(tmp_path, frame)
    code, said, _ = compare(tmp_path, "--measure", "auc")
    assert code == 0
    assert re.search(r"error +balanced +AUC +Brier", said)
    found = json.loads(compare(tmp_path, "--measure", "auc", "--json")[1])
    assert {each["measure"] for each in found["scores"]} == {
        *("error", "balanced", "auc", "brier"),
    }
    assert found["settings"]["measure"] == "auc"
    page = (tmp_path / "out" / "report.html").read_text()
    assert "area above the ROC curve" in page
