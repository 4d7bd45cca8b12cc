"""Fixtures shared by all tests; see ``helpers.problems`` for independent answers."""

import os
from pathlib import Path

import pytest

from tests.helpers.problems import draw_sample

# Paths in these settings may be relative, and some tests work in another folder.
for setting in ("ICLDA_DATA", "ICLDA_REFERENCE"):
    if path := os.environ.get(setting):
        os.environ[setting] = str(Path(path).resolve())


@pytest.fixture(params=[2, 3, 5], ids="K={}".format)
def sample(request):
    """A problem of two, three and five classes in three dimensions."""
    n_classes = request.param
    return draw_sample(
        [31, n_classes],
        n_classes=n_classes,
        n_features=3,
        n_labeled=6 * n_classes,
        n_unlabeled=60,
    )
