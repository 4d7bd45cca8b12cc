"""Run a comparison: check its table and folder, choose its settings, fit missing cells."""

from __future__ import annotations

import json
import platform
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from ... import _checks
from ..._checks import FINE, NOTE, WARNING, Remark
from ..._core import AnyArray, Array
from ..._estimators.labels import FREE, LABELED, Labels
from ..._messages import and_list, plural, say
from ..._progress import Advance
from ..._statistics import row_losses
from ..._system import versions
from ...methods import BASELINES, FITTED, affordable, without_free_search
from ...tabular.encoders import BOOLEAN, CATEGORY, kinds_of, pipeline, preprocessing
from ...tabular.table import Table
from .. import measures, record_fits, run_missing
from ..store import STORE, Cell, FitResult, Store, StoreError, cells_of
from . import SENTENCES
from .plan import (
    COMPARISON,
    EXPERIMENT_TITLES,
    LABELED_CURVE,
    REPEATS,
    UNLABELED_CURVE,
    ComparisonPlan,
    ComparisonSettings,
    Contestant,
    Size,
    Splits,
    Take,
    bad_parameter,
    default_shrinkages,
    line_up,
    shrinkage_text,
)
from .verdict import Comparison

FILES = {
    "comparison": "comparison.csv",
    "curves": "curves.csv",
    "report": "report.html",
}
# Repeats, and splits of curves, by default: fewer where a fit takes longer.
_QUICK, _LARGE_TABLE, _SLOW = (REPEATS, 10), (5, 10), (2, 5)
_FAST_REPEATS = 3
_LARGE_SIZE = 200_000  # cells of a table, above which a fit takes a second or so
_LARGEST_SIZE = 10_000_000  # cells x classes, above which it takes seconds
_MOST_SPREAD_ROWS = 10_000  # to which labels are spread: a graph of more takes minutes
_MOST_UNLABELED = 5_000  # rows that checks look at
_MOST_CLASSES = 12  # whose labels are counted one by one
_LABELS_OF_CLASS = 5  # fewer say little about it
_RARE_SHARE = 0.02
_NOUNS = {
    BOOLEAN: ("yes-or-no column", "yes-or-no columns"),
    CATEGORY: ("category", "categories"),
}


def choose_settings(plan: ComparisonPlan) -> ComparisonSettings:
    """Check the table, and choose by it what was not given; ValueError if it allows no fit."""
    table, splits = plan.table, plan.splits
    sample = encode_sample(table, plan.copies)
    size, n_labels = splits.size(sample.shape[1]), int(splits.is_distinct.sum())
    shrinkages = plan.shrinkages or default_shrinkages(size)
    methods = plan.methods or (*FITTED, *BASELINES)
    if table.n_chosen:  # whose class shares are not those of other rows
        methods = tuple(
            m for m in methods if dict(m.options).get("proportions") != LABELED
        )
    candidates = methods
    if plan.methods is None:
        candidates = without_free_search(candidates, size.n_labeled, size.n_features)
        # Few rows are fitted in the space that they span.
        searched = replace(size, n_features=min(size.n_features, len(table.labels)))
        methods = affordable(candidates, size.n_features, searched.n_unknowns)
        if len(table.labels) > _MOST_SPREAD_ROWS:
            methods = tuple(
                each for each in methods if each.name != "sklearn-label-spreading"
            )
        if plan.is_fast:
            methods = tuple(
                each for each in methods if "proportions" not in dict(each.options)
            )
    usual = _LARGE_TABLE if table.features.size > _LARGE_SIZE else _QUICK
    is_slow = size.is_slow and any("n_starts" in each.parameters for each in methods)
    is_slow |= table.features.size * size.n_classes > _LARGEST_SIZE
    repeats, curve_splits = _SLOW if is_slow else usual
    repeats = plan.repeats or (min(repeats, _FAST_REPEATS) if plan.is_fast else repeats)
    return ComparisonSettings(
        iclda=versions()["iclda"],
        data={plan.name: " ".join(source.sha256 for source in table.sources)},
        target=table.target,
        unlabeled=plan.reading.get("unlabeled") or "",
        drop=", ".join(sorted(table.dropped)),
        seed=plan.seed,
        folds=splits.n_folds,
        labeled=plan.n_labeled or "all",
        shrinkage=shrinkage_text(shrinkages),
        repeats=repeats,
        curve_splits=min(curve_splits, splits.n_folds * repeats),
        contestants=line_up(methods, shrinkages, size),
        left_out=[each.name for each in candidates if each not in methods],
        classes=table.classes,
        size=size,
        n_unlabeled=splits.n_unlabeled,
        n_labels=n_labels,
        remarks=check_table(
            table, sample, n_labels, size, is_hidden=plan.n_labeled is not None
        ),
        sources=table.sources,
        reading=plan.reading,
        run={
            "Command": plan.command,
            "jobs": plan.jobs,
            "machine": f"{platform.machine()}, {platform.system()}",
            "last run began": time.strftime("%Y-%m-%d %H:%M"),
        },
        versions=versions(),
    )


