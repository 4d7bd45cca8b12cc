"""Cells of the tables and points of the curves, from stored rows.

Every cell and every point also has the published number. Methods are compared with LDA
by paired tests. ``list_sets`` describes the ten benchmark sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, isfinite, sqrt
from pathlib import Path
from typing import Any, NamedTuple

from ... import methods
from ..._statistics import corrected_standard_error, corrected_t_test, holm
from ...datasets import BENCHMARKS, find_benchmark
from ..measures import PAPER_MEASURES, verdict
from ..page import NO_NUMBER, align
from ..store import FitResult
from . import design
from .marks import CellStatistics, Table, as_in_paper, count_marks, marks_of
from .published import (
    PRINTED_FEATURES,
    PublishedMean,
    counterpart_of,
    read_cells,
    read_points,
    z_score,
)

_SET_TEXT = """{name}: {n_rows} rows, {n_features} features, {license}, {source}
  {citation}.
  Changes: {changes}
  Read from: {at_hand}"""
_LICENSES = (
    "CC BY 4.0: https://creativecommons.org/licenses/by/4.0/. "
    "The notices that come with the data are in iclda/datasets/data/LICENSES.md."
)
# The order of the curves of a data set.
_MEASURE_ORDER = tuple(PAPER_MEASURES)
# Decimals of the tables on a terminal, which has 80 columns for nine methods.
_TERMINAL_DECIMALS = {"error": 3, "nll": 1}
_MARKS_LEGEND = [
    "b: lower than LDA by the paper's test (Welch, 5 %). u: lowest of MCLDA, SLLDA,",
    "ICLDA and EMLDA (EMLDA* where it was run), and lower than the second by it.",
    "Behind the bar: print.",
]
# Title and sentence of what the tables have beside the methods of the package.
_OTHER_METHODS = {
    design.ORACLE: (
        "supervised LDA with all labels",
        "It is given the classes of the unlabeled rows, too.",
    ),
    design.PUBLISHED_EM: (
        "LDA by expectation maximization, as published",
        "It repeats two faults of the code behind the published numbers.",
    ),
}
_SHORT_TITLES = {
    "EMLDA": "EM, as defined",
    design.PUBLISHED_EM: "EM, as published",
    design.ORACLE: "all labels",
}
# Stands for a number that the paper does not have.
_NOT_PUBLISHED = PublishedMean()

# A data set and a method.
Key = tuple[str, str]
# A repeat and a fold.
_Split = tuple[int, int]


# Tables.


@dataclass(frozen=True)
class TableCell:
    """Mean and standard deviation over complete repeats, and those of the paper.

    ``z`` is the difference of the two means in standard errors. ``marks`` are those of
    the paper's rule, "bold" and "underlined" (see ``marks``); ``published_marks`` those
    that it prints.
    """

    dataset: str
    method: str
    measure: str
    mean: float | None
    sd: float | None
    repeats: int
    published_mean: float | None
    published_sd: float | None
    z: float | None
    marks: str = ""
    published_marks: str = ""


def summarize_tables(results: Sequence[FitResult]) -> list[TableCell]:
    """Return the cells of the tables of all measures, by data set and method."""
    cells = []
    for measure in design.TABLE_MEASURES:
        values_by_method = repeat_values_by_method(results, measure)
        for dataset, method in sorted(values_by_method, key=_rank):
            values = values_by_method[dataset, method]
            mean, se = _mean_and_error(values)
            key = dataset, counterpart_of(method), measure
            published = read_cells().get(key, _NOT_PUBLISHED)
            # ``se`` is that of independent values: the standard deviation follows.
            sd = None if se is None else se * sqrt(len(values))
            cell = TableCell(
                dataset=dataset,
                method=method,
                measure=measure,
                mean=mean,
                sd=sd,
                repeats=len(values),
                published_mean=published.mean,
                published_sd=published.sd,
                z=z_score(mean, se, published),
                published_marks=published.marks,
            )
            cells.append(cell)
    table = table_of(cells)
    return [replace(cell, marks=_marks_of_cell(cell, table)) for cell in cells]


def table_of(cells: Iterable[TableCell]) -> Table:
    """Return mean, deviation and repeats of the cells that have them."""
    table: dict[tuple[str, str], dict[str, CellStatistics]] = defaultdict(dict)
    for cell in cells:
        if cell.mean is not None and cell.sd is not None:
            sample = CellStatistics(cell.mean, cell.sd, cell.repeats)
            table[cell.dataset, cell.measure][cell.method] = sample
    return table


def _marks_of_cell(cell: TableCell, table: Table) -> str:
    samples = table.get((cell.dataset, cell.measure), {})
    # The oracle is not a rival: it knows labels that the others do not.
    if cell.method == design.ORACLE or cell.method not in samples:
        return ""
    return marks_of(cell.method, samples)


def repeat_values_by_method(
    results: Sequence[FitResult], measure: str
) -> dict[Key, list[float]]:
    """Return the value of each complete repeat, by data set and method.

    The value is the mean of the folds, weighted by their test rows. A method that does
    not have the measure is left out; a method whose fits all failed has an empty list.
    """
    values: dict[Key, list[float]] = {}
    for result in results:
        # A failed fit has no values: which measures its method has is unknown.
        may_have_measure = measure in result.values or result.failure is not None
        if result.experiment == design.TABLES and may_have_measure:
            values[result.dataset, result.method] = []

    for key, splits in results_by_split(results, measure).items():
        folds_by_repeat: dict[int, list[FitResult]] = defaultdict(list)
        for (repeat, _), result in sorted(splits.items()):
            folds_by_repeat[repeat].append(result)
        for folds in folds_by_repeat.values():
            # Without one of its folds, a repeat is a mean over other rows.
            if len(folds) == design.N_FOLDS:
                values[key].append(_mean_over_rows(folds, measure))
    return values


def _mean_over_rows(folds: Sequence[FitResult], measure: str) -> float:
    """Return the mean over the test rows of all folds."""
    total = fsum(fold.n_test * fold.values[measure] for fold in folds)
    n_rows = sum(fold.n_test for fold in folds)
    return total / n_rows


def results_by_split(
    results: Iterable[FitResult], measure: str
) -> dict[Key, dict[_Split, FitResult]]:
    """Return the results that have a measure, by data set and method, then by split."""
    splits: dict[Key, dict[_Split, FitResult]] = defaultdict(dict)
    for result in results:
        if result.experiment == design.TABLES and result.number(measure) is not None:
            splits_of_key = splits[result.dataset, result.method]
            splits_of_key[result.repeat, result.part] = result
    return splits


def _mean_and_error(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return mean and standard error of values, None where there are too few."""
    # ``fsum`` is exact, so that the mean does not depend on the order of the values.
    mean = fsum(values) / len(values) if values else None
    se = corrected_standard_error(values)
    return mean, se if isfinite(se) else None


