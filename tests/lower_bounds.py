"""Print the lowest supported version of every dependency, as constraints of pip.

    python tests/lower_bounds.py > constraints.txt
    pip install --constraint constraints.txt --editable '.[test]'

All bounds of pyproject.toml count, those of the extras too: the highest one of a
package holds.
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
BOUND = re.compile(r"^(?P<name>[a-z0-9-]+)>=(?P<version>\d+(\.\d+)*)$")
LINTERS = "lint"  # not part of what is tested


def lower_bounds(project):
    """Name of package -> lowest version."""
    extras = {k: v for k, v in project["optional-dependencies"].items() if k != LINTERS}
    found = {}
    for requirement in [
        *project["dependencies"],
        *(each for v in extras.values() for each in v),
    ]:
        match = BOUND.match(requirement)
        if match is None:
            if requirement.startswith("iclda["):
                continue
            raise ValueError(
                f"{requirement!r} in pyproject.toml is not of the form name>=1.2."
            )
        name, version = match["name"], match["version"]
        found[name] = max(found.get(name, "0"), version, key=_parts)
    return found


def _parts(version):
    return [int(part) for part in version.split(".")]


if __name__ == "__main__":
    bounds = lower_bounds(tomllib.loads(PROJECT.read_text())["project"])
    print(*(f"{name}=={version}" for name, version in sorted(bounds.items())), sep="\n")
