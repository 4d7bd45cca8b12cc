"""Who takes part: the methods, each with one or two amounts of shrinkage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._messages import Hint, ParameterError, Text
from ...methods import Method, Shrinkage, parse_shrinkage

SUPERVISED = "supervised"

_FEW = 5  # labeled rows a feature, below which shrinkage is worth a trial
_MANY_UNKNOWNS = 200  # of an implicitly constrained fit: from here on every start takes seconds


@dataclass(frozen=True)
class Contestant:
    """A method with its shrinkage; the name tells the shrinkage where there are several."""

    name: str
    method: Method
    shrinkage: Shrinkage

    @property
    def is_supervised(self) -> bool:
        """Whether it does without unlabeled rows."""
        return not self.method.uses_unlabeled

    def classifier(self, seed: int, n_unknowns: int) -> Any:
        """An unfitted classifier; of many unknowns, the search starts once only."""
        made = self.method.classifier(shrinkage=self.shrinkage, seed=seed)
        made.set_params(unlabeled=None)
        if self.method.is_searched and is_slow(n_unknowns):
            made.set_params(n_starts=1)
        return made


def is_slow(n_unknowns: int) -> bool:
    """Whether a search of so many unknowns takes seconds a start."""
    return n_unknowns > _MANY_UNKNOWNS


@dataclass(frozen=True)
class Size:
    """What a split trains on: labeled rows, classes, and features after encoding."""

    n_labeled: int
    n_classes: int
    n_features: int

    @property
    def n_unknowns(self) -> int:
        """Numbers that a labeling of the unlabeled rows decides."""
        return (self.n_classes - 1) * (self.n_features + 1)

    @property
    def is_degenerate(self) -> bool:
        """Whether labeled rows alone leave directions without any spread within classes."""
        return self.n_labeled - self.n_classes < self.n_features

    @property
    def is_small(self) -> bool:
        """Whether labeled rows are few for the features."""
        return self.n_labeled < _FEW * self.n_features


def parse_shrinkages(text: str) -> tuple[Shrinkage, ...]:
    """Numbers from 0 to below 1, or auto, separated by commas; 0 is no shrinkage."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ParameterError(
            Text(
                Hint("shrinkage"), f" names no number, got {text!r}: pass 0, 0.1, auto or 0,auto."
            ),
            parameter="shrinkage",
            value=text,
        )
    return tuple(dict.fromkeys(map(parse_shrinkage, parts)))


def shrinkage_text(shrinkages: Sequence[Shrinkage]) -> str:
    """Shrinkages as ``parse_shrinkages`` reads them."""
    return ",".join("0" if each is None else f"{each}" for each in shrinkages)


def default_shrinkages(size: Size) -> tuple[Shrinkage, ...]:
    """Both without and with where labels are few: unshrunk, a supervised fit is no match then."""
    return (None, "auto") if size.is_small else (None,)


def line_up(
    methods: Sequence[Method], shrinkages: Sequence[Shrinkage], size: Size
) -> tuple[Contestant, ...]:
    """Every method with every shrinkage, the supervised ones first.

    Where labeled rows are fewer than features, methods that rest on them do without the unshrunk
    variant if there is another: it separates the labeled rows perfectly, or fails.
    """
    is_marked = len(shrinkages) > 1
    ordered = sorted(methods, key=lambda method: method.uses_unlabeled)
    return tuple(
        Contestant(_name(method, shrinkage, is_marked), method, shrinkage)
        for method in ordered
        for shrinkage in shrinkages
        if not (is_marked and shrinkage is None and size.is_degenerate and method.rests_on_labels)
    )


def on_curves(best: Mapping[str, str], contestants: Sequence[Contestant]) -> list[str]:
    """The best variant of every method, but a shrunk one where few labels would fail the other."""
    by_name = {contestant.name: contestant for contestant in contestants}
    return [_shrunk(by_name[name], contestants).name for name in best.values()]


def _shrunk(chosen: Contestant, contestants: Sequence[Contestant]) -> Contestant:
    """A variant that few labels do not fail; supervised LDA, the baseline, stays what it is."""
    if not (chosen.method.uses_unlabeled and chosen.method.rests_on_labels):
        return chosen
    same = [c for c in contestants if c.method == chosen.method and c.shrinkage is not None]
    return chosen if chosen.shrinkage is not None or not same else same[0]


def _name(method: Method, shrinkage: Shrinkage, is_marked: bool) -> str:
    if shrinkage is None or not is_marked:
        return method.name
    return f"{method.name} (shrunk)" if shrinkage == "auto" else f"{method.name} ({shrinkage:g})"
