"""Features that come with the package."""

import numpy as np

from iclda.datasets import load_fashion_features


def test_features_of_pictures_have_ten_classes_of_200_rows():
    X, y = load_fashion_features()
    assert X.shape == (2000, 96)
    assert np.isfinite(X).all()
    assert set(np.unique(y, return_counts=True)[1]) == {200}
