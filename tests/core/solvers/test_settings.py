"""The settings that docs/solvers.md lists are those of the code."""

import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from iclda._core.solvers import settings

DOCUMENT = Path(__file__).parents[3] / "docs" / "solvers.md"
ROWS = re.findall(r"^\| `([A-Z_]+)\.(\w+)` \| (.+?) \|", DOCUMENT.read_text(), re.M)
GROUPS = {name: value for name, value in vars(settings).items() if name.isupper()}


@pytest.mark.parametrize(("group", "name", "value"), ROWS)
def test_a_documented_setting_has_its_value(group, name, value):
    assert repr(getattr(getattr(settings, group), name)) == value


def test_settings_are_documented():
    assert len(ROWS) >= 10


@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
def test_a_group_of_settings_is_frozen_and_has_its_defaults(group):
    assert is_dataclass(group)
    assert type(group).__dataclass_params__.frozen
    assert group == type(group)()
    assert fields(group)
