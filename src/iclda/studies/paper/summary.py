"""Cells of the tables and points of the curves beside the published ones, and tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, isfinite, sqrt
from pathlib import Path
from typing import Any

from ..._statistics import corrected_standard_error, corrected_t_test, holm
from ...datasets import BENCHMARKS, find_benchmark
from .. import paper
from ..measures import paper_measures, verdict
from ..page import NOTHING
from ..store import FitResult

_SET = """{name}: {n_rows} rows, {n_features} features, {license}, {source}
  {citation}.
  Changes: {changes}
  Read from: {at_hand}"""
_LICENSES = (
    "CC BY 4.0: https://creativecommons.org/licenses/by/4.0/. The notices that come with the data "
    "are in iclda/datasets/data/LICENSES.md."
)
_NONE = paper.PublishedMean()
Key = tuple[str, str]  # data set and method


@dataclass(frozen=True)
class TableCell:
    """One cell of a table: mean and standard deviation over its complete repeats."""

    dataset: str
    method: str
    measure: str
    mean: float | None
    sd: float | None
    repeats: int
    published_mean: float | None
    published_sd: float | None
    z: float | None


@dataclass(frozen=True)
class PairedComparison:
    """A method against LDA on one data set, paired by split; ``p_holm`` is over the table."""

    dataset: str
    method: str
    measure: str
    difference: float  # mean over splits of method - LDA
    t: float
    p: float
    n_splits: int
    p_holm: float = 1.0

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, or an empty string for no significant difference."""
        return verdict(
            self.difference, self.p_holm, paper.table_measures()[self.measure]
        )


def _rank(key: Key) -> tuple[str, int, str]:
    dataset, method = key
    return dataset.casefold(), *paper.method_rank(method)


def _results_by_split(
    results: Iterable[FitResult], measure: str
) -> dict[Key, dict[tuple[int, int], FitResult]]:
    """Results that have a measure, by data set and method, then by repeat and fold."""
    splits: dict[Key, dict[tuple[int, int], FitResult]] = defaultdict(dict)
    for result in results:
        if result.experiment == paper.TABLES and result.number(measure) is not None:
            splits[result.dataset, result.method][result.repeat, result.part] = result
    return splits


def repeat_values_by_method(
    results: Sequence[FitResult], measure: str
) -> dict[Key, list[float]]:
    """Value of each complete repeat, the mean of its folds weighted by their test rows.

    A measure that a method does not have leaves the method out; failed fits do not.
    """
    values: dict[Key, list[float]] = {
        (r.dataset, r.method): []
        for r in results
        if r.experiment == paper.TABLES
        and (measure in r.values or r.failure is not None)
    }
    for key, splits in _results_by_split(results, measure).items():
        folds: dict[int, list[FitResult]] = defaultdict(list)
        for (repeat, _), result in sorted(splits.items()):
            folds[repeat].append(result)
        for each in folds.values():
            if len(each) == paper.N_FOLDS:
                total = fsum(fold.n_test * fold.values[measure] for fold in each)
                values[key].append(total / sum(fold.n_test for fold in each))
    return values


