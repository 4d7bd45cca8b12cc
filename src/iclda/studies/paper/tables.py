"""From results of the cross-validations to the paper's tables, as data, files and a figure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import fsum, sqrt
from typing import TYPE_CHECKING, NamedTuple

from ..._messages import plural
from ..._statistics import corrected_t_test, holm
from ...methods import FAINT, INK
from ..drawing import new_figure, paper_color, styled
from ..measures import paper_measures, verdict
from ..page import (
    NOTHING,
    Entry,
    TextTable,
    attributes_csv,
    csv_text,
    to_latex,
    to_markdown,
)
from ..store import FitResult
from .fits import n_labeled_of
from .published import (
    BASELINE,
    N_FOLDS,
    ORACLE,
    PRINTED_FEATURES,
    TABLES,
    Contest,
    MeanOfRepeats,
    bold,
    contest_with_runner_up,
    mean_and_variance,
    method_rank,
    published_cells,
    published_name,
    table_measures,
    z_score,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class TableCell:
    """One cell of a table: mean and standard deviation over its complete repeats."""

    dataset: str
    method: str
    measure: str
    mean: float | None
    sd: float | None
    repeats: int
    published_mean: float | None = None
    published_sd: float | None = None
    z: float | None = None


class Gap(NamedTuple):
    """Repeats that a data set and method lack, and why."""

    dataset: str
    method: str
    text: str


class Marks(NamedTuple):
    """Bold cells of one measure, and who won against whom, by data set."""

    bold: dict[str, frozenset[str]]
    contests: dict[str, Contest]

    def is_underlined(self, dataset: str, method: str) -> bool:
        contest = self.contests.get(dataset)
        return contest is not None and contest.winner == method and contest.is_won


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
        return verdict(self.difference, self.p_holm, paper_measures()[self.measure])


def repeat_values_by_method(
    results: Iterable[FitResult], measure: str
) -> dict[tuple[str, str], list[float]]:
    """By (data set, method): the value of each complete repeat, folds weighted by their test rows.

    A measure that a method does not have leaves the method out; failed fits do not.
    """
    found: dict[tuple[str, str], dict[int, dict[int, tuple[int, float]]]] = {}
    for result in results:
        value = result.number(measure)
        if result.experiment == TABLES and (measure in result.values or result.failure is not None):
            repeats = found.setdefault((result.dataset, result.method), defaultdict(dict))
            if result.failure is None and value is not None:
                repeats[result.repeat][result.part] = result.n_test, value
    return {
        key: [
            fsum(n * value for n, value in folds.values()) / sum(n for n, _ in folds.values())
            for _, folds in sorted(repeats.items())
            if len(folds) == N_FOLDS
        ]
        for key, repeats in found.items()
    }


def summarize_tables(results: Sequence[FitResult]) -> list[TableCell]:
    """Cells of all measures, by data set and method, beside the published ones."""
    cells = []
    for measure in table_measures():
        by_method = repeat_values_by_method(results, measure)
        for dataset, method in sorted(by_method, key=lambda key: _place(*key)):
            values = by_method[dataset, method]
            mean, variance = mean_and_variance(values)
            n, sd = len(values), None if variance is None else sqrt(variance)
            cell = TableCell(dataset, method, measure, mean, sd, n)
            published = published_cells().get((dataset, published_name(method) or "", measure))
            if published is not None:
                se = None if sd is None else sd / sqrt(n)
                z = z_score(mean, se, published.mean, published.sd / sqrt(published.n))
                cell = replace(cell, published_mean=published.mean, published_sd=published.sd, z=z)
            cells.append(cell)
    return cells


def _place(dataset: str, method: str) -> tuple[str, int, str]:
    return dataset.casefold(), *method_rank(method)


def find_gaps(results: Iterable[FitResult]) -> list[Gap]:
    """Data sets and methods with repeats that lack a fold, or whose fits failed."""
    results = [result for result in results if result.experiment == TABLES]
    repeats: dict[str, set[int]] = defaultdict(set)
    n_failed: Counter[tuple[str, str]] = Counter()
    for result in results:
        repeats[result.dataset].add(result.repeat)
        n_failed[result.dataset, result.method] += result.failure is not None
    found = {
        (dataset, method, len(values))
        for measure in table_measures()
        for (dataset, method), values in repeat_values_by_method(results, measure).items()
        if len(values) < len(repeats[dataset])
    }
    gaps = []
    for dataset, method, n_complete in sorted(found, key=lambda gap: (*_place(*gap[:2]), gap[2])):
        failed = n_failed[dataset, method]
        reason = f", {plural(failed, 'failed fit')}" if failed else ""
        text = f"{n_complete} of {len(repeats[dataset])} repeats are complete{reason}"
        gaps.append(Gap(dataset, method, f"{dataset}, {method}: {text}"))
    return gaps


def mark(cells: Iterable[TableCell], measure: str) -> Marks:
    """Bold and underline by the paper's rule, winners against the true runner-up."""
    sign = paper_measures()[measure].sign
    by_dataset: dict[str, dict[str, MeanOfRepeats]] = defaultdict(dict)
    for cell in cells:
        if cell.measure == measure and cell.mean is not None and cell.sd is not None:
            found = MeanOfRepeats(sign * cell.mean, cell.sd, cell.repeats)
            by_dataset[cell.dataset][cell.method] = found
    contests = {name: contest_with_runner_up(means) for name, means in by_dataset.items()}
    return Marks(
        bold={name: bold(means) for name, means in by_dataset.items()},
        contests={name: contest for name, contest in contests.items() if contest is not None},
    )


