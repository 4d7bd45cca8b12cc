import pytest

from iclda import ImplicitlyConstrainedLDA
from problems import best_value_known, small_sample


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Each of the classes .* has one labeled row:UserWarning")
@pytest.mark.filterwarnings("ignore:The unlabeled rows seem to come from:UserWarning")
@pytest.mark.parametrize("number", range(200))
def test_no_labeling_hard_or_soft_beats_the_fit(number):
    sample = small_sample(number)
    fit = sample.fit(ImplicitlyConstrainedLDA())
    assert fit.converged_
    assert fit.gap_ <= fit.tol
    assert best_value_known(sample, n_starts=50) <= fit.objective_ + 1e-7
