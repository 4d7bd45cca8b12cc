"""Rows of results, their file, and summaries of several rows."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

FORMAT = 1
# One X whose unlabeled rows carry y = -1, instead of X_unlabeled.
MARKED = "ICLDA, marked"
# Of the rows, by X @ w: what memory allows.
READ = "one read"
# In units of EM on the same rows.
BESIDE_EM = "ICLDA beside EM"
COMPARE_FIRST = "iclda compare: first ranking"
COMPARE_ANSWER = "iclda compare: answer"
FIT_COMMAND = "iclda fit"
OURS = ("LDA", "MCLDA", "SLLDA", "EMLDA", "ICLDA", MARKED, "predict", "predict_proba")


@dataclass(frozen=True)
class Row:
    """One thing measured on one sample: its time, its unit's, and how good it was."""

    case: str
    method: str
    n_unlabeled: int
    n_features: int
    n_classes: int
    n_labeled: int
    seed: int = 0
    dtype: str = "float64"
    n_jobs: int = 1
    dataset: str | None = None
    # Median of the runs.
    seconds: float | None = None
    n_runs: int = 0
    unit: str = "X'X"
    unit_seconds: float | None = None
    # Of all processors, with those of processes that were started.
    processor_seconds: float | None = None
    # Of a fit to a problem that other methods have used.
    shared_seconds: float | None = None
    # So many of these fits count as one measurement in a comparison.
    batch: int = 1
    objective: float | None = None
    gap: float | None = None
    n_passes: int | None = None
    n_iter: int | None = None
    n_optima: int | None = None
    converged: bool | None = None
    # Share of unlabeled rows classified wrongly.
    error: float | None = None
    # Share of unlabeled rows whose imputed label is not hard.
    soft: float | None = None
    # Peak memory beyond the input.
    extra_mib: float | None = None
    failure: str | None = None

    @property
    def ratio(self) -> float | None:
        """Seconds in units."""
        if self.seconds is None or not self.unit_seconds:
            return None
        return self.seconds / self.unit_seconds

    @property
    def group(self) -> tuple[Any, ...]:
        """What rows share that differ in the sample alone."""
        if self.dataset is not None:
            return (self.case, self.method)
        size = (self.n_unlabeled, self.n_features, self.n_classes, self.n_labeled)
        return (self.case, self.method, *size, self.dtype, self.n_jobs)

    @property
    def member(self) -> tuple[Any, ...]:
        """Which sample of its group a row is about."""
        return (self.dataset, self.seed)


@dataclass(frozen=True)
class Note:
    """A case, or a part of one, that was left out, and why."""

    case: str
    text: str


@dataclass
class Run:
    """Results of one run of the benchmarks."""

    machine: dict[str, Any]
    versions: dict[str, str]
    began: str = ""
    seconds: float = 0.0
    rows: list[Row] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def grouped(rows: Iterable[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by group, in the order in which groups first appear."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return groups


def known(rows: Sequence[Row], name: str) -> list[Any]:
    """The values of a field or property in those rows that have one."""
    return [value for row in rows if (value := getattr(row, name)) is not None]


def median(rows: Sequence[Row], name: str) -> float | None:
    values = known(rows, name)
    return statistics.median(values) if values else None


def worst(rows: Sequence[Row], name: str) -> float | None:
    values = known(rows, name)
    return max(values) if values else None


def write_run(run: Run, path: Path) -> None:
    """JSON, one row a line: it can be read, searched and compared line by line."""
    head = {
        "format": FORMAT,
        "machine": run.machine,
        "versions": run.versions,
        "began": run.began,
        "seconds": round(run.seconds, 1),
        "notes": [asdict(note) for note in run.notes],
    }
    lines = [
        f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()
    ]
    rows = ",\n".join(f"    {json.dumps(_brief(row))}" for row in run.rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["{", *lines, '  "rows": [', rows, "  ]", "}"]) + "\n")


def read_run(path: Path) -> Run:
    """A run from its file; fields that are not known here are left out."""
    found = json.loads(path.read_text())
    names = {one.name for one in fields(Row)}
    rows = [
        Row(**{k: v for k, v in row.items() if k in names}) for row in found["rows"]
    ]
    return Run(
        machine=found["machine"],
        versions=found["versions"],
        began=found["began"],
        seconds=found["seconds"],
        rows=rows,
        notes=[Note(**note) for note in found["notes"]],
    )


def _brief(row: Row) -> dict[str, Any]:
    """Fields that differ from their default; floats to the digits that count."""
    defaults = {one.name: one.default for one in fields(Row)}
    kept = {
        name: value for name, value in asdict(row).items() if value != defaults[name]
    }
    return {k: _rounded(v, 10 if k == "objective" else 5) for k, v in kept.items()}


def _rounded(value: Any, n_digits: int) -> Any:
    return float(f"{value:.{n_digits}g}") if isinstance(value, float) else value
