import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from iclda import ExpectationMaximizationLDA, ImplicitlyConstrainedLDA, SelfLearningLDA
from iclda._core.frame import frame_of
from iclda._core.labelsums import AllButFirst, LinearRule, Tally
from iclda._core.moments import sums_from_zero
from iclda._rows import memory
from iclda._rows.base import Request
from iclda._rows.files import open_rows
from iclda._rows.memory import MemoryRows, rows_per_block
from problems import near_all

pytest.importorskip("numba", reason="the extra fast is not installed")
CompiledTally = pytest.importorskip("iclda._rows.loops").CompiledTally

RNG = np.random.default_rng(5)


def of_classes(rows, coef, intercept, *, is_soft):
    rule = LinearRule(coef, intercept, is_soft).tied_at_rounding(1.0)
    return AllButFirst(rule, sums_from_zero(rows), may_be_by_lead=False)


def added_up(rule, rows, n_at_once=None, kind=CompiledTally):
    """Label sums of all rows, and their shares (K, n), by compiled loops or by NumPy."""
    tally, n = kind(rule, rows.shape[1]), n_at_once or len(rows)
    parts = [rows[start : start + n] for start in range(0, len(rows), n)]
    shares = [tally.add(part, part, None, slice(None)) for part in parts]
    return rule.completed(tally.sums()), np.concatenate(shares, axis=1)


@pytest.mark.parametrize("is_soft", [False, True])
@pytest.mark.parametrize("n_features", [1, 2, 7, 50])
@pytest.mark.parametrize("n_classes", [2, 3, 4, 9])
def test_compiled_loops_add_up_what_numpy_does(is_soft, n_features, n_classes):
    for n_rows in (1, 2, 5, 63, 64, 65, 1_000):
        for steepness in (0.0, 1.0, 50.0, 1e6):
            compare_loops(is_soft, n_rows, n_features, n_classes, steepness)


