"""Tables of a run in Markdown, read in a terminal as in a document."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log
from types import MappingProxyType

import numpy as np

from . import goals
from .given import RSSL_SECONDS
from .model import pass_costs
from .rows import (
    BESIDE_EM,
    Row,
    Run,
    grouped,
    known,
    median,
    worst,
)

Line = Sequence[str]
_FITS = (
    "large", "wide", "float32", "classes", "interior", "tied",
)  # fmt: skip
_NOTHING = "-"


def render(run: Run) -> str:
    """Every table that has rows, and what was left out."""
    parts = [table for make in _TABLES if (table := make(run.rows))]
    if run.notes:
        parts.append("\n".join(f"- {note.case}: {note.text}" for note in run.notes))
    failed = [_failure_line(row) for row in run.rows if row.failure]
    if failed:
        parts.append("\n".join(failed))
    return "\n\n".join(parts)


def _failure_line(row: Row) -> str:
    reason = (row.failure or "").strip().splitlines()[-1]
    return f"- {row.case}: {row.method} failed for seed {row.seed}: {reason}"


def machine_line(run: Run) -> str:
    """On what, with what, when."""
    machine = run.machine
    versions = ", ".join(f"{name} {number}" for name, number in run.versions.items())
    return (
        f"{machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB, "
        f"{machine['system']}; {machine['blas']}; {versions}; {run.began}, "
        f"{run.seconds:.0f} s."
    )


def table(title: str, head: Line, lines: Sequence[Line]) -> str:
    """A Markdown table with its title.

    Columns are padded, numbers stand to the right.
    """
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    is_text = [
        i == 0 or all(not _is_number(line[i]) for line in lines)
        for i in range(len(head))
    ]

    def draw(line: Line) -> str:
        cells = [
            word.ljust(width) if left else word.rjust(width)
            for word, width, left in zip(line, widths, is_text, strict=True)
        ]
        return "| " + " | ".join(cells) + " |"

    rule = [
        "-" * width if left else "-" * (width - 1) + ":"
        for width, left in zip(widths, is_text, strict=True)
    ]
    return "\n".join(
        [
            f"**{title}**",
            "",
            draw(head),
            "| " + " | ".join(rule) + " |",
            *map(draw, lines),
        ]
    )


def exponent(rows: Sequence[Row], least: int = 0) -> float | None:
    """Slope of log seconds over log rows: 1 is in proportion."""
    by_size: dict[int, list[float]] = {}
    for row in rows:
        if row.seconds and row.n_unlabeled >= least:
            by_size.setdefault(row.n_unlabeled, []).append(row.seconds)
    if len(by_size) < 2:
        return None
    sizes = [log(n) for n in by_size]
    return float(
        np.polyfit(sizes, [log(statistics.median(s)) for s in by_size.values()], 1)[0]
    )


def speed_ups(rows: Sequence[Row]) -> dict[tuple[str, int, int], list[float]]:
    """Time on one thread over time on two, by method and size, for every seed."""
    one = {_sample(row): row.seconds for row in rows if row.n_jobs == 1 and row.seconds}
    found: dict[tuple[str, int, int], list[float]] = {}
    for row in rows:
        if row.n_jobs == 2 and row.seconds and _sample(row) in one:
            key = (row.method, row.n_unlabeled, row.n_features)
            found.setdefault(key, []).append(one[_sample(row)] / row.seconds)
    return found


def _sample(row: Row) -> tuple[str, int, int, int]:
    return (row.method, row.n_unlabeled, row.n_features, row.seed)


def _fits(rows: Sequence[Row]) -> str:
    head = (
        "case",
        "rows",
        "classes",
        "method",
        "median",
        "worst",
        "goal",
        "seconds",
        "passes",
        "rounds",
        "gap",
        "not hard",
        "error",
    )
    chosen = grouped(row for row in rows if row.case in _FITS)
    lines = [_fit_line(group) for group in chosen.values()]
    return table("Fits, in units of X'X of the same rows", head, lines) if lines else ""


def _fit_line(rows: list[Row]) -> Line:
    first = rows[0]
    ratio = median(rows, "ratio")
    n_iter = median(rows, "n_iter")
    goal = goals.GOALS.get((first.case, first.method))
    words = _NOTHING
    if goal and ratio is not None and first.n_unlabeled == goals.ROWS:
        words = f"{goal.text(n_iter)} {goals.verdict(ratio, goal.limit(n_iter))}"
    return (
        first.case,
        _size(first),
        str(first.n_classes),
        first.method,
        _number(ratio, ".2f"),
        _number(worst(rows, "ratio"), ".2f"),
        words,
        _number(median(rows, "seconds"), ".3f"),
        _range(rows, "n_passes"),
        _range(rows, "n_iter"),
        _number(worst(rows, "gap"), ".0e"),
        _number(median(rows, "soft"), ".3f"),
        _number(median(rows, "error"), ".4f"),
    )


def _series(
    case: str,
    title: str,
    given: Mapping[str, Mapping[int, float]] = MappingProxyType({}),
) -> Callable[[Sequence[Row]], str]:
    """Seconds of every method against the number of unlabeled rows.

    ``given`` adds columns.
    """

    def make(rows: Sequence[Row]) -> str:
        chosen = [row for row in rows if row.case == case and row.seconds]
        if not chosen:
            return ""
        methods = list(dict.fromkeys(row.method for row in chosen))
        names = [f"{name}, s" for name in (*methods, *given)]
        head = ("unlabeled rows", *names, "ICLDA in X'X", "worst", "passes", "gap")
        lines = []
        for n in sorted({row.n_unlabeled for row in chosen}):
            here = [row for row in chosen if row.n_unlabeled == n]
            times = [
                _number(median(_of(here, method), "seconds"), ".4f")
                for method in methods
            ]
            times += [_number(column.get(n), ".2f") for column in given.values()]
            ours = _of(here, "ICLDA")
            ratios = [
                _number(median(ours, "ratio"), ".1f"),
                _number(worst(ours, "ratio"), ".1f"),
            ]
            gap = _number(worst(ours, "gap"), ".0e")
            lines.append((f"{n:,}", *times, *ratios, _range(ours, "n_passes"), gap))
        return table(title, head, lines)

    return make


def _model(rows: Sequence[Row]) -> str:
    words = {
        "moments": "moments of all rows (the whole of MCLDA)",
        "hard pass": "a pass that labels hard (of SLLDA)",
        "soft pass": "a pass that labels softly (of EMLDA)",
        "rest": "ICLDA beside moments and soft passes: sample, starts, curvature",
    }
    prices = pass_costs(rows, "large")
    lines = [(words[name], f"{price:.2f}") for name, price in prices.items()]
    title = "Prices of the cost model, in units of X'X, from the case large"
    return table(title, ("what", "X'X"), lines) if lines else ""


def _further(rows: Sequence[Row]) -> str:
    lines = [*_against_supervised(rows), *_exponents(rows), *_single_sizes(rows)]
    return table("Further goals", ("what", "measured", "goal"), lines) if lines else ""


def _against_supervised(rows: Sequence[Row]) -> Iterator[Line]:
    large = [
        row for row in rows if row.case == "large" and row.n_unlabeled == goals.ROWS
    ]
    ours, theirs = (median(_of(large, name), "ratio") for name in ("ICLDA", "LDA lsqr"))
    if ours and theirs:
        verdict = goals.verdict(theirs / ours, goals.FASTER, is_least=True)
        words = f"{goals.FASTER:g} {verdict}"
        yield (
            "scikit-learn's LDA lsqr, all rows labeled, over ICLDA",
            f"{theirs / ours:.2f}",
            words,
        )


def _exponents(rows: Sequence[Row]) -> Iterator[Line]:
    chosen = [row for row in rows if row.case == "growth"]
    is_whole = {row.n_unlabeled for row in chosen} >= set(goals.SPAN)
    for method in dict.fromkeys(row.method for row in chosen):
        for least in (0, goals.SWIFT_ROWS):
            slope = exponent(_of(chosen, method), least)
            if slope is None:
                continue
            words = _NOTHING
            if method == "ICLDA" and is_whole:
                words = f"{goals.EXPONENT} {goals.verdict(slope, goals.EXPONENT)}"
            where = f", from {least:,} rows on" if least else ""
            yield f"exponent of {method}{where}", f"{slope:.2f}", words


def _single_sizes(rows: Sequence[Row]) -> Iterator[Line]:
    ours = [row for row in rows if (row.case, row.method) == ("growth", "ICLDA")]
    swift = median(
        [row for row in ours if row.n_unlabeled == goals.SWIFT_ROWS], "seconds"
    )
    if swift is not None:
        most = goals.SWIFT_MILLISECONDS
        words = f"{most:g} {goals.verdict(1e3 * swift, most)}"
        yield (
            f"ICLDA on {goals.SWIFT_ROWS:,} x 20, milliseconds",
            f"{1e3 * swift:.0f}",
            words,
        )
    huge = median([row for row in ours if row.n_unlabeled == goals.HUGE_ROWS], "ratio")
    if huge is not None:
        words = f"{goals.HUGE.text(None)} {goals.verdict(huge, goals.HUGE.units)}"
        yield f"ICLDA on {goals.HUGE_ROWS:,} x 20, X'X", f"{huge:.2f}", words


def _threads(rows: Sequence[Row]) -> str:
    lines = []
    here = [row for row in rows if row.case == "threads"]
    for (method, n, d), values in speed_ups(here).items():
        middle = statistics.median(values)
        goal = goals.SPEED_UP.get(method)
        is_judged = goal is not None and n >= goals.ROWS
        words = (
            f"{goal} {goals.verdict(middle, goal, is_least=True)}"
            if is_judged
            else _NOTHING
        )
        lines.append(
            (f"{n:,} x {d}", method, f"{middle:.2f}", f"{min(values):.2f}", words)
        )
    head = ("rows", "method", "median", "worst", "goal")
    return (
        table("Two threads: how many times faster than one", head, lines)
        if lines
        else ""
    )


def _predict(rows: Sequence[Row]) -> str:
    groups = grouped(row for row in rows if row.case == "predict")
    lines = [
        (
            _size(group[0]),
            str(group[0].n_classes),
            group[0].method,
            _number(median(group, "ratio"), ".2f"),
            _number(median(group, "seconds"), ".3f"),
        )
        for group in groups.values()
    ]
    head = ("rows", "classes", "method", "in X @ W", "seconds")
    return (
        table("Predicting, in units of one product X @ W", head, lines) if lines else ""
    )


def _sets(rows: Sequence[Row]) -> str:
    lines = []
    for (_, method), group in grouped(
        row for row in rows if row.case == "sets"
    ).items():
        alone = median(group, "seconds")
        shared = median(group, "shared_seconds")
        goal = goals.MILLISECONDS[method]
        words = _NOTHING
        if alone is not None and len(group) == goals.SETS:
            words = f"{goal:g} {goals.verdict(1e3 * alone, goal)}"
        times = [_milliseconds(x) for x in (alone, worst(group, "seconds"), shared)]
        lines.append(
            (
                method,
                *times,
                words,
                str(len(group)),
                _number(worst(group, "gap"), ".0e"),
            )
        )
    head = (
        "method",
        "ms a fit",
        "slowest set",
        "problem at hand",
        "goal",
        "sets",
        "gap",
    )
    return table("Benchmark sets: median over the sets", head, lines) if lines else ""


def _memory(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        if row.extra_mib is not None:
            words = (
                f"{goals.MEMORY_MIB:g} {goals.verdict(row.extra_mib, goals.MEMORY_MIB)}"
            )
            words = words if row.n_unlabeled >= goals.SWIFT_ROWS else _NOTHING
            lines.append(
                (
                    _size(row),
                    str(row.n_classes),
                    row.method,
                    f"{row.extra_mib:.1f}",
                    words,
                )
            )
    head = ("rows", "classes", "method", "MiB", "goal")
    return table("Peak memory beyond the input", head, lines) if lines else ""


def _default(rows: Sequence[Row]) -> str:
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.case == "default":
            size = (_size(row), str(row.n_classes), str(row.n_labeled))
            groups.setdefault((row.method, *size), []).append(row)
    lines = []
    for (method, *size), group in groups.items():
        for what, value, goal in _default_values(group):
            words = "-" if goal is None else f"{goal:g} {goals.verdict(value, goal)}"
            lines.append((method, *size, what, f"{value:.2f}", words))
    head = ("what", "rows", "classes", "labels", "unit", "measured", "goal")
    return table("What people call first", head, lines) if lines else ""


def _default_values(rows: list[Row]) -> Iterator[tuple[str, float, float | None]]:
    """Yield units, numbers and goals."""
    first = rows[0]
    ratio = median(rows, "ratio")
    if ratio is not None:
        yield first.unit, ratio, _goal_in_units(first)
        return
    seconds = median(rows, "seconds")
    if seconds is not None:
        yield "seconds", seconds, goals.SECONDS.get(first.method)
    processor_seconds = median(rows, "processor_seconds")
    if processor_seconds is not None:
        goal = goals.PROCESSOR_SECONDS.get(first.method)
        yield "processor seconds", processor_seconds, goal


def _goal_in_units(row: Row) -> float | None:
    if row.method == BESIDE_EM:
        return goals.BESIDE_EM
    if row.n_unlabeled != goals.ROWS:
        return None
    return goals.DEFAULT_UNITS.get(row.n_classes)


_TABLES = (
    _fits,
    _model,
    _series("growth", "Seconds against unlabeled rows: 20 features, 100 labels"),
    _further,
    _threads,
    _predict,
    _sets,
    _series(
        "small",
        "Seconds against unlabeled rows: 10 features, 20 labels",
        {"RSSL (given)": RSSL_SECONDS},
    ),
    _memory,
    _default,
)


def _of(rows: Sequence[Row], method: str) -> list[Row]:
    return [row for row in rows if row.method == method]


def _size(row: Row) -> str:
    words = f"{row.n_unlabeled:,} x {row.n_features}"
    return words if row.dtype == "float64" else f"{words} {row.dtype}"


def _number(value: float | None, form: str) -> str:
    return _NOTHING if value is None else format(value, form)


def _milliseconds(seconds: float | None) -> str:
    return _NOTHING if seconds is None else f"{1e3 * seconds:.3g}"


def _range(rows: Sequence[Row], name: str) -> str:
    values = known(rows, name)
    if not values:
        return _NOTHING
    low = min(values)
    high = max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def _is_number(word: str) -> bool:
    return re.fullmatch(r"-|[\d,.]+(e[-+]\d+)?( to \d+)?", word) is not None
