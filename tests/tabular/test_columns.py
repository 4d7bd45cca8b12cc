import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from iclda import SupervisedLDA
from iclda.methods import find_method
from iclda.model_files import OWN_TYPES, column_kinds, model_details, save_model
from iclda.tabular import NumberEncoder, pipeline, preprocessing, read_table
from iclda.tabular.columns import COLUMN_TYPES, ColumnType, kinds_of
from iclda.tabular.fit_predict import fit_table, predict_file
from iclda.tabular.summaries import fit_summary

SERIES = {
    "floats": ([1.5, None], "number"),
    "integers": ([1, 2], "number"),
    "nullable integers": (pd.array([1, None], dtype="Int8"), "number"),
    "nullable floats": (pd.array([1.5, None], dtype="Float32"), "number"),
    "objects that are numbers": (np.array([1, 2.5, None], dtype=object), "number"),
    "booleans": ([True, False], "boolean"),
    "booleans with gaps": (np.array([True, None, False], dtype=object), "boolean"),
    "nullable booleans": (pd.array([True, None], dtype="boolean"), "boolean"),
    "arrow booleans": (pd.array([True, None], dtype="bool[pyarrow]"), "boolean"),
    "arrow numbers": (pd.array([1.5, None], dtype="double[pyarrow]"), "number"),
    "text": (["p", "q", None, "p"], "category"),
    "arrow text": (pd.array(["p", "q", "p", None], dtype="string[pyarrow]"), "category"),
    "categories": (pd.Categorical(["p", "q", None, "p"]), "category"),
    "numbers as categories": (pd.Categorical([1, 2, 1]), "category"),
}


@pytest.mark.parametrize(("values", "kind"), SERIES.values(), ids=SERIES)
def test_columns_are_numbers_booleans_or_categories(values, kind):
    assert kinds_of(pd.DataFrame({"x": values})) == {"x": kind}


NAMES = [f"person {i}" for i in range(50)]
REFUSED = {
    "names": (NAMES, "holds 50 different texts in 50 rows, for example 'person 0'"),
    "few names": (["Ann", "Bob", "Eve"], "holds 3 different texts in 3 rows"),
    "dates": (pd.to_datetime(["2020-01-02", None]), "holds dates or times, for example 2020-01-02"),
    "durations": (pd.to_timedelta([1, 2], "D"), "holds dates or times"),
    "date objects": ([datetime.date(2020, 1, 2), None], "dates or times, for example 2020-01-02"),
    "time objects": ([datetime.time(1, 30), None], "dates or times, for example 01:30:00"),
    "times": (["1:30", "12:45 pm", "1:30"], "dates or times, for example 12:45 pm"),
    "days of months": (["12 March 2020", "3 Apr 20", "12 March 2020"], "example 12 March 2020"),
    "months and days": (["March 12, 2020", "Apr. 3rd 2020"] * 3, "dates or times"),
    "days of the week": (["Thu, 12-Mar-2020", "Fri 13 March 2020 10:15"] * 3, "dates or times"),
    "dates and an odd cell": ([f"{i} May 2020" for i in range(1, 31)] + ["soon"], "dates or times"),
    "percent": ([f"{i}%" for i in range(50)], "numbers written as text, for example '0%'"),
    "money": ([f"${i}" for i in range(50)], r"numbers written as text, for example '\$0'"),
    "decimal commas": ([f"{i},13" for i in range(50)], "as text, for example '0,13'"),
    "thousands": ([f"1.{i:03},56" for i in range(50)], "as text, for example '1.000,56'"),
    "thousands among numbers": ([*map(str, range(900, 1000)), "1,000"], "for example '1,000'"),
    "dates as text": (["2020-01-02", "2020-01-02", "2020-02-03"], "for example 2020-01-02"),
    "local dates": (["3.12.2020", "04.12.2020", "3.12.2020"], "dates or times, for example 04.12"),
    "numbers and text": (["1", "2.5", "about 3"], "text in 1 of 3 rows, for example 'about 3'"),
    "numbers to Python only": (["1", "1_000", "+3", "2"], "in 2 of 4 rows, for example '1_000'"),
    "complex": ([1 + 2j, 3 + 0j], "complex numbers: split it into two columns"),
    "complex text": ([f"{i}+{i}j" for i in range(30)], "30 different texts in 30 rows"),
    "lists": ([[1], [2]], r"neither numbers nor text, for example \[1\]"),
}


