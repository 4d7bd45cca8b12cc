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
from .._rows.views import Chain, Standardization, View, as_floating, placed_like
from . import predictions
from .predictions import RowFunction

# Mapped rows are clipped here: trees take single precision, which ends at 3e38.
_LARGEST_ENTRY = 1e30
# Stands in for a probability of zero in a logarithm.
_TINY_PROBABILITY = 1e-300


@dataclass(frozen=True)
class Member:
    """A fitted classifier whose probabilities count with a weight.

    Attributes
    ----------
    classifier : object
        Fitted, with the method ``predict_proba``.
    view : View or None
        Maps rows before they reach the classifier.
    class_factors : ndarray of shape (n_classes,) or None
        Factors that turn its probabilities into those under other priors; None leaves
        them as they are.
    weight : float
        Its share in the mixture.
    """

    classifier: Any
    view: View | None = None
    class_factors: Array | None = None
    weight: float = 1.0

    @property
    def is_turned(self) -> bool:
        """Whether its probabilities are turned to other priors."""
        return self.class_factors is not None

    def probabilities(self, rows: Array) -> Array:
        """Return the probabilities (n, K) of the classes of rows in memory."""
        own_probabilities = self.classifier.predict_proba(self.mapped(rows))
        return self.turned(own_probabilities)

    def mapped(self, rows: Array) -> Array:
        """Return rows as the classifier takes them: mapped by the view."""
        if self.view is None:
            return rows
        return np.clip(self.view(rows), -_LARGEST_ENTRY, _LARGEST_ENTRY)

    def turned(self, probabilities: Array) -> Array:
        """Turn probabilities (n, K) of the classifier to the priors that are wanted."""
        if self.class_factors is None:
            return probabilities
        weighted = probabilities * self.class_factors
        return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class MixtureModel:
    """The weighted mean of the probabilities of several classifiers."""

    classes: AnyArray
    members: Mapping[str, Member]

    def with_classifiers(self, change: Callable[[Any], Any]) -> MixtureModel:
        """Return the mixture with every classifier replaced by a function of it."""
        members = {}
        for name, member in self.members.items():
            changed = change(member.classifier)
            members[name] = replace(member, classifier=changed)
        return replace(self, members=members)

    def adapted(self, offset: Array, class_factors: Array) -> MixtureModel:
        """Return the mixture for rows with an offset and other class shares.

        ``class_factors`` are the ratios of the new shares to the earlier ones.
        """
        back = Standardization(offset, np.ones_like(offset))
        # Factors of 1 are none, so that the mixture can still be exported.
        is_turned = bool((class_factors != 1).any())
        members = {}
        for name, member in self.members.items():
            factors = member.class_factors
            if is_turned:
                factors = class_factors * (1.0 if factors is None else factors)
            view = back if member.view is None else Chain((back, member.view))
            members[name] = replace(member, view=view, class_factors=factors)
        return replace(self, members=members)

    # Functions of rows.

    def labels(self) -> RowFunction:
        """Return the most probable class, (n,)."""

        def decide(probabilities: Any) -> Any:
            return predictions.most_probable(self.classes, probabilities)

        return self.probabilities().then(decide)

    def probabilities(self) -> RowFunction:
        """Return the probabilities of the classes, (n, K)."""
        return RowFunction(self._mixed, uses_all_features=False)

    def log_probabilities(self) -> RowFunction:
        """Return the logarithms of the probabilities, (n, K)."""
        return self.probabilities().then(_logarithms)

    def decisions(self) -> RowFunction:
        """Return log probabilities (n, K), or the log odds of the second of two."""

        def score(probabilities: Any) -> Any:
            logarithms = _logarithms(probabilities)
            if logarithms.shape[1] > 2:
                return logarithms
            return logarithms[:, 1] - logarithms[:, 0]

        return self.probabilities().then(score)

    def _mixed(self, rows: Any) -> Any:
        """Return the weighted mean of the probabilities, in the library of the rows."""
        rows_in_memory = np.asarray(to_host(rows), dtype=np.float64)
        mean = np.zeros((len(rows_in_memory), len(self.classes)))
        # Classifiers of scikit-learn refuse to predict no rows.
        if len(rows_in_memory):
            for member in self.members.values():
                mean += member.weight * member.probabilities(rows_in_memory)
        return placed_like(as_floating(rows), mean)


def _logarithms(probabilities: Any) -> Any:
    """Return the logarithms of probabilities, of which none is infinite."""
    xp = array_namespace(probabilities)
    smallest_normal = float(xp.finfo(probabilities.dtype).smallest_normal)
    tiny = max(_TINY_PROBABILITY, smallest_normal)
    return xp.log(xp.clip(probabilities, min=tiny))
