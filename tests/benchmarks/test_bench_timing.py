from pathlib import Path

import numpy as np
import pytest
from bench_rows import row, run_of

import run as program
from suite.cases import CASES
from suite.data import Size, make_data
from suite.document import measured_part
from suite.draw import write_figure
from suite.rows import read_run, write_run
from suite.timing import take_turns

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_unit_takes_its_turn_before_every_run():
    calls = []
    functions = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}
    timings, unit = take_turns(functions, lambda: calls.append("unit"), most=2)
    assert calls[-8:] == ["unit", "a", "unit", "b"] * 2
    assert [len(timing.runs) for timing in timings.values()] == [2, 2]
    assert unit > 0


def test_a_failure_is_kept_and_the_others_go_on():
    timings, _ = take_turns({"a": lambda: 1 / 0, "b": lambda: "fine"}, lambda: None)
    assert "ZeroDivisionError" in timings["a"].failure
    assert timings["a"].seconds is None
    assert timings["b"].result == "fine"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_data_are_gaussian_classes_with_labels_dealt_in_turn(dtype):
    data = make_data(Size(40_000, 3, n_classes=3, n_labeled=100, dtype=dtype), seed=1)
    assert data.X.dtype == dtype
    assert data.labels.tolist() == [k % 3 for k in range(100)]
    for k in range(3):
        rows = data.unlabeled[data.truth == k]
        assert len(rows) == pytest.approx(40_000 / 3, rel=0.05)
        assert np.abs(np.cov(rows.T) - np.eye(3)).max() < 0.1
    assert np.array_equal(make_data(data.size, seed=1).X, data.X)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "STORED", tmp_path / "stored.json")
    return program.STORED


def test_a_quick_run_writes_rows_tables_and_figure(tmp_path, stored, capsys):
    arguments = ["--quick", "--only", "small", "--only", "predict", "--out", str(tmp_path / "out")]
    assert program.main(arguments) == 0
    assert "Not compared" in capsys.readouterr().out
    rows = read_run(tmp_path / "out" / "bench.json").rows
    assert {found.case for found in rows} == {"small", "predict"}
    assert not [found for found in rows if found.failure]
    ours = [found for found in rows if found.method == "ICLDA"]
    assert all(found.gap <= 1e-6 and found.n_passes and found.objective for found in ours)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"bench.json", "tables.md", "scaling.svg", "scaling.png"}


def test_a_case_that_breaks_is_noted_and_keeps_its_rows(monkeypatch, capsys):
    def broken(case, settings, clock):
        yield row()
        raise RuntimeError("no such luck")

    case = type(CASES[0])("large", "title", 0.1, broken)
    run = program.measure([case], program.Settings())
    assert run.rows == [row()]
    assert run.notes[0].text == "broke off: RuntimeError: no such luck"


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (10.0, 1)])
def test_the_exit_code_is_1_if_and_only_if_a_fit_is_slow_twice(
    factor, code, tmp_path, stored, monkeypatch
):
    here = program.describe_machine()
    write_run(run_of(row(), **here), stored)
    runs = []

    def measure(cases, settings):
        runs.append([case.name for case in cases])
        return run_of(row(factor), **here)

    monkeypatch.setattr(program, "measure", measure)
    assert program.main(["--out", str(tmp_path / "out"), "--only", "large"]) == code
    assert runs == [["large"]] * (1 + code)


@pytest.mark.parametrize(
    "options",
    [
        ["--seeds", "0"],
        ["--store", "--quick"],
        ["--store", "--only", "large"],
        ["--write-docs", "nowhere.json"],
        ["--write-docs", "--quick"],
        ["--out", __file__],
    ],
)
def test_what_cannot_be_measured_or_kept_is_refused(options, stored, monkeypatch, capsys):
    monkeypatch.setattr(program, "measure", None)
    with pytest.raises(SystemExit) as refused:
        program.main(options)
    assert refused.value.code == 2
    assert options[0] in capsys.readouterr().err


def test_documents_are_written_from_the_stored_run_without_measuring(tmp_path, stored, monkeypatch):
    document = tmp_path / "performance.md"
    document.write_text(measured_part(None))
    monkeypatch.setattr(program, "DOCUMENT", document)
    monkeypatch.setattr(program, "measure", None)
    rows = [row(1e-6 * n, n_unlabeled=n, case="growth") for n in (10, 1_000)]
    write_run(run_of(*rows), stored)
    assert program.main(["--write-docs", str(stored)]) == 0
    assert document.read_text() == measured_part(read_run(stored))
    assert (tmp_path / "scaling.svg").is_file()


def test_figures_are_the_same_bytes_every_time(tmp_path):
    rows = [row(1e-6 * n, n_unlabeled=n, case="growth") for n in (10, 1_000)]
    rows += [row(1e-5 * n, n_unlabeled=n, case="growth", method="SelfTraining") for n in (10, 100)]
    first = [path.read_bytes() for path in write_figure(rows, tmp_path / "a")]
    assert first == [path.read_bytes() for path in write_figure(rows, tmp_path / "b")]
    assert write_figure([row()], tmp_path / "c") == []