def compare_with_baseline(results: Iterable[FitResult], measure: str) -> list[PairedComparison]:
    """Every method against LDA on every data set, paired by split, Holm over the table."""
    splits: dict[tuple[str, str], dict[tuple[int, int], tuple[float, float]]] = defaultdict(dict)
    for result in results:
        value = result.number(measure)
        if result.experiment == TABLES and result.failure is None and value is not None:
            ratio = result.n_test / (result.n_labeled + result.n_unlabeled)
            splits[result.dataset, result.method][result.repeat, result.part] = value, ratio
    tests = []
    for dataset, method in sorted(splits, key=lambda key: (key[0].casefold(), key[1])):
        ours, baseline = splits[dataset, method], splits.get((dataset, BASELINE), {})
        shared = sorted(ours.keys() & baseline.keys())
        if method in (BASELINE, ORACLE) or len(shared) < 2:
            continue
        differences = [ours[split][0] - baseline[split][0] for split in shared]
        n, ratio = len(shared), fsum(ours[split][1] for split in shared) / len(shared)
        t, p = corrected_t_test(differences, ratio)
        tests.append(PairedComparison(dataset, method, measure, fsum(differences) / n, t, p, n))
    adjusted = holm([test.p for test in tests])
    return [replace(test, p_holm=p) for test, p in zip(tests, adjusted, strict=True)]


@dataclass(frozen=True)
class WorseFolds:
    """Folds of all data sets on which a method did worse than LDA."""

    method: str
    measure: str
    n_worse: int
    n_folds: int

    @property
    def share(self) -> float:
        return self.n_worse / self.n_folds


def count_worse_folds(results: Iterable[FitResult], measure: str) -> list[WorseFolds]:
    """For every method the folds on which it is worse than LDA, over all data sets."""
    folds: dict[str, dict[tuple[str, int, int], float]] = defaultdict(dict)
    for result in results:
        value = result.number(measure)
        if result.experiment == TABLES and value is not None:
            folds[result.method][result.dataset, result.repeat, result.part] = value
    baseline, found = folds.pop(BASELINE, {}), []
    sign = 1 if paper_measures()[measure].lower_is_better else -1
    for method in sorted(folds, key=method_rank):
        shared = folds[method].keys() & baseline.keys()
        n_worse = sum(sign * (folds[method][fold] - baseline[fold]) > 0 for fold in shared)
        if shared:
            found.append(WorseFolds(method, measure, n_worse, len(shared)))
    return found


def arrange(
    cells: Iterable[TableCell], measure: str
) -> tuple[list[str], list[str], dict[tuple[str, str], TableCell]]:
    """Data sets and methods in the order of the tables, and the cells of a measure by both."""
    found = {(c.dataset, c.method): c for c in cells if c.measure == measure}
    datasets = sorted({dataset for dataset, _ in found}, key=lambda name: (name.casefold(), name))
    return datasets, sorted({method for _, method in found}, key=method_rank), found


def text_table(cells: Sequence[TableCell], measure: str, gaps: Sequence[Gap] = ()) -> TextTable:
    """The table of a measure, with bold and underline; a dagger marks a gap."""
    datasets, methods, found = arrange(cells, measure)
    marks, lacking = mark(cells, measure), {(gap.dataset, gap.method) for gap in gaps}

    def entry(dataset: str, method: str) -> Entry:
        cell, text = found.get((dataset, method)), NOTHING
        if cell is not None and cell.mean is not None:
            digits = paper_measures()[measure].decimals
            spread = "" if cell.sd is None else f" ± {cell.sd:.{digits}f}"
            text = f"{cell.mean:.{digits}f}{spread}"
        is_bold = method in marks.bold.get(dataset, ())
        dagger = "†" if (dataset, method) in lacking else ""
        return Entry(text + dagger, is_bold, marks.is_underlined(dataset, method))

    body = tuple((Entry(name), *(entry(name, method) for method in methods)) for name in datasets)
    caption = f"{paper_measures()[measure].caption}: mean ± standard deviation over the repeats."
    notes = tuple(f"† {gap.text}." for gap in gaps if gap.dataset in datasets)
    return TextTable(caption, ("Data set", *methods), body, notes)


