"""Vowels of several speakers, which come with the package."""

from __future__ import annotations

import bz2
from importlib import resources

import numpy as np
from numpy.typing import NDArray

_VOWEL_FILE = resources.files(__package__) / "data" / "vowel.csv.bz2"


def load_vowels() -> tuple[
    NDArray[np.float64], NDArray[np.str_], NDArray[np.int64], NDArray[np.bool_]
]:
    """Load eleven vowels, each said six times by fifteen speakers.

    Features of D. H. Deterding (1989, CC BY 4.0): ten log area ratios. Hastie,
    Tibshirani and Friedman train on the first eight speakers and test on the others.

    Returns
    -------
    X : ndarray of shape (990, 10)
        Features.
    y : ndarray of shape (990,)
        The word that was said, one for each vowel.
    speakers : ndarray of shape (990,)
        Number of the speaker, from 0 to 14.
    is_test : ndarray of shape (990,)
        Which rows are of the speakers to test on, 8 to 14.
    """
    text = bz2.decompress(_VOWEL_FILE.read_bytes()).decode()
    rows = [line.split(",") for line in text.split()[1:]]
    # Columns: part, speaker, sex, ten features, vowel.
    table = np.array(rows)
    return (
        table[:, 3:13].astype(np.float64),
        table[:, 13],
        table[:, 1].astype(np.int64),
        table[:, 0] == "test",
    )