@pytest.mark.parametrize(("values", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_learned_from_is_refused_with_the_way_out(values, message):
    frame = pd.DataFrame({"my column": values})
    with pytest.raises(ValueError, match=message) as error:
        kinds_of(frame)
    assert "Column 'my column'" in str(error.value)


CATEGORIES = {
    "months": ["March", "April", "May"],
    "parts of a year": ["Q1 2020", "Q2 2020"],
    "products": ["mar1", "may2", "dec3"],
    "shares": ["10%", "20%"],
    "addresses": ["10.0.0.1", "10.0.0.2"],
}


@pytest.mark.parametrize("values", CATEGORIES.values(), ids=CATEGORIES)
def test_a_few_texts_that_only_resemble_dates_are_categories(values):
    assert kinds_of(pd.DataFrame({"x": values * 10})) == {"x": "category"}


def test_all_columns_that_cannot_be_used_are_named_at_once():
    frame = pd.DataFrame({f"n{i}": NAMES for i in range(7)})
    with pytest.raises(
        ValueError, match=r"drop the column 'n0'.*column 'n4'\. 2 more columns cannot be used"
    ):
        kinds_of(frame)


def test_other_frames_are_refused_with_the_way_out():
    with pytest.raises(TypeError, match=r"must be a pandas frame, got polars.*to_pandas\(\)"):
        kinds_of(pl.DataFrame({"a": [1.0]}))


def test_columns_need_names_of_their_own_that_are_text():
    with pytest.raises(ValueError, match="Column names must be text, got 0"):
        kinds_of(pd.DataFrame(np.zeros((2, 2))))
    with pytest.raises(ValueError, match="'a' stands there twice"):
        kinds_of(pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]))


class DayEncoder(NumberEncoder):
    """Dates as days."""

    def _kind(self, series):
        return "date"

    def _numbers(self, X):
        return ((X - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy(dtype=np.float64)


@pytest.fixture
def dates():
    """A type of column besides those of the package."""
    kind = ColumnType(
        "date",
        lambda series: series.dtype.kind == "M",
        step="dates",
        encoder=DayEncoder(flagged="auto"),
        arrow="timestamp[s]",
        dtypes="M",
        cell="a date",
        cells="dates",
        columns="dates",
    )
    COLUMN_TYPES.append(kind)
    yield
    COLUMN_TYPES.remove(kind)


def visits(n=40):
    days = pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d").to_numpy(dtype=object)
    days[5] = None
    frame = pd.DataFrame({"visit": days, "age": np.random.default_rng(0).normal(size=n)})
    classes = np.where(np.arange(n) < n // 2, "new", "old").astype(object)
    return frame.assign(kind=np.where(np.arange(n) % 2, classes, None))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_one_row_of_the_table_makes_a_column_type(tmp_path, dates, suffix):
    data, frame = tmp_path / f"data.{suffix}", visits()
    if suffix == "csv":
        frame.to_csv(data, index=False)
    else:
        frame.assign(visit=pd.to_datetime(frame["visit"])).to_parquet(data)
    table = read_table(data, target="kind")
    model, about = fit_table(table, find_method("supervised"))
    assert column_kinds(model) == {"visit": "date", "age": "number"}
    encoded = model[:-1].transform(table.features)
    assert encoded["visit"].tolist()[:2] == [19723.0, 19724.0]
    counts = predict_file(model, column_kinds(model), data, tmp_path / "p.csv")
    assert counts.filled == {"visit": 1}
    found = pd.read_csv(tmp_path / "p.csv")["class"]
    assert found.tolist() == model.predict(table.features).tolist()
    trusted = [f"{DayEncoder.__module__}.{DayEncoder.__qualname__}"]
    save_model(model, tmp_path / "m.skops", about=about, trusted=trusted)
    lines = fit_summary(model_details(tmp_path / "m.skops"))
    assert "It reads 2 columns: 1 of dates, 1 of numbers." in lines


def test_cells_that_do_not_fit_a_new_type_are_named_with_their_row(tmp_path, dates):
    frame = visits()
    features = frame[["visit", "age"]].assign(visit=pd.to_datetime(frame["visit"]))
    classes = np.where(np.arange(40) % 2, "new", "old").astype(object)
    model = pipeline(preprocessing(features), SupervisedLDA()).fit(features, classes)
    frame.loc[7, "visit"] = "soon"
    frame.to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(ValueError, match="row 9, column 'visit': must hold a date, got 'soon'"):
        predict_file(model, column_kinds(model), tmp_path / "data.csv", tmp_path / "p.csv")


def test_model_files_may_hold_the_encoder_of_every_column_type():
    encoders = {type(each.encoder) for each in COLUMN_TYPES}
    assert {f"{each.__module__}.{each.__name__}" for each in encoders} <= OWN_TYPES
