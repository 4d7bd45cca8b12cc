"""The significance marks of the paper's tables: bold and underlined cells.

The rule is that of the code behind the tables (``Code/VisualizeCVSSLLDA.R`` in
https://github.com/jkrijthe/ImplicitlyConstrainedLDA), Welch's unpaired t-test over the
values of the repeats:

- bold: significantly better than supervised LDA,
- underlined: the best of the four semi-supervised methods, and significantly better
  than the second best.

For the second that code took a wrong column, two places to the left of the best, so
that printed underlines do not follow from the rule. ``data/tables.csv`` has the marks
that it printed, computed by it from the 20 repeats.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from scipy.stats import ttest_ind_from_stats

from ..measures import LEVEL
from .design import BASELINE, PUBLISHED_EM, TABLE_REPEATS
from .published import read_cells

BOLD = "bold"
UNDERLINED = "underlined"
# The semi-supervised methods of the paper, the four among which one may be underlined.
FOUR = ("MCLDA", "EMLDA", "SLLDA", "ICLDA")


class CellStatistics(NamedTuple):
    """Mean, standard deviation and number of the values of repeats."""

    mean: float
    sd: float
    repeats: int


# Statistics of one data set and measure, by method.
Samples = Mapping[str, CellStatistics]
# Statistics by data set and measure.
Table = Mapping[tuple[str, str], Samples]


def is_clearly_lower(sample: CellStatistics, other: CellStatistics) -> bool:
    """Say whether a mean is lower, significantly by Welch's test."""
    p = ttest_ind_from_stats(*sample, *other, equal_var=False).pvalue
    return bool(sample.mean < other.mean and p < LEVEL)


def marks_of(method: str, samples: Samples) -> str:
    """Return the marks of a method: "", "bold", "underlined" or "bold underlined".

    Of EM there may be two fits, as published and as defined. One of them takes part in
    the comparison of the four: that of ``method`` if it is one, otherwise the published
    one, as in the paper.
    """
    marks = []
    lda = samples.get(BASELINE)
    if lda and is_clearly_lower(samples[method], lda):
        marks.append(BOLD)
    em = "EMLDA" if method == "EMLDA" or PUBLISHED_EM not in samples else PUBLISHED_EM
    four = [em if name == "EMLDA" else name for name in FOUR]
    if method in four and all(name in samples for name in four):
        best, second, *_ = sorted(four, key=lambda name: samples[name].mean)
        if method == best and is_clearly_lower(samples[best], samples[second]):
            marks.append(UNDERLINED)
    return " ".join(marks)


def as_in_paper(table: Table, em: str) -> Table:
    """Return samples under the names of the paper, with one of the two fits of EM.

    Data sets that lack a method are left out.
    """
    methods = {name: em if name == "EMLDA" else name for name in (BASELINE, *FOUR)}
    return {
        key: {name: samples[method] for name, method in methods.items()}
        for key, samples in table.items()
        if all(method in samples for method in methods.values())
    }


def published_table() -> Table:
    """Return the samples behind the published cells."""
    table: dict[tuple[str, str], dict[str, CellStatistics]] = defaultdict(dict)
    for (dataset, method, measure), cell in read_cells().items():
        if cell.mean is not None and cell.sd is not None:
            sample = CellStatistics(cell.mean, cell.sd, TABLE_REPEATS)
            table[dataset, measure][method] = sample
    return table


@dataclass(frozen=True)
class MarkCount:
    """The marks of a measure that are those of the paper, by name of cell or data set.

    Attributes
    ----------
    n_cells : int
        Cells that may be bold.
    differing : list of str
        Cells that are bold either here or in print.
    n_underlined : int
        Underlined cells in print.
    remaining : list of str
        Data sets whose printed underline follows from the rule and the printed numbers.
    underlined : list of str
        Data sets with an underlined cell here.
    """

    n_cells: int
    differing: list[str]
    n_underlined: int
    remaining: list[str]
    underlined: list[str]

    @property
    def n_same_bold(self) -> int:
        return self.n_cells - len(self.differing)


def count_marks(table: Table, measure: str) -> MarkCount:
    """Compare marks with those of the paper.

    The samples are those of published data sets and methods, under their names.
    """
    datasets = [dataset for dataset, of_measure in table if of_measure == measure]
    keys = list(product(datasets, FOUR))
    cells = read_cells()
    published = published_table()
    in_print = {key: cells[*key, measure].marks for key in keys}
    here, by_rule = (
        {
            (name, method): marks_of(method, samples[name, measure])
            for name, method in keys
        }
        for samples in (table, published)
    )

    def marked(marks: Mapping[tuple[str, str], str], mark: str) -> set[tuple[str, str]]:
        return {key for key in keys if mark in marks[key]}

    underlined = marked(in_print, UNDERLINED)
    differing = marked(here, BOLD) ^ marked(in_print, BOLD)
    remaining = underlined & marked(by_rule, UNDERLINED)
    return MarkCount(
        n_cells=len(keys),
        differing=[" ".join(key) for key in sorted(differing)],
        n_underlined=len(underlined),
        remaining=sorted(dataset for dataset, _ in remaining),
        underlined=sorted(dataset for dataset, _ in marked(here, UNDERLINED)),
    )
