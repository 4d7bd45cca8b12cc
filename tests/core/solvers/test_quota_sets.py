"""Labelings that fill class quotas, against linear programs and brute force."""

import warnings
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
import scipy.optimize

from iclda import ImplicitlyConstrainedLDA, NotConvergedWarning, PessimisticLDA
from iclda._core.solvers import (
    Limits,
    Outcome,
    alternate,
    quota_sets,
    quotas,
    settings,
)
from iclda._core.solvers.implicit import maximize_labeled_likelihood
from iclda._core.solvers.on_device import DeviceSet
from iclda._core.solvers.pessimistic import maximize_worst_gain
from iclda._core.solvers.quota_sets import QuotaPart
from iclda._core.solvers.sets import attainable_sets
from iclda._rows.device import ArrayRows
from iclda._rows.memory import BlockRows
from iclda._rows.places import Place, place_of
from tests.helpers.problems import (
    change_settings,
    draw_sample,
    maximize_over_shares,
    one_hot,
    point_of,
    problem_of,
    random_shares,
    rising_shares,
    value_of_shares,
)

OPTIONS = {"limits": Limits(200, 1e-6), "n_starts": 32, "seed": 0}


def shares_of(n_classes, width=0.0):
    """Shares that grow from class to class; intervals, with a width, begin there."""
    low = (1 - width) * rising_shares(n_classes)
    return np.column_stack([low, low + width])


def problem_with_quotas(sample, proportions, **options):
    return replace(problem_of(sample, **options), proportions=proportions)


def held_rows(sample, proportions):
    problem = problem_with_quotas(sample, proportions)
    rows, weights = problem.unlabeled.sample(problem.unlabeled.n_rows, 0)
    return attainable_sets(problem).hold(rows, weights)


def weights_of(held, point):
    """Of the unlabeled rows in each class, over their weight."""
    return (point - held.labeled_point)[:, 0] / held.weights.sum()


intervals = pytest.mark.parametrize("width", [0.0, 0.1], ids=["shares", "intervals"])


@intervals
@pytest.mark.parametrize("sharpness", [0.1, 1.0, 30.0])
def test_soft_labels_fill_the_quotas(sample, sharpness, width):
    proportions = shares_of(sample.n_classes, width)
    held = held_rows(sample, proportions)
    rng = np.random.default_rng(0)
    scores = sharpness * rng.standard_normal((4, *held.labeled_point.shape))
    points, log_sums = held.soft_points(scores)
    for each, point, log_sum in zip(scores, points, log_sums, strict=True):
        filled = weights_of(held, point)
        found = held.label(each)
        assert (filled > proportions[:, 0] - 1e-10).all()
        assert (filled < proportions[:, 1] + 1e-10).all()
        np.testing.assert_allclose(found.point, point, atol=1e-10)
        assert found.log_sum == pytest.approx(log_sum, abs=1e-10)


@intervals
def test_labels_of_similar_scores_save_time_and_change_nothing(sample, width):
    held = held_rows(sample, shares_of(sample.n_classes, width))
    scores = np.random.default_rng(5).standard_normal(held.labeled_point.shape)
    near = held.label(0.9 * scores)
    found = held.label(scores, near)
    expected = held.label(scores)
    np.testing.assert_allclose(found.point, expected.point, atol=1e-9)
    assert found.log_sum == pytest.approx(expected.log_sum, abs=1e-9)


@intervals
def test_the_point_and_its_derivative_are_those_of_the_log_sum(sample, width):
    held = held_rows(sample, shares_of(sample.n_classes, width))
    rng = np.random.default_rng(1)
    scores, direction = rng.standard_normal((2, *held.labeled_point.shape))
    scores = scores - scores[-1]
    direction = direction - direction[-1]
    ahead, behind = (held.label(scores + step * direction) for step in (1e-5, -1e-5))
    found = held.label(scores)
    slope = np.vdot(direction, found.point - held.labeled_point)
    assert (ahead.log_sum - behind.log_sum) / 2e-5 == pytest.approx(
        slope, rel=1e-6, abs=1e-9
    )
    moved = (ahead.point - behind.point) / 2e-5
    np.testing.assert_allclose(found.product(direction), moved, atol=1e-7)
    flat = found.matrix() @ direction[:-1].ravel()
    np.testing.assert_allclose(flat, moved[:-1].ravel(), atol=1e-7)


