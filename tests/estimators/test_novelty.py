"""How little rows resemble the classes: scores of held-out labels, p-values."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclda import (
    AutoLDA,
    AverageLDA,
    ExpectationMaximizationLDA,
    LeastSquaresClassifier,
    NearestMean,
    SemiSupervisedEnsemble,
    SupervisedLDA,
    load_model,
    save_model,
)
from iclda._core.moments import Moments
from iclda._core.problem import summarize_rows
from iclda._rows.kinds import in_memory
from iclda._rows.views import steps_of
from tests.helpers.row_sources import SOURCES

N_ROWS = 600
# An unknown class moves the mean of the unlabeled rows.
pytestmark = pytest.mark.filterwarnings("ignore:The unlabeled rows seem")
RNG = np.random.default_rng(45)
# Four classes, of which the last has no label.
Y = np.arange(N_ROWS) % 4
MEANS = 4 * np.eye(4, 6)
X = RNG.normal(size=(N_ROWS, 6)) + MEANS[Y]
LABELS = np.where((Y < 3) & (np.arange(N_ROWS) < 240), Y, -1)
IS_UNKNOWN = Y == 3
CLASSIFIERS = {
    "supervised": SupervisedLDA(),
    "em": ExpectationMaximizationLDA(),
    "average": AverageLDA(),
    "nearest": NearestMean(),
    "whitened": ExpectationMaximizationLDA(view="whiten"),
    "ensemble": SemiSupervisedEnsemble(outside=False),
    "auto": AutoLDA(),
}
every_classifier = pytest.mark.parametrize(
    "classifier", CLASSIFIERS.values(), ids=CLASSIFIERS
)


@every_classifier
def test_rows_of_an_unknown_class_are_newer_than_those_of_known_ones(classifier):
    novelty = classifier.fit(X, LABELS).novelty(X)
    assert ((novelty >= 0) & (novelty <= 1)).all()
    known = novelty[~IS_UNKNOWN]
    # Half of the rows of the unknown class exceed nine tenths of the others.
    assert np.median(novelty[IS_UNKNOWN]) > np.quantile(known, 0.9)


def test_scores_of_rows_held_out_are_those_of_fits_without_them():
    fitted = SupervisedLDA(unlabeled="none").fit(X[:40, :5], Y[:40])
    rows = fitted._known_rows_
    scores = []
    for i in range(40):
        others = np.arange(40) != i
        codes = rows.codes[others]
        labeled = summarize_rows(rows.rows[others], codes, np.ones(39), 4)
        without = replace(
            rows, labeled=labeled, moments=labeled.moments, rows=rows.rows[others]
        )
        known, general = without._gaussians(39 - 4)
        point = rows.frame.restore(rows.rows[[i]])
        distance = -2 * replace(known, log_det=0.0).log_joint(point).max()
        score = distance + 2 * replace(general, log_det=0.0).log_joint(point)[0, 0]
        scores.append(score / 2)
    # The trace of a covariance is taken from all rows, and so is the spread of means.
    found = rows._held_out().scores
    assert np.corrcoef(np.sort(scores), found)[0, 1] > 0.99
    assert abs(np.mean(scores) - found.mean()) < 0.1 * np.std(scores)


@pytest.mark.parametrize("n_labels", [8, 40])
def test_p_values_of_new_rows_of_known_classes_are_uniform(n_labels):
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = np.arange(1_000) % 3
        rows = rng.normal(size=(1_000, 8)) + 3 * np.eye(3, 8)[y]
        labels = np.where(np.arange(1_000) < 3 * n_labels, y, -1)
        fitted = ExpectationMaximizationLDA().fit(rows[:700], labels[:700])
        novelty = fitted.novelty(rows[700:])
        shares.append([(novelty > level).mean() for level in (0.5, 0.8, 0.95)])
    # Within three standard errors, and a step of rank, of what is stated.
    error = 3 * np.std(shares, axis=0) / np.sqrt(20) + 1 / (3 * n_labels + 1)
    assert (np.abs(np.mean(shares, axis=0) - [0.5, 0.2, 0.05]) < error).all()


@every_classifier
def test_rows_that_are_far_from_all_others_are_new(classifier):
    fitted = classifier.fit(X, LABELS)
    directions = RNG.normal(size=(200, 6))
    for distance in (30, 1e4, 1e200):
        assert fitted.novelty(distance * directions).min() > 0.95


def test_novelty_rises_with_the_score_beyond_all_rows_held_out():
    fitted = SupervisedLDA().fit(X, LABELS)
    line = np.linspace(3, 60, 100)[:, None] * np.eye(4, 6)[3]
    novelty = fitted.novelty(line)
    assert (np.diff(novelty[novelty > 0.99]) > 0).all()
    assert novelty[-1] < 1


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "whitened"])
def test_moved_rows_are_as_new_for_a_classifier_that_was_moved_with_them(name):
    fitted = CLASSIFIERS[name].fit(X, LABELS)
    adapted = fitted.adapt(X + np.array([5.0, -30, 7, 100, 0, 1]))
    assert adapted.adaptation_.is_kept
    # Offsets are in columns of the view, those of an ensemble in columns of the rows.
    view = getattr(fitted, "view_", None)
    scale = 1.0 if view is None else getattr(steps_of(view)[-1], "scale", 1.0)
    offset = adapted.adaptation_.offset * scale
    assert_allclose(
        adapted.novelty(X + offset), fitted.novelty(X), rtol=1e-6, atol=1e-9
    )


def test_units_do_not_matter_to_standardized_rows():
    units = np.array([1, 10, 1e-3, 1, 1e6, 1])
    fitted = ExpectationMaximizationLDA(view="standardize").fit(X, LABELS)
    scaled = ExpectationMaximizationLDA(view="standardize").fit(X * units, LABELS)
    assert_allclose(scaled.novelty(X * units), fitted.novelty(X), atol=1e-6)


def test_labels_drawn_class_by_class_count_by_the_shares_of_the_classes():
    rows = AverageLDA().fit(X, LABELS)._known_rows_
    shares = np.array([0.8, 0.1, 0.1])
    held_out = replace(rows, shares=shares)._held_out()
    total = held_out.weights.sum()
    assert_allclose(np.sort(held_out.weights)[-1] / total, 0.8 / 60, rtol=0.1)
    assert held_out.n_rows < len(held_out.scores)


def test_uneven_classes_replace_the_spread_of_all_rows():
    rows = AverageLDA().fit(X, LABELS)._known_rows_
    assert replace(rows, shares=np.full(3, 1 / 3))._unevenness == pytest.approx(0)
    uneven = replace(rows, shares=np.array([0.98, 0.01, 0.01]))
    assert uneven._unevenness == 1
    _, general = uneven._gaussians(200.0)
    moments = uneven.moments
    other = replace(
        uneven,
        moments=Moments(moments.weight, moments.mean + 1, 2 * moments.scatter),
    )
    _, unchanged = other._gaussians(200.0)
    assert_allclose(general.projection, unchanged.projection)


def test_copies_of_a_row_are_held_out_together():
    fitted = SupervisedLDA().fit(X, LABELS)
    twice = SupervisedLDA().fit(np.repeat(X, 2, axis=0), np.repeat(LABELS, 2))
    once = fitted._novelty_model_.held_out
    found = twice._novelty_model_.held_out
    assert len(found.scores) == len(once.scores)


@pytest.mark.parametrize("name", SOURCES)
def test_rows_of_any_kind_are_as_new_as_rows_in_memory(name, tmp_path):
    fitted = ExpectationMaximizationLDA(max_iter=5, tol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(X, LABELS)
    found = np.asarray(in_memory(fitted.novelty(SOURCES[name](X, tmp_path))))
    assert_allclose(found, fitted.novelty(X), atol=1e-5)


@every_classifier
def test_model_files_keep_novelty_and_no_rows(classifier, tmp_path):
    fitted = classifier.fit(X, LABELS)
    save_model(fitted, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert_allclose(loaded.novelty(X), fitted.novelty(X))
    if hasattr(loaded, "_known_rows_"):
        assert loaded._known_rows_ is None


def test_few_rows_of_many_features_are_told_apart():
    wide = np.concatenate([X[:80], 0.1 * RNG.normal(size=(80, 400))], axis=1)
    fitted = AverageLDA().fit(wide, LABELS[:80])
    novelty = fitted.novelty(wide)
    assert np.median(novelty[IS_UNKNOWN[:80]]) > np.median(novelty[~IS_UNKNOWN[:80]])


def test_a_label_a_class_orders_rows_and_says_that_it_is_no_p_value():
    labels = np.where(np.arange(N_ROWS) < 3, Y, -1)
    fitted = AverageLDA().fit(X, labels)
    with pytest.warns(UserWarning, match="0 labels could be held out"):
        novelty = fitted.novelty(X)
    assert np.isfinite(novelty).all()
    assert len(np.unique(novelty)) > 10


def test_equal_rows_have_equal_novelty():
    rows = np.repeat(X[:1], 8, axis=0)
    rows[:4] += 1
    fitted = SupervisedLDA(shrinkage=0.5).fit(rows, np.arange(8) // 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        novelty = fitted.novelty(rows)
    assert_array_equal(novelty[:4], novelty[0])


def test_least_squares_have_no_novelty():
    assert not hasattr(LeastSquaresClassifier().fit(X, Y), "novelty")
