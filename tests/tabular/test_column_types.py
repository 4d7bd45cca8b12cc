"""Column types: how they are recognized and refused, and the pipeline of a table."""

import datetime
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from iclda import (
    AutoLDA,
    AverageLDA,
    ImplicitlyConstrainedLDA,
    SemiSupervisedEnsemble,
    SupervisedLDA,
)
from iclda._estimators.outside import OutsideClassifier
from iclda._messages import ColumnError
from iclda.methods import find_method
from iclda.model_files import column_kinds, load_model, save_model
from iclda.tabular import (
    pipeline,
    preprocessing,
    read_table,
)
from iclda.tabular.column_types import (
    COLUMN_TYPES,
    kinds_of,
    takes_for_network,
    type_named,
)
from iclda.tabular.encoders import ColumnScaler
from iclda.tabular.fit import fit_table
from iclda.tabular.predict import predict_file

SERIES = {
    "floats": ([1.5, None], "number"),
    "nullable integers": (pd.array([1, None], dtype="Int8"), "number"),
    "objects that are numbers": (np.array([1, 2.5, None], dtype=object), "number"),
    "booleans with gaps": (np.array([True, None, False], dtype=object), "boolean"),
    "nullable booleans": (pd.array([True, None], dtype="boolean"), "boolean"),
    "arrow booleans": (pd.array([True, None], dtype="bool[pyarrow]"), "boolean"),
    "text": (["p", "q", None, "p"], "category"),
    "dates": (pd.to_datetime(["2020-01-02", None]), "date"),
    "arrow text": (
        pd.array(["p", "q", "p", None], dtype="string[pyarrow]"),
        "category",
    ),
    "categories": (pd.Categorical(["p", "q", None, "p"]), "category"),
    "numbers as categories": (pd.Categorical([1, 2, 1]), "category"),
}


@pytest.mark.parametrize(("values", "kind"), SERIES.values(), ids=SERIES)
def test_columns_are_numbers_booleans_categories_or_dates(values, kind):
    assert kinds_of(pd.DataFrame({"x": values})) == {"x": kind}


def test_types_of_one_step_share_an_encoder():
    pairs = {(each.step, repr(each.encoder)) for each in COLUMN_TYPES}
    assert len(pairs) == len({step for step, _ in pairs})


NAMES = [f"person {i}" for i in range(50)]
REFUSED = {
    "names": (NAMES, "holds 50 different texts in 50 rows, for example 'person 0'"),
    "dates of a zone": (
        pd.to_datetime(["2020-01-02", None]).tz_localize("UTC"),
        "a time zone",
    ),
    "times": ([datetime.time(1, 30), None], "times as numbers, for example of hours"),
    "weights": (
        [f"{i} kg" for i in range(50)],
        "for example '0 kg': .* write numbers with digits",
    ),
    "dates in two forms": (
        ["2020-05-31", *(f"{i}.5.2020" for i in range(1, 31))],
        "dates as 2020-03-12",
    ),
    "numbers and text": (
        ["1", "2.5", "about 3"],
        "text in 1 of 3 rows, for example 'about 3'",
    ),
    "numbers to Python only": (
        ["1", "1_000", "+3", "2"],
        "in 2 of 4 rows, for example '1_000'",
    ),
    "complex": ([1 + 2j, 3 + 0j], "neither numbers nor text"),
    "lists": ([[1], [2]], r"neither numbers nor text .*, for example \[1\]"),
}


@pytest.mark.parametrize(("values", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_learned_from_is_refused_with_the_way_out(values, message):
    frame = pd.DataFrame({"my column": values})
    with pytest.raises(ValueError, match=message) as error:
        kinds_of(frame)
    assert "Column 'my column'" in str(error.value)


def test_a_few_texts_that_are_no_numbers_are_categories():
    frame = pd.DataFrame(
        {"x": ["12-Mar-2020", "3.12.2020"] * 10, "y": ["10 kg", "20 kg"] * 10}
    )
    assert kinds_of(frame) == {"x": "category", "y": "category"}


def test_all_columns_that_cannot_be_used_are_named_at_once():
    frame = pd.DataFrame({f"n{i}": NAMES for i in range(7)})
    words = "'n0' holds .*'n4' holds .* 2 more columns cannot be used. .*: "
    words += "drop=.'n0', .*'n6'"
    with pytest.raises(ValueError, match=words):
        kinds_of(frame)


def test_other_frames_are_refused_with_the_way_out():
    with pytest.raises(
        TypeError, match=r"must be a pandas frame, got polars.*to_pandas\(\)"
    ):
        kinds_of(pl.DataFrame({"a": [1.0]}))


def test_columns_need_names_of_their_own_that_are_text():
    with pytest.raises(ValueError, match="must be text and occur once, got 0"):
        kinds_of(pd.DataFrame(np.zeros((2, 2))))
    with pytest.raises(ValueError, match="must be text and occur once, got 'a'"):
        kinds_of(pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]))


