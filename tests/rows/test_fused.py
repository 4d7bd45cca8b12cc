"""Passes by GPU kernels, without a GPU: sums in torch replace the kernels.

With Triton installed the kernels themselves are run by its interpreter:

    TRITON_INTERPRET=1 pytest tests/rows/test_fused.py
"""

import os
import sys
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclda import ExpectationMaximizationLDA, ImplicitlyConstrainedLDA
from iclda._core.frame import frame_of
from iclda._core.labelsums import LinearRule, StackedRules
from iclda._rows import fused
from iclda._rows.memory import MemoryRows
from tests.helpers.problems import draw_sample, near_all
from tests.helpers.row_sources import array_rows

torch = pytest.importorskip("torch")

IS_INTERPRETED = (
    find_spec("triton") is not None and os.environ.get("TRITON_INTERPRET") == "1"
)
RNG = np.random.default_rng(41)
X = (RNG.standard_normal((2500, 5)) * [1, 10, 100, 0.1, 1] + 1 / 3).astype(np.float32)
WEIGHTS = RNG.uniform(0.1, 2, len(X))
IS_MEMBER = RNG.uniform(size=len(X)) < 0.6
FRAME = frame_of(X[:300])
RULES = {
    f"{n_classes} classes, {kind}": LinearRule(
        5 * RNG.standard_normal((5, n_classes)),
        RNG.standard_normal(n_classes),
        kind == "soft",
    )
    for n_classes in (2, 3, 20)
    for kind in ("soft", "hard")
}


class Kernel:
    """What a kernel computes, all of it by the first program."""

    def __init__(self, function):
        self.function = function
        self.n_calls = 0

    def __getitem__(self, grid):
        def run(X, W, *arrays, HAS_WEIGHTS, **settings):
            self.n_calls += 1
            weights = W if HAS_WEIGHTS else torch.ones(len(X))
            self.function(X, weights, *arrays, **settings)

        return run


def _moments(X, weights, origin, inverse, sums, squares, *_, **settings):
    u = (X.double() - origin) * inverse
    d = X.shape[1]
    weights = weights.double()
    sums[0, :d] = weights @ u
    squares[0, :d, :d] = (u.T * weights) @ u


def _two_classes(
    X, weights, origin, inverse, coef, sums, n, m, intercept, tie, IS_SOFT, **_
):
    u = (X - origin) * inverse
    d = X.shape[1]
    lead = u @ coef + intercept
    share = torch.sigmoid(lead) if IS_SOFT else (lead >= -tie).float()
    logs = torch.nn.functional.softplus(lead) if IS_SOFT else lead.clamp(min=0)
    sums[0, 0] = (share * weights).double().sum()
    sums[0, 1] = (logs * weights).double().sum()
    sums[0, 2 : 2 + d] = (share * weights).double() @ u.double()


def _many_classes(
    X, weights, origin, inverse, coef, intercept, sums, counts, *_, IS_SOFT, **__
):
    u = (X - origin) * inverse
    d, k = coef.shape
    scores = u @ coef + intercept
    top, best = scores.max(axis=1)
    one_hot = torch.nn.functional.one_hot(best, k).float()
    shares = torch.softmax(scores, 1) if IS_SOFT else one_hot
    logs = torch.logsumexp(scores, 1) if IS_SOFT else top
    shares = (shares * weights[:, None]).double()
    sums[0, :k, :d] = shares.T @ u.double()
    counts[0, 0] = (logs * weights).double().sum()
    counts[0, 1 : 1 + k] = shares.sum(axis=0)


