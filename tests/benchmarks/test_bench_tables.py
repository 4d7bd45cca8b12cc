import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

import bench_tables
from few_labels import contestants, mixed
from few_labels.bars import summarize
from few_labels.contestants import CONTESTANTS, Contestant, measure_cell, member_errors
from few_labels.draws import draw_rows, measured_labels
from few_labels.mixed import MixedTable, measure_mixed, summarize_mixed
from few_labels.sets import KEPT, TUNED, encode
from few_labels.store import CellStore, key_of
from iclda import AutoLDA


def cell(table="one", labels_a_class=2, draw=0, own=0.2, peer=0.3, **changes):
    others = dict.fromkeys(CONTESTANTS, 0.9)
    errors = {**others, "AutoLDA": own, "sklearn: SVC": peer}
    made = {
        "part": "tables",
        "table": table,
        "labels": 5 * labels_a_class,
        "labels_a_class": labels_a_class,
        "draw": draw,
        "n_columns": 4,
        "n_classes": 2,
        "errors": errors,
        "seconds": dict.fromkeys(CONTESTANTS, 1.0),
        "failures": {},
        "interval": [0.1, 0.3],
        "members": {},
    }
    return {**made, **changes}


def mixed_cell(table, own, logistic, forest, draw=0):
    errors = {
        "iclda fit": own,
        "sklearn: logistic": logistic,
        "sklearn: random forest": forest,
    }
    return {
        "part": "mixed",
        "table": table,
        "labels": 30,
        "draw": draw,
        "errors": errors,
        "seconds": dict.fromkeys(errors, 2.0),
        "failures": {},
    }


def two_clusters(n_rows=300):
    rng = np.random.default_rng(0)
    codes = np.arange(n_rows) % 2
    return rng.normal(size=(n_rows, 2)) + 4 * codes[:, None], codes


def test_tables_kept_apart_are_not_those_tuned_on():
    assert not set(KEPT) & set(TUNED)
    assert len(KEPT) >= 20


@pytest.mark.parametrize("seed", range(5))
def test_rare_classes_have_two_labels_and_no_row_has_two_parts(seed):
    codes = np.repeat([0, 1, 2], [900, 95, 5])
    rows = draw_rows(codes, 20, seed)
    assert len(rows.labeled) == 20
    assert np.bincount(codes[rows.labeled], minlength=3).min() >= 2
    every = np.concatenate([rows.train, rows.new])
    assert sorted(every) == list(range(1_000))
    assert (rows.labels(codes)[:20] == codes[rows.labeled]).all()
    assert (rows.labels(codes)[20:] == -1).all()


def test_draws_stop_at_1000_unlabeled_and_2000_new_rows():
    rows = draw_rows(np.arange(10_000) % 2, 10, seed=0)
    assert (len(rows.unlabeled), len(rows.new)) == (1_000, 2_000)
    every = draw_rows(np.arange(10_000) % 2, 10, seed=0, n_most_new=None)
    assert len(every.new) == 10_000 - 1_010


@pytest.mark.parametrize(
    ("n_rows", "n_classes", "labels"),
    [
        (1_000, 2, {2: 10, 4: 20, 8: 50, 16: 100}),
        (1_000, 10, {2: 20, 4: 40, 8: 80, 16: 160}),
        (169, 2, {2: 10, 4: 20}),
        (100, 2, {}),
    ],
)
def test_labels_are_measured_where_75_new_rows_are_left(n_rows, n_classes, labels):
    assert measured_labels(np.arange(n_rows) % n_classes) == labels


def test_a_class_of_one_row_is_not_measured():
    assert measured_labels(np.repeat([0, 1], [1_000, 1])) == {}


def test_text_becomes_dummies_and_constant_columns_leave():
    table = pd.DataFrame(
        {
            "size": [1.0, None, 3.0],
            "color": ["red", "blue", "red"],
            "planet": ["Earth"] * 3,
            "class": ["b ", "a", "b"],
        }
    )
    X, codes = encode(table, "class")
    assert sorted(X.tolist()) == [[1, 1], [2, 0], [3, 1]]
    assert sorted(codes) == [0, 1, 1]


