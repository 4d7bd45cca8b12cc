"""Quotas filled by sums over all rows, against those of rows in memory; in few passes.

Passes are counted, as no test of seconds is true on every machine.
"""

from dataclasses import replace

import numpy as np
import pytest

from iclda import ExpectationMaximizationLDA, NotConvergedWarning
from iclda._core.solvers import Limits, alternate
from iclda._core.solvers.quota_rounds import QuotaRounds
from iclda._core.solvers.quota_sets import QuotaSet
from iclda._core.solvers.sets import attainable_sets
from iclda._rows.device import ArrayRows
from iclda._rows.memory import BlockRows
from tests.helpers.problems import (
    change_settings,
    draw_sample,
    problem_of,
    rising_shares,
)


def rounds_of(monkeypatch, sample, proportions):
    """The set of rows that are read in rounds, of which a tenth is held as a sample."""
    n_held = len(sample.X_unlabeled) // 10
    change_settings(monkeypatch, "ROUNDS", max_rows=n_held, max_numbers_with_quotas=0)
    problem = replace(problem_of(sample), proportions=proportions)
    rounds = attainable_sets(problem).open_for_rounds()
    assert isinstance(rounds, QuotaRounds)
    return problem, rounds


def in_memory(problem):
    rows = problem.unlabeled.sample(problem.unlabeled.n_rows, 0)
    quotas = replace(attainable_sets(problem).quotas, sharpness=1e6)
    return replace(attainable_sets(problem), quotas=quotas).hold(*rows)


def proportions_of(kind, n_classes):
    shares = rising_shares(n_classes)
    if kind == "shares":
        return np.column_stack([shares, shares])
    if kind == "none for one class":
        none = np.r_[0.0, np.full(n_classes - 1, 1 / (n_classes - 1))]
        return np.column_stack([none, none])
    return np.column_stack([0.9 * shares, 0.9 * shares + 0.1])


