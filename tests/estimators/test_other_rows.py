"""What a fitted model says about other rows: adaptation and class shares."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from iclda import (
    AutoLDA,
    AverageLDA,
    ExpectationMaximizationLDA,
    LeastSquaresClassifier,
    ParameterError,
    SemiSupervisedEnsemble,
    SupervisedLDA,
    load_model,
    save_model,
)
from iclda._estimators.other_rows import (
    Calibration,
    estimate_class_shares,
    mixture_shares,
)
from iclda._rows.views import steps_of
from iclda.datasets import load_vowels
from tests.helpers.row_sources import SOURCES

RNG = np.random.default_rng(45)
N_ROWS = 240
Y = np.arange(N_ROWS) % 3
MEANS = np.array([[0.0, 0, 0, 0], [3, 0, 1, 0], [0, 3, 0, 1]])
X = (RNG.normal(size=(N_ROWS, 4)) + MEANS[Y]) * [1, 10, 0.1, 1]
OFFSET = np.array([5.0, -30, 0.7, 100])
SETTINGS = {
    "plain": {},
    "shrunk": {"shrinkage": 0.2},
    "standardized": {"view": "standardize"},
    "whitened": {"view": "whiten", "shrinkage": 0.1},
}
every_setting = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


def new_rows(shares, n=400, offset=0.0, seed=0, distance=1.0):
    """Rows of the classes in other shares."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=shares)
    rows = rng.normal(size=(n, 4)) + distance * MEANS[y]
    return rows * [1, 10, 0.1, 1] + offset, y


@every_setting
def test_rows_that_were_all_moved_are_predicted_as_before(settings):
    fitted = SupervisedLDA(**settings).fit(X, Y)
    rows = X + OFFSET
    adapted = fitted.adapt(rows)
    assert adapted.adaptation_.is_kept
    assert_allclose(adapted.predict_proba(rows), fitted.predict_proba(X), atol=1e-9)
    expected = fitted.decision_function(X)
    # Scores of all classes in a row have a constant in common.
    found = adapted.decision_function(rows)
    assert_allclose(found - found[:, :1], expected - expected[:, :1], atol=1e-9)
    assert_allclose(adapted.transform(rows), fitted.transform(X), atol=1e-9)
    assert_allclose(adapted.score_samples(rows), fitted.score_samples(X))


def test_em_gives_moved_rows_the_same_classes_wherever_they_were_moved_to():
    fitted = SupervisedLDA().fit(X, Y)
    rows, _ = new_rows([0.6, 0.2, 0.2])
    near = fitted.adapt(rows + OFFSET, change="both")
    far = fitted.adapt(rows - OFFSET, change="both")
    expected = near.predict_proba(rows + OFFSET)
    assert_allclose(far.predict_proba(rows - OFFSET), expected, atol=1e-6)


@pytest.mark.parametrize(
    "classifier", [SupervisedLDA(), ExpectationMaximizationLDA()], ids=["lda", "em"]
)
def test_the_training_rows_change_nothing(classifier):
    labels = np.where(np.arange(N_ROWS) < 90, Y, -1)
    rows = X
    if isinstance(classifier, SupervisedLDA):
        labels = Y
    fitted = classifier.fit(rows, labels)
    adapted = fitted.adapt(rows)
    assert_allclose(adapted.intercept_, fitted.intercept_, atol=1e-9)
    assert_array_equal(adapted.adaptation_.offset, 0)
    assert "Nothing was changed" in adapted.adaptation_.reason


