"""Sums of rows on a device, by functions of the array API standard, whatever the library.

``Place`` is where an array is, ``DeviceBlock`` one block of a pass, and ``DeviceSet`` the rows that
a search holds on the device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_jax_namespace

from .._core.boundary import HARD, multiplicities, scrambled
from .._core.frame import Frame
from .._core.labelsums import (
    ROUNDING,
    GivenLabels,
    LabelSums,
    LexicographicRule,
    LinearRule,
    Rule,
    lexicographic_shares,
)
from .._core.problem import Problem
from .._core.solvers.attainable import AllSums, Labeling, Shift
from .._core.types import AnyArray, Array

Real = type[np.floating[Any]]

_CHUNK_ROWS = 512  # rows of one product where there is no double precision


@dataclass(frozen=True)
class Place:
    """A namespace of array functions, a device, and the precision that sums are formed in."""

    xp: Any
    device: Any
    is_double: bool  # whether the device has double precision
    is_compiled: bool  # every new shape of an array costs a compilation, as with JAX

    @property
    def dtype(self) -> Any:
        return self.xp.float64 if self.is_double else self.xp.float32

    @property
    def host_dtype(self) -> Real:
        """NumPy's name of the dtype of the sums."""
        return np.float64 if self.is_double else np.float32

    def put(self, array: AnyArray) -> Any:
        """Real numbers from memory, in the dtype of the sums."""
        return self.put_as_is(np.asarray(array, dtype=self.host_dtype))

    def put_as_is(self, array: AnyArray) -> Any:
        """An array from memory, in its own dtype."""
        return self.xp.asarray(np.ascontiguousarray(array), device=self.device)

    def exactly(self) -> AbstractContextManager[Any]:
        """A context in which products keep all digits of their dtype: by default JAX rounds."""
        if self.is_compiled:
            import jax

            return jax.default_matmul_precision("highest")  # type: ignore[no-any-return]
        return nullcontext()


def place_of(X: Any) -> Place:
    xp, where = array_namespace(X), device(X)
    has_double = False
    if not str(where).startswith("mps"):  # torch lists float64 there, and then refuses it
        dtypes = xp.__array_namespace_info__().dtypes(device=where, kind="real floating")
        has_double = "float64" in dtypes
    return Place(xp, where, has_double, bool(is_jax_namespace(xp)))


def to_host(array: Any) -> AnyArray:
    """An array of any library as one of NumPy."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):  # torch
        array = array.detach().cpu().resolve_conj()
        return np.asarray(array.float() if str(array.dtype) == "torch.bfloat16" else array)
    if hasattr(array, "get"):  # CuPy
        return np.asarray(array.get())
    xp = array_namespace(array)
    if hasattr(xp, "Device"):  # array-api-strict allows only its CPU to be read
        array = xp.asarray(array, device=xp.Device("CPU_DEVICE"))
    return np.asarray(array)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device has no room left."""
    torch = sys.modules.get("torch")
    if isinstance(error, MemoryError):  # NumPy, CuPy
        return True
    if torch is not None and isinstance(error, torch.cuda.OutOfMemoryError):
        return True
    # XLA, the CUDA runtime and Metal raise RuntimeError for everything; the status is in the text.
    statuses = "RESOURCE_EXHAUSTED", "out of memory"
    return isinstance(error, RuntimeError) and any(status in str(error) for status in statuses)


def label_scores(scores: Any, place: Place, *, is_soft: bool, tie: float = 0.0) -> tuple[Any, Any]:
    """Return shares (..., K, n), and log-sum-exp or, of hard labels, the largest score (..., n).

    Of classes within ``tie`` of the best one the first is taken.
    """
    xp = place.xp
    top = xp.max(scores, axis=-2, keepdims=True)
    if is_soft:
        shares = xp.exp(scores - top)
        total = xp.sum(shares, axis=-2, keepdims=True)
        return shares / total, (top + xp.log(total))[..., 0, :]
    ranks = place.put(np.arange(scores.shape[-2], 0, -1))[:, None]
    ranks = ranks * xp.astype(scores >= top - tie, place.dtype)
    is_first = ranks == xp.max(ranks, axis=-2, keepdims=True)
    return xp.astype(is_first, place.dtype), top[..., 0, :]


