"""Features of pictures that come with the package."""

from __future__ import annotations

from importlib import resources

import numpy as np
from numpy.typing import NDArray

_FASHION_FILE = resources.files(__package__) / "data" / "fashion_features.npz"


def load_fashion_features() -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Load features of 2,000 pictures of clothes, from a frozen network.

    Fashion-MNIST (MIT license) seen by EfficientNet-Lite0 (Apache-2.0): the mean of the
    last map of features, on its first 96 principal components.

    Returns
    -------
    X : ndarray of shape (2000, 96)
        Features.
    y : ndarray of shape (2000,)
        Names of the ten classes, 200 rows each.
    """
    with _FASHION_FILE.open("rb") as file, np.load(file) as stored:
        X = stored["X"].astype(np.float64)
        # Classes are stored as positions in the list of their names.
        y = stored["names"][stored["y"]]
    return X, y
