"""From rows to cells, and from cells to files."""

import csv
import dataclasses
import random
import statistics

import pytest
from result_rows import table_row, table_rows

from iclda.studies.cells import METHODS
from iclda.studies.page import Entry, TextTable, to_latex, to_markdown
from iclda.studies.paper.published import published_cells
from iclda.studies.paper.tables import (
    DatasetFacts,
    cells_csv,
    dataset_table,
    find_gaps,
    mark,
    repeat_values,
    summarize,
    table_files,
    text_table,
    write_tables,
)

CELL_COLUMNS = [
    "dataset",
    "method",
    "measure",
    "mean",
    "sd",
    "repeats",
    "published_mean",
    "published_sd",
    "z",
]


def failed(row):
    return dataclasses.replace(row, error=None, nll=None, nll_labeled=None, failure="Traceback")


def cell_of(cells, method, measure="error"):
    return next(c for c in cells if (c.method, c.measure) == (method, measure))


def test_a_repeat_weighs_its_folds_by_their_test_rows():
    rows = [table_row("A", 0, fold, "LDA", 0.1, 1.0, n_test=10) for fold in range(9)]
    rows.append(table_row("A", 0, 9, "LDA", 0.5, 3.0, n_test=30))
    assert repeat_values(rows, "error") == {("A", "LDA"): [pytest.approx(24 / 120)]}
    assert repeat_values(rows, "nll") == {("A", "LDA"): [pytest.approx(1.5)]}


def test_a_cell_is_mean_and_deviation_over_repeats_beside_the_published_one():
    rows = table_rows(repeats=5)
    values = repeat_values(rows, "error")["WDBC", "ICLDA"]
    cell = cell_of(summarize(rows), "ICLDA")
    published = published_cells()["WDBC", "ICLDA", "error"]
    assert (cell.mean, cell.sd) == pytest.approx(
        (statistics.fmean(values), statistics.stdev(values))
    )
    assert (cell.published_mean, cell.published_sd) == (published.mean, published.sd)
    standard_error = (cell.sd**2 / 5 + published.sd**2 / 20) ** 0.5
    assert cell.z == pytest.approx((cell.mean - published.mean) / standard_error)


def test_em_as_published_is_compared_and_em_as_defined_is_not():
    cells = summarize(table_rows())
    assert cell_of(cells, "EMLDA-as-published").published_mean == 0.3842
    assert cell_of(cells, "EMLDA").published_mean is None
    assert cell_of(cells, "EMLDA").z is None


def test_a_set_the_paper_lacks_has_no_published_numbers():
    assert all(cell.published_mean is None for cell in summarize(table_rows(("Mine",))))


def test_a_failed_fit_costs_its_repeat_and_is_said():
    rows = table_rows(methods=("LDA", "ICLDA"))
    rows[1] = failed(rows[1])
    cells = summarize(rows)
    assert cell_of(cells, "ICLDA").repeats == 3
    assert cell_of(cells, "LDA").repeats == 4
    (gap,) = find_gaps(rows)
    assert str(gap) == "WDBC, ICLDA: 3 of 4 repeats are complete, 1 failed fit"
    assert "†" in text_table(cells, "error", [gap]).body[0][2].text


def test_a_method_that_always_fails_is_empty_and_never_zero():
    rows = [
        failed(row) if row.method == "ICLDA" else row
        for row in table_rows(methods=("LDA", "ICLDA"))
    ]
    cell = cell_of(summarize(rows), "ICLDA")
    assert (cell.mean, cell.sd, cell.repeats, cell.z) == (None, None, 0, None)
    lines = list(csv.DictReader(cells_csv(summarize(rows)).splitlines()))
    assert [line["mean"] for line in lines if line["method"] == "ICLDA"] == ["", ""]
    assert str(find_gaps(rows)[0]).endswith("0 of 4 repeats are complete, 40 failed fits")


