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
    assert bool(compare(run_of(row(now)), run_of(row(stored))).slow) is is_slow


@pytest.mark.parametrize("speed", [0.2, 3.0])
def test_a_machine_that_does_everything_slower_or_faster_does_not_fail(speed):
    stored = [row(1.0, 0.1), row(0.3, 0.1, method="MCLDA")]
    now = [row(1.0 * speed, 0.1 * speed), row(0.3 * speed, 0.1 * speed, method="MCLDA")]
    assert not compare(run_of(*now), run_of(*stored)).slow


def test_what_is_slow_is_shown_and_does_not_fail():
    found = compare(run_of(row(2.0)), run_of(row(1.0)))
    assert found.slow
    assert not found.has_failed


@pytest.mark.parametrize(
    ("stored", "now", "has_failed"),
    [
        (10, 13, False),
        (10, 14, True),
        (2, 4, False),
        (2, 5, True),
        (14, 10, False),
        (None, 14, False),
        (10, None, False),
    ],
)
def test_a_fit_fails_that_takes_a_third_more_passes_and_three(stored, now, has_failed):
    # However long it takes.
    before = run_of(row(1.0, n_passes=stored))
    after = run_of(row(0.1, n_passes=now))
    assert compare(after, before).has_failed is has_failed


def test_samples_that_both_runs_have_count_by_their_median():
    stored = run_of(*(row(seed=k, n_passes=5) for k in range(3)))
    unlucky = [row(seed=k, n_passes=n) for k, n in enumerate((5, 5, 50, 50, 50))]
    assert not compare(run_of(*unlucky), stored).has_failed
    assert compare(run_of(*unlucky[1:]), stored).has_failed


@pytest.mark.parametrize(("second", "is_slow"), [(2.0, True), (1.1, False)])
def test_slow_is_what_was_slow_twice(second, is_slow):
    stored = run_of(row(1.0), row(1.0, method="MCLDA"))
    first = compare(run_of(row(2.0), row(1.0, method="MCLDA")), stored)
    again = compare(run_of(row(second)), stored)
    assert bool(confirmed(first, again).slow) is is_slow
