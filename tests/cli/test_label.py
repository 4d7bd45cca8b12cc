"""The command of the labeling page: what it serves, says at the end, and refuses."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.table_files import call

pytest.importorskip("uvicorn", reason="the page needs iclda[playground]")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """30 rows of a table with a column of images, the first of which does not open."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "0.png").write_bytes(b"no image")
    x = np.random.default_rng(0).normal(size=30)
    frame = pd.DataFrame({"picture": [f"{k}.png" for k in range(30)], "x": x})
    frame.to_csv("rows.csv", index=False)
    np.save("x.npy", np.zeros((3, 2)))
    return tmp_path


def request(address, path, **sent):
    body = json.dumps(sent).encode() if sent else None
    with urllib.request.urlopen(address + path, body, timeout=60) as response:
        return json.loads(response.read())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_it_serves_rows_takes_answers_and_names_the_next_command(folder):
    command = [sys.executable, "-m", "iclda", "label", "rows.csv", "--no-browser"]
    command += ["--target", "label"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    address = process.stdout.readline().removeprefix("Labeling: ").strip()
    assert "Answers are saved in to_label.csv" in process.stdout.readline()
    remark = process.stdout.readline()
    assert remark.startswith("Note: Column 'picture' holds 30 different texts")
    row = request(address, "state")["row"]
    assert (
        row["problem"] == ""
        if row["id"] == "0"
        else "does not exist." in row["problem"]
    )
    assert request(address, "answer", id=row["id"], label="cat")["n_labeled"] == 1
    process.send_signal(signal.SIGINT)
    said, error = process.communicate(timeout=60)
    assert (error, process.returncode) == ("", 0)
    assert said.strip() == (
        "1 label in to_label.csv, 19 rows still to label. Next: run the same "
        "command again, because a fit needs labels of two classes"
    )


@pytest.mark.parametrize(
    ("answers", "options", "message"),
    [
        (
            None,
            ["rows.csv", "--images", "nowhere"],
            "no column 'nowhere', and there is no such folder of",
        ),
        (
            None,
            ["rows.csv", "--images", "."],
            "and rows.csv has 30 rows: there must be one for every",
        ),
        (None, ["rows.csv", "--id", "picure"], "Did you mean 'picture' for 'picure'?"),
        (None, ["rows.csv", "--labels", "no/l.csv"], "There is no folder no for l.csv"),
        ("row;label;how\n1;cat;chosen\n", ["rows.csv"], "not a file of rows to label"),
        (
            None,
            ["x.npy"],
            "x.npy holds nothing to look at: set --images to a folder of images.",
        ),
    ],
)
def test_what_cannot_be_labeled_is_refused_and_nothing_is_lost(
    folder, answers, options, message
):
    if answers is not None:
        Path("to_label.csv").write_text(answers)
    target = () if "x.npy" in options else ("--target", "label")
    code, said, error = call("label", *options, *target, "--no-browser")
    assert (code, said) == (2, "")
    assert message in error
    path = Path("to_label.csv")
    assert (path.read_text() if path.exists() else None) == answers


def test_a_port_that_is_taken_leaves_no_file(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, _, error = call(
            "label", "rows.csv", "--target", "label", "--no-browser", "--port", port
        )
    assert (code, port in error) == (2, True)
    assert not Path("to_label.csv").exists()
