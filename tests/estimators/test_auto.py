"""The classifier that chooses a method, and says why and how often it will err."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from iclda import (
    AutoLDA,
    BrokenCellWarning,
    FitError,
    NothingLearnedWarning,
    NoUnlabeledRowsWarning,
    ParameterError,
    load_model,
    save_model,
)
from iclda._estimators.auto import Trial, cross_validate
from iclda._rows.views import Bounds, steps_of
from iclda.methods import FITTED, FROM_THE_DEFAULT, default_rank
from iclda.model_selection import SemiSupervisedKFold

# The methods of the family that a comparison chooses from.
FAMILY = [
    method.name
    for method in FITTED
    if method.name in FROM_THE_DEFAULT and method.name != "ensemble"
]


def masked(y, n_labeled, seed=0):
    """y with the labels of all but some random rows hidden."""
    kept = np.random.default_rng(seed).permutation(len(y))[:n_labeled]
    return np.where(np.isin(np.arange(len(y)), kept), y, -1)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def fitted(wine):
    X, y = wine
    return AutoLDA(methods=FAMILY).fit(X, masked(y, 30))


def test_it_predicts_as_the_classifier_that_it_chose(wine, fitted):
    X, _ = wine
    chosen = next(each for each in FITTED if each.name == fitted.method_)
    assert type(fitted.estimator_).__name__ == chosen.class_name
    assert np.array_equal(fitted.predict_proba(X), fitted.estimator_.predict_proba(X))
    assert np.array_equal(fitted.coef_, fitted.estimator_.coef_)
    assert np.array_equal(fitted.to_sklearn().predict(X), fitted.predict(X))


@pytest.mark.parametrize("methods", [None, ["average"]])
def test_rows_written_three_times_are_tested_once(wine, methods):
    X, y = wine
    labels = masked(y, 30)
    once = AutoLDA(methods=methods).fit(X, labels).error_estimate
    thrice = AutoLDA(methods=methods).fit(np.tile(X, (3, 1)), np.tile(labels, 3))
    assert thrice.n_tested_ == once.n_rows == 30
    assert thrice.error_interval_[1] > 0.6 * once.high


def test_no_class_sizes_are_free_with_fewer_labels_than_features(wine):
    X, y = wine
    few = AutoLDA(methods=["iclda", "em"]).fit(X, masked(y, 12))
    enough = AutoLDA(methods=["iclda", "em"]).fit(X, masked(y, 13))
    assert few.method_ == "em"
    assert set(few.losses_) == {"em"}
    assert set(enough.losses_) == {"em", "iclda"}
    assert AutoLDA(methods=["iclda"]).fit(X, masked(y, 12)).method_ == "iclda"


def test_proportions_are_those_of_the_methods_that_take_them(wine):
    X, y = wine
    labels = masked(y, 30)
    shares = {0: 0.2, 1: (0.3, 0.6), 2: (0.2, 0.5)}
    alone = AutoLDA(methods=["em"], proportions=shares).fit(X, labels)
    counts = np.bincount(labels[labels >= 0])
    unlabeled = (len(y) * alone.class_weights_ - counts) / (labels < 0).sum()
    assert unlabeled[0] == pytest.approx(0.2, abs=1e-6)
    assert alone.estimator_.proportions == shares
    every = AutoLDA(methods=FAMILY, proportions=shares).fit(X, labels)
    takers = {"average", "em", "iclda", "pessimistic", "self-training"}
    assert set(every.losses_) == takers
    named = AutoLDA(methods=["supervised", "em"], proportions="labeled").fit(X, labels)
    assert named.method_ == "em"


def test_labels_of_chosen_rows_compare_no_methods_and_estimate_no_error(wine):
    X, y = wine
    fitted = AutoLDA(methods=FAMILY, proportions="free").fit(X, masked(y, 30))
    assert fitted.method_ == "average"
    assert fitted.error_ is None
    assert fitted.losses_ == {}
    assert "so methods were not compared, and this is the default" in fitted.reason_
    assert "labeled shares" not in fitted.estimator_.member_weights_
    named = AutoLDA(proportions="free", methods=["moment"]).fit(X, masked(y, 30))
    assert named.method_ == "moment"


def test_proportions_that_no_method_takes_are_refused(wine):
    X, y = wine
    match = r"proportions is .*self-training.* only, and .* moment"
    with pytest.raises(ParameterError, match=match):
        AutoLDA(methods=["moment"], proportions="labeled").fit(X, masked(y, 30))


def test_the_reason_names_the_method_and_the_rows_behind_it(fitted):
    assert fitted.reason_.startswith("Chose ")
    assert "30 labels" in fitted.reason_
    assert fitted.reason_.count(".") == 1
    assert fitted.n_tested_ == 30


def test_every_method_was_compared_and_the_first_within_reach_taken(fitted):
    assert set(fitted.losses_) == {*FAMILY}
    own_loss = fitted.losses_[fitted.method_]
    own_rank = default_rank(fitted.method_)
    better = [name for name, loss in fitted.losses_.items() if loss < own_loss]
    assert all(default_rank(name) > own_rank for name in better)


def test_too_few_labels_have_no_estimate_and_the_default(wine):
    X, y = wine
    fitted = AutoLDA(methods=FAMILY).fit(X, masked(y, 6))
    assert fitted.method_ == "average"
    assert fitted.error_ is None
    assert fitted.error_interval_ is None
    assert fitted.losses_ == {}
    assert "6 labeled rows" in fitted.reason_
    assert "too few" in fitted.reason_


def test_a_class_with_one_label_trains_and_is_never_tested(wine):
    X, y = wine
    labels = masked(y, 30)
    labels[np.flatnonzero(labels == 2)[1:]] = -1
    fitted = AutoLDA().fit(X, labels)
    assert fitted.n_tested_ == (labels >= 0).sum() - 1
    assert fitted.classes_.tolist() == [0, 1, 2]


class Spy:
    """Keeps the rows that it is fitted to; all classes are equally probable."""

    def __init__(self, n_classes):
        self.classes_ = np.arange(n_classes)
        self.seen = []

    def fit(self, X, y, sample_weight):
        self.seen.append((X, y))
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


def test_unlabeled_rows_are_in_every_training_set():
    spy = Spy(2)
    codes = np.arange(20) % 2
    trial = Trial(np.zeros((20, 1)), codes, np.ones(20), np.zeros((7, 1)), np.ones(7))
    ((losses, is_wrong),) = cross_validate(trial, [spy], seed=0)
    assert losses.shape == is_wrong.shape == (20,)
    assert np.allclose(losses, 0.25)
    assert {(len(X), (y == -1).sum()) for X, y in spy.seen} == {(25, 7)}


def failing_with(error):
    def fail(*args, **options):
        raise error

    return fail


def test_a_method_that_cannot_be_fitted_to_these_rows_is_left_out(wine, monkeypatch):
    X, y = wine
    error = FitError("The labeled rows do not vary.")
    solver = "iclda._core.solvers.alternate.start_scores"
    monkeypatch.setattr(solver, failing_with(error))
    methods = ["self-learning", "supervised"]
    fitted = AutoLDA(methods=methods).fit(X, masked(y, 30))
    assert set(fitted.losses_) == {"supervised"}
    assert fitted.method_ == "supervised"


def test_a_mistake_in_a_solver_is_not_taken_for_a_method_that_does_not_fit(
    wine, monkeypatch
):
    X, y = wine
    error = ValueError("shapes (3,) and (4,) not aligned")
    solver = "iclda._core.solvers.alternate.start_scores"
    monkeypatch.setattr(solver, failing_with(error))
    with pytest.raises(ValueError, match="not aligned"):
        AutoLDA(methods=["self-learning", "supervised"]).fit(X, masked(y, 30))


def test_wide_tables_are_compared_too_without_a_covariance(wine):
    X, y = wine
    rng = np.random.default_rng(0)
    wide = np.hstack([X, rng.normal(size=(len(X), 500))])
    fitted = AutoLDA(methods=["average"]).fit(wide, masked(y, 30))
    assert set(fitted.losses_) == {"average"}
    assert fitted.error_ is not None
    assert "covariance_" not in vars(fitted)
    assert np.allclose(fitted._model_.variances, np.diag(fitted.covariance_))


def test_folds_are_those_of_a_fast_comparison(wine):
    X, y = wine
    labels = masked(y, 30)
    spy = Spy(3)
    is_labeled = labels >= 0
    n_folds = int(np.bincount(labels[is_labeled]).min())
    trial = Trial(
        X[is_labeled], y[is_labeled], np.ones(30), X[~is_labeled], np.ones(148)
    )
    cross_validate(trial, [spy], seed=0)
    folds = SemiSupervisedKFold(min(10, n_folds), n_repeats=3, random_state=0)
    expected = [X[train][labels[train] >= 0] for train, _ in folds.split(X, labels)]
    seen = [rows[codes >= 0] for rows, codes in spy.seen]
    assert all(np.array_equal(a, b) for a, b in zip(seen, expected, strict=True))


def test_a_sample_of_many_labeled_rows_leaves_no_class_out(monkeypatch):
    monkeypatch.setattr("iclda._estimators.auto._MAX_TRIAL_LABELED_ROWS", 40)
    y = np.zeros(500, dtype=int)
    y[7] = 1
    y[200:400] = 2
    y[400:] = -1
    noise = np.random.default_rng(0).standard_normal((500, 2))
    X = noise + 2 * np.maximum(y, 0)[:, None]
    fitted = AutoLDA(methods=["em", "average"]).fit(X, y)
    assert fitted.n_tested_ == 39
    assert fitted.error_ is not None


def test_a_table_gets_the_ensemble_and_features_of_a_network_the_average(wine):
    X, y = wine
    table = AutoLDA().fit(X, masked(y, 30))
    assert table.method_ == "ensemble"
    assert "the default on tables" in table.reason_
    assert table.n_tested_ == table.estimator_.n_tested_ == 30
    assert table.error_ == table.estimator_.error_
    assert table.losses_ == {"ensemble": table.estimator_.loss_}

    noise = np.random.default_rng(0).normal(size=(len(X), 64))
    features = np.repeat(X, 5, axis=1)[:, :64] + noise
    network = AutoLDA().fit(features, masked(y, 30))
    assert network.method_ == "average"
    assert "features of a network: the 64 columns are" in network.reason_

    # The same columns in units that differ by a factor of 10,000 are a table.
    units = 10.0 ** (np.arange(64) % 5)
    assert AutoLDA().fit(features * units, masked(y, 30)).method_ == "ensemble"
    # Columns of 0 and 1 are no measurements, however many they are.
    dummies = np.hstack([X, (noise > 0).astype(float)])
    assert AutoLDA().fit(dummies, masked(y, 30)).method_ == "ensemble"


def test_what_only_gaussian_classes_have_an_ensemble_has_not(wine, fitted):
    X, y = wine
    table = AutoLDA().fit(X, masked(y, 30))
    for name in ("transform", "score_samples", "gain_bounds", "to_onnx", "coef_"):
        assert not hasattr(table, name)
        assert hasattr(fitted, name)
    with pytest.raises(AttributeError, match="transform"):
        table.transform(X)


def test_parameters_of_linear_fits_choose_the_average_of_them(wine):
    X, y = wine
    for parameters in ({"shrinkage": 0.2}, {"view": "kernel"}, {"view": None}):
        assert AutoLDA(**parameters).fit(X, masked(y, 30)).method_ == "average"


def test_unknown_methods_are_refused(wine):
    X, y = wine
    with pytest.raises(ParameterError, match="at least one method, got \\[\\]"):
        AutoLDA(methods=[]).fit(X, masked(y, 30))
    with pytest.raises(ValueError, match=r"Unknown method 'lad'. There are: iclda"):
        AutoLDA(methods=["lad"]).fit(X, masked(y, 30))


def test_without_unlabeled_rows_it_is_supervised_and_warns(wine):
    X, y = wine
    with pytest.warns(NoUnlabeledRowsWarning, match="AutoLDA got no unlabeled rows"):
        fitted = AutoLDA(methods=FAMILY).fit(X, y)
    assert fitted.method_ == "supervised"
    assert fitted.error_interval_[1] < 0.1
    rows = np.random.default_rng(0).standard_normal((20, 64))
    with pytest.warns(NoUnlabeledRowsWarning, match="same shrinkage and view"):
        AutoLDA().fit(rows, np.arange(20) % 2)


def test_nan_among_unlabeled_rows_is_refused_whatever_is_chosen(wine):
    X, y = wine
    X = X.copy()
    labels = masked(y, 30)
    X[np.flatnonzero(labels < 0)[-1], 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        AutoLDA(methods=["supervised"]).fit(X, labels)


def test_models_keep_the_choice_but_no_rows(wine, fitted, tmp_path):
    X, _ = wine
    save_model(fitted, tmp_path / "auto.skops")
    again = load_model(tmp_path / "auto.skops")
    assert np.array_equal(again.predict(X), fitted.predict(X))
    assert again.reason_ == fitted.reason_
    assert again.error_ == fitted.error_
    assert again.error_interval_ == fitted.error_interval_
    assert getattr(again.estimator_, "_responsibilities_", None) is None


def test_labels_that_no_column_knows_are_a_warning_with_the_base_rate():
    # Both values of the column occur in both classes.
    X = np.tile([[-1.0], [1.0]], (20, 1))
    y = np.where(np.arange(40) < 24, np.repeat([0, 0, 1, 1], 10), -1)
    match = r"always predicting 0 is wrong 17 % of the time"
    with pytest.warns(NothingLearnedWarning, match=match) as caught:
        fitted = AutoLDA(methods=["supervised"]).fit(X, y)
    messages = [each.message for each in caught]
    (warning,) = [each for each in messages if isinstance(each, NothingLearnedWarning)]
    assert warning.majority == 0
    assert warning.base_rate == fitted.base_rate_
    assert fitted.base_rate_ == pytest.approx(4 / 24)
    assert fitted.error_ >= fitted.base_rate_


# Of the default, the method for tables and that for features of a network.
@pytest.fixture(scope="module", params=["table", "network"])
def rows_of_default(request, wine):
    X, y = wine
    if request.param == "network":
        mixing = np.random.default_rng(0).standard_normal((X.shape[1], 64))
        X = X @ mixing
    return X, masked(y, 30)


@pytest.mark.parametrize("value", [1e9, 999.0, -999.0])
def test_a_broken_cell_counts_as_a_usual_number_of_its_column(rows_of_default, value):
    X, y = rows_of_default
    row = np.flatnonzero(y >= 0)[4]
    broken = X.copy()
    broken[row, 3] = value
    with pytest.warns(BrokenCellWarning) as caught:
        fitted = AutoLDA().fit(broken, y)
    [message] = [str(each.message) for each in caught]
    assert message.startswith(f"{value:.10g} in row {row} of X, column 3 lies far")

    [bounds] = [each for each in steps_of(fitted.view_) if isinstance(each, Bounds)]
    mended = bounds(broken)
    assert (mended != broken).sum() == 1
    expected = AutoLDA().fit(mended, y)
    assert fitted.method_ == expected.method_ == AutoLDA().fit(X, y).method_
    assert fitted.error_ == expected.error_
    # A new row with such a cell counts as the same row, too.
    assert_allclose(fitted.predict_proba(broken), expected.predict_proba(mended))


def test_bounds_touch_nothing_where_nothing_is_broken(rows_of_default, tmp_path):
    X, y = rows_of_default
    with warnings.catch_warnings():
        warnings.simplefilter("error", BrokenCellWarning)
        fitted = AutoLDA().fit(X, y)
    [bounds] = [each for each in steps_of(fitted.view_) if isinstance(each, Bounds)]
    assert not bounds.are_broken(X).any()

    path = tmp_path / "model.skops"
    save_model(fitted, path)
    far = X + 1e9 * np.eye(*X.shape)
    assert_allclose(load_model(path).predict_proba(far), fitted.predict_proba(far))


def test_a_named_view_takes_numbers_as_they_are(wine):
    X, y = wine
    broken = X.copy()
    broken[0, 0] = 1e9
    with warnings.catch_warnings():
        warnings.simplefilter("error", BrokenCellWarning)
        fitted = AutoLDA(methods=["supervised"], view=None).fit(broken, masked(y, 30))
    assert fitted.view_ is None


def test_many_broken_cells_are_counted_in_one_warning(wine):
    X, y = wine
    broken = X.copy()
    broken[:7, 5] = 1e9
    with pytest.warns(BrokenCellWarning, match="and 3 more numbers lie far") as caught:
        AutoLDA(methods=["average"]).fit(broken, masked(y, 30))
    assert len(caught) == 1
