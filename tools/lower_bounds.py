"""Print the lowest supported version of every dependency, as constraints of pip or uv.

    python -m tools.lower_bounds > constraints.txt
    pip install --constraint constraints.txt --editable '.[test]'

All bounds of pyproject.toml count, those of the extras too: the highest one of a
package holds.
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
BOUND = re.compile(r"^(?P<name>[a-z0-9-]+)>=(?P<version>\d+(\.\d+)*)$")
# The extra of the linters, which are not part of what is tested.
LINTERS = "lint"


def lower_bounds(project):
    """Return a dictionary from packages to their lowest versions."""
    requirements = list(project["dependencies"])
    for extra, listed in project["optional-dependencies"].items():
        if extra != LINTERS:
            requirements += listed
    found = {}
    for requirement in requirements:
        # An extra that consists of other extras.
        if requirement.startswith("iclda["):
            continue
        match = BOUND.match(requirement)
        if match is None:
            raise ValueError(
                f"{requirement!r} in pyproject.toml is not of the form name>=1.2."
            )
        name = match["name"]
        found[name] = max(found.get(name, "0"), match["version"], key=_parts)
    return found


def _parts(version):
    return [int(part) for part in version.split(".")]


if __name__ == "__main__":
    bounds = lower_bounds(tomllib.loads(PROJECT.read_text())["project"])
    for name, version in sorted(bounds.items()):
        print(f"{name}=={version}")