@dataclass(frozen=True)
class DeviceBlock:
    """Rows in frame coordinates, their weights, and which of all rows they are."""

    place: Place
    rows: Any  # (n, d), in the dtype of the place
    weights: Any  # (n,), or None: all are 1
    index: slice | AnyArray

    def moments(self) -> list[Any]:
        """Return weighted sums of u and u u': (1, d), (d, d)."""
        return [
            self._product(self._weighed(self._ones.T), self.rows),
            self._product(self._weighed(self.rows.T), self.rows),
        ]

    @cached_property
    def _ones(self) -> Any:
        place = self.place
        return place.xp.ones((self.rows.shape[0], 1), dtype=place.dtype, device=place.device)

    def _weighed(self, values: Any) -> Any:
        """(p, n)."""
        return values if self.weights is None else values * self.weights

    def _product(self, left: Any, right: Any) -> Any:
        """(p, n) x (n, q). Single precision keeps its digits over few rows only."""
        xp, (n_rows, width) = self.place.xp, right.shape
        if self.place.is_double or n_rows <= _CHUNK_ROWS:
            return xp.matmul(left, right)
        n_whole = n_rows // _CHUNK_ROWS * _CHUNK_ROWS
        chunks = xp.reshape(left[:, :n_whole], (left.shape[0], -1, _CHUNK_ROWS))
        others = xp.reshape(right[:n_whole, :], (-1, _CHUNK_ROWS, width))
        whole = xp.sum(xp.matmul(xp.permute_dims(chunks, (1, 0, 2)), others), axis=0)
        return whole + xp.matmul(left[:, n_whole:], right[n_whole:, :])

    def label(self, rule: Rule) -> tuple[Any, Any]:
        """Return (K, n) shares and (n,) log-sum-exp under a rule for rows in the frame."""
        place, xp, none = self.place, self.place.xp, 0 * self.rows[:, 0]
        if isinstance(rule, GivenLabels):
            labels = rule.labels[self.index]
            if labels.ndim == 1:
                labels = labels[:, None] == np.arange(rule.n_classes)
            return place.put(labels.T), none
        if isinstance(rule, LexicographicRule):
            first, second = self._scores(rule.first), self._scores(rule.second)
            return lexicographic_shares(first, second, rule.margin, xp), none
        if not isinstance(rule, LinearRule):
            raise TypeError(f"{type(rule).__name__} labels no rows on a device.")
        return label_scores(self._scores(rule), place, is_soft=rule.is_soft, tie=rule.tie)

    def _scores(self, rule: LinearRule) -> Any:
        """(K, n)."""
        place = self.place
        coef, intercept = place.put(rule.coef.T), place.put(rule.intercept[:, None])
        return place.xp.matmul(coef, self.rows.T) + intercept

    def label_sums(self, rule: Rule, centers: Array | None) -> list[Any]:
        """Return weights (K, 1) and sums (K, d) of classes, log-sum-exp (1, 1), scatter (d, d)."""
        shares, log_sums = self.label(rule)
        weighted = self._weighed(shares)
        sums = [
            self._product(weighted, self._ones),
            self._product(weighted, self.rows),
            self._product(self._weighed(log_sums[None, :]), self._ones),
        ]
        if centers is not None:
            scatter = 0
            for k, center in enumerate(centers):
                deviations = self.rows - self.place.put(center)
                scatter += self._product(weighted[k, :] * deviations.T, deviations)
            sums.append(scatter)
        return sums

    def near_boundary(self, rule: LinearRule, every: AnyArray) -> Array:
        """Return rows near class boundaries, after their weights, in memory: see ``Near``."""
        place, xp = self.place, self.place.xp
        shares = self.label(rule)[0]
        best, _ = label_scores(shares, place, is_soft=False)
        counts = multiplicities(shares, place.put_as_is(every), xp)
        assert not isinstance(self.index, slice)
        mixed = place.put_as_is(scrambled(self.index).astype(every.dtype))
        is_taken = (xp.sum(shares * (1 - best), axis=0) > HARD) & (mixed % counts == 0)
        weights = self._weighed(xp.astype(counts, place.dtype))
        taken = np.flatnonzero(to_host(is_taken & (weights > 0)))
        n_taken = len(taken)
        if place.is_compiled:  # one shape for all numbers of rows up to a power of two
            taken = np.resize(taken, 1 << n_taken.bit_length())
        chosen = place.put_as_is(taken)
        parts = [xp.take(a, chosen, axis=0) for a in (weights[:, None], self.rows)]
        return to_host(xp.concat(parts, axis=1))[:n_taken].astype(np.float64)


# Precision of the device.


def rounded(frame: Frame, dtype: Real) -> tuple[Frame, Array]:
    """The frame that a dtype can hold, and its origin in the other: rows less it lose no digits."""
    used = replace(frame, origin=frame.origin.astype(dtype).astype(np.float64))
    return used, (used.origin - frame.origin) / frame.scale


