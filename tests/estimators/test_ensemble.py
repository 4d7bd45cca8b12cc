"""The mixture over views and over classifiers of other kinds."""

import warnings
from dataclasses import replace

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, load_wine, make_circles

import iclda
from iclda import (
    AutoLDA,
    AverageLDA,
    NoUnlabeledRowsWarning,
    SemiSupervisedEnsemble,
    load_model,
    save_model,
)
from iclda._estimators.ensemble import _TestedMembers, _TrainingRows
from iclda._estimators.mixture_model import Member
from iclda.model_selection import mask_labels

MEMBERS = {"linear", "kernel", "whitened kernel", "logistic", "forest", "shares"}


@pytest.fixture(scope="module")
def wine():
    X, true = load_wine(return_X_y=True)
    return X, mask_labels(true, 24, random_state=0), true


@pytest.fixture(scope="module")
def fitted(wine):
    X, y, _ = wine
    return SemiSupervisedEnsemble().fit(X, y)


def test_probabilities_are_the_weighted_mean_of_those_of_the_members(wine, fitted):
    X, _, _ = wine
    assert set(fitted.members_) == set(fitted.member_weights_) == MEMBERS
    assert sum(fitted.member_weights_.values()) == pytest.approx(1.0)
    mean = sum(
        member.weight * member.probabilities(X)
        for member in fitted._model_.members.values()
    )
    assert_allclose(fitted.predict_proba(X), mean, atol=1e-12)
    assert_allclose(np.exp(fitted.predict_log_proba(X)), mean, atol=1e-12)
    assert (fitted.predict(X) == fitted.classes_[mean.argmax(axis=1)]).all()
    assert_allclose(fitted.decision_function(X), np.log(mean), atol=1e-8)


def test_two_classes_have_log_odds():
    X, true = make_circles(200, noise=0.1, factor=0.4, random_state=0)
    fitted = SemiSupervisedEnsemble().fit(X, mask_labels(true, 20, random_state=0))
    shares = fitted.predict_proba(X)
    odds = np.log(shares[:, 1] / shares[:, 0])
    assert_allclose(fitted.decision_function(X), odds, rtol=1e-9)


def test_members_that_see_the_boundary_have_the_weight():
    X, true = make_circles(500, noise=0.1, factor=0.4, random_state=0)
    fitted = SemiSupervisedEnsemble().fit(X, mask_labels(true, 40, random_state=0))
    weights = fitted.member_weights_
    assert weights["linear"] + weights["logistic"] < 0.3
    assert fitted.score(X, true) > 0.97


@pytest.mark.parametrize("rows", ["order", "units", "copies of labels"])
def test_order_units_and_copies_of_rows_change_nothing(wine, fitted, rows):
    X, y, _ = wine
    rng = np.random.default_rng(1)
    moved = X
    if rows == "order":
        order = rng.permutation(len(X))
        again = SemiSupervisedEnsemble().fit(X[order], y[order])
    elif rows == "units":
        factors = 10.0 ** rng.integers(-6, 7, X.shape[1])
        moved = X * factors + 3 * factors
        again = SemiSupervisedEnsemble().fit(moved, y)
    else:
        once = y != -1
        weights = np.where(once, 2.0, 1.0)
        again = SemiSupervisedEnsemble().fit(X, y, weights)
        moved = np.vstack([X, X[once]])
        twice = SemiSupervisedEnsemble().fit(moved, np.r_[y, y[once]])
        assert_allclose(twice.predict_proba(X), again.predict_proba(X), atol=1e-6)
        return
    assert_allclose(again.predict_proba(moved), fitted.predict_proba(X), atol=1e-6)
    assert again.error_ == fitted.error_


@pytest.mark.parametrize("seed", range(3))
def test_raw_columns_are_as_good_as_standardized_ones(seed):
    X, true = load_wine(return_X_y=True)
    y = mask_labels(true, 12, random_state=seed)
    standardized = (X - X.mean(axis=0)) / X.std(axis=0)
    raw_score = AutoLDA().fit(X, y).score(X, true)
    assert raw_score == AutoLDA().fit(standardized, y).score(standardized, true)
    assert raw_score > 0.9


def test_held_out_probabilities_are_those_of_all_labeled_rows(wine, fitted):
    _, y, _ = wine
    held_out = fitted.held_out_probabilities_
    assert held_out.shape == (24, 3)
    assert_allclose(held_out.sum(axis=1), 1.0)
    truth = np.eye(3)[y[y != -1]]
    brier = np.square(held_out - truth).sum(axis=1) / 2
    assert fitted.loss_ == pytest.approx(brier.mean())
    assert fitted.n_tested_ == 24
    low, high = fitted.error_interval_
    assert low <= fitted.error_ <= high


