import numpy as np
import pandas as pd
import pytest

from iclda.tabular import read_table
from iclda.tabular.suspicions import filled_by_class, is_id, notes_on_ids, one_value_by_class

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
    "row": np.arange(60),  # noted elsewhere
    "text id": ["a", "b"] * 30,
}


@pytest.mark.parametrize(("name", "values"), IDS.items(), ids=IDS)
def test_whole_numbers_that_are_named_or_sorted_like_ids_are_ids(name, values):
    assert is_id(name, pd.Series(values))


@pytest.mark.parametrize(("name", "values"), MEASUREMENTS.items(), ids=MEASUREMENTS)
def test_measurements_are_no_ids(name, values):
    assert not is_id(name, pd.Series(values))


def test_notes_on_ids_name_the_column_and_the_way_out():
    (note,) = notes_on_ids(pd.DataFrame({"ID": IDS["ID"], "x": RNG.normal(size=60)}))
    assert str(note) == (
        "Column 'ID' looks like an id: whole numbers, nearly all different. It is used like a "
        "measurement; leave it out by drop=['ID'] if it is none."
    )


def outcomes(n=40):
    """Classes of n rows, of which a quarter is unlabeled."""
    labels = np.where(np.arange(n) % 2, "dead", "alive").astype(object)
    labels[: n // 4] = None
    return labels


def test_a_column_that_is_filled_exactly_where_the_class_is_one_value_is_noticed():
    labels = outcomes()
    frame = pd.DataFrame({"cause": np.where(np.arange(40) % 2, "heart", None), "age": 3.0})
    (warning,) = filled_by_class(frame, labels)
    assert "'cause' is filled in exactly where the class is 'dead', in all labeled rows" in warning
    assert "Leave it out by drop=['cause']" in warning
    frame["cause"] = np.where(np.arange(40) % 2, np.nan, 1.5)
    assert "exactly where the class is 'alive'" in filled_by_class(frame, labels)[0]


def test_a_column_that_is_filled_only_in_one_class_is_noticed_unless_it_may_be_chance():
    labels, frame = outcomes(), pd.DataFrame({"cause": np.full(40, None)})
    frame.loc[11:33:2, "cause"] = "heart"
    assert "filled in only where the class is 'dead'" in filled_by_class(frame, labels)[0]
    frame.loc[15:, "cause"] = None
    assert filled_by_class(frame, labels) == []


def test_gaps_that_do_not_go_with_the_class_are_fine():
    frame = pd.DataFrame({"x": np.where(np.arange(40) % 3, 1.5, np.nan), "y": 1.0, "z": np.nan})
    assert filled_by_class(frame, outcomes()) == []
    assert filled_by_class(frame, np.full(len(frame), None)) == []


def test_a_column_with_one_value_in_every_class_is_noticed():
    frame = pd.DataFrame({"code": np.arange(40) % 2 + 1.0, "x": np.arange(40) % 3, "one": 1})
    (warning,) = one_value_by_class(frame, outcomes())
    assert "'code' is 1 for alive, 2 for dead in all labeled rows" in warning
    labels = outcomes()
    labels[4:] = None
    labels[:4] = "dead", "alive", "dead", "alive"
    assert one_value_by_class(frame, labels) == []


def test_marks_of_unknown_classes_do_not_hide_a_leak(tmp_path):
    labels = outcomes()
    frame = pd.DataFrame({"x": RNG.normal(size=40), "cause": np.where(labels == "dead", "h", None)})
    frame["outcome"] = np.where(labels == None, "NA", labels)  # noqa: E711
    frame.to_csv(tmp_path / "data.csv", index=False)
    table = read_table(tmp_path / "data.csv", target="outcome")
    assert [warning.split("'")[1] for warning in table.warnings] == ["NA", "cause"]
    assert "pass unlabeled='NA' if it marks unlabeled rows" in table.warnings[0]
