import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from iclda import ImplicitlyConstrainedLDA
from problems import SEMI_SUPERVISED, draw_sample

LARGE = draw_sample(6, n_classes=2, n_features=3, n_labeled=12, n_unlabeled=70_000, separation=1.5)


@pytest.mark.parametrize("name", SEMI_SUPERVISED)
def test_30_the_fit_is_the_same_to_the_bit_for_any_number_of_threads(name):
    one, two = (LARGE.fit(SEMI_SUPERVISED[name](n_jobs=n)) for n in (1, 2))
    assert_array_equal(one.coef_, two.coef_)
    assert_array_equal(one.covariance_, two.covariance_)


def test_threads_can_be_set_from_outside():
    with joblib.parallel_config("threading", n_jobs=2):
        inside = LARGE.fit(ImplicitlyConstrainedLDA())
    assert_array_equal(inside.coef_, LARGE.fit(ImplicitlyConstrainedLDA()).coef_)


@pytest.mark.parametrize("name", SEMI_SUPERVISED)
def test_no_threads_at_all_are_refused_with_the_name_of_the_parameter(name):
    with pytest.raises(ValueError, match=r"'n_jobs' parameter of .* Got 0 instead"):
        LARGE.fit(SEMI_SUPERVISED[name](n_jobs=0))


@pytest.mark.parametrize("row", [0, 69_999])
def test_a_missing_value_among_many_rows_is_named(row):
    rows = LARGE.X_unlabeled.copy()
    rows[row, 1] = np.nan
    with pytest.raises(
        ValueError, match=rf"X_unlabeled contains NaN, first in row {row}, column 1"
    ):
        ImplicitlyConstrainedLDA().fit(LARGE.X, LARGE.y, X_unlabeled=rows)
