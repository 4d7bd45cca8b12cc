"""Commands in processes of their own, found again by a mark in their environment."""

import os
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

MARK = "ICLDA_TEST_MARK"
# For what a killed command leaves running.
SECONDS_TO_END = 10


def start(folder, *arguments, **options):
    """A command in a session of its own.

    ``mark`` tells it and its workers from all others.
    """
    mark = uuid4().hex
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(
        [sys.executable, "-m", "iclda", *map(str, arguments)],
        cwd=folder,
        start_new_session=True,
        **{
            **pipes,
            **options,
            "env": {**os.environ, **options.get("env", {}), MARK: mark},
        },
    )
    process.mark = mark
    return process


def marked(mark):
    """Processes that have a mark, as process number -> command line."""
    wanted = f"{MARK}={mark}".encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (
                    (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                )
        except OSError:  # it has ended, or is another user's
            continue
    return {pid: line.decode() for pid, line in found.items() if line}


def workers_of(process):
    """Process numbers of the workers of a command."""
    return [pid for pid, line in marked(process.mark).items() if "popen_loky" in line]


def assert_all_end(mark):
    """Nothing of a command runs on."""
    deadline = time.monotonic() + SECONDS_TO_END
    while left := marked(mark):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)