def test_cells_that_are_no_dates_are_named_with_their_row(tmp_path):
    dates = pd.date_range("2024-01-01", periods=40)
    classes = np.where(np.arange(40) % 2, "new", "old").astype(object)
    features = pd.DataFrame({"visit": dates})
    model = pipeline(preprocessing(features), SupervisedLDA()).fit(features, classes)
    texts = pd.Series(dates.strftime("%Y-%m-%d"), dtype=object).replace(
        "2024-01-08", "soon"
    )
    pd.DataFrame({"visit": texts}).to_csv(tmp_path / "data.csv", index=False)
    message = (
        r"row 9, column 'visit' must hold dates such as .*, got 'soon'. Empty the cell"
    )
    with pytest.raises(ValueError, match=message):
        predict_file(
            model, column_kinds(model), tmp_path / "data.csv", tmp_path / "p.csv"
        )


def test_several_columns_that_cannot_be_used_can_be_left_out_at_once(tmp_path):
    frame = pd.DataFrame({"name": NAMES, "x": np.arange(50) % 7, "remark": NAMES[::-1]})
    frame["class"] = np.where(np.arange(50) % 2, "a", "b")
    frame.to_csv(tmp_path / "data.csv", index=False)
    table = read_table(tmp_path / "data.csv", target="class")
    assert list(table.features) == ["x"]
    assert table.dropped == ("name", "remark")
    (note,) = table.notes
    assert note == (
        "2 columns were left out: 'name' holds 50 different texts in 50 rows, for "
        "example 'person 0'; 'remark' holds 50 different texts in 50 rows, for example "
        "'person 49'. Names and ids say nothing about other rows. If a text does, make "
        "numbers of it first, for example with StringEncoder of skrub."
    )
    message = "'name' holds .*'remark' holds .* all such columns: drop="
    with pytest.raises(ColumnError, match=message):
        read_table(tmp_path / "data.csv", target="class", strict=True)


def test_numbers_with_a_few_texts_are_left_out_with_a_warning(tmp_path):
    price = [*range(49), "about 3"]
    frame = pd.DataFrame({"price": price, "x": np.arange(50) % 7})
    frame["class"] = np.where(np.arange(50) % 2, "a", "b")
    frame.to_csv(tmp_path / "data.csv", index=False)
    table = read_table(tmp_path / "data.csv", target="class")
    assert not table.notes
    assert "price" in table.dropped
    assert table.warnings[0] == (
        "Column 'price' holds numbers, but text in 1 of 50 rows, for example 'about 3' "
        "(empty these cells if the number is unknown, or write it with digits and a "
        "decimal point alone): it was left out."
    )


def test_a_table_of_unusable_columns_alone_is_refused_with_the_reasons(tmp_path):
    frame = pd.DataFrame({"name": NAMES, "class": ["a", "b"] * 25})
    frame.to_csv(tmp_path / "data.csv", index=False)
    message = "has no column to learn from .* 'name' holds 50 different texts"
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "data.csv", target="class")


def test_the_note_on_a_column_shows_its_whole_example_also_with_a_colon(tmp_path):
    names = [f"at {minute // 60:02}:{minute % 60:02}:00" for minute in range(50)]
    frame = pd.DataFrame({"time": names, "x": np.arange(50) % 7})
    frame["class"] = np.where(np.arange(50) % 2, "a", "b")
    frame.to_csv(tmp_path / "data.csv", index=False)
    table = read_table(tmp_path / "data.csv", target="class")
    assert table.dropped == ("time",)
    assert "'at 00:00:00'" in table.notes[0]


WRITTEN = {
    "when": [f"{1 + i % 28:02}/{1 + i % 12:02}/2007" for i in range(60)],
    "open": [f"{1 + i % 12:02}/{1 + i % 12:02}/07" for i in range(60)],
    "paid": [f"${1000 + 7 * i:,}.50" for i in range(60)],
    "share": [f"{i % 9},5 %" for i in range(60)],
}


