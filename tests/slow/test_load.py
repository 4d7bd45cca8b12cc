"""Fits of very many classes and features."""

import resource
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from iclda import AutoLDA
from iclda.methods import FITTED, FURTHER

EVERY = {each.name: each.classifier for each in (*FITTED, *FURTHER)} | {"auto": AutoLDA}
# What a fit may take beyond what the process has before it.
MAX_BYTES = 4 * 2**30


def classes_and_rows(n_classes, n_features, n_labeled, n_unlabeled):
    rng = np.random.default_rng(0)
    centers = 5 * rng.normal(size=(n_classes, n_features))
    y = np.arange(n_labeled) % n_classes
    guessed = rng.integers(n_classes, size=n_unlabeled)
    X, U = (centers[k] + rng.normal(size=(len(k), n_features)) for k in (y, guessed))
    return X, y, U


# The covariance of 20,000 features does not fit into the memory, that of 4,000 does.
SIZES = {
    "10,000 classes": (10_000, 5, 20_000, 5_000),
    "20,000 features": (2, 20_000, 100, 100),
    "4,000 features, 1,000 rows": (2, 4_000, 100, 900),
}


@contextmanager
def limited_memory():
    """Let this process have no more than ``MAX_BYTES`` in addition."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + MAX_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.slow
# One at a time.
@pytest.mark.xdist_group("memory")
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("name", EVERY)
def test_59_very_many_classes_or_features_end_in_an_answer_or_a_refusal(name, size):
    X, y, U = classes_and_rows(*size)
    with warnings.catch_warnings(record=True) as shown, limited_memory():
        warnings.simplefilter("always")
        try:
            probabilities = EVERY[name]().fit(X, y, X_unlabeled=U).predict_proba(X[:20])
        except ValueError as error:
            reasons = "GiB", "shrinkage", "at most 2,000 classes", "at most 500 classes"
            assert any(reason in str(error) for reason in reasons), error  # noqa: PT017
            return
    assert not any(issubclass(each.category, RuntimeWarning) for each in shown)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
