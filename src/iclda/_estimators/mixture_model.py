"""A fitted mixture of classifiers, which predicts rows wherever they are.

It has the functions of rows of a ``LinearModel``. Its members may be of any kind, and
compute in memory: rows on a device are copied there, block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from .._core import AnyArray, Array
from .._rows.places import to_host
from .._rows.views import View, as_floating, like
from . import predictions
from .predictions import RowFunction

# Rows farther than this from those of the fit are as good as at this distance.
_LARGEST_CELL = 1e30
# Stands in for a probability of zero in a logarithm.
_TINY_PROBABILITY = 1e-300


@dataclass(frozen=True)
class Member:
    """A fitted classifier whose probabilities count with a weight.

    ``class_factors`` (K,) turn its probabilities into those under other priors; None:
    they stay as they are.
    """

    classifier: Any
    view: View | None = None
    class_factors: Array | None = None
    weight: float = 1.0

    def probabilities(self, rows: Array) -> Array:
        """Return the probabilities (n, K) of the classes of rows in memory."""
        return self.turned(self.classifier.predict_proba(self.seen(rows)))

    def seen(self, rows: Array) -> Array:
        """Return rows as the classifier sees them."""
        if self.view is None:
            return rows
        # Trees take single precision, which ends at 3e38.
        return np.clip(self.view(rows), -_LARGEST_CELL, _LARGEST_CELL)

    def turned(self, shares: Array) -> Array:
        """Return probabilities under the priors that are wanted."""
        if self.class_factors is None:
            return shares
        weighted = shares * self.class_factors
        return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class MixtureModel:
    """The weighted mean of the probabilities of several classifiers."""

    classes: AnyArray
    members: Mapping[str, Member]

    def with_classifiers(self, change: Callable[[Any], Any]) -> MixtureModel:
        """Return the mixture with a function of every classifier in its place."""
        members = {
            name: replace(member, classifier=change(member.classifier))
            for name, member in self.members.items()
        }
        return replace(self, members=members)

    # Functions of rows.

    def labels(self) -> RowFunction:
        """Return the most probable class, (n,)."""
        return self._then(
            lambda shares: predictions.most_probable(self.classes, shares)
        )

    def probabilities(self) -> RowFunction:
        """Return the probabilities of the classes, (n, K)."""
        return RowFunction(self._mixed, uses_all_features=False)

    def log_probabilities(self) -> RowFunction:
        """Return the logarithms of the probabilities, (n, K)."""
        return self._then(_logarithms)

    def decisions(self) -> RowFunction:
        """Return log probabilities (n, K), or the log odds of the second of two."""

        def decide(shares: Any) -> Any:
            logs = _logarithms(shares)
            return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs

        return self._then(decide)

    def _then(self, of_shares: Callable[[Any], Any]) -> RowFunction:
        return self.probabilities().then(of_shares)

    def _mixed(self, rows: Any) -> Any:
        """Return the mean of the probabilities, in the library of the rows."""
        held = np.asarray(to_host(rows), dtype=np.float64)
        mean = np.zeros((len(held), len(self.classes)))
        # Classifiers of scikit-learn refuse to predict no rows.
        if len(held):
            for member in self.members.values():
                mean += member.weight * member.probabilities(held)
        return like(as_floating(rows), mean)


def _logarithms(shares: Any) -> Any:
    xp = array_namespace(shares)
    tiny = max(_TINY_PROBABILITY, float(xp.finfo(shares.dtype).smallest_normal))
    return xp.log(xp.clip(shares, min=tiny))
