"""The toy figure."""

import numpy as np
import pytest
from result_rows import toy_panels

pytest.importorskip("matplotlib", reason="figures need iclda[experiments]")

import iclda
from iclda.studies.paper import toy


def test_the_toy_figure_has_two_rows_of_three_with_boundaries_where_they_are():
    figure = toy.draw_toy(toy_panels())
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["Labels", "ICLDA", "EMLDA"] * 2
    (line,) = figure.axes[0].lines
    for x, y in zip(*line.get_data(), strict=True):
        assert x + 2 * y + 0.5 == pytest.approx(0, abs=1e-9)


def test_panels_show_the_labels_that_the_classifiers_give_to_unlabeled_rows():
    labels, imputed, soft = toy.toy_panels(0)[:3]
    assert labels.responsibilities is None
    assert (labels.y >= 0).sum() == toy.N_LABELED
    is_unlabeled = labels.y < 0
    fit = iclda.ImplicitlyConstrainedLDA().fit(imputed.X, imputed.y)
    found = imputed.responsibilities[is_unlabeled]
    np.testing.assert_allclose(found, fit.responsibilities_[:, 1], atol=1e-9)
    fit = iclda.ExpectationMaximizationLDA().fit(soft.X, soft.y)
    np.testing.assert_allclose(soft.responsibilities, fit.predict_proba(soft.X)[:, 1], atol=1e-9)
