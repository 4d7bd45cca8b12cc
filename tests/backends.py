"""Every way to pass rows: how to make a source of an array. All run the same tests.

``tests/rows/test_backends.py`` compares each of them with the array itself. To add one, add a
function of an (n, d) array and an empty folder to ``SOURCES``.
"""

import numpy as np

from iclda._rows.open import backend_of

SOURCES = {}


def source(name):
    """Register a function that makes a source of an array."""

    def register(make):
        SOURCES[name] = make
        return make

    return register


def opened(X, name="X", **settings):
    """Rows of a source, as the estimators open them."""
    return backend_of(X).open_rows(X, name=name, **settings)


def single(X):
    """The values of X as float32 holds them, in float64: no source may tell them apart."""
    return X.astype(np.float32).astype(np.float64)
