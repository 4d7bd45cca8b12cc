"""The command that opens the playground."""

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.helpers.table_files import call

pytest.importorskip("uvicorn", reason="the playground needs iclda[playground]")

from iclda import playground
from iclda._local_server import bind

DOCUMENT = Path(__file__).parents[2] / "docs" / "playground.md"
CODE = """
import sys, webbrowser
webbrowser.open = lambda address: print("opened", address, flush=True)
from iclda.__main__ import main
sys.argv = ["iclda", "playground", *sys.argv[1:]]
main()
"""


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-c", CODE, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize(
    ("ended_by", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)]
)
def test_it_prints_its_address_serves_the_page_and_ends_quietly(ended_by, code):
    process = start("--no-browser")
    address = process.stdout.readline().removeprefix("Playground: ").strip()
    assert process.stdout.readline() == "Press Ctrl-C to stop.\n"
    with urllib.request.urlopen(address, timeout=60) as page:
        assert "<title>Playground" in page.read().decode()
    process.send_signal(ended_by)
    said, error = process.communicate(timeout=60)
    assert (said, error, process.returncode) == ("", "", code)


def test_the_browser_opens_what_somebody_shared():
    process = start("http://127.0.0.1:1/other-token/#v=1&n=3")
    lines = {process.stdout.readline() for _ in range(3)}
    process.terminate()
    process.communicate(timeout=60)
    (opened,) = (line for line in lines if line.startswith("opened http://127.0.0.1:"))
    assert opened.endswith("/#v=1&n=3\n")
    assert "other-token" not in opened


def test_a_port_in_use_is_one_line_that_names_the_option():
    with bind(0) as listening:
        port = listening.getsockname()[1]
        code, said, error = call("playground", "--no-browser", "--port", port)
    assert (code, said) == (2, "")
    assert f"Error: --port {port} cannot be used (" in error


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setattr("iclda._system.find_spec", lambda name: None)
    code, _, error = call("playground", "--no-browser")
    assert (code, error) == (
        2,
        "Error: starlette is needed for the playground and is not installed: "
        "pip install 'iclda[playground]'.\n",
    )


def test_every_option_and_key_is_on_the_page_about_it():
    text = DOCUMENT.read_text()
    options = set(re.findall(r"--[a-z-]+", call("playground", "--help")[1])) - {
        "--help"
    }
    assert options == {"--port", "--no-browser"}
    assert all(f"`{option}" in text for option in options)
    page = (Path(playground.__file__).parent / "static" / "index.html").read_text()
    keys = set(re.findall(r"<kbd>(\w+)</kbd>", page)) - {"Shift"}
    assert len(keys) == 10
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert all(any(key in line.split("|")[1] for line in table) for key in keys)
