"""Files, memory maps, tables and batches: read in parts, several times, and the same every time."""

import doctest
import inspect
import os
import re
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from backends import opened, table
from iclda import ImplicitlyConstrainedLDA, MomentConstrainedLDA, SupervisedLDA, rows
from iclda._core.frame import frame_of
from iclda._core.labelsums import LinearRule
from iclda._rows import open as dispatch
from iclda._rows.files.readers import MappedArray
from iclda._rows.files.rows import FileRows, Reservoir
from iclda._rows.files.tables import ParquetFiles
from iclda._rows.memory import MemoryRows
from problems import SEMI_SUPERVISED, draw_sample

RNG = np.random.default_rng(77)
NAMES = ["x0", "x1", "x2"]
# Several slabs, and a last one that is not full.
X = RNG.standard_normal((150_000, 3)).astype(np.float32)
FRAME = frame_of(X[:1000])
SOFT = LinearRule(RNG.standard_normal((3, 2)), RNG.standard_normal(2), is_soft=True)
SAMPLE = draw_sample(5, n_features=3, n_labeled=20, n_unlabeled=30_000)
FEW = SAMPLE.X_unlabeled[:500]


def named(array):
    return pd.DataFrame(array, columns=NAMES)


def fit(X_unlabeled, classifier=MomentConstrainedLDA, **parameters):
    return classifier(**parameters).fit(SAMPLE.X, SAMPLE.y, X_unlabeled=X_unlabeled)


def assert_identical(found, expected):
    for name in vars(expected):
        assert_array_equal(getattr(found, name), getattr(expected, name))


