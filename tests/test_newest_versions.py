import tomllib

import pytest

from lower_bounds import PROJECT, lower_bounds
from newest_versions import NOT_INSTALLED, pinned

project = tomllib.loads(PROJECT.read_text())["project"]


def report_of(names):
    return {"install": [{"metadata": {"name": name, "version": "9.9"}} for name in names]}


def test_every_dependency_and_what_it_needs_is_audited():
    names = [name.upper() for name in lower_bounds(project)]
    lines = pinned(report_of([*names, "iclda", "Some_Thing.else"]), project)
    assert {"numpy==9.9", "scikit-learn==9.9", "skops==9.9", "some-thing-else==9.9"} <= set(lines)
    assert not any(line.startswith("iclda==") for line in lines)


def test_a_list_that_lacks_a_dependency_is_refused():
    names = set(lower_bounds(project)) - {"pyarrow"}
    with pytest.raises(ValueError, match="pip would not install pyarrow, which pyproject"):
        pinned(report_of(names), project)


def test_all_extras_for_users_are_audited():
    extras = project["optional-dependencies"]
    (everything,) = extras["all"]
    audited = everything.removeprefix("iclda[").removesuffix("]").split(",")
    assert {*audited, *NOT_INSTALLED, "all", "dev"} == set(extras)
