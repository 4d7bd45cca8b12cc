import threading
import time
from contextlib import closing

import pytest

from iclda._rows.passes import in_order, read_ahead


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
