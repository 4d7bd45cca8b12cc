"""Views: maps of rows that are learned without labels, and fits of mapped rows."""

import warnings

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

import iclda
from iclda import (
    AverageLDA,
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    PessimisticLDA,
    SupervisedLDA,
)
from iclda._estimators.views import summary_of_rows
from iclda._rows.views import (
    KERNEL,
    NORMALIZE,
    STANDARDIZE,
    VIEWS,
    WHITEN,
    KernelMap,
    UnitLength,
    learn_bounds,
    learn_view,
    placed_view,
    steps_of,
)
from tests.helpers.row_sources import SOURCES, npy

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(300, 4)) @ RNG.normal(size=(4, 4)) * [1, 10, 100, 1000] + 50
# Inside or outside of a circle, whose labels are known of the first 60 rows.
CIRCLE = RNG.normal(size=(400, 3))
SIDE = (np.square(CIRCLE[:, :2]).sum(axis=1) > 1.4).astype(int)
LABELS = np.where(np.arange(400) < 60, SIDE, -1)


# Evenly spaced probabilities, at which quantiles make a column of 400 rows.
SHARES = (np.arange(400) + 0.5) / 400
ROW_NUMBERS = np.arange(400)
# Columns in which no number is an error.
HONEST = {
    "normal": stats.norm.ppf(SHARES),
    "uniform": SHARES,
    "incomes": stats.lognorm.ppf(SHARES, 2.0),
    "waiting times": stats.expon.ppf(SHARES),
    "two groups": stats.norm.ppf(SHARES) + 20 * (ROW_NUMBERS % 10 == 0),
    "yes or no": ROW_NUMBERS % 2,
    "rare category": ROW_NUMBERS % 50 == 0,
    "rarest category": ROW_NUMBERS == 7,
    "shares of an unknown category": np.where(ROW_NUMBERS < 3, 0.05, SHARES < 0.2),
    "counts, mostly zero": stats.poisson.ppf(SHARES, 0.1),
    "counts of rare floods": stats.nbinom.ppf(SHARES, 0.05, 0.01),
    "amounts, mostly zero": np.where(
        ROW_NUMBERS % 10 == 0, stats.lognorm.ppf(SHARES, 1.5), 0
    ),
    "marks": ROW_NUMBERS % 5,
    "constant": np.full(400, 3.0),
}
# Columns that show what is usual in them, so that errors can be told.
TELLING = HONEST.keys() - {"constant", "rarest category"}


def with_cell(column, value):
    """A column as the only one of a table, with a value in its row 11."""
    rows = np.asarray(column, dtype=np.float64)[:, None].copy()
    rows[11] = value
    return rows


def learn(name, rows, weights=None):
    weights = np.ones(len(rows)) if weights is None else weights
    return learn_view(name, summary_of_rows(rows, weights, has_covariance=True))


def test_standardized_columns_have_mean_0_and_deviation_1():
    mapped = learn(STANDARDIZE, ROWS)(ROWS)
    assert_allclose(mapped, StandardScaler().fit_transform(ROWS), atol=1e-12)


def test_a_column_of_two_values_is_divided_by_their_difference():
    rare = (np.arange(300) < 3) * 7.0
    mapped = learn(STANDARDIZE, np.column_stack([ROWS, rare]))(
        np.column_stack([ROWS, rare])
    )
    assert np.ptp(mapped[:, -1]) == pytest.approx(1.0)


def test_whitened_rows_have_nearly_the_covariance_1_whatever_the_columns_were():
    for mixing in (np.eye(3), [[1.0, 2.0, 0.0], [0.0, 1.0, 3.0], [0.5, 0.0, 10.0]]):
        mixed = CIRCLE @ mixing
        covariance = np.cov(learn(WHITEN, mixed)(mixed).T, bias=True)
        assert_allclose(covariance, np.eye(3), atol=0.03)


def test_normalized_rows_have_length_1():
    mapped = learn(NORMALIZE, ROWS)(ROWS)
    assert_allclose(np.linalg.norm(mapped, axis=1), 1.0)


