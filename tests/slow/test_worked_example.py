"""The worked example of the README says what the command says."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_wine

README = Path(__file__).parents[2] / "README.md"

pytestmark = pytest.mark.slow


def test_the_answer_in_the_readme_is_that_of_the_command(tmp_path):
    load_wine(as_frame=True).frame.to_csv(tmp_path / "wine.csv", index=False)
    options = ["wine.csv", "--target", "target", "--labeled", "9", "--json"]
    command = [sys.executable, "-m", "iclda", "compare", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    text = re.sub(r"\s+", " ", README.read_text())
    assert found["recommendation"]["sentence"] in text
    for score in found["scores"]:
        if score["measure"] == "error":
            interval = f"({score['low']:.2f}-{score['high']:.2f})"
            assert f"{score['method']} {score['mean']:.3f} {interval}" in text