def test_dates_and_numbers_as_people_write_them_are_used_and_told(tmp_path):
    frame = pd.DataFrame(WRITTEN)
    frame["class"] = np.where(np.arange(60) % 2, "a", "b").astype(object)
    frame.loc[3, ["when", "paid"]] = None
    frame.loc[40:, "class"] = None
    frame.to_csv(tmp_path / "data.csv", index=False)
    table = read_table(tmp_path / "data.csv", target="class")
    assert kinds_of(table.features) == {
        "when": "written date",
        "open": "written date",
        "paid": "amount",
        "share": "amount",
    }
    assert list(table.notes) == [
        "Column 'when' is read as dates, day first: 01/01/2007 is 2007-01-01.",
        "Column 'open' is read as dates, day first: 01/01/07 is 2007-01-01. This is "
        "assumed, because the values do not tell day from month: write dates as "
        "2007-01-01 if the month comes first.",
        "Column 'paid' is read as numbers: $1,000.50 is 1000.5.",
        "Column 'share' is read as numbers: 0,5 % is 0.5.",
    ]
    model, _ = fit_table(table, find_method("supervised"), shrinkage=0.1)
    encoded = model[0].transform(table.features)
    assert list(encoded)[:3] == ["paid", "share", "when month"]
    assert encoded["paid"][:2].tolist() == [1000.5, 1007.5]
    save_model(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    # New rows whose days alone do not tell the form.
    path = tmp_path / "new.csv"
    frame[:3].to_csv(path, index=False)
    predict_file(loaded, column_kinds(loaded), path, tmp_path / "p.csv")
    expected = model.predict(table.features[:3]).tolist()
    assert pd.read_csv(tmp_path / "p.csv")["class"].tolist() == expected
    # The same columns as a program writes them: dates and numbers.
    plain = frame[:3].assign(
        when=pd.to_datetime(frame["when"][:3], format="%d/%m/%Y"),
        open=pd.to_datetime(frame["open"][:3], format="%d/%m/%y"),
        paid=[1000.5, 1007.5, 1014.5],
        share=[0.5, 1.5, 2.5],
    )
    plain.to_parquet(tmp_path / "new.parquet")
    kinds = column_kinds(loaded)
    predict_file(loaded, kinds, tmp_path / "new.parquet", tmp_path / "p.csv")
    assert pd.read_csv(tmp_path / "p.csv")["class"].tolist() == expected


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("when", "11/26/2007", "'when' must hold dates of one form .*'11/26/2007'"),
        ("paid", "much", "'paid' must hold numbers such as .* got 'much'"),
    ],
)
def test_a_new_cell_in_another_form_is_named(name, value, message):
    features = pd.DataFrame(WRITTEN)
    encoder = preprocessing(features).fit(features)
    features.loc[5, name] = value
    with pytest.raises(ColumnError, match=message):
        encoder.transform(features)


def test_the_form_is_that_of_the_whole_column_in_every_fold():
    features = pd.DataFrame({"when": ["01/02/2007", "03/04/2008", "05/26/2009"]})
    encoder = preprocessing(features).fit(features[:2])
    assert encoder.transform(features)["when month"].tolist() == [1, 3, 5]


def customers(n=240):
    """A table as people have it: numbers, text, booleans and gaps in all of them."""
    rng = np.random.default_rng(5)
    age = rng.normal(50, 10, n)
    income = rng.lognormal(8, 1, n)
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
    classes = np.where(
        age / 10 + np.log(income) + rng.normal(size=n) > 13, "stays", "leaves"
    )
    return frame, classes.astype(object)


def test_a_pipeline_takes_labels_with_none_and_has_text_classes():
    frame, classes = customers()
    labels = np.where(np.arange(len(frame)) < 60, classes, None)
    model = pipeline(preprocessing(frame), ImplicitlyConstrainedLDA()).fit(
        frame, labels
    )
    assert model.classes_.tolist() == ["leaves", "stays"]
    assert model.score(frame, classes) > 0.7
    assert model.score(frame, labels) == model.score(frame[:60], classes[:60])


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


def test_the_classifier_given_stays_as_it_is():
    frame, _ = customers()
    classifier = SupervisedLDA(shrinkage=0.1)
    steps = pipeline(preprocessing(frame), classifier).named_steps
    assert (classifier.unlabeled, steps["classify"].unlabeled) == (-1, None)
    assert "scale" in steps


def test_the_columns_of_a_vector_are_scaled_by_one_number():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 70)) * np.linspace(1, 9, 70) + 5
    wide = pd.DataFrame(X, columns=[f"e_{k}" for k in range(70)]).assign(
        size=100 * X[:, 0]
    )
    steps = pipeline(preprocessing(wide), SupervisedLDA(), scale=True)[:-1]
    scaled = steps.fit_transform(wide)
    ratio = scaled[[f"e_{k}" for k in range(70)]] / X
    assert_allclose(ratio, np.full(X.shape, 1 / np.sqrt(X.var(axis=0).mean())))
    assert_allclose(
        [scaled["size"].mean(), scaled["size"].std(ddof=0)], [0, 1], atol=1e-12
    )


