"""One fit of a comparison: what it was given and how it did, or why it failed."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from ..._core.types import AnyArray, Array
from ..cells import Cell

COMPARISON, UNLABELED, LABELED = "comparison", "unlabeled", "labeled"
EXPERIMENTS = (COMPARISON, UNLABELED, LABELED)
N_BINS = 10
Bins = Array  # (N_BINS, 3): rows, sum of their probabilities, and how many of them were right


@dataclass(frozen=True)
class Result:
    """A row of the store.

    In the comparison ``repeat`` and ``part`` are repeat and fold; on a curve, the number of the
    split and the number of rows that varies.
    """

    experiment: str
    dataset: str
    repeat: int
    part: int
    method: str
    n_labeled: int
    n_unlabeled: int
    n_test: int
    error: float | None  # share of test rows classified wrongly
    loss: float | None  # mean over test rows of -log(prior x density of their class)
    brier: float | None  # half the squared distance of the probabilities from the truth
    error_hidden: float | None  # error on training rows whose labels were hidden
    bins: str  # test rows by the probability of the predicted class, see ``Bins``
    seconds: float
    remarks: str  # warnings of the fit, one a line
    failure: str | None = None  # traceback of a fit that failed
    seed: int = 0
    versions: str = ""

    @property
    def cell(self) -> Cell:
        """The cell this row belongs to."""
        return Cell(self.experiment, self.dataset, self.repeat, self.part)


def error_of(predicted: AnyArray, truth: AnyArray) -> float:
    """Share of rows classified wrongly."""
    return float(np.mean(predicted != truth))


def brier_of(probabilities: Array, codes: AnyArray) -> float:
    """Mean squared distance from the truth, halved: the error if all probabilities are 0 or 1."""
    truth = np.eye(probabilities.shape[1])[codes]
    return float(np.square(probabilities - truth).sum(axis=1).mean() / 2)


def bins_of(probabilities: Array, codes: AnyArray) -> Bins:
    """Rows in bins of equal width of the probability of the predicted class."""
    predicted = probabilities.argmax(axis=1)
    surest = np.clip(probabilities[np.arange(len(predicted)), predicted], 0, 1)
    place = np.minimum((N_BINS * surest).astype(int), N_BINS - 1)
    bins = np.zeros((N_BINS, 3))
    np.add.at(bins, place, np.column_stack([np.ones(len(place)), surest, predicted == codes]))
    return bins


def calibration_error(bins: Bins) -> float:
    """Mean distance of stated probability and share that was right, bin by bin, by rows."""
    n_rows = bins[:, 0].sum()
    return float(np.abs(bins[:, 1] - bins[:, 2]).sum() / n_rows) if n_rows else float("nan")


def write_bins(bins: Bins) -> str:
    """Bins that hold rows as JSON: number of the bin, then its three sums."""
    filled = np.flatnonzero(bins[:, 0])
    return json.dumps({str(k): [round(value, 9) for value in bins[k].tolist()] for k in filled})


def read_bins(text: str) -> Bins:
    """What ``write_bins`` wrote."""
    bins = np.zeros((N_BINS, 3))
    for place, sums in json.loads(text or "{}").items():
        bins[int(place)] = sums
    return bins
