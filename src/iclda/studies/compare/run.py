"""Run a comparison: check its folder, store its settings, fit missing cells.

A folder may hold comparisons of several tables, or of one table with several settings.
Each of them has a key, under which its rows are stored: rows of equal data and settings
are found again, and all others are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from time import monotonic

from ..._cost import has_starts
from ..._messages import and_list
from ..._progress import Advance
from ..engine import CellWorkers, run_missing
from ..measures import COMPARISON
from ..store import STORE, Cell, FitResult, Store, cells_of
from .cells import CellData, fit_cell
from .comparison import Comparison
from .contestants import Contestant, bad_parameter
from .plan import ComparisonPlan
from .recommendation import contestants_to_stop, is_settled
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
# A table of at most this many values is small: the process of the command fits, too.
_MAX_VALUES_OF_SMALL_TABLE = 100_000
# Settings that say how far a comparison is.
_PROGRESS = ("repeats", "is_settled", "stopped")
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
    with ExitStack() as stack:
        store = stack.enter_context(closing(Store(out / STORE, kind=COMPARISON)))
        store.note(**store.merge_settings(kind=COMPARISON))
        workers = None
        if plan.jobs > 1 and plan.table.features.size <= _MAX_VALUES_OF_SMALL_TABLE:
            # A repeat has as many cells as folds.
            n_workers = min(plan.jobs, settings.folds) - 1
            workers = stack.enter_context(closing(CellWorkers(n_workers)))
        run = ComparisonRun(plan, settings, store, monotonic(), workers)
        run.take_up()
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

    ``begin`` computes most of the first repeat, ``compare`` all repeats, and
    ``add_curves`` the learning curves. Each part computes what is missing. A time limit
    counts from ``start``; ``latest`` is the time of the latest repeat, in seconds. The
    ``workers`` of a small table share its cells with this process.
    """

    plan: ComparisonPlan
    settings: ComparisonSettings
    store: Store
    start: float
    workers: CellWorkers | None = None
    latest: float = 0.0

    def take_up(self) -> None:
        """Store the settings, with what is known of an equal run.

        A finished comparison thus stays one if it is run again and interrupted.
        """
        for stored in stored_comparisons(self.store):
            if _request_of(stored) == _request_of(self.settings):
                progress = {name: getattr(stored, name) for name in _PROGRESS}
                self.settings = replace(self.settings, **progress)
        self.note_settings()

    def note_settings(self) -> None:
        """Store the settings as those of the latest comparison of the folder."""
        key = self.settings.key
        stored = self.store.settings().get(_COMPARISONS, {})
        others = {name: each for name, each in stored.items() if name != key}
        self.store.note(**{_COMPARISONS: {**others, key: self.settings.to_json()}})

    def begin(self, advance: Advance) -> bool:
        """Compute the first repeat, which gives a first ranking, but for slow searches.

        Return whether any of it was missing.
        """
        contestants = self.settings.contestants
        soon = [each for each in contestants if not has_starts([each.method])]
        n_before = len(self.store.rows(REPEATED_FOLDS, self.settings.key))
        self._compute_repeat(1, soon, advance)
        return len(self.store.rows(REPEATED_FOLDS, self.settings.key)) > n_before

    def compare(self, advance: Advance) -> None:
        """Compute repeats until the choice is settled or the time is up.

        Contestants that are clearly worse than the best are stopped on the way. If the
        user asked for a number of repeats, only a time limit ends them earlier. What
        is done follows from the stored rows of earlier repeats alone, so that a run
        that was interrupted goes on as if it had not been.
        """
        running = list(self.settings.contestants)
        stopped: dict[str, int] = {}
        n_done = 1
        self._compute_repeat(1, running, advance)
        is_settled = False
        while n_done < self.settings.planned_repeats and self._has_time_for_more():
            results = self._rows_of(n_done, stopped)
            is_settled = self._is_settled(results, running, n_done)
            if is_settled:
                break
            for name in self._contestants_to_stop(results, running, n_done):
                stopped[name] = n_done
            running = [each for each in running if each.name not in stopped]
            n_done += 1
            self._compute_repeat(n_done, running, advance)

        # The report is that of the repeats that are complete.
        n_splits = n_done * self.settings.folds
        self.settings = replace(
            self.settings,
            repeats=n_done,
            is_settled=is_settled,
            stopped=stopped,
            curve_splits=min(self.settings.curve_splits, n_splits),
        )
        self.note_settings()

    def _rows_of(self, n_repeats: int, stopped: Mapping[str, int]) -> list[FitResult]:
        """Return the stored rows of the first repeats that belong to this comparison.

        A run with more repeats or other contestants may have stored further rows.
        """
        settings = replace(self.settings, repeats=n_repeats, stopped=stopped)
        rows = self.store.rows(REPEATED_FOLDS, settings.key)
        return [row for row in rows if settings.has_asked_for(row)]

    def _has_time_for_more(self) -> bool:
        """Return whether another repeat ends within the time limit."""
        if self.plan.time is None:
            return True
        return monotonic() + self.latest <= self.start + self.plan.time

    def _is_settled(
        self, results: list[FitResult], running: Sequence[Contestant], n_done: int
    ) -> bool:
        """Return whether further repeats would hardly change the answer."""
        if self.plan.repeats is not None or n_done < _MIN_REPEATS:
            return False
        settings = self.settings
        if not is_settled(
            results,
            running,
            n_done,
            is_network=settings.is_network,
            measure=settings.measure,
        ):
            return False
        return not Comparison(settings, results, seconds=0).is_nearly_clear

    def _contestants_to_stop(
        self, results: list[FitResult], running: Sequence[Contestant], n_done: int
    ) -> list[str]:
        """Return the names of those that cannot be recommended any more."""
        if self.plan.repeats is not None:
            return []
        measure = self.settings.measure
        return contestants_to_stop(results, running, n_done, measure=measure)

    @property
    def _n_certain_repeats(self) -> int:
        """The repeats that are computed in any case."""
        if self.plan.time is not None:
            return 1
        n_planned = self.settings.planned_repeats
        if self.plan.repeats is not None:
            return n_planned
        return min(_MIN_REPEATS, n_planned)

    def _compute_repeat(
        self, number: int, running: Sequence[Contestant], advance: Advance
    ) -> None:
        """Compute the missing splits of a repeat; the first one has the number 1."""
        began = monotonic()
        n_folds = self.settings.folds
        n_before = (number - 1) * n_folds
        n_in_all = max(number, self._n_certain_repeats) * n_folds

        def advance_in_all(experiment: str, done: int, total: int, failed: int) -> None:
            advance(experiment, n_before + done, n_in_all, failed)

        key = self.settings.key
        names = [each.name for each in running]
        cells = [Cell(REPEATED_FOLDS, key, number - 1, fold) for fold in range(n_folds)]
        self._compute(REPEATED_FOLDS, cells, names, advance_in_all)
        seconds = monotonic() - began
        # The first repeat is computed in two parts.
        self.latest = self.latest + seconds if number == 1 else seconds

    def add_curves(self, advance: Advance) -> None:
        """Compute the missing points of the curves, for the contestants on them."""
        # Which contestants are on the curves depends on what the comparison shows.
        settings = self.settings
        compared = self._rows_of(settings.repeats, settings.stopped)
        names = Comparison(settings, compared, seconds=0).on_curves
        splits = self.plan.splits
        for experiment, sizes in (
            (UNLABELED_CURVE, splits.unlabeled_sizes()),
            (LABELED_CURVE, splits.labeled_sizes()),
        ):
            # A curve has no points besides that of the comparison if there are few
            # rows.
            if sizes:
                parts = {settings.key: sizes}
                cells = cells_of(experiment, parts, settings.curve_splits)
                self._compute(experiment, cells, names, advance)

    def _compute(
        self,
        experiment: str,
        cells: Sequence[Cell],
        names: Sequence[str],
        advance: Advance,
    ) -> None:
        """Compute the missing fits of the named contestants to cells."""
        plan = self.plan
        key = self.settings.key
        data = CellData(plan.table.features, plan.splits, self.settings.contestants)
        run_missing(
            self.store,
            EXPERIMENT_TITLES[experiment],
            cells,
            names,
            advance,
            sets={key: data},
            run=fit_cell,
            jobs=plan.jobs,
            workers=self.workers,
            account=_account(experiment, key),
        )


def _request_of(settings: ComparisonSettings) -> str:
    """Return as text what the user asked for, and of which table."""
    values = settings.to_json()
    for name in (*_PROGRESS, "curve_splits", "run", "versions"):
        del values[name]
    return json.dumps(values, sort_keys=True)
