"""Clocks that jump, and files of times that a clock cannot have had."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest
from table_files import call, write

from iclda import MomentConstrainedLDA, rows
from problems import draw_sample

TIMES = {"1970": 0, "2100": 4_102_444_800}
# The wall clock is right for a second, then three days ahead, then three days behind, and so on.
CLOCK = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    long failed = syscall(SYS_clock_gettime, id, now);
    if (!failed && id == CLOCK_REALTIME) now->tv_sec += 259200 * ((now->tv_sec + 1) % 3 - 1);
    return failed;
}
time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}
"""
STUDIES = {
    "compare": "flowers.csv --target species --methods em --repeats 3 --folds 3 --jobs 2",
    "tables": "--datasets Haberman --methods LDA,ICLDA --repeats 2 --jobs 2",
}


@pytest.mark.parametrize("time", TIMES.values(), ids=TIMES)
def test_54_files_of_any_time_are_read(tmp_path, time):
    sample = draw_sample(3, n_classes=2, n_features=3, n_labeled=20, n_unlabeled=500)
    path = tmp_path / "rows.npy"
    np.save(path, sample.X_unlabeled)
    os.utime(path, (time, time))
    model = MomentConstrainedLDA().fit(sample.X, sample.y, X_unlabeled=rows.open(path))
    expected = MomentConstrainedLDA().fit(sample.X, sample.y, X_unlabeled=sample.X_unlabeled)
    np.testing.assert_allclose(model.coef_, expected.coef_)


@pytest.mark.parametrize("time", TIMES.values(), ids=TIMES)
def test_54_a_model_and_a_table_of_any_time_are_used(tmp_path, time):
    data, out = write(tmp_path), tmp_path / "m.skops"
    options = ["--target", "species", "--method", "moment", "--out", out, "--quiet"]
    os.utime(data, (time, time))
    assert call("fit", data, *options) == (0, "", "")
    os.utime(out, (time, time))
    assert call("fit", data, *options) == (0, "", "")  # over a file of the future
    os.utime(out, (time, time))
    assert call("predict", out, data, "--out", tmp_path / "p.csv", "--quiet") == (0, "", "")


@pytest.fixture(scope="module")
def jumping(tmp_path_factory):
    """The environment of a process whose wall clock jumps; those of all others go on."""
    if shutil.which("cc") is None or sys.platform != "linux":
        pytest.skip("needs a C compiler, and a way to put its library before the system's")
    folder = tmp_path_factory.mktemp("clock")
    (folder / "clock.c").write_text(CLOCK)
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", folder / "clock.so", folder / "clock.c"]
    subprocess.run(command, check=True)
    settings = {name: value for name, value in os.environ.items() if name != "ICLDA_DATA"}
    settings["LD_PRELOAD"] = str(folder / "clock.so")
    script = "import time; t = [time.sleep(0.5) or time.time() for _ in range(7)]"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}; print(max(t) - min(t))"],
        env=settings,
        check=True,
        capture_output=True,
    )
    assert float(done.stdout) > 5 * 86400
    return settings


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_54_a_study_whose_clock_jumps_is_the_same(jumping, tmp_path, study):
    pytest.importorskip("jinja2", reason="reports need iclda[experiments]")
    write(tmp_path)
    command = [sys.executable, "-m", "iclda", study, *STUDIES[study].split(), "--quiet", "--out"]
    steady = {**jumping, "LD_PRELOAD": ""}
    for out, settings in (("jumping", jumping), ("steady", steady)):
        done = subprocess.run(
            [*command, out], cwd=tmp_path, env=settings, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    tables = [
        {path.name: path.read_bytes() for path in (tmp_path / out).rglob("*.csv")}
        for out in ("jumping", "steady")
    ]
    assert tables[0] == tables[1]
    with closing(sqlite3.connect(tmp_path / "jumping" / "rows.sqlite")) as connection:
        [least, most] = connection.execute("SELECT min(seconds), max(seconds) FROM rows").fetchone()
        times = connection.execute("SELECT value FROM settings WHERE name LIKE 'seconds_%'")
        assert all(0 <= float(value) < 86400 for [value] in times)
    assert 0 <= least <= most < 86400
