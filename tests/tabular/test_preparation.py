import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from iclda import ImplicitlyConstrainedLDA, SelfLearningLDA, SupervisedLDA
from iclda.tabular import pipeline, preprocessing


def customers(n=240):
    """A table as people have it: numbers, text, booleans and gaps in all of them."""
    rng = np.random.default_rng(5)
    age, income = rng.normal(50, 10, n), rng.lognormal(8, 1, n)
    frame = pd.DataFrame(
        {
            "city": rng.choice(["Delft", "Leiden", "Gouda"], n),
            "age": np.where(rng.random(n) < 0.2, np.nan, age),
            "member": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "income": income,
        }
    )
    frame.loc[rng.random(n) < 0.02, "income"] = np.nan
    frame.loc[rng.random(n) < 0.05, "city"] = None
    frame.loc[rng.random(n) < 0.05, "member"] = pd.NA
    classes = np.where(age / 10 + np.log(income) + rng.normal(size=n) > 13, "stays", "leaves")
    return frame, classes.astype(object)


def test_columns_made_are_called_after_those_of_the_table():
    frame, _ = customers()
    encoded = preprocessing(frame).fit_transform(frame)
    assert encoded.columns[:4].tolist() == ["age", "member", "income", "age is empty"]
    assert {name.split(" ")[0] for name in encoded.columns[4:]} == {"city"}
    assert not encoded.isna().any().any()


def test_columns_that_are_empty_together_are_flagged_once():
    gap = np.arange(100) % 5 == 0
    frame = pd.DataFrame({name: np.where(gap, np.nan, np.arange(100.0)) for name in "pq"})
    frame["r"] = np.where(np.arange(100) < 3, np.nan, np.arange(100.0))
    encoded = preprocessing(frame).fit_transform(frame)
    assert encoded.columns.tolist() == ["p", "q", "r", "p is empty"]


def test_frames_with_other_order_and_more_columns_give_the_same_numbers():
    frame, _ = customers()
    encoder = preprocessing(frame).fit(frame)
    other = frame[frame.columns[::-1]].assign(more=1.0)
    pd.testing.assert_frame_equal(encoder.transform(other), encoder.transform(frame))


def test_a_pipeline_takes_labels_with_none_and_has_text_classes():
    frame, classes = customers()
    labels = np.where(np.arange(len(frame)) < 60, classes, None)
    model = pipeline(preprocessing(frame), ImplicitlyConstrainedLDA()).fit(frame, labels)
    assert model.classes_.tolist() == ["leaves", "stays"]
    assert model.score(frame, classes) > 0.7
    assert model.score(frame, labels) == model.score(frame[:60], classes[:60])


def test_every_fold_can_be_fitted_and_scored():
    frame, classes = customers()
    labels = np.where(np.arange(len(frame)) % 3 == 0, classes, None)
    template = pipeline(preprocessing(frame), SelfLearningLDA())
    for fold in range(4):
        is_test = np.arange(len(frame)) % 4 == fold
        model = clone(template).fit(frame[~is_test], labels[~is_test])
        is_scored = is_test & (labels != None)  # noqa: E711 - element by element
        right = model.predict(frame[is_scored]) == labels[is_scored]
        assert model.score(frame[is_test], labels[is_test]) == right.mean()


def test_what_is_learned_of_the_columns_comes_from_the_rows_of_the_fold():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, np.nan], "c": ["p", "q", "p", "q"]})
    encoder = preprocessing(frame).fit(frame[:3])
    assert encoder.transform(frame[3:])["x"].tolist() == [2.0]


def test_gaps_are_flagged_by_what_the_rows_of_the_fold_show():
    frame = pd.DataFrame({"x": np.where(np.arange(100) < 50, np.nan, np.arange(100.0))})
    assert preprocessing(frame).fit(frame[::2]).get_feature_names_out().tolist() == [
        "x",
        "x is empty",
    ]
    assert preprocessing(frame).fit(frame[50:]).get_feature_names_out().tolist() == ["x"]


