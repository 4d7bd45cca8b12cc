"""Build the release twice, install it in empty environments, follow the README.

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
from itertools import pairwise
from pathlib import Path

from test_documents import NUMBER, assert_same_output, blocks

ROOT = Path(__file__).parents[1]
BIN = "Scripts" if os.name == "nt" else "bin"


def run(command, **arguments):
    """Standard output of a command; its errors are ours."""
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, **arguments)
    if finished.returncode:
        sys.exit(f"{finished.stdout}\nThis failed: {' '.join(map(str, command))}")
    return finished.stdout


def build(source, out):
    """Build sdist, and the wheel from it, of a copy of the tracked files."""
    listed = run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT
    )
    for name in listed.splitlines():
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


def new_environment(folder, requirement):
    """Path of the programs of an environment that has nothing but this requirement."""
    venv.create(folder, with_pip=True)
    run([folder / BIN / "python", "-m", "pip", "install", "--quiet", requirement])
    return folder / BIN


def shown_after(document):
    """(language, code, what is shown after it) of every block of code with output."""
    found = blocks(document)
    for (language, code), (after, text) in pairwise(found):
        if language in ("python", "sh") and after == "text":
            yield language, code, text


def follow_python(programs, folder):
    for language, code, shown in shown_after(ROOT / "README.md"):
        if language == "python":
            assert_same_output(
                run([programs / "python", "-I", "-c", code], cwd=folder), shown
            )


def follow_commands(programs, folder):
    """Run the commands; every line that is shown is printed, up to its numbers."""
    path = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "90",
    }
    path.pop("PYTHONPATH", None)
    for language, code, shown in shown_after(ROOT / "README.md"):
        if language == "sh":
            printed = run(["bash", "-e", "-c", code], cwd=folder, env=path)
            lines = {NUMBER.sub("#", line.strip()) for line in printed.splitlines()}
            missing = [
                s for s in shown.splitlines() if NUMBER.sub("#", s.strip()) not in lines
            ]
            if any(missing):
                sys.exit(
                    f"{printed}\nThe README shows lines that are not printed: {missing}"
                )


def report(words, began):
    print(f"{words}: {time.perf_counter() - began:.0f} s", flush=True)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.perf_counter()
        digests = [build(folder / f"source-{i}", folder / f"dist-{i}") for i in (1, 2)]
        if digests[0] != digests[1] or len(digests[0]) != 2:
            sys.exit(f"Two builds differ: {digests}")
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        shutil.copytree(folder / "dist-1", ROOT / "dist")
        for file, digest in sorted(digests[0].items()):
            print(f"{digest}  dist/{file}")
        report("Two builds are equal", began)
        (wheel,) = (ROOT / "dist").glob("*.whl")
        empty = folder / "empty"
        empty.mkdir()

        began = time.perf_counter()
        follow_python(new_environment(folder / "plain", str(wheel)), empty)
        done = "Installed in an empty environment, the code of the README printed"
        report(f"{done} the same", began)

        began = time.perf_counter()
        programs = new_environment(folder / "all", f"{wheel}[all]")
        report("Installed iclda[all] in an empty environment", began)
        began = time.perf_counter()
        follow_commands(programs, empty)
        report("The commands of the README printed what it shows", began)


if __name__ == "__main__":
    main()