def _rank(key: Key) -> tuple[str, int, str]:
    """Return a sort key: by data set, then by method in the order of the tables."""
    dataset, method = key
    return dataset.casefold(), *design.method_rank(method)


def find_gaps(cells: Sequence[TableCell]) -> dict[Key, str]:
    """Return a sentence for each cell that lacks repeats of its data set."""
    # The method with the most repeats says how many its data set has.
    n_repeats: dict[str, int] = defaultdict(int)
    for cell in cells:
        n_repeats[cell.dataset] = max(n_repeats[cell.dataset], cell.repeats)

    gaps = {}
    for cell in cells:
        n_expected = n_repeats[cell.dataset]
        if cell.repeats < n_expected:
            gaps[cell.dataset, cell.method] = (
                f"{cell.dataset}, {cell.method}: {cell.repeats} of {n_expected} "
                "repeats are complete"
            )
    return gaps


@dataclass(frozen=True)
class PairedComparison:
    """A method compared with LDA on one data set, split by split.

    ``difference`` is the mean over splits of the method minus LDA. ``p_holm`` is
    adjusted for all comparisons of a table.
    """

    dataset: str
    method: str
    measure: str
    difference: float
    t: float
    p: float
    n_splits: int
    p_holm: float = 1.0

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, or an empty string for no significant difference."""
        measure = design.TABLE_MEASURES[self.measure]
        return verdict(self.difference, self.p_holm, measure)


def compare_with_baseline(
    results: Iterable[FitResult], measure: str
) -> dict[Key, PairedComparison]:
    """Compare every method with LDA on every data set, on the splits that both have.

    p-values are adjusted by Holm's method over all data sets and methods.
    """
    splits = results_by_split(results, measure)
    comparisons = []
    for dataset, method in sorted(splits, key=lambda key: (key[0].casefold(), key[1])):
        # The oracle is not a rival: it knows labels that the others do not.
        if method in (design.BASELINE, design.ORACLE):
            continue
        fits = splits[dataset, method]
        baseline = splits.get((dataset, design.BASELINE), {})
        shared = sorted(fits.keys() & baseline.keys())
        # A test needs two differences.
        if len(shared) > 1:
            pairs = [(fits[split], baseline[split]) for split in shared]
            comparisons.append(_compare_pairs(pairs, measure))

    adjusted = holm([comparison.p for comparison in comparisons])
    return {
        (comparison.dataset, comparison.method): replace(comparison, p_holm=p)
        for comparison, p in zip(comparisons, adjusted, strict=True)
    }


def _compare_pairs(
    pairs: Sequence[tuple[FitResult, FitResult]], measure: str
) -> PairedComparison:
    """Compare the fits of a method with those of LDA to the same splits."""
    differences = [
        fit.values[measure] - baseline.values[measure] for fit, baseline in pairs
    ]
    # The test corrects for training sets that overlap, by the ratio of test rows to
    # training rows.
    test_shares = [fit.n_test / (fit.n_labeled + fit.n_unlabeled) for fit, _ in pairs]
    n_splits = len(pairs)
    t, p = corrected_t_test(differences, fsum(test_shares) / n_splits)
    fit, _ = pairs[0]
    return PairedComparison(
        dataset=fit.dataset,
        method=fit.method,
        measure=measure,
        difference=fsum(differences) / n_splits,
        t=t,
        p=p,
        n_splits=n_splits,
    )


def arrange(
    cells: Iterable[TableCell], measure: str
) -> tuple[list[str], list[str], dict[Key, TableCell]]:
    """Return the data sets and methods of a table in order, and its cells by both."""
    cells_by_key = {
        (cell.dataset, cell.method): cell for cell in cells if cell.measure == measure
    }
    datasets = {dataset for dataset, _ in cells_by_key}
    methods = {method for _, method in cells_by_key}
    ordered_datasets = sorted(datasets, key=lambda name: (name.casefold(), name))
    ordered_methods = sorted(methods, key=design.method_rank)
    return ordered_datasets, ordered_methods, cells_by_key


def format_tables(cells: Sequence[TableCell]) -> list[str]:
    """Return the means of all tables as lines for a terminal."""
    lines = []
    for name, measure in design.TABLE_MEASURES.items():
        datasets, names_of_methods, cells_by_key = arrange(cells, name)
        if not datasets:
            continue
        headings = [_mark_published(method) for method in names_of_methods]
        rows = [[measure.axis, *headings]]
        for dataset in datasets:
            row = [dataset]
            for method in names_of_methods:
                cell = cells_by_key.get((dataset, method))
                row.append(_terminal_number(cell, _TERMINAL_DECIMALS[name]))
            rows.append(row)
        lines += [*align(rows, "l" + "r" * len(headings)), ""]
    if any(cell.method == design.PUBLISHED_EM for cell in cells):
        lines += ["EMLDA*: EM with the faults of the published code.", ""]
    return lines + format_marks(cells)


def format_marks(cells: Sequence[TableCell]) -> list[str]:
    """Return the marks of all tables as lines for a terminal, and how many agree."""
    lines = []
    for name, measure in design.TABLE_MEASURES.items():
        datasets, names_of_methods, cells_by_key = arrange(cells, name)
        methods = [
            method
            for method in names_of_methods
            if method not in (design.BASELINE, design.ORACLE)
        ]
        if design.BASELINE not in names_of_methods or not methods:
            continue
        rows = [[f"{measure.axis} marks", *map(_mark_published, methods)]]
        for dataset in datasets:
            marks = [
                _short_marks(cells_by_key.get((dataset, method))) for method in methods
            ]
            rows.append([dataset, *marks])
        lines += [*align(rows, "l" + "r" * len(methods)), ""]
    if lines:
        lines += _MARKS_LEGEND
    for em, table in tables_by_em(cells).items():
        counts = {name: count_marks(table, name) for name in design.TABLE_MEASURES}
        bold = sum(count.n_same_bold for count in counts.values())
        n_cells = sum(count.n_cells for count in counts.values())
        lines.append(f"EM {em}: {bold} of {n_cells} cells are bold or not as in print.")
    return lines


def _short_marks(cell: TableCell | None) -> str:
    """Abbreviate the marks of a cell and, behind a bar, those in print."""
    if cell is None:
        return NO_NUMBER
    texts = (
        [cell.marks]
        if cell.published_mean is None
        else [cell.marks, cell.published_marks]
    )
    return "|".join("".join(mark[0] for mark in text.split()) or "-" for text in texts)


def tables_by_em(cells: Iterable[TableCell]) -> dict[str, Table]:
    """Return what is compared with the paper: with EM as published, and as defined.

    The tables have the methods of the paper, under its names, and its data sets.
    """
    table = {
        (dataset, measure): samples
        for (dataset, measure), samples in table_of(cells).items()
        if dataset in BENCHMARKS
    }
    tables = {
        words: as_in_paper(table, em)
        for words, em in (
            ("as published", design.PUBLISHED_EM),
            ("as defined", "EMLDA"),
        )
    }
    return {words: table for words, table in tables.items() if table}


def _mark_published(method: str) -> str:
    """Shorten the long name of EM as published."""
    return "EMLDA*" if method == design.PUBLISHED_EM else method


def _terminal_number(cell: TableCell | None, decimals: int) -> str:
    if cell is None or cell.mean is None:
        return NO_NUMBER
    return f"{cell.mean:.{decimals}f}"


@dataclass(frozen=True)
class MethodInWords:
    """The name of a method in the tables, what it is called, and what it does."""

    name: str
    title: str
    sentence: str


def describe_methods(names: Sequence[str]) -> list[MethodInWords]:
    """Spell out names of the paper, such as MCPLDA; unknown names are left out."""
    known = {
        method.paper_name: (method.title, method.sentence)
        for method in (*methods.FITTED, *methods.FURTHER)
    }
    known.update(_OTHER_METHODS)
    described = []
    for name in names:
        if name in known:
            title, sentence = known[name]
            described.append(
                MethodInWords(name, title[0].upper() + title[1:], sentence)
            )
    return described


def short_title(name: str) -> str:
    """Return what a method is called below its name in the heading of a table."""
    if name in _SHORT_TITLES:
        return _SHORT_TITLES[name]
    described = describe_methods([name])
    if not described:
        return ""
    title = described[0].title.removesuffix(" LDA")
    return title[0].lower() + title[1:]


def dataset_table(
    shapes: Mapping[str, Sequence[int]], labels: int = 0
) -> list[list[str]]:
    """Return Table I of the paper, with the true and the printed number of features.

    ``shapes`` are numbers of rows, features and classes; ``labels`` is the number of
    labeled rows, 0 for that of the paper.
    """
    header = [
        "Data set",
        "Rows",
        "Features",
        "Classes",
        "Labeled rows",
        "Features as printed",
    ]
    table = [header]
    for name in sorted(shapes, key=str.casefold):
        n_rows, n_features, n_classes = shapes[name]
        n_labeled = design.n_labeled_of(n_features, labels)
        n_printed = PRINTED_FEATURES.get(name, NO_NUMBER)
        numbers = (n_rows, n_features, n_classes, n_labeled, n_printed)
        table.append([name, *map(str, numbers)])
    return table


# Curves.


@dataclass(frozen=True)
class ReproducedPoint:
    """Mean and standard error over successful repeats, and those of the paper.

    ``z`` is the difference of the two means in standard errors.
    """

    dataset: str
    n_unlabeled: int
    method: str
    measure: str
    mean: float | None
    se: float | None
    repeats: int
    published_mean: float | None
    published_se: float | None
    z: float | None


class _PointKey(NamedTuple):
    """What tells the points of the curves apart."""

    dataset: str
    measure: str
    method: str
    n_unlabeled: int

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sort key of points."""
        return (
            self.dataset.casefold(),
            _MEASURE_ORDER.index(self.measure),
            design.method_rank(self.method),
            self.n_unlabeled,
        )


