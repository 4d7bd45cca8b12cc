"""Settings of a comparison.

What the user has not passed is chosen by the size of the table. The store keeps the
settings as JSON, so that the report can be drawn from the folder alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from ... import _cost
from ..._cost import Cost, ProblemSize
from ..._estimators.labels import LABELED
from ..._messages import Hint, Text
from ..._system import versions
from ...methods import (
    BASELINES,
    COMPARED,
    DEFAULT_ON_TABLES,
    FITTED,
    Method,
    find_method,
)
from ...tabular.checks import Remark
from ...tabular.column_types import preprocessing, takes_for_network
from ...tabular.readers import Source
from ...tabular.table import Table
from ..engine import describe_run
from ..measures import AUC, BALANCED
from ..store import FitResult
from .contestants import (
    Contestant,
    Size,
    bad_parameter,
    default_shrinkages,
    line_up,
    shrinkage_text,
)
from .plan import DEFAULT_REPEATS, ComparisonPlan
from .remarks import check_table, encode_sample
from .splits import MAX_CURVE_UNLABELED_ROWS, REPEATED_FOLDS

_NOT_TWO_CLASSES = (
    "{given} needs two classes, got {n}: pass {balanced}, which takes any number."
)

# Repeats of a fast comparison.
_FAST_REPEATS = 3
# Digits of the key of a comparison: enough to tell those of a folder apart.
_KEY_LENGTH = 16


@dataclass(frozen=True)
class _Effort:
    """Repeats of a comparison, and splits of its learning curves."""

    repeats: int
    curve_splits: int


# Less is computed where a fit takes longer.
_EFFORTS = {
    Cost.QUICK: _Effort(DEFAULT_REPEATS, 10),
    Cost.SECOND: _Effort(5, 10),
    Cost.SECONDS: _Effort(2, 5),
}

# Settings that stored rows depend on.
_AGREED = (
    "iclda",
    "data",
    "target",
    "id",
    "unlabeled",
    "drop",
    "seed",
    "folds",
    "labeled",
    "shrinkage",
)


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """Settings of a comparison, and facts about its table and its runs for the report.

    Attributes
    ----------
    iclda : str
        Version of this package.
    data : str
        SHA-256 of the files of the table, separated by blanks.
    target : str
        Name of the column of classes.
    id : str
        Column by which rows and labels were matched.
    unlabeled : str
        Value that marks unlabeled rows, besides empty cells.
    drop : str
        Columns that were left out, separated by commas.
    seed, folds : int
        As in the plan.
    labeled : int or "all"
        Labels kept in every split.
    shrinkage : str
        Shrinkages, separated by commas.
    repeats : int
        Random divisions into folds.
    planned_repeats : int
        Repeats at most; fewer were done if the choice was settled or the time was up.
    is_settled : bool
        Whether it ended early, because further repeats would hardly change the choice.
    stopped : mapping of str to int
        Repeats of the contestants that were clearly worse and stopped, by name.
    measure : str
        The measure that decides what is recommended.
    curve_splits : int
        Splits that learning curves are averaged over.
    contestants : sequence of Contestant
        What is compared.
    left_out : sequence of str
        Methods that would take too long.
    classes : sequence of str
        Names of the classes.
    size : Size
        Size of the training rows of every split.
    n_unlabeled : int
        Rows that every split trains on without a label.
    n_labels : int
        Distinct labeled rows.
    is_network : bool
        Whether the rows are taken for features of a network.
    remarks : sequence of Remark
        What was noticed about the table.
    sources : sequence of Source
        Files that the rows came from.
    reading : mapping
        Parameters that the table was read with.
    run : mapping
        Command, processes, machine and time of the last run.
    versions : mapping
        Versions of the packages.
    """

    iclda: str
    data: str
    target: str
    id: str
    unlabeled: str
    drop: str
    seed: int
    folds: int
    labeled: int | str
    shrinkage: str
    repeats: int
    planned_repeats: int
    is_settled: bool
    stopped: Mapping[str, int]
    measure: str
    curve_splits: int
    contestants: Sequence[Contestant]
    left_out: Sequence[str]
    classes: Sequence[str]
    size: Size
    n_unlabeled: int
    n_labels: int
    is_network: bool
    remarks: Sequence[Remark]
    sources: Sequence[Source]
    reading: Mapping[str, Any]
    run: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def n_kept(self) -> int | None:
        """Labels kept where others were hidden, else None."""
        return None if self.labeled == "all" else self.size.n_labeled

    @property
    def is_capped(self) -> bool:
        """Whether there are more unlabeled rows than curves use."""
        return self.n_unlabeled > MAX_CURVE_UNLABELED_ROWS

    @property
    def is_slow(self) -> bool:
        """Whether a search takes seconds from each start, so that it starts once."""
        methods = [contestant.method for contestant in self.contestants]
        return self.size.is_slow and _cost.has_starts(methods)

    def n_repeats(self, experiment: str) -> int:
        """Return the repeats of an experiment; that of a curve is a single split."""
        return self.repeats if experiment == REPEATED_FOLDS else self.curve_splits

    def has_asked_for(self, result: FitResult) -> bool:
        """Whether a stored row belongs here.

        Runs with more repeats or other methods may have stored further rows.
        """
        names = {contestant.name for contestant in self.contestants}
        n_repeats = self.n_repeats(result.experiment)
        if result.experiment == REPEATED_FOLDS:
            n_repeats = min(n_repeats, self.stopped.get(result.method, n_repeats))
        return result.method in names and result.repeat < n_repeats

    @property
    def n_compared(self) -> int:
        """The fits of the comparison, without those of the learning curves."""
        repeats = [
            self.stopped.get(contestant.name, self.repeats)
            for contestant in self.contestants
        ]
        return self.folds * sum(repeats)

    @property
    def key(self) -> str:
        """Digest of the settings that stored rows depend on.

        It tells the rows of the comparisons in a folder apart.
        """
        agreed = {name: getattr(self, name) for name in _AGREED}
        digest = hashlib.sha256(json.dumps(agreed, sort_keys=True).encode())
        return digest.hexdigest()[:_KEY_LENGTH]

    def to_json(self) -> dict[str, Any]:
        """Return all settings as values that JSON has."""
        return {
            **vars(self),
            "size": asdict(self.size),
            "remarks": [_remark_to_json(remark) for remark in self.remarks],
            "contestants": [_contestant_to_json(each) for each in self.contestants],
            "sources": [asdict(source) for source in self.sources],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ComparisonSettings:
        """Invert ``to_json``."""
        values = {field.name: stored[field.name] for field in fields(cls)}
        values["size"] = Size(**values["size"])
        values["remarks"] = [_remark_from_json(each) for each in values["remarks"]]
        values["contestants"] = [
            _contestant_from_json(each) for each in values["contestants"]
        ]
        values["sources"] = [Source(**source) for source in values["sources"]]
        return cls(**values)


# Parameters in the text of a remark are stored as such: a terminal and a page name
# them as options, Python names them as arguments.


def _remark_to_json(remark: Remark) -> dict[str, Any]:
    return {**vars(remark), "text": Text(remark.text).to_json()}


def _remark_from_json(stored: Mapping[str, Any]) -> Remark:
    text = Text.from_json(stored["text"])
    return Remark(**{**stored, "text": text})


# A contestant is stored with the name of its method.


def _contestant_to_json(contestant: Contestant) -> dict[str, Any]:
    return {**vars(contestant), "method": contestant.method.name}


def _contestant_from_json(stored: Mapping[str, Any]) -> Contestant:
    method = find_method(stored["method"], COMPARED)
    return Contestant(**{**stored, "method": method})


def choose_settings(plan: ComparisonPlan) -> ComparisonSettings:
    """Check the table, and choose what the user has not passed.

    Nothing is fitted. A ValueError says what is wrong with the table.
    """
    table = plan.table
    n_classes = len(table.classes)
    if plan.measure == AUC and n_classes != 2:
        balanced = Hint("measure", BALANCED)
        raise bad_parameter(
            _NOT_TWO_CLASSES, "measure", plan.measure, n=n_classes, balanced=balanced
        )
    splits = plan.splits
    sample = encode_sample(table, plan.copies)
    size = splits.size(n_features=sample.shape[1])
    n_labels = int(splits.is_distinct.sum())
    is_hidden = plan.n_labeled is not None

    is_network = takes_for_network(preprocessing(table.features), sample)

    # What the user has passed always wins over what the size of the table suggests.
    shrinkages = plan.shrinkages or default_shrinkages(size)
    methods, left_out = _choose_methods(plan, size, is_network=is_network)
    effort = _choose_effort(table, size, methods)
    default_repeats = effort.repeats
    if plan.is_fast:
        default_repeats = min(default_repeats, _FAST_REPEATS)
    repeats = plan.repeats or default_repeats
    # The splits of a curve are among those of the comparison.
    curve_splits = min(effort.curve_splits, splits.n_folds * repeats)

    # A changed file, or another second file, is another table.
    digests = [source.sha256 for source in table.sources]
    return ComparisonSettings(
        iclda=versions()["iclda"],
        data=" ".join(digests),
        target=table.target,
        id=plan.reading.get("id") or "",
        unlabeled=plan.reading.get("unlabeled") or "",
        drop=", ".join(sorted(table.dropped)),
        seed=plan.seed,
        folds=splits.n_folds,
        labeled=plan.n_labeled or "all",
        shrinkage=shrinkage_text(shrinkages),
        repeats=repeats,
        planned_repeats=repeats,
        is_settled=False,
        stopped={},
        measure=plan.measure,
        curve_splits=curve_splits,
        contestants=line_up(methods, shrinkages, size),
        left_out=left_out,
        classes=table.classes,
        size=size,
        n_unlabeled=splits.n_unlabeled,
        n_labels=n_labels,
        is_network=is_network,
        remarks=check_table(
            table,
            sample,
            table.labels[splits.is_distinct],
            size,
            is_hidden=is_hidden,
            is_network=is_network,
        ),
        sources=table.sources,
        reading=plan.reading,
        run={"command": plan.command, "jobs": plan.jobs, **describe_run()},
        versions=versions(),
    )


def _choose_methods(
    plan: ComparisonPlan, size: Size, *, is_network: bool
) -> tuple[tuple[Method, ...], list[str]]:
    """Return the methods to compare, and the names of those that would take too long.

    Methods that the user has named are compared however long they take.
    """
    methods = plan.methods or (*FITTED, *BASELINES)
    if plan.methods is None and is_network:
        # A remark on the table says so.
        methods = tuple(each for each in methods if each.name != DEFAULT_ON_TABLES)
    if plan.table.n_chosen:
        # Rows that were chosen to be labeled do not have the class shares of other
        # rows.
        methods = tuple(
            method for method in methods if _proportions_of(method) != LABELED
        )
    if plan.methods is not None:
        return methods, []

    # ICLDA with too few labels is not left out for its time: a remark on the table
    # names it instead.
    candidates = _cost.without_free_search(methods, size.n_labeled, size.n_features)
    problem = ProblemSize(len(plan.table.labels), size.n_features, size.n_classes)
    methods = _cost.affordable(candidates, problem, _cost.COMPARISON_BUDGET)
    if plan.is_fast:
        # The search with fixed proportions is the slowest method.
        methods = tuple(method for method in methods if _proportions_of(method) is None)
    left_out = [method.name for method in candidates if method not in methods]
    return methods, left_out


def _proportions_of(method: Method) -> Any:
    """Return the class proportions that a method fixes; None if it fixes none."""
    return dict(method.options).get("proportions")


def _choose_effort(table: Table, size: Size, methods: Sequence[Method]) -> _Effort:
    """Return repeats and splits, fewer where a fit takes longer."""
    if size.is_slow and _cost.has_starts(methods):
        return _EFFORTS[Cost.SECONDS]
    return _EFFORTS[_cost.table_cost(table.features.size, size.n_classes)]
