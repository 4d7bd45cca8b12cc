"""Print the newest version of every package of ``iclda[all]``, for `make audit`.

    python -m tools.newest_versions > audited.txt
    pip-audit --requirement audited.txt --no-deps --disable-pip --strict

pip resolves them without installing any; packages that they need are listed too.
"""

import json
import re
import subprocess
import sys
import tomllib

from tools.lower_bounds import PROJECT, lower_bounds

# Extras that are not in ``all``.
NOT_INSTALLED = ("audit", "browser", "docs", "lint", "release", "test")


def pinned(report, project):
    """Return lines name==version of a report of pip.

    A ValueError is raised if a dependency is not among them.
    """
    found = {}
    for entry in report["install"]:
        metadata = entry["metadata"]
        found[_normalized(metadata["name"])] = metadata["version"]
    found.pop("iclda", None)
    extras = project["optional-dependencies"]
    kept = {name: extras[name] for name in extras if name not in NOT_INSTALLED}
    wanted = lower_bounds({**project, "optional-dependencies": kept})
    lacking = sorted(name for name in wanted if _normalized(name) not in found)
    if lacking:
        raise ValueError(
            f"pip would not install {', '.join(lacking)}, which pyproject.toml names."
        )
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def _normalized(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def resolve(requirement):
    """Return the report of pip on what it would install in an empty environment."""
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
    options = ["--quiet", "--disable-pip-version-check", "--report", "-"]
    done = subprocess.run(
        [*pip, *options, requirement], stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text())["project"]
    report = resolve(f"{PROJECT.parent}[all]")
    print(*pinned(report, project), sep="\n")
