"""Contestants of a comparison: methods, each with a value of shrinkage.

If a comparison has several values of shrinkage, the names of the contestants tell them
apart: "em" for automatic shrinkage, "em without shrinkage", "em with shrinkage 0.2".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..._cost import COMPARISON_BUDGET, is_search_slow
from ..._messages import Hint, ParameterError, say
from ...methods import (
    COMPARED,
    FURTHER,
    Method,
    Shrinkage,
    default_rank,
    find_method,
    parse_shrinkage,
)

# The method that all others are compared with. It takes part in every comparison.
SUPERVISED = "supervised"
# Ending of the name of a contestant that has variants with shrinkage.
UNSHRUNK = " without shrinkage"

# With fewer labels per feature, fits without shrinkage overfit.
_MIN_LABELS_PER_FEATURE = 5


@dataclass(frozen=True)
class Size:
    """Labeled rows, classes and encoded features that every split trains on."""

    n_labeled: int
    n_classes: int
    n_features: int

    @property
    def is_slow(self) -> bool:
        """Whether a search over labels takes seconds from each start."""
        return is_search_slow(self.n_classes, self.n_features, COMPARISON_BUDGET)

    @property
    def is_degenerate(self) -> bool:
        """Whether there are too few labeled rows to vary in all directions."""
        return self.n_labeled - self.n_classes < self.n_features

    @property
    def is_small(self) -> bool:
        """Whether there are few labeled rows for the number of features."""
        return self.n_labeled < _MIN_LABELS_PER_FEATURE * self.n_features


@dataclass(frozen=True)
class Contestant:
    """A method with its shrinkage.

    Attributes
    ----------
    name : str
        Name of the method, followed by its shrinkage where there are several values of
        it and this one is not "auto".
    method : Method
        The method.
    shrinkage : float, "auto" or None
        None is no shrinkage.
    is_eligible : bool
        Whether it may be recommended; other contestants are only compared.
    """

    name: str
    method: Method
    shrinkage: Shrinkage
    is_eligible: bool = True

    def rank(self, *, is_network: bool = False) -> tuple[bool, int]:
        """Return a sort key: the default first, those without shrinkage last."""
        is_unshrunk = self.shrinkage is None and "shrinkage" in self.method.parameters
        return is_unshrunk, default_rank(self.method.name, is_network=is_network)


def bad_parameter(
    sentence: str, parameter: str, value: Any, **values: Any
) -> ParameterError:
    """Return an error about a parameter, which ``{given}`` in the sentence shows."""
    text = say(sentence, given=Hint(parameter, value), **values)
    return ParameterError(text, parameter=parameter, value=value)


def find_compared(names: Sequence[str]) -> tuple[Method, ...]:
    """Return the named methods, and the supervised one, each of them once."""
    methods = [find_method(name, COMPARED) for name in [*names, SUPERVISED]]
    return tuple(dict.fromkeys(methods))


def parse_shrinkages(text: str) -> tuple[Shrinkage, ...]:
    """Parse numbers from 0 to below 1, or auto, separated by commas; 0 becomes None."""
    shrinkages = [parse_shrinkage(part.strip()) for part in text.split(",")]
    return tuple(dict.fromkeys(shrinkages))


def shrinkage_text(shrinkages: Sequence[Shrinkage]) -> str:
    """Write shrinkages as ``parse_shrinkages`` reads them."""
    return ",".join(str(shrinkage or 0) for shrinkage in shrinkages)


def default_shrinkages(size: Size) -> tuple[Shrinkage, ...]:
    """Return the shrinkages to compare if none are named."""
    # Fits without shrinkage are worth their time only with many labels per feature.
    return ("auto",) if size.is_small else (None, "auto")


def line_up(
    methods: Sequence[Method], shrinkages: Sequence[Shrinkage], size: Size
) -> tuple[Contestant, ...]:
    """Return every method with every shrinkage, the supervised methods first.

    Methods without the parameter ``shrinkage`` follow, once each. Two kinds of
    contestants are compared but never recommended: the further methods, which
    ``iclda fit`` does not offer, and, where labels are few, those without shrinkage,
    because they overfit more often than the few rows show.
    """
    shrunk = [method for method in methods if "shrinkage" in method.parameters]
    others = [method for method in methods if method not in shrunk]
    shrunk.sort(key=lambda method: method.uses_unlabeled)

    contestants = []
    for method in shrunk:
        for shrinkage in shrinkages:
            # A single value of shrinkage need not be told apart from others.
            ending = _name_ending(shrinkage) if len(shrinkages) > 1 else ""
            may_overfit = ending == UNSHRUNK and size.is_small
            is_eligible = method not in FURTHER and not may_overfit
            name = method.name + ending
            contestants.append(Contestant(name, method, shrinkage, is_eligible))
    contestants += [
        Contestant(method.name, method, None, is_eligible=method not in FURTHER)
        for method in others
    ]
    return tuple(contestants)


def _name_ending(shrinkage: Shrinkage) -> str:
    if shrinkage is None:
        return UNSHRUNK
    return "" if shrinkage == "auto" else f" with shrinkage {shrinkage:g}"