@intervals
@pytest.mark.parametrize("seed", range(4))
def test_the_support_is_that_of_a_linear_program(sample, seed, width):
    proportions = shares_of(sample.n_classes, width)
    held = held_rows(sample, proportions)
    direction = np.random.default_rng(seed).standard_normal(held.labeled_point.shape)
    scores = held.scores_of_rows(direction)
    n_classes, n_rows = scores.shape
    each_class = np.kron(np.eye(n_classes), held.weights)
    low, high = proportions.T * held.weights.sum()
    solved = scipy.optimize.linprog(
        -(scores * held.weights).ravel(),
        A_ub=np.vstack([each_class, -each_class]),
        b_ub=np.r_[high, -low] + 1e-15,
        A_eq=np.kron(np.ones(n_classes), np.eye(n_rows)),
        b_eq=np.ones(n_rows),
        bounds=(0, 1),
    )
    assert held.support(direction) == pytest.approx(-solved.fun, abs=1e-9)


@pytest.mark.parametrize("number", range(12))
def test_no_labeling_within_the_quotas_does_better(number):
    n_classes = 2 + number % 2
    is_interval = number >= 6
    n_rows, least, most = (8, 4, 4) if n_classes == 2 else (6, 2, 2)
    if is_interval:
        least = least - 1
        most = most + 1
    sample = draw_sample(
        [6, number], n_classes=n_classes, n_labeled=4 * n_classes, n_unlabeled=n_rows
    )
    proportions = np.tile([least / n_rows, most / n_rows], (n_classes, 1))
    found = maximize_labeled_likelihood(
        problem_with_quotas(sample, proportions), **OPTIONS
    )
    assert found.outcome is Outcome.CONVERGED
    values = list(values_of_labelings(sample, least, most))
    assert max(values) <= found.objective + 1e-8
    best = best_soft_value(sample, proportions)
    assert found.objective == pytest.approx(max(best, *values), abs=1e-6)


def values_of_labelings(sample, least, most):
    """Objectives of all labelings with so many rows in each class."""
    n_rows = len(sample.X_unlabeled)
    n_classes = sample.n_classes
    for labels in product(range(n_classes), repeat=n_rows):
        counts = np.bincount(labels, minlength=n_classes)
        if counts.min() >= least and counts.max() <= most:
            yield value_of_shares(sample, one_hot(np.array(labels), n_classes))[0]


def best_soft_value(sample, proportions):
    """The best of several optimizations over soft labels that fill the quotas."""
    n_rows = len(sample.X_unlabeled)
    n_classes = sample.n_classes
    each_class = np.kron(np.ones(n_rows), np.eye(n_classes)) / n_rows
    rng = np.random.default_rng(0)
    low, high = proportions.T
    if (low == high).all():
        quotas = {"type": "eq", "fun": lambda x: (each_class @ x - low)[:-1]}
    else:
        bounds = np.vstack([each_class, -each_class]), np.r_[low, -high]
        quotas = {"type": "ineq", "fun": lambda x: bounds[0] @ x - bounds[1]}
    starts = (random_shares(rng, n_rows, n_classes) for _ in range(8))
    value_of = partial(value_of_shares, sample)
    solved = [maximize_over_shares(value_of, start, quotas) for start in starts]
    return max(-each.fun for each in solved if each.success)


def solve(kind, problem):
    if kind == "likelihood":
        return maximize_labeled_likelihood(problem, **OPTIONS)
    if kind == "contrast":
        return maximize_worst_gain(problem, Limits(200, 1e-6))
    return alternate.alternate(problem, Limits(1000, 1e-12), is_soft=True)