def test_bars_are_those_of_the_cells():
    cells = [cell("one", 2), cell("two", 2, own=0.4, peer=0.5)]
    said = summarize(cells)
    assert "| AutoLDA | 30.0 | 30.0 |  |  |  |" in said
    assert "| sklearn: SVC | 40.0 | 40.0 |  |  |  |" in said
    assert "AutoLDA has 30.0 %, the best peer (sklearn: SVC) 40.0 %" in said
    assert "a lead of 10.0 points, at least 2: met" in said
    assert "The worst regret of a table is 0.0 points, at most 10: met" in said
    assert "50.0 % of 2 draws (0 state none), at least 88 %: MISSED" in said
    assert "1.0 s at most, at most 3: met" in said


def test_bars_that_are_missed_say_so_and_where():
    cells = [cell("one", 2, own=0.2, peer=0.21), cell("two", 4, own=0.5, peer=0.1)]
    said = summarize([*cells, cell("one", 4, own=0.1, peer=0.3)])
    assert "a lead of -6.3 points, at least 2: MISSED" in said
    assert "With 2 labels a class 20.0 %, at most that of the best peer there" in said
    assert "The worst regret of a table is 40.0 points, at most 10: MISSED" in said
    assert "The mean regret of a table is 20.0 points, at most 3: MISSED" in said
    assert "two 40.0 (sklearn: SVC); one 0.0 (AutoLDA)" in said
    assert "two with 4 a class 40.0 (sklearn: SVC)" in said


def test_draws_count_alike_in_every_table():
    cells = [cell("one", own=0.1 * draw, draw=draw) for draw in range(3)]
    assert "| AutoLDA | 20.0 |" in summarize([*cells, cell("two", own=0.3)])


def test_members_are_shown_when_asked_for():
    cells = [cell(members={"forest": 0.25}), cell("two")]
    assert "| member: forest | 25.0 | 25.0 |  |  |  |" in summarize(cells, True)
    assert "member" not in summarize(cells)


def test_members_answer_in_the_classes_of_the_ensemble():
    X, codes = make_blobs(60, centers=[[-9.0, 0.0], [9.0, 0.0]], random_state=0)
    truth = np.array([3, 7])[codes]
    y = np.where(np.arange(60) < 20, truth, -1)
    errors = member_errors(AutoLDA().fit(X, y), X, truth)
    assert errors["linear"] == errors["forest"] == 0.0
    assert errors["shares"] == 0.5
    average = AutoLDA(methods=["average"]).fit(X, y)
    assert member_errors(average, X, truth) == {}


@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_fails_is_named_and_calls_all_rows_the_most_frequent(monkeypatch):
    class Refuses:
        def fit(self, X, y):
            raise ValueError("no luck")

    monkeypatch.setattr(contestants, "CONTESTANTS", {"AutoLDA": Contestant(Refuses)})
    X, _ = two_clusters()
    codes = np.repeat([0, 1], [240, 60])
    found = measure_cell("made", (X, codes), 4, 20, 0)
    rows = draw_rows(codes, 20, 0)
    assert found["failures"] == {"AutoLDA": "ValueError: no luck"}
    assert found["errors"]["AutoLDA"] == (codes[rows.new] == 1).mean()
    complete = cell(failures=found["failures"])
    assert "FAILED: AutoLDA on one, 10 labels, draw 0" in summarize([complete])


@pytest.mark.filterwarnings("ignore")
def test_the_default_gets_the_table_as_it_is_and_peers_standardized(monkeypatch):
    seen = {}

    class Looks:
        def __init__(self, name):
            self.name = name

        def fit(self, X, y):
            seen[self.name] = X, y
            return self

        def predict(self, X):
            return np.zeros(len(X))

        error_ = error_interval_ = method_ = None

    looking = {
        name: Contestant(
            lambda n=name: Looks(n), contestant.is_scaled, contestant.uses_unlabeled
        )
        for name, contestant in CONTESTANTS.items()
    }
    monkeypatch.setattr(contestants, "CONTESTANTS", looking)
    X, codes = two_clusters()
    measure_cell("made", (X * 1_000, codes), 2, 10, 0)
    assert seen["AutoLDA"][0].std() > 1_000
    assert len(seen["AutoLDA"][0]) == 155
    assert (seen["AutoLDA"][1] == -1).sum() == 145
    for name in ("sklearn: SVC", "sklearn: LDA", "sklearn: logistic"):
        assert seen[name][0].std() < 2
        assert len(seen[name][0]) == 10
    assert seen["sklearn: extra trees"][0].std() > 1_000