@pytest.mark.parametrize("share_labeled", [0.2, 0.9])
@pytest.mark.parametrize(
    "classifier",
    [AverageLDA(), AverageLDA(view="standardize"), SemiSupervisedEnsemble()],
    ids=["average", "standardized", "ensemble"],
)
def test_an_average_is_moved_by_the_distance_from_its_training_rows(
    classifier, share_labeled, tmp_path
):
    X, y, _, is_new = load_vowels()
    rows = X[~is_new]
    is_labeled = np.random.default_rng(0).random(len(rows)) < share_labeled
    labels = np.where(is_labeled, y[~is_new], None)
    fitted = clone(classifier).fit(rows, labels)
    # Its means serve the posteriors only, and lie elsewhere.
    offset = 10.0
    moved = fitted.adapt(rows + offset)
    found = moved.adaptation_.offset
    if isinstance(fitted, AverageLDA):
        found = found * steps_of(fitted.view_)[-1].scale
    assert_allclose(found, offset, rtol=1e-9)
    before = fitted.predict_proba(rows)
    assert_allclose(moved.predict_proba(rows + offset), before, atol=1e-8)
    assert_array_equal(fitted.adapt(rows).predict_proba(rows), before)
    save_model(fitted, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops").adapt(rows + offset)
    assert_allclose(again.predict_proba(rows + offset), before, atol=1e-8)


@pytest.mark.parametrize("change", ["offset", "shares", "both"])
def test_an_adapted_ensemble_can_be_adapted_again(change):
    labels = np.where(np.arange(N_ROWS) < 90, Y, -1)
    fitted = SemiSupervisedEnsemble().fit(X, labels)
    rows, _ = new_rows([0.6, 0.3, 0.1], offset=OFFSET * (change != "shares"))
    other, _ = new_rows([0.1, 0.2, 0.7], offset=-OFFSET * (change != "shares"), seed=1)
    once = fitted.adapt(other, change=change)
    twice = fitted.adapt(rows, change=change).adapt(other, change=change)
    assert once.adaptation_.is_kept
    assert twice.adaptation_.is_kept
    expected = once.predict_proba(other)
    # EM ends where no share moves by more than 1e-6.
    assert_allclose(twice.predict_proba(other), expected, atol=1e-4)
    assert_allclose(twice.adaptation_.shares, once.adaptation_.shares, atol=1e-4)
    again = twice.class_shares(other).shares
    assert_allclose(again, once.class_shares(other).shares, atol=1e-3)


@every_setting
@pytest.mark.parametrize("change", ["offset", "shares", "both"])
def test_only_intercepts_means_and_priors_change_and_the_fit_stays(settings, change):
    fitted = SupervisedLDA(**settings).fit(X, Y)
    before = copy.deepcopy(vars(fitted))
    rows, _ = new_rows([0.8, 0.1, 0.1], offset=OFFSET * (change != "shares"))
    adapted = fitted.adapt(rows, change=change)
    assert adapted.adaptation_.is_kept
    assert_allclose(adapted.coef_, fitted.coef_, rtol=1e-9, atol=1e-12)
    assert_array_equal(adapted.covariance_, fitted.covariance_)
    assert not np.allclose(adapted.intercept_, fitted.intercept_)
    assert_array_equal(fitted.intercept_, before["intercept_"])
    assert not hasattr(fitted, "adaptation_")


def test_coefficients_and_intercepts_are_those_of_the_scores():
    adapted = SupervisedLDA().fit(X, Y).adapt(X + OFFSET)
    rows = X + OFFSET
    scores = rows @ adapted.coef_.T + adapted.intercept_
    assert_allclose(scores, adapted.decision_function(rows))
    assert_array_equal(adapted.classes_[scores.argmax(axis=1)], adapted.predict(rows))


def test_few_rows_of_many_features_are_moved_in_all_directions():
    wide = RNG.normal(size=(40, 300))
    fitted = SupervisedLDA(shrinkage=0.5).fit(wide, np.arange(40) % 2)
    offset = RNG.normal(size=300) * 10
    adapted = fitted.adapt(wide + offset)
    assert adapted.adaptation_.is_kept
    assert_allclose(
        adapted.score_samples(wide + offset), fitted.score_samples(wide), rtol=1e-8
    )


def test_files_and_exports_are_those_of_the_adapted_classifier(tmp_path):
    adapted = SupervisedLDA(view="whiten").fit(X, Y).adapt(X + OFFSET)
    rows = X + OFFSET
    save_model(adapted, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    expected = adapted.predict_proba(rows)
    assert_allclose(loaded.predict_proba(rows), expected)
    assert loaded.adaptation_.reason == adapted.adaptation_.reason
    assert_allclose(adapted.to_sklearn().predict_proba(rows), expected, atol=1e-9)


@pytest.mark.parametrize("name", SOURCES)
def test_rows_of_any_kind_adapt_as_rows_in_memory_do(name, tmp_path):
    fitted = SupervisedLDA().fit(X, Y)
    rows, _ = new_rows([0.6, 0.2, 0.2], offset=OFFSET / 10)
    for change in ("offset", "both"):
        (tmp_path / change).mkdir()
        expected = fitted.adapt(rows, change=change)
        source = SOURCES[name](rows, tmp_path / change)
        found = fitted.adapt(source, change=change)
        assert_allclose(found.intercept_, expected.intercept_, rtol=1e-6)


def test_a_row_of_weight_two_counts_as_two_rows():
    fitted = SupervisedLDA().fit(X, Y)
    rows, _ = new_rows([0.6, 0.2, 0.2], n=60, offset=OFFSET)
    weights = np.arange(60) % 3
    repeated = np.repeat(rows, weights, axis=0)
    weighted = fitted.adapt(rows, weights)
    assert_allclose(weighted.intercept_, fitted.adapt(repeated).intercept_)


def test_em_never_lowers_the_likelihood_of_shares():
    densities = RNG.exponential(size=(200, 4))
    shares = np.full(4, 0.25)
    likelihoods = []
    for _ in range(30):
        likelihoods.append(np.log(densities @ shares).sum())
        shares = mixture_shares(densities, shares, max_rounds=1)
    assert (np.diff(likelihoods) >= -1e-9).all()
    # At the maximum all classes that are left have the slope 1.
    shares = mixture_shares(densities, shares, max_rounds=20_000)
    slopes = ((1 / (densities @ shares)) @ densities) / len(densities)
    assert_allclose(slopes[shares > 0.01], 1, atol=1e-3)
    assert (slopes < 1.001).all()


def test_other_shares_are_not_taken_for_an_offset_and_an_offset_not_for_shares():
    fitted = SupervisedLDA().fit(X, Y)
    rows, y = new_rows([0.9, 0.05, 0.05])
    by_mean = fitted.adapt(rows)
    assert not by_mean.adaptation_.is_kept
    assert by_mean.adaptation_.gains["shares"] > by_mean.adaptation_.gains["offset"]
    by_shares = fitted.adapt(rows, change="shares")
    assert by_shares.adaptation_.is_kept
    assert_allclose(by_shares.priors_, [0.9, 0.05, 0.05], atol=0.05)
    assert by_shares.score(rows, y) >= fitted.score(rows, y)

    rows, _ = new_rows([1 / 3, 1 / 3, 1 / 3], offset=[2, 0, 0, 0])
    assert fitted.adapt(rows).adaptation_.is_kept
    refused = fitted.adapt(rows, change="shares").adaptation_
    assert not refused.is_kept
    assert "an offset would explain" in refused.reason


def test_both_finds_an_offset_and_shares():
    fitted = SupervisedLDA().fit(X, Y)
    rows, _ = new_rows([0.8, 0.1, 0.1], n=4_000, offset=OFFSET)
    adaptation = fitted.adapt(rows, change="both").adaptation_
    assert_allclose(adaptation.shares, [0.8, 0.1, 0.1], atol=0.03)
    spread = np.array([1, 10, 0.1, 1])
    assert_allclose((adaptation.offset - OFFSET) / spread, 0, atol=0.3)
    # The mean misleads there, and what it says tells so.
    by_mean = fitted.adapt(rows).adaptation_
    assert np.abs((by_mean.offset - OFFSET) / spread).max() > 0.5
    assert "ask for both" in by_mean.reason


def test_one_row_changes_nothing_and_says_so():
    adapted = SupervisedLDA().fit(X, Y).adapt(X[:1] + OFFSET)
    assert "1 row cannot be divided" in str(adapted.adaptation_)
    assert not adapted.adaptation_.is_kept


def test_a_kernel_view_takes_shares_and_no_offset():
    fitted = SupervisedLDA(view="kernel", shrinkage=0.1).fit(X, Y)
    with pytest.raises(ParameterError, match="change='shares'"):
        fitted.adapt(X)
    rows, _ = new_rows([0.9, 0.05, 0.05])
    assert fitted.adapt(rows, change="shares").adaptation_.is_kept


def test_an_unknown_change_and_other_features_are_errors():
    fitted = SupervisedLDA().fit(X, Y)
    with pytest.raises(ParameterError, match="got 'mean'"):
        fitted.adapt(X, change="mean")
    with pytest.raises(ValueError, match="3 features"):
        fitted.adapt(X[:, :3])


@pytest.mark.parametrize("make", [SemiSupervisedEnsemble, AutoLDA])
def test_the_ensemble_takes_the_offset_from_rows_before_any_view(make):
    labels = np.where(np.arange(N_ROWS) < 60, Y, -1)
    fitted = make().fit(X, labels)
    adapted = fitted.adapt(X + OFFSET)
    assert adapted.adaptation_.is_kept
    # The mean of all rows may differ from the one that the linear member was fitted to.
    back = X + OFFSET - adapted.adaptation_.offset
    assert_allclose(
        adapted.predict_proba(X + OFFSET), fitted.predict_proba(back), atol=1e-9
    )
    ensemble = getattr(adapted, "estimator_", adapted)
    assert_allclose(
        ensemble.to_sklearn().predict_proba(X + OFFSET),
        adapted.predict_proba(X + OFFSET),
        atol=1e-9,
    )


def test_a_calibration_reproduces_the_shares_of_its_labels():
    codes = RNG.choice(3, 5_000, p=[0.5, 0.3, 0.2])
    probabilities = RNG.dirichlet([1, 1, 1], 5_000)
    probabilities[np.arange(5_000), codes] += 0.5
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    calibration = Calibration.of_held_out(probabilities, codes)
    logs = np.log(probabilities)
    densities = calibration.ratios(logs, calibration.parameters)
    shares = mixture_shares(densities, np.full(3, 1 / 3))
    assert_allclose(shares, np.bincount(codes) / 5_000, atol=0.01)


def fit_with_held_out():
    labels = np.where(np.arange(N_ROWS) < 90, Y, -1)
    return AverageLDA().fit(X, labels)


def test_held_out_labels_widen_the_intervals_of_class_shares():
    fitted = fit_with_held_out()
    rows, y = new_rows([0.7, 0.2, 0.1], n=1_000)
    found = fitted.class_shares(rows)
    truth = np.bincount(y) / len(y)
    assert ((found.low <= truth) & (truth <= found.high)).all()
    assert_allclose(found.shares.sum(), 1)
    assert "held-out labels of the fit" in found.how
    del fitted.calibration_
    alone = fitted.class_shares(rows)
    assert (alone.high - alone.low).sum() < (found.high - found.low).sum()
    assert "held out no labels" in alone.how


def test_a_count_is_exact_if_all_rows_are_labeled():
    rows, y = new_rows([0.7, 0.2, 0.1], n=300)
    found = fit_with_held_out().class_shares(rows, y)
    for ends in (found.shares, found.low, found.high):
        assert_allclose(ends, np.bincount(y, minlength=3) / 300, atol=1e-12)
    assert found.n_random == found.n_rows == 300


def test_random_labels_correct_a_count_whatever_the_model_is():
    rows, y = new_rows([0.2, 0.2, 0.6], n=2_000)
    # The classes of this fit are mixed up.
    wrong = AverageLDA().fit(X, np.where(np.arange(N_ROWS) < 90, (Y + 1) % 3, -1))
    truth = np.bincount(y) / 2_000
    without = wrong.class_shares(rows)
    assert ((truth < without.low) | (truth > without.high)).any()
    probabilities = wrong.predict_proba(rows)
    is_covered = []
    for seed in range(20):
        random = np.random.default_rng(seed).choice(2_000, 100, replace=False)
        codes = np.full(2_000, -1)
        codes[random] = y[random]
        found = estimate_class_shares(wrong, probabilities, codes)
        is_covered.append((found.low <= truth) & (truth <= found.high))
    assert np.mean(is_covered) > 0.8


def test_a_good_model_makes_intervals_narrower_than_the_random_labels_alone():
    rows, y = new_rows([0.4, 0.3, 0.3], n=2_000)
    labels = np.where(np.arange(2_000) < 100, y, -1)
    found = fit_with_held_out().class_shares(rows, labels)
    share = np.bincount(y[:100]) / 100
    half = 1.645 * np.sqrt(share * (1 - share) / 100)
    assert ((found.high - found.low) < 2 * half).all()


def test_shares_survive_a_model_file(tmp_path):
    fitted = fit_with_held_out()
    rows, _ = new_rows([0.7, 0.2, 0.1])
    save_model(fitted, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    found = loaded.class_shares(rows)
    expected = fitted.class_shares(rows)
    assert_allclose(found.low, expected.low)
    assert found.to_json() == expected.to_json()


def test_least_squares_have_shares_only_with_random_labels():
    fitted = LeastSquaresClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="held out no labels and has no class priors"):
        fitted.class_shares(X)
    assert_allclose(fitted.class_shares(X, Y).shares, 1 / 3)


def test_labels_of_unknown_classes_are_named():
    with pytest.raises(ValueError, match="y holds 7"):
        fit_with_held_out().class_shares(X, np.where(Y == 0, 7, -1))
