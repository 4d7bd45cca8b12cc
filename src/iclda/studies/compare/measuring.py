"""Fit every contestant to the rows of a cell and measure it on the test rows."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from ..._core.types import AnyArray, Array
from ..._estimators.supervised import SupervisedLDA
from ..._messages import NoUnlabeledRowsWarning, Text, Words, message_of
from ..._packages import versions_text
from ...tabular import pipeline, preprocessing
from ..cells import Cell
from .contestants import Contestant, Size
from .results import Result, bins_of, brier_of, error_of, write_bins
from .splits import Splits, Take


@dataclass(frozen=True)
class Data:
    """All that cells are computed from."""

    features: Any
    splits: Splits
    contestants: tuple[Contestant, ...]
    missing: str
    seed: int
    words: Words = str  # of warnings and errors that are kept

    @cached_property
    def steps(self) -> list[Any]:
        """Unfitted encoder and scaler; kinds of columns are those of the whole file.

        They give arrays: data frames between the steps take longer than a small fit.
        """
        encoder = preprocessing(self.features, missing=self.missing)
        steps = pipeline(encoder, SupervisedLDA(), scale=True)[:-1]
        return list(steps.set_output(transform="default").named_steps.values())


@dataclass(frozen=True)
class Encoded:
    """Rows of a cell as numbers. All that was learned for it was learned from training rows."""

    names: list[str]
    train: Array
    y: AnyArray
    test: Array
    hidden: Array | None
    codes: AnyArray  # of the test rows
    codes_hidden: AnyArray
    classes: AnyArray

    @property
    def size(self) -> Size:
        """What decides how hard the fit is."""
        n_labeled = sum(label is not None for label in self.y)
        return Size(n_labeled, len(self.classes), self.train.shape[1])


def run_cell(cell: Cell, sets: Mapping[str, Data], names: Sequence[str]) -> list[Result]:
    """Fit the contestants named to the rows of a cell."""
    data = sets[cell.dataset]
    chosen = [contestant for contestant in data.contestants if contestant.name in names]
    try:
        take = data.splits.take(cell)
        encoded = encode(data, take)
    except Exception as error:  # whatever it is, the other cells go on
        failure = _traceback(error, data.words)
        return [failed(cell, each.name, failure) for each in chosen]
    results = [_run_fit(cell, each, take, encoded, data) for each in chosen]
    return [replace(each, seed=data.seed, versions=versions_text()) for each in results]


def encode(data: Data, take: Take) -> Encoded:
    """Train the steps before the classifier on the training rows, and apply them to all.

    They are those of a pipeline, fitted once for all contestants, on which they do not depend.
    """
    labels = data.splits.labels
    encoder, scaler = map(clone, data.steps)
    y = data.splits.y[take.rows]
    y[~take.is_labeled] = None
    train = scaler.fit_transform(encoder.fit_transform(data.features.iloc[take.rows]))
    is_hidden = ~take.is_labeled & labels.is_labeled[take.rows]
    return Encoded(
        names=[str(name) for name in encoder.get_feature_names_out()],
        train=train,
        y=y,
        test=scaler.transform(encoder.transform(data.features.iloc[take.test])),
        hidden=train[is_hidden] if is_hidden.any() else None,
        codes=labels.codes[take.test],
        codes_hidden=labels.codes[take.hidden],
        classes=labels.classes,
    )


def _run_fit(
    cell: Cell, contestant: Contestant, take: Take, encoded: Encoded, data: Data
) -> Result:
    start = time.perf_counter()
    blank = failed(cell, contestant.name, None)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = contestant.classifier(data.seed, encoded.size.n_unknowns)
            found = _measured(model.fit(encoded.train, encoded.y), encoded)
        found["remarks"] = _remarks(caught, encoded.names, data.words)
    except Exception as error:  # a failed fit is a row with its traceback, never a crash
        found = {"failure": _traceback(error, data.words)}
    return replace(
        blank,
        n_labeled=int(take.is_labeled.sum()),
        n_unlabeled=int((~take.is_labeled).sum()),
        n_test=len(take.test),
        seconds=time.perf_counter() - start,
        **found,
    )


def _remarks(caught: list[warnings.WarningMessage], names: Sequence[str], words: Words) -> str:
    """Messages of warnings, each once, with the names of columns."""
    raised = [one.message for one in caught if isinstance(one.message, UserWarning)]
    texts = [message_of(one) for one in raised if not isinstance(one, NoUnlabeledRowsWarning)]
    named = [text.with_names(names) if isinstance(text, Text) else text for text in texts]
    return "\n".join(dict.fromkeys(map(words, named)))


def _traceback(error: Exception, words: Words) -> str:
    """The traceback of an error, which ends in its message."""
    lines, message = traceback.format_exception(error), message_of(error)
    if isinstance(message, Text):
        lines[-1] = f"{type(error).__name__}: {words(message)}\n"
    return "".join(lines)


def _measured(model: Any, encoded: Encoded) -> dict[str, Any]:
    probabilities = model.predict_proba(encoded.test)
    truth = encoded.classes[encoded.codes]
    error_hidden = None
    if encoded.hidden is not None:
        hidden_truth = encoded.classes[encoded.codes_hidden]
        error_hidden = error_of(model.predict(encoded.hidden), hidden_truth)
    return {
        "error": error_of(model.predict(encoded.test), truth),
        "loss": float(-np.mean(model.log_likelihood(encoded.test, truth))),
        "brier": brier_of(probabilities, encoded.codes),
        "error_hidden": error_hidden,
        "bins": write_bins(bins_of(probabilities, encoded.codes)),
    }


def failed(cell: Cell, method: str, failure: str | None) -> Result:
    """The result of a fit that gave none."""
    return Result(
        experiment=cell.experiment,
        dataset=cell.dataset,
        repeat=cell.repeat,
        part=cell.part,
        method=method,
        n_labeled=0,
        n_unlabeled=0,
        n_test=0,
        error=None,
        loss=None,
        brier=None,
        error_hidden=None,
        bins="",
        seconds=0.0,
        remarks="",
        failure=failure,
    )
