"""The commands of the documents print what is shown."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from tests.helpers.table_files import call

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "models.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# How many depends on the machine.
STEPS = re.compile(r"in \d+ steps")


def session():
    """Commands of the page after its script, and what it shows of their output."""
    blocks = BLOCK.findall(DOCUMENT.read_text())
    return [
        (shlex.split(text), shown)
        for (kind, text), (after, shown) in pairwise(blocks)
        if (kind, after) == ("sh", "text")
    ]


def test_the_commands_of_the_page_on_models_print_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = re.search(r"<<'EOF'\n(.*?)EOF", DOCUMENT.read_text(), re.DOTALL)[1]
    exec(compile(script, "models.md", "exec"), {})
    commands = session()
    assert [command[:2] for command, _ in commands] == [
        ["iclda", "fit"],
        ["iclda", "predict"],
    ]
    for command, shown in commands:
        code, said, _ = call(*command[1:])
        assert code == 0
        assert STEPS.sub("in some steps", said) == STEPS.sub("in some steps", shown)


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "show"])
def test_every_option_is_on_the_page(command):
    said = call(command, "--help")[1]
    options = set(re.findall(r"--[a-z-]+", said)) - {"--help"}
    text = DOCUMENT.read_text()
    assert all(f"`{option}" in text for option in options), options


@pytest.mark.parametrize(
    "added_to_compare",
    [
        ["--fast", "--methods", "em", "--jobs", "1"],
        # As printed, with all methods and learning curves.
        pytest.param([], marks=pytest.mark.slow),
    ],
)
def test_the_commands_of_the_readme_run_in_an_empty_folder(
    added_to_compare, tmp_path, monkeypatch
):
    pytest.importorskip("jinja2", reason="reports need iclda[experiments]")
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / "README.md").read_text())
    [session] = [text for kind, text in blocks if kind == "sh" and "iclda fit" in text]
    commands = [shlex.split(line, comments=True) for line in session.splitlines()]
    (python, _, program), *commands = commands
    assert python == "python"
    exec(compile(program, "README.md", "exec"), {})
    said = {}
    for _, name, *arguments in commands:
        added = added_to_compare if name == "compare" else []
        code, output, _ = call(name, *arguments, *added)
        assert code == 0
        said[name] = said.get(name, "") + output
    assert list(said) == ["compare", "fit", "predict", "ask"]
    assert "fitted to 60 labeled and 340 unlabeled rows" in said["fit"]
    assert "Wrote predictions.csv: 400 rows." in said["predict"]
    assert "other" in said["predict"]
    assert "Added 20 rows to to_label.csv" in said["ask"]
