"""What the checks of a table say is true of it."""

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

from iclda.tabular import read_table
from iclda.tabular.checks import (
    FINE,
    NOTE,
    WARNING,
    check_duplicates,
    check_gaps,
    check_ids,
    check_leaks,
    check_shift,
    check_texts,
    first_copies,
    is_id,
)

RNG = np.random.default_rng(0)
IDS = {
    "ID": RNG.choice(10**6, 60, replace=False),
    "patient_id": RNG.permutation(60) * 7,
    "customerId": RNG.choice(10**9, 60, replace=False),
    "account number": [*RNG.choice(10**6, 58, replace=False), 5, 5],
    "ticket": np.cumsum(RNG.integers(1, 9, 60)),
    "id": [*RNG.choice(10**6, 59, replace=False).astype(float), np.nan],
}
MEASUREMENTS = {
    "humid": RNG.permutation(60) * 3,
    "paid": RNG.choice(10**6, 60, replace=False),
    "age": RNG.integers(18, 90, 60),
    "id": RNG.normal(size=60),
    "group id": RNG.integers(0, 5, 60),
    "key": [3, 1, 2],
    # Noted when the table is read.
    "row": np.arange(60),
    "text id": ["a", "b"] * 30,
}
# Classes of 40 rows, of which a quarter is unlabeled.
LABELS = np.where(np.arange(40) % 2, "dead", "alive").astype(object)
LABELS[:10] = None


@pytest.mark.parametrize(("name", "values"), IDS.items(), ids=IDS)
def test_whole_numbers_that_are_named_or_sorted_like_ids_are_ids(name, values):
    assert is_id(name, pd.Series(values))


@pytest.mark.parametrize(("name", "values"), MEASUREMENTS.items(), ids=MEASUREMENTS)
def test_measurements_are_no_ids(name, values):
    assert not is_id(name, pd.Series(values))


def test_notes_on_ids_name_the_column_and_the_way_out():
    (remark,) = check_ids(pd.DataFrame({"ID": IDS["ID"], "x": RNG.normal(size=60)}))
    assert (remark.level, str(remark.text)) == (
        NOTE,
        "Column 'ID' looks like an id or a row number: whole numbers, nearly all "
        "different. If it is one, drop it: drop=['ID'].",
    )


def test_text_of_many_values_is_noted_with_a_way_to_use_its_words():
    titles = [f"title {row // 2}" for row in range(200)]
    frame = pd.DataFrame({"title": titles, "color": ["red", "blue"] * 100})
    frame["paid"] = [f"${row},5" for row in range(200)]
    (remark,) = check_texts(frame)
    assert remark.level == NOTE
    assert remark.text.startswith("Column 'title' has 100 different texts in 200 rows")
    assert "StringEncoder of skrub" in remark.text


def leaks(values, labels=LABELS):
    return [
        each.text for each in check_leaks(pd.DataFrame({"c": values, "x": 1.5}), labels)
    ]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            np.where(np.arange(40) % 2, "heart", None),
            "filled in exactly where the class is 'dead'",
        ),
        (
            np.where(np.arange(40) % 2, np.nan, 1.5),
            "filled in exactly where the class is 'alive'",
        ),
        (
            np.where((np.arange(40) % 2) & (np.arange(40) < 34), "heart", None),
            "filled in only where the class is 'dead'",
        ),
        (np.arange(40) % 2 + 1.0, "1 for alive, 2 for dead in all labeled rows"),
        (np.where(np.arange(40) % 2, "gone", "here"), "here for alive, gone for dead"),
        (np.arange(40) % 2 == 1, "0 for alive, 1 for dead"),
        # A fee that is 0 unless a customer has left, a reason, and a score.
        (np.arange(40) % 2 * (np.arange(40) + 1), "0 for alive, 12 to 40 for dead"),
        (
            np.where(np.arange(40) % 2, np.arange(40).astype(str), "none"),
            "none for alive, another value for dead",
        ),
        (
            np.arange(40) % 2 * 20.0 + np.arange(40) / 8,
            "1.25 to 4.75 for alive, 21.375 to 24.875 for dead",
        ),
    ],
)
def test_a_column_that_gives_the_class_away_is_a_warning_with_the_way_out(
    values, words
):
    (text,) = leaks(values)
    assert text.startswith(f"Column 'c' is {words}")
    assert text.endswith("their class is known, drop it: drop=['c'].")


@pytest.mark.parametrize(
    "values",
    [
        np.where(
            (np.arange(40) % 2) & (np.arange(40) < 15),
            "heart",
            None,
            # May be chance.
        ),
        np.where(np.arange(40) % 3, 1.5, np.nan),
        np.full(40, np.nan),
        np.arange(40) % 3,
        [[1]] * 40,
    ],
)
def test_columns_that_do_not_follow_the_class_are_fine(values):
    assert leaks(values) == []
    assert leaks(values, np.full(40, None)) == []