def test_more_classes_than_a_forest_can_hold_are_refused():
    y = np.r_[np.repeat(np.arange(501), 2), [-1] * 10]
    rows = np.random.default_rng(0).normal(size=(len(y), 2))
    message = "SemiSupervisedEnsemble takes at most 500 classes, and there are 501: use"
    with pytest.raises(ValueError, match=message):
        SemiSupervisedEnsemble().fit(rows, y)
    # The default on tables is then the average.
    assert AutoLDA().fit(rows, y).method_ == "average"


def test_a_class_with_one_label_trains_and_is_never_tested(wine):
    X, y, _ = wine
    y = y.copy()
    y[np.flatnonzero(y == 2)[1:]] = -1
    fitted = SemiSupervisedEnsemble().fit(X, y)
    is_tested = np.isfinite(fitted.held_out_probabilities_).all(axis=1)
    assert (y[y != -1][~is_tested] == 2).all()
    assert fitted.n_tested_ == is_tested.sum() == (y != -1).sum() - 1


def test_without_labels_to_hold_out_members_count_alike():
    X, true = load_iris(return_X_y=True)
    y = np.full(150, -1)
    y[[0, 50, 100]] = [0, 1, 2]
    fitted = SemiSupervisedEnsemble().fit(X, y)
    assert [*fitted.member_weights_.values()] == pytest.approx([1 / 6] * 6)
    assert fitted.error_ is None
    assert fitted.loss_ is None
    assert fitted.n_tested_ == 0
    assert fitted.score(X, true) > 0.8


def test_weights_make_held_out_labels_most_likely_given_a_prior():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([1, 1, 1], size=(4, 50))
    codes = rng.integers(0, 3, 50)
    tested = _TestedMembers(shares, codes, np.ones(50), codes, np.arange(50))
    weights = tested.member_weights()
    own = np.maximum(shares[:, np.arange(50), codes], 1e-3)

    def value(weights):
        return np.log(weights @ own).sum() + 0.3 * np.log(weights).sum()

    for _ in range(200):
        other = np.maximum(weights + 0.02 * rng.normal(size=4), 1e-6)
        assert value(other / other.sum()) <= value(weights) + 1e-6


def test_without_outside_members_all_have_gaussian_classes(wine):
    X, y, _ = wine
    fitted = SemiSupervisedEnsemble(outside=False).fit(X, y)
    assert set(fitted.members_) == {"linear", "kernel", "whitened kernel"}
    assert all(hasattr(member, "means_") for member in fitted.members_.values())


def test_given_priors_turn_every_member(wine):
    X, y, _ = wine
    rare = SemiSupervisedEnsemble(priors=[0.01, 0.495, 0.495]).fit(X, y)
    even = SemiSupervisedEnsemble(priors=[1 / 3, 1 / 3, 1 / 3]).fit(X, y)
    for name, member in rare._model_.members.items():
        own = member.probabilities(X)[:, 0]
        assert own.mean() < even._model_.members[name].probabilities(X)[:, 0].mean()


def test_files_arrays_of_other_libraries_and_arrays_predict_alike(
    wine, fitted, tmp_path
):
    X, y, _ = wine
    expected = fitted.predict_proba(X)
    np.save(tmp_path / "rows.npy", X)
    file = iclda.rows.open(tmp_path / "rows.npy")
    assert_allclose(fitted.predict_proba(file), expected)
    from_file = SemiSupervisedEnsemble().fit(file, y)
    assert_allclose(from_file.predict_proba(X), expected, atol=1e-8)
    strict = fitted.predict_proba(array_api_strict.asarray(X))
    assert_allclose(np.asarray(strict), expected)


