"""Print the newest version of every package of an extra, and of all that these need.

    python -m tools.newest_versions all     for this Python, as `make audit` asks
    python -m tools.newest_versions lint    for the oldest Python, as `make pins` asks

The lines are requirements or constraints of pip, which finds the versions without
installing any.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib

from tools.lower_bounds import PROJECT

# Its versions are the same for every Python: those that the oldest one can have.
FOR_EVERY_PYTHON = "lint"


def packages_of(extra, project):
    """Return the names of the packages that iclda needs with an extra."""
    found = set()
    extras = project["optional-dependencies"]
    for requirement in (*project["dependencies"], *extras[extra]):
        name, own = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", requirement).groups()
        if name == "iclda":
            for each in own.split(","):
                found |= packages_of(each, project)
        else:
            found.add(_normalized(name))
    return found


def pinned(report, wanted):
    """Return lines name==version of a report of pip.

    A ValueError is raised if a wanted package is not among them.
    """
    found = {}
    for entry in report["install"]:
        metadata = entry["metadata"]
        found[_normalized(metadata["name"])] = metadata["version"]
    found.pop("iclda", None)
    lacking = sorted(wanted - found.keys())
    if lacking:
        raise ValueError(
            f"pip would not install {', '.join(lacking)}, which pyproject.toml names."
        )
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def _normalized(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def resolve(requirement, python=None):
    """Return the report of pip on what it would install in an empty environment.

    ``python`` is the version of another Python than the one that runs this.
    """
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
    options = ["--quiet", "--disable-pip-version-check", "--report", "-"]
    with tempfile.TemporaryDirectory() as target:
        if python is not None:
            # pip asks for the other two: it can neither build for another Python nor
            # install into its own folders.
            options += ["--python-version", python, "--only-binary", ":all:"]
            options += ["--target", target]
        command = [*pip, *options, requirement]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    [extra] = sys.argv[1:]
    project = tomllib.loads(PROJECT.read_text())["project"]
    oldest = project["requires-python"].removeprefix(">=")
    python = oldest if extra == FOR_EVERY_PYTHON else None
    report = resolve(f"{PROJECT.parent}[{extra}]", python)
    print(*pinned(report, packages_of(extra, project)), sep="\n")
