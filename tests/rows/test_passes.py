"""One callback tells how far a pass is, wherever the rows live."""

import re
import sys
import threading
import time
from contextlib import closing
from functools import partial

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from iclda import ImplicitlyConstrainedLDA, MomentConstrainedLDA, rows
from iclda._rows.threads import in_order, read_ahead
from iclda._system import one_thread_if_small
from iclda.methods import find_method
from tests.helpers.problems import FAMILY

RNG = np.random.default_rng(78)
X = RNG.standard_normal((140_000, 2))
Y = np.arange(10) % 2
LABELED = RNG.standard_normal((10, 2)) + 3 * Y[:, None]
SOURCES = {
    "array": lambda: X,
    "file": lambda: rows.open(np.asarray(X)),
    "batches": lambda: rows.from_batches(lambda: np.array_split(X, 5)),
}
# Without a view, which takes a pass of its own.
PLAIN = FAMILY | {"average": partial(FAMILY["average"], view=None)}
NAMES = "em", "iclda", "pessimistic", "self-training"
LEARNING = [
    partial(find_method(name).load_class(), proportions="auto") for name in NAMES
]


def fit(source, classifier=MomentConstrainedLDA, **parameters):
    return classifier(**parameters).fit(LABELED, Y, X_unlabeled=source)


def heard(source, **settings):
    told = []
    with rows.progress(lambda *event: told.append(event)):
        fit(source, **settings)
    return told


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("kind", ["array", "file"])
def test_every_pass_is_told_to_its_end(kind, n_jobs):
    told = heard(SOURCES[kind](), n_jobs=n_jobs)
    assert told == [(1, 65_536, 140_000), (1, 131_072, 140_000), (1, 140_000, 140_000)]


# EM is slow to converge here.
@pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
@pytest.mark.parametrize("method", [*PLAIN.values(), *LEARNING], ids=str)
def test_passes_are_those_that_are_told(method):
    told = []
    with rows.progress(lambda *event: told.append(event)):
        model = fit(rows.from_batches(lambda: np.array_split(X, 5)), method)
    assert model.n_passes_ == max(n_pass for n_pass, _, _ in told)
    with pytest.warns(UserWarning, match="no unlabeled rows"):
        assert method().fit(LABELED, Y).n_passes_ == 0


def test_how_many_rows_there_are_is_told_when_it_is_known():
    told = heard(SOURCES["batches"](), classifier=ImplicitlyConstrainedLDA)
    assert [n_all for n_pass, _, n_all in told if n_pass == 1] == [None] * 3
    assert {n_all for n_pass, _, n_all in told if n_pass > 1} == {140_000}
    numbers = [n_pass for n_pass, _, _ in told]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, numbers[-1] + 1))


@pytest.mark.parametrize("method", PLAIN.values(), ids=PLAIN)
def test_passes_over_two_sources_have_one_number(method):
    told = []
    y = np.where(np.arange(len(X)) < 10, np.arange(len(X)) % 2, -1)
    with rows.progress(lambda *event: told.append(event)):
        model = method().fit(rows.open(X), y, X_unlabeled=X[:100_000])
    numbers = [n_pass for n_pass, _, _ in told]
    assert list(dict.fromkeys(numbers)) == list(range(1, model.n_passes_ + 1))
    for n_pass in set(numbers):
        ends = [
            n_done
            for number, n_done, n_all in told
            if number == n_pass and n_done == n_all
        ]
        assert ends == [140_000, 100_000]


@pytest.mark.parametrize("method", PLAIN.values(), ids=PLAIN)
def test_many_labeled_rows_are_told_before_the_first_pass(method):
    told = []
    y = np.where(np.arange(len(X)) < 70_000, np.arange(len(X)) % 2, -1)
    with rows.progress(lambda *event: told.append(event)):
        model = method().fit(X + 2 * (np.arange(len(X)) % 2)[:, None], y)
    numbers = [n_pass for n_pass, _, _ in told]
    assert list(dict.fromkeys(numbers)) == list(range(model.n_passes_ + 1))
    assert numbers == sorted(numbers)


def test_all_listeners_are_told_as_long_as_they_listen():
    outer = []
    inner = []
    source = rows.open(X)
    with rows.progress(lambda *event: outer.append(event)):
        with rows.progress(lambda *event: inner.append(event)):
            fit(source)
        fit(source)
    fit(source)
    assert len(outer) == 2 * len(inner) == 6


def test_a_bar_is_drawn_on_the_error_stream(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    with rows.bar():
        fit(rows.open(X), classifier=ImplicitlyConstrainedLDA)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search(r"pass [1-9]+ .*140,000 of 140,000 rows", shown.err)


def test_without_rich_the_bar_names_the_extra(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(ImportError, match=r"iclda\[experiments\]"), rows.bar():
        pass


# Threads.


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(n_threads):
    def slow_at_first(item):
        time.sleep(0.01 if item < 3 else 0)
        return item * item

    assert list(in_order(slow_at_first, range(20), n_threads)) == [
        i * i for i in range(20)
    ]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_of_the_consumer_does_not_wait_for_a_slow_reader(error):
    is_over = threading.Event()
    is_closed = threading.Event()

    def slow():
        try:
            yield 0
            is_over.wait()
            yield 1
        finally:
            is_closed.set()

    def consume():
        with closing(read_ahead(slow())) as items:
            for _ in items:
                raise error

    with pytest.raises(error):
        consume()
    assert not is_closed.is_set()
    is_over.set()
    # Without an end: pytest ends a test that waits for too long.
    assert is_closed.wait()


@pytest.mark.parametrize(("n_features", "n_threads"), [(300, 1), (3_000, 2)])
def test_small_matrices_have_one_thread_of_blas(n_features, n_threads):
    with threadpool_limits(2, "blas"), one_thread_if_small(n_features):
        found = [
            each["num_threads"]
            for each in threadpool_info()
            if each["user_api"] == "blas"
        ]
    assert min(found, default=n_threads) == n_threads
