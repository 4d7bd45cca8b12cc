"""Run a comparison: check its folder, store its settings, fit missing cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from ..._messages import and_list, say
from ..._progress import Advance
from ..engine import run_missing
from ..measures import COMPARISON
from ..store import STORE, Store, StoreError, cells_of
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
    "{given} holds {files} that no comparison there has written, because {store} is "
    "missing: name another folder, or move it away."
)
_OTHER_TABLE = (
    "{folder} holds the comparison of {names}, and this one is of {name}: use another "
    "{@out}, or remove the folder."
)


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
        # Rows of two tables in one store would be averaged together.
        stored_tables = store.settings().get("data", {})
        others = ", ".join(name for name in stored_tables if name != plan.name)
        if others:
            message = say(_OTHER_TABLE, folder=out, names=others, name=plan.name)
            raise StoreError(message)
        agreed = store.merge_settings(**settings.agreed)
        store.note(**{**settings.to_json(), **agreed})
        yield ComparisonRun(plan, settings, store)


@dataclass(frozen=True)
class ComparisonRun:
    """A comparison in two parts: the answer can be read after the first."""

    plan: ComparisonPlan
    settings: ComparisonSettings
    store: Store

    def compare(self, advance: Advance) -> None:
        """Compute the splits of the comparison that are missing."""
        names = [each.name for each in self.settings.contestants]
        self._compute(REPEATED_FOLDS, range(self.settings.folds), names, advance)

    def add_curves(self, advance: Advance) -> None:
        """Compute the missing points of the curves, for the contestants on them."""
        # Which contestants are on the curves depends on what the comparison shows.
        compared = self.store.rows(REPEATED_FOLDS)
        comparison = Comparison(self.settings, compared, seconds=0)
        names = comparison.on_curves
        splits = self.plan.splits
        self._compute(UNLABELED_CURVE, splits.unlabeled_sizes(), names, advance)
        self._compute(LABELED_CURVE, splits.labeled_sizes(), names, advance)

    def _compute(
        self,
        experiment: str,
        parts: Sequence[int],
        names: Sequence[str],
        advance: Advance,
    ) -> None:
        """Compute the missing cells of an experiment: its parts in every repeat."""
        # A curve has no points besides that of the comparison if there are few rows.
        if not parts:
            return
        plan = self.plan
        n_repeats = self.settings.n_repeats(experiment)
        data = CellData(plan.table.features, plan.splits, self.settings.contestants)
        run_missing(
            self.store,
            EXPERIMENT_TITLES[experiment],
            cells_of(experiment, {plan.name: parts}, n_repeats),
            names,
            advance,
            sets={plan.name: data},
            run=fit_cell,
            jobs=plan.jobs,
        )
