"""Ctrl-C, which a terminal sends to the command and its workers, and SIGTERM.

They come at any moment.

Moments count from when the command has Python to itself: until then, a few hundredths
of a second, Python answers.
"""

import os
import random
import signal
import time
from itertools import count
from pathlib import Path

import pytest

from tests.helpers.processes import assert_all_end, start
from tests.helpers.table_files import call, write

# Of each command. More come until enough of them have stopped it: others come after its
# end, for example if the machine was busy while its time was taken.
N_MOMENTS = {signal.SIGINT: 32, signal.SIGTERM: 16}
MIN_STOPPED = {signal.SIGINT: 17, signal.SIGTERM: 5}
EARLIER = b"what was there"
COMMANDS = {
    "fit": "flowers.csv --target species --method iclda --out m.skops --force",
    "predict": "model.skops flowers.csv --out p.csv --force",
    "compare": "flowers.csv --target species --methods em --repeats 2 --folds 3 "
    "--jobs 2 --out out",
    "reproduce": "--datasets Haberman --methods LDA,ICLDA --repeats 2 "
    "--curve-repeats 2 --jobs 2 "
    "--out out",
}
PROGRESS = ("tables: ", "curves: ", "comparison: ", "curve of ", "Tables (", "All of ")
KNOWN = (
    *PROGRESS,
    "out. What an earlier run left",
    "Reading the table: ",
    "Writing the report: ",
    "First ranking by ",
)


def begin(folder, command):
    process = start(folder, command, *COMMANDS[command].split())
    status = Path(f"/proc/{process.pid}/status")
    while (
        process.poll() is None
        # Until it answers SIGTERM itself, which Python does not.
    ):
        line = next(
            (x for x in status.read_text().splitlines() if x.startswith("SigCgt")),
            "x 0",
        )
        if int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
            break
        time.sleep(0.005)
    return process


def end(process):
    _, error = process.communicate(timeout=600)
    lines = error.splitlines()
    while lines and lines[0].startswith(KNOWN):
        del lines[0]
    assert_all_end(process.mark)
    return process.returncode, lines


def files_in(folder):
    paths = (folder / "out").rglob("*")
    return {path.name: path.read_bytes() for path in paths if path.suffix == ".csv"}


@pytest.fixture(params=COMMANDS)
def command(request, tmp_path, monkeypatch):
    """A command, and how long it takes from its first moment to its end."""
    monkeypatch.chdir(tmp_path)
    data = write(tmp_path)
    options = ["--target", "species", "--quiet"]
    assert call("fit", data, *options, "--out", tmp_path / "model.skops")[0] == 0
    process = begin(tmp_path, request.param)
    begun = time.monotonic()
    assert end(process) == (0, [])
    return request.param, time.monotonic() - begun


def stop_at_any_moment(folder, command, seconds, number):
    """Exit codes and lines of what was stopped.

    Every third time the folder of a study is still empty.
    """
    moments = random.Random(number)
    stopped = []
    expected = files_in(folder)
    out = folder / "out"
    for k in count():
        if k >= N_MOMENTS[number] and len(stopped) >= MIN_STOPPED[number]:
            break
        for name in ("m.skops", "p.csv"):
            (folder / name).write_bytes(EARLIER)
        if k % 3 == 0 and out.exists():
            out.rename(folder / f"out-{number}-{k}")
        process = begin(folder, command)
        time.sleep(moments.uniform(0, 0.9 * seconds))
        if process.poll() is None:
            os.killpg(process.pid, number)
        code, lines = end(process)
        if code != 0:
            stopped.append((code, lines))
        if lines == ["Interrupted. Nothing was written."]:
            assert (folder / "m.skops").read_bytes() == EARLIER
            assert (folder / "p.csv").read_bytes() == EARLIER
        assert not list(folder.rglob(".*"))
    assert end(begin(folder, command)) == (0, [])
    assert files_in(folder) == expected
    return stopped


@pytest.mark.slow
def test_47_ctrl_c_at_any_moment_is_one_line(command, tmp_path):
    for code, lines in stop_at_any_moment(tmp_path, *command, signal.SIGINT):
        # The system reports what was interrupted in the last moments, as Python ends.
        assert (code, len(lines)) in ((130, 1), (-signal.SIGINT, 0)), lines
        assert all(line.startswith("Interrupted.") for line in lines)


@pytest.mark.slow
def test_47_sigterm_at_any_moment_says_nothing(command, tmp_path):
    for each in stop_at_any_moment(tmp_path, *command, signal.SIGTERM):
        assert each in ((143, []), (-signal.SIGTERM, []))
