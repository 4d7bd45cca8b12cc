"""Processes that are killed for real."""

import fcntl
import signal
import subprocess
import sys
import time

PATIENCE = 30  # seconds for what takes one

# Workers that compute forever, each holding a lock that the system releases when it ends.
ENDLESS = """
import fcntl, os, sys
from pathlib import Path
from iclda.studies.engine import run_tasks
from iclda.studies.store import cells_of

folder = Path(sys.argv[1])

def run(cell, sets, methods):
    lock = open(folder / f"new-{os.getpid()}", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(lock.name, folder / f"held-{os.getpid()}")
    while True:
        sum(range(10_000))

tasks = [(cell, ["LDA"]) for cell in cells_of("tables", {"set": range(10)}, 2)]
list(run_tasks(tasks, {}, run, jobs=2))
"""


def wait_until(is_so, what):
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def is_free(path):
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_40_workers_of_a_killed_run_end_too(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(tmp_path)], stderr=subprocess.DEVNULL
    )
    try:
        held = lambda: list(tmp_path.glob("held-*"))  # noqa: E731
        wait_until(lambda: len(held()) == 2, "two workers have not started")
        assert not any(map(is_free, held()))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_until(lambda: all(map(is_free, held())), "a worker outlives its parent")
