"""Print the newest versions of all packages of ``iclda[all]``, for `make audit`.

    python tests/newest_versions.py > audited.txt
    pip-audit --requirement audited.txt --no-deps --disable-pip --strict

pip resolves them without installing any; packages that they need are listed too.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from lower_bounds import PROJECT, lower_bounds

NOT_INSTALLED = (
    "audit",
    "browser",
    "docs",
    "lint",
    "release",
    "test",
)  # extras not in `all`


def pinned(report, project):
    """Lines name==version of a report of pip, which must have every dependency."""
    found = {
        _plain(each["metadata"]["name"]): each["metadata"]["version"]
        for each in report["install"]
    }
    found.pop("iclda", None)
    extras = project["optional-dependencies"]
    kept = {name: each for name, each in extras.items() if name not in NOT_INSTALLED}
    wanted = lower_bounds({**project, "optional-dependencies": kept})
    lacking = sorted(name for name in wanted if _plain(name) not in found)
    if lacking:
        raise ValueError(
            f"pip would not install {', '.join(lacking)}, which pyproject.toml names."
        )
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def _plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def resolve(requirement):
    """The report of pip on what it would install in an empty environment."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--ignore-installed",
    ]
    options = ["--quiet", "--disable-pip-version-check", "--report", "-"]
    done = subprocess.run(
        [*command, *options, requirement], stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text())["project"]
    print(*pinned(resolve(f"{Path(PROJECT).parent}[all]"), project), sep="\n")