def test_a_model_file_keeps_the_mixture_but_nothing_about_single_rows(
    wine, fitted, tmp_path
):
    X, _, _ = wine
    save_model(fitted, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops")
    assert_allclose(again.predict_proba(X), fitted.predict_proba(X))
    assert again.held_out_probabilities_ is None
    for member in again.members_.values():
        assert member.held_out_probabilities_ is None
    assert fitted.held_out_probabilities_ is not None


def test_scikit_learn_predicts_the_same(wine, fitted):
    X, y, _ = wine
    exported = fitted.to_sklearn()
    assert_allclose(exported.predict_proba(X), fitted.predict_proba(X), atol=1e-9)
    assert (exported.predict(X) == fitted.predict(X)).all()
    names = np.array(["a", "b", "c"], dtype=object)
    named = np.where(y == -1, "", names[y])
    texts = SemiSupervisedEnsemble(unlabeled="").fit(X, named)
    assert (texts.to_sklearn().predict(X) == texts.predict(X)).all()
    turned = SemiSupervisedEnsemble(priors=[0.2, 0.3, 0.5]).fit(X, y)
    with pytest.raises(
        ValueError, match=r"\['logistic', 'forest', 'shares'\] were turned"
    ):
        turned.to_sklearn()


def test_rows_that_are_not_drawn_are_searched_for_nan(wine, monkeypatch):
    X, y, _ = wine
    monkeypatch.setattr("iclda._estimators.ensemble._MAX_UNLABELED_ROWS", 5)
    X = X.copy()
    X[np.flatnonzero(y == -1)[-1], 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        SemiSupervisedEnsemble().fit(X, y)


def test_many_rows_are_drawn_from(wine, monkeypatch):
    X, y, true = wine
    monkeypatch.setattr("iclda._estimators.ensemble._MAX_UNLABELED_ROWS", 60)
    monkeypatch.setattr("iclda._estimators.ensemble._MAX_LABELED_ROWS", 20)
    fitted = SemiSupervisedEnsemble().fit(X, y)
    assert fitted.n_tested_ <= 20
    assert np.isnan(fitted.held_out_probabilities_).any()
    assert fitted.score(X, true) > 0.9


def test_without_unlabeled_rows_it_is_tested_too(wine):
    X, _, true = wine
    with pytest.warns(NoUnlabeledRowsWarning, match="an ensemble of supervised"):
        fitted = SemiSupervisedEnsemble().fit(X, true)
    assert fitted.n_tested_ == 178
    assert fitted.error_ < 0.05


@pytest.mark.parametrize("n_unlabeled", [0, 60])
def test_members_are_tested_as_they_are_fitted(wine, n_unlabeled):
    """Rows whose labels are hidden train without them only if others do, too."""
    X, _, true = wine
    n_labeled = len(X) - n_unlabeled
    codes = np.where(np.arange(len(X)) < n_labeled, true, -1)
    weights = np.ones(len(X))
    positions = np.arange(n_labeled)
    training = _TrainingRows(X, codes, weights, n_labeled, positions)
    hidden = np.arange(0, n_labeled, 4)
    tested = training.fit(Member(AverageLDA(view="standardize")), hidden)

    without = codes.copy()
    without[hidden] = -1
    is_used = np.ones(len(X), dtype=bool)
    if n_unlabeled == 0:
        is_used[hidden] = False
    with warnings.catch_warnings():
        # An ensemble does not repeat the warnings of its members.
        warnings.simplefilter("ignore")
        expected = AverageLDA(view="standardize").fit(X[is_used], without[is_used])
    np.testing.assert_array_equal(tested.coef_, expected.coef_)


ODD = {
    "a constant column": lambda X: np.column_stack([X, np.ones(len(X))]),
    "a repeated column": lambda X: np.column_stack([X, X[:, 0]]),
    "one column": lambda X: X[:, :1],
    "more columns than rows": lambda X: np.hstack(
        [
            X,
            np.random.default_rng(0).normal(size=(len(X), 300))
            * 10.0 ** (np.arange(300) % 9),
        ]
    ),
    "fewer rows than landmarks": lambda X: X,
    "all rows equal": np.ones_like,
}


@pytest.mark.filterwarnings("ignore:Rows span .* dimensions")
@pytest.mark.parametrize("odd", ODD)
def test_odd_tables_have_a_finite_fit_or_a_clear_error(wine, odd):
    X, y, _ = wine
    kept = np.r_[np.flatnonzero(y != -1), np.flatnonzero(y == -1)[:40]]
    rows = ODD[odd](X[kept])
    fitted = AutoLDA().fit(rows, y[kept])
    assert fitted.method_ == "ensemble"
    assert np.isfinite(fitted.predict_proba(rows)).all()


def test_where_columns_say_nothing_the_shares_of_the_classes_decide():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    true = (rng.random(600) < 0.2).astype(int)
    y = np.where(np.arange(600) < 60, true, -1)
    fitted = SemiSupervisedEnsemble().fit(X, y)
    weights = fitted.member_weights_
    assert weights["shares"] == max(weights.values())
    assert np.mean(fitted.predict(X[60:]) != true[60:]) < 0.25


def test_a_member_that_fails_is_left_out_and_a_mistake_is_not(wine, monkeypatch):
    X, y, _ = wine
    from iclda import FitError
    from iclda._estimators import ensemble

    class Failing(ensemble.AverageLDA):
        error = FitError("no spread")

        def fit(self, *args, **options):
            if self.view == "kernel":
                raise self.error
            return super().fit(*args, **options)

    monkeypatch.setattr(ensemble, "AverageLDA", Failing)
    assert set(SemiSupervisedEnsemble().fit(X, y).members_) == MEMBERS - {"kernel"}
    Failing.error = ValueError("shapes not aligned")
    with pytest.raises(ValueError, match="not aligned"):
        SemiSupervisedEnsemble().fit(X, y)


def test_a_member_may_see_other_rows_than_the_user_passed(wine, fitted):
    X, _, _ = wine
    member = fitted._model_.members["logistic"]
    seen = member.view(X)
    assert_allclose(member.probabilities(X), member.classifier.predict_proba(seen))
    turned = replace(member, class_factors=np.array([1.0, 0.0, 0.0]))
    assert_allclose(turned.probabilities(X)[:, 0], 1.0)
