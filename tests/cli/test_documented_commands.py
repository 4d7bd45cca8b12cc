"""The commands of the documents print what is shown."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from tests.helpers.table_files import call

DOCUMENT = Path(__file__).parents[2] / "docs" / "models.md"
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