@pytest.mark.parametrize("size", [1e-200, 1e-170, 1e170, 1e200])
def test_rows_whose_squares_leave_the_numbers_have_length_1_too(size):
    view = UnitLength(np.zeros(4))
    directions = view(ROWS)
    rows = ROWS.copy()
    rows[::2] *= size / 1e3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_allclose(view(rows), directions, rtol=1e-12, atol=1e-15)
    rows[0] = 0.0
    assert_allclose(view(rows)[1:], directions[1:], rtol=1e-12, atol=1e-15)
    assert not view(rows)[0].any()


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_leaves_the_rows_as_they_are(name):
    view = learn(name, ROWS)
    rows = ROWS.copy()
    rows.flags.writeable = False
    mapped = view(rows)
    assert_array_equal(rows, ROWS)
    # The arrays of a view that serves many blocks are moved beforehand.
    strict_rows = array_api_strict.asarray(ROWS)
    placed = placed_view(view, strict_rows)
    assert_allclose(np.asarray(placed(strict_rows)), mapped, atol=1e-10)
    assert_array_equal(np.asarray(strict_rows), ROWS)


def test_kernel_features_have_the_inner_products_of_the_kernel_of_scikit_learn():
    rows = CIRCLE[:60]
    standardize, kernel_map, _ = steps_of(learn(KERNEL, rows))
    seen = standardize(rows)
    features = kernel_map(seen)
    # All rows are landmarks: nothing is approximated.
    kernel = rbf_kernel(seen, gamma=kernel_map.gamma)
    assert_allclose(features @ features.T, kernel, atol=1e-9)
    nystroem = Nystroem(gamma=kernel_map.gamma, n_components=60).fit(seen)
    expected = nystroem.transform(seen)
    assert_allclose(features @ features.T, expected @ expected.T, atol=1e-6)


def test_landmarks_depend_neither_on_the_order_of_the_rows_nor_on_their_units():
    order = RNG.permutation(400)
    one = learn(KERNEL, CIRCLE)
    other = learn(KERNEL, CIRCLE[order] * [3.0, 0.01, 1e5] + 7.0)
    other_rows = CIRCLE * [3.0, 0.01, 1e5] + 7.0
    assert_allclose(np.abs(one(CIRCLE)), np.abs(other(other_rows)), atol=1e-6)


@pytest.mark.parametrize("name", VIEWS)
def test_weight_2_is_a_row_that_occurs_twice(name):
    weights = 1.0 + (np.arange(300) < 50)
    twice = np.vstack([ROWS, ROWS[:50]])
    seen = learn(name, ROWS, weights)(ROWS)
    assert_allclose(learn(name, twice)(ROWS), seen, atol=1e-8)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_maps_arrays_of_other_libraries_alike(name):
    view = learn(name, ROWS)
    mapped = view(array_api_strict.asarray(ROWS))
    assert mapped.shape == (300, view.n_features)
    assert_allclose(np.asarray(mapped), view(ROWS), atol=1e-10)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize(
    "rows",
    [
        np.ones((5, 3)),
        np.eye(3)[[0, 1]],
        np.tile([[0.0], [1.0]], (10, 1)),
        np.repeat(ROWS[:20, :1], 3, axis=1),
        ROWS * 1e150,
        ROWS * 1e-150,
        RNG.normal(size=(5, 40)),
    ],
    ids=["equal", "two", "one column", "copies", "huge", "tiny", "wide"],
)
def test_odd_rows_have_a_finite_view(name, rows):
    assert np.isfinite(learn(name, rows)(rows)).all()


def test_the_kernel_of_an_infinite_row_shows_it():
    kernel_map = KernelMap(CIRCLE[:5], np.eye(5), 1.0)
    far = np.array([[1e200, 0.0, 0.0], [np.inf, 0.0, 0.0], [np.nan, 0.0, 0.0]])
    with np.errstate(all="ignore"):
        kernel = kernel_map(far)
    assert (kernel[0] == 0).all()
    assert np.isnan(kernel[1:]).all()


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize(
    "classifier",
    [SupervisedLDA, ExpectationMaximizationLDA, AverageLDA, ImplicitlyConstrainedLDA],
)
def test_a_fit_in_a_view_is_that_of_mapped_rows_wherever_they_are(name, classifier):
    fitted = classifier(view=name, shrinkage=0.2).fit(CIRCLE, LABELS)
    mapped = fitted.view_(CIRCLE)
    alone = classifier(view=None, shrinkage=0.2).fit(mapped, LABELS)
    assert_allclose(
        fitted.predict_proba(CIRCLE), alone.predict_proba(mapped), atol=1e-6
    )

    parts = iclda.rows.from_batches(lambda: iter([CIRCLE[:150], CIRCLE[150:]]))
    read = classifier(view=name, shrinkage=0.2).fit(parts, LABELS)
    assert_allclose(read.predict_proba(parts), fitted.predict_proba(CIRCLE), atol=1e-6)


