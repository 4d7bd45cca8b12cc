"""One comparison: which methods, on which table, into which folder; planned, run and kept."""

from __future__ import annotations

import platform
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import Enum
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ..._messages import Hint, ParameterError, Text, Words
from ..._packages import versions
from ...methods import METHODS, Method
from ...tabular import Table
from ..cells import Cell
from ..engine import Advance, Work, run_missing, run_tasks
from ..store import FORMAT, Store, StoreError
from .contestants import (
    Contestant,
    Shrinkage,
    Size,
    default_shrinkages,
    is_slow,
    line_up,
    on_curves,
    shrinkage_text,
)
from .measuring import Data, failed, run_cell
from .preflight import Remark, Sample, inspect, preflight
from .results import COMPARISON, LABELED, UNLABELED, Result
from .splits import (
    Splits,
    is_capped,
    labeled_sizes,
    plan_comparison,
    plan_curve,
    unlabeled_sizes,
)
from .summary import summarize

STORE = "rows.sqlite"
FILES = {"comparison": "comparison.csv", "curves": "curves.csv", "report": "report.html"}
FOLDS = 10
_LARGE = 200_000  # cells of a table, above which a fit takes a second or so
KIND = "comparison"
_SHOWN = {UNLABELED: "curve of unlabeled rows", LABELED: "curve of labeled rows"}  # by bars


class Pace(Enum):
    """Repeats, and splits of the curves: fewer where a fit takes longer."""

    QUICK = (10, 10)
    LARGE = (5, 10)
    SLOW = (2, 5)

    @property
    def repeats(self) -> int:
        """Times the folds are dealt anew."""
        return self.value[0]

    @property
    def curve_splits(self) -> int:
        """Splits of the curves."""
        return self.value[1]


@dataclass(frozen=True)
class Comparison:
    """Settings of a run; those that are None are chosen by the table."""

    table: Table
    out: Path
    methods: tuple[Method, ...] = METHODS
    shrinkages: tuple[Shrinkage, ...] | None = None
    repeats: int | None = None
    folds: int | None = None
    n_labeled: int | None = None
    missing: str = "impute"
    seed: int = 0
    jobs: int = 1
    command: str = ""
    unlabeled: str | None = None  # how the table was read
    dropped: tuple[str, ...] = ()
    words: Words = str  # of remarks and failures that are kept for whoever reads the report

    @property
    def name(self) -> str:
        """The name of the file."""
        return Path(self.table.sources[0].path).name

    @cached_property
    def splits(self) -> Splits:
        """The folds; ValueError where the labels do not allow them."""
        check_labels(self)
        rarest = _rarest(self.table)
        n_folds = self.folds or min(FOLDS, rarest[1])
        most = self.repeats or Pace.QUICK.repeats
        return Splits(self.table.labels, n_folds, most, self.n_labeled, self.seed)

    @cached_property
    def is_slow(self) -> bool:
        """Whether a fit that searches takes seconds, however few the rows."""
        return is_slow(self.size.n_unknowns) and any(each.is_searched for each in self.methods)

    @cached_property
    def pace(self) -> Pace:
        """How much is computed by default."""
        if self.is_slow:
            return Pace.SLOW
        return Pace.LARGE if self.table.features.size > _LARGE else Pace.QUICK

    @property
    def n_repeats(self) -> int:
        """Repeats of the comparison."""
        return self.repeats or self.pace.repeats

    @property
    def n_curve_splits(self) -> int:
        """Splits of the curves, the first ones of the comparison."""
        return min(self.pace.curve_splits, self.splits.n_folds * self.n_repeats)

    @cached_property
    def sample(self) -> Sample:
        """Rows as numbers, to look at."""
        return inspect(self.table, self.missing)

    @cached_property
    def size(self) -> Size:
        """What every split trains on."""
        return Size(self.splits.n_used, len(self.splits.counts), int(self.sample.values.shape[1]))

    @cached_property
    def chosen_shrinkages(self) -> tuple[Shrinkage, ...]:
        """Those asked for, or what suits the table."""
        return self.shrinkages or default_shrinkages(self.size)

    @cached_property
    def contestants(self) -> tuple[Contestant, ...]:
        """Methods and shrinkages."""
        return line_up(self.methods, self.chosen_shrinkages, self.size)

    @cached_property
    def remarks(self) -> list[Remark]:
        """The table in words."""
        found = preflight(self.table, self.sample, self.splits, self.missing)
        return [replace(remark, text=self.words(remark.text)) for remark in found]


