import pytest

import run as program
from suite.rows import read_run, write_run
from suite.timing import take_turns
from tests.helpers.bench_rows import row, run_of


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


@pytest.fixture
def stored(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "STORED", tmp_path / "stored.json")
    return program.STORED


def test_a_quick_run_writes_rows_tables_and_figure(tmp_path, stored, capsys):
    arguments = [
        "--quick",
        "--only",
        "small",
        "--only",
        "predict",
        "--out",
        str(tmp_path / "out"),
    ]
    assert program.main(arguments) == 0
    assert "Not compared" in capsys.readouterr().out
    rows = read_run(tmp_path / "out" / "bench.json").rows
    assert {found.case for found in rows} == {"small", "predict"}
    assert not [found for found in rows if found.failure]
    ours = [found for found in rows if found.method == "ICLDA"]
    assert all(
        found.gap <= 1e-6 and found.n_passes and found.objective for found in ours
    )
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"bench.json", "tables.md", "scaling.svg", "scaling.png"}


def test_the_default_is_measured_beside_em_if_it_is_named(tmp_path, stored):
    arguments = ["--quick", "--only", "default", "--out", str(tmp_path)]
    assert program.main(arguments) == 0
    rows = read_run(tmp_path / "bench.json").rows
    assert not [found for found in rows if found.failure]
    assert {"ICLDA beside EM", "ICLDA", "AutoLDA"} == {found.method for found in rows}
    text = (tmp_path / "tables.md").read_text()
    assert "What people call first" in text
    assert "commands" in text


def test_a_whole_run_leaves_out_what_has_no_share_of_the_time(monkeypatch, tmp_path):
    chosen = []

    def measure(cases, settings):
        chosen.append({case.name for case in cases})
        return run_of()

    monkeypatch.setattr(program, "measure", measure)
    for more in ([], ["--all"], ["--only", "default"]):
        program.main(["--quick", "--out", str(tmp_path), *more])
    assert chosen[1] - chosen[0] == chosen[2] == {"default"}


@pytest.fixture
def measured_as(tmp_path, stored, monkeypatch):
    """Run the program where a measurement gives a row: its exit code, what it ran."""

    def run(found, **machine):
        here = {**program.describe_machine(), **machine}
        write_run(run_of(row(n_passes=5), **here), stored)
        runs = []

        def measure(cases, settings):
            runs.append([case.name for case in cases])
            return run_of(found, **program.describe_machine())

        monkeypatch.setattr(program, "measure", measure)
        code = program.main(["--out", str(tmp_path / "out"), "--only", "large"])
        return code, runs

    return run


@pytest.mark.parametrize(("n_passes", "code"), [(5, 0), (10, 1)])
def test_the_exit_code_is_1_if_and_only_if_a_fit_takes_more_passes(
    n_passes, code, measured_as
):
    assert measured_as(row(n_passes=n_passes)) == (code, [["large"]])


def test_what_is_slow_is_measured_again_shown_and_does_not_fail(measured_as, capsys):
    assert measured_as(row(10.0, n_passes=5)) == (0, [["large"]] * 2)
    assert "- slower: large ICLDA" in capsys.readouterr().out


def test_on_another_machine_nothing_is_measured_again(measured_as):
    assert measured_as(row(10.0, n_passes=5), cores=999) == (0, [["large"]])


@pytest.mark.parametrize(
    "options",
    [
        ["--seeds", "0"],
        ["--store", "--quick"],
        ["--write-docs", "nowhere.json"],
        ["--out", __file__],
    ],
)
def test_what_cannot_be_measured_or_kept_is_refused(
    options, stored, monkeypatch, capsys
):
    monkeypatch.setattr(program, "measure", None)
    with pytest.raises(SystemExit) as refused:
        program.main(options)
    assert refused.value.code == 2
    assert options[0] in capsys.readouterr().err
