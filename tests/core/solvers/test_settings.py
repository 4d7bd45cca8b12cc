from dataclasses import fields
from pathlib import Path

import pytest

from iclda._core.solvers.settings import SETTINGS

DOCUMENT = Path(__file__).parents[3] / "docs" / "solvers.md"


@pytest.mark.parametrize("name", [field.name for field in fields(SETTINGS)])
def test_every_setting_is_documented_with_its_value(name):
    assert f"| `{name}` | {getattr(SETTINGS, name)!r} |" in DOCUMENT.read_text()
