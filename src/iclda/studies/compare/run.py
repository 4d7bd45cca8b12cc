"""Run a comparison: settings checked against table and folder, missing cells computed and kept."""

from __future__ import annotations

import platform
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..._advice import affordable
from ..._messages import Hint, Words, say
from ..._packages import versions
from ..._progress import Advance, show_nothing
from ...methods import BASELINES, FITTED, Method, Shrinkage
from ...tabular import Table
from ..engine import run_missing
from ..store import STORE, Cell, Store, StoreError, cells_of
from .cell_fits import CellData, fit_cell
from .estimate import TimeEstimate
from .findings import FILES, KIND, ComparisonSettings
from .plan import (
    COMPARISON,
    LABELED,
    UNLABELED,
    Splits,
    default_shrinkages,
    line_up,
    on_curves,
    shrinkage_text,
)
from .preflight import inspect, preflight
from .sentences import SENTENCES, bad_parameter
from .summary import summarize_comparison

FOLDS = 10
# Repeats, and splits of curves, by default: fewer where a fit takes longer.
_QUICK, _LARGE_TABLE, _SLOW_SEARCH = (10, 10), (5, 10), (2, 5)
_FAST = 3  # repeats of a fast comparison
_LARGE = 200_000  # cells of a table, above which a fit takes a second or so
_ERRORS = SENTENCES["errors"]
_TITLES = {UNLABELED: "curve of unlabeled rows", LABELED: "curve of labeled rows"}


@dataclass(frozen=True)
class ComparisonPlan:
    """What to compare, on which table, into which folder; what is None is chosen by the table."""

    table: Table
    out: Path
    methods: tuple[Method, ...] | None = None  # as they were named
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
    kept: tuple[str, ...] = ()
    drop_unusable: bool = False
    is_fast: bool = False  # few repeats, and no learning curves
    words: Words = str  # wording of remarks and failures that are stored

    @property
    def name(self) -> str:
        """The name of the file."""
        return Path(self.table.sources[0].path).name

    @cached_property
    def splits(self) -> Splits:
        """The folds; ValueError where the labels do not allow them."""
        n_folds = check_labels(self)
        most = self.repeats or _QUICK[0]
        return Splits(self.table.labels, n_folds, most, self.n_labeled, self.seed)

    @cached_property
    def settings(self) -> ComparisonSettings:
        """What is stored beside the rows; what was not given is chosen here."""
        table, splits, sample = self.table, self.splits, inspect(self.table, self.missing)
        size = splits.size(sample.values.shape[1])
        shrinkages = self.shrinkages or default_shrinkages(size)
        candidates = methods = self.methods or (*FITTED, *BASELINES)
        if self.methods is None:
            methods = affordable(candidates, size.n_features)
            if self.is_fast:
                methods = tuple(each for each in methods if not each.options)
        is_slow = size.is_slow and any("n_starts" in each.parameters for each in methods)
        usual = _LARGE_TABLE if table.features.size > _LARGE else _QUICK
        repeats, curve_splits = _SLOW_SEARCH if is_slow else usual
        repeats = self.repeats or (min(repeats, _FAST) if self.is_fast else repeats)
        remarks = preflight(table, sample, splits)
        return ComparisonSettings(
            iclda=versions()["iclda"],
            data={self.name: table.digest},
            target=table.target,
            unlabeled=self.unlabeled or "",
            drop=", ".join(sorted(table.dropped)),
            seed=self.seed,
            folds=splits.n_folds,
            labeled=self.n_labeled or "all",
            missing=self.missing,
            shrinkage=shrinkage_text(shrinkages),
            repeats=repeats,
            curve_splits=min(curve_splits, splits.n_folds * repeats),
            remarks=[replace(remark, text=self.words(remark.text)) for remark in remarks],
            contestants=line_up(methods, shrinkages, size),
            left_out=[each.name for each in candidates if each not in methods],
            sources=table.sources,
            dropped=self.dropped,
            kept=self.kept,
            classes=table.classes,
            drop_unusable=self.drop_unusable,
            n_labels=int(table.is_labeled.sum()),
            n_rows=len(table.labels),
            n_used=splits.n_used,
            n_unlabeled=splits.n_unlabeled,
            is_capped=splits.is_capped,
            is_slow=is_slow,
            jobs=self.jobs,
            versions=versions(),
            machine=f"{platform.machine()}, {platform.system()}",
            began=time.strftime("%Y-%m-%d %H:%M"),
            commands=(self.command,),
        )


