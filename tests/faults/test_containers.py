"""Where rows and labels come from changes no result; what is passed stays as it is."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from iclda import SelfLearningLDA
from tests.helpers.changes import assert_same_fit
from tests.helpers.problems import every_classifier, whole_family

TRUE = np.arange(50) % 2
X = np.random.default_rng(8).standard_normal((50, 3)) + 2.0 * TRUE[:, None] * [
    1.0,
    -1.0,
    0.0,
]
Y = np.where(np.arange(50) < 16, TRUE, -1)
WEIGHTS = 1.0 + np.arange(50) % 3


def read_only(a):
    a = np.asfortranarray(a).copy(order="K")
    a.flags.writeable = False
    return a


LAYOUTS = {
    "strides": lambda a: np.repeat(a, 2, axis=0)[::2],
    "negative strides": lambda a: np.flip(np.flip(a).copy()),
    "read-only Fortran order": read_only,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "big-endian float32": lambda a: a.astype(">f4" if a.dtype.kind == "f" else ">i2"),
}


# 33. Layouts of arrays.


@every_classifier
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_33_the_layout_of_arrays_changes_no_result_and_no_input(classifier, layout):
    passed = [layout(a) for a in (X[:40], Y[:40], WEIGHTS[:40], X[40:], WEIGHTS[40:])]
    before = [a.tobytes() for a in passed]
    rows, y, weights, unlabeled, unlabeled_weights = passed
    model = classifier().fit(
        rows,
        y,
        weights,
        X_unlabeled=unlabeled,
        sample_weight_unlabeled=unlabeled_weights,
    )
    # The same values, as NumPy would lay them out itself.
    plain = [np.array(a, dtype=a.dtype.newbyteorder("="), order="C") for a in passed]
    expected = classifier().fit(
        *plain[:3], X_unlabeled=plain[3], sample_weight_unlabeled=plain[4]
    )
    assert_same_fit(model, expected, 1e-8)
    probabilities = model.predict_proba(rows)
    assert_allclose(probabilities, expected.predict_proba(plain[0]), rtol=0, atol=1e-8)
    assert model.score(rows, y, weights) == expected.score(*plain[:3])
    model.log_likelihood(rows[:16], y[:16])
    assert [a.tobytes() for a in passed] == before


@every_classifier
@pytest.mark.parametrize("mode", ["r", "c"])
def test_33_a_memory_map_is_read_and_never_written(classifier, mode, tmp_path):
    for name, array in (("X", X), ("y", Y), ("unlabeled", -X)):
        np.save(tmp_path / f"{name}.npy", array)
    written = {path: path.read_bytes() for path in tmp_path.iterdir()}
    rows, y, unlabeled = (
        np.load(tmp_path / f"{name}.npy", mmap_mode=mode)
        for name in ("X", "y", "unlabeled")
    )
    model = classifier().fit(rows, y, X_unlabeled=unlabeled)
    expected = classifier().fit(X, Y, X_unlabeled=-X)
    assert_same_fit(model, expected, 1e-12)
    assert_allclose(
        model.predict_proba(rows), expected.predict_proba(X), rtol=0, atol=1e-12
    )
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == written


@every_classifier
def test_33_the_fit_does_not_change_with_the_input_afterwards(classifier):
    rows = X.copy()
    y = Y.copy()
    model = classifier().fit(rows, y)
    before = model.predict_proba(X)
    rows[:] = 0
    y[:] = 0
    assert_array_equal(model.predict_proba(X), before)


# Unlabeled rows of their own.


@every_classifier
@pytest.mark.parametrize("n_rows", [0, 5])
def test_unlabeled_rows_of_another_width_are_refused_with_both_widths(
    classifier, n_rows
):
    with pytest.raises(
        ValueError, match="X_unlabeled has 2 features, but X of fit has 3"
    ):
        classifier().fit(X, Y, X_unlabeled=np.zeros((n_rows, 2)))


@every_classifier
def test_35_sparse_rows_are_refused_with_the_way_out(classifier):
    with pytest.raises(TypeError, match=r"Sparse data was passed.*toarray"):
        classifier().fit(scipy.sparse.csr_array(X), Y)
    with pytest.raises(TypeError, match=r"Sparse data was passed.*toarray"):
        classifier().fit(X, Y, X_unlabeled=scipy.sparse.csr_array(X))


def masked(values, *place):
    """An array with a value under a mask that changes every fit."""
    masked = np.ma.array(values, copy=True)
    masked[place] = 1e6
    masked[place] = np.ma.masked
    return masked


@whole_family
def test_20_masked_entries_are_named_by_row_and_column(classifier):
    rows = masked(X, 3, 1)
    # Nothing is masked.
    model = classifier().fit(np.ma.array(X), Y)
    assert_array_equal(model.coef_, classifier().fit(X, Y).coef_)
    for name, call in {
        "X": lambda: classifier().fit(rows, Y),
        "X_unlabeled": lambda: classifier().fit(X, Y, X_unlabeled=rows),
    }.items():
        with pytest.raises(
            ValueError, match=rf"Input {name} contains masked.* row 3, column 1\."
        ):
            call()
    for method in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(
            ValueError, match=r"contains masked entries, first in row 3, column 1"
        ):
            method(rows)


def test_8_masked_labels_are_missing():
    model = SelfLearningLDA(unlabeled=None).fit(X, np.ma.array(TRUE, mask=Y == -1))
    assert_array_equal(model.coef_, SelfLearningLDA().fit(X, Y).coef_)
