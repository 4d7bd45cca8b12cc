"""How far a run is: bars on a terminal, lines elsewhere, nothing where quiet is asked for."""

import sys

import pytest

from iclda._progress import cell_lines, show_cells, spinner


def test_lines_come_now_and_then_and_say_that_fits_failed(capsys, monkeypatch):
    advance = cell_lines("splits")
    advance("comparison", 1, 10, 0)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("iclda._progress.SECONDS_BETWEEN_LINES", 0.0)
    advance("comparison", 10, 10, 19)
    assert capsys.readouterr().err == "comparison: 10 of 10 splits, 19 fits failed\n"


def test_a_bar_on_a_terminal_counts_cells_and_failed_fits(capsys, monkeypatch):
    pytest.importorskip("rich", reason="bars need iclda[experiments]")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    with show_cells(quiet=False, unit="splits") as advance:
        advance("comparison", 3, 10, 2)
        advance("curve of labeled rows", 4, 4, 0)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "3/10" in shown.err
    assert "2 fits failed" in shown.err
    assert "curve of labeled rows" in shown.err
    assert "4/4" in shown.err


def test_quiet_shows_nothing(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with spinner("Reading", quiet=True), show_cells(quiet=True) as advance:
        advance("tables", 1, 2, 0)
    assert capsys.readouterr().err == ""
