"""Fit every contestant to the rows of a cell and measure it on the test rows."""

from __future__ import annotations

import json
import traceback
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import clone

from ..._advice import row_losses
from ..._core.types import AnyArray, Array
from ..._estimators.gains import safety_bounds
from ..._estimators.labels import Labels
from ..._estimators.supervised import SupervisedLDA
from ..._messages import DegenerateFitWarning, NoUnlabeledRowsWarning, Text, Words, message_of
from ...tabular import pipeline, preprocessing
from ..confusion import count_confusion, write_confusion
from ..engine import record_fit
from ..measures import COMPARED, EDGES, Bins, Predictions, bins_of, compute_measures
from ..store import Cell, FitResult
from .plan import COMPARISON, Contestant, Size, Splits, Take

_MOST_FEATURES = 200  # for which bounds are computed


@dataclass(frozen=True)
class CellData:
    """What the cells of a comparison are computed from."""

    features: Any
    splits: Splits
    contestants: Sequence[Contestant]
    missing: str
    seed: int
    words: Words = str  # wording of the warnings and errors that are stored

    @cached_property
    def steps(self) -> list[Any]:
        """Unfitted encoder and scaler; kinds of columns are those of the whole file.

        They return arrays: data frames between the steps take longer than a small fit.
        """
        encoder = preprocessing(self.features, missing=self.missing)
        steps = pipeline(encoder, SupervisedLDA(), scale=True)[:-1]
        return list(steps.set_output(transform="default").named_steps.values())


@dataclass(frozen=True)
class Encoded:
    """Rows of a cell as numbers, encoded and scaled by what the training rows show."""

    names: list[str]
    train: Array
    y: AnyArray
    test: Array
    hidden: Array  # training rows whose labels are hidden
    size: Size


def fit_cell(cell: Cell, sets: Mapping[str, CellData], names: Sequence[str]) -> list[FitResult]:
    """Fit the named contestants to the rows of a cell."""
    data = sets[cell.dataset]
    chosen = [contestant for contestant in data.contestants if contestant.name in names]
    explain = partial(_traceback, words=data.words)
    try:
        take = data.splits.take(cell)
        encoded = encode(data, take)
    except Exception as error:  # whatever it is, the other cells go on
        failure = explain(error)
        return [FitResult(**vars(cell), method=each.name, failure=failure) for each in chosen]
    n_labeled = encoded.size.n_labeled
    sizes = n_labeled, len(take.rows) - n_labeled, len(take.test)

    def fit(contestant: Contestant) -> dict[str, Any]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = contestant.classifier(data.seed, encoded.size).fit(encoded.train, encoded.y)
            values = measure_fit(model, encoded, data.splits.labels, take)
            if cell.experiment == COMPARISON:
                values["rows"] = write_rows(model, encoded, data.splits.labels, take)
                kinds = [type(one.message) for one in caught]
                values["is_degenerate"] = int(DegenerateFitWarning in kinds)
                if cell.repeat == 0 and contestant.can_lose:
                    values["bounds"] = _write_bounds(model, encoded)
        return {"values": values, "remarks": _remarks(caught, encoded.names, data.words)}

    return [record_fit(cell, c.name, sizes, data.seed, partial(fit, c), explain) for c in chosen]


def _write_bounds(model: Any, encoded: Encoded) -> str:
    """Bounds of the gain of a fit as JSON; empty where there is no supervised fit to compare with.

    They take matrices of features x features.
    """
    if encoded.train.shape[1] > _MOST_FEATURES:
        return ""
    found = safety_bounds(model, encoded.train, encoded.y)
    return "" if found is None else json.dumps(asdict(found))


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
        names=[str(name) for name in encoder.get_feature_names_out()],
        train=train,
        y=y,
        test=scaler.transform(encoder.transform(data.features.iloc[take.test])),
        hidden=train[~take.is_labeled & labels.is_labeled[take.rows]],
        size=Size(int(take.is_labeled.sum()), len(labels.classes), train.shape[1]),
    )


def measure_fit(model: Any, encoded: Encoded, labels: Labels, take: Take) -> dict[str, Any]:
    """All stored measures of a fitted classifier, and the bins of its probabilities."""
    codes, hidden = labels.codes[take.test], labels.classes[labels.codes[take.hidden]]
    truth, probabilities = labels.classes[codes], model.predict_proba(encoded.test)
    predictions = Predictions(
        codes,
        is_wrong=model.predict(encoded.test) != truth,
        probabilities=probabilities,
        log_likelihood=_log_likelihood(model, encoded.test, truth),
        is_wrong_hidden=model.predict(encoded.hidden) != hidden if len(hidden) else None,
    )
    bins = write_bins(bins_of(probabilities, codes))
    confusion = count_confusion(codes, probabilities.argmax(axis=1), len(labels.classes))
    stored = {"bins": bins, "confusion": write_confusion(confusion)}
    return {**compute_measures(predictions, COMPARED), **stored}


def _log_likelihood(model: Any, rows: Array, truth: AnyArray) -> Array | None:
    """None for classifiers that have no densities."""
    if not hasattr(model, "log_likelihood"):
        return None
    likelihood: Array = model.log_likelihood(rows, truth)
    return likelihood


def write_rows(model: Any, encoded: Encoded, labels: Labels, take: Take) -> str:
    """Index, Brier score and whether the class is wrong of every test row, as JSON."""
    probabilities = model.predict_proba(encoded.test)
    losses, is_wrong = row_losses(probabilities, labels.codes[take.test])
    rows = zip(take.test.tolist(), losses.round(9).tolist(), is_wrong.tolist(), strict=True)
    return json.dumps([[index, loss, int(wrong)] for index, loss, wrong in rows])


def _remarks(caught: list[warnings.WarningMessage], names: Sequence[str], words: Words) -> str:
    """Messages of warnings, each once, with the names of columns."""
    raised = [one.message for one in caught if isinstance(one.message, UserWarning)]
    texts = [message_of(one) for one in raised if not isinstance(one, NoUnlabeledRowsWarning)]
    named = [text.with_names(names) if isinstance(text, Text) else text for text in texts]
    return "\n".join(dict.fromkeys(map(words, named)))


def _traceback(error: Exception, words: Words) -> str:
    """The traceback of an error, with its message in these words at the end."""
    lines, message = traceback.format_exception(error), message_of(error)
    if isinstance(message, Text):
        lines[-1] = f"{type(error).__name__}: {words(message)}\n"
    return "".join(lines)


def write_bins(bins: Bins) -> str:
    """Bins that hold rows as JSON: index of the bin, then its three sums."""
    filled = np.flatnonzero(bins[:, 0])
    return json.dumps({str(k): [round(value, 9) for value in bins[k].tolist()] for k in filled})


def pooled_bins(results: Iterable[FitResult]) -> Bins:
    """Sum of the bins of several results."""
    bins = np.zeros((len(EDGES) - 1, 3))
    for result in results:
        for index, sums in json.loads(result.values.get("bins", "{}")).items():
            bins[int(index)] += sums
    return bins
