"""Many fits: side by side, and one after the other."""

import gc
import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from iclda import ImplicitlyConstrainedLDA, MomentConstrainedLDA
from tests.helpers.problems import draw_sample, every_classifier

N_FITS = 4


def fit_and_predict(classifier, seed):
    sample = draw_sample(seed, n_labeled=30, n_unlabeled=60)
    model = sample.fit(classifier())
    return model.predict_proba(sample.rows)


@every_classifier
def test_52_fits_in_eight_threads_are_those_in_one(classifier):
    seeds = range(16)
    expected = [fit_and_predict(classifier, seed) for seed in seeds]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda seed: fit_and_predict(classifier, seed), seeds))
    for one, other in zip(found, expected, strict=True):
        assert_array_equal(one, other)


@every_classifier
def test_53_fits_leave_no_memory_and_no_files_behind(classifier):
    # What is imported and kept once.
    fit_and_predict(classifier, 0)
    n_files = len(os.listdir("/dev/fd"))
    tracemalloc.start()
    try:
        sizes = []
        for _ in range(3):
            for seed in range(N_FITS):
                fit_and_predict(classifier, seed)
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # One array of a fit kept behind would be N_FITS times 5 kB a round.
    assert min(np.diff(sizes)) < 2_000 * N_FITS
    assert len(os.listdir("/dev/fd")) == n_files


def test_59_a_fit_of_too_many_unknowns_is_refused_with_the_memory_it_needs():
    rng = np.random.default_rng(0)
    y = np.arange(5002) % 2501
    X = y[:, None] + 0.4 * rng.normal(size=(5002, 1))
    U = rng.uniform(0, 999, (20, 1))
    with pytest.raises(
        ValueError, match=r"5,000 unknowns, .* would take 0\.745 GiB; at most"
    ):
        MomentConstrainedLDA(variant="likelihood").fit(X, y, X_unlabeled=U)
    with pytest.raises(ValueError, match="at most 2,000 classes, and there are 2,501"):
        ImplicitlyConstrainedLDA(proportions="labeled").fit(X, y, X_unlabeled=U)
