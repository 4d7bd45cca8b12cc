"""The worked examples of CONTRIBUTING.md: patches that apply, code that then runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.documents import BLOCK, assert_same_output

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "CONTRIBUTING.md").read_text()
EXAMPLES = dict(
    re.findall(
        r"^### (Add an? [^\n]+)\n(.*?)(?=^##)", DOCUMENT, re.DOTALL | re.MULTILINE
    )
)


def patch(folder, text):
    """Apply a patch: a file, then lines of context, lines to add and to remove."""
    header, _, body = text.partition("\n")
    path = folder / header.removeprefix("+++ ")
    lines = body.splitlines()
    if all(line.startswith("+") for line in lines):
        assert not path.exists(), f"{path} exists already"
        path.write_text("\n".join(line[1:] for line in lines) + "\n")
        return
    before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
    after = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
    source = path.read_text()
    assert source.count(before) == 1, f"the patch of {path} has no place, or several"
    path.write_text(source.replace(before, after))


def test_all_five_are_there():
    assert len(EXAMPLES) == 5


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_patched_package_does_what_is_shown(name, tmp_path):
    source = tmp_path / "src" / "iclda"
    shutil.copytree(
        ROOT / "src" / "iclda", source, ignore=shutil.ignore_patterns("__pycache__")
    )
    found = [(match[1], match[2]) for match in BLOCK.finditer(EXAMPLES[name])]
    for language, text in found:
        if language == "diff":
            patch(tmp_path, text)
    (code,) = [text for language, text in found if language == "python"]
    (shown,) = [text for language, text in found if language == "text"]
    environment = {**os.environ, "PYTHONPATH": str(source.parent)}
    # Maybe a path that is not relative to tmp_path.
    environment.pop("ICLDA_DATA", None)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert_same_output(done.stdout, shown)