def test_a_repeat_under_way_does_not_count_yet():
    rows = table_rows(methods=("LDA",), repeats=2)[:-1]
    assert cell_of(summarize(rows), "LDA").repeats == 1
    assert cell_of(summarize(rows), "LDA").sd is None
    assert str(find_gaps(rows)[0]) == "WDBC, LDA: 1 of 2 repeats are complete"


def test_a_value_that_is_no_number_does_not_count():
    rows = table_rows(methods=("LDA",), repeats=2)
    rows[0] = dataclasses.replace(rows[0], nll=float("inf"))
    assert cell_of(summarize(rows), "LDA", "nll").repeats == 1
    assert cell_of(summarize(rows), "LDA", "error").repeats == 2


def test_a_measure_that_a_method_does_not_have_is_left_out():
    rows = [dataclasses.replace(row, nll=None) for row in table_rows(methods=("LabelSpreading",))]
    assert {cell.measure for cell in summarize(rows)} == {"error"}
    assert find_gaps(rows) == []


def test_tables_do_not_depend_on_the_order_of_the_rows():
    rows = table_rows(("WDBC", "Pima"))
    shuffled = random.Random(1).sample(rows, len(rows))
    assert table_files(shuffled) == table_files(rows)


def test_rows_of_other_experiments_are_ignored():
    rows = table_rows(methods=("LDA",))
    others = [dataclasses.replace(row, experiment="curves", error=0.9) for row in rows]
    assert summarize(rows + others) == summarize(rows)


def test_cells_csv_has_the_promised_columns_and_methods(tmp_path):
    rows = table_rows(("WDBC", "Pima"))
    write_tables(tmp_path, rows)
    with open(tmp_path / "tables" / "cells.csv", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == CELL_COLUMNS
    assert {line["method"] for line in lines} == set(METHODS)
    assert {line["measure"] for line in lines} == {"error", "nll"}
    assert len(lines) == 2 * len(METHODS) * 2
    cell = cell_of(summarize(rows), "LDA")
    line = next(ln for ln in lines if ln["dataset"] == "Pima" and ln["method"] == "LDA")
    assert float(line["mean"]) == pytest.approx(cell.mean, rel=1e-9)


def test_marks_follow_the_means():
    marks = mark(summarize(table_rows(repeats=10)), "error")
    assert "EMLDA" in marks.bold["WDBC"]
    assert "EMLDA-as-published" not in marks.bold["WDBC"]
    assert "LDAoracle" not in marks.bold["WDBC"]
    assert marks.contests["WDBC"].winner == "EMLDA"


def test_every_table_is_written_as_csv_markdown_and_latex(tmp_path):
    paths = write_tables(tmp_path, table_rows(), [DatasetFacts("WDBC", 568, 30, 2)])
    names = {path.name for path in paths}
    assert names == {"cells.csv"} | {
        f"{table}.{suffix}"
        for table in ("error", "loss", "datasets")
        for suffix in ("csv", "md", "tex")
    }
    assert all(path.read_text(encoding="utf-8") for path in paths)


def test_no_rows_give_an_empty_cells_file_and_no_tables():
    assert table_files([]) == {"cells.csv": ",".join(CELL_COLUMNS) + "\n"}


def test_the_dataset_table_shows_what_the_paper_printed():
    facts = [DatasetFacts("Mine", 99, 2, 3), DatasetFacts("Haberman", 305, 3, 2)]
    texts = [[entry.text for entry in row] for row in dataset_table(facts).body]
    assert texts == [
        ["Haberman", "305", "3", "2", "10", "4"],
        ["Mine", "99", "2", "3", "10", "\N{EN DASH}"],
    ]


def test_latex_and_markdown_escape_what_they_would_read_as_markup():
    table = TextTable("50% & more", ("a_b", "c"), ((Entry("x|y_1"), Entry("-1", True, True)),))
    latex = to_latex(table, "tab:a")
    assert r"\caption{50\% \& more}" in latex
    assert r"x|y\_1 & \textbf{\underline{$-$1}} \\" in latex
    assert r"\toprule" in latex
    assert r"| x\|y\_1 | **<u>-1</u>** |" in to_markdown(table)