def dataset_table(shapes: Mapping[str, Sequence[int]]) -> TextTable:
    """The paper's Table I, with the number of features it printed beside the true one."""
    lines = (
        (name, *shape, n_labeled_of(shape[1]), PRINTED_FEATURES.get(name, NOTHING))
        for name, shape in sorted(shapes.items(), key=lambda item: item[0].casefold())
    )
    body = tuple(tuple(Entry(str(each)) for each in line) for line in lines)
    header = ("Data set", "Rows", "Features", "Classes", "Labeled rows", "Features as printed")
    return TextTable("Data sets; labeled rows are max(2 x features, 10).", header, body)


def _wide_csv(cells: Sequence[TableCell], measure: str) -> str:
    """One line a data set; for each method its mean and its standard deviation."""
    datasets, methods, found = arrange(cells, measure)
    header = ["dataset", *(f"{name}{end}" for name in methods for end in ("", " sd"))]
    lines = (
        [
            name,
            *(getattr(found.get((name, m)), key, None) for m in methods for key in ("mean", "sd")),
        ]
        for name in datasets
    )
    return csv_text(header, lines)


def table_files(
    results: Sequence[FitResult], shapes: Mapping[str, Sequence[int]] | None = None
) -> dict[str, str]:
    """File name to content: cells.csv, and every table as CSV, Markdown and LaTeX.

    ``shapes`` are rows, features and classes by data set.
    """
    cells, gaps, facts = summarize_tables(results), find_gaps(results), dataset_table(shapes or {})
    texts = {paper_measures()[m].name: text_table(cells, m, gaps) for m in table_measures()}
    sheets = {paper_measures()[m].name: _wide_csv(cells, m) for m in table_measures()}
    texts["datasets"] = facts
    sheets["datasets"] = csv_text(facts.header, ([e.text for e in row] for row in facts.body))
    written = {"cells.csv": attributes_csv([each.name for each in fields(TableCell)], cells)}
    for name, table in texts.items():
        if table.body:
            written[f"{name}.csv"] = sheets[name]
            written[f"{name}.md"] = to_markdown(table)
            written[f"{name}.tex"] = to_latex(table, f"tab:{name}")
    return written


@styled
def draw_table_overview(cells: Sequence[TableCell], measure: str = "error") -> Figure:
    """For each data set, how far each method lies from LDA: left is better."""
    datasets, methods, found = arrange(cells, measure)
    means = {key: cell.mean for key, cell in found.items()}
    shown = [method for method in methods if method != BASELINE]
    figure, grid = new_figure(5.0, 1.1 + 0.36 * max(len(datasets), 1))
    axes = grid[0, 0]
    axes.axvline(0, color=INK, linewidth=0.8)
    for rank, method in enumerate(shown):
        shift = 0.5 * (rank / max(len(shown) - 1, 1) - 0.5)  # equal dots do not hide each other
        pairs = [
            (place + shift, means.get((name, method)), means.get((name, BASELINE)))
            for place, name in enumerate(datasets)
        ]
        known = [(p, a - b) for p, a, b in pairs if a is not None and b is not None]
        is_reference = method == ORACLE
        axes.plot(
            [gap for _, gap in known],
            [place for place, _ in known],
            linestyle="none",
            marker="|" if is_reference else "o",
            markersize=8 if is_reference else 5,
            markeredgewidth=1.6 if is_reference else 1.2,
            markeredgecolor=paper_color(method),
            markerfacecolor="none" if method == "EMLDA-as-published" else paper_color(method),
            label=method,
            zorder=3 if method == "ICLDA" else 2,
        )
    axes.set_yticks(range(len(datasets)), datasets)
    axes.set_ylim(max(len(datasets), 1) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", color=FAINT, linewidth=0.4, alpha=0.5)
    axes.set_axisbelow(True)
    axes.set_xlabel(
        f"{paper_measures()[measure].axis} minus that of LDA  "
        "(\N{LEFTWARDS ARROW} better, worse \N{RIGHTWARDS ARROW})"
    )
    if shown:
        figure.legend(
            loc="outside upper left", ncols=3, frameon=False, handletextpad=0.2, fontsize=8.5
        )
    return figure
