import subprocess
import sys

import numpy as np
import pytest

from iclda import ExpectationMaximizationLDA, ImplicitlyConstrainedLDA, SelfLearningLDA
from iclda._core.frame import frame_of
from iclda._core.labelsums import AllButFirst, LinearRule, Tally
from iclda._core.moments import sums_from_zero
from iclda._rows import compiled
from iclda._rows.compiled import CompiledTally
from iclda._rows.files import open_rows
from iclda._rows.memory import MemoryRows, rows_per_block
from iclda._rows.open import Request

pytest.importorskip("numba", reason="the extra fast is not installed")

RNG = np.random.default_rng(5)


def tallies(rows, coef, intercept, *, is_soft):
    """Of two classes, by compiled loops and by NumPy, and the shares of the rows."""
    rule = LinearRule(coef, intercept, is_soft).tied_at_rounding(1.0)
    knowing = AllButFirst(rule, sums_from_zero(rows))
    both = [kind(knowing, rows.shape[1]) for kind in (CompiledTally, Tally)]
    shares = [tally.add(rows, rows, None, slice(None)) for tally in both]
    return [tally.sums() for tally in both], shares


@pytest.mark.parametrize("is_soft", [False, True])
@pytest.mark.parametrize("n_rows", [1, 2, 5, 63, 64, 65, 1_000])
@pytest.mark.parametrize("n_features", [1, 2, 7, 50])
@pytest.mark.parametrize("steepness", [0.0, 1e-8, 1.0, 50.0, 1e6])
def test_compiled_loops_add_up_what_numpy_does(is_soft, n_rows, n_features, steepness):
    rows = RNG.standard_normal((n_rows, n_features))
    coef = steepness * RNG.standard_normal((n_features, 2))
    found, shares = tallies(rows, coef, np.array([0.3, 0.1]), is_soft=is_soft)
    scale = 1 + steepness
    np.testing.assert_allclose(found[0].counts, found[1].counts, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found[0].sums, found[1].sums, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found[0].log_sum, found[1].log_sum, rtol=1e-13, atol=1e-13 * scale)
    np.testing.assert_allclose(*shares, rtol=1e-12 * scale, atol=1e-15)


@pytest.mark.parametrize("lead", [0.0, 1e-300, 0.3, 5.0, 36.0, 299.0, 301.0, 708.0, 1e5, 1e300])
def test_shares_are_exact_however_far_a_class_is_ahead(lead):
    rows = np.ones((3, 1))
    for sign in (-1, 1):
        sums, shares = tallies(rows, np.zeros((1, 2)), np.array([sign * lead, 0.0]), is_soft=True)
        far = min(lead, 300.0)  # beyond, a share of 1e-130 is as good as none
        expected = 1 / (1 + np.exp(sign * far))
        np.testing.assert_allclose(shares[0], np.full((1, 3), expected), rtol=1e-13)
        expected = 3 * (max(sign * lead, 0) + np.log1p(np.exp(-lead)))
        np.testing.assert_allclose(sums[0].log_sum, expected, rtol=1e-15, atol=1e-15)


def test_rows_in_an_order_that_loops_do_not_read_are_left_to_numpy():
    rows = np.asfortranarray(RNG.standard_normal((100, 3)))
    found, _ = tallies(rows, RNG.standard_normal((3, 2)), np.zeros(2), is_soft=True)
    np.testing.assert_array_equal(found[0].sums, found[1].sums)


@pytest.mark.parametrize("is_soft", [False, True])
@pytest.mark.parametrize("n_features", [1, 3, 50, 300])
def test_cuts_into_blocks_change_no_bit(is_soft, n_features):
    rows = RNG.standard_normal((20_000, n_features))
    rule = LinearRule(RNG.standard_normal((n_features, 2)), np.zeros(2), is_soft)
    knowing = AllButFirst(rule, sums_from_zero(rows))
    found = []
    for n in (rows_per_block(n_features), len(rows)):
        tally = CompiledTally(knowing, n_features)
        for start in range(0, len(rows), n):
            part = rows[start : start + n]
            tally.add(part, part, None, slice(None))
        found.append(tally.sums())
    np.testing.assert_array_equal(found[0].counts, found[1].counts)
    np.testing.assert_array_equal(found[0].sums, found[1].sums)
    assert found[0].log_sum == found[1].log_sum


@pytest.fixture
def _few_are_many(monkeypatch):
    monkeypatch.setattr(compiled, "MANY", 0)


@pytest.mark.usefixtures("_few_are_many")
def test_the_number_of_threads_changes_no_bit():
    rows = RNG.standard_normal((50_000, 4))
    frame = frame_of(rows[:1_000])
    for is_soft in (False, True):
        rule = LinearRule(RNG.standard_normal((4, 2)), np.zeros(2), is_soft)
        found = []
        for n_threads in (1, 2, 3):
            memory = MemoryRows(rows, block_rows=512, n_threads=n_threads)
            memory.moments(frame)
            found.append(memory.label_sums(rule, frame, curvature=int(is_soft)))
        for other in found[1:]:
            np.testing.assert_array_equal(found[0].sums, other.sums)
            np.testing.assert_array_equal(found[0].curvature, other.curvature)
            assert found[0].log_sum == other.log_sum


@pytest.mark.parametrize(
    "kind", [SelfLearningLDA, ExpectationMaximizationLDA, ImplicitlyConstrainedLDA]
)
def test_fits_do_not_depend_on_whether_loops_are_compiled(kind, monkeypatch):
    centers = np.array([[0.0, 0.0, 0.0], [1.5, 0.5, 0.0]])
    y = RNG.integers(2, size=60_020)
    X = RNG.standard_normal((len(y), 3)) + centers[y]
    models, used = [], []
    original = CompiledTally.add
    monkeypatch.setattr(
        CompiledTally, "add", lambda self, *args: (used.append(1), original(self, *args))[1]
    )
    for many in (0, np.inf):
        monkeypatch.setattr(compiled, "MANY", many)
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
        "import numpy as np, iclda, iclda._rows.compiled as compiled\n"
        "compiled.MANY = 0\n"
        "X = np.random.default_rng(0).normal(size=(30_000, 3)); X[::2] += 1\n"
        "y = np.arange(20) % 2\n"
        "iclda.ImplicitlyConstrainedLDA().fit(X[:20], y, X_unlabeled=X[20:])\n"
        "assert compiled.loops() is None\n"
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
