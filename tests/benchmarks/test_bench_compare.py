import pytest
from bench_rows import row, run_of

from suite.compare import compare, confirmed


def test_a_run_is_not_slower_than_itself():
    run = run_of(row(), row(method="MCLDA", seconds=0.2), row(seed=1, seconds=1.2))
    found = compare(run, run)
    assert len(found.changes) == 2
    assert [change.factor for change in found.changes] == [1, 1]
    assert not found.slow
    assert not found.has_failed


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


def test_a_slow_fit_is_found_on_a_slow_machine():
    now = run_of(row(6.0, 0.3), row(0.9, 0.3, method="MCLDA"))
    found = compare(now, run_of(row(1.0, 0.1), row(0.3, 0.1, method="MCLDA")))
    assert [change.group[1] for change in found.slow] == ["ICLDA"]
    assert "ICLDA 1000000 50 2 100 float64 1: 6.000 s, expected 3.000 s (2.00x)" in str(
        found.slow[0]
    )


def test_a_unit_too_short_to_be_timed_well_does_not_fail_its_row():
    stored = [row(0.1, 2e-4, n_unlabeled=10_000), row(seed=0), row(seed=1), row(seed=2)]
    now = [row(0.1, 1e-4, n_unlabeled=10_000), row(seed=0), row(seed=1), row(seed=2)]
    assert not compare(run_of(*now), run_of(*stored)).slow


def test_only_ours_count():
    now, stored = row(9.0, method="LDA lsqr"), row(1.0, method="LDA lsqr")
    assert not compare(run_of(now), run_of(stored)).changes


@pytest.mark.parametrize(
    "change",
    [
        {"case": "wide"},
        {"n_unlabeled": 3_000},
        {"n_features": 20},
        {"n_classes": 3},
        {"dtype": "float32"},
        {"n_jobs": 2},
        {"seed": 5},
        {"seconds": None, "failure": "Traceback"},
        {"unit_seconds": None},
    ],
)
def test_a_row_without_a_partner_fails_nothing(change):
    slow = row(**{"seconds": 9.0, **change})
    assert not compare(run_of(slow), run_of(row(1.0))).changes
    assert not compare(run_of(row(9.0)), run_of(row(**{"seconds": 1.0, **change}))).changes


def test_samples_that_only_one_run_has_are_left_out():
    stored = [row(1.0, seed=0), row(1.0, seed=1), row(1.0, seed=2)]
    (change,) = compare(run_of(row(1.1, seed=0), row(9.0, seed=7)), run_of(*stored)).changes
    assert change.seconds == 1.1


def test_the_benchmark_sets_count_together():
    def of_sets(seconds):
        sizes = {"A": 100, "B": 200, "C": 300}
        return run_of(*(row(seconds, dataset=name, n_unlabeled=n) for name, n in sizes.items()))

    (change,) = compare(of_sets(2.0), of_sets(1.0)).changes
    assert change.factor == 2


def test_small_fits_count_by_the_batch():
    assert not compare(run_of(row(0.002)), run_of(row(0.001))).slow
    (change,) = compare(run_of(row(0.002, batch=100)), run_of(row(0.001, batch=100))).slow
    assert (change.seconds, change.expected) == (0.2, 0.1)


@pytest.mark.parametrize(("second", "is_slow"), [(2.0, True), (1.1, False)])
def test_slow_is_what_was_slow_twice(second, is_slow):
    stored = run_of(row(1.0), row(1.0, method="MCLDA"))
    first = compare(run_of(row(2.0), row(1.0, method="MCLDA")), stored)
    again = compare(run_of(row(second)), stored)
    assert confirmed(first, again).has_failed is is_slow


def test_what_could_not_be_measured_again_stays_slow():
    first = compare(run_of(row(2.0)), run_of(row(1.0)))
    assert confirmed(first, compare(run_of(), run_of(row(1.0)))).has_failed


def test_a_worse_answer_is_told_and_fails_nothing():
    now, stored = row(objective=-70.1, gap=1e-3), row(objective=-70.0, gap=1e-7)
    found = compare(run_of(now), run_of(stored))
    assert any("lower than stored by up to 0.1" in text for text in found.remarks)
    assert any("the gap is up to 0.001" in text for text in found.remarks)
    assert not found.has_failed
    assert not compare(run_of(stored), run_of(now)).remarks
