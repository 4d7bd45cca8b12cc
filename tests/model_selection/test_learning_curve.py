"""Learning curves over unlabeled and over labeled rows."""

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from iclda import MomentConstrainedLDA, SelfLearningLDA, SupervisedLDA
from iclda.model_selection import (
    LearningCurve,
    SemiSupervisedKFold,
    semi_supervised_learning_curve,
)

RNG = np.random.default_rng(11)
TRUE = np.arange(120) % 3
X = RNG.normal(size=(120, 3)) + 1.2 * np.eye(3)[TRUE]
IS_LABELED = RNG.permutation(120) < 45
Y = np.where(IS_LABELED, TRUE, -1)
NAMES = np.array(["ant", "bee", "cat"])[TRUE]


class Witness(ClassifierMixin, BaseEstimator):
    """Scores by what it was trained on; the class keeps the rows of all fits."""

    def __init__(self, unlabeled=-1):
        self.unlabeled = unlabeled

    def fit(self, X, y):
        seen.append((np.asarray(X)[:, 0].astype(int), y))
        self.classes_ = np.unique(TRUE)
        return self

    def score(self, X, y):
        tested.append((np.asarray(X)[:, 0].astype(int), y))
        return 0.5


seen = []
tested = []


@pytest.fixture(autouse=True)
def _forget():
    seen.clear()
    tested.clear()


def numbered(n=120):
    """Rows that know their number."""
    return np.arange(n)[:, None] * [1.0, 1.0]


def curve_of(estimator=None, rows=X, y=Y, **options):
    options = {"random_state": 3, "cv": 3, **options}
    return semi_supervised_learning_curve(
        estimator or SupervisedLDA(), rows, y, **options
    )


def test_a_point_trains_on_as_many_rows_as_it_says():
    # By default from none to all.
    sizes = curve_of(Witness(), numbered()).sizes
    assert (len(sizes), sizes[0], sizes[-1]) == (7, 0, (~IS_LABELED).sum())
    seen.clear()
    curve = curve_of(Witness(), numbered(), n_unlabeled=[0, 7, 60])
    assert curve.varied == "n_unlabeled"
    assert_array_equal(curve.sizes, [0, 7, 60])
    for (_, y), n_labeled, n_unlabeled in zip(
        seen, curve.n_labeled.ravel(), curve.n_unlabeled.ravel(), strict=True
    ):
        assert (y != -1).sum() == n_labeled == 30
        assert (y == -1).sum() == n_unlabeled
    assert_array_equal(curve.n_unlabeled, np.repeat([[0], [7], [60]], 3, axis=1))
    # All training rows take part where labels vary: those without a label are
    # unlabeled.
    curve = curve_of(Witness(), numbered(), n_labeled=[3, 30])
    assert_array_equal(curve.n_labeled + curve.n_unlabeled, np.full((2, 3), 105))


@pytest.mark.parametrize("cv", [3, KFold(3)])
def test_only_labeled_rows_are_scored_and_never_those_trained_on(cv):
    curve_of(Witness(), numbered(), n_unlabeled=[0, 40], cv=cv)
    for (rows, trained), (scored, y) in zip(seen, tested, strict=True):
        assert not set(rows) & set(scored)
        assert_array_equal(trained[trained != -1], TRUE[rows[trained != -1]])
        assert_array_equal(y, TRUE[scored])
        assert IS_LABELED[scored].all()


@pytest.mark.parametrize("varied", ["n_labeled", "n_unlabeled"])
def test_rows_of_smaller_numbers_are_among_those_of_larger_ones(varied):
    curve_of(Witness(), numbered(), **{varied: [4, 11, 25]})
    for fold in range(3):
        chain = [
            set(rows[(y == -1) if varied == "n_unlabeled" else (y != -1)])
            for rows, y in seen[fold::3]
        ]
        assert chain[0] < chain[1] < chain[2]


@pytest.mark.parametrize("min_per_class", [1, 3])
def test_every_class_keeps_its_guaranteed_labels(min_per_class):
    curve_of(
        Witness(),
        numbered(),
        n_labeled=[3 * min_per_class, 10],
        min_per_class=min_per_class,
        cv=SemiSupervisedKFold(4, n_repeats=2, random_state=0),
    )
    for _, y in seen:
        assert np.bincount(y[y != -1], minlength=3).min() >= min_per_class


def test_the_points_equal_fits_by_hand():
    curve = curve_of(SelfLearningLDA(), n_unlabeled=[75])
    seed = np.random.RandomState(3).randint(2**31 - 1)
    for fold, (train, test) in enumerate(
        SemiSupervisedKFold(3, random_state=seed).split(X, Y)
    ):
        by_hand = SelfLearningLDA().fit(X[train], Y[train]).score(X[test], Y[test])
        assert_allclose(curve.scores[0, fold], by_hand)
        assert len(train) == curve.n_labeled[0, fold] + 75


def test_without_unlabeled_rows_a_curve_starts_at_the_supervised_one():
    # And no warning says that there are none: they were not asked for.
    supervised = curve_of(SupervisedLDA(), n_unlabeled=[0, 75])
    learning = curve_of(SelfLearningLDA(), n_unlabeled=[0, 75])
    assert_array_equal(supervised.scores[0], learning.scores[0])
    assert_array_equal(supervised.scores[0], supervised.scores[1])


