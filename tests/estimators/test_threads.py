import joblib
import pytest
from numpy.testing import assert_array_equal

from iclda import ImplicitlyConstrainedLDA
from tests.helpers.problems import SEMI_SUPERVISED, draw_sample

LARGE = draw_sample(
    6, n_classes=2, n_features=3, n_labeled=12, n_unlabeled=70_000, separation=1.5
)


@pytest.mark.parametrize("name", SEMI_SUPERVISED)
def test_30_the_fit_is_the_same_to_the_bit_for_any_number_of_threads(name):
    one, two = (LARGE.fit(SEMI_SUPERVISED[name](n_jobs=n)) for n in (1, 2))
    assert_array_equal(one.coef_, two.coef_)
    assert_array_equal(one.covariance_, two.covariance_)


def test_threads_can_be_set_from_outside():
    with joblib.parallel_config("threading", n_jobs=2):
        inside = LARGE.fit(ImplicitlyConstrainedLDA())
    assert_array_equal(inside.coef_, LARGE.fit(ImplicitlyConstrainedLDA()).coef_)
