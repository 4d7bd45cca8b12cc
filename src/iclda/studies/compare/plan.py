"""Plan of a comparison: settings, contestants, cells, and the rows that each cell uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..._checks import Remark, first_copies
from ..._core import AnyArray
from ..._estimators.labels import Labels, draw_folds, encode_labels
from ..._messages import Hint, ParameterError, Text, say
from ...methods import (
    COMPARED,
    FURTHER,
    Method,
    Shrinkage,
    find_method,
    parse_shrinkage,
    safety_rank,
)
from ...model_selection._splitters import OrderedSplit, order_split
from ...tabular.encoders import kinds_of
from ...tabular.table import Source, Table, why_withheld
from .. import rng_of
from ..store import COMPARISON_FORMAT, Cell
from . import SENTENCES

SUPERVISED = "supervised"
COMPARISON = "comparison"  # the study, and its first experiment
UNLABELED_CURVE, LABELED_CURVE = "unlabeled", "labeled"
EXPERIMENT_TITLES = {
    COMPARISON: COMPARISON,
    UNLABELED_CURVE: "curve of unlabeled rows",
    LABELED_CURVE: "curve of labeled rows",
}
REPEATS = 10  # random divisions into folds, unless fits take long
FOLDS = 10
MOST_ON_CURVES = 2_000  # unlabeled rows: more take long and change little

UNSHRUNK = " without shrinkage"  # in the names of contestants, beside others
_LABELS_PER_FEATURE = 5  # with fewer, fits without shrinkage overfit
_MANY_UNKNOWNS = (
    200  # of an implicitly constrained fit: from here on every start takes seconds
)
_GUARANTEED_LABELS = 2  # of every class, where there are so many
_LARGEST_MULTIPLE = 10  # largest size of a curve, in multiples of the labels kept
_N_SIZES = 4  # of each half of a curve
_FIRST_SIZE = 10  # smallest number of unlabeled rows on a curve, besides 0


@dataclass(frozen=True)
class Size:
    """Labeled rows, classes and features (after encoding) that a split trains on."""

    n_labeled: int
    n_classes: int
    n_features: int

    @property
    def n_unknowns(self) -> int:
        """Numbers that a search over the labels of the unlabeled rows has to find."""
        return (self.n_classes - 1) * (self.n_features + 1)

    @property
    def is_slow(self) -> bool:
        """Whether such a search takes seconds a start."""
        return self.n_unknowns > _MANY_UNKNOWNS

    @property
    def is_degenerate(self) -> bool:
        """Whether the labeled rows leave directions without any spread within classes."""
        return self.n_labeled - self.n_classes < self.n_features

    @property
    def is_small(self) -> bool:
        """Whether labeled rows are few for the features."""
        return self.n_labeled < _LABELS_PER_FEATURE * self.n_features


@dataclass(frozen=True)
class Contestant:
    """A method with its shrinkage, which the name mentions where there are several but "auto"."""

    name: str
    method: Method
    shrinkage: Shrinkage
    is_eligible: bool = True  # for a recommendation; others are compared only

    @property
    def risk(self) -> tuple[bool, int]:
        """Order from the safest: with shrinkage before without."""
        return self.shrinkage is None and not self.method.is_outside, safety_rank(
            self.method.name
        )


def bad_parameter(
    error: str, parameter: str, value: Any, **values: Any
) -> ParameterError:
    """The error of this name in ``sentences.toml``, about a parameter and its value."""
    text = say(SENTENCES["errors"][error], given=Hint(parameter, value), **values)
    return ParameterError(text, parameter=parameter, value=value)


def find_compared(names: Sequence[str]) -> tuple[Method, ...]:
    """Methods of a comparison; supervised, which the others are measured by, always takes part."""
    return tuple(
        dict.fromkeys(find_method(name, COMPARED) for name in [*names, SUPERVISED])
    )


def parse_shrinkages(text: str) -> tuple[Shrinkage, ...]:
    """Numbers from 0 to below 1, or auto, separated by commas; 0 is no shrinkage."""
    return tuple(
        dict.fromkeys(parse_shrinkage(part.strip()) for part in text.split(","))
    )


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

    Where labels are few, unshrunk variants beside others are compared but not eligible: they
    overfit more often than the few rows show. Nor are the further methods, which ``iclda fit``
    does not offer.
    """
    marks = {
        s: "" if s == "auto" else f" with shrinkage {s or 0:g}" for s in shrinkages
    }
    marks[None] = UNSHRUNK
    shrunk = [method for method in methods if "shrinkage" in method.parameters]
    others = [method for method in methods if method not in shrunk]
    lined_up = []
    for method in (*sorted(shrunk, key=lambda method: method.uses_unlabeled), *others):
        for shrinkage in shrinkages if method in shrunk else (None,):
            mark = marks[shrinkage] if method in shrunk and len(shrinkages) > 1 else ""
            is_eligible = method not in FURTHER and not (
                mark == UNSHRUNK and size.is_small
            )
            lined_up.append(
                Contestant(method.name + mark, method, shrinkage, is_eligible)
            )
    return tuple(lined_up)