def _rarest(table: Table) -> tuple[str, int]:
    labels = table.labels[table.is_labeled].tolist()
    return min(((name, labels.count(name)) for name in table.classes), key=lambda pair: pair[1])


def check_labels(comparison: Comparison) -> None:
    """ValueError unless every class can be trained on and tested, and something is unlabeled."""
    name, count = _rarest(comparison.table)
    if count < 2:
        raise ValueError(
            f"Class {name!r} has 1 labeled row, and a comparison needs 2 of every class, one to "
            "train on and one to test: label more rows. `iclda fit` needs one only."
        )
    if comparison.folds is not None and not 2 <= comparison.folds <= count:
        raise ParameterError(
            Text(
                Hint("folds", comparison.folds),
                f" must lie between 2 and {count}, the number of labeled rows of class {name!r}: "
                "every fold tests a row of every class.",
            ),
            parameter="folds",
            value=comparison.folds,
        )
    n_labels = int(comparison.table.is_labeled.sum())
    if comparison.n_labeled is None:
        if n_labels == len(comparison.table.labels):
            raise ValueError(
                Text(
                    f"All {n_labels:,} rows are labeled, so that there is nothing to compare: "
                    "pass ",
                    Hint("n_labeled", 30),
                    ", say, to hide the other labels, ",
                    Hint("unlabeled", text="unlabeled", kind="any"),
                    " if a value of the target marks unlabeled rows, or ",
                    Hint("unlabeled_file"),
                    ".",
                )
            )
        return
    n_folds = comparison.folds or min(FOLDS, count)
    most = n_labels - -(-n_labels // n_folds) - 1
    least = len(comparison.table.classes)
    if not least <= comparison.n_labeled <= most:
        raise ParameterError(
            Text(
                Hint("n_labeled", comparison.n_labeled),
                f" must lie between {least}, one label a class, and {most:,}, which leaves labels "
                f"to hide among the rows that train ({n_labels:,} labels in {n_folds} folds).",
            ),
            parameter="n_labeled",
            value=comparison.n_labeled,
        )


def check_out(comparison: Comparison) -> None:
    """What can be wrong with the folder before anything is computed; nothing is written."""
    out = comparison.out
    for folder in (out, *out.parents):
        if folder.exists() and not folder.is_dir():
            raise _bad_out(out, f": {folder} is a file, name a folder.")
    if (out / STORE).exists():
        store = Store(out / STORE, read_only=True, row_type=Result)
        try:
            _agree(store, comparison)
        finally:
            store.close()
        return
    strange = [name for name in FILES.values() if (out / name).exists()]
    if strange:
        raise _bad_out(
            out,
            f" holds {' and '.join(strange)} that no comparison there has written, for there is no "
            f"{STORE} beside: name another folder, or move it away.",
        )


def make_out(comparison: Comparison) -> None:
    """The folder, and ValueError if it cannot be made or written to."""
    try:
        comparison.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=comparison.out):
            pass
    except OSError as error:
        raise _bad_out(
            comparison.out, f" cannot be written to ({error.strerror}): name another folder."
        ) from error


def _bad_out(out: Path, problem: str) -> ParameterError:
    return ParameterError(Text(Hint("out", out), problem), parameter="out", value=out)


def _agree(store: Store, comparison: Comparison) -> dict[str, Any]:
    """Settings to keep; StoreError if a folder holds another table or other settings."""
    names = [name for name in store.settings().get("data", {}) if name != comparison.name]
    if names:
        raise StoreError(
            Text(
                f"{comparison.out} holds the comparison of {', '.join(names)}, and this one is of "
                f"{comparison.name}: use another ",
                Hint("out"),
                ", or remove the folder.",
            )
        )
    return store.agreed(**_agreed(comparison))


def run_comparison(comparison: Comparison, advance: Advance) -> None:
    """Compute what is missing: the comparison, then the learning curves."""
    with open_run(comparison) as run:
        run.compare(advance)
        run.add_curves(advance)


@contextmanager
def open_run(comparison: Comparison) -> Iterator[Run]:
    """Take the lock of the folder, and note the settings of the run there."""
    known = facts(comparison)
    store = Store(comparison.out / STORE, row_type=Result)
    try:
        store.note(**_agree(store, comparison))
        _note_run(store, known, comparison)
        yield Run(comparison, store)
    finally:
        store.close()