@pytest.mark.parametrize("kind", ["shares", "intervals", "none for one class"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("sharpness", [0.3, 3.0, 100.0])
def test_labels_are_those_of_rows_in_memory(monkeypatch, n_classes, kind, sharpness):
    sample = draw_sample(
        [3, n_classes], n_classes=n_classes, n_labeled=30, n_unlabeled=2000
    )
    change_settings(
        monkeypatch,
        "QUOTA_ROUNDS",
        max_error_left=0.0,
        max_error=1e-9,
        max_first_passes=60,
    )
    problem, rounds = rounds_of(monkeypatch, sample, proportions_of(kind, n_classes))
    scores = np.random.default_rng(0).standard_normal(problem.labeled_point.shape)
    scores *= sharpness
    found = rounds.soft_labels(scores)
    expected = in_memory(problem).soft_labels(scores)
    np.testing.assert_allclose(found.point[:, 0], expected.point[:, 0], atol=1e-6)
    np.testing.assert_allclose(found.point, expected.point, atol=1e-5)
    # The entropy of the slacks, which are sharp here, is about 1e-6.
    assert found.log_sum == pytest.approx(expected.log_sum, abs=2e-6)

    # From labels of similar scores the result is the same, in fewer passes.
    n_passes = rounds.n_passes
    again = rounds.soft_labels(scores, found)
    np.testing.assert_allclose(again.point, found.point, atol=1e-7)
    assert rounds.n_passes - n_passes <= n_passes


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("sharpness", [0.3, 1.0, 3.0])
def test_the_order_of_the_classes_does_not_matter(monkeypatch, n_classes, sharpness):
    sample = draw_sample(
        [4, n_classes], n_classes=n_classes, n_labeled=30, n_unlabeled=3000
    )
    # The last class, which gets the rest, is the rarest or the most frequent one.
    shares = np.geomspace(1, 1000, n_classes)
    shares /= shares.sum()
    proportions = np.column_stack([shares, shares])
    scores = np.random.default_rng(1).standard_normal((n_classes, 3))
    found = []
    n_passes = []
    for order in (slice(None), slice(None, None, -1)):
        y = np.arange(n_classes)[order][sample.y]
        _, rounds = rounds_of(monkeypatch, replace(sample, y=y), proportions[order])
        labels = rounds.soft_labels(sharpness * scores[order])
        assert labels.are_filled
        found.append(labels.point[order])
        n_passes.append(rounds.n_passes)
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
    assert n_passes[0] == n_passes[1]


def test_em_fills_the_quota_of_a_rare_class_wherever_it_stands(monkeypatch):
    X, y, X_unlabeled, _ = draw_many_classes(10, 6, 4000)
    change_settings(monkeypatch, "ROUNDS", max_rows=1000, max_numbers_with_quotas=0)
    shares = np.geomspace(1, 1000, 10)
    shares /= shares.sum()
    for labels, proportions in ((y, shares[::-1]), (9 - y, shares)):
        fitted = ExpectationMaximizationLDA(proportions=proportions)
        fitted.fit(X, labels, X_unlabeled=X_unlabeled)
        assert fitted.converged_


@pytest.mark.parametrize("kind", ["shares", "intervals"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_em_never_lowers_what_it_maximizes(monkeypatch, n_classes, kind):
    sample = draw_sample(
        [8, n_classes], n_classes=n_classes, n_labeled=24, n_unlabeled=3000
    )
    problem, _ = rounds_of(monkeypatch, sample, proportions_of(kind, n_classes))
    limits = Limits(500, 1e-8)
    found = alternate.alternate(problem, limits, is_soft=True)
    rises = np.diff(found.path) / problem.moments.weight
    assert rises.min() >= -limits.tol


def draw_many_classes(n_classes, n_features, n_rows):
    rng = np.random.default_rng(n_classes)
    means = 5 / np.sqrt(n_features) * rng.standard_normal((n_classes, n_features))
    shares = np.linspace(1, 2, n_classes)
    shares /= shares.sum()
    y = np.resize(np.arange(n_classes), 4 * n_classes)
    hidden = rng.choice(n_classes, n_rows, p=shares)
    X = means[y] + rng.standard_normal((len(y), n_features))
    X_unlabeled = means[hidden] + rng.standard_normal((n_rows, n_features))
    return X, y, X_unlabeled, shares


@pytest.mark.parametrize(
    ("n_classes", "n_features", "n_rows", "on_device"),
    [(100, 30, 6000, False), (100, 30, 6000, True), (1000, 40, 6000, True)],
)
def test_quotas_of_many_classes_take_few_passes(
    monkeypatch, n_classes, n_features, n_rows, on_device
):
    X, y, X_unlabeled, shares = draw_many_classes(n_classes, n_features, n_rows)
    n_read = {"passes": 0, "with rows": 0}
    kind = BlockRows
    if on_device:
        kind = ArrayRows
        xp = pytest.importorskip("array_api_strict")
        X_unlabeled = xp.asarray(X_unlabeled, device=xp.Device("device1"))
    label_sums = kind.label_sums

    def counted(self, *arguments, near=None, **options):
        n_read["passes"] += 1
        n_read["with rows"] += near is not None
        return label_sums(self, *arguments, near=near, **options)

    monkeypatch.setattr(kind, "label_sums", counted)
    change_settings(monkeypatch, "ROUNDS", max_rows=1000, max_numbers_with_quotas=0)
    n_rounds = 3
    given = ExpectationMaximizationLDA(proportions=shares, max_iter=n_rounds)
    with pytest.warns(UserWarning, match="before it converged"):
        given.fit(X, y, X_unlabeled=X_unlabeled)
    # Free labels take passes for the moments, the start, and each round.
    assert n_read["passes"] == given.n_passes_ - 1
    assert given.n_passes_ <= 20 * (2 + n_rounds)
    assert n_read["with rows"] == 0
    n_unlabeled = given.class_weights_ * (n_rows + len(y)) - 4
    np.testing.assert_allclose(n_unlabeled / n_rows, shares, atol=1e-5)


def test_the_sample_is_asked_in_the_first_round_at_most(monkeypatch):
    sample = draw_sample([1, 3], n_classes=3, n_labeled=12, n_unlabeled=3000)
    asked = []
    find_shift = QuotaSet.find_shift

    def counted(self, *arguments):
        asked.append(arguments)
        return find_shift(self, *arguments)

    monkeypatch.setattr(QuotaSet, "find_shift", counted)
    problem, rounds = rounds_of(monkeypatch, sample, proportions_of("shares", 3))
    # Hard labels, which do not follow scaled odds.
    scores = 1e4 * np.random.default_rng(2).standard_normal(problem.labeled_point.shape)
    labels = rounds.soft_labels(scores)
    assert len(asked) == 1
    for factor in (1.001, 1.002):
        labels = rounds.soft_labels(factor * scores, labels)
    assert len(asked) == 1


def hard_problem(monkeypatch, n_classes, n_rows):
    """Classes far apart, and proportions that are not those of the rows."""
    rng = np.random.default_rng(0)
    means = 3 * rng.standard_normal((n_classes, 30))
    shares = np.linspace(1, 3, n_classes) / (2 * n_classes)
    hidden = rng.choice(n_classes, n_rows, p=shares)
    X_unlabeled = means[hidden] + rng.standard_normal((n_rows, 30))
    y = np.resize(np.arange(n_classes), 4 * n_classes)
    X = means[y] + rng.standard_normal((len(y), 30))
    n_held = n_rows // 4
    change_settings(monkeypatch, "ROUNDS", max_rows=n_held, max_numbers_with_quotas=0)
    return X, y, X_unlabeled, shares[::-1]


def counted_labelings(monkeypatch):
    """The passes that each labeling takes, which fits append to."""
    n_passes = []
    soft_labels = QuotaRounds.soft_labels

    def counted(self, *arguments, **options):
        n_before = self.n_passes
        labels = soft_labels(self, *arguments, **options)
        n_passes.append(self.n_passes - n_before)
        return labels

    monkeypatch.setattr(QuotaRounds, "soft_labels", counted)
    return n_passes


@pytest.mark.parametrize("n_classes", [10, 100])
def test_hard_labels_fill_quotas_that_are_far_from_them(monkeypatch, n_classes):
    X, y, X_unlabeled, shares = hard_problem(monkeypatch, n_classes, 6000)
    n_passes = counted_labelings(monkeypatch)
    read = ExpectationMaximizationLDA(proportions=shares)
    read.fit(X, y, X_unlabeled=X_unlabeled)
    assert read.converged_
    assert n_passes[0] <= 30
    assert max(n_passes[1:]) <= 20
    n_unlabeled = read.class_weights_ * (len(X_unlabeled) + len(y)) - 4
    np.testing.assert_allclose(n_unlabeled / len(X_unlabeled), shares, atol=1e-5)
    # In memory the quotas are those of every round.
    change_settings(monkeypatch, "ROUNDS", max_rows=10_000)
    held = ExpectationMaximizationLDA(proportions=shares)
    held.fit(X, y, X_unlabeled=X_unlabeled)
    assert held.converged_
    difference = read.class_weights_ - held.class_weights_
    np.testing.assert_allclose(difference, 0, atol=1e-5)
    # Few labels for a hundred classes leave EM several maxima.
    if n_classes == 10:
        of_read = read.log_likelihood_path_[-1]
        of_held = held.log_likelihood_path_[-1]
        assert of_read == pytest.approx(of_held, rel=1e-3)


@pytest.mark.parametrize(
    ("n_classes", "n_rows"),
    [(100, 3000), pytest.param(1000, 6000, marks=pytest.mark.slow)],
    ids=str,
)
def test_quotas_that_stay_unfilled_end_a_fit_after_few_passes(
    monkeypatch, n_classes, n_rows
):
    X, y, X_unlabeled, shares = hard_problem(monkeypatch, n_classes, n_rows)
    # Each labeling may take less than it needs.
    change_settings(
        monkeypatch,
        "QUOTA_ROUNDS",
        max_first_passes=5,
        max_passes=5,
        max_unfilled_rounds=3,
    )
    n_passes = counted_labelings(monkeypatch)
    fitted = ExpectationMaximizationLDA(proportions=shares)
    with pytest.warns(
        NotConvergedWarning,
        match=r"the fit ended after 3 steps .* max_iter does not help\.$",
    ):
        fitted.fit(X, y, X_unlabeled=X_unlabeled)
    assert fitted.outcome_ == "unfilled"
    assert fitted.n_iter_ <= 3
    # A refused extrapolation is one more labeling of a round.
    assert len(n_passes) <= 1 + 2 * 3
    assert fitted.n_passes_ == 1 + sum(n_passes)
    # That of scores that were left soft is made in any case.
    assert max(n_passes) <= 5 + 5


@pytest.mark.parametrize("kind", ["shares", "intervals"])
@pytest.mark.parametrize("n_classes", [2, 20, 200])
@pytest.mark.parametrize("sharpness", [1.0, 1e3, 1e6])
def test_no_labeling_takes_more_than_twenty_passes(
    monkeypatch, kind, n_classes, sharpness
):
    sample = draw_sample(
        [5, n_classes],
        n_classes=n_classes,
        n_labeled=2 * n_classes,
        n_unlabeled=4 * n_classes + 400,
    )
    problem, rounds = rounds_of(monkeypatch, sample, proportions_of(kind, n_classes))
    n_passes = counted_labelings(monkeypatch)
    rng = np.random.default_rng(n_classes)
    labels = None
    for _ in range(3):
        # Scores that have nothing to do with those before, with a shift that misleads.
        scores = sharpness * rng.standard_normal(problem.labeled_point.shape)
        labels = rounds.soft_labels(scores, labels)
    assert n_passes[0] <= 30
    assert max(n_passes[1:]) <= 20
