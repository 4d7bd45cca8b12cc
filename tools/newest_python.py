"""Print the path of the newest Python of this machine, for `make test-newest`.

Only versions that pyproject.toml names and that are newer than the one that runs this
count; if there is none, nothing is printed. They are looked for on the PATH, then where
pyenv and uv have installed some.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tools.lower_bounds import PROJECT

# A Python from which an environment can be made.
PROBE = "import ensurepip, sys; print(sys.executable)"


def newer_versions(project, current):
    """Return the versions that are named and newer than the current, newest first."""
    named = re.findall(r":: 3\.(\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)
    minors = sorted((int(minor) for minor in named), reverse=True)
    return [f"3.{minor}" for minor in minors if (3, minor) > current]


def places(version):
    """Yield programs that are this version of Python, if they exist and start."""
    # A shim of pyenv on the PATH is there for versions that are not chosen, too, and
    # then fails.
    yield f"python{version}"
    if shutil.which("pyenv"):
        root = Path(_printed_by("pyenv", "root"))
        yield from sorted(root.glob(f"versions/{version}.*/bin/python{version}"))
    if shutil.which("uv"):
        yield _printed_by("uv", "python", "find", "--no-python-downloads", version)


def find_newest(versions):
    """Return the path of the first of these versions that the machine has, or ""."""
    for version in versions:
        for place in places(version):
            if path := _printed_by(place, "-c", PROBE):
                return path
    return ""


def _printed_by(*command):
    """Return what a command prints, "" if it fails or does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return "" if done.returncode else done.stdout.strip()


if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text())["project"]
    print(find_newest(newer_versions(project, sys.version_info[:2])))
