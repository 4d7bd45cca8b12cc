"""What a comparison recommends: the rule of ``_error_estimate`` on stored losses.

Every labeled row was predicted in each repeat by fits that did not know its class. The
rule compares the mean losses of the same rows under all contestants, the default first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..._core import Array
from ..._error_estimate import (
    ErrorEstimate,
    estimate_error,
    find_beaten,
    first_choice,
)
from ...methods import default_method
from ..measures import AUC, BALANCED, BRIER, ERROR, weights_of_classes
from ..store import FitResult
from .contestants import SUPERVISED, Contestant
from .splits import REPEATED_FOLDS

# The rule looks at the losses of at most this many rows. More do not change the choice,
# and its bootstrap would take long.
_MAX_RULE_ROWS = 20_000


@dataclass(frozen=True)
class Recommendation:
    """The contestant to use, and the one with the lowest mean loss.

    ``estimate`` is the error to expect of the contestant to use. It is None if
    ``n_rows``, the number of tested rows, is too small to estimate it. ``n_methods`` is
    the number of methods to choose from, and ``is_default`` tells whether the choice is
    the default on such rows.
    """

    chosen: Contestant
    lowest: Contestant
    estimate: ErrorEstimate | None
    n_rows: int
    n_methods: int
    is_default: bool


def recommend(
    results: Iterable[FitResult],
    contestants: Sequence[Contestant],
    *,
    is_network: bool = False,
    measure: str = BRIER,
) -> Recommendation | None:
    """Apply the rule to eligible contestants; None if none has a fit of every split.

    ``is_network`` tells whether the rows are features of a network, which have another
    default. ``measure`` is the one that decides.
    """
    candidates = _losses_of_candidates(results, contestants, is_network, measure)
    if candidates is None:
        return None
    complete, losses, is_wrong = candidates
    chosen = complete[first_choice(losses, is_wrong)]
    default = default_method(is_network=is_network)
    return Recommendation(
        chosen=chosen,
        lowest=complete[int(losses.mean(axis=1).argmin())],
        estimate=estimate_error(losses, is_wrong),
        n_rows=losses.shape[1],
        n_methods=len({contestant.method for contestant in complete}),
        is_default=chosen.method == default,
    )


def contestants_to_stop(
    results: Iterable[FitResult],
    contestants: Sequence[Contestant],
    n_repeats: int,
    *,
    measure: str = BRIER,
) -> list[str]:
    """Return the names of those that are clearly worse after the first repeats.

    They cannot be recommended any more. The baseline goes on in any case, because all
    others are compared with it.
    """
    first = [result for result in results if result.repeat < n_repeats]
    means = means_of_rows(first, [each.name for each in contestants], measure)
    eligible = {each.name for each in contestants if each.is_eligible}
    # A contestant that may not be recommended does not stop one that may.
    beaten = _beaten_in({name: means[name] for name in means if name in eligible})
    beaten |= _beaten_in(means) - eligible
    return [
        each.name
        for each in contestants
        if each.name in beaten and each.method.name != SUPERVISED
    ]


def _beaten_in(means: Mapping[str, Array]) -> set[str]:
    """Return the names of the contestants that another one beats, by mean losses."""
    if not means:
        return set()
    losses, is_wrong = np.stack(list(means.values()), axis=1)
    is_beaten = find_beaten(losses, is_wrong)
    return {name for name, beaten in zip(means, is_beaten, strict=True) if beaten}


def is_settled(
    results: Iterable[FitResult],
    contestants: Sequence[Contestant],
    n_repeats: int,
    *,
    is_network: bool = False,
    measure: str = BRIER,
) -> bool:
    """Return whether the choice stays the same without any one of the first repeats.

    A further repeat then hardly changes it. More labels might.
    """
    first = [result for result in results if result.repeat < n_repeats]
    choices = set()
    for left_out in [None, *range(n_repeats)]:
        others = [result for result in first if result.repeat != left_out]
        candidates = _losses_of_candidates(others, contestants, is_network, measure)
        if candidates is not None:
            complete, losses, is_wrong = candidates
            choices.add(complete[first_choice(losses, is_wrong)].name)
    return len(choices) <= 1


def _losses_of_candidates(
    results: Iterable[FitResult],
    contestants: Sequence[Contestant],
    is_network: bool,
    measure: str,
) -> tuple[list[Contestant], Array, Array] | None:
    """Return eligible contestants, the default first, with their losses and mistakes.

    The arrays have the shape (contestants, rows), as the rule expects them. None if no
    contestant has a fit of every split.
    """
    eligible = [contestant for contestant in contestants if contestant.is_eligible]
    eligible.sort(key=lambda contestant: contestant.rank(is_network=is_network))
    names = [contestant.name for contestant in eligible]
    means = means_of_rows(results, names, measure)
    complete = [contestant for contestant in eligible if contestant.name in means]
    if not complete:
        return None
    means_of_complete = [means[contestant.name] for contestant in complete]
    losses, is_wrong = np.stack(means_of_complete, axis=1)
    return complete, losses, is_wrong


def means_of_rows(
    results: Iterable[FitResult], names: Sequence[str], measure: str = BRIER
) -> dict[str, Array]:
    """Return the mean losses of all tested rows, by contestant, of shape (2, rows).

    The first line has losses whose mean is the measure, or 1 minus it if higher values
    are better. The second has the share of repeats in which the class of a row was
    wrong. A contestant is left out if it lacks a split that another one has: the same
    rows have to be compared.
    """
    tested_rows: dict[str, list[list[float]]] = {name: [] for name in names}
    splits: dict[str, set[tuple[int, int]]] = {name: set() for name in names}
    for result in results:
        name = result.method
        is_compared = result.experiment == REPEATED_FOLDS and name in splits
        # A failed fit has no rows.
        if is_compared and "rows" in result.values:
            splits[name].add((result.repeat, result.part))
            tested_rows[name] += json.loads(result.values["rows"])

    all_splits = set().union(*splits.values())
    if not all_splits:
        return {}
    complete = [name for name in names if splits[name] == all_splits]
    return {name: _means_by_row(tested_rows[name], measure) for name in complete}


def _means_by_row(tested_rows: Sequence[Sequence[float]], measure: str) -> Array:
    """Average the losses and mistakes of every row over its tests.

    A tested row is its index, its Brier score, 1 if its class is wrong, the code of its
    class, and the share of rows of the other class that are ranked on its wrong side.
    """
    indices, brier, is_wrong, codes, ranking = np.array(tested_rows).T
    indices = indices.astype(int)
    losses = {BRIER: brier, ERROR: is_wrong, BALANCED: is_wrong, AUC: ranking}[measure]
    # Sums by index of the row; rows that are not tested are left out.
    distinct, first, counts = np.unique(indices, return_index=True, return_counts=True)
    loss_means = np.bincount(indices, losses)[distinct] / counts
    wrong_means = np.bincount(indices, is_wrong)[distinct] / counts
    if measure in (BALANCED, AUC):
        row_codes = codes[first].astype(int)
        loss_means *= weights_of_classes(np.bincount(row_codes))[row_codes]
    return np.stack([loss_means, wrong_means])[:, :_MAX_RULE_ROWS]
