"""From the rows of the cross-validations to cells, and from cells to the paper's tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import fsum, isfinite, sqrt
from pathlib import Path

from ..cells import EXTRA_METHODS, MEASURES, METHODS, N_FOLDS, TABLES, Row
from ..page import NOTHING, Entry, TextTable, csv_text, to_latex, to_markdown
from .published import PRINTED_FEATURES, published_cells, published_name, z_score
from .significance import Contest, Summary, bold, contest_with_runner_up

MEASURE_NAMES = {"error": "error", "nll": "loss"}
DECIMALS = {"error": 3, "nll": 2}
_CAPTIONS = {
    "error": "Share of test rows classified wrongly",
    "nll": "Loss: mean over test rows of the negative log joint density",
}


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
class Gap:
    """What a data set and method lack: repeats that count for nothing, and why."""

    dataset: str
    method: str
    n_complete: int
    n_repeats: int
    n_failed: int

    def __str__(self) -> str:
        failed = f", {self.n_failed} failed fits" if self.n_failed != 1 else ", 1 failed fit"
        return (
            f"{self.dataset}, {self.method}: {self.n_complete} of {self.n_repeats} repeats are "
            f"complete{failed if self.n_failed else ''}"
        )


@dataclass(frozen=True)
class DatasetFacts:
    """Size of one data set."""

    name: str
    n_rows: int
    n_features: int
    n_classes: int

    @property
    def n_labeled(self) -> int:
        """The paper's max(2 x features, 10)."""
        return max(2 * self.n_features, 10)


@dataclass(frozen=True)
class Marks:
    """Bold and underlined cells of one measure, by data set."""

    bold: dict[str, frozenset[str]]
    underlined: dict[str, str]
    contests: dict[str, Contest]


def repeat_values(rows: Iterable[Row], measure: str) -> dict[tuple[str, str], list[float]]:
    """By (data set, method): the value of each complete repeat, folds weighted by their rows."""
    return {
        key: [
            fsum(n * value for n, value in folds.values()) / sum(n for n, _ in folds.values())
            for _, folds in sorted(repeats.items())
            if len(folds) == N_FOLDS
        ]
        for key, repeats in _folds(rows, measure).items()
    }


def _folds(
    rows: Iterable[Row], measure: str
) -> dict[tuple[str, str], dict[int, dict[int, tuple[int, float]]]]:
    """By (data set, method), repeat and fold: number of test rows and value.

    A measure that a method does not have leaves the method out; failed fits do not.
    """
    found: dict[tuple[str, str], dict[int, dict[int, tuple[int, float]]]] = {}
    for row in rows:
        value = getattr(row, measure)
        if row.experiment != TABLES or (value is None and row.failure is None):
            continue
        folds = found.setdefault((row.dataset, row.method), {}).setdefault(row.repeat, {})
        if row.failure is None and isfinite(value):
            folds[row.part] = (row.n_test, value)
    return found


def summarize(rows: Sequence[Row]) -> list[TableCell]:
    """Cells of both measures, by data set and method, beside the published ones."""
    return [
        _cell(dataset, method, measure, values)
        for measure in MEASURES
        for (dataset, method), values in sorted(
            repeat_values(rows, measure).items(), key=lambda item: _place(*item[0])
        )
    ]


def _cell(dataset: str, method: str, measure: str, values: list[float]) -> TableCell:
    n = len(values)
    mean = fsum(values) / n if n else None
    sd = sqrt(fsum((v - fsum(values) / n) ** 2 for v in values) / (n - 1)) if n > 1 else None
    published = published_cells().get((dataset, published_name(method) or "", measure))
    if published is None:
        return TableCell(dataset, method, measure, mean, sd, n, None, None, None)
    z = z_score(mean, sd, n, published) if mean is not None else None
    return TableCell(dataset, method, measure, mean, sd, n, published.mean, published.sd, z)


def _place(dataset: str, method: str) -> tuple[str, int, str]:
    known = METHODS + EXTRA_METHODS
    return dataset.casefold(), known.index(method) if method in known else len(known), method


def find_gaps(rows: Iterable[Row]) -> list[Gap]:
    """Data sets and methods with repeats that lack a fold, or whose fits failed."""
    table_rows = [row for row in rows if row.experiment == TABLES]
    repeats: dict[str, set[int]] = defaultdict(set)
    failed: dict[tuple[str, str], int] = defaultdict(int)
    for row in table_rows:
        repeats[row.dataset].add(row.repeat)
        failed[row.dataset, row.method] += row.failure is not None
    gaps = []
    for measure in MEASURES:
        for (dataset, method), values in repeat_values(table_rows, measure).items():
            if len(values) < len(repeats[dataset]):
                n_failed = failed[dataset, method]
                gaps.append(Gap(dataset, method, len(values), len(repeats[dataset]), n_failed))
    return sorted(set(gaps), key=lambda gap: _place(gap.dataset, gap.method))


