"""The vowels that come with the package."""

import numpy as np

from iclda.datasets import load_vowels


def test_fifteen_speakers_say_each_of_eleven_vowels_six_times():
    X, y, speakers, is_test = load_vowels()
    assert X.shape == (990, 10)
    assert X.dtype == np.float64
    words, counts = np.unique(y, return_counts=True)
    assert len(words) == 11
    assert set(counts) == {90}
    assert set(speakers[~is_test]) == set(range(8))
    assert set(speakers[is_test]) == set(range(8, 15))
    assert set(np.bincount(speakers)) == {66}
