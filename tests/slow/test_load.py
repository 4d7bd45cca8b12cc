"""Fits of very many classes and features."""

import warnings

import numpy as np
import pytest

from iclda import AutoLDA
from iclda.methods import FITTED, FURTHER

EVERY = {each.name: each.classifier for each in (*FITTED, *FURTHER)} | {"auto": AutoLDA}


def classes_and_rows(n_classes, n_features, n_labeled, n_unlabeled):
    rng = np.random.default_rng(0)
    centers = 5 * rng.normal(size=(n_classes, n_features))
    y = np.arange(n_labeled) % n_classes
    guessed = rng.integers(n_classes, size=n_unlabeled)
    X, U = (centers[k] + rng.normal(size=(len(k), n_features)) for k in (y, guessed))
    return X, y, U


SIZES = {
    "10,000 classes": (10_000, 5, 20_000, 5_000),
    "10,000 features": (2, 10_000, 100, 100),
    "10,000 features, 2,000 rows": (2, 10_000, 200, 1_800),
}


@pytest.mark.slow
# A fit takes up to 10 GB: one at a time.
@pytest.mark.xdist_group("memory")
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("name", EVERY)
def test_59_very_many_classes_or_features_end_in_an_answer_or_a_refusal(name, size):
    X, y, U = classes_and_rows(*size)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        try:
            probabilities = EVERY[name]().fit(X, y, X_unlabeled=U).predict_proba(X[:20])
        except ValueError as error:
            reasons = "GiB", "shrinkage", "at most 2,000 classes"
            assert any(reason in str(error) for reason in reasons), error  # noqa: PT017
            return
    assert not any(issubclass(each.category, RuntimeWarning) for each in shown)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