@dataclass(frozen=True)
class Take:
    """Row indices of a cell."""

    rows: AnyArray
    is_labeled: AnyArray
    test: AnyArray


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
    is_chosen: Any = False  # rows whose labels always train
    first_copies: AnyArray | None = (
        None  # index of the first copy of every row, if some have any
    )

    @property
    def copies(self) -> AnyArray:
        return (
            np.arange(len(self.y)) if self.first_copies is None else self.first_copies
        )

    @cached_property
    def labels(self) -> Labels:
        return encode_labels(self.y, None)

    @cached_property
    def tests(self) -> list[AnyArray]:
        """Indices of the rows tested in every split."""
        rng = np.random.RandomState(self.seed)
        tested = np.flatnonzero(self.is_distinct & ~self.is_chosen)
        codes, n_folds = self.labels.codes[tested], self.n_folds
        drawn = [draw_folds(codes, n_folds, rng) for _ in range(self.n_repeats)]
        return [tested[folds == k] for folds in drawn for k in range(n_folds)]

    @property
    def is_distinct(self) -> AnyArray:
        """Labeled rows without further copies."""
        return self.labels.is_labeled & (self.copies == np.arange(len(self.y)))

    @cached_property
    def counts(self) -> AnyArray:
        """Distinct labeled rows of every class."""
        return np.bincount(self.labels.codes[self.is_distinct])

    @cached_property
    def min_per_class(self) -> int:
        """Labeled rows guaranteed to every class, however few are used."""
        fewest = int(self.counts.min())
        in_training = fewest - -(-fewest // self.n_folds)
        wanted = (
            in_training
            if self.n_labeled is None
            else self.n_labeled // len(self.counts)
        )
        return max(1, min(_GUARANTEED_LABELS, in_training, wanted))

    @property
    def n_training(self) -> int:
        """Rows of known label that every split can train on at least."""
        n_copies = np.bincount(
            self.copies[self.labels.is_labeled], minlength=len(self.y)
        )
        n_tested = max(int(n_copies[test].sum()) for test in self.tests)
        return int(self.labels.is_labeled.sum()) - n_tested

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

    def part(self, index: int) -> OrderedSplit:
        """A split with its training rows in random order."""
        test = self.tests[index]
        train = np.flatnonzero(~np.isin(self.copies, test))
        seed = int(rng_of(self.seed, "rows", index).integers(2**31))
        return order_split(self.labels, train, test, self.min_per_class, seed)

    def take(self, cell: Cell) -> Take:
        """The rows of a cell."""
        is_compared = cell.experiment == COMPARISON
        part = self.part(
            cell.repeat * self.n_folds + cell.part if is_compared else cell.repeat
        )
        sizes = {
            COMPARISON: (self.n_labeled, None),
            UNLABELED_CURVE: (self.n_labeled, cell.part),
            LABELED_CURVE: (cell.part, MOST_ON_CURVES),
        }
        rows, is_labeled = part.take(*sizes[cell.experiment])
        return Take(rows, is_labeled, part.test)

    def unlabeled_sizes(self) -> list[int]:
        """Increasing sizes of the unlabeled rows on a curve, from none.

        The size of all unlabeled rows is left out: the comparison has that point.
        """
        most = min(self.n_unlabeled, MOST_ON_CURVES)
        return [
            size for size in (0, *_spread(_FIRST_SIZE, most)) if size < self.n_unlabeled
        ]

    def labeled_sizes(self) -> list[int]:
        """Increasing sizes of the labeled rows on a curve, from as few as the classes allow.

        Where labels are hidden, sizes extend beyond the labels kept, as long as half of the
        training rows stay unlabeled. The size of the labels kept is left out, because the
        comparison has that point, unless it has more unlabeled rows than curves use.
        """
        least, kept = self.min_per_class * len(self.counts), self.n_used
        most = max(kept, min(_LARGEST_MULTIPLE * kept, self.n_training // 2))
        sizes = {
            *_spread(least, kept),
            *_spread(kept, kept if self.n_labeled is None else most),
        }
        return sorted(sizes if self.n_unlabeled > MOST_ON_CURVES else sizes - {kept})


def _spread(least: int, most: int) -> list[int]:
    if most <= least:
        return [most]
    sizes: Any = np.geomspace(least, most, _N_SIZES).round().astype(int)
    return sorted(set(sizes.tolist()))


@dataclass(frozen=True)
class ComparisonPlan:
    """What to compare, on which table, into which folder; what is None is chosen by the table."""

    table: Table
    out: Path
    methods: tuple[Method, ...] | None = None  # as they were named
    shrinkages: tuple[Shrinkage, ...] | None = None
    repeats: int | None = None
    folds: int | None = None
    n_labeled: int | None = None
    seed: int = 0
    jobs: int = 1
    command: str = ""
    reading: Mapping[str, Any] = field(
        default_factory=dict
    )  # parameters given to ``read_table``
    is_fast: bool = False  # few repeats, and no learning curves

    @property
    def name(self) -> str:
        """The name of the file."""
        return Path(self.table.sources[0].path).name

    @cached_property
    def splits(self) -> Splits:
        """The folds; ValueError where the labels do not allow them."""
        n_folds = choose_n_folds(self)
        table, n_repeats = self.table, self.repeats or REPEATS
        return Splits(
            table.labels,
            n_folds,
            n_repeats,
            self.n_labeled,
            self.seed,
            table.is_chosen if table.n_chosen else False,
            self.copies,
        )

    @cached_property
    def copies(self) -> AnyArray:
        """Index of the first copy of every row of the table."""
        kinds_of(
            self.table.features
        )  # refuses lists and records, which cannot be compared
        return first_copies(self.table.features, self.table.labels)


def choose_n_folds(plan: ComparisonPlan) -> int:
    """Return the number of folds.

    ValueError unless every class can be trained on and tested, and something is unlabeled.
    """
    is_distinct = plan.table.is_labeled & (plan.copies == np.arange(len(plan.copies)))
    counts = Counter(plan.table.labels[is_distinct].tolist())
    name = min(plan.table.classes, key=counts.__getitem__)
    count, n_labels = counts[name], counts.total()
    if count < 2:
        raise ValueError(say(SENTENCES["errors"]["one_label"], name=name))
    if plan.folds is not None and not 2 <= plan.folds <= count:
        raise bad_parameter("folds", "folds", plan.folds, most=count, name=name)
    if plan.table.n_chosen and (withheld := why_withheld(plan.table)):
        raise ValueError(f"The error of methods cannot be compared: {withheld}.")
    n_folds = plan.folds or min(FOLDS, count, int(plan.table.is_random.sum()))
    if plan.n_labeled is None:
        if plan.table.is_labeled.all():
            sentence = SENTENCES["errors"]["all_labeled"]
            raise ValueError(
                say(sentence, n_labels=n_labels, few=Hint("n_labeled", 30))
            )
        return n_folds
    n_training = n_labels - -(-n_labels // n_folds)
    limits = {"least": len(plan.table.classes), "most": n_training - 1}
    if not limits["least"] <= plan.n_labeled <= limits["most"]:
        limits |= {"n_labels": n_labels, "n_folds": n_folds}
        raise bad_parameter("n_labeled", "n_labeled", plan.n_labeled, **limits)
    return n_folds


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """Settings of a comparison, and facts about its table and its runs that the report shows."""

    # Stored rows depend on these; they are compared in this order.
    iclda: str  # version
    data: Mapping[str, str]  # SHA-256 of the table, by its name
    target: str
    unlabeled: str  # value that marks unlabeled rows, besides empty cells
    drop: str
    seed: int
    folds: int
    labeled: int | str  # labels kept, or "all"
    shrinkage: str
    # Stored rows do not depend on these.
    repeats: int
    curve_splits: int
    contestants: Sequence[Contestant]
    left_out: Sequence[str]  # methods that would take too long
    classes: Sequence[str]
    size: Size  # of the training rows of every split
    n_unlabeled: int  # rows that every split trains on without a label
    n_labels: int
    remarks: Sequence[Remark]
    sources: Sequence[Source]
    reading: Mapping[str, Any]
    run: Mapping[str, Any]  # command, processes, machine and time of the last run
    versions: Mapping[str, str]

    @property
    def n_kept(self) -> int | None:
        """Labels kept where others were hidden, else None."""
        return None if self.labeled == "all" else self.size.n_labeled

    @property
    def is_capped(self) -> bool:
        """Whether there are more unlabeled rows than curves use."""
        return self.n_unlabeled > MOST_ON_CURVES

    @property
    def is_slow(self) -> bool:
        """Whether a method searches for seconds from each start, and so starts only once."""
        return self.size.is_slow and any(
            "n_starts" in each.method.parameters for each in self.contestants
        )

    def n_repeats(self, experiment: str) -> int:
        """Repeats of an experiment; those of curves are single splits."""
        return self.repeats if experiment == COMPARISON else self.curve_splits

    @property
    def agreed(self) -> dict[str, Any]:
        """Settings on which stored rows depend."""
        names = [each.name for each in fields(self)]
        names = names[: names.index("repeats")]
        return {
            "kind": COMPARISON,
            "format": COMPARISON_FORMAT,
            **{name: getattr(self, name) for name in names},
        }

    def to_json(self) -> dict[str, Any]:
        """All settings as values that JSON has."""
        return {
            **vars(self),
            "size": asdict(self.size),
            "remarks": [
                {**vars(r), "text": Text(r.text).to_json()} for r in self.remarks
            ],
            "contestants": [
                (c.name, c.method.name, c.shrinkage, c.is_eligible)
                for c in self.contestants
            ],
            "sources": [asdict(source) for source in self.sources],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ComparisonSettings:
        """Inverse of ``to_json``; KeyError, TypeError or ValueError for those of other versions."""
        known = {each.name: stored[each.name] for each in fields(cls)}
        known["size"] = Size(**known["size"])
        known["remarks"] = [
            Remark(**{**remark, "text": Text.from_json(remark["text"])})
            for remark in known["remarks"]
        ]
        known["sources"] = [Source(**source) for source in known["sources"]]
        known["contestants"] = [
            Contestant(name, find_method(method, COMPARED), *rest)
            for name, method, *rest in known["contestants"]
        ]
        return cls(**known)
