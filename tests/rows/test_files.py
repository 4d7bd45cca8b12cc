"""Sums, samples and checks of rows that are read a block at a time."""

import threading
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclda import ImplicitlyConstrainedLDA, SupervisedLDA, rows
from iclda._rows import kinds
from iclda._rows.batch_readers import ParquetFiles
from iclda._rows.files import FileRows
from iclda._rows.memory import MemoryRows
from iclda._rows.reservoir import Reservoir
from tests.helpers.file_rows import (
    FEW,
    FRAME,
    SAMPLE,
    SOFT,
    WHOLE,
    X,
    assert_identical,
    fit,
    sums,
    with_bad,
)
from tests.helpers.problems import near_all
from tests.helpers.row_sources import opened, table


def write_parquet(rows, folder, **options):
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(table(rows), folder / "rows.parquet", **options)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_sums_of_a_file_are_bit_for_bit_those_in_memory(folder, n_threads):
    memory = MemoryRows(X)
    found_sums = sums(folder / "rows.npy", n_threads=n_threads)
    for found, name in zip(found_sums, ("moments", "label_sums"), strict=True):
        options = {} if name == "moments" else {"rule": SOFT, **near_all(SOFT)}
        assert_identical(found, getattr(memory, name)(frame=FRAME, **options))


@pytest.mark.parametrize("n_batch", [7_919, 65_536, 100_000])
def test_sums_and_sample_do_not_depend_on_the_size_of_batches(folder, n_batch):
    def batches():
        return (X[i : i + n_batch] for i in range(0, len(X), n_batch))

    found = opened(rows.from_batches(batches))
    expected = opened(folder / "rows.npy")
    assert_identical(found.moments(FRAME), expected.moments(FRAME))
    assert_array_equal(found.sample(1000, seed=4)[0], expected.sample(1000, seed=4)[0])


FAR = np.zeros(len(X), dtype=bool)
FAR[[3, 70_000, 70_001, 149_999]] = True


@pytest.mark.parametrize("file", ["rows.npy", "rows.parquet"])
def test_weights_and_members_keep_to_their_rows_through_all_blocks(folder, file):
    weights = np.arange(len(X)) / 1e5 + 0.1
    is_member = np.arange(len(X)) % 7 > 2
    found = opened(folder / file, weights=weights, is_member=is_member)
    expected = MemoryRows(X, weights, is_member).label_sums(SOFT, FRAME)
    for name in ("counts", "sums", "log_sum"):
        assert_allclose(
            getattr(found.label_sums(SOFT, FRAME), name),
            getattr(expected, name),
            rtol=1e-9,
        )
    drawn, drawn_weights = found.sample(200, seed=2)
    numbers = [
        np.flatnonzero((row == X).all(axis=1))[0] for row in drawn.astype(np.float32)
    ]
    assert is_member[numbers].all()
    assert_allclose(
        drawn_weights / drawn_weights[0], weights[numbers] / weights[numbers[0]]
    )


@pytest.mark.parametrize("file", ["rows.npy", "rows.parquet"])
def test_a_few_rows_are_found_wherever_they_are(folder, file):
    members = opened(folder / file, is_member=FAR)
    assert_array_equal(members.sample(4, seed=0)[0], X[FAR])


@pytest.mark.parametrize("memory", [1, 2**20])
def test_less_memory_changes_nothing_beyond_rounding(folder, memory):
    found = sums(rows.open(folder / "rows.npy", memory=memory))
    for one, expected in zip(found, sums(folder / "rows.npy"), strict=True):
        for name in vars(expected):
            if getattr(expected, name) is not None:
                assert_allclose(
                    getattr(one, name), getattr(expected, name), rtol=1e-10, atol=1e-6
                )


@pytest.mark.parametrize("file", ["rows.npy", "rows.parquet"])
@pytest.mark.parametrize("n_threads", [1, 8])
def test_what_is_held_of_a_file_stays_within_its_memory(folder, file, n_threads):
    memory = 2**20
    read = opened(rows.open(folder / file, memory=memory), n_threads=n_threads)
    read.moments(FRAME)
    kept = read._kept[0].nbytes
    tracemalloc.start()
    read.label_sums(SOFT, FRAME)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # In float64, and what is made of them: one a thread.
    blocks = 8192 * 3 * 8 * 4
    assert X.nbytes > 1.7 * memory
    assert kept < memory
    assert peak < memory + n_threads * blocks


def drawn(n_kept, cuts, seed=0):
    reservoir = Reservoir(n_kept, 1, np.int64, seed)
    for part in np.split(np.arange(1000), cuts):
        reservoir.add(part[:, None], part)
    return reservoir.sample()


@pytest.mark.parametrize("n_kept", [1, 60, 999, 1000, 5000])
def test_a_reservoir_draws_the_same_rows_from_any_blocks(n_kept):
    whole, numbers = drawn(n_kept, [])
    assert len(whole) == min(n_kept, 1000)
    assert_array_equal(whole[:, 0], numbers)
    assert np.all(np.diff(numbers) > 0)
    for cuts in ([500], [1, 2, 2, 990], range(0, 1000, 7)):
        assert_array_equal(drawn(n_kept, cuts)[1], numbers)


