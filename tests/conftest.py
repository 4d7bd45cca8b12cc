"""Fixtures shared by all tests; see ``helpers.problems`` for independent answers."""

import pytest

from tests.helpers.problems import draw_sample


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
