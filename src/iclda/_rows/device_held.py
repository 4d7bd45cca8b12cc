"""Rows held on a device for the search, in whitened coordinates: only sums come back.

The array API twin of ``_core.solvers.attainable.InMemorySet``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._core.boundary import HARD
from .._core.labelsums import ROUNDING
from .._core.problem import Problem
from .._core.solvers.attainable import AllSums, Labeling
from .._core.types import Array
from .device_sums import Place, to_host


def hold_on_device(place: Place, problem: Problem, u: Array, weights: Array) -> DeviceSet:
    """Hold rows given in frame coordinates."""
    xp, whitening, weights = place.xp, problem.whitening, weights / problem.moments.weight
    z = xp.matmul(place.put(u) - place.put(whitening.mean), place.put(whitening.transform.T))
    ones = xp.ones((len(u), 1), dtype=place.dtype, device=place.device)
    z = xp.concat([ones, z], axis=1)
    return DeviceSet(place, z, weights, problem.labeled_point)


class DeviceLabeling(Labeling):
    """Rows on a device labeled softly by scores."""

    def __init__(self, sums: AllSums, rows: DeviceSet, shares: Any) -> None:
        super().__init__(sums, rows.z, rows.device_weights, shares)  # (K, n) also of two classes
        self._rows = rows

    @cached_property
    def n_near(self) -> int:
        xp, (_, _, shares) = self._rows.place.xp, self.parts
        return int(xp.count_nonzero(xp.max(shares, axis=0) < 1 - HARD))

    @cached_property
    def _weighted(self) -> Any:
        _, weights, shares = self.parts
        return shares * weights

    def product(self, direction: Array) -> Array:
        place, (z, _, shares) = self._rows.place, self.parts
        change = place.xp.matmul(place.put(direction), z.T)
        change = change - place.xp.sum(shares * change, axis=0)
        return to_host(place.xp.matmul(self._weighted * change, z))

    @cached_property
    def local_set(self) -> DeviceSet:
        sums = to_host(self._rows.place.xp.matmul(self._weighted, self._rows.z))
        return DeviceSet(self._rows.place, self._rows.z, self._rows.weights, self.point - sums)

    def _between(self, k: int, j: int) -> Array:
        z, _, shares = self.parts
        scaled = (self._weighted[k, :] * shares[j, :])[:, None] * z
        return to_host(self._rows.place.xp.matmul(scaled.T, z))


@dataclass(frozen=True)
class DeviceSet:
    """The attainable set of rows held on a device."""

    place: Place
    z: Any  # (n, 1 + rank) on the device, first column ones
    weights: Array  # (n,), over N
    labeled_point: Array  # (K, 1 + rank)

    @cached_property
    def device_weights(self) -> Any:
        return self.place.put(self.weights)

    def label(self, scores: Array) -> DeviceLabeling:
        shares, log_sums = self._soften(self._on_device(scores))
        point, log_sum = self._sums(shares, log_sums)
        return DeviceLabeling(AllSums(point, float(log_sum)), self, shares)

    def label_among(self, scores: Array, sums: AllSums) -> DeviceLabeling:
        return DeviceLabeling(sums, self, self._soften(self._on_device(scores))[0])

    def soft_point(self, scores: Array) -> tuple[Array, float]:
        found = self.label(scores)
        return found.point, found.log_sum

    def soft_points(self, scores: Array) -> tuple[Array, Array]:
        return self._sums(*self._soften(self._on_device(scores)))

    def hard_point(self, scores: Array) -> Array:
        place, xp = self.place, self.place.xp
        tie = ROUNDING * float((np.abs(scores) @ self._reach).max())
        of_rows = self._on_device(scores)
        is_best = xp.astype(of_rows >= xp.max(of_rows, axis=0) - tie, place.dtype)
        order = place.put(np.arange(len(scores)))[:, None]
        first = xp.astype(xp.argmax(is_best * (len(scores) - order), axis=0), place.dtype)
        return self._sums(xp.astype(order == first, place.dtype), 0 * of_rows[0, :])[0]

    @cached_property
    def _reach(self) -> Array:
        return to_host(self.place.xp.max(self.place.xp.abs(self.z), axis=0))

    def support(self, direction: Array) -> float:
        xp = self.place.xp
        return float(xp.sum(self.device_weights * xp.max(self._on_device(direction), axis=0)))

    def spread(self, gradient: Array) -> float:
        return float(
            np.sqrt(
                self.weights
                @ np.ptp(self.scores_of_rows(gradient), axis=0) ** 2
                / self.weights.sum()
            )
        )

    def scores_of_rows(self, scores: Array) -> Array:
        return to_host(self._on_device(scores))

    def shares(self, scores: Array) -> Array:
        found = to_host(self._soften(self._on_device(scores))[0])
        return found[1:] if len(scores) == 2 else found

    def _on_device(self, scores: Array) -> Any:
        """(..., K, n): scores of all rows."""
        *stack, width = scores.shape
        flat = self.place.xp.matmul(self.place.put(scores.reshape(-1, width)), self.z.T)
        return self.place.xp.reshape(flat, (*stack, -1))

    def _soften(self, scores: Any) -> tuple[Any, Any]:
        """Softmax over the classes and log-sum-exp."""
        xp = self.place.xp
        top = xp.max(scores, axis=-2, keepdims=True)
        shares = xp.exp(scores - top)
        total = xp.sum(shares, axis=-2, keepdims=True)
        return shares / total, (top + xp.log(total))[..., 0, :]

    def _sums(self, shares: Any, log_sums: Any) -> tuple[Array, Array]:
        """Points, and means of log-sum-exp over N, brought back together."""
        xp, stack = self.place.xp, shares.shape[:-1]
        weighted = xp.reshape(shares * self.device_weights, (-1, shares.shape[-1]))
        sums = xp.reshape(xp.matmul(weighted, self.z), (*stack[:-1], -1))
        means = xp.sum(log_sums * self.device_weights, axis=-1)[..., None]
        found = to_host(xp.concat([sums, means], axis=-1))
        return self.labeled_point + found[..., :-1].reshape(*stack, -1), found[..., -1]
