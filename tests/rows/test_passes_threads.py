import threading
import time
from contextlib import closing

import numpy as np
import pytest

from iclda._core.frame import frame_of
from iclda._core.labelsums import LinearRule
from iclda._rows.memory import MemoryRows
from iclda._rows.passes import in_order, read_ahead
from problems import near_all


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(n_threads):
    def slow_at_first(item):
        time.sleep(0.01 if item < 3 else 0)
        return item * item

    assert list(in_order(slow_at_first, range(20), n_threads)) == [i * i for i in range(20)]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_in_a_block_is_the_callers(n_threads):
    def fail_at_three(item):
        if item == 3:
            raise ValueError("block 3")
        return item

    with pytest.raises(ValueError, match="block 3"):
        list(in_order(fail_at_three, range(10), n_threads))


def test_only_a_few_results_wait_for_their_turn():
    computed = []

    def note(item):
        computed.append(item)
        return item

    results = in_order(note, range(1000), 2)
    next(results)
    time.sleep(0.05)
    assert len(computed) < 20
    results.close()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_of_the_consumer_does_not_wait_for_a_slow_reader(error):
    is_over, is_closed = threading.Event(), threading.Event()

    def slow():
        try:
            yield 0
            is_over.wait(30)
            yield 1
        finally:
            is_closed.set()

    def consume():
        with closing(read_ahead(slow())) as items:
            for _ in items:
                raise error

    begin = time.perf_counter()
    with pytest.raises(error):
        consume()
    assert time.perf_counter() - begin < 10
    assert not is_closed.is_set()
    is_over.set()
    assert is_closed.wait(10)


RNG = np.random.default_rng(8)
X = RNG.standard_normal((1000, 4)) + np.array([0, 1, 2, 50])
RULES = {
    "two classes, soft": LinearRule(RNG.standard_normal((4, 2)), RNG.standard_normal(2), True),
    "two classes, hard": LinearRule(RNG.standard_normal((4, 2)), RNG.standard_normal(2), False),
    "three classes, soft": LinearRule(RNG.standard_normal((4, 3)), RNG.standard_normal(3), True),
}


@pytest.mark.parametrize("columns", [slice(0, 3), slice(0, 4)], ids=["near zero", "far from it"])
def test_moments_are_the_same_to_the_bit_for_any_number_of_threads(columns):
    rows = X[:, columns]
    frame = frame_of(rows)
    first, *others = (
        MemoryRows(rows, block_rows=16, n_threads=n).moments(frame) for n in (1, 2, 3)
    )
    for other in others:
        np.testing.assert_array_equal(first.mean, other.mean)
        np.testing.assert_array_equal(first.scatter, other.scatter)


@pytest.mark.parametrize("name", RULES)
def test_label_sums_are_the_same_to_the_bit_for_any_number_of_threads(name):
    frame = frame_of(X)
    rule = RULES[name]
    first, *others = (
        MemoryRows(X, block_rows=16, n_threads=n).label_sums(rule, frame, **near_all(rule))
        for n in (1, 2, 3)
    )
    for other in others:
        for field in ("counts", "sums", "log_sum", "near"):
            np.testing.assert_array_equal(getattr(first, field), getattr(other, field))
