"""Commands in processes that may not have all the memory they ask for."""

import re
import signal
import subprocess
import sys

import pytest

from tests.helpers.table_files import flowers, write, write_model

# Beyond what Python and the packages take.
MEGABYTES = [4, 64, 256]
COMMANDS = {
    "fit": "fit many.csv --target species --method moment --out m.skops --quiet",
    "predict": "predict model.skops many.csv --out p.csv --quiet",
    "compare": "compare flowers.csv --target species --methods em --repeats 2 "
    "--folds 2 --jobs 1 "
    "--fast --out out --quiet",
}
# What is imported counts before: OpenBLAS waits for ever for memory that it is refused
# then.
LIMITED = """
import resource, sys
import jinja2, matplotlib.backends.backend_svg, matplotlib.figure, matplotlib.style
import pandas, pyarrow.csv, pyarrow.parquet, scipy.linalg, skops.io
import iclda.model_files, iclda.studies.compare.report, iclda.studies.compare.run
import iclda.tabular.fit, iclda.tabular.predict
import numpy as np
try:
    import typer._adapters  # of newer versions, which load it when a command is read
except ImportError:
    pass
scipy.linalg.eigh(np.eye(200) @ np.eye(200))
n_bytes = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
n_bytes += int(sys.argv.pop(1)) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
from iclda.__main__ import main
main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    write_model(folder, "moment")
    write(folder, flowers(300_000, 3000), "many.csv")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", MEGABYTES)
@pytest.mark.parametrize("command", COMMANDS)
def test_55_a_process_of_little_memory_ends_in_an_answer_or_in_one_line(
    folder, command, megabytes
):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(megabytes), *COMMANDS[command].split()],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    lines = done.stderr.splitlines()
    # Arrow gives up by itself, in C++, also where it cannot start a thread.
    if done.returncode == -signal.SIGABRT:
        assert re.search("/arrow/|std::system_error", done.stderr)
    elif done.returncode:
        assert (done.returncode, len(lines)) == (2, 1), done.stderr
        assert lines[0].startswith("Error: ")
        # Of a library that is loaded late.
        assert re.search("memory|failed to map", lines[0])
    else:
        assert lines == []
    assert not [path.name for path in folder.glob(".*")] or done.returncode < 0
