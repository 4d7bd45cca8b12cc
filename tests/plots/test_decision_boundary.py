"""Where the classes meet, in the plane of two features or of two discriminants."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

from iclda import ImplicitlyConstrainedLDA, SelfLearningLDA
from iclda.plots import DecisionBoundaryDisplay
from iclda.plots._decision_boundary import plane_of
from iclda.plots._look import CLASS_COLORS, mix, to_rgb

draw = DecisionBoundaryDisplay.from_estimator
COARSE = {"grid_resolution": 25}


def grid_points(display):
    return np.stack(np.meshgrid(*display.grid), axis=-1).reshape(-1, 2)


def line_points(display):
    """Points of all boundary lines."""
    return np.vstack(
        [path.vertices for c in display.boundaries_ for path in c.get_paths()]
    )


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_two_features_are_drawn_as_they_are(fitted, n_classes):
    f = fitted(n_classes, 2)
    display = draw(f.model, f.X, f.y, **COARSE)
    assert_array_equal(display.points, f.X)
    assert_array_equal(display.codes, f.y)
    assert display.log_probabilities.shape == (25, 25, n_classes)
    assert_allclose(
        np.exp(display.log_probabilities).reshape(-1, n_classes),
        f.model.predict_proba(grid_points(display)),
        atol=1e-12,
    )
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == (
        "Feature 0",
        "Feature 1",
    )
    assert not display.ax_.texts


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_two_classes_are_equally_probable_on_every_line(fitted, n_classes):
    f = fitted(n_classes, 2)
    display = draw(f.model, f.X, f.y)
    log_probabilities = np.sort(f.model.predict_log_proba(line_points(display)), axis=1)
    step = max(np.diff(axis).max() for axis in display.grid)
    steepest = np.abs(f.model.coef_).sum() * 2
    assert np.all(log_probabilities[:, -1] - log_probabilities[:, -2] < steepest * step)
    if n_classes == 2:
        assert_allclose(f.model.decision_function(line_points(display)), 0, atol=1e-6)


def test_more_features_are_drawn_along_the_discriminants(fitted):
    f = fitted(3, 5)
    display = draw(f.model, f.X, f.y, **COARSE)
    assert_array_equal(display.points, f.model.transform(f.X)[:, :2])
    assert display.names == ("First discriminant", "Second discriminant")
    assert not display.ax_.texts
    # The probabilities of three classes depend on two discriminants only.
    plane = plane_of(f.model, f.X)
    assert_allclose(
        np.exp(plane.log_probabilities(display.points)),
        f.model.predict_proba(f.X),
        atol=1e-10,
    )
    with pytest.raises(ValueError, match=r"two features.* has 1: draw a histogram"):
        draw(fitted(2, 1).model, fitted(2, 1).X)


@pytest.mark.parametrize("table", [pl.DataFrame, pa.table], ids=["polars", "pyarrow"])
def test_any_table_is_drawn_with_its_names(fitted, table):
    f = fitted(2, 2)
    rows = table({"width": f.X[:, 0], "height": f.X[:, 1]})
    model = SelfLearningLDA().fit(rows, f.y)
    display = draw(model, rows, f.y, **COARSE)
    assert display.names == ("width", "height")
    assert_allclose(display.points, f.X)


def test_classifiers_of_scikit_learn_are_drawn_if_they_have_what_is_shown(fitted):
    lda = LinearDiscriminantAnalysis().fit(fitted(3, 5).X, fitted(3, 5).true)
    assert_allclose(
        draw(lda, fitted(3, 5).X, **COARSE).points, lda.transform(fitted(3, 5).X)
    )
    f = fitted(2, 2)
    with pytest.raises(
        TypeError, match=r"LinearSVC has no predict_proba.*CalibratedClassifierCV"
    ):
        draw(LinearSVC().fit(f.X, f.true), f.X)
    with pytest.raises(
        ValueError, match=r"LogisticRegression has no transform.*of two columns"
    ):
        draw(
            LogisticRegression().fit(fitted(2, 3).X, fitted(2, 3).true), fitted(2, 3).X
        )
    with pytest.raises(NotFittedError):
        draw(SelfLearningLDA(), f.X, f.y)


def test_text_and_gaps_before_a_pipeline_are_no_trouble_along_the_discriminants(fitted):
    f = fitted(2, 2)
    table = pd.DataFrame(f.X, columns=["a", "b"])
    table["kind"] = np.where(np.arange(len(f.X)) % 3, "x", "y")
    table.loc[3, "a"] = np.nan
    steps = make_column_transformer(
        (SimpleImputer(), ["a", "b"]), (OneHotEncoder(), ["kind"])
    )
    pipeline = make_pipeline(steps, SelfLearningLDA(shrinkage=0.1)).fit(table, f.y)
    assert np.isfinite(draw(pipeline, table, f.y, **COARSE).points).all()


def test_unlabeled_rows_have_the_colors_of_their_labels(fitted):
    f = fitted(2, 2)
    model = ImplicitlyConstrainedLDA(n_starts=2).fit(f.X, f.y)
    display = draw(model, f.X, f.y, **COARSE)
    assert_allclose(display.responsibilities, model.responsibilities_)
    assert_allclose(
        display.unlabeled_.get_facecolors()[:, :3], mix(model.responsibilities_)
    )
    # Classifiers that impute no labels show their probabilities.
    display = draw(f.model, f.X, f.y, **COARSE)
    expected = f.model.predict_proba(f.X[f.y == -1])
    assert_allclose(display.responsibilities, expected, atol=1e-12)
    display = draw(f.model, f.X, f.y, responsibilities=None, **COARSE)
    assert len(np.unique(display.unlabeled_.get_facecolors(), axis=0)) == 1
    with pytest.raises(ValueError, match="must be \"auto\" or None, got 'soft'"):
        draw(f.model, f.X, f.y, responsibilities="soft")


def test_classes_differ_in_marker_and_color_and_are_named(fitted):
    f = fitted(3, 2)
    names = np.array(["no", "maybe", "yes"])
    y = np.where(f.y == -1, None, names[f.y])
    model = SelfLearningLDA(unlabeled=None).fit(f.X, y)
    display = draw(model, f.X, y, **COARSE)
    assert list(display.labeled_) == ["maybe", "no", "yes"]
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["maybe", "no", "yes", "unlabeled"]
    shapes = {
        tuple(map(tuple, c.get_paths()[0].vertices)) for c in display.labeled_.values()
    }
    assert len(shapes) == 3
    colors = [tuple(c.get_facecolors()[0, :3]) for c in display.labeled_.values()]
    assert_allclose(colors, [to_rgb(color) for color in CLASS_COLORS[:3]])


def test_a_class_of_prior_zero_has_no_region(fitted):
    f = fitted(3, 2)
    model = SelfLearningLDA(priors=[0, 0.5, 0.5]).fit(f.X, f.y)
    display = draw(model, f.X, f.y, **COARSE)
    assert len(display.boundaries_) == 2
    one = SelfLearningLDA(priors=[0, 1]).fit(fitted(2, 2).X, fitted(2, 2).y)
    assert draw(one, fitted(2, 2).X, fitted(2, 2).y, **COARSE).boundaries_ == []


def test_settings_reach_what_they_are_for(fitted):
    f = fitted(2, 2)
    display = draw(f.model, f.X, f.y, cmap="gray", legend=False, **COARSE)
    assert display.surface_.get_cmap().name == "gray"
    assert display.ax_.get_legend() is None
    with pytest.raises(ValueError, match=r"grid_resolution must be.*got 2\.5"):
        draw(f.model, f.X, f.y, grid_resolution=2.5)


def test_two_classes_of_many_features_have_an_upright_line(fitted):
    f = fitted(2, 5)
    display = draw(f.model, f.X, **COARSE)
    # Without y all rows are unlabeled.
    assert display.labeled_ == {}
    assert_array_equal(display.points[:, 0], f.model.transform(f.X)[:, 0])
    assert display.names == ("Discriminant", "Largest remaining variation")
    assert np.ptp(line_points(display)[:, 0]) < 1e-9
    assert abs(np.corrcoef(display.points.T)[0, 1]) < 1e-9
    with pytest.raises(
        ValueError, match=r"y holds \[7\], and the classes are \[0, 1\]"
    ):
        draw(f.model, f.X, np.full(len(f.X), 7))


def test_other_discriminants_are_held_at_their_means(fitted):
    f = fitted(4, 5)
    display = draw(f.model, f.X, f.y, **COARSE)
    directions = f.model.transform(np.eye(5)) - f.model.transform(np.zeros((1, 5)))
    center = f.model.priors_ @ f.model.transform(f.model.means_)
    wanted = np.column_stack([grid_points(display), np.full(625, center[2])])
    rows = (wanted - f.model.transform(np.zeros((1, 5)))) @ np.linalg.pinv(directions)
    assert_allclose(f.model.transform(rows), wanted, atol=1e-9)
    assert [text.get_text() for text in display.ax_.texts] == [
        "other discriminants at their means"
    ]
    assert_allclose(
        np.exp(display.log_probabilities.reshape(-1, 4)),
        f.model.predict_proba(rows),
        atol=1e-9,
    )
