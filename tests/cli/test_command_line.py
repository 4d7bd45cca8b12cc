"""How the command line behaves, whatever the command."""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from types import SimpleNamespace

import pandas as pd
import pytest
from table_files import call, flowers, write
from typer.testing import CliRunner

import iclda
from iclda.__main__ import make_app
from iclda.tabular.table_files import STANDARD_INPUT, open_table


def run_shell(text, folder, **environment):
    command = text.replace("iclda", f"{sys.executable} -m iclda")
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def call_with_input(data, *arguments):
    result = CliRunner().invoke(make_app(), [str(each) for each in arguments], input=data)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    options = "--target", "species", "--method", "em", "--out", folder / "model.skops", "--quiet"
    assert call("fit", write(folder), *options)[0] == 0
    return folder


@pytest.fixture
def model(folder, tmp_path):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return tmp_path / "model.skops"


def test_the_version_is_that_of_the_package():
    assert call("--version") == (0, f"iclda {iclda.__version__}\n", "")


@pytest.mark.parametrize("value", ["x", "-1", "4294967296"])
def test_a_number_that_cannot_be_is_refused_with_its_option(value):
    code, _, error = call("fit", "x.csv", "--target", "y", "--seed", value)
    assert (code, "random_state" in error) == (2, False)
    assert re.search(r"Invalid value for '?--seed'?: ", error)


COMMANDS = [each.name or each.callback.__name__ for each in make_app().registered_commands]


def test_every_command_has_help_and_a_line_in_the_help_of_all():
    said = call("-h")[1]
    assert all(f"  {command} " in said for command in COMMANDS)
    assert said == call("--help")[1]
    for command in COMMANDS:
        assert "Usage: " in call(command, "-h")[1]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("iclda ev", ["evaluate"]),
        ("iclda fit --shr", ["--shrinkage"]),
        ("iclda fit --method mo", ["moment"]),
    ],
)
def test_the_shell_completes_commands_options_and_choices(words, found):
    environment = {
        "_ICLDA_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    result = CliRunner().invoke(make_app(), [], prog_name="iclda", env=environment)
    assert result.stdout.split() == found


def test_minus_is_standard_input_and_standard_output(tmp_path, model):
    table = (tmp_path / "flowers.csv").read_bytes()
    code, said, error = call_with_input(table, "predict", model, "-", "--out", "-")
    assert code == 0
    found = pd.read_csv(io.StringIO(said))
    assert len(found) == 90
    assert "Wrote to standard output: 90 rows." in error
    out = tmp_path / "again.skops"
    code, said, _ = call_with_input(
        table, "fit", "-", "--target", "species", "--method", "iclda", "--out", out
    )
    assert code == 0
    assert "30 labeled and 60 unlabeled rows" in said
    assert "Data       -, 90 rows" in call("show", out)[1]


def test_an_empty_standard_input_is_an_error(model):
    code, _, error = call_with_input(b"", "predict", model, "-")
    assert (code, error) == (
        2,
        "Error: - holds no rows below the names of its columns in row 1, or no end of row 1 in its "
        "first megabyte.\n",
    )


def test_an_interrupted_standard_input_leaves_no_copy(tmp_path, monkeypatch):
    class Interrupted:
        def read(self, size):
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Interrupted()))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        open_table(STANDARD_INPUT)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_closes_the_pipe_ends_the_command_quietly(tmp_path, model):
    many = pd.concat([flowers()] * 200).drop(columns="species")
    write(tmp_path, many, "many.csv")
    shown = run_shell(f"iclda predict {model} many.csv --out - | head -1; true", tmp_path)
    assert "Traceback" not in shown.stderr
    assert "BrokenPipe" not in shown.stderr
    assert shown.stdout.count("\n") == 1


def test_columns_are_dropped_by_a_list_and_kept_by_a_list(tmp_path):
    data, out = write(tmp_path), tmp_path / "m.skops"
    common = "fit", data, "--target", "species", "--method", "em", "--out", out
    assert "It reads 2 columns of numbers." in call(*common, "--drop", "color,wild")[1]
    assert "It reads 2 columns of numbers." in call(*common, "--keep", "p, q")[1]
    code, _, error = call(*common, "--keep", "p,Q")
    assert (code, "has no column 'Q'. Did you mean 'q' for 'Q'?" in error) == (2, True)


def test_predict_says_what_may_be_meant_by_a_column_that_is_lacking(tmp_path, model):
    data = write(tmp_path, flowers().rename(columns={"p": "P ", "color": "colour"}), "new.csv")
    code, _, error = call("predict", model, data, "--out", tmp_path / "p.csv")
    assert code == 2
    assert "Did you mean 'P' for 'p', 'colour' for 'color'?" in error
    data = write(tmp_path, name="new.csv")
    error = call("predict", model, data, "--out", tmp_path / "p.csv", "--id", "Wild")[2]
    assert "no column 'Wild' to copy. Did you mean 'wild' for 'Wild'?" in error