def _mean_and_error(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Mean and standard error of values, None where there are too few."""
    mean, se = (
        fsum(values) / len(values) if values else None,
        corrected_standard_error(values),
    )
    return mean, se if isfinite(se) else None


def summarize_tables(results: Sequence[FitResult]) -> list[TableCell]:
    """Cells of all measures, by data set and method, beside the published ones."""
    cells = []
    for measure in paper.table_measures():
        by_method = repeat_values_by_method(results, measure)
        for dataset, method in sorted(by_method, key=_rank):
            values = by_method[dataset, method]
            mean, se = _mean_and_error(values)
            sd = None if se is None else se * sqrt(len(values))
            theirs = paper.read_cells().get(
                (dataset, paper.counterpart_of(method), measure), _NONE
            )
            beside = theirs.mean, theirs.sd, paper.z_score(mean, se, theirs)
            cells.append(
                TableCell(dataset, method, measure, mean, sd, len(values), *beside)
            )
    return cells


def find_gaps(cells: Sequence[TableCell]) -> dict[Key, str]:
    """Sentences about data sets and methods that have fewer complete repeats than others."""
    most: dict[str, int] = defaultdict(int)
    for cell in cells:
        most[cell.dataset] = max(most[cell.dataset], cell.repeats)
    return {
        (
            c.dataset,
            c.method,
        ): f"{c.dataset}, {c.method}: {c.repeats} of {most[c.dataset]} repeats "
        "are complete"
        for c in cells
        if c.repeats < most[c.dataset]
    }


def compare_with_baseline(
    results: Iterable[FitResult], measure: str
) -> dict[Key, PairedComparison]:
    """Compare every method with LDA on every data set, paired by split, Holm over the table."""
    splits = _results_by_split(results, measure)
    tests = []
    for dataset, method in sorted(splits, key=lambda key: (key[0].casefold(), key[1])):
        ours, baseline = (
            splits[dataset, method],
            splits.get((dataset, paper.BASELINE), {}),
        )
        shared = sorted(ours.keys() & baseline.keys())
        if method in (paper.BASELINE, paper.ORACLE) or len(shared) < 2:
            continue
        fits = [ours[split] for split in shared]
        differences = [
            ours[s].values[measure] - baseline[s].values[measure] for s in shared
        ]
        n, ratios = (
            len(shared),
            [fit.n_test / (fit.n_labeled + fit.n_unlabeled) for fit in fits],
        )
        t, p = corrected_t_test(differences, fsum(ratios) / n)
        tests.append(
            PairedComparison(dataset, method, measure, fsum(differences) / n, t, p, n)
        )
    adjusted = zip(tests, holm([test.p for test in tests]), strict=True)
    return {
        (test.dataset, test.method): replace(test, p_holm=p) for test, p in adjusted
    }


def arrange(
    cells: Iterable[TableCell], measure: str
) -> tuple[list[str], list[str], dict[Key, TableCell]]:
    """Data sets and methods in the order of the tables, and the cells of a measure by both."""
    by_key = {(c.dataset, c.method): c for c in cells if c.measure == measure}
    datasets = sorted(
        {dataset for dataset, _ in by_key}, key=lambda name: (name.casefold(), name)
    )
    return (
        datasets,
        sorted({method for _, method in by_key}, key=paper.method_rank),
        by_key,
    )


def dataset_table(shapes: Mapping[str, Sequence[int]]) -> list[list[str]]:
    """The paper's Table I, with the number of features it printed beside the true one."""
    header = [
        "Data set",
        "Rows",
        "Features",
        "Classes",
        "Labeled rows",
        "Features as printed",
    ]
    table = [header]
    for name, shape in sorted(shapes.items(), key=lambda item: item[0].casefold()):
        printed = paper.PRINTED_FEATURES.get(name, NOTHING)
        table.append([name, *map(str, (*shape, paper.n_labeled_of(shape[1]), printed))])
    return table


@dataclass(frozen=True)
class ReproducedPoint:
    """Mean and standard error over the repeats whose fit succeeded, beside the published ones."""

    dataset: str
    n_unlabeled: int
    method: str
    measure: str
    mean: float | None
    se: float | None
    repeats: int
    published_mean: float | None
    published_se: float | None
    z: float | None  # their difference in combined standard errors


def summarize_curves(results: Iterable[FitResult]) -> list[ReproducedPoint]:
    """Points of all curves, by data set, measure, method and number of unlabeled rows."""
    measures = list(paper_measures())
    values: dict[tuple[str, str, str, int], dict[int, float]] = defaultdict(dict)
    for result in results:
        for measure in measures:
            value = result.number(measure)
            if result.experiment == paper.CURVES and value is not None:
                values[result.dataset, measure, result.method, result.part][
                    result.repeat
                ] = value

    def rank(key: tuple[str, str, str, int]) -> tuple[Any, ...]:
        dataset, measure, method, size = key
        return (
            dataset.casefold(),
            measures.index(measure),
            paper.method_rank(method),
            size,
        )

    points = []
    for dataset, measure, method, size in sorted(values, key=rank):
        repeats = list(values[dataset, measure, method, size].values())
        mean, se = _mean_and_error(repeats)
        key = dataset, size, paper.counterpart_of(method), measure
        theirs = paper.read_points().get(key, _NONE)
        beside = theirs.mean, theirs.se, paper.z_score(mean, se, theirs)
        points.append(
            ReproducedPoint(
                dataset, size, method, measure, mean, se, len(repeats), *beside
            )
        )
    return points


def describe_sets(data_dir: Path | None) -> list[dict[str, Any]]:
    """Shape, origin and place of the ten sets, for programs."""
    return [
        {**vars(each), "at_hand": find_benchmark(name, data_dir)}
        for name, each in BENCHMARKS.items()
    ]


def list_sets(data_dir: Path | None) -> str:
    """A line for each of the ten sets; below it citation, changes, and where it is read from."""
    paragraphs = []
    for each in describe_sets(data_dir):
        each["at_hand"] = (
            each["at_hand"] or "nowhere (pip install 'iclda[experiments]')"
        )
        paragraphs.append(_SET.format_map(each))
    return "\n\n".join([*paragraphs, _LICENSES])
