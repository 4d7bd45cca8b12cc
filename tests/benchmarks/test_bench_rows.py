from pathlib import Path

from suite.document import measured_part
from suite.rows import Note, read_run, write_run
from suite.tables import render
from tests.helpers.bench_rows import row, run_of

ROOT = Path(__file__).parents[2]


def test_a_run_survives_its_file(tmp_path):
    run = run_of(
        row(objective=-70.12345678, gap=3e-8, n_passes=5),
        row(seed=3, failure="no\nluck"),
    )
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
