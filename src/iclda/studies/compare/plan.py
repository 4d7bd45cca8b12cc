"""Plan of a comparison: its contestants, its cells, and the rows that each cell uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._advice import safety_rank
from ..._core.types import AnyArray
from ..._estimators.labels import Labels, encode_labels
from ..._messages import Hint
from ...methods import COMPARED, FURTHER, Method, Shrinkage, find_method, parse_shrinkage
from ...model_selection import SemiSupervisedKFold
from ...model_selection._masking import OrderedSplit, order_split
from ..engine import rng_of
from ..store import Cell
from .baselines import OutsideClassifier
from .sentences import bad_parameter

SUPERVISED = "supervised"
COMPARISON, UNLABELED, LABELED = "comparison", "unlabeled", "labeled"
EXPERIMENTS = (COMPARISON, UNLABELED, LABELED)
MOST_ON_CURVES = 2_000  # unlabeled rows: more take long and change little

UNSHRUNK = " without shrinkage"  # in the names of contestants, beside others
_FEW = 5  # labeled rows a feature, below which fits without shrinkage overfit
_MANY_UNKNOWNS = 200  # of an implicitly constrained fit: from here on every start takes seconds
# Methods that fail if the labeled rows do not vary within classes.
_RESTS_ON_LABELS = ("moment", "moment-likelihood", "pessimistic", "supervised", "average")
_GUARANTEED = 2  # labeled rows of every class, where there are so many
_MOST_TIMES = 10  # largest size of a curve, in multiples of the labels kept
_N_SIZES, _FIRST_SIZE = 4, 10


@dataclass(frozen=True)
class Size:
    """Labeled rows, classes and features (after encoding) that a split trains on."""

    n_labeled: int
    n_classes: int
    n_features: int

    @property
    def is_slow(self) -> bool:
        """Whether a search over the labels of the unlabeled rows takes seconds a start."""
        return (self.n_classes - 1) * (self.n_features + 1) > _MANY_UNKNOWNS

    @property
    def is_degenerate(self) -> bool:
        """Whether the labeled rows leave directions without any spread within classes."""
        return self.n_labeled - self.n_classes < self.n_features

    @property
    def is_small(self) -> bool:
        """Whether labeled rows are few for the features."""
        return self.n_labeled < _FEW * self.n_features


@dataclass(frozen=True)
class Contestant:
    """A method with its shrinkage, which the name mentions where there are several but "auto"."""

    name: str
    method: Method
    shrinkage: Shrinkage
    is_eligible: bool = True  # for a recommendation; others are compared only

    @property
    def can_lose(self) -> bool:
        """Whether it is a method of this package that may lose likelihood by unlabeled rows."""
        method = self.method
        if method.is_outside or not method.uses_unlabeled:
            return False
        return hasattr(method.load_class(), "gain_bounds")

    @property
    def risk(self) -> tuple[bool, int]:
        """Order from the safest: with shrinkage before without."""
        return self.shrinkage is None and not self.method.is_outside, safety_rank(self.method.name)

    def classifier(self, seed: int, size: Size) -> Any:
        """An unfitted classifier. A slow search starts only once."""
        if self.method.is_outside:
            return OutsideClassifier(self.method.name)
        made = self.method.classifier(shrinkage=self.shrinkage, seed=seed)
        made.set_params(unlabeled=None)
        if "n_starts" in self.method.parameters and size.is_slow:
            made.set_params(n_starts=1)
        return made


def find_compared(names: Sequence[str]) -> tuple[Method, ...]:
    """Methods of a comparison; supervised, which the others are measured by, always takes part."""
    return tuple(dict.fromkeys(find_method(name, COMPARED) for name in [*names, SUPERVISED]))


def parse_shrinkages(text: str) -> tuple[Shrinkage, ...]:
    """Numbers from 0 to below 1, or auto, separated by commas; 0 is no shrinkage."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise bad_parameter("no_shrinkage", Hint("shrinkage", text), text=text)
    return tuple(dict.fromkeys(map(parse_shrinkage, parts)))


def shrinkage_text(shrinkages: Sequence[Shrinkage]) -> str:
    """Inverse of ``parse_shrinkages``."""
    return ",".join("0" if each is None else f"{each}" for each in shrinkages)


def default_shrinkages(size: Size) -> tuple[Shrinkage, ...]:
    """Fits without shrinkage are worth their time only where labels are many for the features."""
    return ("auto",) if size.is_small else (None, "auto")


def line_up(
    methods: Sequence[Method], shrinkages: Sequence[Shrinkage], size: Size
) -> tuple[Contestant, ...]:
    """Every method with every shrinkage, the supervised ones first; those without shrinkage once.

    Where labeled rows are fewer than features, methods that rest on them leave out the unshrunk
    variant if there is another: it separates the labeled rows perfectly, or fails. Where labels are
    few, other unshrunk variants are compared but not eligible: they overfit more often than the
    few rows show. Nor are the further methods, which ``iclda fit`` does not offer.
    """
    is_marked = len(shrinkages) > 1
    ordered = sorted(methods, key=lambda method: method.uses_unlabeled)
    marks = {s: "" if s == "auto" else f" with shrinkage {s or 0:g}" for s in shrinkages}
    marks[None] = UNSHRUNK
    own = [
        Contestant(
            f"{method.name}{marks[shrinkage] if is_marked else ''}",
            method,
            shrinkage,
            is_eligible=method not in FURTHER
            and not (is_marked and shrinkage is None and size.is_small),
        )
        for method in ordered
        if "shrinkage" in method.parameters
        for shrinkage in shrinkages
        if not (
            is_marked
            and shrinkage is None
            and size.is_degenerate
            and method.name in _RESTS_ON_LABELS
        )
    ]
    once = [m for m in methods if "shrinkage" not in m.parameters]
    return (*own, *(Contestant(m.name, m, None, m not in FURTHER) for m in once))


