"""Run a comparison: check its folder, store its settings, fit missing cells.

A folder may hold comparisons of several tables, or of one table with several settings.
Each of them has a key, under which its rows are stored: rows of equal data and settings
are found again, and all others are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from time import monotonic

from ..._messages import and_list
from ..._progress import Advance
from ..engine import run_missing
from ..measures import COMPARISON
from ..store import STORE, Store, cells_of
from .cells import CellData, fit_cell
from .comparison import Comparison
from .contestants import bad_parameter
from .plan import ComparisonPlan
from .settings import ComparisonSettings, choose_settings
from .splits import EXPERIMENT_TITLES, LABELED_CURVE, REPEATED_FOLDS, UNLABELED_CURVE

# Files that a comparison writes to its folder, besides the store.
FILES = {
    "comparison": "comparison.csv",
    "curves": "curves.csv",
    "report": "report.html",
}

_FOREIGN_FILES = (
    "{given} holds {files}, but no comparison wrote it there, because {store} is "
    "missing: name another folder, or move it away."
)
# The setting of the store that holds the settings of all comparisons, by key.
_COMPARISONS = "comparisons"


@contextmanager
def open_run(plan: ComparisonPlan) -> Iterator[ComparisonRun]:
    """Choose the settings, lock the folder, and store the settings there.

    Errors about the table, the labels or the folder come before anything is written.
    """
    settings = choose_settings(plan)
    out = plan.out
    # Files without a store are somebody else's, and would be overwritten.
    foreign = [name for name in FILES.values() if (out / name).exists()]
    if foreign and not (out / STORE).exists():
        raise bad_parameter(
            _FOREIGN_FILES, "out", out, files=and_list(foreign), store=STORE
        )
    with closing(Store(out / STORE, kind=COMPARISON)) as store:
        store.note(**store.merge_settings(kind=COMPARISON))
        run = ComparisonRun(plan, settings, store)
        run.note_settings()
        yield run


def stored_comparisons(store: Store) -> list[ComparisonSettings]:
    """Return the settings of all comparisons in a folder, the latest one first."""
    stored = store.settings().get(_COMPARISONS, {})
    oldest_first = [ComparisonSettings.from_json(each) for each in stored.values()]
    return oldest_first[::-1]


def seconds_of(store: Store, key: str) -> float:
    """Return the seconds that all runs of a comparison took, by its key."""
    settings = store.settings()
    accounts = [_account(experiment, key) for experiment in EXPERIMENT_TITLES]
    return float(sum(settings.get(f"seconds_{each}", 0.0) for each in accounts))


def _account(experiment: str, key: str) -> str:
    """Name the setting that sums up the time of an experiment."""
    return f"{experiment}_{key}"


@dataclass
class ComparisonRun:
    """A comparison in two parts: the answer can be read after the first."""

    plan: ComparisonPlan
    settings: ComparisonSettings
    store: Store

    def note_settings(self) -> None:
        """Store the settings as those of the latest comparison of the folder."""
        key = self.settings.key
        stored = self.store.settings().get(_COMPARISONS, {})
        others = {name: each for name, each in stored.items() if name != key}
        self.store.note(**{_COMPARISONS: {**others, key: self.settings.to_json()}})

    def compare(self, advance: Advance) -> None:
        """Compute the splits of the comparison that are missing.

        If the plan has a time limit, there are as many repeats as it allows, but at
        least one.
        """
        if self.plan.time is None:
            self._compute_repeats(self.settings.repeats, advance)
        else:
            self._compare_in_time(self.plan.time, advance)

    def _compare_in_time(self, limit: float, advance: Advance) -> None:
        """Compute repeats until the next one would end after ``limit`` seconds."""
        start = monotonic()
        longest = 0.0
        n_done = 0
        while n_done < self.settings.planned_repeats:
            began = monotonic()
            n_done += 1
            self._compute_repeats(n_done, advance)
            now = monotonic()
            longest = max(longest, now - began)
            if now + longest > start + limit:
                break
        # The report is that of the repeats that are complete.
        self.settings = replace(self.settings, repeats=n_done)
        self.note_settings()

    def _compute_repeats(self, n_repeats: int, advance: Advance) -> None:
        """Compute the missing splits of the first repeats."""
        names = [each.name for each in self.settings.contestants]
        folds = range(self.settings.folds)
        self._compute(REPEATED_FOLDS, folds, n_repeats, names, advance)

    def add_curves(self, advance: Advance) -> None:
        """Compute the missing points of the curves, for the contestants on them."""
        # Which contestants are on the curves depends on what the comparison shows.
        compared = self.store.rows(REPEATED_FOLDS, self.settings.key)
        comparison = Comparison(self.settings, compared, seconds=0)
        names = comparison.on_curves
        splits = self.plan.splits
        for experiment, sizes in (
            (UNLABELED_CURVE, splits.unlabeled_sizes()),
            (LABELED_CURVE, splits.labeled_sizes()),
        ):
            n_splits = self.settings.curve_splits
            self._compute(experiment, sizes, n_splits, names, advance)

    def _compute(
        self,
        experiment: str,
        parts: Sequence[int],
        n_repeats: int,
        names: Sequence[str],
        advance: Advance,
    ) -> None:
        """Compute the missing cells of an experiment: its parts in every repeat."""
        # A curve has no points besides that of the comparison if there are few rows.
        if not parts:
            return
        plan = self.plan
        key = self.settings.key
        data = CellData(plan.table.features, plan.splits, self.settings.contestants)
        run_missing(
            self.store,
            EXPERIMENT_TITLES[experiment],
            cells_of(experiment, {key: parts}, n_repeats),
            names,
            advance,
            sets={key: data},
            run=fit_cell,
            jobs=plan.jobs,
            account=_account(experiment, key),
        )