def mark(cells: Iterable[TableCell], measure: str) -> Marks:
    """Bold and underline by the paper's rule, winners against the true runner-up."""
    by_dataset: dict[str, dict[str, Summary]] = defaultdict(dict)
    for cell in cells:
        if cell.measure == measure and cell.mean is not None and cell.sd is not None:
            by_dataset[cell.dataset][cell.method] = Summary(cell.mean, cell.sd, cell.repeats)
    contests = {name: contest_with_runner_up(found) for name, found in by_dataset.items()}
    held = {name: contest for name, contest in contests.items() if contest is not None}
    return Marks(
        bold={name: bold(found) for name, found in by_dataset.items()},
        underlined={name: contest.winner for name, contest in held.items() if contest.is_won},
        contests=held,
    )


def names_of(cells: Iterable[TableCell], measure: str) -> tuple[list[str], list[str]]:
    """Data sets and methods of a measure, in the order of the tables."""
    places = sorted(
        (*_place(c.dataset, c.method), c.dataset) for c in cells if c.measure == measure
    )
    methods = sorted({place[1:3] for place in places})
    return list(dict.fromkeys(place[3] for place in places)), [name for _, name in methods]


def text_table(cells: Sequence[TableCell], measure: str, gaps: Sequence[Gap] = ()) -> TextTable:
    """The error table or the loss table, with bold and underline; a dagger marks a gap."""
    datasets, methods = names_of(cells, measure)
    found = {(c.dataset, c.method): c for c in cells if c.measure == measure}
    marks, lacking = mark(cells, measure), {(gap.dataset, gap.method) for gap in gaps}
    body = tuple(
        (
            Entry(dataset),
            *(
                Entry(
                    _text(found.get((dataset, method)), (dataset, method) in lacking),
                    method in marks.bold.get(dataset, ()),
                    marks.underlined.get(dataset) == method,
                )
                for method in methods
            ),
        )
        for dataset in datasets
    )
    caption = f"{_CAPTIONS[measure]}: mean ± standard deviation over the repeats."
    notes = tuple(f"† {gap}." for gap in gaps if gap.dataset in datasets)
    return TextTable(caption, ("Data set", *methods), body, notes)


def _text(cell: TableCell | None, is_lacking: bool) -> str:
    if cell is None or cell.mean is None:
        return f"{NOTHING}†" if is_lacking else NOTHING
    digits = DECIMALS[cell.measure]
    spread = "" if cell.sd is None else f" ± {cell.sd:.{digits}f}"
    return f"{cell.mean:.{digits}f}{spread}{'†' if is_lacking else ''}"


def dataset_table(datasets: Iterable[DatasetFacts]) -> TextTable:
    """The paper's Table I, with the number of features it printed beside the true one."""
    body = tuple(
        (
            Entry(facts.name),
            *(Entry(str(n)) for n in (facts.n_rows, facts.n_features, facts.n_classes)),
            Entry(str(facts.n_labeled)),
            Entry(str(PRINTED_FEATURES.get(facts.name, NOTHING))),
        )
        for facts in sorted(datasets, key=lambda facts: facts.name.casefold())
    )
    header = ("Data set", "Rows", "Features", "Classes", "Labeled rows", "Features as printed")
    return TextTable("Data sets; labeled rows are max(2 x features, 10).", header, body)


def cells_csv(cells: Iterable[TableCell]) -> str:
    """All cells, one a line; an unknown number is an empty field."""
    names = [field.name for field in fields(TableCell)]
    return csv_text(names, ([getattr(cell, name) for name in names] for cell in cells))


def wide_csv(cells: Sequence[TableCell], measure: str) -> str:
    """One line a data set; for each method its mean and its standard deviation."""
    datasets, methods = names_of(cells, measure)
    found = {(c.dataset, c.method): c for c in cells if c.measure == measure}
    header = ["dataset", *(f"{name}{end}" for name in methods for end in ("", " sd"))]
    lines = (
        [dataset, *(value for method in methods for value in _pair(found.get((dataset, method))))]
        for dataset in datasets
    )
    return csv_text(header, lines)


def _pair(cell: TableCell | None) -> tuple[float | None, float | None]:
    return (cell.mean, cell.sd) if cell else (None, None)


def table_files(rows: Sequence[Row], datasets: Iterable[DatasetFacts] = ()) -> dict[str, str]:
    """File name to content: cells.csv, and every table as CSV, Markdown and LaTeX."""
    cells, gaps = summarize(rows), find_gaps(rows)
    written = {"cells.csv": cells_csv(cells)}
    for measure, name in MEASURE_NAMES.items():
        table = text_table(cells, measure, gaps)
        if table.body:
            written[f"{name}.csv"] = wide_csv(cells, measure)
            written |= _renderings(name, table)
    facts = dataset_table(datasets)
    if facts.body:
        lines = ([entry.text for entry in row] for row in facts.body)
        written["datasets.csv"] = csv_text(facts.header, lines)
        written |= _renderings("datasets", facts)
    return written


def _renderings(name: str, table: TextTable) -> Mapping[str, str]:
    return {f"{name}.md": to_markdown(table), f"{name}.tex": to_latex(table, f"tab:{name}")}


def write_tables(
    out: Path, rows: Sequence[Row], datasets: Iterable[DatasetFacts] = ()
) -> list[Path]:
    """Write ``table_files`` under ``out``/tables; the paths written."""
    folder = out / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in table_files(rows, datasets).items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths
