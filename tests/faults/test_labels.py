"""What y may be, what marks a row as unlabeled, and what the errors say."""

import re
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from iclda import MomentConstrainedLDA, PessimisticLDA, SelfLearningLDA, SupervisedLDA
from tests.helpers.changes import assert_same_fit
from tests.helpers.problems import by_labeling, every_classifier, semi_supervised

# Six rows of class 0, six of class 1, eighteen unlabeled ones.
CODES = np.repeat([0, -1, 1, -1], [6, 4, 6, 14])
ROWS = (
    np.random.default_rng(0).standard_normal((30, 2))
    + 2.0 * (np.arange(30) >= 10)[:, None]
)


def labels(zero, one, marker):
    return [(zero, one, marker)[code] for code in CODES]


@pytest.fixture
def expected():
    """Predictions of the problem when its classes are 0 and 1."""
    return SelfLearningLDA().fit(ROWS, CODES).predict(ROWS)


# 1. Every row unlabeled.


@every_classifier
@pytest.mark.parametrize("marker", [-1, np.int64(-1), "?", None, np.nan], ids=repr)
def test_1_without_any_label_the_error_counts_the_rows_and_shows_the_marker(
    classifier, marker
):
    shown = repr(marker.item() if isinstance(marker, np.generic) else marker)
    message = re.escape(f"all 30 rows carry the marker unlabeled={shown}, ")
    message += ".*Label at least one row of each"
    with pytest.raises(ValueError, match=message):
        classifier(unlabeled=marker).fit(ROWS, [marker] * 30)


# 2. No unlabeled row.


@semi_supervised
def test_2_without_unlabeled_rows_the_fit_equals_the_supervised_one(classifier):
    X = ROWS[CODES >= 0]
    y = CODES[CODES >= 0]
    with pytest.warns(
        UserWarning, match="got no unlabeled rows.*Mark rows by y = -1"
    ) as caught:
        model = classifier().fit(X, y)
    assert len(caught) == 1
    assert_same_fit(model, SupervisedLDA().fit(X, y), 1e-13)


# 3. One label per class.


@by_labeling
@pytest.mark.parametrize("n_classes", [2, 3])
def test_3_one_label_a_class_is_enough(classifier, n_classes):
    rows = ROWS + 6.0 * np.outer(np.arange(30) % n_classes, [1.0, -1.0])
    y = np.where(np.arange(30) < n_classes, np.arange(30) % n_classes, -1)
    model = classifier().fit(rows, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.covariance_).all()
    assert model.score(rows, np.arange(30) % n_classes) > 0.9


@pytest.mark.parametrize(
    "classifier", [SupervisedLDA, MomentConstrainedLDA, PessimisticLDA]
)
def test_3_one_label_a_class_needs_shrinkage_where_the_labels_give_the_covariance(
    classifier,
):
    y = np.where(np.isin(np.arange(30), [0, 10]), CODES, -1)
    with pytest.raises(
        ValueError, match=r"labeled rows .*within their classes.*shrinkage"
    ):
        classifier().fit(ROWS, y)
    model = classifier(shrinkage=0.1).fit(ROWS, y)
    assert np.isfinite(model.coef_).all()


# 4. and 11. Names in priors.


@every_classifier
def test_4_priors_that_name_an_unseen_class_are_refused(classifier):
    message = r"name the classes with labeled rows, \[0, 1\], got \[0, 1, 2, 'x'\]"
    with pytest.raises(ValueError, match=message):
        classifier(priors={0: 0.5, 1: 0.3, np.int64(2): 0.1, "x": 0.1}).fit(ROWS, CODES)


@every_classifier
@pytest.mark.parametrize(
    ("marker", "key", "shown"),
    [
        (-1, -1, "-1"),
        (-1, np.int8(-1), "-1"),
        (None, np.nan, "nan"),
        (np.nan, None, "None"),
    ],
)
def test_11_the_marker_is_no_key_of_priors(classifier, marker, key, shown):
    y = [marker if code < 0 else int(code) for code in CODES]
    message = rf"name the classes with labeled rows, \[.*\], got \[0, 1, {shown}\]"
    with pytest.raises(ValueError, match=message):
        classifier(unlabeled=marker, priors={0: 0.5, 1: 0.4, key: 0.1}).fit(ROWS, y)


# 5. and 6. Only one class.


@every_classifier
@pytest.mark.parametrize(
    ("y", "marker", "shown"),
    [
        (
            np.where(CODES == 0, 1, -1),
            np.int64(-1),
            r"1 class \(1\) in 6 labeled rows\..* -1 marks",
        ),
        (
            np.where(CODES == 0, "a", "?"),
            "?",
            r"1 class \('a'\) in 6 labeled rows\..* '\?' marks",
        ),
    ],
    ids=["-1 and 1", "text"],
)
def test_5_one_labeled_class_is_refused_and_the_marker_explained(
    classifier, y, marker, shown
):
    way_out = f".*Pass unlabeled=None to {classifier.__name__} if it is one of your"
    with pytest.raises(ValueError, match=shown + way_out):
        classifier(unlabeled=marker).fit(ROWS, y)


@every_classifier
def test_6_minus_one_is_a_class_once_the_marker_is_none(classifier):
    y = np.where(np.arange(30) < 10, -1, 1)
    model = classifier(unlabeled=None).fit(ROWS, y, X_unlabeled=ROWS)
    assert_array_equal(model.classes_, [-1, 1])


# 7. String classes.

STRINGS = {
    "tuple, NaN": (tuple(labels("ham", "spam", np.nan)), np.nan),
    "list, NA": (labels("ham", "spam", pd.NA), pd.NA),
    "list, NaT for None": (labels("ham", "spam", pd.NaT), None),
    "object, NaN for None": (
        np.array(labels("ham", "spam", np.nan), dtype=object),
        None,
    ),
    "object, None for NA": (np.array(labels("ham", "spam", None), dtype=object), pd.NA),
    "U array, ?": (np.array(labels("ham", "spam", "?")), "?"),
    "object, number": (np.array(labels("ham", "spam", -1), dtype=object), -1),
    "NumPy T, ?": (
        np.array(labels("ham", "spam", "?"), dtype=np.dtypes.StringDType()),
        "?",
    ),
    "NumPy T, None": (
        np.array(
            labels("ham", "spam", None), dtype=np.dtypes.StringDType(na_object=None)
        ),
        None,
    ),
    "pandas, None": (pd.Series(labels("ham", "spam", None)), None),
    "pandas string, NA": (
        pd.Series(labels("ham", "spam", pd.NA), dtype="string"),
        pd.NA,
    ),
    "pandas category": (pd.Series(labels("ham", "spam", None), dtype="category"), None),
    "pandas Categorical, ?": (pd.Categorical(labels("ham", "spam", "?")), "?"),
    "polars, ?": (pl.Series(labels("ham", "spam", "?")), "?"),
    "polars categorical": (
        pl.Series(labels("ham", "spam", None)).cast(pl.Categorical),
        None,
    ),
}


@pytest.mark.parametrize(("y", "marker"), STRINGS.values(), ids=STRINGS)
def test_7_classes_may_be_text_and_the_marker_anything(y, marker, expected):
    model = SelfLearningLDA(unlabeled=marker).fit(ROWS, y)
    assert model.classes_.tolist() == ["ham", "spam"]
    assert_array_equal(model.predict(ROWS) == "spam", expected == 1)
    assert model.score(ROWS, y) == np.mean((expected == CODES)[CODES >= 0])


def test_7_text_and_numbers_are_not_mixed():
    with pytest.raises(
        ValueError, match=r"y mixes .* for example 'a' and 1: use one kind"
    ):
        SelfLearningLDA().fit(ROWS, labels("a", 1, -1))


# 8. Missing y.


@every_classifier
@pytest.mark.parametrize(
    "y",
    [
        np.where(CODES < 0, np.nan, CODES),
        pd.Series(labels(0, 1, None), dtype="Int64"),
        pl.Series(labels(0, 1, None)),
        labels("a", "b", None),
    ],
    ids=["float", "Int64", "polars", "text"],
)
@pytest.mark.parametrize("marker", [-1, "?", None, np.nan], ids=repr)
def test_8_a_missing_y_is_unlabeled_whatever_the_marker(classifier, y, marker):
    fitted = classifier(unlabeled=marker).fit(ROWS, y)
    assert_array_equal(fitted.coef_, classifier().fit(ROWS, CODES).coef_)


