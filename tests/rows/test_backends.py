"""Rows are the same wherever they live: each backend against the array in memory."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclda import ExpectationMaximizationLDA, MomentConstrainedLDA
from iclda._core.frame import frame_of
from iclda._core.labelsums import LinearRule, StackedRules
from iclda._rows.kinds import in_memory
from iclda._rows.memory import MemoryRows
from tests.helpers.changes import assert_same_fit
from tests.helpers.problems import FAMILY, WHOLE_FAMILY, draw_sample
from tests.helpers.row_sources import SOURCES, assert_equal_passes, opened

RNG = np.random.default_rng(66)
N_ROWS = 700
N_FEATURES = 3
X = RNG.standard_normal((N_ROWS, N_FEATURES)) * [1, 10, 100] + 5
# The same numbers in either precision.
X = X.astype(np.float32).astype(np.float64)
WEIGHTS = RNG.uniform(0.1, 2, N_ROWS)
IS_MEMBER = RNG.uniform(size=N_ROWS) < 0.6
FRAME = frame_of(X)
RULES = {
    f"{kind} K={K}": LinearRule(
        RNG.standard_normal((N_FEATURES, K)), RNG.standard_normal(K), kind == "soft"
    )
    for K in (2, 4)
    for kind in ("soft", "hard")
}
RULES["stacked"] = StackedRules(
    RNG.standard_normal((3, N_FEATURES, 2)), RNG.standard_normal((3, 2))
)
PRECISION = {"float32": np.float32, "float64": np.float64}

every_source = pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
every_precision = pytest.mark.parametrize("dtype", PRECISION.values(), ids=PRECISION)


@every_precision
@every_source
@pytest.mark.parametrize("is_weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("is_member", [None, IS_MEMBER], ids=["all", "some"])
def test_sums_are_those_in_memory(make, dtype, is_weighted, is_member, tmp_path):
    weights = WEIGHTS if is_weighted else None
    rows = opened(make(X.astype(dtype), tmp_path), weights=weights, is_member=is_member)
    expected = MemoryRows(X, weights, is_member)
    for rule in RULES.values():
        assert_equal_passes(rows, expected, rule, FRAME)
    assert (rows.n_rows, rows.n_features) == (expected.n_rows, N_FEATURES)


@every_source
def test_a_sample_of_all_rows_is_all_rows_in_order(make, tmp_path):
    rows = opened(make(X, tmp_path), weights=WEIGHTS, is_member=IS_MEMBER)
    drawn, weights = rows.sample(N_ROWS, seed=1)
    assert_array_equal(drawn, X[IS_MEMBER])
    assert_allclose(weights, WEIGHTS[IS_MEMBER], rtol=1e-14)


@every_source
@pytest.mark.parametrize(
    "is_after_a_pass", [False, True], ids=["first", "after a pass"]
)
def test_a_sample_holds_rows_of_the_source_and_weighs_as_much_as_all(
    make, is_after_a_pass, tmp_path
):
    rows = opened(make(X, tmp_path), weights=WEIGHTS, is_member=IS_MEMBER)
    if is_after_a_pass:
        rows.moments(FRAME)
    drawn, weights = rows.sample(50, seed=3)
    assert len(drawn) == len(weights)
    assert len(drawn) == 50 if is_after_a_pass else 10 <= len(drawn) <= 50
    assert_allclose(weights.sum(), WEIGHTS[IS_MEMBER].sum())
    assert {tuple(row) for row in drawn} <= {tuple(row) for row in X[IS_MEMBER]}
    assert len({tuple(row) for row in drawn}) == len(drawn)
    assert_array_equal(drawn, rows.sample(50, seed=3)[0])


SAMPLE = draw_sample(7, n_classes=3, n_features=3, n_labeled=18, n_unlabeled=400)


def assert_same(model, expected):
    assert_same_fit(model, expected, 1e-7)
    if hasattr(expected, "objective_"):
        assert_allclose(model.objective_, expected.objective_, rtol=1e-9)


# A source supplies sums and samples. The first of these reads all there are; every
# classifier is fitted from one source of each backend.
ALL_SUMS = ["iclda", "pessimistic"]
PAIRS = [(name, kind) for name in SOURCES for kind in ALL_SUMS]
ONE_OF_EACH = [
    "dask array",
    "parquet files",
    "batches of tables",
    "array-api-strict on a device",
]


def pairs(classifiers):
    """Of sources and classifiers."""
    more = [
        (name, kind)
        for name in ONE_OF_EACH
        for kind in classifiers
        if kind not in ALL_SUMS
    ]
    return pytest.mark.parametrize(("source", "kind"), PAIRS + more)


@every_precision
@pairs(FAMILY)
def test_a_fit_with_unlabeled_rows_from_a_source_is_the_fit_in_memory(
    source, kind, dtype, tmp_path
):
    classifier = FAMILY[kind]
    unlabeled = SAMPLE.X_unlabeled.astype(dtype)
    model = classifier().fit(
        SAMPLE.X, SAMPLE.y, X_unlabeled=SOURCES[source](unlabeled, tmp_path)
    )
    expected = classifier().fit(
        SAMPLE.X, SAMPLE.y, X_unlabeled=unlabeled.astype(np.float64)
    )
    assert_same(model, expected)


@pairs(WHOLE_FAMILY)
def test_x_itself_may_be_a_source(source, kind, tmp_path):
    weights = 1.0 + np.arange(len(SAMPLE.rows)) % 3
    classifier = WHOLE_FAMILY[kind]
    model = classifier().fit(
        SOURCES[source](SAMPLE.rows, tmp_path), SAMPLE.labels, weights
    )
    assert_same(model, classifier().fit(SAMPLE.rows, SAMPLE.labels, weights))
    assert model.n_features_in_ == 3


METHODS = [
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "score_samples",
    "impute",
]


@every_source
@pytest.mark.parametrize("n_classes", [2, 3])
def test_results_for_a_source_are_those_in_memory(make, n_classes, tmp_path):
    model = FAMILY["iclda"]().fit(
        SAMPLE.X, SAMPLE.y % n_classes, X_unlabeled=SAMPLE.X_unlabeled
    )
    rows = make(SAMPLE.rows, tmp_path)
    for method in METHODS:
        found = np.asarray(in_memory(getattr(model, method)(rows)))
        assert_allclose(
            found, getattr(model, method)(SAMPLE.rows), rtol=1e-9, atol=1e-12
        )


@every_source
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gains_score_and_likelihood_for_a_source_are_those_in_memory(
    make, n_classes, tmp_path
):
    y = SAMPLE.y % n_classes
    rows = make(SAMPLE.rows, tmp_path)
    labels = np.r_[y, np.full(len(SAMPLE.X_unlabeled), -1)]
    model = MomentConstrainedLDA().fit(SAMPLE.X, y, X_unlabeled=SAMPLE.X_unlabeled)
    found = model.gain_bounds(rows, labels)
    expected = model.gain_bounds(SAMPLE.rows, labels)
    assert_allclose(
        list(vars(found).values()), list(vars(expected).values()), rtol=1e-9
    )
    assert model.score(rows, labels) == model.score(SAMPLE.rows, labels)
    codes = np.arange(len(SAMPLE.rows)) % n_classes
    found = model.log_likelihood(rows, codes)
    assert_allclose(found, model.log_likelihood(SAMPLE.rows, codes), rtol=1e-9)


@every_source
@pytest.mark.parametrize("row", [7, 650], ids=["labeled", "unlabeled"])
def test_20_nan_in_any_row_is_refused_with_its_column(make, row, tmp_path):
    rows = X.copy()
    rows[row, 1] = np.nan
    source = make(rows, tmp_path)
    y = np.where(np.arange(N_ROWS) < 60, np.arange(N_ROWS) % 2, -1)
    with pytest.raises(ValueError, match=r"X.* contains NaN, .*column \D*1\b"):
        MomentConstrainedLDA().fit(source, y)
    with pytest.raises(
        ValueError, match=r"X_unlabeled.* contains NaN, .*column \D*1\b"
    ):
        MomentConstrainedLDA().fit(X[:60], y[:60], X_unlabeled=source)


TRUE = np.arange(60) % 2
PLAIN = np.random.default_rng(5).standard_normal((60, 3)) + np.outer(
    TRUE, [2.5, 0.0, 0.0]
)
Y = np.where(np.arange(60) < 16, TRUE, -1)
ONES = np.ones(60)


def changed(row, column, value):
    rows = PLAIN.copy()
    rows[row, column] = value
    return rows


# Rows, labels and weights.
FAULTS = {
    "1 every row unlabeled": (PLAIN, np.full(60, -1), ONES),
    "2 no row unlabeled": (PLAIN, TRUE, ONES),
    "3 one label a class": (PLAIN, np.where(np.arange(60) < 2, TRUE, -1), ONES),
    "5 one class": (PLAIN, np.where(Y == 1, -1, Y), ONES),
    "10 y of another length": (PLAIN, Y[:50], ONES),
    "12 more features than labels": (RNG.standard_normal((60, 40)), Y, ONES),
    "13 constant column": (np.insert(PLAIN, 1, 0.1, axis=1), Y, ONES),
    "14 constant in one class": (changed(TRUE == 0, 2, 4.0), Y, ONES),
    "15 collinear column": (
        np.column_stack([PLAIN, PLAIN @ [1.0, 2.0, -3.0]]),
        Y,
        ONES,
    ),
    "17 offset": (PLAIN + 1e12, Y, ONES),
    "18 units": (PLAIN * [1e-150, 1.0, 1e150], Y, ONES),
    "19 too large": (PLAIN * [1.0, 1e200, 1.0], Y, ONES),
    "19 too small": (PLAIN * [1.0, 1e-200, 1.0], Y, ONES),
    "19 one entry": (changed(50, 1, 1e200), Y, ONES),
    "20 infinity": (changed(50, 1, -np.inf), Y, ONES),
    "22 int8": (np.round(20 * PLAIN).astype(np.int8), Y, ONES),
    "24 one feature": (PLAIN[:, :1], Y, ONES),
    "24 two rows": (PLAIN[:2], np.array([0, 1]), ONES[:2]),
    "25 weights": (PLAIN, Y, 1.0 + np.arange(60) % 3),
    "26 negative weights": (PLAIN, Y, -ONES),
    "26 a class next to nothing": (PLAIN, Y, np.where(Y == 1, 1e-14, 1.0)),
    "28 separation": (PLAIN + np.outer(TRUE, [1e6, 0.0, 0.0]), Y, ONES),
    "32 a column gives the classes away": (np.column_stack([PLAIN, TRUE]), Y, ONES),
}


def outcome_of(rows, y, weights):
    """The model or None, and messages with numbers of columns, without blocks."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = ExpectationMaximizationLDA().fit(rows, y, weights)
        except ValueError as error:
            model = None
            said = [str(error)]
        else:
            said = [str(warning.message) for warning in caught]
    said = [
        re.sub(r"column '(?:feature |x)(\d+)'", r"column \1", text) for text in said
    ]
    return model, sorted(
        re.sub(r", first in .*|, block \d+", "", text) for text in said
    )


@every_source
def test_12_to_32_faults_are_met_as_in_memory(make, tmp_path):
    for number, (fault, (rows, y, weights)) in enumerate(FAULTS.items()):
        expected, expected_words = outcome_of(rows, y, weights)
        folder = tmp_path / str(number)
        folder.mkdir()
        model, words = outcome_of(make(rows, folder), y, weights)
        assert words == expected_words, fault
        if expected is not None:
            found = model._model_.gaussians.log_joint(np.asarray(rows, dtype=float))
            wanted = expected._model_.gaussians.log_joint(np.asarray(rows, dtype=float))
            assert_allclose(found, wanted, rtol=1e-6, atol=1e-6, err_msg=fault)
