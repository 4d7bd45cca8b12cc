"""What a fit costs, and what a caller can afford: which methods, and how many starts.

Three things make a fit slow. A search over the labels of the unlabeled rows has
(classes - 1) x (features + 1) unknowns, and takes longer the more there are.
Some methods take long with many features. Any fit sums over the cells of its table.

How long is too long depends on who waits. ``AutoLDA`` compares methods inside one fit,
a comparison runs for minutes anyway, and in the playground a fit follows the mouse.
Each has a ``Budget``. How many rounds, passes and steps one fit makes does not depend
on the caller: that is said by ``Problem.rounds`` and ``Problem.default_rounds``, and in
``_core/solvers/settings.py``.

    >>> from iclda.methods import find_method
    >>> size = ProblemSize(n_rows=500, n_features=30, n_classes=9)
    >>> cost_of(find_method("iclda"), size, COMPARISON_BUDGET) is Cost.SECONDS
    True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from .methods import Method

# Methods that take minutes with more than ``_MAX_AFFORDABLE_FEATURES`` features.
_SLOW_IF_WIDE = ("self-training", "pessimistic", "sklearn-self-training", "sklearn-lda")
_MAX_AFFORDABLE_FEATURES = 400
# Methods that search over the labels of the unlabeled rows. Of these, only the ones
# with a parameter ``n_starts`` do so from several starts.
_SEARCHES = ("iclda", "iclda-proportions", "pessimistic")
# The graph along which scikit-learn spreads labels takes minutes with more rows.
_MAX_SPREAD_ROWS = 10_000
# Both hold the probabilities of all labeled rows, and the leaves of a forest those of
# all classes: with more classes they take minutes and gigabytes.
MAX_CLASSES_OF_ENSEMBLE = 500
MAX_CLASSES_OF_AVERAGE = 2_000
# With more cells, a fit to a table takes about a second.
_MAX_QUICK_CELLS = 200_000
# With more cells times classes, a fit to a table takes seconds.
_MAX_CELLS_TIMES_CLASSES = 10_000_000


class Cost(IntEnum):
    """About how long a fit takes; of a search, how long it takes from each start."""

    QUICK = 0
    SECOND = 1
    SECONDS = 2
    MINUTES = 3


@dataclass(frozen=True)
class ProblemSize:
    """Rows with and without a label, features and classes of a fit."""

    n_rows: int
    n_features: int
    n_classes: int

    @property
    def n_searched_unknowns(self) -> int:
        """Unknowns of a search, which works in the space that few rows span."""
        return n_unknowns(self.n_classes, min(self.n_features, self.n_rows))


@dataclass(frozen=True)
class Budget:
    """How long the fits of a caller may take.

    Attributes
    ----------
    max_quick_unknowns : int
        With more unknowns, every start of a search takes seconds.
    max_quick_classes : int or None
        With more classes it does so, however few its unknowns. None: no such limit.
    max_unknowns : int or None
        With more unknowns a search takes minutes. None: it is never left out for them.
    n_starts : int or None
        Starts of a search that is quick; None leaves them to the method.
    """

    max_quick_unknowns: int
    max_quick_classes: int | None = None
    max_unknowns: int | None = None
    n_starts: int | None = None


# The cross-validation inside a fit of ``AutoLDA``, on a sample of the rows.
AUTO_BUDGET = Budget(max_quick_unknowns=150, max_quick_classes=10, n_starts=8)
# A comparison of methods, on all rows.
COMPARISON_BUDGET = Budget(max_quick_unknowns=200, max_unknowns=5_000)
# A fit of the playground while a point is dragged, on two features.
DRAG_BUDGET = Budget(max_quick_unknowns=200, n_starts=8)


def n_unknowns(n_classes: int, n_features: int) -> int:
    """Count the unknowns of a search over the labels of the unlabeled rows."""
    return (n_classes - 1) * (n_features + 1)


def is_search_slow(n_classes: int, n_features: int, budget: Budget) -> bool:
    """Tell whether every start of a search takes seconds."""
    most = budget.max_quick_classes
    if most is not None and n_classes > most:
        return True
    return n_unknowns(n_classes, n_features) > budget.max_quick_unknowns


def has_starts(methods: Sequence[Method]) -> bool:
    """Tell whether any of the methods searches from several starts."""
    return any("n_starts" in method.parameters for method in methods)


def limit_starts(
    classifier: Any, n_classes: int, n_features: int, budget: Budget
) -> None:
    """Set the number of starts of a classifier, if it searches from several."""
    if "n_starts" not in classifier.get_params():
        return
    # The first start is the supervised fit: a slow search has no other.
    if is_search_slow(n_classes, n_features, budget):
        classifier.set_params(n_starts=1)
    elif budget.n_starts is not None:
        classifier.set_params(n_starts=budget.n_starts)


def cost_of(method: Method, size: ProblemSize, budget: Budget) -> Cost:
    """Return about how long a method takes."""
    is_wide = size.n_features > _MAX_AFFORDABLE_FEATURES
    if is_wide and method.name in _SLOW_IF_WIDE:
        return Cost.MINUTES
    max_unknowns = budget.max_unknowns
    is_long = max_unknowns is not None and size.n_searched_unknowns > max_unknowns
    if is_long and method.name in _SEARCHES:
        return Cost.MINUTES
    if method.name == "sklearn-label-spreading" and size.n_rows > _MAX_SPREAD_ROWS:
        return Cost.MINUTES
    is_slow = is_search_slow(size.n_classes, size.n_features, budget)
    if is_slow and has_starts([method]):
        return Cost.SECONDS
    return Cost.QUICK


def table_cost(n_cells: int, n_classes: int) -> Cost:
    """Return about how long any fit to a table takes, because of its size alone."""
    if n_cells * n_classes > _MAX_CELLS_TIMES_CLASSES:
        return Cost.SECONDS
    return Cost.SECOND if n_cells > _MAX_QUICK_CELLS else Cost.QUICK


def affordable(
    methods: Sequence[Method], size: ProblemSize, budget: Budget
) -> tuple[Method, ...]:
    """Leave out methods that would take minutes, if others remain."""
    quick = [each for each in methods if cost_of(each, size, budget) < Cost.MINUTES]
    return tuple(quick or methods)


def without_free_search(
    methods: Sequence[Method], n_labeled: int, n_features: int
) -> tuple[Method, ...]:
    """Leave out ICLDA with free class sizes if labels are fewer than features.

    Its likelihood is then highest where a class has hardly any rows but its labeled
    ones, so that a long search would end at a useless fit.
    """
    if n_labeled >= n_features:
        return tuple(methods)
    others = [each for each in methods if each.name != "iclda"]
    return tuple(others or methods)
