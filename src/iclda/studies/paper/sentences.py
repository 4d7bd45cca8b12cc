"""Sentences of the paper about its tables, checked on numbers.

``check_sentences`` takes the samples of all data sets, under the names of the paper, so
that a sentence can be checked on the printed numbers and on those of a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from ..page import signed
from .marks import FOUR, Samples, Table

# Samples of one measure, by data set.
Column = dict[str, Samples]


@dataclass(frozen=True)
class Checked:
    """A sentence, the numbers that it is about, and whether they bear it out."""

    sentence: str
    numbers: str
    holds: bool


def check_sentences(table: Table) -> list[Checked]:
    """Check every sentence on the samples of all data sets."""
    checked = []
    for sentence, (measure, check) in _SENTENCES.items():
        column = {
            name: samples for (name, of), samples in table.items() if of == measure
        }
        numbers, holds = check(column)
        checked.append(Checked(sentence, numbers, holds))
    return checked


def _lowest(samples: Samples) -> str:
    return min(FOUR, key=lambda method: samples[method].mean)


def _moment_constraints_err_least(column: Column) -> tuple[str, bool]:
    wins = Counter(map(_lowest, column.values()))
    means = {
        method: fmean(samples[method].mean for samples in column.values())
        for method in FOUR
    }
    first, second, *_ = sorted(FOUR, key=means.__getitem__)
    numbers = (
        f"MCLDA has the lowest error on {wins['MCLDA']} of {len(column)} sets; in the "
        f"mean over the sets {first} {means[first]:.3f}, {second} {means[second]:.3f}"
    )
    return numbers, first == "MCLDA" and wins["MCLDA"] == max(wins.values())


def _implicit_constraints_err_least_on_two(column: Column) -> tuple[str, bool]:
    best = [name for name, samples in column.items() if _lowest(samples) == "ICLDA"]
    return f"on {len(best)}: {', '.join(best) or 'none'}", len(best) == 2


def _implicit_constraints_lose_least(column: Column) -> tuple[str, bool]:
    n_best = sum(_lowest(samples) == "ICLDA" for samples in column.values())
    numbers = f"ICLDA has the lowest loss on {n_best} of {len(column)} sets"
    return numbers, 2 * n_best > len(column)


def _moment_constraints_lose_more(column: Column) -> tuple[str, bool]:
    n_higher = sum(
        samples["MCLDA"].mean > samples["ICLDA"].mean for samples in column.values()
    )
    numbers = f"MCLDA has the higher loss on {n_higher} of {len(column)} sets"
    return numbers, n_higher == len(column)


def _em_is_erratic(column: Column) -> tuple[str, bool]:
    n_larger = sum(
        samples["EMLDA"].sd > samples["SLLDA"].sd for samples in column.values()
    )
    worst = []
    for method in ("EMLDA", "SLLDA"):
        losses = {
            name: samples[method].mean - samples["LDA"].mean
            for name, samples in column.items()
        }
        name = max(losses, key=losses.__getitem__)
        worst.append(f"{method} {signed(100 * losses[name])} points ({name})")
    numbers = (
        f"the error of EMLDA has the larger standard deviation on {n_larger} of "
        f"{len(column)} sets; furthest above LDA: {', '.join(worst)}"
    )
    return numbers, 2 * n_larger > len(column)


# Every sentence with the measure that it is about and the function that checks it.
_SENTENCES: dict[str, tuple[str, Callable[[Column], tuple[str, bool]]]] = {
    "In terms of error rates, MCLDA seems to perform best.": (
        "error",
        _moment_constraints_err_least,
    ),
    "ICLDA has the best performance (error) on 2 of the data sets.": (
        "error",
        _implicit_constraints_err_least_on_two,
    ),
    "In loss, ICLDA outperforms all other methods on the majority of the data sets.": (
        "nll",
        _implicit_constraints_lose_least,
    ),
    "MCLDA is consistently outperformed by ICLDA in loss.": (
        "nll",
        _moment_constraints_lose_more,
    ),
    "The behaviour of EMLDA is more erratic than that of SLLDA.": (
        "error",
        _em_is_erratic,
    ),
}
