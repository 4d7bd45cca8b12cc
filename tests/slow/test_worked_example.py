"""The comparison of the README is what its command prints, up to the last digits."""

import runpy
from pathlib import Path

import pytest

from tests.helpers.documents import NUMBER, last_digit

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def words_and_numbers(text):
    """Lines without their numbers, and the numbers; rows that tie may change places."""
    first, answer, table, last = text.split("\n\n")
    lines = [first, " ".join(answer.split()), *sorted(table.splitlines()), last]
    text = "\n".join(lines)
    return NUMBER.sub("#", text), NUMBER.findall(text)


def test_the_comparison_in_the_readme_is_what_the_command_prints(tmp_path):
    made_by = runpy.run_path(str(ROOT / "docs" / "readme" / "draw.py"))
    shown = made_by["SHOWN"].search((ROOT / "README.md").read_text())[2]
    words, numbers = words_and_numbers(shown)
    made, found = words_and_numbers(made_by["compare_wines"](tmp_path))
    assert made == words, "`make pictures` writes the output of the README again"
    for one, other in zip(found, numbers, strict=True):
        # Another BLAS may change a few predictions, and a repeat in which a method is
        # worse.
        slack = last_digit(other)
        assert abs(float(one) - float(other)) <= (2.01 * slack if slack else 1.0), made