def on_curves(best: Mapping[str, str], contestants: Sequence[Contestant]) -> list[str]:
    """The best variant of every method, or a shrunk one if the best would fail with few labels.

    Supervised LDA, the baseline, is never replaced.
    """
    by_name = {contestant.name: contestant for contestant in contestants}
    names = []
    for name in best.values():
        chosen = by_name[name]
        if chosen.method.uses_unlabeled and chosen.method.name in _RESTS_ON_LABELS:
            variants = [c for c in contestants if c.method == chosen.method]
            chosen = next((c for c in (chosen, *variants) if c.shrinkage is not None), chosen)
        names.append(chosen.name)
    return names


@dataclass(frozen=True)
class Take:
    """Row indices of a cell; ``hidden`` are the unlabeled rows whose labels are known."""

    rows: AnyArray
    is_labeled: AnyArray
    test: AnyArray
    hidden: AnyArray


@dataclass(frozen=True)
class Splits:
    """Repeated folds of the labeled rows: those of ``SemiSupervisedKFold`` with this seed.

    ``n_labeled`` labels of the training rows are kept and the others hidden; None keeps all.
    """

    y: AnyArray
    n_folds: int
    n_repeats: int
    n_labeled: int | None = None
    seed: int = 0

    @cached_property
    def labels(self) -> Labels:
        return encode_labels(self.y, None)

    @cached_property
    def tests(self) -> list[AnyArray]:
        """Indices of the rows tested in every split."""
        folds = SemiSupervisedKFold(
            self.n_folds, n_repeats=self.n_repeats, unlabeled=None, random_state=self.seed
        )
        return [test for _, test in folds.split(self.y, self.y)]

    @cached_property
    def counts(self) -> AnyArray:
        """Labeled rows of every class."""
        return np.bincount(self.labels.codes[self.labels.is_labeled])

    @cached_property
    def min_per_class(self) -> int:
        """Labeled rows guaranteed to every class, however few are used."""
        fewest = int(self.counts.min())
        in_training = fewest - -(-fewest // self.n_folds)
        wanted = in_training if self.n_labeled is None else self.n_labeled // len(self.counts)
        return max(1, min(_GUARANTEED, in_training, wanted))

    @property
    def n_training(self) -> int:
        """Rows of known label that every split can train on at least."""
        return int(self.labels.is_labeled.sum()) - max(map(len, self.tests))

    @property
    def n_used(self) -> int:
        """Labeled rows that every split trains on."""
        return self.n_training if self.n_labeled is None else self.n_labeled

    @property
    def n_unlabeled(self) -> int:
        """Unlabeled rows that every split trains on, including those whose label is hidden."""
        return int((~self.labels.is_labeled).sum()) + self.n_training - self.n_used

    def size(self, n_features: int) -> Size:
        """What every split trains on."""
        return Size(self.n_used, len(self.counts), n_features)

    @property
    def is_capped(self) -> bool:
        """Whether there are more unlabeled rows than curves use."""
        return self.n_unlabeled > MOST_ON_CURVES

    def part(self, number: int) -> OrderedSplit:
        """A split with its training rows in random order."""
        test = self.tests[number]
        train = np.setdiff1d(np.arange(len(self.y)), test)
        seed = int(rng_of(self.seed, "rows", number).integers(2**31))
        return order_split(self.labels, train, test, self.min_per_class, seed)

    def take(self, cell: Cell) -> Take:
        """The rows of a cell."""
        is_compared = cell.experiment == COMPARISON
        part = self.part(cell.repeat * self.n_folds + cell.part if is_compared else cell.repeat)
        sizes = {
            COMPARISON: (self.n_labeled, None),
            UNLABELED: (self.n_labeled, cell.part),
            LABELED: (cell.part, MOST_ON_CURVES),
        }
        rows, is_labeled = part.take(*sizes[cell.experiment])
        hidden = rows[~is_labeled & self.labels.is_labeled[rows]]
        return Take(rows, is_labeled, part.test, hidden)

    def unlabeled_sizes(self) -> list[int]:
        """Increasing numbers of unlabeled rows on a curve, from none.

        All of them is not among these: the comparison has that point.
        """
        most = min(self.n_unlabeled, MOST_ON_CURVES)
        return [size for size in (0, *_spread(_FIRST_SIZE, most)) if size < self.n_unlabeled]

    def labeled_sizes(self) -> list[int]:
        """Increasing numbers of labeled rows on a curve, from as few as the classes allow.

        Where labels are hidden it extends beyond those kept, as long as half of the training rows
        stay unlabeled. The number kept is not among these, because the comparison has that point,
        unless the comparison has more unlabeled rows than curves use.
        """
        least, kept = self.min_per_class * len(self.counts), self.n_used
        most = max(kept, min(_MOST_TIMES * kept, self.n_training // 2))
        sizes = {*_spread(least, kept), *_spread(kept, kept if self.n_labeled is None else most)}
        return sorted(sizes if self.is_capped else sizes - {kept})


def _spread(least: int, most: int) -> list[int]:
    if most <= least:
        return [most]
    sizes: Any = np.geomspace(least, most, _N_SIZES).round().astype(int)
    return sorted(set(sizes.tolist()))
