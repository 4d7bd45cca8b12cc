import warnings

import numpy as np
import pytest

from iclda import (
    AverageLDA,
    DegenerateFitWarning,
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    ParameterError,
    PessimisticLDA,
    SelfTrainingLDA,
)
from tests.helpers.changes import assert_same_fit
from tests.helpers.problems import draw_sample

SAMPLE = draw_sample(41, n_labeled=16, n_unlabeled=60, separation=1.0)
CLASSIFIERS = [ImplicitlyConstrainedLDA, PessimisticLDA, ExpectationMaximizationLDA]
each_classifier = pytest.mark.parametrize("classifier", CLASSIFIERS)


def unlabeled_shares(fitted, sample, weights=None):
    """Shares of the unlabeled rows, from the class weights of all."""
    weights = np.ones(len(sample.rows)) if weights is None else weights
    labeled = weights[: len(sample.X)]
    total = weights.sum()
    counts = np.bincount(sample.y, weights=labeled)
    return (fitted.class_weights_ * total - counts) / (total - labeled.sum())


@each_classifier
@pytest.mark.parametrize(
    ("given", "first"),
    [
        ("labeled", None),
        ("equal", 0.5),
        ([0.3, 0.7], 0.3),
        ({1: 0.6, 0: 0.4}, 0.4),
        ([(0.3, 0.3), (0, 1)], 0.3),
    ],
)
def test_unlabeled_rows_have_the_given_proportions(classifier, given, first):
    fitted = SAMPLE.fit(classifier(proportions=given))
    first = np.mean(SAMPLE.y == 0) if first is None else first
    assert unlabeled_shares(fitted, SAMPLE)[0] == pytest.approx(first, abs=1e-8)
    assert fitted.converged_


@pytest.mark.parametrize("classifier", [*CLASSIFIERS, SelfTrainingLDA])
def test_learned_proportions_are_those_that_the_average_predicts(classifier):
    average = SAMPLE.fit(AverageLDA(shrinkage=0.2, view=None))
    shares = (np.bincount(average.predict(SAMPLE.X_unlabeled), minlength=2) + 0.5) / 61
    learned = SAMPLE.fit(classifier(shrinkage=0.2, proportions="auto"))
    # Which leaves rows out.
    if classifier is SelfTrainingLDA:
        given = SAMPLE.fit(classifier(shrinkage=0.2, proportions=shares))
        np.testing.assert_allclose(learned.coef_, given.coef_, rtol=1e-9)
    else:
        assert unlabeled_shares(learned, SAMPLE) == pytest.approx(shares, abs=1e-8)


def test_learned_proportions_of_the_average_are_its_own():
    fitted = SAMPLE.fit(AverageLDA(proportions="auto"))
    assert_same_fit(fitted, SAMPLE.fit(AverageLDA()), 1e-12)


def test_learned_proportions_keep_a_fit_of_few_labels_from_degenerating():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 60)) + 0.5 * y[:, None]
    y_train = np.where(np.arange(400) < 10, y, -1)
    fitted = ImplicitlyConstrainedLDA(shrinkage=0.5, proportions="auto").fit(X, y_train)
    assert fitted.score(X, y) > 0.85


@each_classifier
def test_an_interval_ends_at_the_end_that_is_nearer_to_the_free_fit(classifier):
    free = unlabeled_shares(SAMPLE.fit(classifier()), SAMPLE)[0]
    low = free + 0.05
    high = free + 0.1
    fitted = SAMPLE.fit(classifier(proportions={0: (low, high), 1: (0, 1)}))
    assert unlabeled_shares(fitted, SAMPLE)[0] == pytest.approx(low, abs=1e-4)
    fitted = SAMPLE.fit(classifier(proportions=[(0, 1), (1 - free + 0.02, 1)]))
    assert unlabeled_shares(fitted, SAMPLE)[0] == pytest.approx(free - 0.02, abs=1e-4)


@each_classifier
def test_proportions_count_weights(classifier):
    weights = 1.0 + np.arange(len(SAMPLE.rows)) % 3
    fitted = classifier(proportions=[0.3, 0.7]).fit(SAMPLE.rows, SAMPLE.labels, weights)
    assert unlabeled_shares(fitted, SAMPLE, weights) == pytest.approx(
        [0.3, 0.7], abs=1e-8
    )


def test_labeled_proportions_count_the_weights_of_labels():
    weights = np.where(SAMPLE.labels == 0, 3.0, 1.0)
    fitted = ImplicitlyConstrainedLDA(proportions="labeled")
    fitted.fit(SAMPLE.rows, SAMPLE.labels, weights)
    counts = np.bincount(SAMPLE.y) * [3, 1]
    expected = counts / counts.sum()
    assert unlabeled_shares(fitted, SAMPLE, weights) == pytest.approx(
        expected, abs=1e-8
    )