solvers = pytest.mark.parametrize("kind", ["likelihood", "contrast", "marginal"])


@solvers
def test_class_weights_are_those_of_the_quotas(sample, kind):
    proportions = shares_of(sample.n_classes)
    problem = problem_with_quotas(sample, proportions)
    found = solve(kind, problem)
    assert found.outcome is Outcome.CONVERGED
    n_labeled = len(sample.X)
    n_unlabeled = len(sample.X_unlabeled)
    wanted = np.bincount(sample.y) + n_unlabeled * proportions[:, 0]
    np.testing.assert_allclose(
        found.point[:, 0], wanted / (n_labeled + n_unlabeled), atol=1e-9
    )
    np.testing.assert_allclose(point_of(problem, found.rule), found.point, atol=1e-8)


@solvers
def test_intervals_that_hold_anyway_change_nothing(sample, kind):
    free = problem_of(sample)
    found = solve(kind, free)
    shares = (found.point - free.labeled_point)[:, 0] / (
        1 - free.labeled_point[:, 0].sum()
    )
    wide = np.clip(np.column_stack([shares - 0.1, shares + 0.1]), 0, 1)
    held = solve(kind, replace(free, proportions=wide))
    np.testing.assert_allclose(held.point, found.point, atol=1e-4)


@intervals
def test_em_never_lowers_what_it_maximizes(sample, width):
    problem = problem_with_quotas(sample, shares_of(sample.n_classes, width))
    path = np.array(solve("marginal", problem).path)
    assert (np.diff(path) >= -1e-9 * np.abs(path[-1])).all()


@solvers
@intervals
@pytest.mark.parametrize("n_classes", [2, 3])
def test_more_rows_than_are_held_lead_to_the_same_fit(
    monkeypatch, n_classes, width, kind
):
    sample = draw_sample(
        [71, n_classes], n_classes=n_classes, n_labeled=8 * n_classes, n_unlabeled=6000
    )
    problem = problem_with_quotas(sample, shares_of(n_classes, width))
    change_settings(monkeypatch, "ROUNDS", max_rows=6000)
    held = solve(kind, problem)
    change_settings(monkeypatch, "HOLDING", max_rows=2000)
    change_settings(monkeypatch, "ROUNDS", max_rows=2000)
    change_settings(monkeypatch, "STARTS", screened_rows=500)
    read = solve(kind, problem)
    assert held.outcome is read.outcome is Outcome.CONVERGED
    if kind != "marginal":
        assert read.objective == pytest.approx(held.objective, abs=2e-6)
    np.testing.assert_allclose(
        read.point[:, 0], held.point[:, 0], atol=1e-4 if width else 1e-6
    )


def counted_passes(monkeypatch, kind):
    """The rows near boundaries that each pass returns, which fits append to."""
    n_returned = []
    label_sums = kind.label_sums

    def counted(self, *arguments, near=None, **options):
        sums = label_sums(self, *arguments, near=near, **options)
        n_returned.append(0 if near is None else len(sums.near))
        return sums

    monkeypatch.setattr(kind, "label_sums", counted)
    return n_returned


def counted_duals(monkeypatch):
    """The rows of each evaluation of a dual, which fits append to."""
    n_rows = []
    evaluate = quotas._evaluate_dual

    def counted(scores, *arguments):
        n_rows.append(scores.shape[-1])
        return evaluate(scores, *arguments)

    monkeypatch.setattr(quotas, "_evaluate_dual", counted)
    return n_rows


def draw_classes(n_classes, n_features, n_rows, distance=4.0):
    rng = np.random.default_rng(n_classes)
    means = (
        distance / np.sqrt(n_features) * rng.standard_normal((n_classes, n_features))
    )
    y = np.resize(np.arange(n_classes), 8 * n_classes)
    hidden = rng.integers(n_classes, size=n_rows)
    X = means[y] + rng.standard_normal((len(y), n_features))
    return X, y, means[hidden] + rng.standard_normal((n_rows, n_features))


