"""Where an array lives, and sums of one block of rows formed there, whatever its library.

The array API twin of ``_core.labelsums``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_jax_namespace

from .._core.boundary import HARD, multiplicities, scrambled
from .._core.frame import Frame
from .._core.labelsums import (
    GivenLabels,
    LabelSums,
    LexicographicRule,
    LinearRule,
    Rule,
    lexicographic_shares,
)
from .._core.types import AnyArray, Array

Real = type[np.floating[Any]]

_CHUNK = 512  # rows of one product where there is no double precision


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


@dataclass(frozen=True)
class DeviceBlock:
    """Rows in frame coordinates, their weights, and which of all rows they are."""

    place: Place
    rows: Any  # (n, d), in the dtype of the place
    weights: Any  # (n, 1)
    index: slice | AnyArray

    def moments(self) -> list[Any]:
        """Weighted sums of u and u u': (1, d), (d, d)."""
        weighted = self.weights * self.rows
        return [self._product(self.weights, self.rows), self._product(weighted, self.rows)]

    def _product(self, left: Any, right: Any) -> Any:
        """(p, q): left' right. Single precision keeps its digits over few rows only."""
        xp, n_rows = self.place.xp, left.shape[0]
        if self.place.is_double or n_rows <= _CHUNK:
            return xp.matmul(left.T, right)
        n_whole = n_rows // _CHUNK * _CHUNK
        chunks = [xp.reshape(a[:n_whole, :], (-1, _CHUNK, a.shape[1])) for a in (left, right)]
        whole = xp.sum(xp.matmul(xp.matrix_transpose(chunks[0]), chunks[1]), axis=0)
        return whole + xp.matmul(left[n_whole:, :].T, right[n_whole:, :])

    def shares(self, rule: Rule) -> tuple[Any, Any]:
        """(n, K) shares and (n, 1) log-sum-exp of the scores under a rule for rows in the frame."""
        place, xp, none = self.place, self.place.xp, 0 * self.weights
        if isinstance(rule, GivenLabels):
            labels = rule.labels[self.index]
            if labels.ndim == 2:
                return place.put(labels), none
            return self._one_hot(place.put_as_is(labels), rule.n_classes), none
        if isinstance(rule, LexicographicRule):
            first, second = self._scores(rule.first), self._scores(rule.second)
            return lexicographic_shares(first, second, rule.margin, xp, axis=1), none
        if not isinstance(rule, LinearRule):
            raise TypeError(f"{type(rule).__name__} labels no rows on a device.")
        scores = self._scores(rule)
        top = xp.max(scores, axis=1, keepdims=True)
        if rule.is_soft:
            found = xp.exp(scores - top)
            total = xp.sum(found, axis=1, keepdims=True)
            return found / total, top + xp.log(total)
        if rule.n_classes == 2:
            is_first = xp.astype(scores[:, :1] - scores[:, 1:] >= -rule.tie, place.dtype)
            return xp.concat([is_first, 1 - is_first], axis=1), top
        return self._one_hot(xp.argmax(scores, axis=1), rule.n_classes), top

    def _scores(self, rule: LinearRule) -> Any:
        place = self.place
        return place.xp.matmul(self.rows, place.put(rule.coef)) + place.put(rule.intercept)

    def _one_hot(self, codes: Any, n_classes: int) -> Any:
        xp, place = self.place.xp, self.place
        every = xp.arange(n_classes, dtype=codes.dtype, device=place.device)
        return xp.astype(codes[:, None] == every[None, :], place.dtype)

    def label_sums(self, rule: Rule, centers: Array | None) -> list[Any]:
        """Weights (1, K) and sums (K, d) of the classes, log-sum-exp (1, 1), scatter (d, d)."""
        shares, log_sums = self.shares(rule)
        weighted = self.weights * shares
        sums = [
            self._product(self.weights, shares),
            self._product(weighted, self.rows),
            self._product(self.weights, log_sums),
        ]
        if centers is not None:
            scatter = 0
            for k, center in enumerate(centers):
                deviations = self.rows - self.place.put(center)
                scatter += self._product(weighted[:, k : k + 1] * deviations, deviations)
            sums.append(scatter)
        return sums

    def near_boundary(self, rule: LinearRule, every: AnyArray) -> Array:
        """Rows near class boundaries, after their weights, in memory: see ``Near``."""
        place, xp = self.place, self.place.xp
        shares = self.shares(rule)[0]
        best = self._one_hot(xp.argmax(shares, axis=1), rule.n_classes)
        counts = multiplicities(shares.T, place.put_as_is(every), xp)
        assert not isinstance(self.index, slice)
        mixed = place.put_as_is(scrambled(self.index).astype(every.dtype))
        is_near = xp.sum(shares * (1 - best), axis=1) > HARD
        is_taken = is_near & (mixed % counts == 0) & (self.weights[:, 0] > 0)
        if place.is_compiled:  # one shape for all numbers of rows up to a power of two
            on_host = np.flatnonzero(to_host(is_taken))
            n_taken = len(on_host)
            taken = place.put_as_is(np.resize(on_host, 1 << n_taken.bit_length()))
        else:
            taken = xp.nonzero(is_taken)[0]
            n_taken = taken.shape[0]
        weights = self.weights * xp.astype(counts, place.dtype)[:, None]
        found = xp.concat([xp.take(a, taken, axis=0) for a in (weights, self.rows)], axis=1)
        return to_host(found)[:n_taken].astype(np.float64)


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
    found = label_sums(rule, used, None if centers is None else centers - offset)
    return replace(found, sums=found.sums + found.counts[:, None] * offset)


def lost_to_rounding(rule: LinearRule, found: LabelSums, dtype: Real = np.float32) -> float:
    """Change of the sum of log-sum-exp, whose slope is the class sums, by rounding the rule."""
    coef = rule.coef - rule.coef.astype(dtype)
    intercept = np.where(np.isfinite(rule.intercept), rule.intercept, 0.0)
    intercept = intercept - intercept.astype(dtype)
    return float((coef.T * found.sums).sum() + intercept @ found.counts)