@contextmanager
def open_run(plan: ComparisonPlan) -> Iterator[ComparisonRun]:
    """Choose the settings, take the lock of the folder, and store the settings there.

    Errors about the table, the labels or the folder come before anything is written.
    """
    settings, out = choose_settings(plan), plan.out
    strange = [name for name in FILES.values() if (out / name).exists()]
    if strange and not (out / STORE).exists():
        raise bad_parameter(
            "strange_files", "out", out, files=and_list(strange), store=STORE
        )
    with closing(Store(out / STORE, kind=COMPARISON)) as store:
        stored = store.settings().get("data", {})
        if names := ", ".join(name for name in stored if name != plan.name):
            sentence = SENTENCES["errors"]["other_table"]
            raise StoreError(say(sentence, folder=out, names=names, name=plan.name))
        store.note(**{**settings.to_json(), **store.merge_settings(**settings.agreed)})
        yield ComparisonRun(plan, settings, store)


@dataclass(frozen=True)
class ComparisonRun:
    """A comparison in two parts. The answer needs the first alone, and can be read after it."""

    plan: ComparisonPlan
    settings: ComparisonSettings
    store: Store

    def compare(self, advance: Advance) -> None:
        """Compute the splits of the comparison that are missing."""
        names = [each.name for each in self.settings.contestants]
        self._compute(COMPARISON, range(self.settings.folds), names, advance)

    def add_curves(self, advance: Advance) -> None:
        """Compute what is missing of the curves, of the contestants that they show."""
        splits = self.plan.splits
        names = Comparison(
            self.settings, self.store.rows(COMPARISON), seconds=0
        ).on_curves
        self._compute(UNLABELED_CURVE, splits.unlabeled_sizes(), names, advance)
        self._compute(LABELED_CURVE, splits.labeled_sizes(), names, advance)

    def _compute(
        self,
        experiment: str,
        parts: Sequence[int],
        names: Sequence[str],
        advance: Advance,
    ) -> None:
        if not parts:
            return
        plan, n_repeats = self.plan, self.settings.n_repeats(experiment)
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


def encode_sample(table: Table, copies: AnyArray) -> Any:
    """Frame of all labeled rows, and then a sample of the unlabeled ones, as numbers.

    ``copies`` are those of ``first_copies``: further copies are left out. It is encoded as a fit of
    all rows would; errors name what cannot be encoded.
    """
    encoder = preprocessing(table.features)
    is_first = copies == np.arange(len(copies))
    unlabeled = np.flatnonzero(is_first & ~table.is_labeled)
    if len(unlabeled) > _MOST_UNLABELED:
        unlabeled = np.random.default_rng(0).choice(
            unlabeled, _MOST_UNLABELED, replace=False
        )
    rows = np.concatenate([np.flatnonzero(is_first & table.is_labeled), unlabeled])
    return encoder.fit(table.features).transform(table.features.iloc[rows])


