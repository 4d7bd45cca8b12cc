import pytest

from iclda.studies.compare.estimate import TimeEstimate


@pytest.mark.parametrize(
    ("seconds", "n_compared", "n_curves", "jobs", "said"),
    [
        (0.01, 99, 60, 2, ""),
        (1.0, 99, 0, 1, "About 2 min to the answer: the first split took 1.0 s."),
        (0.5, 99, 60, 2, "About 25 s to the answer, and 15 s more for the learning curves: the"),
        (90.0, 99, 0, 1, "About 2 h 28 min to the answer"),
    ],
)
def test_the_time_is_that_of_the_splits_side_by_side(seconds, n_compared, n_curves, jobs, said):
    sentence = TimeEstimate(seconds, n_compared, n_curves, jobs).sentence
    assert sentence.startswith(said)
    assert bool(sentence) == bool(said)