@dataclass(frozen=True)
class Run:
    """A comparison in two parts. The answer needs the first alone, and can be read after it."""

    comparison: Comparison
    store: Store

    def compare(self, advance: Advance) -> None:
        """Compute the splits of the comparison that are missing."""
        splits, n_repeats = self.comparison.splits, self.comparison.n_repeats
        cells = plan_comparison(self.comparison.name, n_repeats, splits.n_folds)
        names = [contestant.name for contestant in self.comparison.contestants]
        self._compute(COMPARISON, cells, names, advance)

    def add_curves(self, advance: Advance) -> None:
        """Compute what is missing of the curves, with the best variant of each method."""
        contestants, n_folds = self.comparison.contestants, self.comparison.splits.n_folds
        outcome = summarize(self.store.rows(COMPARISON), contestants, n_folds)
        chosen = on_curves(outcome.best, contestants)
        for curve, cells in _plan_curves(self.comparison).items():
            self._compute(curve, cells, chosen, advance)

    @cached_property
    def _data(self) -> Data:
        return Data(
            self.comparison.table.features,
            self.comparison.splits,
            self.comparison.contestants,
            self.comparison.missing,
            self.comparison.seed,
            self.comparison.words,
        )

    def _compute(
        self, experiment: str, cells: Sequence[Cell], names: Sequence[str], advance: Advance
    ) -> None:
        compute = partial(
            run_tasks,
            sets={self.comparison.name: self._data},
            work=Work(run_cell, failed),
            jobs=self.comparison.jobs,
        )

        def advance_named(name: str, done: int, total: int, failed: int) -> None:
            advance(_SHOWN.get(name, name), done, total, failed)

        run_missing(self.store, experiment, cells, names, compute, advance_named)


def _plan_curves(comparison: Comparison) -> dict[str, list[Cell]]:
    splits = comparison.splits
    sizes = {UNLABELED: unlabeled_sizes(splits), LABELED: labeled_sizes(splits)}
    return {
        curve: plan_curve(curve, comparison.name, numbers, comparison.n_curve_splits)
        for curve, numbers in sizes.items()
        if numbers
    }


def _agreed(comparison: Comparison) -> dict[str, Any]:
    """What the rows of a folder depend on; names are those of options where there is one."""
    return {
        "kind": KIND,
        "format": FORMAT,
        "iclda": versions()["iclda"],
        "data": {comparison.name: comparison.table.digest},
        "target": comparison.table.target,
        "unlabeled": comparison.unlabeled or "",
        "drop": ", ".join(sorted(comparison.dropped)),
        "seed": comparison.seed,
        "folds": comparison.splits.n_folds,
        "labeled": comparison.n_labeled or "all",
        "missing": comparison.missing,
        "shrinkage": shrinkage_text(comparison.chosen_shrinkages),
    }


def facts(comparison: Comparison) -> dict[str, Any]:
    """What a reader needs to know of a comparison besides its rows."""
    splits, table = comparison.splits, comparison.table
    return {
        **_agreed(comparison),
        "repeats": comparison.n_repeats,
        "curve_splits": comparison.n_curve_splits,
        "remarks": [asdict(remark) for remark in comparison.remarks],
        "contestants": [
            (each.name, each.method.name, each.shrinkage) for each in comparison.contestants
        ],
        "sources": [asdict(source) for source in table.sources],
        "dropped": list(comparison.dropped),
        "n_labels": int(table.is_labeled.sum()),
        "n_rows": len(table.labels),
        "n_used": splits.n_used,
        "n_unlabeled": splits.n_unlabeled,
        "is_capped": is_capped(splits),
        "is_slow": comparison.is_slow,
    }


def _note_run(store: Store, known: dict[str, Any], comparison: Comparison) -> None:
    """Keep what the report needs besides the rows."""
    stored = store.settings()
    commands = [*stored.get("commands", []), comparison.command]
    rest = {name: value for name, value in known.items() if name not in _agreed(comparison)}
    store.note(
        **rest,
        commands=list(dict.fromkeys(commands)),
        versions=versions(),
        machine=f"{platform.machine()}, {platform.system()}",
        jobs=comparison.jobs,
        began=time.strftime("%Y-%m-%d %H:%M"),
    )