def check_labels(plan: ComparisonPlan) -> int:
    """The number of folds.

    ValueError unless every class can be trained on and tested, and something is unlabeled.
    """
    counts = Counter(plan.table.labels[plan.table.is_labeled].tolist())
    name = min(plan.table.classes, key=counts.__getitem__)
    count, n_labels = counts[name], counts.total()
    if count < 2:
        raise ValueError(say(_ERRORS["one_label"], name=name))
    if plan.folds is not None and not 2 <= plan.folds <= count:
        raise bad_parameter("folds", Hint("folds", plan.folds), most=count, name=name)
    n_folds = plan.folds or min(FOLDS, count)
    if plan.n_labeled is None:
        if n_labels == len(plan.table.labels):
            unlabeled = Hint("unlabeled", text="unlabeled", kind="any")
            ways = {"unlabeled": unlabeled, "unlabeled_file": Hint("unlabeled_file")}
            few = Hint("n_labeled", 30)
            raise ValueError(say(_ERRORS["all_labeled"], n_labels=n_labels, n_labeled=few, **ways))
        return n_folds
    most, least = n_labels - -(-n_labels // n_folds) - 1, len(plan.table.classes)
    if not least <= plan.n_labeled <= most:
        values = {"least": least, "most": most, "n_labels": n_labels, "n_folds": n_folds}
        raise bad_parameter("n_labeled", Hint("n_labeled", plan.n_labeled), **values)
    return n_folds


def check_plan(plan: ComparisonPlan) -> None:
    """Errors about table, labels or folder, before anything is computed; nothing is written."""
    out, _ = plan.out, plan.settings
    for folder in (out, *out.parents):
        if folder.exists() and not folder.is_dir():
            raise bad_parameter("no_folder", Hint("out", out), folder=folder)
    if (out / STORE).exists():
        with closing(Store(out / STORE, kind=KIND, read_only=True)) as store:
            _agree(store, plan)
        return
    strange = " and ".join(name for name in FILES.values() if (out / name).exists())
    if strange:
        raise bad_parameter("strange_files", Hint("out", out), files=strange, store=STORE)


def make_out(plan: ComparisonPlan) -> None:
    """Make the folder; ValueError if it cannot be made or written to."""
    try:
        plan.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=plan.out):
            pass
    except OSError as error:
        problem = error.strerror
        raise bad_parameter("not_writable", Hint("out", plan.out), problem=problem) from error


def _agree(store: Store, plan: ComparisonPlan) -> dict[str, Any]:
    """Settings to store; StoreError if a folder holds another table or other settings."""
    stored = store.settings()
    if stored and "kind" not in stored:  # of the paper's experiments, by an earlier version
        raise StoreError(say(_ERRORS["other_study"], path=store.path))
    names = ", ".join(name for name in stored.get("data", {}) if name != plan.name)
    if names:
        text = say(_ERRORS["other_table"], folder=plan.out, names=names, name=plan.name)
        raise StoreError(text)
    return store.merge_settings(**plan.settings.agreed)


@contextmanager
def open_run(plan: ComparisonPlan) -> Iterator[ComparisonRun]:
    """Take the lock of the folder, and store the settings of the run there."""
    settings = plan.settings
    with closing(Store(plan.out / STORE, kind=KIND)) as store:
        agreed = _agree(store, plan)
        commands = dict.fromkeys([*store.settings().get("commands", []), *settings.commands])
        store.note(**{**settings.to_json(), **agreed, "commands": list(commands)})
        yield ComparisonRun(plan, store)


@dataclass(frozen=True)
class ComparisonRun:
    """A comparison in two parts. The answer needs the first alone, and can be read after it."""

    plan: ComparisonPlan
    store: Store

    def time_one_split(self) -> TimeEstimate | None:
        """Compute the first split that is missing, and how long the others will take."""
        plan, settings = self.plan, self.plan.settings
        names = [each.name for each in settings.contestants]
        parts = range(plan.splits.n_folds)
        cells = cells_of(COMPARISON, {plan.name: parts}, settings.repeats)
        missing = [cell for cell, _ in self.store.missing(cells, names)]
        if not missing:
            return None
        start = time.perf_counter()
        self._run_cells(COMPARISON, missing[:1], names, show_nothing, jobs=1)
        seconds = time.perf_counter() - start
        sizes = [*plan.splits.unlabeled_sizes(), *plan.splits.labeled_sizes()]
        n_on_curves = 0 if plan.is_fast else len(sizes) * settings.curve_splits
        return TimeEstimate(seconds, len(missing) - 1, n_on_curves, plan.jobs)

    def compare(self, advance: Advance) -> None:
        """Compute the splits of the comparison that are missing."""
        names = [each.name for each in self.plan.settings.contestants]
        self._compute(COMPARISON, range(self.plan.splits.n_folds), names, advance)

    def add_curves(self, advance: Advance) -> None:
        """Compute what is missing of the curves, with the best variant of each method."""
        splits, contestants = self.plan.splits, self.plan.settings.contestants
        rows = self.store.rows(COMPARISON)
        summary = summarize_comparison(rows, contestants, splits.n_folds)
        names = on_curves(summary.best, contestants)
        self._compute(UNLABELED, splits.unlabeled_sizes(), names, advance)
        self._compute(LABELED, splits.labeled_sizes(), names, advance)

    def _compute(
        self, experiment: str, parts: Sequence[int], names: Sequence[str], advance: Advance
    ) -> None:
        plan, settings = self.plan, self.plan.settings
        if not parts:
            return
        cells = cells_of(experiment, {plan.name: parts}, settings.n_repeats(experiment))
        self._run_cells(experiment, cells, names, advance, jobs=plan.jobs)

    def _run_cells(
        self,
        experiment: str,
        cells: Sequence[Cell],
        names: Sequence[str],
        advance: Advance,
        *,
        jobs: int,
    ) -> None:
        plan, settings = self.plan, self.plan.settings
        how = settings.contestants, plan.missing, plan.seed, plan.words
        data = CellData(plan.table.features, plan.splits, *how)

        def advance_titled(name: str, done: int, total: int, failed: int) -> None:
            advance(_TITLES.get(name, name), done, total, failed)

        where = self.store, experiment, cells, names, advance_titled
        run_missing(*where, sets={plan.name: data}, run=fit_cell, jobs=jobs)
