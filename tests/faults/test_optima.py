"""Ties, fits that do not converge, several maxima, and likelihoods without one."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from iclda import (
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    MomentConstrainedLDA,
    SelfLearningLDA,
    SupervisedLDA,
)
from iclda._core.frame import frame_of
from iclda._core.labelsums import LinearRule
from iclda._rows.memory import MemoryRows
from tests.helpers.changes import assert_finite
from tests.helpers.problems import by_labeling, draw_marked, every_classifier

# 30. Ties at the threshold.


def draw_tied_rows(n_features, n_classes):
    """A labeling rule, and rows most of which lie, to rounding, between two classes."""
    rng = np.random.default_rng([n_features, n_classes])
    means = rng.standard_normal((n_classes, n_features))
    mix = rng.standard_normal((n_features, n_features)) + 2 * np.eye(n_features)
    coef = mix @ mix.T @ means.T
    intercept = -np.einsum("kd,dk->k", means, coef) / 2
    across = coef[:, 0] - coef[:, 1]
    rows = rng.standard_normal((300, n_features))
    excess = rows @ across + intercept[0] - intercept[1]
    on_threshold = rows - np.outer(excess / (across @ across), across)
    half_way = np.repeat((means[:1] + means[1:2]) / 2, 500, axis=0)
    rows = np.vstack([half_way, np.repeat(on_threshold, 4, axis=0), rows])
    frame = frame_of(rows)
    rule = LinearRule(
        coef * frame.scale[:, None], intercept + frame.origin @ coef, is_soft=False
    )
    return rows, rule, frame


def assert_same_sums(found, expected, n_rows):
    assert_array_equal(found.counts, expected.counts)
    assert_allclose(found.sums, expected.sums, rtol=0, atol=1e-12 * n_rows)
    assert_allclose(found.log_sum, expected.log_sum, rtol=1e-12)


@pytest.mark.parametrize("tile_rows", [1, 2, 3, 64, 1999])
@pytest.mark.parametrize(
    ("n_features", "n_classes"), [(1, 2), (2, 2), (5, 3), (8, 2), (20, 5)]
)
def test_30_a_pass_does_not_depend_on_blocks_or_order_even_with_ties(
    n_features, n_classes, tile_rows
):
    rows, rule, frame = draw_tied_rows(n_features, n_classes)
    expected = MemoryRows(rows).label_sums(rule, frame)
    cut = MemoryRows(rows, tile_rows=tile_rows).label_sums(rule, frame)
    assert_same_sums(cut, expected, len(rows))
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(rows))
        shuffled = MemoryRows(rows[order], tile_rows=tile_rows).label_sums(rule, frame)
        assert_same_sums(shuffled, expected, len(rows))


@every_classifier
def test_30_the_order_of_rows_changes_no_fit_even_with_ties(classifier):
    # Small integers, each row many times: exact scores, and rows exactly half way.
    X = np.array([[0, 0], [4, 0], [1, 1], [5, 1], [0, 1], [4, 1], [1, 0], [5, 0]])
    unlabeled = np.repeat([[2, 0], [3, 1], [1, 1], [4, 0], [0, 3], [5, -2]], 30, axis=0)
    y = np.tile([0, 1], 4)
    expected = classifier().fit(X, y, X_unlabeled=unlabeled)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(unlabeled))
        model = classifier().fit(X, y, X_unlabeled=unlabeled[order])
        assert_allclose(model.coef_, expected.coef_, rtol=1e-6, atol=1e-6)
        assert_allclose(model.priors_, expected.priors_, rtol=0, atol=1e-6)


# 31. No convergence.


@pytest.mark.parametrize(
    ("classifier", "what"),
    [
        (SelfLearningLDA, r"labels still change after 1 step and 1 pass\."),
        (
            ExpectationMaximizationLDA,
            r"the likelihood still rises after 1 step and 1 pass\.",
        ),
        (ImplicitlyConstrainedLDA, r"gap \S+ after \d+ steps? and \d+ passes"),
    ],
)
def test_31_a_fit_cut_short_says_how_far_it_got(classifier, what):
    X, y, _ = draw_marked(n_labeled=6, n_unlabeled=40, distance=1.0)
    message = rf"stopped at max_iter .*{what}.*Raise max_iter \(now 1\)"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = classifier(max_iter=1).fit(X, y)
    assert len(caught) == 1
    assert model.converged_ is False
    if classifier is ImplicitlyConstrainedLDA:
        assert f"gap {model.gap_:.2g} after {model.n_iter_} step" in str(
            caught[0].message
        )
    assert_finite(model, X)


# 32. Several maxima, and none.


@pytest.fixture
def mirrored():
    """A problem that its mirror image equals: every optimum off the axis has a twin."""
    X = np.array([[-1.0, 0.0], [-0.5, 0.0], [1.0, 0.0], [0.5, 0.0]])
    upper = np.array([[0.0, 3.0], [0.1, 2.0], [-0.1, 2.5]])
    return X, np.array([0, 0, 1, 1]), np.vstack([upper, upper * [1, -1]])


@pytest.mark.parametrize("random_state", [None, 0, 7])
def test_32_of_equally_good_optima_the_same_is_chosen_every_time(
    mirrored, random_state
):
    X, y, unlabeled = mirrored
    first, second = (
        ImplicitlyConstrainedLDA(random_state=random_state).fit(
            X, y, X_unlabeled=unlabeled
        )
        for _ in range(2)
    )
    assert first.n_optima_ >= 2
    assert_array_equal(first.coef_, second.coef_)
    assert_array_equal(first.responsibilities_, second.responsibilities_)
    assert first.objective_ == second.objective_


@by_labeling
@pytest.mark.parametrize("n_classes", [2, 3])
def test_32_a_column_that_gives_the_classes_away_is_named_and_held_at_a_floor(
    classifier, n_classes
):
    X, y, true = draw_marked(n_classes=n_classes)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        leak=(true == 1).astype(float)
    )
    message = r"column 'leak' takes \(nearly\) one value per class.*shrinkage.*"
    message += "or drop the column"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = classifier().fit(frame, y)
    assert len(caught) == 1
    assert model.outcome_ == caught[0].message.outcome == "unbounded"
    assert model.converged_ is False
    assert_finite(model, frame)
    assert_array_equal(model.predict(frame) == 1, true == 1)


@every_classifier
def test_32_shrinkage_is_the_way_out_of_a_column_that_gives_the_classes_away(
    classifier,
):
    X, y, true = draw_marked()
    rows = np.column_stack([X, true])
    model = classifier(shrinkage=0.1).fit(rows, y)
    assert getattr(model, "converged_", True) is True
    assert_finite(model, rows)


def test_32_a_column_that_gives_the_classes_away_costs_the_supervised_fit_its_rank():
    X, y, true = draw_marked()
    rows = np.column_stack([X, true])
    with pytest.warns(
        UserWarning, match=r"16 labeled rows .* 3 of 4 dimensions.*shrinkage"
    ):
        model = SupervisedLDA().fit(rows, y)
    assert model.rank_ == 3
    assert_finite(model, rows)
    with pytest.raises(ValueError, match=r"span 3 of 4 dimensions.*pass shrinkage"):
        MomentConstrainedLDA().fit(rows, y)


@by_labeling
def test_32_more_directions_than_rows_can_fill_have_no_maximum_unless_shrunk(
    classifier,
):
    # Rank 11 > 12 rows - 2 classes.
    X = np.random.default_rng(2).standard_normal((12, 11))
    y = np.array([0, 1, 0, 1, *[-1] * 8])
    with pytest.warns(
        ConvergenceWarning, match=r"likelihood has no maximum.*shrink"
    ) as caught:
        model = classifier().fit(X, y)
    told = (
        "takes (nearly) one value per class"
        if model._model_.gaussians.is_floored
        else "12 rows are too few"
    )
    assert told in str(caught[-1].message)
    assert model.rank_ == 11
    assert model.converged_ is False
    assert_finite(model, X)
    # Without a warning.
    shrunk = classifier(shrinkage=0.2).fit(X, y)
    assert shrunk.converged_ is True
    assert_finite(shrunk, X)