def few_labels(n_labeled=10):
    """More features than labels: a free fit gives nearly all rows to one class."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.standard_normal((400, 60)) + 0.35 * y[:, None]
    return X, y, np.where(np.arange(400) < n_labeled, y, -1)


def test_proportions_keep_a_fit_of_few_labels_from_giving_all_rows_to_one_class():
    X, y, labels = few_labels()
    with pytest.warns(
        DegenerateFitWarning, match=r"5 of the 10 labeled .*proportions='auto'"
    ):
        free = ImplicitlyConstrainedLDA(shrinkage=0.5).fit(X, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held = ImplicitlyConstrainedLDA(shrinkage=0.5, proportions="labeled").fit(
            X, labels
        )
    assert held.class_weights_ == pytest.approx([0.5, 0.5], abs=1e-8)
    assert np.ptp(free.class_weights_) > 0.5
    assert held.score(X, y) > free.score(X, y)


def test_a_warning_of_a_degenerate_fit_names_class_and_share():
    X, _, labels = few_labels()
    with pytest.warns(DegenerateFitWarning) as caught:
        fitted = ImplicitlyConstrainedLDA(shrinkage=0.5).fit(X, labels)
    (warning,) = [
        one.message for one in caught if isinstance(one.message, DegenerateFitWarning)
    ]
    rare = int(np.argmin(fitted.class_weights_))
    assert warning.label == rare
    assert warning.share == pytest.approx(
        fitted.responsibilities_[:, rare].mean(), abs=1e-9
    )


@each_classifier
def test_a_class_that_is_rare_among_the_labels_too_is_no_degenerate_fit(classifier):
    rng = np.random.default_rng(4)
    y = (np.arange(1000) % 50 == 0).astype(int)
    X = rng.standard_normal((1000, 2)) + 4 * y[:, None]
    labels = np.where(np.arange(1000) < 200, y, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateFitWarning)
        fitted = classifier().fit(X, labels)
    assert fitted.class_weights_[1] < 0.1


@each_classifier
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0.5, 0.4], r"add up to 1, got \[0.5, 0.4\]: the least add up to 0.9"),
        (
            {np.int64(0): np.float64(0.5), 1: 0.4},
            r"got \{0: 0.5, 1: 0.4\}: the least add up",
        ),
        ([1.0, 0.0], r"must be positive and at most 1, got \[1.0, 0.0\]; only the"),
        ([1.2, 0.3], r"must be positive and at most 1, got \[1.2, 0.3\]; only the"),
        (
            [(0.4, 0.2), 0.7],
            r"must have the least of a pair first, got \[\(0.4, 0.2\), 0.7\]",
        ),
        ([(0.1, 0.2), (0.3, 0.4)], r"the least add up to 0.4, the largest to 0.6"),
        ([0.2, 0.3, 0.5], r"must hold 2 numbers.*classes \[0, 1\], got 3"),
        ({0: 1.0}, r"must name the classes .*\[0, 1\], got \[0\]"),
        ({0.4, 0.6}, r"must have an order, got the set \{"),
        ([np.nan, 0.6], r"positive.*got \[nan, 0.6\]"),
        (["a", "b"], r"must be a number, or a pair.*got \['a', 'b'\]"),
    ],
)
def test_other_proportions_are_refused(classifier, given, message):
    with pytest.raises(ParameterError, match=f"proportions.*{message}") as caught:
        SAMPLE.fit(classifier(proportions=given))
    assert caught.value.parameter == "proportions"


@pytest.mark.parametrize(
    "given", [np.float32([0.3, 0.7]), [0.3, 0.6999999], [(0.3, 0.3), 0.7]]
)
def test_shares_need_not_be_exact(given):
    fitted = SAMPLE.fit(ImplicitlyConstrainedLDA(proportions=given))
    assert unlabeled_shares(fitted, SAMPLE) == pytest.approx([0.3, 0.7], abs=1e-6)


@pytest.mark.parametrize("classifier", [*CLASSIFIERS, SelfTrainingLDA])
def test_intervals_that_allow_everything_and_free_shares_are_the_free_fit(
    sample, classifier
):
    free = sample.fit(classifier())
    for given in ([(0, 1)] * sample.n_classes, "free"):
        assert np.array_equal(
            sample.fit(classifier(proportions=given)).coef_, free.coef_
        )


def test_imputed_labels_fill_the_quotas():
    fitted = SAMPLE.fit(ImplicitlyConstrainedLDA(proportions=[0.3, 0.7]))
    assert fitted.responsibilities_.mean(axis=0) == pytest.approx([0.3, 0.7], abs=1e-8)