def most_passes():
    """Passes of a search that ends because they are used up.

    One for the moments; those before the last step; four labelings of the step and one
    of more rows, each by few passes or by sums; and one for the gap.
    """
    chosen = settings.QUOTA_PASSES
    of_labeling = chosen.max_passes + settings.QUOTA_ROUNDS.max_passes + 1 + 1
    return 1 + chosen.max_passes_of_search + 5 * of_labeling + 1


def hold_few(monkeypatch, n_rows, width):
    """Hold a sample of so many rows."""
    change_settings(
        monkeypatch,
        "HOLDING",
        max_rows=n_rows,
        min_rows=n_rows,
        max_entries_of_sample=2 * n_rows * width,
    )
    change_settings(monkeypatch, "STARTS", screened_rows=n_rows // 2)


@pytest.mark.parametrize("source", ["file", "torch"])
@pytest.mark.parametrize("classifier", [ImplicitlyConstrainedLDA, PessimisticLDA])
@pytest.mark.parametrize(
    ("n_classes", "n_features", "n_rows"), [(10, 16, 10_000), (100, 12, 6000)]
)
def test_many_rows_take_few_passes_and_no_more_than_a_sample_in_memory(
    monkeypatch, tmp_path, n_classes, n_features, n_rows, classifier, source
):
    n_held = 1000
    hold_few(monkeypatch, n_held, 1 + n_features)
    X, y, X_unlabeled = draw_classes(n_classes, n_features, n_rows)
    if source == "torch":
        kind = ArrayRows
        rows = pytest.importorskip("torch").tensor(X_unlabeled)
    else:
        kind = BlockRows
        rows = tmp_path / "rows.npy"
        np.save(rows, X_unlabeled)
    n_returned = counted_passes(monkeypatch, kind)
    n_rows_of_duals = counted_duals(monkeypatch)
    # So many iterations allow the work that a test can wait for.
    given = classifier(proportions="equal", max_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        fitted = given.fit(X, y, X_unlabeled=rows)
    # Every pass but the one for the moments is counted.
    assert len(n_returned) == fitted.n_passes_ - 1
    assert fitted.n_passes_ <= most_passes()
    # What a sample predicts of the rows near boundaries is right to a factor of two.
    assert max(n_returned) <= 2 * (2 * n_held) < n_rows
    assert max(n_rows_of_duals) <= 2 * (2 * n_held)
    if fitted.outcome_ == "unfilled":
        return
    assert np.isfinite(fitted.gap_)
    n_unlabeled = fitted.class_weights_ * (n_rows + len(y)) - 8
    np.testing.assert_allclose(n_unlabeled, n_rows / n_classes, rtol=1e-4)


@pytest.mark.parametrize("classifier", [ImplicitlyConstrainedLDA, PessimisticLDA])
def test_a_search_whose_passes_are_used_up_says_so(monkeypatch, classifier):
    X, y, X_unlabeled = draw_classes(5, 8, 6000)
    hold_few(monkeypatch, 1000, 9)
    expected = classifier(proportions="equal").fit(X, y, X_unlabeled=X_unlabeled)
    change_settings(monkeypatch, "QUOTA_PASSES", max_passes_of_search=1)
    with pytest.warns(NotConvergedWarning, match="has not found a maximum"):
        found = classifier(proportions="equal").fit(X, y, X_unlabeled=X_unlabeled)
    assert found.outcome_ == "not_found"
    assert found.n_passes_ < expected.n_passes_
    if classifier is PessimisticLDA:
        # The gap bounds the distance to the optimum.
        assert expected.objective_ >= found.objective_ - found.gap_
        assert expected.objective_ <= found.objective_ + expected.gap_


def test_labels_that_miss_the_quotas_say_so(monkeypatch):
    X, y, X_unlabeled = draw_classes(5, 8, 6000)
    hold_few(monkeypatch, 1000, 9)
    # No correction is small enough.
    monkeypatch.setattr(quota_sets, "_is_close", lambda *arguments: False)
    given = ImplicitlyConstrainedLDA(proportions="equal")
    with pytest.warns(NotConvergedWarning, match="could not give the classes"):
        given.fit(X, y, X_unlabeled=X_unlabeled)
    assert given.outcome_ == "unfilled"
    assert given.n_passes_ <= most_passes()


@intervals
@pytest.mark.parametrize("sharpness", [1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_support_of_a_part_bounds_that_of_a_linear_program(seed, sharpness, width):
    sample = draw_sample([8, seed], n_classes=4, n_labeled=16, n_unlabeled=400)
    exact = held_rows(sample, shares_of(4, width))
    part = QuotaPart(exact.free, exact.quotas)
    rng = np.random.default_rng(seed)
    scores, noise = rng.standard_normal((2, *exact.labeled_point.shape))
    labels = part.label(sharpness * scores)
    for direction in (scores, scores + 0.3 * noise, -scores):
        attained = np.vdot(direction, labels.point - part.labeled_point)
        largest = exact.support(direction)
        bound = part.support(direction, labels)
        assert bound >= largest - 1e-9
        max_share = settings.QUOTA_BOUNDS.max_lost_share
        assert bound - largest <= max_share * (bound - attained) + 1e-9


def held_on_device(sample, proportions, monkeypatch):
    """The same rows on a device, from which nothing can be read by accident."""
    strict = pytest.importorskip("array_api_strict")
    place = place_of(strict.asarray([0.0], device=strict.Device("device1")))
    problem = problem_with_quotas(sample, proportions)
    change_settings(monkeypatch, "HOLDING", min_entries_on_device=0)
    with monkeypatch.context() as changed:
        changed.setattr(type(problem.unlabeled), "held_at", place)
        return held_rows(sample, proportions)


def fetched_from_devices(monkeypatch):
    """The number of entries of each array that comes back, which sets append to."""
    n_entries = []
    fetch = Place.fetch

    def counted(place, array):
        fetched = fetch(place, array)
        n_entries.append(fetched.size)
        return fetched

    monkeypatch.setattr(Place, "fetch", counted)
    return n_entries


@intervals
@pytest.mark.parametrize("sharpness", [1.0, 100.0])
def test_labels_on_a_device_are_those_in_memory(monkeypatch, sharpness, width):
    sample = draw_sample([9, 1], n_classes=4, n_labeled=16, n_unlabeled=400)
    in_memory = held_rows(sample, shares_of(4, width))
    on_device = held_on_device(sample, shares_of(4, width), monkeypatch)
    assert isinstance(on_device.free, DeviceSet)
    rng = np.random.default_rng(2)
    scores, direction = rng.standard_normal((2, *in_memory.labeled_point.shape))
    scores = sharpness * scores

    found = on_device.label(scores)
    expected = in_memory.label(scores)
    assert found.log_sum == pytest.approx(expected.log_sum, abs=1e-9)
    close = partial(np.testing.assert_allclose, rtol=1e-7, atol=1e-9)
    close(found.point, expected.point)
    close(found.product(direction), expected.product(direction))
    close(found.matrix(), expected.matrix())
    close(on_device.shares(scores), in_memory.shares(scores))
    assert found.n_near == np.count_nonzero(
        in_memory.shares(scores).max(axis=0) < 1 - 1e-12
    )
    stack = np.stack([scores, -scores, 0.1 * scores])
    for one, other in zip(
        on_device.soft_points(stack), in_memory.soft_points(stack), strict=True
    ):
        close(one, other)

    # With the same direction for all classes, these tie on every row.
    for each in (direction, scores, np.ones(scores.shape)):
        largest = in_memory.support(each)
        close(on_device.support(each), largest)
        parts = [QuotaPart(held.free, held.quotas) for held in (on_device, in_memory)]
        bounds = [part.support(each, part.label(scores)) for part in parts]
        close(bounds[0], bounds[1])
        assert bounds[0] >= largest - 1e-9


def test_nothing_with_an_axis_of_rows_leaves_a_device(monkeypatch):
    n_rows = 700
    n_classes = 5
    sample = draw_sample([10, 1], n_classes=n_classes, n_labeled=25, n_unlabeled=n_rows)
    proportions = shares_of(n_classes, 0.1)
    held = held_on_device(sample, proportions, monkeypatch)
    part = QuotaPart(held.free, held.quotas)
    scores = 10 * np.random.default_rng(3).standard_normal(held.labeled_point.shape)
    n_rows_of_duals = counted_duals(monkeypatch)
    n_fetched = fetched_from_devices(monkeypatch)

    labels = part.label(scores)
    # The range of the scores, twice, and the point and the log sum of the labels.
    assert len(n_fetched) == len(n_rows_of_duals) + 4
    n_fetched.clear()
    for _ in range(3):
        labels.product(scores)
    # The products, and what the shifts undo.
    assert len(n_fetched) == 3 + 1
    part.soft_points(np.stack([scores, -scores]))
    part.support(scores, labels)
    part.label(0.9 * scores, labels)
    assert max(n_fetched) < n_rows


def fit_on_device(classifier, X, y, X_unlabeled, monkeypatch):
    """Fit rows of torch as if the CPU were a device on which rows are held."""
    torch = pytest.importorskip("torch")
    change_settings(monkeypatch, "HOLDING", min_entries_on_device=0)
    with monkeypatch.context() as changed:
        changed.setattr(ArrayRows, "_is_on_cpu", False)
        return classifier.fit(X, y, X_unlabeled=torch.tensor(X_unlabeled))


@pytest.mark.parametrize("n_classes", [3, 10])
@pytest.mark.parametrize("classifier", [ImplicitlyConstrainedLDA, PessimisticLDA])
def test_a_fit_that_holds_rows_on_a_device_is_that_in_memory(
    monkeypatch, classifier, n_classes
):
    n_held = 1000
    hold_few(monkeypatch, n_held, 5)
    X, y, X_unlabeled = draw_classes(n_classes, 4, 5000, distance=2.0)
    fetched = fetched_from_devices(monkeypatch)
    held_at = set()
    evaluate = quotas._evaluate_dual

    def noted(scores, weights, given_quotas, shifts, place, classes):
        held_at.add(type(place))
        return evaluate(scores, weights, given_quotas, shifts, place, classes)

    monkeypatch.setattr(quotas, "_evaluate_dual", noted)
    given = classifier(proportions="equal", tol=1e-4)
    found = fit_on_device(given, X, y, X_unlabeled, monkeypatch)
    assert held_at == {Place}
    # Scores of the sample choose the rows of each pass; a start fetches its own once.
    n_large = sum(n_entries >= n_held for n_entries in fetched)
    n_starts = 3 + getattr(found, "n_starts", 0)
    assert n_large <= found.n_passes_ + n_starts

    expected = classifier(proportions="equal", tol=1e-4)
    expected.fit(X, y, X_unlabeled=X_unlabeled)
    assert found.outcome_ == expected.outcome_ == "converged"
    assert found.n_passes_ == expected.n_passes_
    assert found.objective_ == pytest.approx(expected.objective_, abs=1e-9)
    largest = np.abs(expected.coef_).max()
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-7 * largest)


def test_the_gap_of_a_fit_on_a_device_bounds_what_is_lost(monkeypatch):
    hold_few(monkeypatch, 1000, 5)
    X, y, X_unlabeled = draw_classes(3, 4, 5000, distance=2.0)
    rough = PessimisticLDA(proportions="equal", tol=0.03)
    found = fit_on_device(rough, X, y, X_unlabeled, monkeypatch)
    best = PessimisticLDA(proportions="equal", tol=1e-7)
    best.fit(X, y, X_unlabeled=X_unlabeled)
    # The objective is the worst gain, which the labels minimize.
    lost = found.objective_ - best.objective_
    assert 1e-4 < lost <= found.gap_
