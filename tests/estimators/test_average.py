import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from iclda import AverageLDA, SupervisedLDA
from iclda._estimators.average import AVERAGED
from iclda.methods import find_method
from problems import draw_sample


@pytest.mark.parametrize("shrinkage", [None, 0.2, "auto"])
def test_its_class_weights_are_the_mean_of_the_four(shrinkage):
    sample = draw_sample(0, n_classes=3)
    fitted = sample.fit(AverageLDA(shrinkage=shrinkage))
    members = [sample.fit(find_method(name).classifier(shrinkage=shrinkage)) for name in AVERAGED]
    mean = np.mean([member.class_weights_ for member in members], axis=0)
    assert_allclose(fitted.class_weights_, mean, rtol=1e-10)
    assert fitted.n_passes_ == sum(getattr(member, "n_passes_", 0) for member in members)


def test_a_warning_of_several_fits_comes_once():
    sample = draw_sample(2)
    rows, labels = np.column_stack([sample.rows, np.ones(len(sample.rows))]), sample.labels
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        AverageLDA().fit(rows, labels)
    assert [str(each.message)[:10] for each in caught] == ["Rows span "]
    assert caught[0].filename == __file__


def test_one_fit_that_does_not_converge_is_told(monkeypatch):
    def in_one_step(name):
        method = find_method(name)
        return replace(method, options=(("max_iter", 1),)) if name == "em" else method

    sample = draw_sample(3)
    assert sample.fit(AverageLDA()).converged_
    monkeypatch.setattr("iclda._estimators.average.find_method", in_one_step)
    with pytest.warns(ConvergenceWarning, match="ExpectationMaximizationLDA"):
        fitted = sample.fit(AverageLDA())
    assert not fitted.converged_


def test_without_unlabeled_rows_it_is_supervised_lda():
    sample = draw_sample(4)
    X, y = sample.X, sample.y
    with pytest.warns(UserWarning, match="got no unlabeled rows"):
        fitted = AverageLDA().fit(X, y)
    assert_array_equal(fitted.coef_, SupervisedLDA().fit(X, y).coef_)
    assert fitted.converged_
    assert fitted.n_passes_ == 0


def test_given_priors_are_those_that_predict():
    sample = draw_sample(1)
    assert_allclose(sample.fit(AverageLDA(priors=[0.2, 0.8])).priors_, [0.2, 0.8])
