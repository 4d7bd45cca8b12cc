"""Bold and underlined cells: the rule, what is printed, and how far they agree."""

import csv
import os
import statistics
from collections import defaultdict
from pathlib import Path

import pytest
from scipy.stats import ttest_ind

from iclda.studies.paper.design import PUBLISHED_EM, PUBLISHED_METHODS, TABLE_MEASURES
from iclda.studies.paper.marks import (
    FOUR,
    CellStatistics,
    as_in_paper,
    count_marks,
    is_clearly_lower,
    marks_of,
    published_table,
)
from iclda.studies.paper.published import read_cells


@pytest.fixture(scope="module")
def repeats():
    """The values of the paper's repeats, by data set, method and measure."""
    folder = os.environ.get("ICLDA_REFERENCE")
    if not folder:
        pytest.skip("ICLDA_REFERENCE does not name a directory that holds paper/")
    values = defaultdict(list)
    path = Path(folder) / "paper" / "cv-repeats.csv"
    with open(path, encoding="utf-8") as file:
        for line in csv.DictReader(file):
            key = line["dataset"], line["method"], line["measure"]
            values[key].append(float(line["value"]))
    return values


def p_of_welch(values, others):
    return ttest_ind(values, others, equal_var=False).pvalue


def test_printed_marks_are_those_of_the_code_of_the_paper_on_its_repeats(repeats):
    for (dataset, method, measure), cell in read_cells().items():
        values = {name: repeats[dataset, name, measure] for name in PUBLISHED_METHODS}
        means = {name: statistics.fmean(each) for name, each in values.items()}
        marks = []
        if method in FOUR:
            is_lower = means[method] < means["LDA"]
            if is_lower and p_of_welch(values[method], values["LDA"]) < 0.05:
                marks.append("bold")
            # The column that the code took for that of the second best.
            wrong = PUBLISHED_METHODS[PUBLISHED_METHODS.index(method) - 2]
            is_best = method == min(FOUR, key=means.get)
            if is_best and p_of_welch(values[method], values[wrong]) < 0.05:
                marks.append("underlined")
        assert cell.marks == " ".join(marks)


def test_welchs_test_on_means_and_deviations_is_that_on_the_repeats(repeats):
    for (dataset, _, measure), values in repeats.items():
        lda = repeats[dataset, "LDA", measure]
        samples = (
            CellStatistics(statistics.fmean(each), statistics.stdev(each), len(each))
            for each in (values, lda)
        )
        is_lower = statistics.fmean(values) < statistics.fmean(lda)
        expected = is_lower and p_of_welch(values, lda) < 0.05
        assert is_clearly_lower(*samples) == expected


def test_the_rule_gives_every_printed_bold_and_half_of_the_16_underlines():
    table = published_table()
    error, loss = (count_marks(table, measure) for measure in ("error", "nll"))
    assert (error.n_same_bold, loss.n_same_bold) == (40, 40)
    assert (error.n_underlined, loss.n_underlined) == (8, 8)
    assert error.remaining == ["SPECT", "WDBC"]
    assert loss.remaining == [
        "BCI",
        "Ionosphere",
        "Parkinsons",
        "Pima",
        "SPECT",
        "Transfusion",
    ]
    # The rule underlines no cell that is not underlined in print.
    assert (error.underlined, loss.underlined) == (error.remaining, loss.remaining)


def samples_of(**means):
    return {name: CellStatistics(mean, 0.01, 20) for name, mean in means.items()}


def test_a_cell_is_bold_if_it_is_better_than_lda_and_not_if_it_is_worse():
    samples = samples_of(LDA=0.30, ICLDA=0.25, SLLDA=0.299, EMLDA=0.4)
    assert marks_of("ICLDA", samples) == "bold"
    for method in ("LDA", "SLLDA", "EMLDA"):
        assert marks_of(method, samples) == ""


def test_only_the_best_of_the_four_is_underlined_and_only_if_the_second_is_far():
    samples = samples_of(LDA=0.30, MCLDA=0.25, EMLDA=0.40, SLLDA=0.35, ICLDA=0.28)
    marks = {method: marks_of(method, samples) for method in samples}
    assert marks["MCLDA"] == "bold underlined"
    assert marks["ICLDA"] == "bold"
    near = {**samples, "ICLDA": CellStatistics(0.251, 0.01, 20)}
    assert marks_of("MCLDA", near) == "bold"


def test_em_as_published_takes_part_except_in_the_column_of_em_as_defined():
    samples = samples_of(LDA=0.30, MCLDA=0.25, EMLDA=0.20, SLLDA=0.35, ICLDA=0.28)
    samples[PUBLISHED_EM] = CellStatistics(0.5, 0.01, 20)
    assert marks_of("MCLDA", samples) == "bold underlined"
    assert marks_of("EMLDA", samples) == "bold underlined"
    table = {("WDBC", "error"): samples}
    for em, error in ((PUBLISHED_EM, 0.5), ("EMLDA", 0.2)):
        in_paper = as_in_paper(table, em)["WDBC", "error"]
        assert set(in_paper) == {"LDA", *FOUR}
        assert in_paper["EMLDA"].mean == error


def test_differing_bold_cells_are_named():
    table = published_table()
    samples = dict(table["WDBC", "error"])
    samples["ICLDA"] = samples["LDA"]
    table["WDBC", "error"] = samples
    count = count_marks(table, "error")
    assert (count.n_same_bold, count.differing) == (39, ["WDBC ICLDA"])


def test_every_measure_of_the_tables_has_marks():
    marked = {measure for (_, _, measure), cell in read_cells().items() if cell.marks}
    assert marked == set(TABLE_MEASURES)