def check_table(
    table: Table, sample: Any, n_labeled: int, size: Size, *, is_hidden: bool
) -> list[Remark]:
    """All remarks, in the order in which a person would look.

    ``sample`` is that of ``encode_sample`` and ``n_labeled`` the number of labeled rows in it,
    ``size`` that of the training rows of a split, and ``is_hidden`` whether labels are hidden.
    """
    return [
        *_check_rows(table),
        *_check_classes(table, is_hidden=is_hidden),
        *_check_kinds(table, size),
        *(Remark(NOTE, "Columns", text) for text in table.notes),
        *(Remark(WARNING, "Columns", text) for text in table.warnings),
        *_checks.check_gaps(table.features),
        *_checks.check_constants(table.features),
        *_check_chosen(table),
        *_check_labels(size),
        *_checks.check_shift(sample.iloc[:n_labeled], sample.iloc[n_labeled:]),
        *_checks.check_duplicates(table.features, table.labels),
    ]


def _check_rows(table: Table) -> Iterator[Remark]:
    n_rows, n_labeled = len(table.labels), int(table.is_labeled.sum())
    n_unlabeled = n_rows - n_labeled
    share = (
        f"{100 * n_unlabeled / n_rows:.0f} %"
        if n_unlabeled < 0.995 * n_rows
        else "nearly all"
    )
    text = f"{n_rows:,}: {n_labeled:,} labeled, {n_unlabeled:,} unlabeled ({share})."
    yield Remark(
        FINE, "Rows", text if n_unlabeled else f"{n_rows:,}, all of them labeled."
    )


def _check_classes(table: Table, *, is_hidden: bool) -> Iterator[Remark]:
    counts = Counter(table.labels[table.is_labeled].tolist())
    counted = ", ".join(
        f"{count:,} of {name!r}" for name, count in sorted(counts.items())
    )
    if len(counts) > _MOST_CLASSES:
        fewest, most = min(counts.values()), max(counts.values())
        span = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
        counted = f"{span} labels each"
    text = f"{len(counts)} in {table.target!r}: {counted}."
    rarest = min(counts, key=lambda name: (counts[name], name))
    n_rarest = counts[rarest]
    if n_rarest < _LABELS_OF_CLASS and not is_hidden:
        advice = f"{n_rarest} labels say little about class {rarest!r}: label more of it if you can"
        yield Remark(WARNING, "Classes", f"{text} {advice}.")
    elif n_rarest < _RARE_SHARE * counts.total():
        yield Remark(NOTE, "Classes", f"{text} Class {rarest!r} is rare.")
    else:
        yield Remark(FINE, "Classes", text)


def _check_kinds(table: Table, size: Size) -> Iterator[Remark]:
    kinds = Counter(kinds_of(table.features).values())
    parts = [plural(n, *_NOUNS.get(kind, (kind,))) for kind, n in kinds.items()]
    n_columns = len(table.features.columns)
    text = parts[0] if len(parts) == 1 else f"{n_columns}: {', '.join(parts)}"
    encoded = f" As numbers they make {size.n_features} features."
    yield Remark(
        FINE, "Columns", f"{text}.{encoded if size.n_features != n_columns else ''}"
    )


def _check_chosen(table: Table) -> Iterator[Remark]:
    if table.n_chosen:
        n_random = int(table.is_random.sum())
        text = f"{table.n_chosen:,} are of rows that were chosen: they train in every split, and "
        text += f"all numbers are those of the {n_random:,} that were drawn at random."
        yield Remark(NOTE, "Labels", text)


def _check_labels(size: Size) -> Iterator[Remark]:
    text = f"{size.n_labeled:,} train in each fold, for {plural(size.n_features, 'feature')}"
    if size.is_degenerate:
        left = (
            ", or for ICLDA of free class sizes"
            if size.n_labeled < size.n_features
            else ""
        )
        yield Remark(
            NOTE, "Labels", f"{text}: too few for a fit without shrinkage{left}."
        )
    elif size.is_small:
        yield Remark(NOTE, "Labels", f"{text}: few, so that shrinkage is of use.")
    else:
        yield Remark(FINE, "Labels", f"{text}.")