@pytest.mark.parametrize("name", VIEWS)
def test_exports_map_the_rows_too(name):
    runtime = pytest.importorskip("onnxruntime")
    fitted = SupervisedLDA(view=name, shrinkage=0.2).fit(CIRCLE, LABELS)
    expected = fitted.predict_proba(CIRCLE)
    assert_allclose(fitted.to_sklearn().predict_proba(CIRCLE), expected, atol=1e-8)
    session = runtime.InferenceSession(fitted.to_onnx().SerializeToString())
    label, probabilities = session.run(None, {"X": CIRCLE})
    assert_allclose(probabilities, expected, atol=1e-8)
    assert (label == fitted.predict(CIRCLE)).all()


def test_a_kernel_makes_a_circle_linear():
    flat = ImplicitlyConstrainedLDA(shrinkage=0.2).fit(CIRCLE, LABELS)
    curved = ImplicitlyConstrainedLDA(shrinkage=0.2, view="kernel").fit(CIRCLE, LABELS)
    assert flat.score(CIRCLE, SIDE) < 0.6
    assert curved.score(CIRCLE, SIDE) > 0.75
    # The certificate is that of the mapped rows.
    assert 0 <= curved.gap_ < 1e-6
    safe = PessimisticLDA(shrinkage=0.2, view="kernel").fit(CIRCLE, LABELS)
    assert safe.gain_bounds(CIRCLE, LABELS).worst > -1.0


def test_an_unknown_view_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"view.*'whitened-kernel'.*Got 'kernle'"):
        SupervisedLDA(view="kernle").fit(CIRCLE, LABELS)


@pytest.mark.parametrize("column", HONEST.values(), ids=HONEST)
def test_bounds_move_no_number_of_an_honest_column(column):
    rows = np.asarray(column, dtype=np.float64)[:, None]
    for unit in (1.0, -1e-5, 1e5):
        assert_array_equal(learn_bounds(rows * unit)(rows * unit), rows * unit)


@pytest.mark.parametrize("name", sorted(TELLING))
@pytest.mark.parametrize("value", [1e9, 1e300])
def test_bounds_move_a_broken_number_among_the_others(name, value):
    rows = with_cell(HONEST[name], value)
    moved = learn_bounds(rows)(rows)
    others = np.delete(rows, 11)
    assert others.min() <= moved[11, 0] <= others.max()
    assert_array_equal(np.delete(moved, 11), others)


def test_bounds_leave_infinity_and_gaps_for_the_check_of_rows():
    bounds = learn_bounds(HONEST["normal"][:, None])
    given = np.array([[np.inf], [-np.inf], [np.nan], [-1e9], [0.5]])
    expected = [[np.inf], [-np.inf], [np.nan], bounds.low, [0.5]]
    assert_array_equal(bounds(given), expected)


def test_few_rows_have_no_bounds():
    rows = with_cell(np.arange(12.0), 1e9)
    assert_array_equal(learn_bounds(rows)(rows), rows)


@pytest.mark.parametrize("kind", ["array-api-strict", "batches of arrays", "npy"])
def test_rows_with_a_broken_cell_get_one_fit_wherever_they_are(kind, tmp_path):
    broken = CIRCLE.copy()
    broken[[5, 300], [0, 2]] = 1e9
    with pytest.warns(iclda.BrokenCellWarning, match="in row 5 of X, column 0"):
        in_memory = AverageLDA().fit(broken, LABELS)
    with pytest.warns(iclda.BrokenCellWarning, match="in row 5 of X, column 0"):
        read = AverageLDA().fit(SOURCES[kind](broken, tmp_path), LABELS)
    assert_allclose(
        read.predict_proba(CIRCLE), in_memory.predict_proba(CIRCLE), atol=1e-6
    )


def test_few_labeled_rows_of_a_wide_file_are_named_as_they_are(tmp_path):
    rows = 1e3 + RNG.normal(size=(300, 80))
    rows[5, 2] = 1e9
    path = npy(rows, tmp_path)
    with pytest.warns(iclda.BrokenCellWarning) as caught:
        AverageLDA().fit(path, LABELS[:300])
    [message] = [str(each.message) for each in caught]
    assert message.startswith("1000000000 in row 5 of X, column 2 lies far")