def test_scaling_changes_nothing_without_shrinkage():
    frame, classes = customers()
    labels = np.where(np.arange(len(frame)) < 60, classes, None)
    plain, scaled = (
        pipeline(preprocessing(frame), SupervisedLDA(), scale=scale).fit(frame, labels)
        for scale in (False, True)
    )
    assert_allclose(plain.predict_proba(frame), scaled.predict_proba(frame), atol=1e-9)


def test_shrinkage_does_not_depend_on_units():
    frame, classes = customers()
    labels = np.where(np.arange(len(frame)) < 60, classes, None)
    other = frame.assign(income=frame["income"] * 1e6)
    model = pipeline(preprocessing(frame), ImplicitlyConstrainedLDA(shrinkage=0.2))
    assert_allclose(
        clone(model).fit(frame, labels).predict_proba(frame),
        clone(model).fit(other, labels).predict_proba(other),
        atol=1e-6,
    )


@pytest.mark.parametrize("column", ["is_big", "size"])
def test_a_column_that_agrees_with_the_labels_is_named_as_in_the_file(column):
    rng = np.random.default_rng(0)
    is_big = rng.random(80) < 0.5
    texts = np.where(is_big, "big", "small").astype(object)
    frame = pd.DataFrame(
        {"x": rng.normal(size=80), column: is_big if column == "is_big" else texts}
    )
    labels = np.where(np.arange(80) < 20, texts, None)
    with pytest.warns(ConvergenceWarning, match="shrinkage") as caught:
        pipeline(preprocessing(frame), ImplicitlyConstrainedLDA()).fit(frame, labels)
    named = "column 'is_big'" if column == "is_big" else r"column 'size = "
    assert named in str(caught[0].message)


def test_gaps_are_refused_before_any_fit_if_asked():
    frame, _ = customers()
    with pytest.raises(ValueError, match=r"Column 'city' is empty in 1. of 240 rows"):
        preprocessing(frame, missing="refuse")
    with pytest.raises(ValueError, match="missing must be one of impute, refuse, got 'drop'"):
        preprocessing(frame, missing="drop")


def test_a_table_without_differences_is_refused():
    frame = pd.DataFrame({"a": ["p"] * 30, "b": ["q"] * 29 + ["r"]})
    with pytest.raises(ValueError, match="No column tells rows apart: 'a', 'b' hold one value"):
        preprocessing(frame)


GAPPED = np.where(np.arange(60) % 3 == 0, np.nan, np.arange(60.0))
CLASHES = {
    "a category": ({"city": ["red", "blue"] * 30, "city = red": np.arange(60.0)}, "city = red"),
    "two categories": ({"a": ["b = c", "d"] * 30, "a = b": ["c", "e"] * 30}, "a = b = c"),
    "rare ones": ({"a": ["p", "q"] * 30, "a = any other": np.arange(60.0)}, "a = any other"),
    "gaps": ({"g": GAPPED, "g is empty": np.arange(60.0)}, "g is empty"),
    "gaps of text": ({"g is empty": GAPPED, "g": ["p", "q", None] * 20}, "g is empty"),
}


@pytest.mark.parametrize(("columns", "name"), CLASHES.values(), ids=CLASHES)
def test_columns_that_would_make_features_of_one_name_are_refused(columns, name):
    first, second = sorted(columns, key=lambda column: column != name)
    with pytest.raises(ValueError, match=f"both become a feature named '{name}': rename") as error:
        preprocessing(pd.DataFrame(columns))
    assert f"{first!r}" in str(error.value)
    assert f"{second!r}" in str(error.value)


def test_the_classifier_given_stays_as_it_is():
    frame, _ = customers()
    classifier = SupervisedLDA(shrinkage=0.1)
    steps = pipeline(preprocessing(frame), classifier).named_steps
    assert (classifier.unlabeled, steps["classify"].unlabeled) == (-1, None)
    assert "scale" in steps


def test_no_warning_for_a_plain_table():
    frame, classes = customers()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline(preprocessing(frame), SupervisedLDA()).fit(frame, classes)