def test_8_a_missing_y_beside_the_marker_is_told():
    y = np.array(CODES, dtype=float)
    y[CODES.argmin()] = np.nan
    message = (
        "17 rows with y = -1 and 1 row with a missing y all count as unlabeled. Pass "
        "unlabeled=None to SelfLearningLDA if -1 is a class."
    )
    with pytest.warns(UserWarning, match=re.escape(message)):
        fitted = SelfLearningLDA().fit(ROWS, y)
    assert_array_equal(fitted.coef_, SelfLearningLDA().fit(ROWS, CODES).coef_)


def test_7_the_marker_as_text_is_a_class_and_told():
    y = np.array(labels("a", "b", "-1"))
    message = (
        "The text '-1' is read as a class in 18 rows, because unlabeled=-1 is a "
        "number. Pass unlabeled='-1' to SupervisedLDA if these rows are unlabeled."
    )
    with pytest.warns(UserWarning, match=re.escape(message)):
        fitted = SupervisedLDA().fit(ROWS, y)
    assert fitted.classes_.tolist() == ["-1", "a", "b"]


def test_6_minus_one_as_a_third_class_is_told():
    message = (
        "-1 is read as a class in 18 rows, because unlabeled=None marks the "
        "unlabeled rows. Pass unlabeled=-1 to SupervisedLDA if these rows are "
        "unlabeled."
    )
    with pytest.warns(UserWarning, match=re.escape(message)):
        SupervisedLDA(unlabeled=None).fit(ROWS, CODES)


def test_6_minus_one_as_a_class_needs_no_word_where_other_rows_are_unlabeled():
    classifier = SupervisedLDA(unlabeled=None)
    assert len(classifier.fit(ROWS, CODES, X_unlabeled=ROWS).classes_) == 3
    y = np.array(CODES, dtype=float)
    y[0] = np.nan
    assert len(classifier.fit(ROWS, y).classes_) == 3


@pytest.mark.parametrize("empty", ["", "  "])
@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_8_an_empty_text_is_no_class(empty, kind):
    y = kind(labels("a", "b", empty))
    message = f"y is the empty text '{empty}' for 18 of 30 rows, first in row 6, "
    message += f"but unlabeled=-1 .*Pass unlabeled='{empty}' to SelfLearningLDA if"
    with pytest.raises(ValueError, match=message):
        SelfLearningLDA().fit(ROWS, y)
    assert SelfLearningLDA(unlabeled=empty).fit(ROWS, y).classes_.tolist() == ["a", "b"]


# 9. Dtypes of y.


def nullable(dtype):
    y = pd.array(CODES, dtype="Int64")
    y[CODES < 0] = pd.NA
    return y.astype(dtype)


DTYPES = {
    "bool": (np.array(labels(False, True, None), dtype=object), None, "bool"),
    "int8": (CODES.astype("int8"), -1, "int8"),
    "uint8": (np.array(labels(0, 1, 200), dtype="uint8"), 200, "uint8"),
    "uint64": (np.array(labels(2**63 + 1, 2**63 + 2, 0), dtype="uint64"), 0, "uint64"),
    "float32": (CODES.astype("float32"), -1, "float32"),
    "float64, NaN": (np.where(CODES < 0, np.nan, CODES), np.nan, "float64"),
    "big-endian": (CODES.astype(">i4"), -1, ">i4"),
    "list of int": (CODES.tolist(), -1, "int64"),
    "Int64 array": (nullable("Int64"), None, "int64"),
    "Int8 column with -1": (pd.Series(CODES, dtype="Int8"), -1, "int8"),
    "boolean array": (nullable("boolean"), None, "bool"),
    "Float32 array": (nullable("Float32"), None, "float32"),
    "arrow column": (pd.Series(nullable("int16[pyarrow]")), None, "int16"),
    "category": (pd.Series(CODES.astype("int8"), dtype="category"), -1, "int8"),
    "Categorical": (pd.Categorical.from_codes(CODES, [0, 1]), None, "int64"),
    "Index": (pd.Index(CODES, dtype="int16"), -1, "int16"),
    "polars Int8": (pl.Series(labels(0, 1, None), dtype=pl.Int8), None, "int8"),
    "polars Boolean": (pl.Series(labels(False, True, None)), None, "bool"),
    "pyarrow": (pa.array(labels(3, 8, None)), None, "int64"),
    "pyarrow in chunks": (pa.chunked_array([labels(3, 8, None)]), None, "int64"),
}


