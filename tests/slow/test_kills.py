"""Studies that are killed, or run twice at once, end with the same tables."""

import os
import random
import signal
import sqlite3
import subprocess
import time

import pytest

from tests.helpers.processes import assert_all_end, start, workers_of
from tests.helpers.table_files import write

# A hundred of both studies together.
N_ROUNDS = 2
N_KILLS = 25
STUDIES = {
    "reproduce": "--datasets Haberman --methods LDA,ICLDA --repeats 2 "
    "--curve-repeats 2",
    "compare": "flowers.csv --target species --methods em,iclda --repeats 2 "
    "--folds 3 --fast",
}


def begin(folder, study):
    folder.mkdir(exist_ok=True)
    for name in ("temporary", "out"):
        (folder / name).mkdir(exist_ok=True)
    if not (folder / "flowers.csv").exists():
        write(folder)
    # joblib takes /dev/shm otherwise, where others work too.
    places = {
        name: str(folder / "temporary") for name in ("TMPDIR", "JOBLIB_TEMP_FOLDER")
    }
    options = [study, *STUDIES[study].split(), "--jobs", "2", "--out", "out", "--quiet"]
    return start(folder, *options, env=places)


def end(process):
    said = process.communicate()
    assert (process.returncode, said) == (0, ("", ""))
    assert_all_end(process.mark)


def files_in(folder):
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
        # These hold times.
        if path.suffix not in (".sqlite", ".html")
    }


def rows_in(folder):
    """Results in the order of their keys, without the time they took."""
    connection = sqlite3.connect(folder / "out" / "rows.sqlite")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.row_factory = sqlite3.Row
    found = connection.execute("SELECT * FROM rows ORDER BY 1, 2, 3, 4, 5")
    rows = [{k: v for k, v in dict(row).items() if k != "seconds"} for row in found]
    connection.close()
    return rows


@pytest.fixture(scope="module", params=STUDIES)
def alone(request, tmp_path_factory):
    """A study that nobody disturbs: its name, its folder, and how long it took."""
    folder = tmp_path_factory.mktemp("alone")
    begun = time.monotonic()
    end(begin(folder, request.param))
    return request.param, folder, time.monotonic() - begun


def assert_nothing_was_lost(folder, undisturbed):
    assert rows_in(folder) == rows_in(undisturbed)
    assert files_in(folder) == files_in(undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(N_ROUNDS))
def test_40_a_hundred_random_kills_lose_nothing_and_change_no_table(
    alone, tmp_path, seed
):
    study, undisturbed, seconds = alone
    moments = random.Random(seed)
    marks = []
    n_kills = 0
    folder = tmp_path / "0"
    while n_kills < N_KILLS:
        process = begin(folder, study)
        marks.append(process.mark)
        # First one of its workers, whose work is done again.
        if moments.random() < 0.3:
            time.sleep(moments.uniform(0.1, 0.5) * seconds)
            for worker in workers_of(process)[:1]:
                os.kill(worker, signal.SIGKILL)
                n_kills += 1
        try:
            process.wait(moments.uniform(0, 0.7) * seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            n_kills += 1
        # Done before its moment: another one.
        else:
            end(process)
            assert_nothing_was_lost(folder, undisturbed)
            folder = tmp_path / str(n_kills)
            continue
        process.communicate()
        # Or the next one starts beside what is left.
        if moments.random() < 0.5:
            assert_all_end(process.mark)
    for mark in marks:
        assert_all_end(mark)
    end(begin(folder, study))
    assert_nothing_was_lost(folder, undisturbed)


@pytest.mark.slow
def test_42_of_two_commands_at_once_one_is_refused(alone, tmp_path):
    study, undisturbed, _ = alone
    both = [begin(tmp_path / "0", study) for _ in range(2)]
    said = [process.communicate()[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2]
    refused = next(
        text for text, process in zip(said, both, strict=True) if process.returncode
    )
    assert refused.startswith("Error: Another run is writing to ")
    assert_nothing_was_lost(tmp_path / "0", undisturbed)