@dataclass(frozen=True)
class CellData:
    """What the cells of a comparison are computed from."""

    features: Any
    splits: Splits
    contestants: Sequence[Contestant]

    @cached_property
    def steps(self) -> list[Any]:
        """Unfitted encoder and scaler; kinds of columns are those of the whole file.

        They return arrays: data frames between the steps take longer than a small fit.
        """
        encoder = preprocessing(self.features)
        steps = pipeline(encoder, DummyClassifier(), scale=True)[:-1]
        return list(steps.set_output(transform="default").named_steps.values())


@dataclass(frozen=True)
class Encoded:
    """Rows of a cell as numbers, encoded and scaled by what the training rows show."""

    train: Array
    y: AnyArray
    test: Array
    size: Size


def fit_cell(
    cell: Cell, sets: Mapping[str, CellData], names: Sequence[str]
) -> list[FitResult]:
    """Fit the named contestants to the rows of a cell."""
    data = sets[cell.dataset]
    contestants = {each.name: each for each in data.contestants}
    take = data.splits.take(cell)
    n_labeled = int(take.is_labeled.sum())
    encoded = cache(
        partial(encode, data, take)
    )  # where it fails the fits of this cell do

    def fit(name: str) -> dict[str, Any]:
        rows, is_chosen = encoded(), data.splits.is_chosen is not False
        model = build_classifier(
            contestants[name], data.splits.seed, rows.size, is_chosen
        )
        values = measure_fit(
            model.fit(rows.train, rows.y), rows, data.splits.labels, take
        )
        if cell.experiment != COMPARISON:
            del values["rows"]  # by which is chosen: curves do not need them
        return values

    sizes = n_labeled, len(take.rows) - n_labeled, len(take.test)
    return record_fits(cell, names, sizes, data.splits.seed, fit)


def build_classifier(
    contestant: Contestant, seed: int, size: Size, is_chosen: bool = False
) -> Any:
    """An unfitted classifier; ``is_chosen``: for labels of chosen rows.

    A slow search starts only once.
    """
    method = contestant.method
    made = method.classifier(
        shrinkage=contestant.shrinkage,
        proportions=FREE if is_chosen else None,
        seed=seed,
    )
    made.set_params(unlabeled=None)
    if "n_starts" in method.parameters and size.is_slow:
        made.set_params(n_starts=1)
    return made


def encode(data: CellData, take: Take) -> Encoded:
    """Train the steps before the classifier on the training rows, and apply them to all.

    They do not depend on the contestant: one fit serves all of them.
    """
    labels = data.splits.labels
    encoder, scaler = map(clone, data.steps)
    y = data.splits.y[take.rows]
    y[~take.is_labeled] = None
    train = scaler.fit_transform(encoder.fit_transform(data.features.iloc[take.rows]))
    return Encoded(
        train=train,
        y=y,
        test=scaler.transform(encoder.transform(data.features.iloc[take.test])),
        size=Size(int(take.is_labeled.sum()), len(labels.classes), train.shape[1]),
    )


def measure_fit(
    model: Any, encoded: Encoded, labels: Labels, take: Take
) -> dict[str, Any]:
    """All stored values of a fitted classifier.

    These are its measures, the confusion matrix, and for every test row its index, its Brier score
    and whether its class is wrong.
    """
    codes = labels.codes[take.test]
    probabilities = model.predict_proba(encoded.test)
    is_wrong = model.predict(encoded.test) != labels.classes[codes]
    predictions = measures.Predictions(codes, is_wrong, probabilities)
    confusion = measures.count_confusion(
        codes, probabilities.argmax(axis=1), len(labels.classes)
    )
    losses, is_wrong = row_losses(probabilities, codes)
    rows = zip(
        take.test.tolist(), losses.round(9).tolist(), map(int, is_wrong), strict=True
    )
    return {
        **measures.compute_measures(predictions, measures.COMPARISON_MEASURES),
        "confusion": measures.write_confusion(confusion),
        "rows": json.dumps(list(rows)),
    }