def test_an_interrupted_run_continues_with_its_file(tmp_path, monkeypatch, capsys):
    measured = []

    def measure(name, columns, labels_a_class, n_labels, draw):
        if len(measured) == 5:
            raise KeyboardInterrupt
        found = cell(name, labels_a_class, draw, labels=n_labels)
        measured.append(key_of(found))
        return found

    monkeypatch.setitem(bench_tables.TABLES, "tuned", {"made": two_clusters})
    monkeypatch.setattr(contestants, "measure_cell", measure)
    out = tmp_path / "cells.json"
    arguments = ["--tables", "tuned", "--draws", "2", "--out", str(out)]
    with pytest.raises(KeyboardInterrupt):
        bench_tables.main(arguments)
    assert len(json.loads(out.read_text())) == 5

    monkeypatch.setattr(
        contestants,
        "measure_cell",
        lambda *given: cell(given[0], given[2], given[4], labels=given[3]),
    )
    bench_tables.main(arguments)
    stored = CellStore(out)
    assert len(json.loads(out.read_text())) == 8
    assert all(key in stored for key in measured)
    assert "8 draws of labels, 4 pairs" in capsys.readouterr().out


def test_a_list_of_tables_fits_nothing(monkeypatch, capsys):
    monkeypatch.setitem(bench_tables.TABLES, "kept", {"made": two_clusters})
    monkeypatch.setattr(contestants, "measure_cell", None)
    bench_tables.main(["--tables", "kept", "--list"])
    said = "made: 300 rows, 2 columns, 2 classes; labels: 10, 20, 50, 100"
    assert said in capsys.readouterr().out


def test_an_unknown_table_is_refused():
    with pytest.raises(SystemExit, match="--only must be a table, got 'pigs'"):
        bench_tables.main(["--only", "pigs"])


def test_bars_of_mixed_tables_are_over_tables():
    cells = [
        mixed_cell("penguins", 0.1, 0.2, 0.0),
        mixed_cell("penguins", 0.3, 0.4, 0.2, draw=1),
        mixed_cell("titanic", 0.4, 0.5, 0.3),
    ]
    said = summarize_mixed(cells)
    assert "| labels in all | mean | penguins | titanic |" in said
    assert "| iclda fit | 30.0 | 20.0 | 40.0 |" in said
    assert "below sklearn: logistic with 40.0 %: met; worse in 0 of 3 draws" in said
    assert "forest with 20.0 %: MISSED; worse in 3 of 3 draws" in said


@pytest.mark.filterwarnings("ignore")
def test_peers_read_the_files_that_the_command_reads(monkeypatch):
    X, codes = two_clusters()
    table = pd.DataFrame(X, columns=["length", "width"])
    table["shape"] = np.where(codes == 1, "round", "flat")
    table.loc[::7, "shape"] = None
    table["kind"] = np.where(codes == 1, "1", "0")
    monkeypatch.setattr(MixedTable, "load", lambda self: table)

    def predict(data, new, target):
        frame = pd.read_csv(data)
        assert frame[target].notna().sum() == 30
        assert len(frame) == 30 + 135
        assert target not in pd.read_csv(new)
        raise RuntimeError("the command said no")

    monkeypatch.setattr(mixed, "_predict_by_command", predict)
    found = measure_mixed("made", MixedTable("", "", "kind", 30), 0)
    assert found["failures"] == {"iclda fit": "RuntimeError: the command said no"}
    assert found["errors"]["iclda fit"] == pytest.approx(0.5, abs=0.1)
    assert found["errors"]["sklearn: logistic"] < 0.05
    assert found["errors"]["sklearn: random forest"] < 0.05


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cell_judges_all_contestants_and_keeps_what_is_stated():
    found = measure_cell("made 6", TUNED["made 6"](), 4, 20, 0)
    assert set(found["errors"]) == set(CONTESTANTS)
    assert not found["failures"]
    assert found["interval"][0] <= found["expected"] <= found["interval"][1]
    assert "| AutoLDA |" in summarize([found])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_command_line_reads_what_the_benchmark_writes(monkeypatch):
    X, codes = two_clusters()
    table = pd.DataFrame(X, columns=["length", "width"])
    table["kind"] = np.where(codes == 1, "round", "flat")
    monkeypatch.setattr(MixedTable, "load", lambda self: table)
    found = measure_mixed("made", MixedTable("", "", "kind", 30), 0)
    assert not found["failures"]
    assert found["errors"]["iclda fit"] < 0.05
