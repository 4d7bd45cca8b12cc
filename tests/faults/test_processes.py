"""Processes that are killed for real, or run out of memory."""

import fcntl
import signal
import subprocess
import sys
import time

import pytest

from iclda.methods import METHODS

# Workers that compute forever, each holding a lock that the system releases when it
# ends.
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


def wait_until(is_so):
    """Wait for ever: pytest ends a test that takes too long, and shows where it is."""
    while not is_so():
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
        # Two workers have started.
        wait_until(lambda: len(held()) == 2)
        assert not any(map(is_free, held()))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    # No worker outlives its parent.
    wait_until(lambda: all(map(is_free, held())))


# Memory enough for Python, and by far not for the matrices of so many features or
# classes.
WITHIN_4_GIB = """
import resource, sys
import numpy as np
from iclda.methods import METHODS
resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
n_features, n_classes = map(int, sys.argv[1:])
X = np.zeros((2 * n_classes, n_features), dtype=np.int8)
y = np.arange(2 * n_classes) % n_classes
# Few rows without weights would not need such matrices.
weights = np.arange(2.0 * n_classes) + 1
for method in METHODS:
    try:
        method.classifier().fit(X, y, weights, X_unlabeled=X)
    except ValueError as error:
        print(error)
"""


FEW_ROWS_WITHIN_4_GIB = """
import resource, warnings
import numpy as np
from iclda import AutoLDA, AverageLDA, SemiSupervisedEnsemble
resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
X = np.random.default_rng(0).normal(size=(40, 20_000))
y = np.where(np.arange(40) < 20, np.arange(40) % 2, -1)
for classifier in (AutoLDA, AverageLDA, SemiSupervisedEnsemble):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = classifier().fit(X, y)
    print(fitted.predict_proba(X).shape)
"""


def test_51_few_rows_are_fitted_though_memory_cannot_hold_their_covariance():
    done = subprocess.run(
        [sys.executable, "-c", FEW_ROWS_WITHIN_4_GIB], capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout == "(40, 2)\n" * 3


@pytest.mark.parametrize(("n_features", "n_classes"), [(10_000, 2), (7_000, 7_000)])
def test_51_what_memory_cannot_hold_is_refused_before_it_is_tried(
    n_features, n_classes
):
    done = subprocess.run(
        [sys.executable, "-c", WITHIN_4_GIB, str(n_features), str(n_classes)],
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    for method, message in zip(METHODS, done.stdout.splitlines(), strict=True):
        assert message.startswith(f"{method.class_name} needs about ")
        assert (
            f"{n_features:,} features and {n_classes:,} classes, and there are 4 GiB"
            in message
        )
