"""How far a run is: bars on a terminal, lines elsewhere, nothing if quiet."""

import re
import sys

import pytest

from iclda._progress import show_cells


@pytest.mark.parametrize(
    ("calls", "line"),
    [
        ([], r"Fitting: \d+ s elapsed\n"),
        ([("a", 0, 10, 0)], r"a: 0 of 10 splits, \d+ s elapsed\n"),
        (
            [("a", 0, 9, 0), ("a", 3, 9, 2)],
            r"a: 3 of 9 splits, .* s left, 2 fits failed\n",
        ),
        ([("a", 9, 9, 0), ("b", 1, 4, 0)], r"b: 1 of 4 splits, \d+ s elapsed\n"),
    ],
)
def test_lines_come_at_intervals_even_if_nothing_advances(
    capsys, monkeypatch, calls, line
):
    monkeypatch.setattr("iclda._progress.SECONDS_BETWEEN_LINES", 0.01)
    with show_cells(quiet=False, unit="splits", title="Fitting") as advance:
        for call in calls:
            advance(*call)
        shown = ""
        while not re.search(
            line,
            shown,
            # The limit of a test ends this if no line comes.
        ):
            shown += capsys.readouterr().err


def test_a_bar_on_a_terminal_counts_cells_and_failed_fits(capsys, monkeypatch):
    pytest.importorskip("rich", reason="bars need iclda[experiments]")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    with show_cells(quiet=False, unit="splits") as advance:
        advance("comparison", 3, 10, 2)
        advance("curve of labeled rows", 4, 4, 0)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "3 of 10" in shown.err
    assert re.search(r"elapsed \S+ left \S+\s", shown.err)
    assert "2 fits failed" in shown.err
    assert "curve of labeled rows" in shown.err
    assert "4 of 4" in shown.err


def test_a_bar_that_counted_nothing_leaves_nothing_on_the_screen(capsys, monkeypatch):
    pytest.importorskip("rich", reason="bars need iclda[experiments]")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with show_cells(quiet=False, title="Reading"):
        pass
    shown = capsys.readouterr().err
    assert "left" not in shown
    assert "Reading" not in shown.rpartition("\x1b[2K")[2]


def test_quiet_shows_nothing(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with show_cells(quiet=True) as advance:
        advance("tables", 1, 2, 0)
    assert capsys.readouterr().err == ""
