"""Folds, and predictions of rows by fits without their labels."""

import warnings

import numpy as np
import pytest
from sklearn.utils import check_random_state

from iclda import FitError
from iclda._held_out import (
    NO_FOLD,
    attempt_fits,
    draw_labeled,
    merge_copies,
    predict_held_out,
    ranked_folds,
    shuffled_folds,
    splits_of,
    stratified_folds,
)

CODES = np.repeat([0, 1, 2], [7, 10, 14])


def test_every_row_with_a_fold_is_predicted_once_by_a_fit_without_it():
    folds = np.array([2, 0, NO_FOLD, 1, 0, 2, 2])
    trained_on = []

    def predict(train, test):
        trained_on.append(set(train))
        assert not set(train) & set(test)
        return np.column_stack([test, -test])

    predicted = predict_held_out(predict, folds)
    assert predicted.tolist() == [[i, -i] for i in (0, 1, 3, 4, 5, 6)]
    assert [len(each) for each in trained_on] == [5, 6, 4]
    assert all(2 in each for each in trained_on)


def test_a_fit_error_is_returned_and_any_other_error_raised():
    def refuse(train, test):
        raise FitError(f"{len(train)} rows are too few.")

    def mistake(train, test):
        raise ValueError("operands could not be broadcast together")

    folds = np.array([0, 0, 1])
    error = predict_held_out(refuse, folds)
    assert isinstance(error, FitError)
    assert str(error) == "1 rows are too few."
    with pytest.raises(ValueError, match="broadcast"):
        predict_held_out(mistake, folds)


def test_one_failure_does_not_end_the_other_fits():
    results = attempt_fits(divide, [(1, 1), (1, 0), (4, 2)], caught=ZeroDivisionError)
    assert results[0] == 1
    assert isinstance(results[1], ZeroDivisionError)
    assert results[2] == 2


def divide(a, b):
    return a / b


def test_processes_give_the_same_results_in_the_same_order():
    cases = [(n, n % 3) for n in range(12)]
    alone = attempt_fits(divide, cases, caught=ZeroDivisionError)
    shared = attempt_fits(divide, cases, caught=ZeroDivisionError, n_jobs=2)
    assert list(map(repr, shared)) == list(map(repr, alone))


def test_warnings_of_held_out_fits_are_not_shown():
    def warn(train, test):
        warnings.warn("This fit had fewer labels than the final one.", stacklevel=1)
        return test

    assert predict_held_out(warn, np.array([0, 1])).tolist() == [0, 1]


@pytest.mark.parametrize("n_folds", [2, 3, 7])
def test_stratified_folds_differ_by_one_row_in_all_and_in_every_class(n_folds):
    folds = stratified_folds(CODES, n_folds, check_random_state(0))
    sizes = np.bincount(folds, minlength=n_folds)
    assert np.ptp(sizes) <= 1
    for k in range(3):
        is_own = k == CODES
        sizes = np.bincount(folds[is_own], minlength=n_folds)
        assert np.ptp(sizes) <= 1


def test_shuffled_folds_differ_by_one_row():
    folds = shuffled_folds(13, 5, np.random.default_rng(0))
    assert sorted(np.bincount(folds)) == [2, 2, 3, 3, 3]


def test_ranked_folds_do_not_depend_on_the_order_of_the_rows():
    keys = np.random.default_rng(0).integers(0, 8, len(CODES)).astype(float)
    folds = ranked_folds(CODES, keys, 4)
    order = np.random.default_rng(1).permutation(len(CODES))
    assert np.array_equal(ranked_folds(CODES[order], keys[order], 4), folds[order])


def test_ranked_rows_with_equal_keys_are_in_one_fold_and_a_class_with_one_key_in_none():
    codes = np.array([0, 0, 0, 0, 1, 1, 2])
    keys = np.array([3.0, 1.0, 3.0, 2.0, 5.0, 5.0, 4.0])
    folds = ranked_folds(codes, keys, 4)
    assert folds.tolist() == [2, 0, 2, 1, NO_FOLD, NO_FOLD, NO_FOLD]
    assert len(splits_of(folds)) == 3


def test_a_sample_of_labeled_rows_has_a_row_of_every_class():
    codes = np.repeat([0, 1, 2], [500, 1, 499])
    kept = draw_labeled(codes, np.arange(1_000), 10, seed=0)
    assert len(set(kept)) == 10
    assert set(codes[kept]) == {0, 1, 2}


def test_copies_are_merged_with_their_weights():
    rows = np.random.default_rng(0).standard_normal((6, 8))
    rows[4] = rows[1]
    codes = np.array([0, 1, 0, 1, 1, 0])
    kept, kept_codes, weights, positions = merge_copies(
        rows, codes, np.arange(1.0, 7.0)
    )
    assert np.array_equal(kept, rows[[0, 1, 2, 3, 5]])
    assert kept_codes.tolist() == [0, 1, 0, 1, 0]
    assert weights.tolist() == [1.0, 7.0, 3.0, 4.0, 6.0]
    assert positions.tolist() == [0, 1, 2, 3, 1, 4]
