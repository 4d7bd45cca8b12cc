"""How the command line behaves, whatever the command."""

import gc
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import iclda
from iclda.__main__ import make_app
from tests.helpers.table_files import call, write, write_model


def test_the_version_is_that_of_the_package():
    assert call("--version") == (0, f"iclda {iclda.__version__}\n", "")


# Before a command begins, Typer evaluates its annotations in its module.
INTERRUPTED_BEFORE_IT_BEGINS = """
import signal, sys
import typer
from iclda import __main__
from iclda.cli import models

def interrupt(app):
    eval("signal.raise_signal(signal.SIGINT)", {**vars(models), "signal": signal})

typer.Typer.__call__ = interrupt
__main__.main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no signals as on other systems")
def test_an_interruption_before_the_command_begins_is_one_line():
    process = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_BEFORE_IT_BEGINS],
        capture_output=True,
        text=True,
    )
    assert (process.returncode, process.stderr) == (130, "Interrupted.\n")


@pytest.mark.parametrize("value", ["x", "-1", "4294967296"])
def test_a_number_that_cannot_be_is_refused_with_its_option(value):
    code, _, error = call("fit", "x.csv", "--target", "y", "--seed", value)
    assert (code, "random_state" in error) == (2, False)
    assert re.search(r"Invalid value for '?--seed'?: ", error)
    assert f"must be a whole number from 0 to 4294967295, got '{value}'" in error


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["reproduce", "--repeats", "0"], "from 2 to 10000, got '0'"),
        (["playground", "--port", "99999999"], "from 0 to 65535, got '99999999'"),
        (["compare", "x.csv", "--folds", "1"], "of at least 2, got '1'"),
    ],
)
def test_a_number_outside_its_limits_is_shown_with_them(words, rule):
    code, _, error = call(*words)
    assert (code, f"must be a whole number {rule}" in error) == (2, True)


COMMANDS = [
    each.name or each.callback.__name__ for each in make_app().registered_commands
]


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


def test_a_reader_that_closes_the_pipe_ends_the_command_quietly(tmp_path):
    write_model(tmp_path)
    command = f"{sys.executable} -m iclda show model.skops | head -1; true"
    shown = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True
    )
    assert "Traceback" not in shown.stderr
    assert "BrokenPipe" not in shown.stderr
    assert shown.stdout.count("\n") == 1


def test_an_option_of_one_value_is_refused_if_it_is_given_twice(tmp_path):
    table = write(tmp_path)
    once = "fit", table, "--target", "species", "--out", tmp_path / "model.skops"
    code, _, error = call(*once, "--target", "color")
    assert code == 2
    assert "--target was given 2 times: leave out all but one." in error
    flags = "--quiet", "--quiet", "--drop", "p", "--drop", "q", "--method", "supervised"
    assert call(*once, *flags) == (0, "", "")


def test_a_process_of_the_user_keeps_its_garbage_collector(tmp_path):
    is_enabled = gc.isenabled()
    try:
        for set_collector in (gc.disable, gc.enable):
            set_collector()
            before = (gc.isenabled(), gc.get_freeze_count())
            assert call("show", tmp_path / "none.skops")[0] == 2
            assert (gc.isenabled(), gc.get_freeze_count()) == before
    finally:
        if is_enabled:
            gc.enable()


@pytest.mark.parametrize("words", [["--version"], ["fit"], ["show", "none.skops"]])
@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_garbage_collector_is_on_after_a_command_if_it_was_before(
    words, is_enabled
):
    program = (
        "import gc, sys\n"
        f"{'' if is_enabled else 'gc.disable()'}\n"
        "from iclda.__main__ import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    print(gc.isenabled())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == str(is_enabled)
