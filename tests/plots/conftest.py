"""Figures without a window, closed after every test; a problem for all displays."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from iclda import SelfLearningLDA

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _no_figure_is_left_open():
    yield
    plt.close("all")


class Fitted:
    """Rows of K classes in d features, twelve labels a class, and a fit of them."""

    def __init__(self, n_classes, n_features):
        rng = np.random.default_rng([n_classes, n_features])
        n_rows = 40 * n_classes
        self.true = np.arange(n_rows) % n_classes
        centers = 2.5 * rng.standard_normal((n_classes, n_features))
        self.X = rng.standard_normal((n_rows, n_features)) + centers[self.true]
        self.y = np.where(np.arange(n_rows) < 12 * n_classes, self.true, -1)
        self.n_unlabeled = int((self.y == -1).sum())
        self.model = SelfLearningLDA().fit(self.X, self.y)


@pytest.fixture
def fitted():
    return Fitted