def summarize_curves(results: Iterable[FitResult]) -> list[ReproducedPoint]:
    """Return the points of all curves.

    They are sorted by data set, measure, method and number of unlabeled rows.
    """
    values = _curve_values(results)
    points = []
    for key in sorted(values, key=lambda key: key.rank):
        repeats = list(values[key].values())
        mean, se = _mean_and_error(repeats)
        counterpart = counterpart_of(key.method)
        published_key = key.dataset, key.n_unlabeled, counterpart, key.measure
        published = read_points().get(published_key, _NOT_PUBLISHED)
        point = ReproducedPoint(
            dataset=key.dataset,
            n_unlabeled=key.n_unlabeled,
            method=key.method,
            measure=key.measure,
            mean=mean,
            se=se,
            repeats=len(repeats),
            published_mean=published.mean,
            published_se=published.se,
            z=z_score(mean, se, published),
        )
        points.append(point)
    return points


def _curve_values(
    results: Iterable[FitResult],
) -> dict[_PointKey, dict[int, float]]:
    """Return the values of every point of the curves, by repeat."""
    values: dict[_PointKey, dict[int, float]] = defaultdict(dict)
    for result in results:
        if result.experiment != design.CURVES:
            continue
        for measure in _MEASURE_ORDER:
            value = result.number(measure)
            if value is not None:
                # The part of a cell of a curve is its number of unlabeled rows.
                key = _PointKey(result.dataset, measure, result.method, result.part)
                values[key][result.repeat] = value
    return values


# Benchmark sets.


def describe_sets(data_dir: Path | None) -> list[dict[str, Any]]:
    """Return the facts about the ten sets, for programs.

    ``at_hand`` says where a set is read from; it is None if the set cannot be loaded.
    """
    return [
        {**vars(benchmark), "at_hand": find_benchmark(name, data_dir)}
        for name, benchmark in BENCHMARKS.items()
    ]


def list_sets(data_dir: Path | None) -> str:
    """Return a description of the ten sets, with a paragraph for each."""
    paragraphs = []
    for described in describe_sets(data_dir):
        if described["at_hand"] is None:
            described["at_hand"] = "nowhere (pip install 'iclda[experiments]')"
        paragraphs.append(_SET_TEXT.format_map(described))
    return "\n\n".join([*paragraphs, _LICENSES])
