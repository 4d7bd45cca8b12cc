import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from iclda._core.logistic import fit_logistic
from iclda._core.rows import Memory
from iclda._rows.places import place_of

N_ROWS = 60
TIGHT_TOL = 1e-9
every_number_of_classes = pytest.mark.parametrize("n_classes", [2, 3, 7])


def labeled_rows(n_classes):
    """Return rows, codes and weights of classes that overlap."""
    rng = np.random.default_rng(n_classes)
    codes = np.arange(N_ROWS) % n_classes
    means = rng.standard_normal((n_classes, 4))
    rows = means[codes] + rng.standard_normal((N_ROWS, 4))
    return rows, codes, rng.uniform(0.2, 3.0, N_ROWS)


def fit(rows, codes, weights, place=None, tol=TIGHT_TOL, max_rounds=1_000):
    """Return coefficients (d, K) and intercepts (K,) in memory."""
    place = Memory() if place is None else place
    n_classes = codes.max() + 1
    found = fit_logistic(
        place.put(rows),
        codes,
        weights,
        n_classes,
        place,
        tol=tol,
        max_rounds=max_rounds,
    )
    return [place.fetch(each) for each in found]


def mean_loss(rows, codes, weights, coef, intercept):
    """Return the loss by its formula, with the penalty of scikit-learn."""
    scores = rows @ coef + intercept
    losses = logsumexp(scores, axis=1) - scores[np.arange(len(codes)), codes]
    if len(intercept) == 2:
        # scikit-learn has one vector for two classes.
        squares = ((coef[:, 1] - coef[:, 0]) ** 2).sum()
    else:
        squares = (coef**2).sum()
    return (weights @ losses + squares / 2) / weights.sum()


def relative_to_first(coef, intercept):
    return coef - coef[:, :1], intercept - intercept[:1]


@every_number_of_classes
def test_it_is_the_logistic_regression_of_scikit_learn(n_classes):
    rows, codes, weights = labeled_rows(n_classes)
    theirs = LogisticRegression(solver="newton-cholesky", tol=1e-10)
    theirs.fit(rows, codes, sample_weight=weights)
    expected = theirs.decision_function(rows)
    coef, intercept = relative_to_first(*fit(rows, codes, weights))
    scores = rows @ coef + intercept
    if n_classes == 2:
        assert_allclose(scores[:, 1], expected, rtol=1e-6, atol=1e-6)
    else:
        assert_allclose(scores, expected - expected[:, :1], rtol=1e-6, atol=1e-6)


@every_number_of_classes
@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_gradients_of_classes_are_short_relative_to_the_rows(n_classes, tol):
    rows, codes, weights = labeled_rows(n_classes)
    found = np.vstack(fit(rows, codes, weights, tol=tol))
    step = 1e-5
    slopes = []
    for index in np.ndindex(found.shape):
        losses = []
        for sign in (1, -1):
            moved = found.copy()
            moved[index] += sign * step
            losses.append(mean_loss(rows, codes, weights, moved[:-1], moved[-1]))
        slopes.append((losses[0] - losses[1]) / (2 * step))
    # The intercept has one more number in every row, which is 1.
    squared_lengths = (rows**2).sum(axis=1) + 1
    mean_length = np.sqrt(np.average(squared_lengths, weights=weights))
    length_for_a_class = np.linalg.norm(slopes) / np.sqrt(n_classes)
    assert length_for_a_class <= tol * mean_length + 1e-8


@every_number_of_classes
@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
def test_rotated_rows_get_the_same_fit_wherever_it_stops(n_classes, tol):
    few_columns, codes, weights = labeled_rows(n_classes)
    # Four of forty columns tell the classes apart; rotated, all of them do.
    rows = np.hstack([few_columns, np.zeros((N_ROWS, 36))])
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    coef, intercept = fit(rows, codes, weights, tol=tol)
    rotated_coef, rotated_intercept = fit(rows @ rotation, codes, weights, tol=tol)
    assert_allclose(rotation @ rotated_coef, coef, rtol=1e-9, atol=1e-9)
    assert_allclose(rotated_intercept, intercept, rtol=1e-9, atol=1e-9)


def test_more_rounds_never_raise_the_loss():
    sample = labeled_rows(3)
    fits = [fit(*sample, max_rounds=n_rounds) for n_rounds in range(12)]
    losses = [mean_loss(*sample, *found) for found in fits]
    assert losses[0] == pytest.approx(np.log(3))
    assert (np.diff(losses) <= 0).all()
    assert losses[-1] < losses[0]


def test_weights_count_rows():
    rows, codes, _ = labeled_rows(3)
    counts = np.arange(N_ROWS) % 4
    repeated = fit(
        np.repeat(rows, counts, axis=0), np.repeat(codes, counts), np.ones(counts.sum())
    )
    weighted = fit(rows, codes, counts.astype(float))
    for found, expected in zip(weighted, repeated, strict=True):
        assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@every_number_of_classes
def test_without_a_tolerance_it_ends_where_rounding_hides_the_rest(n_classes):
    sample = labeled_rows(n_classes)
    found = fit(*sample, tol=0.0)
    for each, expected in zip(found, fit(*sample), strict=True):
        assert_allclose(each, expected, rtol=1e-6, atol=1e-6)


def test_classes_without_a_boundary_get_equal_scores():
    rows = np.ones((6, 2))
    codes = np.array([0, 1, 2, 0, 1, 2])
    coef, intercept = fit(rows, codes, np.ones(6))
    assert_allclose(coef, 0, atol=TIGHT_TOL)
    assert_allclose(intercept, intercept[0], atol=TIGHT_TOL)


@every_number_of_classes
@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_every_array_library_finds_the_same_fit(n_classes, library):
    xp = pytest.importorskip(library)
    options = {"device": xp.Device("device1")} if library == "array_api_strict" else {}
    place = place_of(xp.asarray([0.0], **options))
    sample = labeled_rows(n_classes)
    expected = fit(*sample)
    for found, in_memory in zip(fit(*sample, place), expected, strict=True):
        assert_allclose(found, in_memory, rtol=1e-6, atol=1e-7)
