"""Rows held on a device against rows in memory. Nothing can be read from device1 by accident."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

strict = pytest.importorskip("array_api_strict")

from iclda import ImplicitlyConstrainedLDA, PessimisticLDA
from iclda._core.boundary import near_boundary
from iclda._core.solvers import settings
from iclda._core.solvers.attainable import AllSums, StreamedSet, hold_in_memory
from iclda._rows import device
from iclda._rows.device import ArrayRows
from iclda._rows.device_sums import DeviceSet, hold_on_device, place_of
from problems import draw_sample, problem_of

DEVICE = strict.Device("device1")
close = partial(assert_allclose, rtol=1e-9, atol=1e-11)


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def sample(request):
    return draw_sample(5, n_classes=request.param, n_features=4, n_labeled=12, n_unlabeled=300)


@pytest.fixture
def problem(sample):
    weights = np.random.default_rng(1).uniform(0.5, 2, len(sample.rows))
    return problem_of(sample, weights=weights)


@pytest.fixture
def in_memory(problem):
    return hold_in_memory(problem, *problem.unlabeled.sample(300, 0))


@pytest.fixture
def on_device(problem):
    rows, weights = problem.unlabeled.sample(300, 0)
    place = place_of(strict.asarray([0.0], device=DEVICE))
    return hold_on_device(place, problem, problem.frame.apply(rows), weights)


@pytest.fixture
def scores(problem):
    return 3 * np.random.default_rng(2).standard_normal(problem.labeled_point.shape)


def test_sums_are_those_of_rows_in_memory(in_memory, on_device, scores):
    for found, expected in zip(
        on_device.soft_point(scores), in_memory.soft_point(scores), strict=True
    ):
        close(found, expected)
    stack = np.stack([scores, 100 * scores, -scores])
    for found, expected in zip(
        on_device.soft_points(stack), in_memory.soft_points(stack), strict=True
    ):
        close(found, expected)
    close(on_device.hard_point(scores), in_memory.hard_point(scores))
    close(on_device.support(scores), in_memory.support(scores))
    close(on_device.spread(scores), in_memory.spread(scores))
    close(on_device.scores_of_rows(scores), in_memory.scores_of_rows(scores))
    close(on_device.shares(scores), in_memory.shares(scores))


def test_rows_that_tie_go_to_the_first_class(in_memory, on_device):
    scores = np.zeros(in_memory.labeled_point.shape)
    close(on_device.hard_point(scores), in_memory.hard_point(scores))
    close(on_device.hard_point(scores)[1:], in_memory.labeled_point[1:])


@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
def test_derivatives_are_those_of_rows_in_memory(in_memory, on_device, scores, scale):
    found, expected = on_device.label(scale * scores), in_memory.label(scale * scores)
    direction = np.random.default_rng(3).standard_normal(scores.shape)
    close(found.product(direction), expected.product(direction))
    close(found.matrix(), expected.matrix())
    assert found.n_near == len(near_boundary(in_memory.shares(scale * scores)))


def test_the_other_rows_keep_their_labels(in_memory, on_device, scores):
    sums = AllSums(2 * in_memory.labeled_point + 1, 3.0, True)
    found, expected = (rows.label_among(scores, sums) for rows in (on_device, in_memory))
    assert found.is_thinned
    assert found.log_sum == 3.0
    close(found.local_set.labeled_point, expected.local_set.labeled_point)
    close(found.local_set.soft_point(-scores)[0], expected.local_set.soft_point(-scores)[0])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("classifier", [ImplicitlyConstrainedLDA, PessimisticLDA])
def test_a_fit_that_holds_rows_on_the_device_is_that_in_memory(monkeypatch, classifier, n_classes):
    held = []
    monkeypatch.setattr(settings, "NUMBERS_WORTH_MOVING", 1000)

    def counted(place, problem, u, weights):
        held.append(len(u))
        return hold_on_device(place, problem, u, weights)

    monkeypatch.setattr(device, "hold_on_device", counted)
    few = draw_sample(4, n_classes=n_classes, n_features=3, n_labeled=30, n_unlabeled=500)
    many = draw_sample(4, n_classes=n_classes, n_features=3, n_labeled=30, n_unlabeled=25_000)
    for sample in (few, many):
        rows = strict.asarray(sample.X_unlabeled, device=DEVICE)
        model = classifier(tol=1e-6).fit(sample.X, sample.y, X_unlabeled=rows)
        expected = classifier(tol=1e-6).fit(sample.X, sample.y, X_unlabeled=sample.X_unlabeled)
        assert held
        assert model.converged_
        assert model.gap_ <= 1e-6
        assert_allclose(model.objective_, expected.objective_, rtol=1e-5, atol=1e-6)
        held.clear()


def test_rows_are_held_in_memory_where_a_device_is_slow_or_rounds():
    rows = np.zeros((10, 2))
    assert ArrayRows(strict.asarray(rows, device=DEVICE)).holder is not None
    assert ArrayRows(strict.asarray(rows, device=strict.Device("CPU_DEVICE"))).holder is None
    single = strict.asarray(rows.astype(np.float32), device=strict.Device("no_float64"))
    assert ArrayRows(single).holder is None


def test_a_pass_holds_the_rows_near_boundaries_on_the_device(
    monkeypatch, problem, on_device, scores
):
    monkeypatch.setattr(settings, "NUMBERS_WORTH_MOVING", 0)
    place = place_of(strict.asarray([0.0], device=DEVICE))
    monkeypatch.setattr(type(problem.unlabeled), "holder", partial(hold_on_device, place))
    found = StreamedSet(problem, on_device).label(scores)
    close(found.point, on_device.label(scores).point)
    assert isinstance(found.local_set, DeviceSet)
