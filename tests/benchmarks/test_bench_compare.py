import pytest

from suite.compare import compare, confirmed
from tests.helpers.bench_rows import row, run_of


@pytest.mark.parametrize(
    ("stored", "now", "is_slow"),
    [
        (1.0, 1.29, False),
        (1.0, 1.31, True),
        (0.010, 0.029, False),
        (0.010, 0.031, True),
        (0.060, 0.079, False),
        (1.0, 0.1, False),
    ],
)
def test_slow_is_more_than_a_third_slower_and_20_ms(stored, now, is_slow):
    assert compare(run_of(row(now)), run_of(row(stored))).has_failed is is_slow


@pytest.mark.parametrize("speed", [0.2, 3.0])
def test_a_machine_that_does_everything_slower_or_faster_does_not_fail(speed):
    stored = [row(1.0, 0.1), row(0.3, 0.1, method="MCLDA")]
    now = [row(1.0 * speed, 0.1 * speed), row(0.3 * speed, 0.1 * speed, method="MCLDA")]
    assert not compare(run_of(*now), run_of(*stored)).slow


@pytest.mark.parametrize(
    "change", [{"processor": "slide rule"}, {"cores": 4}, {"blas": "beads 2.0"}]
)
def test_another_machine_shows_what_is_slow_and_does_not_fail(change):
    found = compare(run_of(row(2.0), **change), run_of(row(1.0)))
    assert found.slow
    assert not found.has_failed


@pytest.mark.parametrize(("second", "is_slow"), [(2.0, True), (1.1, False)])
def test_slow_is_what_was_slow_twice(second, is_slow):
    stored = run_of(row(1.0), row(1.0, method="MCLDA"))
    first = compare(run_of(row(2.0), row(1.0, method="MCLDA")), stored)
    again = compare(run_of(row(second)), stored)
    assert confirmed(first, again).has_failed is is_slow
