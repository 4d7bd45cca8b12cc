"""Sums of one block of rows, formed on its device: the array API twin of ``_core.labelsums``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from .._core.labelsums import GivenLabels, LinearRule, Rule
from .._core.types import Array
from .devices import Place

_HARD = 1e-9  # a share this near to 1 is a label
_CHUNK = 512  # rows of one product where there is no double precision


@dataclass(frozen=True)
class DeviceBlock:
    """Rows in frame coordinates, their weights, and which of all rows they are."""

    place: Place
    rows: Any  # (n, d), in the dtype of the place
    weights: Any  # (n,), or None
    index: slice

    @cached_property
    def from_one(self) -> Any:
        """(n, 1 + d): the rows (1, u)."""
        xp, place = self.place.xp, self.place
        ones = xp.ones((self.rows.shape[0], 1), dtype=place.dtype, device=place.device)
        return xp.concat([ones, self.rows], axis=1)

    def weighed(self, columns: Any) -> Any:
        """Columns (n, p) times the weights."""
        return columns if self.weights is None else columns * self.weights[:, None]


def moments_from_one(block: DeviceBlock) -> Any:
    """(1 + d, 1 + d): weighted sum of (1, u)(1, u)'."""
    return _product(block.place, block.weighed(block.from_one), block.from_one)


def shares(block: DeviceBlock, rule: Rule) -> tuple[Any, Any]:
    """(n, K) shares and (n,) log-sum-exp of the scores under a rule for rows in the frame."""
    if isinstance(rule, LinearRule):
        return _linear_shares(block, rule)
    if isinstance(rule, GivenLabels):
        return _given_shares(block, rule)
    raise TypeError(f"{type(rule).__name__} labels no rows on a device.")


def _linear_shares(block: DeviceBlock, rule: LinearRule) -> tuple[Any, Any]:
    place, xp = block.place, block.place.xp
    scores = xp.matmul(block.rows, place.put(rule.coef)) + place.put(rule.intercept)
    top = xp.max(scores, axis=1)
    if rule.is_soft:
        found = xp.exp(scores - top[:, None])
        total = xp.sum(found, axis=1)
        return found / total[:, None], top + xp.log(total)
    if rule.n_classes == 2:
        is_first = xp.astype(scores[:, 0] - scores[:, 1] >= -rule.tie, place.dtype)
        return xp.stack([is_first, 1 - is_first], axis=1), top
    return _one_hot(block, xp.argmax(scores, axis=1), rule.n_classes), top


def _given_shares(block: DeviceBlock, rule: GivenLabels) -> tuple[Any, Any]:
    place, labels = block.place, rule.labels[block.index]
    if labels.ndim == 2:
        found = place.put(labels)
    else:
        found = _one_hot(block, place.put_as_is(labels), rule.n_classes)
    return found, place.xp.zeros_like(found[:, 0])


def _one_hot(block: DeviceBlock, codes: Any, n_classes: int) -> Any:
    xp, place = block.place.xp, block.place
    every = xp.arange(n_classes, dtype=codes.dtype, device=place.device)
    return xp.astype(codes[:, None] == every[None, :], place.dtype)


def class_sums(block: DeviceBlock, found: Any) -> Any:
    """(K, 1 + d): weight and sum of the rows of every class, by shares."""
    return _product(block.place, block.weighed(found), block.from_one)


def total(block: DeviceBlock, values: Any) -> Any:
    """(1, 1): weighted sum of one number a row."""
    ones = block.weighed(block.from_one[:, :1])
    return _product(block.place, ones, values[:, None])


def scatter_about(block: DeviceBlock, found: Any, centers: Array) -> Any:
    """(d, d): scatter about the centers of the classes, by shares."""
    place, total = block.place, 0
    for k, center in enumerate(centers):
        deviations = block.rows - place.put(center)
        total = total + _product(place, block.weighed(found[:, k : k + 1]) * deviations, deviations)
    return total


def boundary_parts(block: DeviceBlock, found: Any) -> list[Any]:
    """Sums of (diag g - g g') (1, u)(1, u)', one (1 + d, 1 + d) matrix for each pair of classes."""
    place, xp = block.place, block.place.xp
    parts = []
    for j, k in _pairs(found.shape[1]):
        spread = found[:, k] * (1 - found[:, k] if j == k else found[:, j])
        # Few rows lie between any two classes: most add nothing but rounding.
        near = xp.nonzero(spread > _HARD)[0]
        rows = xp.take(block.from_one, near, axis=0)
        scaled = xp.take(block.weighed(spread[:, None]), near, axis=0) * rows
        parts.append(_product(place, scaled, rows))
    return parts


def boundary_scatter(parts: list[Array], n_classes: int) -> Array:
    """(K - 1, 1 + d, K - 1, 1 + d), see ``_core.labelsums.boundary_scatter``, of its parts."""
    width = len(parts[0])
    scatter = np.empty((n_classes - 1, width, n_classes - 1, width))
    for (j, k), part in zip(_pairs(n_classes), parts, strict=True):
        scatter[k, :, j] = scatter[j, :, k] = part if j == k else -part
    return scatter


def _pairs(n_classes: int) -> list[tuple[int, int]]:
    return list(combinations_with_replacement(range(n_classes - 1), 2))


def _product(place: Place, left: Any, right: Any) -> Any:
    """(p, q): left' right. Single precision keeps its digits over few rows only."""
    xp, n_rows = place.xp, left.shape[0]
    if place.is_double or n_rows <= _CHUNK:
        return xp.matmul(left.T, right)
    n_whole = n_rows // _CHUNK * _CHUNK
    chunks = [xp.reshape(side[:n_whole, :], (-1, _CHUNK, side.shape[1])) for side in (left, right)]
    whole = xp.sum(xp.matmul(xp.matrix_transpose(chunks[0]), chunks[1]), axis=0)
    return whole + xp.matmul(left[n_whole:, :].T, right[n_whole:, :])
