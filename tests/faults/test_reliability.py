"""Every fault in docs/reliability.md has a test whose name begins with its number."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "reliability.md"


def test_faults_of_the_page_are_those_of_the_tests():
    listed = re.findall(r"^\| (\d+) \| ", PAGE.read_text(), re.MULTILINE)
    modules = "\n".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    assert set(listed) == set(re.findall(r"^def test_(\d+)_", modules, re.MULTILINE))
    assert len(listed) == len(set(listed))