def sums(source, **settings):
    read = opened(source, **settings)
    read.sample(4096, 0)  # as every fit does first
    return read.moments(FRAME), read.label_sums(SOFT, FRAME, curvature=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    np.save(path / "rows.npy", X)
    pq.write_table(table(X), path / "rows.parquet", row_group_size=40_000)
    return path


# Names and documents.


@pytest.mark.parametrize("name", rows.__all__)
def test_functions_are_listed_in_the_api_and_document_their_parameters(name):
    function = getattr(rows, name)
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    listed = f"`rows.{name}{inspect.Signature(bare)}`"
    assert listed in (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    for parameter in signature.parameters.values():
        default = (
            "" if parameter.default is parameter.empty else rf".*, default={parameter.default}"
        )
        assert re.search(rf"^ *{parameter.name} : {default}", function.__doc__, re.MULTILINE)


def test_the_examples_of_the_docstrings_run():
    assert doctest.testmod(rows) == (0, 3)


# Sums.


def test_sums_of_a_file_are_bit_for_bit_those_in_memory(folder):
    memory = MemoryRows(X)
    for found, name in zip(sums(folder / "rows.npy"), ("moments", "label_sums"), strict=True):
        options = {} if name == "moments" else {"rule": SOFT, "curvature": True}
        assert_identical(found, getattr(memory, name)(frame=FRAME, **options))


@pytest.mark.parametrize("file", ["rows.npy", "rows.parquet"])
@pytest.mark.parametrize("n_threads", [2, 5])
def test_sums_are_bit_for_bit_the_same_for_any_number_of_threads(folder, file, n_threads):
    one, many = sums(folder / file), sums(folder / file, n_threads=n_threads)
    for found, expected in zip(many, one, strict=True):
        assert_identical(found, expected)


@pytest.mark.parametrize("orders", ["FC", "CF", "F1", "1F", "1C", "FCF"])
@pytest.mark.parametrize("dtype", ["f4", ">f8", "i2"])
def test_files_may_differ_in_the_order_of_their_entries(orders, dtype, tmp_path):
    every = (100 * X[:3_000]).astype(dtype)
    # One row is stored in C order, whatever it was.
    cuts = np.cumsum([1 if order == "1" else 1_111 for order in orders])
    parts = np.split(every[: cuts[-1]], cuts[:-1])
    for i, (order, part) in enumerate(zip(orders, parts, strict=True)):
        np.save(tmp_path / f"{i}.npy", np.asarray(part, order="F" if order in "F1" else "C"))
    read = opened(tmp_path)
    expected = MemoryRows(every[: cuts[-1]].astype(float)).moments(FRAME)
    assert_allclose(read.moments(FRAME).scatter, expected.scatter, rtol=1e-10)
    assert_array_equal(opened(tmp_path).sample(10**6, 0)[0], every[: cuts[-1]])
    assert_array_equal(opened(tmp_path).applied(lambda block: block[:, 1]), every[: cuts[-1], 1])


@pytest.mark.parametrize("n_batch", [7_919, 65_536, 100_000])
def test_sums_and_sample_do_not_depend_on_the_size_of_batches(folder, n_batch):
    def batches():
        return (X[i : i + n_batch] for i in range(0, len(X), n_batch))

    found, expected = (
        opened(source) for source in (rows.from_batches(batches), folder / "rows.npy")
    )
    assert_identical(found.moments(FRAME), expected.moments(FRAME))
    assert_array_equal(found.sample(1000, seed=4)[0], expected.sample(1000, seed=4)[0])


def test_sums_do_not_depend_on_the_size_of_row_groups(folder, tmp_path):
    pq.write_table(table(X), tmp_path / "rows.parquet", row_group_size=1_001)
    for found, expected in zip(
        sums(tmp_path / "rows.parquet"), sums(folder / "rows.parquet"), strict=True
    ):
        assert_identical(found, expected)


FAR = np.zeros(len(X), dtype=bool)
FAR[[3, 70_000, 70_001, 149_999]] = True


@pytest.mark.parametrize("file", ["rows.npy", "rows.parquet"])
def test_weights_and_members_keep_to_their_rows_through_all_slabs(folder, file):
    weights, is_member = np.arange(len(X)) / 1e5 + 0.1, np.arange(len(X)) % 7 > 2
    found = opened(folder / file, weights=weights, is_member=is_member)
    expected = MemoryRows(X, weights, is_member).label_sums(SOFT, FRAME)
    for name in ("counts", "sums", "log_sum"):
        assert_allclose(
            getattr(found.label_sums(SOFT, FRAME), name), getattr(expected, name), rtol=1e-9
        )
    drawn, drawn_weights = found.sample(200, seed=2)
    numbers = [np.flatnonzero((row == X).all(axis=1))[0] for row in drawn.astype(np.float32)]
    assert is_member[numbers].all()
    assert_allclose(drawn_weights / drawn_weights[0], weights[numbers] / weights[numbers[0]])


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
                assert_allclose(getattr(one, name), getattr(expected, name), rtol=1e-10, atol=1e-6)


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
    blocks = 8192 * 3 * 8 * 4  # in float64, and what is made of them: one a thread
    assert X.nbytes > 1.7 * memory
    assert kept < memory
    assert peak < memory + n_threads * blocks


# Samples.


def drawn(n_kept, cuts, seed=0):
    reservoir = Reservoir(n_kept, 1, np.int64, seed)
    for part in np.split(np.arange(1000), cuts):
        reservoir.add(part[:, None], part)
    return reservoir.drawn()


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
    thirds = counts.reshape(10, 100).mean(axis=1)
    assert np.all(np.abs(thirds - 40) < 5 * 0.6)


def test_another_seed_gives_another_sample(folder):
    read = opened(folder / "rows.npy")
    read.moments(FRAME)
    assert not np.array_equal(read.sample(100, seed=0)[0], read.sample(100, seed=1)[0])


def count_rows_read(monkeypatch):
    n_read = []
    read = ParquetFiles._batches

    def counted(self, *arguments):
        for chunk in read(self, *arguments):
            n_read.append(len(chunk))
            yield chunk

    monkeypatch.setattr(ParquetFiles, "_batches", counted)
    return n_read


def test_a_first_look_at_a_file_reads_little_of_it(tmp_path, monkeypatch):
    pq.write_table(table(X), tmp_path / "rows.parquet", row_group_size=5_000)
    n_read = count_rows_read(monkeypatch)
    look = opened(tmp_path / "rows.parquet").sample(4096, seed=0)[0]
    assert len(look) == 4096
    assert sum(n_read) < len(X) / 5
    # From everywhere in the file: sorted rows must not all come from one end.
    numbers = [np.flatnonzero((row == X).all(axis=1))[0] for row in look[::256].astype(np.float32)]
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


# Names.


FRAMED = pd.DataFrame(SAMPLE.X, columns=NAMES)


def write_named(folder):
    """The columns in another order, beside others."""
    columns = {"id": np.arange(500).astype(str), "x2": FEW[:, 2], "x0": FEW[:, 0]}
    pq.write_table(pa.table({**columns, "x1": FEW[:, 1]}), folder / "named.parquet")
    return folder / "named.parquet"


READ = {
    "path": lambda path: path,
    "dataset": pyarrow.dataset.dataset,
    "table": lambda path: rows.open(pq.read_table(path)),
    "LazyFrame": pl.scan_parquet,
    "batches": lambda path: rows.from_batches(lambda: pq.ParquetFile(path).iter_batches(200)),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_columns_are_found_by_the_names_of_x(read, tmp_path):
    source = read(write_named(tmp_path))
    model = MomentConstrainedLDA().fit(FRAMED, SAMPLE.y, X_unlabeled=source)
    expected = fit(FEW)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    assert_allclose(model.predict_proba(source), expected.predict_proba(FEW), rtol=1e-9)


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_a_table_without_the_columns_of_x_is_refused(read, tmp_path):
    source = read(write_named(tmp_path))
    other = FRAMED.rename(columns={"x1": "weight"})
    with pytest.raises(
        ValueError, match=r"X_unlabeled lacks the columns \['weight'\]; it has \['id"
    ):
        MomentConstrainedLDA().fit(other, SAMPLE.y, X_unlabeled=source)


def test_columns_may_be_chosen_and_then_name_the_features(tmp_path):
    path = write_named(tmp_path)
    model = SupervisedLDA().fit(rows.open(path, columns=["x2", "x1"]), np.arange(500) % 2)
    assert_array_equal(model.feature_names_in_, ["x2", "x1"])
    expected = SupervisedLDA().fit(FEW[:, [2, 1]], np.arange(500) % 2)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    assert_array_equal(model.predict(path), expected.predict(FEW[:, [2, 1]]))


def test_columns_of_a_file_without_names_cannot_be_chosen(folder):
    with pytest.raises(ValueError, match=r"columns=\['a'\] selects by name, and X has no names"):
        rows.open(folder / "rows.npy", columns=["a"])


def test_names_are_missed_where_x_has_some(tmp_path):
    np.save(tmp_path / "rows.npy", FEW)
    with pytest.warns(UserWarning, match="X_unlabeled does not have valid feature names"):
        MomentConstrainedLDA().fit(FRAMED, SAMPLE.y, X_unlabeled=tmp_path / "rows.npy")


def test_a_fit_without_names_forgets_those_of_the_last(tmp_path):
    np.save(tmp_path / "rows.npy", FEW)
    model = SupervisedLDA().fit(FRAMED, SAMPLE.y)
    model.fit(tmp_path / "rows.npy", np.arange(500) % 2)
    assert not hasattr(model, "feature_names_in_")


def test_names_of_arrays_in_batches_can_be_given():
    source = rows.from_batches(lambda: [FEW], feature_names=NAMES)
    model = SupervisedLDA().fit(source, np.arange(500) % 2)
    assert_array_equal(model.feature_names_in_, NAMES)
    with pytest.raises(ValueError, match="batches have 3 columns, but 2 names"):
        rows.from_batches(lambda: [FEW], feature_names=["a", "b"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["x0", "x2", "x1"], "column 1 of X_unlabeled is 'x2', and was 'x1'"),
        (["a", "x1", "x2"], "column 0 of X_unlabeled is 'a', and was 'x0'"),
    ],
)
def test_names_of_arrays_in_batches_are_compared_with_those_of_x(names, message):
    model = MomentConstrainedLDA().fit(FRAMED, SAMPLE.y, X_unlabeled=named(FEW))
    right, wrong = (
        rows.from_batches(lambda: [FEW], feature_names=given) for given in (NAMES, names)
    )
    with pytest.raises(ValueError, match=message):
        MomentConstrainedLDA().fit(FRAMED, SAMPLE.y, X_unlabeled=wrong)
    with pytest.raises(ValueError, match=message.replace("X_unlabeled", "X")):
        model.predict(wrong)
    assert_array_equal(model.predict(right), model.predict(named(FEW)))


# Large arrays and tables in memory.


@pytest.mark.parametrize("kind", ["memory map", "table"])
def test_large_maps_and_tables_are_read_in_parts(kind, tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", FEW)
    large = np.load(tmp_path / "rows.npy", mmap_mode="r") if kind == "memory map" else table(FEW)
    assert dispatch.backend_of(large) is None
    monkeypatch.setattr(dispatch, "_LARGE", large.nbytes - 1)
    assert isinstance(opened(large), FileRows)
    assert_allclose(fit(large).coef_, fit(FEW).coef_, rtol=1e-9)


@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("names", [["x0", "x2", "x1"], ["x0", "x1", "y"], [*NAMES, "more"]])
def test_a_table_of_any_size_must_have_the_columns_of_x_in_their_order(
    names, is_large, monkeypatch
):
    other = pa.table({name: FEW[:, i % 3] for i, name in enumerate(names)})
    model = MomentConstrainedLDA().fit(FRAMED, SAMPLE.y, X_unlabeled=named(FEW))
    monkeypatch.setattr(dispatch, "_LARGE", 0 if is_large else 2**28)
    assert (dispatch.backend_of(other) is not None) == is_large
    with pytest.raises(ValueError, match=r"feature names should match|has 4 features, but X"):
        MomentConstrainedLDA().fit(FRAMED, SAMPLE.y, X_unlabeled=other)
    with pytest.raises(ValueError, match=r"feature names should match|has 4 features, but X"):
        model.predict(other)
    same = pa.Table.from_pandas(named(FEW), preserve_index=False)
    assert_array_equal(model.predict(same), model.predict(named(FEW)))


# 36. Sources that change.


WHOLE = SAMPLE.X_unlabeled
CHANGES = {
    "fewer rows": (WHOLE[:-1], "it gave 29999 rows, and at least 30000 before"),
    "more rows": (np.vstack([WHOLE, WHOLE]), "it gave more, and 30000 rows before"),
    "no rows": (WHOLE[:0], "it gave 0 rows, and at least 30000 before"),
}


@pytest.mark.parametrize(("other", "message"), CHANGES.values(), ids=CHANGES)
def test_batches_of_another_number_of_rows_in_a_later_pass_are_refused(other, message):
    batches = [WHOLE]
    source = rows.from_batches(lambda: batches)

    def change(n_pass, n_done, n_all):
        batches[0] = other

    with (
        rows.progress(change),
        pytest.raises(ValueError, match=f"X_unlabeled changed between two passes: {message}"),
    ):
        fit(source, ImplicitlyConstrainedLDA)


def test_a_batch_that_is_missing_in_a_later_pass_is_missed():
    batches = np.array_split(WHOLE, 3)
    source = rows.from_batches(lambda: batches)
    with (
        rows.progress(lambda *numbers: batches[2:] and batches.pop()),
        pytest.raises(ValueError, match="it gave 20000 rows, and 30000 rows before"),
    ):
        fit(source, ImplicitlyConstrainedLDA)


def test_batches_that_are_gone_before_the_first_pass_are_missed():
    batches = [FEW]
    source = rows.from_batches(lambda: batches)
    batches.clear()
    with pytest.raises(ValueError, match="it gave 0 rows, and at least 500 before"):
        fit(source)


def shuffled(rng):
    return lambda: [rng.permutation(FEW)]


def taken_from(batches, frame=lambda X: X):
    return lambda: map(frame, batches)


AGAIN = {
    "a shuffle": shuffled(np.random.default_rng(0)),
    **{
        f"a map over one generator of {n} {kind}": taken_from(iter(np.array_split(FEW, n)), frame)
        for n in (1, 2, 3)
        for kind, frame in (
            ("arrays", np.asarray),
            ("frames", named),
            ("tables", table),
            ("polars frames", pl.DataFrame),
        )
    },
}


@pytest.mark.parametrize("factory", AGAIN.values(), ids=AGAIN)
def test_batches_that_begin_with_other_rows_when_read_again_are_refused_at_once(factory):
    with pytest.raises(ValueError, match="X begins with other rows, or none, when its factory"):
        rows.from_batches(factory)


@pytest.mark.parametrize("frame", [np.asarray, named, table, pl.DataFrame])
def test_batches_that_begin_with_nan_begin_with_the_same(frame):
    bad = with_bad(np.nan, row=0)
    with pytest.raises(ValueError, match=r"contains (NaN|a missing value), first in row 0, column"):
        fit(rows.from_batches(lambda: [frame(bad.copy())]))


def test_batches_that_can_be_read_only_once_are_refused_before_they_are_read():
    batches = iter([FEW])
    with pytest.raises(TypeError, match="can be read only once: its factory returned the same"):
        rows.from_batches(lambda: batches)
    assert next(batches) is FEW


class Once:
    """What looks like a container, and goes through one iterator."""

    def __init__(self):
        self.batches = iter(np.array_split(WHOLE, 3))

    def __iter__(self):
        return self.batches


def test_a_container_that_can_be_read_only_once_is_refused_before_it_is_read():
    once = Once()
    with pytest.raises(TypeError, match="can be read only once: its factory returned the same"):
        rows.from_batches(lambda: once)
    assert len(list(once)) == 3


def test_a_reader_of_arrow_that_can_be_read_only_once_is_refused():
    with pytest.raises(TypeError, match=r"RecordBatchReader, which can be read only once"):
        fit(table(FEW).to_reader())


@pytest.mark.parametrize("batches", [[FEW], iter([FEW])], ids=["list", "iterator"])
def test_batches_must_come_from_a_function(batches):
    with pytest.raises(TypeError, match=r"factory must be a function .* got list"):
        rows.from_batches(batches if isinstance(batches, list) else list(batches))


FILES = {"npy": Path, "parquet": Path, "dataset": pyarrow.dataset.dataset}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("classifier", [MomentConstrainedLDA, ImplicitlyConstrainedLDA])
def test_a_file_written_to_during_a_fit_is_named(kind, classifier, tmp_path):
    path = tmp_path / "rows.npy" if kind == "npy" else tmp_path / "rows.parquet"
    if kind == "npy":
        np.save(path, WHOLE)
    else:
        pq.write_table(table(WHOLE), path)
    # Several slabs: the only pass of a moment-constrained fit is under way.
    source = rows.open(FILES[kind](path), memory=2**18)

    def touch(n_pass, n_done, n_all):
        os.utime(path, ns=(0, 0))

    with (
        rows.progress(touch),
        pytest.raises(ValueError, match=r"changed between two passes: .*rows\.\w+ was written to"),
    ):
        fit(source, classifier)


def test_a_file_written_to_before_it_is_fitted_to_again_is_named(tmp_path):
    np.save(tmp_path / "rows.npy", FEW)
    source = rows.open(tmp_path / "rows.npy")
    fit(source)
    os.utime(tmp_path / "rows.npy", ns=(0, 0))
    with pytest.raises(
        ValueError, match=r"X_unlabeled changed between two passes: .*rows\.npy was"
    ):
        fit(source)
    assert_allclose(fit(rows.open(tmp_path / "rows.npy")).coef_, fit(FEW).coef_, rtol=1e-9)


def test_a_file_that_shrinks_during_a_fit_is_named_with_both_sizes(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, SAMPLE.X_unlabeled)
    mapped = rows.open(np.load(path, mmap_mode="r"))
    size = path.stat().st_size

    def shrink(n_pass, n_done, n_all):
        os.truncate(path, size - 8)

    with (
        rows.progress(shrink),
        pytest.raises(ValueError, match=f"has {size - 8} bytes, and had {size} at first"),
    ):
        fit(mapped, ImplicitlyConstrainedLDA)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_file_that_is_cut_short_while_it_is_read_is_named(order, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.asarray(X, order=order))

    def shrink(n_pass, n_done, n_all):
        os.truncate(path, 10_000)

    with (
        rows.progress(shrink),
        pytest.raises(OSError, match=r"rows\.npy ends .* bytes early: it was cut short"),
    ):
        fit(rows.open(path, memory=1))


def test_a_map_that_is_cut_short_while_it_is_read_is_named(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, X)
    (chunk,) = MappedArray(np.load(path, mmap_mode="r"), "X").chunks(100)
    os.truncate(path, 10_000)
    with pytest.raises(ValueError, match=r"rows\.npy has 10000 bytes, and had 1800128"):
        chunk.fill(np.empty((100, 3), X.dtype), 100_000)


# 37. Batches that differ, 20. NaN.


def test_empty_batches_are_skipped():
    empty = FEW[:0]
    source = rows.from_batches(lambda: [empty, FEW[:100], empty, FEW[100:], empty])
    assert_allclose(fit(source).coef_, fit(FEW).coef_, rtol=1e-9)


def test_a_source_without_rows_has_to_say_how_wide_it_is():
    with pytest.raises(ValueError, match="gave no rows; pass n_features"):
        rows.from_batches(lambda: [])
    none = rows.from_batches(lambda: [FEW[:0]], n_features=3)
    with pytest.warns(UserWarning, match="got no unlabeled rows"):
        fit(none)


WITHOUT_ROWS = {
    "lazy frame": lambda: pl.LazyFrame(named(FEW)).filter(pl.col("x0") > 1e9),
    "dataset": lambda: pyarrow.dataset.dataset(table(FEW)).filter(
        pyarrow.dataset.field("x0") > 1e9
    ),
}


@pytest.mark.parametrize("source", WITHOUT_ROWS.values(), ids=WITHOUT_ROWS)
@pytest.mark.parametrize("method", SEMI_SUPERVISED.values(), ids=SEMI_SUPERVISED)
def test_a_query_without_rows_is_as_an_array_without_rows(source, method):
    with pytest.warns(UserWarning, match="got no unlabeled rows") as warned:
        model = method().fit(FRAMED, SAMPLE.y, X_unlabeled=source())
    assert len(warned) == 1
    assert_allclose(model.coef_, SupervisedLDA().fit(FRAMED, SAMPLE.y).coef_, rtol=1e-12)


def test_a_query_without_rows_beside_rows_of_x_changes_nothing():
    y = np.concatenate([SAMPLE.y, np.full(len(FEW), -1)])
    every = named(np.concatenate([SAMPLE.X, FEW]))
    model, expected = (
        ImplicitlyConstrainedLDA().fit(every, y, X_unlabeled=none)
        for none in (WITHOUT_ROWS["lazy frame"](), None)
    )
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)


DIFFERENT = {
    "width": (FEW[:, :2], r"batch 1 \(from row 500 on\) has 2 columns, but the first one has 3"),
    "dtype": (FEW.astype(np.float32), r"batch 1 \(from row 500 on\) holds float32, but the first"),
    "text": (FEW.astype(str), "batch 1 holds <U.*, and must hold real numbers"),
    "dimensions": (FEW[0], r"batch 1 must be 2-d, rows x features, got shape \(3,\)"),
}


@pytest.mark.parametrize(("other", "message"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_batch_of_another_kind_is_named(other, message):
    with pytest.raises(ValueError, match=f"X_unlabeled: {message}"):
        fit(rows.from_batches(lambda: [FEW, other]))


def test_a_table_of_other_columns_is_named():
    one = table(FEW)
    for other, message in (
        (one.drop(["x1"]), r"batch 1 \(from row 500 on\) lacks the columns \['x1'\] of the first"),
        (table(FEW.astype(np.float32)), "column 'x0' holds float32, but float64 in the first one"),
        (FEW, "is no table with named columns, .* but ndarray: give all"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(rows.from_batches(lambda other=other: [one, other]))


def test_files_of_other_columns_are_named(tmp_path):
    pq.write_table(table(FEW), tmp_path / "a.parquet")
    pq.write_table(table(FEW.astype(np.float32)), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet, column 'x0' holds float32, but float64 in"):
        fit(tmp_path)
    pq.write_table(table(FEW[:, :2]), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet lacks the columns \['x2'\] of .*a\.parquet"):
        fit(tmp_path)


def test_arrays_of_another_width_or_dtype_are_named(tmp_path):
    np.save(tmp_path / "a.npy", FEW)
    np.save(tmp_path / "b.npy", FEW.astype(np.float32))
    with pytest.raises(ValueError, match=r"b\.npy holds 3 columns of float32, but .*3 of float64"):
        fit(tmp_path)


def with_bad(value, row=1234, column=1):
    bad = WHOLE[:5000].copy()
    bad[row, column] = value
    return bad


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_numbers_that_are_not_finite_are_named_with_row_and_column(value, word, tmp_path):
    bad = with_bad(value)
    np.save(tmp_path / "rows.npy", bad)
    place = rf"Input X_unlabeled contains {word}, first in row 1234, column 1: .*rows\.npy"
    with pytest.raises(ValueError, match=place):
        fit(tmp_path / "rows.npy")
    pq.write_table(table(bad), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=f"{word}, first in row 1234, column 'x1': a block"):
        fit(tmp_path / "rows.parquet")
    model = fit(FEW)
    with pytest.raises(ValueError, match=f"Input X contains {word}, first in row 1234"):
        model.predict(tmp_path / "rows.npy")


def test_a_nan_beyond_the_first_look_is_found_in_the_first_pass():
    bad = X.copy()
    bad[149_999, 2] = np.nan
    read = opened(rows.from_batches(lambda: [bad]))
    with pytest.raises(ValueError, match=r"row 149999, column 2: block 2 \(rows 131072 to 149999"):
        read.moments(FRAME)


@pytest.mark.parametrize("kind", ["pyarrow", "polars", "pandas"])
def test_missing_values_are_named_with_row_and_column(kind):
    tables = {"pyarrow": lambda a: a, "polars": pl.from_arrow, "pandas": pa.Table.to_pandas}
    columns = {"x0": [1.0, 2.0, 3.0], "x1": [1.0, 2.0, None], "x2": [0.0, 1.0, 5.0]}
    batches = [tables[kind](table(FEW)), tables[kind](pa.table(columns))]
    with pytest.raises(
        ValueError, match=r"contains a missing value, first in row 502, column 'x1'"
    ):
        fit(rows.from_batches(lambda: batches))


def test_columns_that_hold_no_numbers_are_named(tmp_path):
    path = write_named(tmp_path)
    with pytest.raises(
        ValueError, match=r"X_unlabeled, column 'id' does not hold real numbers.*columns="
    ):
        fit(rows.open(path, columns=["id", "x0", "x1"]))


# Files that cannot be read.


def test_a_file_that_was_cut_short_is_named(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, FEW)
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(OSError, match=r"rows\.npy has 12127 bytes, but 500 x 3 .* take 12128"):
        fit(path)
    path = tmp_path / "rows.parquet"
    pq.write_table(table(FEW), path)
    os.truncate(path, 1000)
    with pytest.raises(OSError, match=r"rows\.parquet cannot be read as Parquet"):
        fit(path)


def test_a_parquet_file_with_bad_pages_is_named(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(table(FEW), path, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[100:4000] = bytes(3900)
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"X_unlabeled: .*rows\.parquet cannot be read as Parquet"):
        fit(path)
    with pytest.raises(OSError, match="X_unlabeled: the dataset cannot be read"):
        fit(pyarrow.dataset.dataset(path))


def test_a_parquet_file_whose_pages_differ_from_their_checksums_is_named(tmp_path):
    path = tmp_path / "rows.parquet"
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(table(FEW), path, **options)
    data = bytearray(path.read_bytes())
    place = data.index(FEW[250, 1].tobytes())
    data[place] ^= 1  # another number, and as good as any
    path.write_bytes(data)
    for source in (path, pyarrow.dataset.dataset(path)):
        with pytest.raises(OSError, match=r"cannot be read.*CRC"):
            fit(source)


def test_a_parquet_file_with_a_column_twice_is_refused(tmp_path):
    columns = [pa.array(column) for column in FEW.T]
    twice = pa.Table.from_arrays(columns, names=["a", "b", "a"])
    pq.write_table(twice, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"rows\.parquet has 2 columns called 'a'"):
        fit(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="X has 2 columns called 'a'"):
        rows.from_batches(lambda: [twice])


def test_names_of_rows_that_pandas_stores_are_no_feature(tmp_path):
    frame = named(FEW)[::-1]
    frame[frame["x0"] > 0].to_parquet(tmp_path / "a.parquet")
    frame.set_index("x2").to_parquet(tmp_path / "b.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "a.parquet").names
    assert opened(tmp_path / "a.parquet").feature_names == NAMES
    assert opened(tmp_path / "b.parquet").feature_names == ["x0", "x1"]
    chosen = opened(rows.open(tmp_path / "b.parquet", columns=NAMES))
    assert_array_equal(chosen.sample(1000, 0)[0], FEW[::-1])


@pytest.mark.parametrize(("memory", "most"), [(2**28, 2**26), (2**24, 2**24), (1, 2**24)])
def test_buffers_of_many_columns_stay_within_memory(memory, most, tmp_path, monkeypatch):
    wide = RNG.standard_normal((50, 1500)).astype(np.float32)
    pq.write_table(table(wide), tmp_path / "rows.parquet")
    sizes = []

    class Noted(pq.ParquetFile):
        def __init__(self, *args, buffer_size, **options):
            sizes.append(buffer_size)
            super().__init__(*args, buffer_size=buffer_size, **options)

    monkeypatch.setattr(pq, "ParquetFile", Noted)
    read = opened(rows.open(tmp_path / "rows.parquet", memory=memory))
    sizes.clear()
    assert_array_equal(read.sample(50, 0)[0], wide)
    assert sizes
    assert max(sizes) * 1500 <= most


def test_what_is_no_npy_file_is_named(tmp_path):
    path = tmp_path / "rows.npy"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(OSError, match=r"rows\.npy is no \.npy file that can be read"):
        fit(path)
    np.save(path, FEW[0])
    with pytest.raises(ValueError, match=r"rows\.npy must hold a 2-d array.* got \(3,\)"):
        fit(path)
    np.save(path, FEW.astype(str))
    with pytest.raises(ValueError, match=r"rows\.npy holds <U.*, and must hold real numbers"):
        fit(path)


def test_paths_that_lead_nowhere_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"X_unlabeled: there is no file .*none\.npy"):
        fit(tmp_path / "none.npy")
    with pytest.raises(FileNotFoundError, match=r"X_unlabeled: there is no file .*none"):
        fit(str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match=r"holds no file of that pattern"):
        fit(str(tmp_path / "*.npy"))
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(FileNotFoundError, match=r"holds no file that ends in \.npy"):
        fit(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "n_rows"),
    [("", 20), ("*.npy", 10), ("**/*.npy", 20), ("_*.npy", 3), ("_more/*.npy", 7)],
)
def test_names_that_begin_with_an_underscore_or_a_dot_are_left_out(pattern, n_rows, tmp_path):
    files = {"a": 10, "_a": 3, ".a": 4, "sub/a": 10, "sub/_a": 5, "_more/a": 7}
    for file, n in files.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        np.save(tmp_path / f"{file}.npy", FEW[:n])
    assert opened(str(tmp_path / pattern)).n_rows == n_rows


def test_files_of_unknown_or_several_formats_are_refused_with_the_way_out(tmp_path):
    (tmp_path / "rows.csv").write_text("x0,x1,x2\n1,2,3\n")
    with pytest.raises(ValueError, match=r"format of .*rows\.csv.*from_batches"):
        fit(tmp_path / "rows.csv")
    np.save(tmp_path / "rows.npy", FEW)
    pq.write_table(table(FEW), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"mixes files of several formats \(.*rows\.npy"):
        fit(tmp_path)


def test_a_dataset_of_another_format_does(tmp_path):
    pl.DataFrame(FEW, schema=NAMES).write_csv(tmp_path / "rows.csv")
    source = pyarrow.dataset.dataset(tmp_path / "rows.csv", format="csv")
    assert_allclose(fit(source).coef_, fit(FEW).coef_, rtol=1e-9)


@pytest.mark.parametrize("n_features", [2, 4])
def test_rows_of_another_width_are_refused_with_both_widths(folder, n_features):
    labeled = RNG.standard_normal((20, n_features))
    model = SupervisedLDA().fit(labeled, SAMPLE.y)
    with pytest.raises(ValueError, match=f"X has 3 features, but X of fit has {n_features}"):
        model.predict(folder / "rows.npy")


def test_labels_and_weights_of_another_length_are_refused(folder):
    with pytest.raises(ValueError, match="X has 150000 rows, y has 3 labels"):
        SupervisedLDA().fit(folder / "rows.npy", [0, 1, 1])
    model = SupervisedLDA().fit(SAMPLE.X, SAMPLE.y)
    for method in (model.score, model.log_likelihood):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            method(folder / "rows.npy", [0, 1, 1])
    with pytest.raises(ValueError, match="each of the 500 rows, got shape"):
        MomentConstrainedLDA().fit(
            SAMPLE.X,
            SAMPLE.y,
            X_unlabeled=rows.from_batches(lambda: [FEW]),
            sample_weight_unlabeled=np.ones(7),
        )


@pytest.mark.parametrize(("n_rows", "found"), [(29_999, "more"), (30_001, "30000 rows")])
def test_a_promise_of_another_number_of_rows_is_refused(n_rows, found):
    source = rows.from_batches(lambda: [WHOLE], n_rows=n_rows)
    with pytest.raises(ValueError, match=rf"{n_rows} rows \(n_rows=.*\), but gave {found}\."):
        fit(source)


def test_a_source_too_short_for_a_first_look_is_refused():
    source = rows.from_batches(lambda: [FEW], n_rows=501)
    with pytest.raises(ValueError, match=r"X_unlabeled ended before its row 500 \(n_rows=501 of"):
        fit(source)


SENSELESS = {
    "n_features": ({"n_features": 4}, "batches have 3 columns, but n_features=4"),
    "n_features of text": ({"n_features": "x"}, "n_features must be an integer, .* got 'x'"),
    "no rows": ({"n_rows": 0}, "n_rows=0, but the first batch of X has 500 rows"),
    "n_rows of text": ({"n_rows": "x"}, "n_rows must be an integer, 0 or more, .* got 'x'"),
    "half a row": ({"n_rows": 3.5}, r"n_rows must be an integer, .* got 3\.5"),
    "fewer than no rows": ({"n_rows": -1}, "n_rows must be an integer, .* got -1"),
    "memory": ({"memory": 0}, "memory must be a positive number of bytes, got 0"),
    "memory of text": ({"memory": "1GB"}, r"memory must be .* got '1GB'\. 2\*\*30"),
    "no memory": ({"memory": None}, "memory must be a positive number of bytes, got None"),
    "endless memory": ({"memory": np.inf}, "memory must be a positive number of bytes, got inf"),
    "repeated names": ({"feature_names": ["a", "b", "a"]}, "has 2 columns called 'a'"),
}


@pytest.mark.parametrize(("settings", "message"), SENSELESS.values(), ids=SENSELESS)
def test_settings_that_make_no_sense_are_refused(settings, message, folder):
    with pytest.raises(ValueError, match=message):
        rows.from_batches(lambda: [FEW], **settings)
    if "memory" in settings:
        with pytest.raises(ValueError, match=message):
            rows.open(folder / "rows.npy", **settings)


@pytest.mark.parametrize("names", ["x0", b"x0", 3])
def test_names_are_a_list(names, folder):
    with pytest.raises(TypeError, match=f"columns must be a list of names, got {names!r}"):
        rows.open(folder / "rows.parquet", columns=names)
    with pytest.raises(TypeError, match=f"feature_names must be a list of names, got {names!r}"):
        rows.from_batches(lambda: [FEW], feature_names=names)


NO_SOURCES = {
    "None": (None, TypeError, "must be a path, .* got NoneType"),
    "a number": (3, TypeError, "must be a path, .* got int"),
    "a table in memory": (named(FEW), TypeError, "got DataFrame.* to a classifier as they are"),
    "a source": (rows.from_batches(lambda: [FEW]), TypeError, "must be a path, .* got FileSource"),
    "no paths": ([], ValueError, "empty list: pass the path of at least one file"),
    "arrays": ([FEW, FEW], TypeError, "list of ndarray, .*from_batches"),
    "a path and an array": (["a.npy", FEW], TypeError, "entry 1 is of type ndarray"),
    "an array and a path": ([FEW, Path("a.npy")], TypeError, "entry 0 is of type ndarray"),
    "a scanner": (pyarrow.dataset.dataset(table(FEW)).scanner(), TypeError, "got Scanner"),
}


@pytest.mark.parametrize(("X", "error", "message"), NO_SOURCES.values(), ids=NO_SOURCES)
def test_what_cannot_be_opened_is_refused_with_what_can(X, error, message):
    with pytest.raises(error, match=message):
        rows.open(X)


def test_a_list_of_paths_and_arrays_is_refused_by_a_fit():
    with pytest.raises(TypeError, match=r"X_unlabeled is a list with paths in it, .* entry 1 is"):
        fit(["a.npy", FEW])


def test_readers_of_arrow_are_refused_with_the_way_out(folder):
    with pytest.raises(TypeError, match=r"a pyarrow Scanner, .* pass X_unlabeled\.to_table\(\)"):
        fit(pyarrow.dataset.dataset(table(FEW)).scanner())
    with pytest.raises(TypeError, match=r"a pyarrow ParquetFile, .* pass X_unlabeled\.read\(\)"):
        fit(pq.ParquetFile(folder / "rows.parquet"))


NO_LIST = {
    "set": lambda path: {path},
    "generator": lambda path: path.parent.glob(path.name),
    "array": lambda path: np.array([str(path)]),
    "array of objects": lambda path: np.array([path]),
    "pandas Series": lambda path: pd.Series([str(path)]),
    "polars Series": lambda path: pl.Series([str(path)]),
}


@pytest.mark.parametrize("kind", NO_LIST)
def test_paths_that_come_in_no_list_are_refused_with_the_way_out(kind, folder):
    def paths():
        return NO_LIST[kind](folder / "rows.npy")

    with pytest.raises(TypeError, match=r"X_unlabeled is of type .* pass list\(X_unlabeled\)"):
        fit(paths())
    with pytest.raises(TypeError, match=r"X is of type .* pass list\(X\)"):
        rows.open(paths())
    assert rows.open(list(paths())).reader.n_rows == len(X)


def test_the_home_folder_may_be_left_out_of_a_path(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    assert rows.open("~/rows.npy").reader.n_rows == len(X)
    assert rows.open(Path("~") / "rows.n*y").reader.n_rows == len(X)


LAZY_FAULTS = {
    "no such column": (lambda good: good.select("nope"), ValueError, "ColumnNotFoundError: .*nope"),
    "a cast that fails": (
        lambda good: good.with_columns(x1=pl.lit("text").cast(pl.Float64)),
        ValueError,
        "conversion from `str`",
    ),
    "no such file": (lambda good: pl.scan_parquet("none.parquet"), FileNotFoundError, "none"),
}


@pytest.mark.parametrize(("change", "error", "message"), LAZY_FAULTS.values(), ids=LAZY_FAULTS)
def test_errors_of_a_query_name_the_argument_and_leave_out_its_plan(change, error, message):
    query = change(pl.from_pandas(named(FEW)).lazy())
    with pytest.raises(error, match=f"^X_unlabeled: the LazyFrame .*{message}") as caught:
        MomentConstrainedLDA().fit(FRAMED, SAMPLE.y, X_unlabeled=query)
    assert "\n" not in str(caught.value)
    with pytest.raises(error, match=r"^X: the LazyFrame"):
        MomentConstrainedLDA().fit(query, np.arange(500) % 2)


def test_a_file_of_more_columns_than_x_which_has_no_names_says_how_to_choose(tmp_path):
    frame = named(FEW).assign(id=np.arange(500).astype(str))
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"has 4 features, .* 'id'\], .*open\(\.\.\., columns="):
        fit(tmp_path / "rows.parquet")


def test_an_error_of_a_factory_says_which_batch_it_was():
    def batches():
        yield FEW
        raise KeyError("missing")

    source = rows.from_batches(batches)
    with pytest.raises(KeyError, match="missing") as caught:
        fit(source)
    assert caught.value.__notes__ == ["Raised while batch 1 of X_unlabeled was made."]
    with pytest.raises(ZeroDivisionError) as caught:
        rows.from_batches(lambda: 1 / 0)
    assert caught.value.__notes__ == ["Raised by the factory of batches that was passed for X."]


NO_BATCHES = {
    "None": (None, "must return an iterable of batches, got NoneType"),
    "one number": (3, "must return an iterable of batches, got int"),
    "a batch of None": ([None], "batch 0 must be a 2-d array or a table .* got NoneType"),
    "a later one of None": ([FEW, None], "batch 1 must be a 2-d array or a table .* got NoneType"),
    "sparse": ([scipy.sparse.csr_array(FEW)], r"batch 0 is a sparse csr_array: .*toarray\(\)"),
}


@pytest.mark.parametrize(("batches", "message"), NO_BATCHES.values(), ids=NO_BATCHES)
def test_what_is_no_batch_is_refused(batches, message):
    with pytest.raises(TypeError, match=message):
        fit(rows.from_batches(lambda: batches))


def test_a_source_says_what_it_is(folder):
    assert repr(rows.open(folder / "rows.npy")) == "<150000 x 3 rows of .npy files>"
    assert repr(rows.from_batches(lambda: [FEW])) == "<? x 3 rows of batches of arrays>"
    lazy = pl.from_pandas(named(FEW)).lazy()
    assert repr(rows.open(lazy)) == "<? x 3 rows of a polars LazyFrame>"
    assert repr(rows.open(pa.table(named(FEW)))) == "<500 x 3 rows of a pyarrow table>"


def test_nothing_goes_on_reading_after_an_error(folder):
    def stop(n_pass, n_done, n_all):
        raise KeyboardInterrupt

    model, before = SupervisedLDA().fit(SAMPLE.X, SAMPLE.y), threading.active_count()
    for n_jobs in (None, 2):
        with rows.progress(stop), pytest.raises(KeyboardInterrupt):
            fit(folder / "rows.npy", n_jobs=n_jobs)
        assert threading.active_count() == before
    with rows.progress(stop), pytest.raises(KeyboardInterrupt):
        model.predict(folder / "rows.npy")
    assert threading.active_count() == before
