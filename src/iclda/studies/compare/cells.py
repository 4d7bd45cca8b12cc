"""Cells of a comparison: fit contestants to training rows, measure on test rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from ..._core import AnyArray, Array
from ..._cost import COMPARISON_BUDGET, limit_starts
from ..._error_estimate import row_losses
from ..._estimators.labels import FREE
from ..._estimators.views import AUTO_VIEW
from ...tabular.column_types import pipeline, preprocessing
from .. import measures
from ..engine import record_fits
from ..store import Cell, FitResult
from .contestants import Contestant, Size
from .splits import REPEATED_FOLDS, SplitRows, Splits

# Stored losses of rows have this many decimals.
_LOSS_DECIMALS = 9


@dataclass(frozen=True)
class CellData:
    """What the cells of a comparison are computed from."""

    features: Any
    splits: Splits
    contestants: Sequence[Contestant]

    @cached_property
    def encoder(self) -> Any:
        """Unfitted encoder; kinds of columns are those of the whole file."""
        encoder = preprocessing(self.features)
        # Data frames between the steps take longer than a small fit.
        return encoder.set_output(transform="default")

    def scaler(self, classifier: Any) -> Any:
        """Return the unfitted scaler of a classifier; None if it needs none."""
        steps = pipeline(self.encoder, classifier).named_steps
        if "scale" not in steps:
            return None
        return steps["scale"].set_output(transform="default")


@dataclass(frozen=True)
class EncodedRows:
    """Rows of a cell as numbers, encoded by what the training rows show.

    ``y`` has the classes of the training rows, None where a row is unlabeled.
    """

    train: Array
    y: AnyArray
    test: Array
    size: Size

    def scaled(self, scaler: Any) -> EncodedRows:
        """Return the rows scaled by what the training rows show."""
        return replace(
            self,
            train=scaler.fit_transform(self.train),
            test=scaler.transform(self.test),
        )


def fit_cell(
    cell: Cell, sets: Mapping[str, CellData], names: Sequence[str]
) -> list[FitResult]:
    """Fit the named contestants to the rows of a cell."""
    data = sets[cell.dataset]
    splits = data.splits
    contestants = {each.name: each for each in data.contestants}
    rows = splits.cell_rows(cell)

    # Encoding happens inside the first fit, so that its error is a failure of the fits.
    @cache
    def encoded() -> EncodedRows:
        return encode(data, rows)

    def fit(name: str) -> dict[str, Any]:
        model = build_classifier(
            contestants[name],
            splits.seed,
            encoded().size,
            has_chosen_rows=splits.always_train is not None,
        )
        scaler = data.scaler(model)
        own = encoded() if scaler is None else encoded().scaled(scaler)
        model.fit(own.train, own.y)
        values = measure_fit(model, own, splits, rows)
        # The losses of rows decide what is recommended: curves do not need them.
        if cell.experiment != REPEATED_FOLDS:
            del values["rows"]
        return values

    n_labeled = int(rows.is_labeled.sum())
    n_unlabeled = len(rows.train) - n_labeled
    sizes = (n_labeled, n_unlabeled, len(rows.test))
    return record_fits(cell, names, sizes, splits.seed, fit)


def build_classifier(
    contestant: Contestant, seed: int, size: Size, has_chosen_rows: bool = False
) -> Any:
    """Return an unfitted classifier.

    ``has_chosen_rows`` tells whether rows were chosen to be labeled: the proportions of
    their classes are not those of other rows then, and are left free.
    """
    classifier = contestant.method.classifier(
        shrinkage=contestant.shrinkage,
        proportions=FREE if has_chosen_rows else None,
        seed=seed,
    )
    classifier.set_params(unlabeled=None)
    # Rows are taken for what they are, as in ``iclda fit``.
    if "view" in classifier.get_params():
        classifier.set_params(view=AUTO_VIEW)
    # A comparison makes many fits: a slow search starts once.
    limit_starts(classifier, size.n_classes, size.n_features, COMPARISON_BUDGET)
    return classifier


def encode(data: CellData, rows: SplitRows) -> EncodedRows:
    """Train the encoder on the training rows, and apply it to all.

    It does not depend on the contestant: one fit serves all of them.
    """
    encoder = clone(data.encoder)
    train = encoder.fit_transform(data.features.iloc[rows.train])
    test = encoder.transform(data.features.iloc[rows.test])

    # Indexing has made a copy, in which labels are hidden.
    y = data.splits.y[rows.train]
    y[~rows.is_labeled] = None
    size = Size(
        n_labeled=int(rows.is_labeled.sum()),
        n_classes=len(data.splits.labels.classes),
        n_features=train.shape[1],
    )
    return EncodedRows(train, y, test, size)


def measure_fit(
    model: Any, encoded: EncodedRows, splits: Splits, rows: SplitRows
) -> dict[str, Any]:
    """Return all values of a fitted classifier that are stored.

    These are its measures, the confusion matrix, and a list of the test rows
    (``recommendation.means_of_rows``).
    """
    labels = splits.labels
    codes = labels.codes[rows.test]
    probabilities = model.predict_proba(encoded.test)
    is_wrong = model.predict(encoded.test) != labels.classes[codes]
    predictions = measures.Predictions(
        codes, is_wrong, probabilities, class_weights=splits.class_weights
    )
    most_probable = probabilities.argmax(axis=1)
    confusion = measures.count_confusion(codes, most_probable, len(labels.classes))
    # By the rule, a row is wrong if its class does not have the largest probability.
    losses, is_row_wrong = row_losses(probabilities, codes)
    ranking = measures.ranking_losses(probabilities, codes)
    if ranking is None:
        ranking = np.zeros(len(codes))
    row_values = zip(
        rows.test.tolist(),
        losses.round(_LOSS_DECIMALS).tolist(),
        [int(wrong) for wrong in is_row_wrong],
        codes.tolist(),
        ranking.round(_LOSS_DECIMALS).tolist(),
        strict=True,
    )
    return {
        **measures.compute_measures(predictions, measures.COMPARISON_MEASURES),
        "confusion": measures.write_confusion(confusion),
        "rows": json.dumps(list(row_values)),
    }
