"""The library speaks of parameters, the command line of options."""

import ast
import errno
import os
import re
from pathlib import Path

import pytest

pytest.importorskip("typer", reason="the command line needs iclda[experiments]")

import typer

import iclda
from iclda.__main__ import make_app
from iclda._messages import Column, Hint, Text
from iclda.cli.messages import error_line, in_options, option

SOURCE = Path(iclda.__file__).parent
LIBRARY = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if path.relative_to(SOURCE).parts[0] not in ("cli", "__main__.py")
]


def hints():
    """Parameter of every hint that the library writes out."""
    for path in LIBRARY:
        for node in ast.walk(ast.parse(path.read_text())):
            is_hint = (
                isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Hint"
            )
            if is_hint and node.args and isinstance(node.args[0], ast.Constant):
                yield node.args[0].value


def options():
    commands = typer.main.get_command(make_app()).commands.values()
    return {
        name for command in commands for each in command.params for name in each.opts
    }


def test_no_string_of_the_library_names_an_option():
    found = [
        f"{path.relative_to(SOURCE)}: {node.value}"
        for path in LIBRARY
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.search(r"(?<![\w-])--[a-z]", node.value)
    ]
    assert not found


def test_every_parameter_that_a_message_names_is_an_option():
    known = options()
    plain = {*hints()}
    for path in (*LIBRARY, *SOURCE.rglob("*.toml")):
        plain |= {*re.findall(r"\{@(\w+)", path.read_text())}
    # The example in the docstring of ``say``.
    plain.discard("name")
    assert {"shrinkage", "drop", "out", "methods"} <= plain
    assert [name for name in plain if option(Hint(name)) not in known] == []


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        (Hint("shrinkage", "auto"), "--shrinkage auto"),
        (Hint("n_labeled", 30), "--labeled 30"),
        (Hint("unlabeled_file"), "--unlabeled-file"),
        (Hint("drop", ["a b", "c"]), "--drop 'a b' --drop c"),
        (Hint("unlabeled", "?"), "--unlabeled '?'"),
    ],
)
def test_hints_become_options(hint, shown):
    assert option(hint) == shown


def test_words_that_look_like_parameters_stay_what_they_are():
    text = Text(
        "Column 'pass shrinkage' and ", Column(1, "drop the column"), ": ", Hint("drop")
    )
    assert (
        in_options(text)
        == "Column 'pass shrinkage' and column 'drop the column': --drop"
    )
    assert in_options("priors must") == "priors must"


@pytest.mark.parametrize(
    ("number", "way_out"),
    [
        (errno.EACCES, "change its permissions, or name another file or folder"),
        (errno.EROFS, "name another folder, or allow writing there"),
        (errno.ENOSPC, "make room there, or name another folder"),
    ],
    ids=["permission", "read-only", "full"],
)
def test_an_error_of_the_file_system_says_what_helps(number, way_out):
    error = OSError(number, os.strerror(number), "data.csv")
    assert error_line(error) == f"Error: data.csv: {os.strerror(number)}: {way_out}."
