"""Whether a lower loss comes with a lower error, split by split.

Methods that use unlabeled rows lower the loss of LDA, its negative log likelihood on
new rows. How this "surrogate" loss relates to the error is a question that the paper
leaves open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from scipy.stats import rankdata

from ..._core import Array
from ..store import FitResult
from . import design
from .summary import Key, results_by_split

_MEASURES = ("nll", "error")


def differences_from_lda(results: Sequence[FitResult]) -> dict[Key, Array]:
    """Return differences of methods that have a loss, by data set and method.

    An array (n_splits, 2) has loss and error of the method minus those of LDA.
    """
    fits_by_key = results_by_split(results, "nll")
    differences = {}
    for dataset, method in sorted(fits_by_key, key=lambda key: key[0].casefold()):
        if method in (design.BASELINE, design.ORACLE):
            continue
        fits = fits_by_key[dataset, method]
        lda = fits_by_key.get((dataset, design.BASELINE), {})
        pairs = [
            [fits[split].values[name] - lda[split].values[name] for name in _MEASURES]
            for split in fits
            if split in lda
        ]
        if pairs:
            differences[dataset, method] = np.array(pairs)
    return differences


def rank_correlation(differences: Array) -> float:
    """Return that of loss and error over splits, 0 if one of them never differs."""
    ranks = rankdata(differences, axis=0)
    if (np.ptp(ranks, axis=0) == 0).any():
        return 0.0
    return float(np.corrcoef(ranks.T)[0, 1])


@dataclass(frozen=True)
class LossAndError:
    """What the splits of all data sets say about the loss and the error of a method.

    Attributes
    ----------
    n_splits, n_lower_loss : int
        Splits, and those with a lower loss than that of LDA.
    lower, same, higher : float
        Shares of the latter with a lower error than that of LDA, the same and a higher.
    correlations : list of float
        Rank correlations of both differences over the splits of a data set, sorted.
    """

    method: str
    n_splits: int
    n_lower_loss: int
    lower: float
    same: float
    higher: float
    correlations: list[float]

    @property
    def median_correlation(self) -> float:
        return median(self.correlations)


def compare_loss_and_error(
    differences: Mapping[Key, Array],
) -> list[LossAndError]:
    """Return a summary for each method, in the order of the tables."""
    methods = {method for _, method in differences}
    compared = []
    for name in sorted(methods, key=design.method_rank):
        of_sets = [each for (_, method), each in differences.items() if method == name]
        losses, errors = np.concatenate(of_sets).T
        signs = np.sign(errors[losses < 0])
        # Without a split of lower loss there are no shares.
        lower, same, higher = (
            float(np.mean(signs == sign)) if signs.size else 0.0 for sign in (-1, 0, 1)
        )
        correlations = sorted(map(rank_correlation, of_sets))
        compared.append(
            LossAndError(
                name, len(losses), signs.size, lower, same, higher, correlations
            )
        )
    return compared
