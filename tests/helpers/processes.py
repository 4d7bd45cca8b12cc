"""Commands in processes of their own, found again by a mark in their environment."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

MARK = "ICLDA_TEST_MARK"
# What a killed command leaves running ends within a second or two. What still runs
# after this time hangs, even on a busy machine.
SECONDS_TO_END = 600


@contextmanager
def _interruptible():
    """Let Ctrl-C reach the commands that are started here.

    A shell that starts tests in the background has them ignore it, and so what they
    start.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def start(folder, *arguments, **options):
    """Start a command in a session of its own.

    Its ``mark`` tells it and its workers from all other processes.
    """
    mark = uuid4().hex
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    settings |= options
    settings["env"] = {**os.environ, **options.get("env", {}), MARK: mark}
    with _interruptible():
        process = subprocess.Popen(
            [sys.executable, "-m", "iclda", *map(str, arguments)],
            cwd=folder,
            start_new_session=True,
            **settings,
        )
    process.mark = mark
    return process


def marked(mark):
    """Processes that have a mark, as process number -> command line."""
    wanted = f"{MARK}={mark}".encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        # A process may have ended, or be another user's.
        with suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(folder.name)] = line.decode()
    return {pid: line for pid, line in found.items() if line}


def workers_of(process):
    """Process numbers of the workers of a command."""
    return [pid for pid, line in marked(process.mark).items() if "popen_loky" in line]


def assert_all_end(mark):
    """Nothing of a command runs on."""
    deadline = time.monotonic() + SECONDS_TO_END
    while left := marked(mark):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)
