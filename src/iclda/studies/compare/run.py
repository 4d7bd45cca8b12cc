"""Run a comparison: choose its settings, check its folder, compute and store missing cells."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from ..._advice import affordable
from ..._messages import and_list, say
from ..._packages import versions
from ..._progress import Advance
from ...methods import BASELINES, FITTED
from ..engine import run_missing
from ..store import STORE, Store, StoreError, cells_of
from . import SENTENCES
from .cells import CellData, fit_cell
from .checks import check_table, encode_sample
from .plan import (
    COMPARISON,
    LABELED_CURVE,
    REPEATS,
    UNLABELED_CURVE,
    ComparisonPlan,
    ComparisonSettings,
    bad_parameter,
    default_shrinkages,
    line_up,
    shrinkage_text,
)
from .verdict import Comparison

FILES = {"comparison": "comparison.csv", "curves": "curves.csv", "report": "report.html"}
# Repeats, and splits of curves, by default: fewer where a fit takes longer.
_QUICK, _LARGE_TABLE, _SLOW_SEARCH = (REPEATS, 10), (5, 10), (2, 5)
_FAST_REPEATS = 3
_LARGE_SIZE = 200_000  # cells of a table, above which a fit takes a second or so
_TITLES = {
    UNLABELED_CURVE: "curve of unlabeled rows",
    LABELED_CURVE: "curve of labeled rows",
}


def choose_settings(plan: ComparisonPlan) -> ComparisonSettings:
    """Check the table, and choose by it what was not given; ValueError if it allows no fit."""
    table, splits = plan.table, plan.splits
    sample = encode_sample(table, plan.missing)
    size = splits.size(sample.shape[1])
    shrinkages = plan.shrinkages or default_shrinkages(size)
    candidates = methods = plan.methods or (*FITTED, *BASELINES)
    if plan.methods is None:
        methods = affordable(candidates, size.n_features)
        if plan.is_fast:
            methods = tuple(each for each in methods if not each.options)
    usual = _LARGE_TABLE if table.features.size > _LARGE_SIZE else _QUICK
    is_slow = size.is_slow and any("n_starts" in each.parameters for each in methods)
    repeats, curve_splits = _SLOW_SEARCH if is_slow else usual
    repeats = plan.repeats or (min(repeats, _FAST_REPEATS) if plan.is_fast else repeats)
    return ComparisonSettings(
        iclda=versions()["iclda"],
        data={plan.name: table.digest},
        target=table.target,
        unlabeled=plan.reading.get("unlabeled") or "",
        drop=", ".join(sorted(table.dropped)),
        seed=plan.seed,
        folds=splits.n_folds,
        labeled=plan.n_labeled or "all",
        missing=plan.missing,
        shrinkage=shrinkage_text(shrinkages),
        repeats=repeats,
        curve_splits=min(curve_splits, splits.n_folds * repeats),
        contestants=line_up(methods, shrinkages, size),
        left_out=[each.name for each in candidates if each not in methods],
        classes=table.classes,
        size=size,
        n_unlabeled=splits.n_unlabeled,
        n_labels=int(table.is_labeled.sum()),
        remarks=check_table(table, sample, size, is_hidden=plan.n_labeled is not None),
        sources=table.sources,
        reading=plan.reading,
        run={
            "Command": plan.command,
            "jobs": plan.jobs,
            "machine": f"{platform.machine()}, {platform.system()}",
            "last run began": time.strftime("%Y-%m-%d %H:%M"),
        },
        versions=versions(),
    )


@contextmanager
def open_run(plan: ComparisonPlan) -> Iterator[ComparisonRun]:
    """Choose the settings, take the lock of the folder, and store the settings there.

    Errors about the table, the labels or the folder come before anything is written.
    """
    settings, out = choose_settings(plan), plan.out
    strange = [name for name in FILES.values() if (out / name).exists()]
    if strange and not (out / STORE).exists():
        raise bad_parameter("strange_files", "out", out, files=and_list(strange), store=STORE)
    with closing(Store(out / STORE, kind=COMPARISON)) as store:
        stored = store.settings().get("data", {})
        if names := ", ".join(name for name in stored if name != plan.name):
            sentence = SENTENCES["errors"]["other_table"]
            raise StoreError(say(sentence, folder=out, names=names, name=plan.name))
        store.note(**{**settings.to_json(), **store.merge_settings(**settings.agreed)})
        yield ComparisonRun(plan, settings, store)


@dataclass(frozen=True)
class ComparisonRun:
    """A comparison in two parts. The answer needs the first alone, and can be read after it."""

    plan: ComparisonPlan
    settings: ComparisonSettings
    store: Store

    def compare(self, advance: Advance) -> None:
        """Compute the splits of the comparison that are missing."""
        names = [each.name for each in self.settings.contestants]
        self._compute(COMPARISON, range(self.settings.folds), names, advance)

    def add_curves(self, advance: Advance) -> None:
        """Compute what is missing of the curves, of the contestants that they show."""
        splits = self.plan.splits
        names = Comparison(self.settings, self.store.rows(COMPARISON), seconds=0).on_curves
        self._compute(UNLABELED_CURVE, splits.unlabeled_sizes(), names, advance)
        self._compute(LABELED_CURVE, splits.labeled_sizes(), names, advance)

    def _compute(
        self, experiment: str, parts: Sequence[int], names: Sequence[str], advance: Advance
    ) -> None:
        if not parts:
            return
        plan, n_repeats = self.plan, self.settings.n_repeats(experiment)
        data = CellData(
            features=plan.table.features,
            splits=plan.splits,
            contestants=self.settings.contestants,
            missing=plan.missing,
            seed=plan.seed,
        )

        def advance_titled(name: str, done: int, total: int, failed: int) -> None:
            advance(_TITLES.get(name, name), done, total, failed)

        run_missing(
            self.store,
            experiment,
            cells_of(experiment, {plan.name: parts}, n_repeats),
            names,
            advance_titled,
            sets={plan.name: data},
            run=fit_cell,
            jobs=plan.jobs,
        )