@pytest.mark.parametrize(("y", "marker", "dtype"), DTYPES.values(), ids=DTYPES)
def test_9_classes_and_predictions_keep_the_dtype_of_y(y, marker, dtype, expected):
    model = SelfLearningLDA(unlabeled=marker).fit(ROWS, y)
    assert model.classes_.dtype == model.predict(ROWS).dtype == np.dtype(dtype)
    assert_array_equal(model.predict(ROWS), model.classes_[expected])


def test_9_categories_without_rows_are_no_classes(expected):
    y = pd.Series(
        pd.Categorical.from_codes(np.where(CODES < 0, -1, CODES + 1), list("abcd"))
    )
    model = SelfLearningLDA(unlabeled=None).fit(ROWS, y)
    assert model.classes_.tolist() == ["b", "c"]
    assert_array_equal(model.predict(ROWS) == "c", expected == 1)


# 10. What is no y.


NO_CLASSES = {
    "tuples": (
        labels((0, 1), (1, 0), -1),
        r"type tuple, for example \(0, 1\), and must hold text",
    ),
    "lists": (labels([0], [1, 2], -1), r"type list, for example \[0\]"),
    "large": (
        labels(10**30, 10**31, -1),
        "type int, for example 1000.*integers of at most 64 bit",
    ),
    "days": (
        labels(date(2020, 1, 1), date(2020, 1, 2), -1),
        "type date, .* write them as text",
    ),
    "bytes": (np.array(labels(b"a", b"b", b"?")), "type bytes_, for example b'a'"),
    "a number": (3, "got <class .int.>: pass a list|an array of shape"),
    "a set": (set(range(30)), r"1d array, got an array of shape \(\)"),
    "too few": (CODES[:28], "X has 30 rows, y has 28 labels"),
}


@pytest.mark.parametrize(("y", "message"), NO_CLASSES.values(), ids=NO_CLASSES)
def test_10_what_is_no_class_is_shown(y, message):
    model = SupervisedLDA().fit(ROWS, CODES)
    for call in (lambda: model.score(ROWS, y), lambda: model.fit(ROWS, y)):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("y", [labels("a", "b", "c"), np.array(CODES, dtype="M8[D]")])
def test_10_labels_of_another_kind_than_the_classes_have_no_score(y):
    with pytest.raises(ValueError, match=r"y holds .*, and the classes are \[0, 1\]"):
        SupervisedLDA().fit(ROWS, CODES).score(ROWS, y)


def test_26_a_score_needs_weights_of_labeled_rows():
    model = SupervisedLDA().fit(ROWS, CODES)
    weights = np.where(CODES < 0, 1.0, 0.0)
    with pytest.raises(
        ValueError,
        match="all 30 rows carry the marker -1, are missing or have weight 0",
    ):
        model.score(ROWS, CODES, weights)
    with pytest.raises(ValueError, match=r"each of the 30 rows, got shape \(3,"):
        model.score(ROWS, CODES, np.ones(3))


@every_classifier
def test_10_without_y_the_error_says_how_rows_go_unlabeled(classifier):
    with pytest.raises(ValueError, match=r"requires y to be passed.*carry y = -1"):
        classifier().fit(ROWS, None)


@pytest.mark.parametrize("marker", [np.array([1, 2]), np.array([-1]), [1, 2], {"a": 1}])
def test_10_a_marker_that_is_not_one_value_is_refused(marker):
    with pytest.raises(ValueError, match=r"^unlabeled must be one value, that of y in"):
        SelfLearningLDA(unlabeled=marker).fit(ROWS, CODES)


@every_classifier
def test_60_a_fit_that_fails_leaves_the_earlier_one(classifier):
    model = classifier(unlabeled="?").fit(ROWS, labels("a", "b", "?"))
    expected = model.predict(ROWS)
    for too_large in (1e200 * ROWS, 1e200 * np.column_stack([ROWS, ROWS[:, 0] ** 2])):
        with pytest.raises(ValueError, match="standard deviation of column"):
            model.fit(too_large, np.array(labels("ham", "spam", "?")))
        assert_array_equal(model.predict(ROWS), expected)
