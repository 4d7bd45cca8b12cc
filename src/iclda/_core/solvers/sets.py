"""Which attainable sets a problem has: the only module that looks at its proportions.

Solvers ask ``attainable_sets`` for them, and never whether there are quotas or where
rows are held.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from .. import AnyArray, Array
from ..problem import Problem
from . import settings
from .attainable import AttainableSet, HeldRows
from .held import n_held_rows
from .on_device import hold_where_fast
from .quota_rounds import QuotaRounds
from .quota_sets import QuotaPart, QuotaSet, QuotaStreamedSet, hold_free
from .quotas import Quotas
from .streamed import StreamedSet

# Sharpness of intervals in EM: their slacks have next to no entropy.
_SHARPNESS_IN_ROUNDS = 1e6


class AttainableSets(Protocol):
    """Makes the attainable sets of a problem.

    Attributes
    ----------
    are_free : whether every labeling of the rows attains a point of the set
    """

    are_free: ClassVar[bool]

    def hold(self, rows: AnyArray, weights: Array) -> HeldRows:
        """Return the set of rows given in the user's units, whitened once."""

    def stream(self, sample: HeldRows) -> StreamedSet:
        """Return the set of all rows, read in every pass, given that of some rows."""

    def open_for_rounds(self) -> AttainableSet:
        """Return the set of all rows for self-learning and EM, which label in rounds.

        Few rows are held; many rows are read in every round.
        """


def attainable_sets(problem: Problem) -> AttainableSets:
    """Return what makes the attainable sets of a problem."""
    if problem.proportions is None:
        return FreeSets(problem)
    return QuotaSets(problem, quotas_of(problem, problem.proportions))


@dataclass(frozen=True)
class FreeSets:
    """Attainable sets of labels that are free."""

    are_free: ClassVar[bool] = True

    problem: Problem

    def hold(self, rows: AnyArray, weights: Array) -> HeldRows:
        return hold_where_fast(self.problem, rows, weights)

    def stream(self, sample: HeldRows) -> StreamedSet:
        return StreamedSet(self.problem, sample)

    def open_for_rounds(self) -> AttainableSet:
        unlabeled = self.problem.unlabeled
        max_held = settings.ROUNDS.max_rows
        if unlabeled.n_rows > max_held:
            return StreamedSet(self.problem)
        return self.hold(*unlabeled.sample(max_held, 0))


@dataclass(frozen=True)
class QuotaSets:
    """Attainable sets of labels that fill quotas."""

    are_free: ClassVar[bool] = False

    problem: Problem
    quotas: Quotas

    def hold(self, rows: AnyArray, weights: Array) -> QuotaSet:
        free = hold_free(self.problem, rows, weights)
        is_streamed = n_held_rows(self.problem) < self.problem.unlabeled.n_rows
        kind = QuotaPart if is_streamed else QuotaSet
        return kind(free, self.quotas)

    def stream(self, sample: HeldRows) -> StreamedSet:
        assert isinstance(sample, QuotaPart)
        quotas = replace(self.quotas, sharpness=_SHARPNESS_IN_ROUNDS)
        rounds = QuotaRounds(
            problem=self.problem, quotas=quotas, sample=replace(sample, quotas=quotas)
        )
        return QuotaStreamedSet(problem=self.problem, held=sample, rounds=rounds)

    def open_for_rounds(self) -> AttainableSet:
        problem = self.problem
        chosen = settings.ROUNDS
        quotas = replace(self.quotas, sharpness=_SHARPNESS_IN_ROUNDS)
        sharp = replace(self, quotas=quotas)
        numbers_per_row = 1 + problem.whitening.rank + 4 * problem.n_classes
        max_held = max(
            chosen.max_rows, chosen.max_numbers_with_quotas // numbers_per_row
        )
        if problem.unlabeled.n_rows <= max_held:
            return sharp.hold(*problem.unlabeled.sample(max_held, 0))
        sample = sharp.hold(*problem.unlabeled.sample(chosen.max_rows, 0))
        return QuotaRounds(problem=problem, quotas=quotas, sample=sample)


def quotas_of(problem: Problem, proportions: Array) -> Quotas:
    """Return the quotas of the unlabeled rows, from proportions (K, 2)."""
    # Weights are over N, of which the labeled rows have a part.
    weight = 1 - problem.labeled.weight / problem.moments.weight
    low, high = proportions.T
    is_shifted = (low > 0) | (high < 1)
    if len(low) == 2 or (low == high).all():
        # The last class gets the rest.
        is_shifted[-1] = False
    return Quotas(weight * low, weight * (high - low), is_shifted, weight)