def compare_loops(is_soft, n_rows, n_features, n_classes, steepness):
    rows = RNG.standard_normal((n_rows, n_features))
    coef = steepness * RNG.standard_normal((n_features, n_classes))
    rule = of_classes(rows, coef, RNG.standard_normal(n_classes), is_soft=is_soft)
    (found, shares), (expected, _) = (added_up(rule, rows, kind=k) for k in (CompiledTally, Tally))
    scale = 1 + steepness * np.sqrt(n_features)
    np.testing.assert_allclose(found.counts, expected.counts, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.sums, expected.sums, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(
        found.log_sum, expected.log_sum, rtol=1e-12, atol=1e-13 * n_rows * scale
    )
    of_numpy = rule.rule.shares(rows, slice(None))[0]
    np.testing.assert_allclose(shares, of_numpy, rtol=1e-13 * scale, atol=1e-15 * scale)


@pytest.mark.parametrize("lead", [0.0, 1e-300, 0.3, 5.0, 36.0, 299.0, 301.0, 708.0, 1e5, 1e300])
@pytest.mark.parametrize("sign", [-1, 1])
def test_shares_are_exact_however_far_a_class_is_ahead(lead, sign):
    rows = np.ones((3, 1))
    rule = of_classes(rows, np.zeros((1, 2)), np.array([sign * lead, 0.0]), is_soft=True)
    sums, shares = added_up(rule, rows)
    far = min(lead, 300.0)  # beyond, a share of 1e-130 is as good as none
    np.testing.assert_allclose(shares[1], np.full(3, 1 / (1 + np.exp(sign * far))), rtol=1e-13)
    expected = 3 * (max(sign * lead, 0) + np.log1p(np.exp(-lead)))
    np.testing.assert_allclose(sums.log_sum, expected, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("scores", [[0, 0, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1], [-1, -2, -1]])
def test_of_tied_classes_the_first_is_taken(scores):
    rows = np.ones((100, 2))
    rule = of_classes(rows, np.zeros((2, 3)), np.array(scores, dtype=float), is_soft=False)
    sums, _ = added_up(rule, rows)
    np.testing.assert_array_equal(sums.counts, 100 * (np.arange(3) == np.argmax(scores)))


def test_rows_in_an_order_that_loops_do_not_read_are_left_to_numpy():
    rows = np.asfortranarray(RNG.standard_normal((100, 3)))
    rule = of_classes(rows, RNG.standard_normal((3, 2)), np.zeros(2), is_soft=True)
    found, expected = (added_up(rule, rows, kind=kind)[0] for kind in (CompiledTally, Tally))
    np.testing.assert_array_equal(found.sums, expected.sums)


@pytest.mark.parametrize("is_soft", [False, True])
@pytest.mark.parametrize("n_features", [1, 3, 50, 300])
@pytest.mark.parametrize("n_classes", [2, 5, 9])
def test_cuts_into_blocks_change_no_bit(is_soft, n_features, n_classes):
    rows = RNG.standard_normal((20_000, n_features))
    coef = RNG.standard_normal((n_features, n_classes))
    rule = of_classes(rows, coef, np.zeros(n_classes), is_soft=is_soft)
    cut, whole = (added_up(rule, rows, n)[0] for n in (rows_per_block(n_features), None))
    np.testing.assert_array_equal(cut.counts, whole.counts)
    np.testing.assert_array_equal(cut.sums, whole.sums)
    assert cut.log_sum == whole.log_sum


@pytest.fixture
def _few_are_many(monkeypatch):
    monkeypatch.setattr(memory, "MANY", 0)


@pytest.mark.usefixtures("_few_are_many")
def test_the_number_of_threads_changes_no_bit():
    rows = RNG.standard_normal((50_000, 4))
    frame = frame_of(rows[:1_000])
    for is_soft, n_classes in product((False, True), (2, 3)):
        rule = LinearRule(RNG.standard_normal((4, n_classes)), np.zeros(n_classes), is_soft)
        found = []
        for n_threads in (1, 2, 3):
            memory = MemoryRows(rows, block_rows=512, n_threads=n_threads)
            memory.moments(frame)
            found.append(memory.label_sums(rule, frame, **near_all(rule)))
        for other in found[1:]:
            np.testing.assert_array_equal(found[0].sums, other.sums)
            np.testing.assert_array_equal(found[0].near, other.near)
            assert found[0].log_sum == other.log_sum


@pytest.mark.parametrize(
    "kind", [SelfLearningLDA, ExpectationMaximizationLDA, ImplicitlyConstrainedLDA]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_fits_do_not_depend_on_whether_loops_are_compiled(kind, n_classes, monkeypatch):
    centers = np.array([[0.0, 0.0, 0.0], [1.5, 0.5, 0.0], [0.0, 2.0, 2.0]])
    y = RNG.integers(n_classes, size=60_020)
    X = RNG.standard_normal((len(y), 3)) + centers[y]
    models, used = [], []
    original = CompiledTally.add
    monkeypatch.setattr(
        CompiledTally, "add", lambda self, *args: (used.append(1), original(self, *args))[1]
    )
    for many in (0, np.inf):
        monkeypatch.setattr(memory, "MANY", many)
        models.append(kind().fit(X[:20], y[:20], X_unlabeled=X[20:]))
        assert bool(used) == (many == 0)
        used.clear()
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(models[0].means_, models[1].means_, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "without",
    [
        "import sys; sys.modules['numba'] = None\n",
        "import os; os.environ['NUMBA_DISABLE_JIT'] = '1'\n",
    ],
    ids=["not installed", "switched off"],
)
def test_without_numba_nothing_is_missing(without):
    script = without + (
        "import numpy as np, iclda, iclda._rows.memory as memory\n"
        "memory.MANY = 0\n"
        "X = np.random.default_rng(0).normal(size=(30_000, 3)); X[::2] += 1\n"
        "y = np.arange(20) % 2\n"
        "iclda.ImplicitlyConstrainedLDA().fit(X[:20], y, X_unlabeled=X[20:])\n"
        "assert memory.compiled_loops() is None\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.usefixtures("_few_are_many")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_a_file_have_the_sums_of_those_in_memory_to_the_bit(dtype, tmp_path):
    rows = RNG.standard_normal((40_000, 20)).astype(dtype)
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    frame = frame_of(rows[:1_000])
    for is_soft in (False, True):
        rule = LinearRule(RNG.standard_normal((20, 2)), np.zeros(2), is_soft)
        found = []
        for source in (open_rows(str(path), Request("X")), MemoryRows(rows)):
            source.sample(1_000, 0)  # a first look, as in every fit
            source.moments(frame)
            found.append(source.label_sums(rule, frame))
        np.testing.assert_array_equal(found[0].sums, found[1].sums)
        np.testing.assert_array_equal(found[0].counts, found[1].counts)
        assert found[0].log_sum == found[1].log_sum


@pytest.mark.usefixtures("_few_are_many")
def test_numba_that_cannot_load_what_it_kept_is_left_out_with_a_warning(monkeypatch):
    def fail():
        raise OSError("No space left on device")

    monkeypatch.setattr("iclda._rows.loops.run_once", fail)
    X, y = RNG.standard_normal((30_000, 3)), np.arange(20) % 2
    memory.compiled_loops.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match=r"No space left.*NumPy does the work.*\.nbi"):
            SelfLearningLDA().fit(X[:20], y, X_unlabeled=X[20:])
    finally:
        memory.compiled_loops.cache_clear()
