import pytest

from bench_advice import HELD_OUT, TUNED, run, summarize


def result(table, recommended, interval=(0.0, 0.3), **errors):
    found = {
        "table": table,
        "labels": 10,
        "seed": 0,
        "errors": errors,
        "recommended": recommended,
    }
    auto_interval = None if recommended == "b" else (0.0, 1.0)
    auto = {"auto": "a", "auto_interval": auto_interval}
    return {**found, **auto, "interval": list(interval), "expected": 0.1}


def test_tables_to_judge_by_are_not_those_tuned_on():
    assert not set(HELD_OUT) & set(TUNED)
    assert len(HELD_OUT) >= 10


def test_bars_are_those_of_the_runs():
    said = summarize(
        [result("one", "a", a=0.1, b=0.3), result("two", "b", a=0.3, b=0.2)]
    )
    assert "| compare recommends | 15.0% | 0.0 |" in said
    assert "| fit chooses | 20.0% | 10.0 | two, 10 labels |" in said
    assert "best single policy 20.00%: met." in said
    assert "Interval covers in 100% of runs, at least 85%: met (fit: 100%)" in said
    missed = summarize(
        [result("one", "b", (0.0, 0.05), a=0.1, b=0.3), result("two", "a", a=0, b=1)]
    )
    assert "Mean error 15.00%, best single policy 5.00%: MISSED." in missed
    assert "Worst regret 20.0 points, at most 8: MISSED." in missed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_run_judges_all_policies_on_rows_that_nothing_was_told_about():
    found = run("made 6", TUNED["made 6"](), 20, 0, 2)
    assert found["recommended"] in found["errors"]
    assert found["auto"] in found["errors"]
    assert found["interval"][0] <= found["expected"] <= found["interval"][1]