def label_sums_in(
    dtype: Real,
    label_sums: Callable[..., LabelSums],
    rule: Rule,
    frame: Frame,
    centers: Array | None = None,
) -> LabelSums:
    """Label sums by a function that computes in a dtype.

    Rounding errors of scores average out; that of the origin, which is common to all rows, does
    not, and is corrected here. For the rule see ``lost_to_rounding``.
    """
    used, offset = rounded(frame, dtype)
    if isinstance(rule, LinearRule):
        tie = rule.tie * float(np.finfo(dtype).eps / np.finfo(np.float64).eps)
        rule = replace(rule.moved(offset), tie=tie)
    if isinstance(rule, LexicographicRule):
        first, second = rule.first.moved(offset), rule.second.moved(offset)
        rule = replace(rule, first=first, second=second)
    sums = label_sums(rule, used, None if centers is None else centers - offset)
    return replace(sums, sums=sums.sums + sums.counts[:, None] * offset)


def lost_to_rounding(rule: LinearRule, sums: LabelSums, dtype: Real = np.float32) -> float:
    """Change of the sum of log-sum-exp, whose slope is the class sums, by rounding the rule."""
    coef = rule.coef - rule.coef.astype(dtype)
    intercept = np.where(np.isfinite(rule.intercept), rule.intercept, 0.0)
    intercept = intercept - intercept.astype(dtype)
    return float((coef.T * sums.sums).sum() + intercept @ sums.counts)


# Rows held for the search, in whitened coordinates: the twin of ``attainable.InMemorySet``.


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

    def label(self, scores: Array, start: Shift | None = None) -> DeviceLabeling:
        shares, log_sums = self._soft_shares(scores)
        point, log_sum = self._sums(shares, log_sums)
        return DeviceLabeling(AllSums(point, float(log_sum)), self, shares)

    def label_among(self, scores: Array, sums: AllSums) -> DeviceLabeling:
        return DeviceLabeling(sums, self, self._soft_shares(scores)[0])

    def soft_point(self, scores: Array) -> tuple[Array, float]:
        labeling = self.label(scores)
        return labeling.point, labeling.log_sum

    def soft_points(self, scores: Array) -> tuple[Array, Array]:
        return self._sums(*self._soft_shares(scores))

    def hard_point(self, scores: Array) -> Array:
        tie = ROUNDING * float((np.abs(scores) @ self._reach).max())
        labels = label_scores(self._on_device(scores), self.place, is_soft=False, tie=tie)
        return self._sums(*labels)[0]

    @cached_property
    def _reach(self) -> Array:
        return to_host(self.place.xp.max(self.place.xp.abs(self.z), axis=0))

    def support(self, direction: Array) -> float:
        xp = self.place.xp
        return float(xp.sum(self.device_weights * xp.max(self._on_device(direction), axis=0)))

    def spread(self, gradient: Array) -> float:
        ranges = np.ptp(self.scores_of_rows(gradient), axis=0)
        return float(np.sqrt(self.weights @ ranges**2 / self.weights.sum()))

    def scores_of_rows(self, scores: Array) -> Array:
        return to_host(self._on_device(scores))

    def shares(self, scores: Array) -> Array:
        shares = to_host(self._soft_shares(scores)[0])
        return shares[1:] if len(scores) == 2 else shares

    def _on_device(self, scores: Array) -> Any:
        """(..., K, n): scores of all rows."""
        *stack, width = scores.shape
        flat = self.place.xp.matmul(self.place.put(scores.reshape(-1, width)), self.z.T)
        return self.place.xp.reshape(flat, (*stack, -1))

    def _soft_shares(self, scores: Array) -> tuple[Any, Any]:
        return label_scores(self._on_device(scores), self.place, is_soft=True)

    def _sums(self, shares: Any, log_sums: Any) -> tuple[Array, Array]:
        """Points, and means of log-sum-exp over N, brought back together."""
        xp, stack = self.place.xp, shares.shape[:-1]
        weighted = xp.reshape(shares * self.device_weights, (-1, shares.shape[-1]))
        sums = xp.reshape(xp.matmul(weighted, self.z), (*stack[:-1], -1))
        means = xp.sum(log_sums * self.device_weights, axis=-1)[..., None]
        totals = to_host(xp.concat([sums, means], axis=-1))
        return self.labeled_point + totals[..., :-1].reshape(*stack, -1), totals[..., -1]
