import numpy as np
import pytest

from iclda._core.frame import Frame, frame_of, mean_variance_in_frame

RNG_ROWS = np.random.default_rng(0).standard_normal((50, 3))


@pytest.mark.parametrize("shape", [(1, 2), (300, 3), (700, 1), (515, 100), (9, 300)])
def test_the_frame_reaches_from_the_mean_to_the_furthest_row(shape):
    rows = np.random.default_rng(1).standard_normal(shape) ** 3
    frame = frame_of(rows)
    np.testing.assert_allclose(frame.origin, rows.mean(axis=0), atol=1e-14)
    reach = np.abs(rows - frame.origin).max(axis=0)
    np.testing.assert_array_equal(
        frame.scale, 2.0 ** np.frexp(np.where(reach > 0, reach, 1))[1]
    )


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e12])
def test_restore_undoes_apply(offset):
    rows = RNG_ROWS + offset
    frame = frame_of(rows)
    np.testing.assert_allclose(
        frame.restore(frame.apply(rows)), rows, rtol=1e-15, atol=1e-15
    )


def test_a_constant_column_becomes_exactly_zero():
    rows = np.column_stack([np.full(7, 0.1), np.arange(7.0)])
    assert np.all(frame_of(rows).apply(rows)[:, 0] == 0)


@pytest.mark.parametrize("size", [1e-300, 1e-5, 1e5, 1e300, 1e307])
def test_entries_of_any_size_stay_finite(size):
    rows = size * np.array([[-1.0], [0.25], [1.0]])
    u = frame_of(rows).apply(rows)
    assert np.all(np.isfinite(u))
    assert np.ptp(u) > 0.5


@pytest.mark.parametrize(
    ("origin", "scale", "is_foldable"),
    [
        (0.0, 1.0, True),
        (1e2, 1.0, True),
        (1e9, 1.0, False),
        (1e9, 1e9, True),
        (0.0, 1e200, False),
    ],
)
def test_a_frame_folds_into_rules_only_where_no_digits_are_lost(
    origin, scale, is_foldable
):
    assert Frame(np.array([origin]), np.array([scale])).is_foldable is is_foldable


def test_mean_variance_is_that_of_the_features_in_the_users_units():
    rows = RNG_ROWS * [0.1, 1.0, 30.0]
    frame = frame_of(rows)
    nu = mean_variance_in_frame(np.cov(frame.apply(rows).T, bias=True), frame)
    np.testing.assert_allclose(nu * frame.scale**2, rows.var(axis=0).mean(), rtol=1e-12)