def test_the_same_random_state_gives_the_same_curve_and_another_one_another():
    options = {"n_unlabeled": [10, 40], "estimator": SelfLearningLDA()}
    curve = curve_of(**options, scoring="f1_macro")
    assert_array_equal(curve.scores, curve_of(**options, scoring="f1_macro").scores)
    assert (
        curve.scores != curve_of(**options, scoring="f1_macro", random_state=4).scores
    ).any()
    assert curve.score_name == "f1_macro"


def test_mean_and_standard_error_are_those_of_the_splits():
    curve = curve_of(SelfLearningLDA(), n_labeled=[9, 30], cv=5)
    assert_allclose(curve.mean, curve.scores.mean(axis=1))
    assert_allclose(curve.standard_error, curve.scores.std(axis=1, ddof=1) / np.sqrt(5))


def test_means_leave_out_what_is_not_finite():
    scores = np.array(
        [[0.5, np.nan, 0.7], [np.inf, 0.4, 0.6], [np.nan, 0.4, np.nan], [np.nan] * 3]
    )
    curve = LearningCurve("n_labeled", np.arange(4), scores, scores, scores, "score")
    assert_allclose(curve.mean, [0.6, 0.5, 0.4, np.nan])
    assert_allclose(curve.standard_error, [0.1, 0.1, np.nan, np.nan])


@pytest.mark.parametrize(
    "backend",
    ["threading", pytest.param("loky", marks=pytest.mark.slow)],
    # Processes take seconds to start.
)
def test_workers_change_no_result(backend):
    alone = curve_of(SelfLearningLDA(), n_unlabeled=[5, 40])
    with joblib.parallel_config(backend=backend):
        together = curve_of(SelfLearningLDA(), n_unlabeled=[5, 40], n_jobs=2)
    assert_array_equal(alone.scores, together.scores)


@pytest.mark.parametrize(
    ("marker", "y"),
    [
        ("?", np.where(IS_LABELED, NAMES, "?")),
        (np.nan, np.where(IS_LABELED, TRUE, np.nan)),
        (
            pd.NA,
            pd.Series(TRUE, index=np.arange(120) + 5).where(IS_LABELED).astype("Int64"),
        ),
        (None, pl.Series(np.where(IS_LABELED, NAMES.astype(object), None).tolist())),
    ],
    ids=lambda value: type(value).__name__,
)
def test_markers_and_pipelines_give_the_same_curve(marker, y):
    pipeline = make_pipeline(StandardScaler(), SelfLearningLDA(unlabeled=marker))
    curve = curve_of(pipeline, y=y, n_labeled=[9, 20], scoring="accuracy")
    plain = make_pipeline(StandardScaler(), SelfLearningLDA())
    assert_array_equal(curve.scores, curve_of(plain, n_labeled=[9, 20]).scores)
    assert curve.score_name == "accuracy"


def test_groups_are_never_on_both_sides():
    groups = np.arange(120) // 4
    curve_of(Witness(), numbered(), groups=groups, n_unlabeled=[0, 10])
    for (rows, _), (scored, _) in zip(seen, tested, strict=True):
        assert not set(groups[rows]) & set(groups[scored])


def test_fits_that_fail_are_counted_and_the_first_error_shown():
    # With one label a class the moment-constrained fit is refused, with ten it is not.
    match = "3 of 6 fits failed .* FitError: .*shrinkage"
    with pytest.warns(FitFailedWarning, match=match):
        curve = curve_of(MomentConstrainedLDA(), n_labeled=[3, 30])
    assert np.isnan(curve.scores[0]).all()
    assert np.isfinite(curve.scores[1]).all()
    with pytest.raises(ValueError, match="shrinkage"):
        curve_of(MomentConstrainedLDA(), n_labeled=[3])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_unlabeled": [0, 76]}, "n_unlabeled=76 must lie between 0 and 75"),
        ({"n_labeled": [2, 9]}, "n_labeled=2 must lie between 3 and 30"),
        (
            {"n_labeled": 10, "n_unlabeled": 96},
            "n_unlabeled=96 must lie between 0 and 95",
        ),
        (
            {"n_labeled": [9, 20], "n_unlabeled": 86},
            "n_unlabeled=86 must lie between 0 and 85",
        ),
        ({"n_labeled": [3], "n_unlabeled": [0, 1]}, "both hold several numbers"),
        ({"n_unlabeled": [0.5]}, r"n_unlabeled must hold whole numbers, .*got \[0.5\]"),
        (
            {"min_per_class": 0},
            "min_per_class must be a whole number of at least 1, got 0",
        ),
        ({"min_per_class": 8}, "min_per_class=8, but only 7 labeled rows of class 2"),
        ({"cv": 16}, "n_splits=16 folds need 16 labeled rows of every class"),
        ({"rows": X[:-1]}, "X has 119 rows, y has 120 labels"),
        ({"y": TRUE}, "no unlabeled rows to vary.*such as n_labeled=20"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_drawn_is_refused_with_the_limits(options, message):
    with pytest.raises(ValueError, match=message):
        curve_of(Witness(), **options)