def test_every_row_is_as_likely_to_be_drawn_as_any_other():
    counts = np.zeros(1000)
    for seed in range(400):
        counts[drawn(100, [300, 600], seed)[1]] += 1
    # 400 draws with probability 0.1: mean 40, deviation 6.
    assert counts.min() > 40 - 5 * 6
    assert counts.max() < 40 + 5 * 6


def test_a_first_look_at_a_file_reads_little_of_it(tmp_path, monkeypatch):
    write_parquet(X, tmp_path, row_group_size=5_000)
    n_read = []
    read = ParquetFiles.spans

    def counted(self, *arguments):
        for span in read(self, *arguments):
            n_read.append(span.n_rows)
            yield span

    monkeypatch.setattr(ParquetFiles, "spans", counted)
    look = opened(tmp_path / "rows.parquet").sample(4096, seed=0)[0]
    assert len(look) == 4096
    assert sum(n_read) < len(X) / 5
    # From everywhere in the file: sorted rows must not all come from one end.
    numbers = [
        np.flatnonzero((row == X).all(axis=1))[0]
        for row in look[::256].astype(np.float32)
    ]
    assert min(numbers) < len(X) / 10
    assert max(numbers) > 0.9 * len(X)


def test_a_fit_reads_a_source_as_often_as_it_says(monkeypatch):
    n_ends = []

    def batches():
        yield from np.array_split(SAMPLE.X_unlabeled, 7)
        n_ends.append(1)

    heard = []
    with rows.progress(lambda *told: heard.append(told)):
        model = fit(rows.from_batches(batches), ImplicitlyConstrainedLDA)
    assert model.n_passes_ > 1
    assert len(n_ends) == model.n_passes_ == heard[-1][0]


def test_unlabeled_rows_of_a_file_are_not_labeled_one_by_one(tmp_path):
    np.save(tmp_path / "rows.npy", FEW)
    model = fit(tmp_path / "rows.npy", ImplicitlyConstrainedLDA)
    with pytest.raises(AttributeError, match=r"arrays in memory.*impute\(X\)"):
        model.responsibilities_  # noqa: B018
    assert model.impute(tmp_path / "rows.npy").shape == (500, 2)


@pytest.mark.parametrize("kind", ["memory map", "table"])
def test_large_maps_and_tables_are_read_in_parts(kind, tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", FEW)
    large = (
        np.load(tmp_path / "rows.npy", mmap_mode="r")
        if kind == "memory map"
        else table(FEW)
    )
    assert kinds.name_of_backend(large) is None
    monkeypatch.setattr(kinds, "_MAX_ARRAY_BYTES", large.nbytes - 1)
    assert isinstance(opened(large), FileRows)
    assert_allclose(fit(large).coef_, fit(FEW).coef_, rtol=1e-9)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_numbers_that_are_not_finite_are_named_with_row_and_column(
    value, word, tmp_path
):
    bad = with_bad(value)
    np.save(tmp_path / "rows.npy", bad)
    expected = (
        rf"Input X_unlabeled contains {word}, first in row 1234, column 1 \(.*npy\)"
    )
    with pytest.raises(ValueError, match=expected):
        fit(tmp_path / "rows.npy")
    write_parquet(bad, tmp_path)
    with pytest.raises(ValueError, match=f"{word}, first in row 1234, column 'x1'"):
        fit(tmp_path / "rows.parquet")
    model = fit(FEW)
    with pytest.raises(ValueError, match=f"Input X contains {word}, first in row 1234"):
        model.predict(tmp_path / "rows.npy")


def test_a_nan_beyond_the_first_look_is_found_in_the_first_pass():
    bad = X.copy()
    bad[149_999, 2] = np.nan
    read = opened(rows.from_batches(lambda: [bad]))
    with pytest.raises(ValueError, match=r"row 149999, column 2 \(batch 0\)"):
        read.moments(FRAME)


@pytest.mark.parametrize(
    ("n_rows", "found"), [(29_999, "more"), (30_001, "30000 rows")]
)
def test_a_promise_of_another_number_of_rows_is_refused(n_rows, found):
    source = rows.from_batches(lambda: [WHOLE], n_rows=n_rows)
    with pytest.raises(ValueError, match=rf"{n_rows} rows, but gave {found}\."):
        fit(source)


def test_nothing_goes_on_reading_after_an_error(folder):
    def stop(n_pass, n_done, n_all):
        raise KeyboardInterrupt

    model = SupervisedLDA().fit(SAMPLE.X, SAMPLE.y)
    before = set(threading.enumerate())
    for read in (
        lambda: fit(folder / "rows.npy"),
        lambda: fit(folder / "rows.npy", n_jobs=2),
        lambda: model.predict(folder / "rows.npy"),
    ):
        with rows.progress(stop), pytest.raises(KeyboardInterrupt):
            read()
        # If one reads on for ever, pytest ends this test.
        for thread in set(threading.enumerate()) - before:
            thread.join()
