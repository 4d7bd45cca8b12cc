"""Batches from a function: the same every time, and alike."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from backends import table
from file_rows import FEW, FRAMED, NAMES, SAMPLE, WHOLE, fit, named, with_bad
from iclda import ImplicitlyConstrainedLDA, MomentConstrainedLDA, SupervisedLDA, rows


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


CHANGES = {
    "fewer rows": (WHOLE[:-1], "it gave 29999 rows, and at least 30000 before"),
    "more rows": (np.vstack([WHOLE, WHOLE]), "it gave more, and 30000 rows before"),
    "no rows": (WHOLE[:0], "it gave 0 rows, and at least 30000 before"),
}


@pytest.mark.parametrize(("other", "message"), CHANGES.values(), ids=CHANGES)
def test_36_batches_of_another_number_of_rows_in_a_later_pass_are_refused(other, message):
    batches = [WHOLE]
    source = rows.from_batches(lambda: batches)

    def change(n_pass, n_done, n_all):
        batches[0] = other

    with (
        rows.progress(change),
        pytest.raises(ValueError, match=f"X_unlabeled changed between two passes: {message}"),
    ):
        fit(source, ImplicitlyConstrainedLDA)


def test_36_a_batch_that_is_missing_in_a_later_pass_is_missed():
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
def test_36_batches_that_begin_with_other_rows_when_read_again_are_refused_at_once(factory):
    with pytest.raises(ValueError, match="X begins with other rows, or none, when its factory"):
        rows.from_batches(factory)


@pytest.mark.parametrize("frame", [np.asarray, named, table, pl.DataFrame])
def test_batches_that_begin_with_nan_begin_with_the_same(frame):
    bad = with_bad(np.nan, row=0)
    with pytest.raises(ValueError, match=r"contains (NaN|a missing value), first in row 0, column"):
        fit(rows.from_batches(lambda: [frame(bad.copy())]))


def test_36_batches_that_can_be_read_only_once_are_refused_before_they_are_read():
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


def test_37_empty_batches_are_skipped():
    empty = FEW[:0]
    source = rows.from_batches(lambda: [empty, FEW[:100], empty, FEW[100:], empty])
    assert_allclose(fit(source).coef_, fit(FEW).coef_, rtol=1e-9)


def test_a_source_without_rows_has_to_say_how_wide_it_is():
    with pytest.raises(ValueError, match="gave no rows; pass n_features"):
        rows.from_batches(lambda: [])
    none = rows.from_batches(lambda: [FEW[:0]], n_features=3)
    with pytest.warns(UserWarning, match="got no unlabeled rows"):
        fit(none)


DIFFERENT = {
    "width": (FEW[:, :2], r"batch 1 \(from row 500 on\) has 2 columns, but the first one has 3"),
    "dtype": (FEW.astype(np.float32), r"batch 1 \(from row 500 on\) holds float32, but the first"),
    "text": (FEW.astype(str), "batch 1 holds <U.*, and must hold real numbers"),
    "dimensions": (FEW[0], r"batch 1 must be 2-d, rows x features, got shape \(3,\)"),
}


@pytest.mark.parametrize(("other", "message"), DIFFERENT.values(), ids=DIFFERENT)
def test_37_a_batch_of_another_kind_is_named(other, message):
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
