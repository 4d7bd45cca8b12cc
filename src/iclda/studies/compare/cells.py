"""Fits of every contestant to the rows of a cell, and their measures on the test rows."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from traceback import format_exception
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from ..._core.types import AnyArray, Array
from ..._estimators.labels import FREE, Labels
from ..._messages import NoUnlabeledRowsWarning, Text, message_of
from ..._statistics import row_losses
from ...tabular.encoders import pipeline, preprocessing
from ..engine import record_fit
from ..measures import (
    COMPARISON_MEASURES,
    EDGES,
    Bins,
    Predictions,
    bins_of,
    compute_measures,
    count_confusion,
    write_confusion,
)
from ..store import Cell, FitResult
from .plan import COMPARISON, Contestant, Size, Splits, Take


@dataclass(frozen=True)
class CellData:
    """What the cells of a comparison are computed from."""

    features: Any
    splits: Splits
    contestants: Sequence[Contestant]
    missing: str
    seed: int

    @cached_property
    def steps(self) -> list[Any]:
        """Unfitted encoder and scaler; kinds of columns are those of the whole file.

        They return arrays: data frames between the steps take longer than a small fit.
        """
        encoder = preprocessing(self.features, missing=self.missing)
        steps = pipeline(encoder, DummyClassifier(), scale=True)[:-1]
        return list(steps.set_output(transform="default").named_steps.values())


@dataclass(frozen=True)
class Encoded:
    """Rows of a cell as numbers, encoded and scaled by what the training rows show."""

    names: list[str]
    train: Array
    y: AnyArray
    test: Array
    size: Size


def fit_cell(cell: Cell, sets: Mapping[str, CellData], names: Sequence[str]) -> list[FitResult]:
    """Fit the named contestants to the rows of a cell."""
    data = sets[cell.dataset]
    chosen = [contestant for contestant in data.contestants if contestant.name in names]
    try:
        take = data.splits.take(cell)
        encoded = encode(data, take)
    except Exception as error:  # whatever it is, the other cells go on
        failure = "".join(format_exception(error))
        return [FitResult(**vars(cell), method=each.name, failure=failure) for each in chosen]
    n_labeled = encoded.size.n_labeled
    sizes = n_labeled, len(take.rows) - n_labeled, len(take.test)

    def fit(contestant: Contestant) -> dict[str, Any]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = build_classifier(
                contestant, data.seed, encoded.size, data.splits.is_chosen is not False
            )
            model.fit(encoded.train, encoded.y)
            values = measure_fit(model, encoded, data.splits.labels, take)
        if cell.experiment != COMPARISON:
            del values["rows"]  # by which is chosen: curves do not need them
        return {"values": values, "remarks": _remarks(caught, encoded.names)}

    return [record_fit(cell, c.name, sizes, data.seed, partial(fit, c)) for c in chosen]


def build_classifier(contestant: Contestant, seed: int, size: Size, is_chosen: bool = False) -> Any:
    """An unfitted classifier; ``is_chosen``: for labels of chosen rows.

    A slow search starts only once.
    """
    method = contestant.method
    made = method.classifier(
        shrinkage=contestant.shrinkage, proportions=FREE if is_chosen else None, seed=seed
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
        names=[str(name) for name in encoder.get_feature_names_out()],
        train=train,
        y=y,
        test=scaler.transform(encoder.transform(data.features.iloc[take.test])),
        size=Size(int(take.is_labeled.sum()), len(labels.classes), train.shape[1]),
    )


def measure_fit(model: Any, encoded: Encoded, labels: Labels, take: Take) -> dict[str, Any]:
    """All stored values of a fitted classifier.

    These are its measures, the bins of its probabilities, the confusion matrix, and for every test
    row its index, its Brier score and whether its class is wrong.
    """
    codes = labels.codes[take.test]
    truth, hidden_truth = labels.classes[codes], labels.classes[labels.codes[take.hidden]]
    hidden = encoded.train[np.isin(take.rows, take.hidden)]
    probabilities = model.predict_proba(encoded.test)
    # Densities of rows scaled to length 1 cannot be compared with those of the rows.
    has_density = hasattr(model, "log_likelihood") and getattr(model, "center_", None) is None
    predictions = Predictions(
        codes,
        is_wrong=model.predict(encoded.test) != truth,
        probabilities=probabilities,
        log_likelihood=model.log_likelihood(encoded.test, truth) if has_density else None,
        is_wrong_hidden=model.predict(hidden) != hidden_truth if len(hidden) else None,
    )
    confusion = count_confusion(codes, probabilities.argmax(axis=1), len(labels.classes))
    losses, is_wrong = row_losses(probabilities, codes)
    rows = zip(take.test.tolist(), losses.round(9).tolist(), map(int, is_wrong), strict=True)
    return {
        **compute_measures(predictions, COMPARISON_MEASURES),
        "bins": write_bins(bins_of(probabilities, codes)),
        "confusion": write_confusion(confusion),
        "rows": json.dumps(list(rows)),
    }


def _remarks(caught: Sequence[warnings.WarningMessage], names: Sequence[str]) -> str:
    """Messages of warnings, each once, with the names of columns."""
    raised = [one.message for one in caught if isinstance(one.message, UserWarning)]
    texts = [message_of(one) for one in raised if not isinstance(one, NoUnlabeledRowsWarning)]
    named = [text.with_names(names) if isinstance(text, Text) else text for text in texts]
    return "\n".join(dict.fromkeys(map(str, named)))


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
