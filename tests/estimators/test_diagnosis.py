"""Warnings of fits that do not converge, and bounds of the gain on supervised LDA."""

import warnings

import numpy as np
import pytest

from iclda import (
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    NotConvergedWarning,
    PessimisticLDA,
    SelfLearningLDA,
    SupervisedLDA,
)
from iclda._core import problem
from iclda._estimators.diagnosis import GainBounds, safety_bounds
from iclda._rows import device
from iclda.methods import FITTED, FURTHER
from tests.helpers.problems import ALL, change_settings, draw_sample, semi_supervised
from tests.helpers.row_sources import SOURCES

CLASSES = {method.class_name: method for method in (*FITTED, *FURTHER)}
ITERATIVE = [
    each.load_class() for each in CLASSES.values() if "max_iter" in each.parameters
]
SAMPLE = draw_sample(11, separation=0.3, n_unlabeled=200)


def fit_with_warning(classifier, match):
    with pytest.warns(NotConvergedWarning, match=match) as caught:
        fitted = SAMPLE.fit(classifier)
    assert not fitted.converged_
    assert [each.message.outcome for each in caught] == [fitted.outcome_]
    return fitted


@pytest.mark.parametrize("classifier", ITERATIVE)
def test_too_few_rounds_are_the_outcome_and_a_larger_max_iter_the_advice(classifier):
    assert SAMPLE.fit(classifier()).outcome_ == "converged"
    fitted = fit_with_warning(classifier(max_iter=1), r"Raise max_iter \(now 1\)")
    assert fitted.outcome_ == "max_iterations"
    assert fitted.n_iter_ >= 1


@pytest.mark.parametrize("classifier", [ExpectationMaximizationLDA, SelfLearningLDA])
def test_many_classes_limit_the_rounds_and_max_iter_is_not_advised(
    classifier, monkeypatch
):
    monkeypatch.setattr(problem, "_MANY_CLASSES", 1)
    monkeypatch.setattr(problem, "_MAX_SHARES_OF_FIT", 1)
    monkeypatch.setattr(problem, "_MIN_ROUNDS_OF_MANY_CLASSES", 1)
    fitted = fit_with_warning(classifier(), "pass fewer unlabeled rows, or raise tol")
    assert fitted.outcome_ == "many_classes"


def test_long_steps_are_the_outcome_before_max_iter_and_fewer_rows_the_advice(
    monkeypatch,
):
    change_settings(monkeypatch, "WORK", min_numbers_per_iteration=1)
    change_settings(monkeypatch, "NEWTON", reads_per_block=1e9)
    fitted = fit_with_warning(
        ImplicitlyConstrainedLDA(n_starts=1), "Pass fewer unlabeled rows"
    )
    assert fitted.outcome_ == "not_found"
    assert fitted.n_iter_ < fitted.max_iter


def test_where_rounding_forbids_the_tolerance_a_larger_one_is_advised():
    fitted = fit_with_warning(
        PessimisticLDA(tol=0), r"max_iter does not help: raise tol \(now 0\)"
    )
    assert fitted.outcome_ == "stalled"


def bounds_of(fitted, sample, **weights):
    return fitted.gain_bounds(
        sample.X, sample.y, X_unlabeled=sample.X_unlabeled, **weights
    )


@semi_supervised
@pytest.mark.parametrize("shrinkage", [None, 0.2, "auto"])
def test_the_change_under_any_labels_lies_within_the_bounds(
    classifier, sample, shrinkage
):
    fitted = sample.fit(classifier(shrinkage=shrinkage))
    bounds = bounds_of(fitted, sample)
    # A classifier that chooses a shrinkage for every class has an array of them.
    used = fitted.shrinkage_ if np.ndim(fitted.shrinkage_) == 0 else "auto"
    supervised = SupervisedLDA(shrinkage=used).fit(sample.X, sample.y)

    rng = np.random.default_rng(0)
    n_unlabeled = len(sample.X_unlabeled)
    for _ in range(10):
        y = np.r_[sample.y, rng.integers(sample.n_classes, size=n_unlabeled)]
        own = fitted.log_likelihood(sample.rows, y).mean()
        change = own - supervised.log_likelihood(sample.rows, y).mean()
        assert bounds.worst - 1e-9 <= change <= bounds.best + 1e-9
    assert bounds.worst - 1e-9 <= bounds.expected <= bounds.best + 1e-9

    own_classes = fitted.predict(sample.X_unlabeled)
    is_other = own_classes != supervised.predict(sample.X_unlabeled)
    assert bounds.disagreement == pytest.approx(is_other.mean(), abs=1e-12)


