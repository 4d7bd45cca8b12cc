"""What the cells say: a table of errors, and whether the bars are met."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from .contestants import CONTESTANTS, DEFAULT, PEERS
from .draws import MIN_LABELS
from .store import Cell

# Bars, in points of percent.
MIN_LEAD = 2.0
MAX_WORST_REGRET = 10.0
MAX_MEAN_REGRET = 3.0
MIN_COVERAGE = 88.0
# Seconds of a fit and its predictions, on tables of at most this size.
MAX_SECONDS = 3.0
_TIMED_CLASSES = 2
_TIMED_COLUMNS = 30
_TIMED_LABELS = 50
_SHOWN_TABLES = 5
_TABLE = "table"
_LABELS = "labels a class"


def summarize(cells: Sequence[Cell], with_members: bool = False) -> str:
    """Return the table of errors and the bars, as lines of Markdown."""
    means = mean_errors(cells)
    n_tables = means.index.get_level_values(_TABLE).nunique()
    lines = error_lines(means)
    if with_members:
        lines += _member_lines(cells)
    lines += [
        "",
        f"Error on new rows in %: {len(cells)} draws of labels, {len(means)} pairs of "
        f"table and number of labels, {n_tables} tables.",
        "",
        *_lead_lines(means),
        *_regret_lines(means),
        *_coverage_lines(cells),
        *_second_lines(cells),
        *_failure_lines(cells),
    ]
    return "\n".join(lines)


def mean_errors(cells: Sequence[Cell], key: str = "errors") -> pd.DataFrame:
    """Errors in %, mean over draws: a row for every table and number of labels."""
    errors = 100 * pd.DataFrame([cell[key] for cell in cells])
    tables = pd.Series([cell["table"] for cell in cells], name=_TABLE)
    labels = pd.Series([cell["labels_a_class"] for cell in cells], name=_LABELS)
    return errors.groupby([tables, labels]).mean()


def error_lines(means: pd.DataFrame) -> list[str]:
    """Return the mean errors over tables, by labels a class and in all."""
    by_labels = means.groupby(level=_LABELS).mean().reindex(MIN_LABELS)
    header = " | ".join(f"{n}" for n in MIN_LABELS)
    lines = [
        f"| labels a class | all | {header} |",
        "|---" * (2 + len(MIN_LABELS)) + "|",
    ]
    for name in means.columns:
        numbers = [means[name].mean(), *by_labels[name]]
        lines.append(f"| {name} | " + " | ".join(map(_percent, numbers)) + " |")
    return lines


def _percent(value: float) -> str:
    """Return a number with one digit, nothing where nothing was measured."""
    return "" if pd.isna(value) else f"{value:.1f}"


def _member_lines(cells: Sequence[Cell]) -> list[str]:
    """Return lines of the table of errors for the members of the ensembles."""
    with_members = [cell for cell in cells if cell.get("members")]
    if not with_members:
        return []
    lines = error_lines(mean_errors(with_members, "members").add_prefix("member: "))
    # Header and rule stand above already.
    return lines[2:]


def _lead_lines(means: pd.DataFrame) -> list[str]:
    own = means[DEFAULT].mean()
    peers = means[list(PEERS)].mean()
    lead = peers.min() - own
    lines = [
        f"- {DEFAULT} has {own:.1f} %, the best peer ({peers.idxmin()}) "
        f"{peers.min():.1f} %: a lead of {lead:.1f} points, at least {MIN_LEAD:.0f}: "
        f"{met(lead >= MIN_LEAD)}"
    ]
    for n_labels, row in means.groupby(level=_LABELS).mean().iterrows():
        best = row[list(PEERS)].astype(float)
        lines.append(
            f"- With {n_labels} labels a class {row[DEFAULT]:.1f} %, at most that of "
            f"the best peer there ({best.idxmin()}), {best.min():.1f} %: "
            f"{met(row[DEFAULT] <= best.min())}"
        )
    return lines


def _regret_lines(means: pd.DataFrame) -> list[str]:
    """Return lines on what is lost against the best contestant in hindsight.

    That of a table is over all its draws; that of a table with one number of labels is
    never less in the worst case, and more a matter of chance.
    """
    contestants = means[list(CONTESTANTS)]
    lines = []
    for kind, errors in (
        ("a table", contestants.groupby(level=_TABLE).mean()),
        ("a table with one number of labels", contestants),
    ):
        regret = (errors[DEFAULT] - errors.min(axis=1)).sort_values(ascending=False)
        worst = [
            f"{_name(label)} {value:.1f} ({errors.loc[label].idxmin()})"
            for label, value in regret.iloc[:_SHOWN_TABLES].items()
        ]
        lines += [
            f"- The worst regret of {kind} is {regret.max():.1f} points, at most "
            f"{MAX_WORST_REGRET:.0f}: {met(regret.max() <= MAX_WORST_REGRET)}",
            f"- The mean regret of {kind} is {regret.mean():.1f} points, at most "
            f"{MAX_MEAN_REGRET:.0f}: {met(regret.mean() <= MAX_MEAN_REGRET)}",
            f"- The worst, and what is best there: {'; '.join(worst)}",
        ]
    return lines


def _name(label: str | tuple[str, int]) -> str:
    return label if isinstance(label, str) else f"{label[0]} with {label[1]} a class"


def _coverage_lines(cells: Sequence[Cell]) -> list[str]:
    """Return the share of draws whose error is in the stated interval, by labels."""
    lines = []
    for labels_a_class in MIN_LABELS:
        there = [cell for cell in cells if cell["labels_a_class"] == labels_a_class]
        stated = [cell for cell in there if cell.get("interval")]
        if not stated:
            continue
        n_unstated = len(there) - len(stated)
        coverage = 100 * sum(map(_is_covered, stated)) / len(stated)
        lines.append(
            f"- With {labels_a_class} labels a class the interval holds the error in "
            f"{coverage:.1f} % of {len(stated)} draws ({n_unstated} state none), at "
            f"least {MIN_COVERAGE:.0f} %: {met(coverage >= MIN_COVERAGE)}"
        )
    return lines


def _is_covered(cell: Cell) -> bool:
    low, high = cell["interval"]
    return low <= cell["errors"][DEFAULT] <= high


def _second_lines(cells: Sequence[Cell]) -> list[str]:
    seconds = pd.Series([cell["seconds"][DEFAULT] for cell in cells])
    slowest = cells[int(seconds.idxmax())]
    lines = [
        f"- {DEFAULT} takes {seconds.mean():.1f} s in the mean, {seconds.max():.1f} s "
        f"at most ({slowest['table']}, {slowest['labels']} labels)"
    ]
    timed = [
        cell["seconds"][DEFAULT]
        for cell in cells
        if cell["n_classes"] == _TIMED_CLASSES
        and cell["n_columns"] <= _TIMED_COLUMNS
        and cell["labels"] <= _TIMED_LABELS
    ]
    if timed:
        lines.append(
            f"- With {_TIMED_CLASSES} classes, up to {_TIMED_COLUMNS} columns and "
            f"{_TIMED_LABELS} labels it takes {max(timed):.1f} s at most, at most "
            f"{MAX_SECONDS:.0f}: {met(max(timed) <= MAX_SECONDS)}"
        )
    return lines


def _failure_lines(cells: Sequence[Cell]) -> list[str]:
    return [
        f"- FAILED: {name} on {cell['table']}, {cell['labels']} labels, draw "
        f"{cell['draw']}: {message}"
        for cell in cells
        for name, message in cell["failures"].items()
    ]


def met(is_met: bool) -> str:
    return "met" if is_met else "MISSED"
