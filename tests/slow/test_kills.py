"""A run killed over and over ends with the tables of one that was left alone."""

import random
import subprocess
import sys
import time

import pytest

COMMAND = [sys.executable, "-m", "iclda", "tables", "--datasets", "WDBC", "--quiet"]
OPTIONS = ["--repeats", "4", "--methods", "LDA,SLLDA,ICLDA"]
N_KILLS = 20


def tables_in(folder):
    return {path.name: path.read_bytes() for path in (folder / "results" / "tables").iterdir()}


@pytest.mark.slow
def test_40_twenty_random_kills_change_no_table(tmp_path):
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    alone.mkdir()
    killed.mkdir()
    subprocess.run([*COMMAND, *OPTIONS, "--jobs", "1"], cwd=alone, check=True)
    moments = random.Random(0)
    n_unfinished = 0
    for _ in range(N_KILLS):
        process = subprocess.Popen([*COMMAND, *OPTIONS, "--jobs", "2"], cwd=killed)
        time.sleep(moments.uniform(0.5, 3.0))
        n_unfinished += process.poll() is None
        process.kill()  # its workers end by themselves
        process.wait()
    assert n_unfinished > N_KILLS / 2
    subprocess.run([*COMMAND, *OPTIONS, "--jobs", "2"], cwd=killed, check=True)
    assert tables_in(killed) == tables_in(alone)