@pytest.mark.parametrize("shrinkage", [None, 0.2, "auto"])
def test_the_supervised_fit_changes_nothing(sample, shrinkage):
    fitted = SupervisedLDA(shrinkage=shrinkage).fit(sample.rows, sample.labels)
    bounds = fitted.gain_bounds(sample.rows, sample.labels)
    assert bounds.is_safe
    np.testing.assert_allclose(list(vars(bounds).values())[:4], 0, atol=1e-12)
    assert "Both have the same likelihood." in bounds.sentence


def test_without_unlabeled_rows_nothing_changes(sample):
    with pytest.warns(UserWarning, match="no unlabeled rows"):
        fitted = ALL["self-learning"]().fit(sample.X, sample.y)
    bounds = fitted.gain_bounds(sample.X, sample.y)
    assert bounds.n_unlabeled == 0
    assert bounds.disagreement == 0
    assert bounds.worst == pytest.approx(0, abs=1e-12)
    assert bounds.sentence.startswith("No rows are unlabeled")


def test_other_classes_than_those_of_the_fit_are_refused(sample):
    fitted = sample.fit(ALL["moment"]())
    match = r"y holds the classes \['a', 'b'\], and the fit has \[0"
    with pytest.raises(ValueError, match=match):
        fitted.gain_bounds(sample.X, np.where(sample.y > 0, "a", "b"))


def test_too_few_labels_for_a_supervised_fit_are_an_error_that_names_shrinkage():
    sample = draw_sample(3, n_features=6, n_labeled=5, n_unlabeled=40)
    fitted = sample.fit(ALL["em"]())
    with pytest.raises(ValueError, match=r"span 3 of 6 dimensions.* shrinkage"):
        bounds_of(fitted, sample)


SAID = {
    "-0.25 to +1.5": (
        GainBounds(-0.25, 1.5, 0.75, 0.125, 990),
        "Which of the two has the higher likelihood depends on the labeling.",
    ),
    "0 to +1.5": (
        GainBounds(0.0, 1.5, 0.75, 0.125, 990),
        "Its likelihood is higher for every possible labeling. That does not "
        "guarantee fewer mistakes.",
    ),
    "-2 to -0.5": (
        GainBounds(-2.0, -0.5, -0.75, 0.125, 990),
        "Its likelihood is lower for every possible labeling. That does not "
        "guarantee more mistakes.",
    ),
}


@pytest.mark.parametrize("numbers", SAID)
def test_the_sentence_begins_with_mistakes_and_says_what_is_certain(numbers):
    bounds, words = SAID[numbers]
    beginning = (
        "It disagrees with supervised LDA on 12.5 % of the unlabeled rows, so their "
        "errors differ by at most that. "
    )
    assert bounds.sentence.startswith(beginning)
    assert words in bounds.sentence
    assert str(bounds) == bounds.sentence


def test_where_both_classify_alike_the_sentence_says_that():
    alike = GainBounds(-1, 1, 0, 0, 1)
    agrees = "It agrees with supervised LDA on all unlabeled rows. "
    assert alike.sentence.startswith(f"{agrees}Which")
    higher = GainBounds(1, 2, 1, 0, 9).sentence
    assert higher == f"{agrees}Its likelihood is higher for every possible labeling."
    same = GainBounds(0, 0, 0, 0, 9).sentence
    assert same == f"{agrees}Both have the same likelihood."


def test_safety_in_words_is_left_out_where_nothing_can_be_said(sample):
    fitted = sample.fit(ALL["pessimistic"]())
    bounds = safety_bounds(fitted, sample.rows, sample.labels)
    assert bounds == fitted.gain_bounds(sample.rows, sample.labels)
    supervised = SupervisedLDA().fit(sample.X, sample.y)
    assert safety_bounds(supervised, sample.rows, sample.labels) is None
    assert safety_bounds(object(), sample.rows, sample.labels) is None
    few = draw_sample(3, n_features=6, n_labeled=5, n_unlabeled=40)
    fitted = few.fit(ALL["em"]())
    assert safety_bounds(fitted, few.rows, few.labels) is None


def test_bounds_of_a_supervised_fit_that_shrinkage_alone_has_given_a_covariance():
    rows = np.random.default_rng(0).standard_normal((8, 2))
    y = [0, 1, *[-1] * 6]
    fitted = SupervisedLDA(shrinkage="auto").fit(rows, y)
    assert fitted.shrinkage_ == 0.99
    bounds = fitted.gain_bounds(rows, y)
    assert bounds.disagreement == pytest.approx(0, abs=1e-12)
    assert bounds.expected == pytest.approx(0, abs=1e-12)