@pytest.mark.parametrize(
    ("n_columns", "factor"), [(63, 1), (70, 1e4)], ids=["few", "another unit"]
)
def test_few_numbered_columns_and_those_of_several_units_are_scaled_one_by_one(
    n_columns, factor
):
    X = np.random.default_rng(0).normal(size=(40, n_columns))
    X[:, 0] *= factor
    frame = pd.DataFrame(X).rename(columns=str)
    scaled = pipeline(preprocessing(frame), SupervisedLDA(), scale=True)[
        :-1
    ].fit_transform(frame)
    assert_allclose(scaled.std(ddof=0), 1)


def test_a_type_of_another_version_is_refused_with_those_that_there_are():
    message = (
        r"no column type 'percentage' in iclda \d.*, which has 'number', .*: install"
    )
    with pytest.raises(ValueError, match=message):
        type_named("percentage")


def test_vectors_are_found_whatever_the_first_column_type(monkeypatch):
    hours = replace(
        COLUMN_TYPES[-1], name="odd", holds=lambda series: series.name == "odd"
    )
    monkeypatch.setattr(
        "iclda.tabular.column_types.COLUMN_TYPES", [hours, *COLUMN_TYPES]
    )
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(9, 70))).add_prefix("embedding_")
    frame.insert(0, "odd", pd.to_datetime(["2020-01-02"] * 8 + ["2021-03-04"]))
    encoder = preprocessing(frame)
    assert [step for step, _, _ in encoder.transformers] == ["numbers", "dates"]
    model = pipeline(encoder, SupervisedLDA(), scale=True)
    assert model["scale"].vectors == [list(range(70))]


@pytest.mark.parametrize(
    ("classifier", "is_scaled"),
    [
        (SupervisedLDA(shrinkage=0.1), True),
        (SupervisedLDA(), False),
        (SupervisedLDA(shrinkage=0.1, view="whiten"), False),
        (AverageLDA(), False),
        (AutoLDA(), False),
        (SemiSupervisedEnsemble(), False),
        (OutsideClassifier("sklearn-logistic"), True),
    ],
    ids=str,
)
def test_columns_are_scaled_where_the_classifier_does_not_do_so(classifier, is_scaled):
    frame, _ = customers()
    steps = pipeline(preprocessing(frame), classifier).named_steps
    assert ("scale" in steps) == is_scaled


def test_columns_of_0_and_1_stay_but_for_methods_of_scikit_learn():
    frame, _ = customers()
    own = pipeline(preprocessing(frame), SupervisedLDA(shrinkage=0.1))[:-1]
    scaled = own.fit_transform(frame)
    are_indicators = [" = " in name for name in scaled.columns]
    assert any(are_indicators)
    assert set(np.unique(scaled.loc[:, are_indicators])) == {0.0, 1.0}
    assert_allclose(scaled["age"].std(ddof=0), 1)
    outside = pipeline(preprocessing(frame), OutsideClassifier("sklearn-lda"))[:-1]
    assert_allclose(outside.fit_transform(frame).std(ddof=0), 1)


def test_an_indicator_of_which_few_rows_are_unknown_stays_too():
    column = np.r_[np.zeros(60), np.ones(35), np.full(5, 0.35)]
    rows = np.column_stack([column, 3 * column, np.linspace(0, 1, 100)])
    scaled = ColumnScaler().fit_transform(rows)
    assert_allclose(scaled[:, 0], column)
    assert_allclose(scaled[:, 1:].std(axis=0), 1)


def test_a_table_with_many_categories_is_not_taken_for_features_of_a_network():
    rng = np.random.default_rng(0)
    codes = rng.integers(80, size=800)
    states = pd.DataFrame({"state": np.char.add("s", codes.astype(str)).astype(object)})
    embeddings = pd.DataFrame(rng.normal(size=(800, 70))).add_prefix("e_")
    income = embeddings.assign(income=1e6 * rng.random(800))

    def is_network(frame):
        encoder = preprocessing(frame)
        return takes_for_network(encoder, clone(encoder).fit_transform(frame))

    assert not is_network(states)
    assert is_network(embeddings)
    # In the pipeline the vector and the other column have units of their own.
    assert is_network(income)
    assert "scale" in pipeline(preprocessing(income), AutoLDA()).named_steps
