"""Rounds of labeling: rows to label, answers read back, the error of random labels."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from iclda import AverageLDA, ParameterError
from iclda._error_estimate import ErrorEstimate, estimate_error_of_all_labels
from iclda.labeling.answers import Answers
from iclda.labeling.rounds import Progress, ask_for_labels
from iclda.methods import find_method
from iclda.tabular import pipeline, preprocessing, read_table
from iclda.tabular.answer_files import CHOSEN, RANDOM
from iclda.tabular.fit import fit_table

# Rows that have no class yet.
ask = partial(ask_for_labels, target="label")

NAMES = np.array(["cat", "dog", "owl"])


@pytest.fixture
def table(tmp_path, monkeypatch):
    """150 rows of three classes with a remark on each, and their classes by row."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    codes = np.arange(150) % 3
    frame = pd.DataFrame(rng.normal(size=(150, 10)) + 2 * np.eye(3, 10)[codes])
    frame.columns = [f"v{k}" for k in range(10)]
    frame.insert(3, "remark", [f"number {k}, {'a' * (k % 7)}" for k in range(150)])
    frame.to_csv("rows.csv", index=False)
    return tmp_path / "rows.csv", dict(
        # The names of the columns are row 1 of the file.
        zip(map(str, range(2, 152)), NAMES[codes], strict=True)
    )