@semi_supervised
def test_marked_rows_and_further_rows_give_the_same_bounds(classifier, sample):
    fitted = sample.fit(classifier())
    of_marked = list(vars(fitted.gain_bounds(sample.rows, sample.labels)).values())
    of_further = list(vars(bounds_of(fitted, sample)).values())
    np.testing.assert_allclose(of_marked, of_further, rtol=1e-9)


@pytest.mark.parametrize(("n_features", "is_advised"), [(2, False), (20, True)])
def test_with_fewer_labels_than_features_a_search_advises_what_helps(
    n_features, is_advised
):
    rng = np.random.default_rng(0)
    y = np.arange(12) % 2
    X = rng.standard_normal((12, n_features)) + y[:, None]
    unlabeled = rng.standard_normal((300, n_features)) + 0.5
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        ImplicitlyConstrainedLDA(max_iter=1, n_starts=2, tol=1e-12).fit(
            X, y, X_unlabeled=unlabeled
        )
    messages = [
        str(each.message) for each in warned if each.category is NotConvergedWarning
    ]
    assert messages
    advised = [text for text in messages if "PessimisticLDA or AverageLDA" in text]
    assert bool(advised) == is_advised
    assert all("proportions='auto'" in text for text in advised)


def _in_memory(X, folder):
    return X


def _on_a_device(X, folder):
    torch = pytest.importorskip("torch")
    return torch.asarray(X)


FEW_LABELS = draw_sample(
    17, n_classes=4, n_features=60, n_labeled=12, n_unlabeled=10_000, separation=1.0
)


@pytest.mark.filterwarnings("ignore:.*has degenerated")
@pytest.mark.parametrize(
    "make",
    [_in_memory, SOURCES["npy"], SOURCES["dask array"], _on_a_device],
    ids=["memory", "file", "dask", "torch"],
)
def test_fewer_labels_than_features_end_a_search_early_wherever_rows_are(
    make, tmp_path, monkeypatch
):
    change_settings(
        monkeypatch,
        "WORK",
        min_numbers_per_iteration=1.0,
        share_of_numbers_per_iteration=0.1,
    )
    monkeypatch.setattr(device.ArrayRows, "_is_on_cpu", False)
    advice = "pass proportions='auto', or use PessimisticLDA or AverageLDA"
    fitted = {}
    for kind, max_rows in (("held", 10_000), ("read", 2000)):
        change_settings(monkeypatch, "HOLDING", max_rows=max_rows)
        source = make(FEW_LABELS.X_unlabeled, tmp_path)
        with pytest.warns(NotConvergedWarning, match=advice):
            fitted[kind] = ImplicitlyConstrainedLDA().fit(
                FEW_LABELS.X, FEW_LABELS.y, X_unlabeled=source
            )
        assert fitted[kind].outcome_ == "not_found"
    # The moments, the labels with which passes begin, their certificate, the labels of
    # the supervised fit and their certificate.
    assert fitted["read"].n_passes_ <= 5
    # The work on a sample is not that of all rows, of which there are five times as
    # many.
    assert fitted["read"].n_iter_ <= 5 * fitted["held"].n_iter_


@pytest.mark.parametrize("difference", [1e-7, 0.0])
def test_of_nearly_equal_columns_the_fit_says_what_it_drops_and_why(difference):
    sample = draw_sample(5, n_features=3)
    noise = np.random.default_rng(0).normal(size=(2, len(sample.X_unlabeled)))
    X, X_unlabeled = (
        np.column_stack([rows, rows[:, 0] + difference * noise[k, : len(rows)]])
        for k, rows in enumerate((sample.X, sample.X_unlabeled))
    )
    message = (
        r"^Rows span 3 of 4 dimensions: along 1 of 4 directions, rows differ by less "
        r"than a millionth of the widest spread \(a column nearly repeats others, or "
        r"rows are too few\)\. The fit uses those dimensions and drops the rest\.$"
    )
    with pytest.warns(UserWarning, match=message):
        clf = ExpectationMaximizationLDA().fit(X, sample.y, X_unlabeled=X_unlabeled)
    assert clf.rank_ == 3
    # What varies by more than that counts.
    X[:, 3] += 1e-3 * noise[0, : len(X)]
    X_unlabeled[:, 3] += 1e-3 * noise[1]
    assert (
        ExpectationMaximizationLDA().fit(X, sample.y, X_unlabeled=X_unlabeled).rank_
        == 4
    )
