"""Processes that are killed for real, or run out of memory."""

import fcntl
import signal
import subprocess
import sys
import time

import pytest

from iclda.methods import METHODS

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


# Two processes that open the same new store at the same moment, in many folders.
AT_ONCE = """
import multiprocessing, sys
from pathlib import Path
from iclda.studies.store import Store, StoreError

def open_stores(folder, n_stores, barrier, queue):
    for i in range(n_stores):
        barrier.wait()
        try:
            store = Store(folder / str(i) / "rows.sqlite", kind="paper")
            answer = "opened"
        except StoreError as error:
            store, answer = None, str(error)
        queue.put((i, answer))
        barrier.wait()
        if store:
            store.close()

context = multiprocessing.get_context("fork")
barrier, queue = context.Barrier(2), context.SimpleQueue()
arguments = Path(sys.argv[1]), int(sys.argv[2]), barrier, queue
processes = [context.Process(target=open_stores, args=arguments) for _ in range(2)]
for process in processes:
    process.start()
for i, answer in (queue.get() for _ in range(2 * arguments[1])):
    print(i, answer)
"""
N_STORES = 50


def test_42_of_two_runs_that_start_at_once_one_is_refused(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE, str(tmp_path), str(N_STORES)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    answers = {}
    for line in done.stdout.splitlines():
        number, _, answer = line.partition(" ")
        answers.setdefault(int(number), []).append(answer)
    assert set(answers) == set(range(N_STORES))
    for number, pair in answers.items():
        refused = f"Another run is writing to {tmp_path / str(number)}: wait for it, or use another"
        assert sorted(pair)[1] == "opened"
        assert sorted(pair)[0].startswith(refused)


# Memory enough for Python, and by far not for the matrices of so many features or classes.
WITHIN_4_GIB = """
import resource, sys
import numpy as np
from iclda.methods import METHODS
resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
n_features, n_classes = map(int, sys.argv[1:])
X = np.zeros((2 * n_classes, n_features), dtype=np.int8)
y = np.arange(2 * n_classes) % n_classes
weights = np.arange(2.0 * n_classes) + 1  # few rows without weights need no such matrices
for method in METHODS:
    try:
        method.classifier().fit(X, y, weights, X_unlabeled=X)
    except ValueError as error:
        print(error)
"""


@pytest.mark.parametrize(("n_features", "n_classes"), [(10_000, 2), (7_000, 7_000)])
def test_51_what_memory_cannot_hold_is_refused_before_it_is_tried(n_features, n_classes):
    done = subprocess.run(
        [sys.executable, "-c", WITHIN_4_GIB, str(n_features), str(n_classes)],
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    for method, message in zip(METHODS, done.stdout.splitlines(), strict=True):
        assert message.startswith(f"{method.class_name} needs about ")
        assert f"{n_features:,} features and {n_classes:,} classes, and there are 4 GiB" in message
