"""Help in plain lines."""

import re

import pytest
from table_files import call

from iclda.cli import app

COMMANDS = [each.name or each.callback.__name__ for each in app.registered_commands]


@pytest.mark.parametrize("command", COMMANDS)
def test_h_is_help_and_help_shows_no_names_of_python_types(command):
    code, said, _ = call(command, "-h")
    assert code == 0
    assert said == call(command, "--help")[1]
    assert not re.search(r"[<{}]|x>=|int range", said)
    assert max(map(len, said.splitlines())) <= 80
    assert not re.search(r"\w-\n", said)  # names can be copied


def test_the_first_lines_of_all_commands_are_whole():
    said = call("-h")[1]
    assert "..." not in said.partition("Commands:")[2]
    assert all(f"  {command}  " in said for command in COMMANDS)
