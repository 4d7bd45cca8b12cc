"""Rows for the tests of files, tables and batches."""

import numpy as np
import pandas as pd
from numpy.testing import assert_array_equal

from iclda import MomentConstrainedLDA
from iclda._core.frame import frame_of
from iclda._core.labelsums import LinearRule
from tests.helpers.problems import draw_sample, near_all
from tests.helpers.row_sources import opened

RNG = np.random.default_rng(77)
NAMES = ["x0", "x1", "x2"]
# Several blocks, and a last one that is not full.
X = RNG.standard_normal((150_000, 3)).astype(np.float32)
FRAME = frame_of(X[:1000])
SOFT = LinearRule(RNG.standard_normal((3, 2)), RNG.standard_normal(2), is_soft=True)
SAMPLE = draw_sample(5, n_features=3, n_labeled=20, n_unlabeled=30_000)
FEW = SAMPLE.X_unlabeled[:500]


def named(array):
    return pd.DataFrame(array, columns=NAMES)


def fit(X_unlabeled, classifier=MomentConstrainedLDA, **parameters):
    return classifier(**parameters).fit(SAMPLE.X, SAMPLE.y, X_unlabeled=X_unlabeled)


def assert_identical(found, expected):
    for name in vars(expected):
        assert_array_equal(getattr(found, name), getattr(expected, name))


def sums(source, **settings):
    read = opened(source, **settings)
    # As every fit does first.
    read.sample(4096, 0)
    return read.moments(FRAME), read.label_sums(SOFT, FRAME, **near_all(SOFT))


FRAMED = pd.DataFrame(SAMPLE.X, columns=NAMES)
WHOLE = SAMPLE.X_unlabeled


def with_bad(value, row=1234, column=1):
    bad = WHOLE[:5000].copy()
    bad[row, column] = value
    return bad
