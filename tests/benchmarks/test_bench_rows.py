from pathlib import Path

import pytest
from bench_rows import row, run_of

from suite.document import measured_part
from suite.model import pass_costs
from suite.rows import Note, read_run, write_run
from suite.tables import exponent, render

ROOT = Path(__file__).parents[2]


def test_a_run_survives_its_file(tmp_path):
    run = run_of(row(objective=-70.12345678, gap=3e-8, n_passes=5), row(seed=3, failure="no\nluck"))
    run.notes.append(Note("threads", "left out"))
    write_run(run, tmp_path / "new" / "run.json")
    assert read_run(tmp_path / "new" / "run.json") == run


def test_the_document_shows_the_stored_run_and_no_other():
    stored = ROOT / "benchmarks" / "stored.json"
    run = read_run(stored) if stored.is_file() else None
    assert measured_part(run) in (ROOT / "docs" / "performance.md").read_text()


def test_a_goal_is_judged_at_its_own_size_only():
    assert "4.5 missed" in render(run_of(row(1.0, 0.1)))
    assert "4.5 met" in render(run_of(row(0.4, 0.1)))
    assert "4.5" not in render(run_of(row(1.0, 0.1, n_unlabeled=3_000)))


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_exponent_of_a_power_is_that_power(power):
    rows = [row(1e-6 * n**power, n_unlabeled=n, seed=s) for n in (10, 100, 1_000) for s in (0, 1)]
    assert exponent(rows) == pytest.approx(power)
    assert exponent(rows[:2]) is None


def test_the_prices_of_the_model_explain_the_fits_they_were_read_from():
    rows = [
        row(0.15, method="MCLDA"),
        row(0.15 + 4 * 0.04, method="SLLDA", n_iter=3, n_passes=5),
        row(0.15 + 12 * 0.06, method="EMLDA", n_iter=10, n_passes=13),
        row(0.15 + 4 * 0.06 + 0.05, method="ICLDA", n_passes=5),
    ]
    prices = pass_costs(rows)
    assert prices == pytest.approx(
        {"moments": 1.5, "hard pass": 0.4, "soft pass": 0.6, "rest": 0.5}
    )