def fill(truth, most=None, path="to_label.csv"):
    """Answer the open rows of a file, or the first of them."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    open_rows = frame.index[frame["label"] == ""][:most]
    frame.loc[open_rows, "label"] = frame["file_row"][open_rows].map(truth)
    frame.to_csv(path, index=False)


def test_a_first_round_asks_for_representative_rows_with_what_a_person_needs(table):
    path, truth = table
    asked = ask(path, 9, n_test=4)
    frame = pd.read_csv("to_label.csv", dtype=str, keep_default_na=False)
    assert list(frame.columns[:5]) == ["file_row", "label", "how", "round", "guess"]
    assert list(frame.columns[5:]) == [
        "v0",
        "v1",
        "v2",
        "remark",
        *(f"v{k}" for k in range(3, 8)),
    ]
    assert frame["how"].tolist() == [RANDOM] * 4 + [CHOSEN] * 9
    assert set(frame["round"]) == {"1"}
    assert set(frame["label"]) == set(frame["guess"]) == {""}
    assert frame["remark"].tolist() == [
        f"number {k}, {'a' * (k % 7)}" for k in frame["file_row"].astype(int) - 2
    ]
    assert (asked.n_chosen, asked.n_random, asked.n_left) == (9, 4, 137)
    assert len({truth[row] for row in frame["file_row"]}) == 3


def test_rounds_keep_answers_and_open_rows_and_add_guesses(table):
    path, truth = table
    ask(path, 12)
    fill(truth, most=10)
    before = Answers.read(path.parent / "to_label.csv", "file_row", "label")
    asked = ask(path, 6, n_test=5)
    after = asked.answers
    assert after.labels == before.labels
    assert after.ids()[:12] == before.ids()
    assert len(set(after.ids())) == 23
    assert asked.n_open == 2
    assert any(
        "2 rows of earlier rounds in to_label.csv have no answer yet." in line
        for line in asked.lines
    )
    new = after.frame[after.frame["round"] == "2"]
    labeled = read_table(path, labels="to_label.csv", id="file_row")
    model = pipeline(preprocessing(labeled.features), AverageLDA(proportions="free"))
    predicted = model.fit(labeled.features, labeled.labels).predict(labeled.features)
    assert new["guess"].tolist() == predicted[new["file_row"].astype(int) - 2].tolist()
    assert len(set(new["guess"])) > 1


def test_rows_are_added_only_once_the_last_ones_have_an_answer(table):
    path, truth = table
    ask(path, 8, n_test=4)
    before = (path.parent / "to_label.csv").read_bytes()
    again = ask(path, 8, n_test=4)
    assert (again.n_chosen, again.n_random, again.n_open) == (0, 0, 12)
    assert again.n_not_added == 12
    sentence = "12 rows in to_label.csv still wait for an answer, so none was added."
    assert sentence in again.lines
    assert (path.parent / "to_label.csv").read_bytes() == before

    # As many as are wanted come on request, or with the first answer.
    more = ask(path, 5, more=True)
    assert (more.n_chosen, more.n_open, more.n_not_added) == (5, 12, 0)
    assert ask(path, 200).n_not_added == 150 - 17
    fill(truth, most=13)
    later = ask(path, 6)
    assert (later.n_labels, later.n_chosen, later.n_open) == (13, 6, 4)


def test_a_row_that_gets_its_class_in_the_table_waits_for_no_answer(table):
    path, truth = table
    frame = pd.read_csv(path)
    frame["label"] = [truth[str(k + 2)] if k < 20 else None for k in range(150)]
    frame.to_csv(path, index=False)
    asked = ask(path, 3).answers.ids()
    assert ask(path, 3).n_not_added == 3
    frame.loc[int(asked[1]) - 2, "label"] = truth[asked[1]]
    frame.to_csv(path, index=False)
    again = ask(path, 3)
    assert (again.n_not_added, again.n_open, again.n_chosen) == (0, 2, 3)


def test_a_round_that_changed_no_tested_prediction_is_said_to_have_changed_nothing():
    estimate = estimate_error_of_all_labels(np.zeros(20), 25, 5)
    progress = Progress(estimate, error_before=0.0, n_labels=25, n_last=5)
    expected = ". The 5 labels of the last round did not change it. It is not clear"
    assert expected in str(progress)


@pytest.mark.parametrize(
    ("n_right", "n_wrong", "sentence"),
    [
        (2, 0, "with these labels, 2 more test rows are classified correctly. "),
        (3, 2, "with these labels, 1 more test row is classified correctly. "),
        (
            0,
            1,
            "The 5 labels of the last round made no clear difference (15 % without "
            "them). It is not clear",
        ),
        (
            1,
            4,
            "The 5 labels of the last round made no clear difference (5.0 % without "
            "them). ",
        ),
        (0, 5, "with these labels, 5 fewer test rows are classified correctly. "),
    ],
)
def test_what_the_last_labels_changed_is_said_in_test_rows(n_right, n_wrong, sentence):
    estimate = estimate_error_of_all_labels(np.arange(20) < 4, 25, 5)
    error_before = (4 + n_right - n_wrong) / 20
    said = str(Progress(estimate, "", error_before, n_right, n_wrong, 25, 5))
    assert sentence in said


def test_as_many_test_rows_right_as_wrong_are_no_change():
    estimate = estimate_error_of_all_labels(np.arange(20) < 4, 25, 5)
    progress = Progress(estimate, "", 0.2, 1, 1, n_labels=25, n_last=5)
    assert "The 5 labels of the last round did not change it." in str(progress)


def test_the_error_is_withheld_and_then_that_of_random_labels(table):
    path, truth = table
    ask(path, 12)
    fill(truth)
    asked = ask(path, 6, n_test=30)
    assert asked.progress.estimate is None
    assert str(asked.progress).endswith("there are 0 among 12 labels.")
    assert asked.answers.ids(RANDOM)
    fill(truth)
    progress = ask(path, 0).progress
    assert progress.estimate.n_rows == 30
    assert progress.estimate.low <= progress.estimate.error < progress.estimate.high
    assert progress.n_last == 36
    net = (progress.n_became_right - progress.n_became_wrong) / 30
    assert progress.error_before - progress.estimate.error == pytest.approx(net)


@pytest.mark.parametrize(("n_right", "n_wrong"), [(1, 0), (4, 3), (2, 6)])
def test_without_a_clear_fall_nothing_is_predicted(n_right, n_wrong):
    error = ErrorEstimate(0.3, 0.2, 0.4, 50)
    before = 0.3 + (n_right - n_wrong) / 50
    progress = Progress(error, "", before, n_right, n_wrong, n_labels=60, n_last=20)
    assert progress.error_after_more is None
    assert "It is not clear yet" in str(progress)


def test_what_more_labels_bring_follows_a_power_law():
    error = ErrorEstimate(0.2, 0.1, 0.3, 50)
    progress = Progress(error, "", 0.4, 10, 0, n_labels=40, n_last=20)
    # Half the error at twice the labels.
    assert progress.error_after_more == pytest.approx(0.2 * 40 / 50)
    assert "lower the error by about 4.0 percentage points" in str(progress)


def test_rows_that_are_left_are_all_asked_for_and_then_nothing_is(table):
    path, truth = table
    asked = ask(path, 140, n_test=20)
    assert (asked.n_random, asked.n_chosen, asked.n_left) == (20, 130, 0)
    assert any(
        "160 rows were wanted, but only 150 were left." in text
        for text in asked.remarks
    )
    assert "No more rows are left to ask for." in ask(path, 5).lines
    fill(truth)
    before = (path.parent / "to_label.csv").read_bytes()
    assert "All rows are labeled." in ask(path, 5).lines
    assert (path.parent / "to_label.csv").read_bytes() == before


def test_labels_of_the_file_count_and_join_the_answers(table):
    path, truth = table
    frame = pd.read_csv(path)
    frame["kind"] = [truth[str(k + 2)] if k < 20 else None for k in range(150)]
    frame.to_csv(path, index=False)
    asked = ask_for_labels(path, 5, target="kind")
    assert asked.n_labels == 20
    # Taken for a random sample.
    assert asked.progress.estimate.n_rows == 20
    assert min(int(row) for row in asked.answers.ids()) >= 2 + 20
    answers = asked.answers
    for row in answers.ids():
        answers = answers.answering(row, truth[row])
    answers.write()
    joined = read_table(path, target="kind", labels="to_label.csv", id="file_row")
    assert (joined.is_labeled.sum(), joined.n_chosen, joined.is_random.sum()) == (
        25,
        5,
        20,
    )


def test_a_changed_file_is_refused_and_answers_stay(table):
    path, truth = table
    ask(path, 12)
    fill(truth)
    before = (path.parent / "to_label.csv").read_bytes()
    pd.read_csv(path).sample(frac=1, random_state=0).to_csv(path, index=False)
    with pytest.raises(ValueError, match="rows look different"):
        ask(path, 5)
    assert (path.parent / "to_label.csv").read_bytes() == before


def test_a_spreadsheet_may_round_what_it_shows(table):
    path, truth = table
    ask(path, 12)
    fill(truth)
    frame = pd.read_csv("to_label.csv")
    frame.round(4).to_csv("to_label.csv", index=False, sep=";", decimal=",")
    assert ask(path, 5).n_labels == 12


def test_a_fit_uses_no_shares_of_chosen_labels_and_withholds_its_error(table):
    path, truth = table
    ask(path, 15)
    fill(truth)
    chosen = read_table(path, labels="to_label.csv", id="file_row")
    model, report = fit_table(chosen)
    assert (report.error, report.learned, report.method) == (None, "", "ensemble")
    assert "there are 0 among 15 labels" in report.withheld
    averages = [model[-1].members_[name] for name in ("linear", "kernel")]
    assert all("labeled shares" not in each.member_weights_ for each in averages)
    with pytest.raises(ParameterError, match="15 of these were chosen"):
        fit_table(chosen, proportions="labeled")
    with pytest.raises(ParameterError, match="15 of these were chosen"):
        fit_table(chosen, find_method("iclda-proportions"))
    warned = fit_table(chosen, find_method("supervised"))[1].warnings
    assert any(
        "takes the class shares of the labels, and 15" in text for text in warned
    )
    ask(path, 0, n_test=20)
    fill(truth)
    both = read_table(path, labels="to_label.csv", id="file_row")
    _, report = fit_table(both)
    assert (report.n_tested, report.error["n_rows"], report.withheld) == (20, 20, "")


def test_rows_without_features_are_drawn_at_random(tmp_path):
    path = tmp_path / "texts.csv"
    pd.DataFrame({"text": [f"sentence number {k}" for k in range(40)]}).to_csv(
        path, index=False
    )
    labels = tmp_path / "l.csv"
    asked = ask(path, 10, labels=labels)
    assert (asked.n_chosen, asked.n_random) == (0, 10)
    answers = asked.answers.answering(asked.answers.ids()[0], "a")
    answers.answering(asked.answers.ids()[1], "b").write()
    lines = ask(path, 5, labels=labels).lines
    assert any(
        "texts.csv has no column that a model can learn from" in line for line in lines
    )


def test_answers_that_an_earlier_version_began_keep_their_numbers_from_0(table):
    path, truth = table
    begun = ask(path, 9, id="row")
    assert begun.answers.id == "row"
    answers = pd.read_csv("to_label.csv", dtype=str, keep_default_na=False)
    numbers = answers["row"].astype(int)
    answers["label"] = [truth[str(number + 2)] for number in numbers]
    answers.to_csv("to_label.csv", index=False)
    # Without an id, the column of the file of answers is taken for what it was.
    asked = ask(path, 6)
    assert (asked.answers.id, asked.n_labels) == ("row", 9)
    added = asked.answers.frame[9:]
    remarks = pd.read_csv(path)["remark"].str.strip()
    assert added["remark"].tolist() == remarks[added["row"].astype(int)].tolist()
    assert "counts the rows of" in asked.lines[-1]
    assert "from 0, as in earlier versions: 0 is row 2 of the file." in asked.lines[-1]
    labeled = read_table(path, labels="to_label.csv", id="row")
    assert labeled.is_labeled.nonzero()[0].tolist() == sorted(numbers)


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet"])
def test_rows_of_a_table_have_the_numbers_of_a_spreadsheet(table, suffix):
    path, _ = table
    frame = pd.read_csv(path)
    path = path.with_suffix(f".{suffix}")
    if suffix == "xlsx":
        pytest.importorskip("openpyxl", reason="Excel files need iclda[excel]")
        frame.to_excel(path, index=False)
    elif suffix == "parquet":
        frame.to_parquet(path)
    asked = ask(path, 9)
    shown = asked.answers.frame
    positions = shown["file_row"].astype(int) - 2
    remarks = frame["remark"].str.strip()
    assert shown["remark"].tolist() == remarks[positions].tolist()
    assert asked.lines[-1].endswith(f"the header of {path} is row 1.")


def test_empty_lines_before_the_names_are_counted_as_in_messages(tmp_path):
    lines = "\n\nx,remark\n" + "".join(f"{k},at {k + 4}\n" for k in range(20))
    (tmp_path / "t.csv").write_text(lines)
    shown = ask(tmp_path / "t.csv", 5, labels=tmp_path / "l.csv").answers.frame
    assert shown["remark"].tolist() == [f"at {row}" for row in shown["file_row"]]


def test_a_column_named_row_identifies_rows(table):
    path, _ = table
    frame = pd.read_csv(path)
    frame["row"] = [f"r{k}" for k in range(150)]
    frame.to_csv(path, index=False)
    assert all(id.startswith("r") for id in ask(path, 5).answers.ids())


def test_ids_that_do_not_identify_the_rows_are_refused_before_anything_is_written(
    tmp_path,
):
    path = tmp_path / "t.csv"
    labels = tmp_path / "to_label.csv"
    path.write_text("name,x\n" + "".join(f"n{k % 9},{k}\n" for k in range(10)))
    with pytest.raises(
        ValueError, match="must identify the rows, but 'n0' occurs 2 times"
    ):
        ask(path, 2, id="name", labels=labels)
    for n_empty in (1, 2):
        rows = [",0\n"] * n_empty + [f"n{k},{k}\n" for k in range(10)]
        path.write_text("name,x\n" + "".join(rows))
        with pytest.raises(ValueError, match="the rows, but a cell is empty"):
            ask(path, 2, id="name", labels=labels)
    assert not labels.exists()
