"""Check that a release is ready: built twice, installed, and as the README says.

Run by `make release-check`. Wheel and sdist are left in dist/.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from tests.helpers.documents import NUMBER, assert_same_output, blocks

ROOT = Path(__file__).parents[1]
BIN = "Scripts" if os.name == "nt" else "bin"
# A terminal of the width of the README's output.
COLUMNS = "80"


def run(command, **arguments):
    """Return the standard output of a command; its errors are ours."""
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, **arguments)
    if finished.returncode:
        sys.exit(f"{finished.stdout}\nThis failed: {' '.join(map(str, command))}")
    return finished.stdout


def build(source, out):
    """Build sdist and wheel of a copy of the files; return their SHA-256 by name."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in run(listing, cwd=ROOT).splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    date = run(["git", "log", "-1", "--format=%ct"], cwd=ROOT).strip()
    command = [sys.executable, "-m", "build", "--outdir", str(out), str(source)]
    run(command, env={**os.environ, "SOURCE_DATE_EPOCH": date})
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in out.iterdir()
    }


def build_twice(folder):
    """Build twice and compare; leave the files in dist/ and return the wheel."""
    digests = [build(folder / f"source-{i}", folder / f"dist-{i}") for i in (1, 2)]
    if digests[0] != digests[1] or len(digests[0]) != 2:
        sys.exit(f"Two builds differ: {digests}")
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    shutil.copytree(folder / "dist-1", ROOT / "dist")
    for file, digest in sorted(digests[0].items()):
        print(f"{digest}  dist/{file}")
    [wheel] = (ROOT / "dist").glob("*.whl")
    return wheel


def new_environment(folder, requirement):
    """Make an environment with this requirement only; return its folder of programs."""
    venv.create(folder, with_pip=True)
    run([folder / BIN / "python", "-m", "pip", "install", "--quiet", requirement])
    return folder / BIN


def blocks_with_output(document, wanted_language):
    """Yield the code of every block of a language, and what is shown after it."""
    for (language, code), (next_language, shown) in pairwise(blocks(document)):
        if language == wanted_language and next_language == "text":
            yield code, shown


def follow_python(programs, folder):
    """Run the Python code of the README, which must print what is shown."""
    for code, shown in blocks_with_output(ROOT / "README.md", "python"):
        printed = run([programs / "python", "-I", "-c", code], cwd=folder)
        assert_same_output(printed, shown)


def follow_commands(programs, folder):
    """Run the commands of the README, which must print all lines up to numbers."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": COLUMNS}
    environment.pop("PYTHONPATH", None)
    for code, shown in blocks_with_output(ROOT / "README.md", "sh"):
        printed = run(["bash", "-e", "-c", code], cwd=folder, env=environment)
        lines = {_without_numbers(line) for line in printed.splitlines()}
        missing = [
            line for line in shown.splitlines() if _without_numbers(line) not in lines
        ]
        if any(missing):
            sys.exit(
                f"{printed}\nThe README shows lines that are not printed: {missing}"
            )


def _without_numbers(line):
    return NUMBER.sub("#", line.strip())


@contextmanager
def timed(words):
    """Print what was done in the block, and the seconds it took."""
    begin = time.perf_counter()
    yield
    print(f"{words}: {time.perf_counter() - begin:.0f} s", flush=True)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        empty = folder / "empty"
        empty.mkdir()
        with timed("Two builds are equal"):
            wheel = build_twice(folder)
        with timed("In an empty environment the code of the README prints the same"):
            follow_python(new_environment(folder / "plain", str(wheel)), empty)
        with timed("Installed iclda[all] in an empty environment"):
            programs = new_environment(folder / "all", f"{wheel}[all]")
        with timed("The commands of the README print what it shows"):
            follow_commands(programs, empty)


if __name__ == "__main__":
    main()