@pytest.mark.parametrize(("n_labels", "n_remarks"), [(14, 0), (15, 1)])
def test_one_value_in_each_of_few_labels_may_be_chance(n_labels, n_remarks):
    labels = np.where(np.arange(40) < 10 + n_labels, LABELS, None)
    assert len(leaks(np.arange(40) % 2, labels)) == n_remarks


@pytest.mark.parametrize("n_labels", [15, 30, 60, 150])
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_measurements_that_separate_the_classes_are_no_leaks(name, n_labels):
    rows, classes = getattr(datasets, f"load_{name}")(return_X_y=True)
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(len(rows))[:n_labels]
        features = pd.DataFrame(rows[order]).rename(columns=str)
        assert list(check_leaks(features, classes[order].astype(object))) == []


def test_marks_of_unknown_classes_do_not_hide_a_leak(tmp_path):
    frame = pd.DataFrame(
        {"x": RNG.normal(size=40), "cause": np.where(LABELS == "dead", "h", None)}
    )
    frame["outcome"] = np.where(LABELS == None, "NA", LABELS)  # noqa: E711
    frame.to_csv(tmp_path / "data.csv", index=False)
    table = read_table(tmp_path / "data.csv", target="outcome")
    assert [warning.split("'")[1] for warning in table.warnings] == ["NA", "cause"]
    assert "pass unlabeled='NA' if it marks unlabeled rows" in table.warnings[0]


def test_gaps_are_named_with_their_share():
    age = np.where(np.arange(40) < 10, np.nan, 3.0)
    (remark,) = check_gaps(pd.DataFrame({"x": 1.0, "age": age}))
    assert remark.level == NOTE
    assert "empty cells in 1 column: 'age' (25.0 %)" in remark.text
    (remark,) = check_gaps(pd.DataFrame({"x": [1.0, 2.0]}))
    assert (remark.level, remark.text) == (FINE, "no empty cells.")


def test_unlabeled_rows_from_elsewhere_are_a_warning():
    labeled, unlabeled = (
        pd.DataFrame(RNG.standard_normal((n, 2)), columns=["x1", "x2"])
        for n in (30, 300)
    )
    (remark,) = check_shift(labeled, unlabeled.assign(x2=unlabeled["x2"] + 2.5))
    assert remark.level == WARNING
    assert "'x2' (means " in remark.text
    assert "x1" not in remark.text
    assert list(check_shift(labeled, unlabeled[:0])) == []


@pytest.mark.parametrize("seed", range(5))
def test_rows_from_one_place_are_not_called_shifted(seed):
    rows = pd.DataFrame(np.random.default_rng(seed).standard_normal((330, 4)))
    (remark,) = check_shift(rows[:30], rows[30:])
    assert remark.level == FINE


def test_rows_that_stand_there_twice_are_counted():
    frame = pd.DataFrame({"x": RNG.normal(size=40)})
    frame.loc[11], frame.loc[3] = frame.loc[10], frame.loc[20]
    contradicted, seen = check_duplicates(frame, LABELS)
    assert contradicted.level == WARNING
    assert contradicted.text.startswith("2 labeled rows equal a row of another class")
    assert seen.text == "1 labeled row has unlabeled copies."


def test_a_few_copies_in_many_rows_are_a_note():
    frame = pd.DataFrame(RNG.normal(size=(6_000, 3)), columns=["x", "y", "z"])
    labels = np.array(["a", "b"] * 3_000, dtype=object)
    frame.loc[:3] = frame.loc[10:13].to_numpy()
    (copies,) = check_duplicates(frame, labels)
    assert copies.level == NOTE
    assert copies.text.startswith("6,000 rows, of which 5,996 are distinct")
    frame.loc[:59] = frame.loc[60:119].to_numpy()
    (copies,) = check_duplicates(frame, labels)
    assert copies.level == WARNING


def test_rows_written_several_times_are_copies_and_rows_equal_by_chance_are_not():
    rng = np.random.default_rng(0)
    measured = pd.DataFrame({"x": rng.normal(size=30), "y": rng.normal(size=30)})
    labels = np.array([*"ab" * 10, *[None] * 10], dtype=object)
    assert first_copies(measured, labels).tolist() == list(range(30))
    thrice = pd.concat([measured] * 3, ignore_index=True)
    found = first_copies(thrice, np.tile(labels, 3))
    assert found.tolist() == list(range(30)) * 3
    (remark,) = check_duplicates(thrice, np.tile(labels, 3))
    assert remark.text.startswith("90 rows, of which 30 are distinct.")
    assert first_copies(thrice, np.repeat(["a", "b", None], 30)).tolist() == list(
        range(90)
    )


def test_a_table_of_few_values_is_split_into_copies_only_if_all_of_it_is_repeated():
    rng = np.random.default_rng(0)
    few = pd.DataFrame({"x": rng.integers(0, 6, 31), "y": rng.integers(0, 3, 31)})
    labels = np.full(31, "a", dtype=object)
    assert first_copies(few, labels).tolist() == list(range(31))
    twice = first_copies(pd.concat([few] * 2, ignore_index=True), np.tile(labels, 2))
    assert len(set(twice)) == 31
    assert np.bincount(twice).max() == 2
