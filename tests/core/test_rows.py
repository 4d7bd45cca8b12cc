import numpy as np
import pytest

from iclda import ImplicitlyConstrainedLDA
from iclda._core.labelsums import soften
from iclda._core.rows import Near, choose_near, one_of_each, scrambled


@pytest.mark.parametrize("every", [1, 2, 8, 64, 1024])
def test_one_of_every_group_of_rows_is_chosen_wherever_it_lies(every):
    index = np.arange(2**16)
    chosen = index[scrambled(index) % every == 0]
    np.testing.assert_array_equal(chosen // every, np.arange(len(index) // every))
    for period in (2, 3, 4, 8, 10):
        counts = np.bincount(chosen % period, minlength=period)
        assert counts.min() > 0.6 * counts.mean()
    np.testing.assert_array_equal(one_of_each(every, 0, len(index)), chosen)
    begin = 4096
    end = 50_001
    within = chosen[(chosen >= begin) & (chosen < end)]
    np.testing.assert_array_equal(one_of_each(every, begin, end), within)


def test_rows_between_two_classes_stand_for_others_between_them():
    shares = np.tile([[0.5], [0.5], [0.0]], 4096)
    shares[:, ::16] = [[0.5], [0.0], [0.5]]
    every = np.array([[8, 8, 1], [8, 8, 1], [1, 1, 8]])
    rows, counts = Near(every).rows(shares, np.arange(4096))
    is_rare = rows % 16 == 0
    np.testing.assert_array_equal(rows[is_rare], np.arange(0, 4096, 16))
    assert (counts[is_rare] == 1).all()
    assert (counts[~is_rare] == 8).all()
    assert counts[~is_rare].sum() == pytest.approx(4096 * 15 / 16, rel=0.05)


def test_rows_that_alternate_between_classes_take_no_more_passes():
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    X = rng.normal(size=(20, 2)) + 1.5 * y[:, None]
    rows = rng.normal(size=(100_000, 2))
    rows[::2] += 1.5
    model = ImplicitlyConstrainedLDA().fit(X, y, X_unlabeled=rows)
    assert model.converged_
    assert model.n_passes_ <= 9


def test_rows_that_tie_do_not_hide_a_boundary():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 4_000)
    # Two classes tie where x < 0.
    tied = np.where(x < 0, rng.normal(size=4_000), -1e5)
    scores = np.vstack([tied, np.where(x < 0, 0.0, -1e5), 1e5 * x])
    near = choose_near(scores, n_all=4_000, min_rows=1_000, max_rows=4_000)
    chosen, _ = near.rows(soften(scores / near.softening), np.arange(4_000))
    is_beside = (x[chosen] > 0) & (x[chosen] < 0.1)
    assert np.count_nonzero(is_beside) >= 50
