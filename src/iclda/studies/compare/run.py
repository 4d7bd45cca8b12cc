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
from ..store import STORE, FitResult, Store, cells_of
from .cells import CellData, fit_cell
from .comparison import Comparison
from .contestants import bad_parameter
from .plan import ComparisonPlan
from .recommendation import is_settled
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
# Unless the user asked for a number of repeats, there are at least this many, and
# further ones while the choice is not settled.
_MIN_REPEATS = 3
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
        run = ComparisonRun(plan, settings, store, start=monotonic())
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
    """A comparison in parts, after each of which the findings can be read.

    ``begin`` computes the first repeat, ``compare`` the others, and ``add_curves`` the
    learning curves. Each part computes what is missing. A time limit counts from
    ``start``; ``longest`` is the time of the longest step, in seconds.
    """

    plan: ComparisonPlan
    settings: ComparisonSettings
    store: Store
    start: float
    longest: float = 0.0

    def note_settings(self) -> None:
        """Store the settings as those of the latest comparison of the folder."""
        key = self.settings.key
        stored = self.store.settings().get(_COMPARISONS, {})
        others = {name: each for name, each in stored.items() if name != key}
        self.store.note(**{_COMPARISONS: {**others, key: self.settings.to_json()}})

    def begin(self, advance: Advance) -> bool:
        """Compute the first repeat, which gives a first ranking.

        Return whether any of it was missing.
        """
        n_before = len(self._compared())
        self._compute_repeats(1, advance)
        return len(self._compared()) > n_before

    def _compared(self) -> list[FitResult]:
        """Return the fits of the comparison that are stored."""
        return self.store.rows(REPEATED_FOLDS, self.settings.key)

    def compare(self, advance: Advance) -> None:
        """Compute repeats until the choice is settled or the time is up.

        If the user asked for a number of repeats, only a time limit ends them earlier.
        """
        n_done = self._n_certain_repeats
        n_planned = self.settings.planned_repeats
        self._compute_repeats(n_done, advance)
        is_settled = self._is_settled(n_done)
        while n_done < n_planned and not is_settled and self._has_time_for_more():
            n_done += 1
            self._compute_repeats(n_done, advance)
            is_settled = self._is_settled(n_done)

        # The report is that of the repeats that are complete.
        n_splits = n_done * self.settings.folds
        self.settings = replace(
            self.settings,
            repeats=n_done,
            is_settled=is_settled,
            curve_splits=min(self.settings.curve_splits, n_splits),
        )
        self.note_settings()

    @property
    def _n_certain_repeats(self) -> int:
        """The repeats that are computed in any case."""
        n_planned = self.settings.planned_repeats
        if self.plan.time is not None:
            return 1
        if self.plan.repeats is not None:
            return n_planned
        return min(_MIN_REPEATS, n_planned)

    def _has_time_for_more(self) -> bool:
        """Return whether another repeat ends within the time limit."""
        if self.plan.time is None:
            return True
        return monotonic() + self.longest <= self.start + self.plan.time

    def _is_settled(self, n_done: int) -> bool:
        """Return whether further repeats would hardly change the choice."""
        if self.plan.repeats is not None or n_done < _MIN_REPEATS:
            return False
        settings = self.settings
        return is_settled(
            self._compared(),
            settings.contestants,
            n_done,
            is_network=settings.is_network,
            measure=settings.measure,
        )

    def _compute_repeats(self, n_repeats: int, advance: Advance) -> None:
        """Compute the missing splits of the first repeats."""
        began = monotonic()
        names = [each.name for each in self.settings.contestants]
        folds = range(self.settings.folds)
        self._compute(REPEATED_FOLDS, folds, n_repeats, names, advance)
        self.longest = max(self.longest, monotonic() - began)

    def add_curves(self, advance: Advance) -> None:
        """Compute the missing points of the curves, for the contestants on them."""
        # Which contestants are on the curves depends on what the comparison shows.
        comparison = Comparison(self.settings, self._compared(), seconds=0)
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