@pytest.fixture(params=["replaced", "interpreted"] if IS_INTERPRETED else ["replaced"])
def kernels(request, monkeypatch):
    """Kernels that take tensors of the CPU."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    if request.param == "interpreted":
        return None
    module = ModuleType("iclda._rows.kernels")
    module.moments = Kernel(_moments)
    module.two_classes = Kernel(_two_classes)
    module.many_classes = Kernel(_many_classes)
    monkeypatch.setitem(sys.modules, "iclda._rows.kernels", module)
    monkeypatch.setattr("iclda._rows.kernels", module, raising=False)
    monkeypatch.setattr(fused, "find_spec", lambda name: module)
    return module


def assert_equal_sums(found, expected, rtol=1e-6):
    for name in vars(expected):
        x = getattr(found, name)
        y = getattr(expected, name)
        if y is not None:
            assert_allclose(x, y, rtol=rtol, atol=rtol * np.abs(y).max() + 1e-9)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("is_weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("is_member", [None, IS_MEMBER], ids=["all", "some"])
def test_sums_by_kernels_are_those_in_memory(name, is_weighted, is_member):
    weights = WEIGHTS if is_weighted else None
    rule = RULES[name]
    rows = array_rows(torch.asarray(X), weights, is_member)
    expected = MemoryRows(X, weights, is_member)
    assert rows._fused is not None
    assert_equal_sums(rows.moments(FRAME), expected.moments(FRAME), 1e-7)
    for options in ({}, near_all(rule)):
        found = rows.label_sums(rule, FRAME, **options)
        assert_equal_sums(found, expected.label_sums(rule, FRAME, **options))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_several_rules_are_summed_one_by_one_where_that_kernel_is_as_fast_as_memory(
    kernels, n_classes, monkeypatch
):
    rules = StackedRules(
        RNG.standard_normal((3, 5, n_classes)), RNG.standard_normal((3, n_classes))
    )
    rows = array_rows(torch.asarray(X))
    monkeypatch.setattr(type(rows), "held_at", rows.place)
    found = rows.placed_label_sums(rules, FRAME)
    expected = MemoryRows(X).placed_label_sums(rules, FRAME)
    for ours, in_memory in zip(found, expected, strict=True):
        assert_allclose(ours, in_memory, rtol=1e-6, atol=1e-6 * np.abs(in_memory).max())
    if kernels is not None:
        assert kernels.two_classes.n_calls == (3 if n_classes == 2 else 0)
        assert kernels.many_classes.n_calls == 0


def test_moments_by_kernels_are_those_of_double_precision(kernels):
    rows = torch.asarray(X + np.float32(1000))
    frame = frame_of(rows.numpy()[:99])
    found = array_rows(rows).moments(frame)
    expected = MemoryRows(rows.numpy()).moments(frame)
    assert_allclose(found.scatter, expected.scatter, rtol=1e-12, atol=1e-9)


LARGE = draw_sample(3, n_features=4, n_labeled=40, n_unlabeled=25_000, separation=1.0)


def test_a_fit_by_kernels_is_the_fit_in_memory(kernels):
    if kernels is None:
        pytest.skip("the interpreter is slow")
    rows = LARGE.X_unlabeled.astype(np.float32)
    for classifier in (ImplicitlyConstrainedLDA, ExpectationMaximizationLDA):
        model = classifier().fit(LARGE.X, LARGE.y, X_unlabeled=torch.asarray(rows))
        expected = classifier().fit(LARGE.X, LARGE.y, X_unlabeled=rows)
        assert_allclose(model.coef_, expected.coef_, rtol=1e-3)
        assert model.converged_
        if hasattr(model, "objective_"):
            assert_allclose(model.objective_, expected.objective_, rtol=1e-6)
    assert kernels.moments.n_calls == 2
    assert kernels.two_classes.n_calls > 3


def test_a_kernel_that_cannot_be_built_is_replaced_with_a_warning(kernels, monkeypatch):
    if kernels is None:
        pytest.skip("the kernels work")

    def fail(*_, **__):
        raise ValueError("no such instruction\nmore")

    monkeypatch.setattr(kernels, "two_classes", Kernel(fail))
    rows = array_rows(torch.asarray(X))
    rule = RULES["2 classes, soft"]
    with pytest.warns(
        RuntimeWarning, match=r"could not be used \(ValueError: no such instruction"
    ):
        found = rows.label_sums(rule, FRAME)
    assert_equal_sums(found, MemoryRows(X).label_sums(rule, FRAME), 1e-11)
    # No second warning.
    rows.label_sums(rule, FRAME)


@pytest.mark.parametrize(
    "rows",
    [
        X.astype(np.float64),
        X.astype(np.int32),
        np.asfortranarray(X),
        np.ones((3, 2000), "f4"),
    ],
    ids=["double", "integer", "by columns", "wide"],
)
def test_other_rows_go_the_other_way(rows, kernels):
    tensor = torch.asarray(rows)
    assert not fused.can_fuse(tensor)
    frame = frame_of(rows)
    assert_equal_sums(
        array_rows(tensor).moments(frame), MemoryRows(rows).moments(frame), 1e-11
    )


def test_a_prior_of_zero_goes_the_other_way(kernels):
    rule = LinearRule(RNG.standard_normal((5, 2)), np.array([0, -np.inf]), is_soft=True)
    found = array_rows(torch.asarray(X)).label_sums(rule, FRAME)
    assert found.counts.tolist() == [len(X), 0]


def test_kernels_can_be_turned_off(kernels, monkeypatch):
    assert fused.can_fuse(torch.asarray(X))
    monkeypatch.setenv("ICLDA_FUSED", "0")
    assert not fused.can_fuse(torch.asarray(X))
