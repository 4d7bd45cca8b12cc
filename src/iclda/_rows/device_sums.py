"""Sums of rows on a device: by functions of the array API standard, or by GPU kernels.

``DeviceBlock`` is one block of a pass, whatever the library.
``FusedPasses`` read every row once, by the Triton kernels of ``kernels``: where torch and Triton
are installed, the rows are a tensor on a GPU in single or half precision, and there are not too
many columns or classes. All other sums, and all after a kernel that could not be built, are formed
block by block.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from .._core import AnyArray, Array
from .._core.frame import Frame
from .._core.labelsums import (
    GivenLabels,
    LabelSums,
    LexicographicRule,
    LinearRule,
    Rule,
    lexicographic_shares,
)
from .._core.moments import Moments
from .._core.rows import HARD, multiplicities, scrambled
from .backends import Place, Real, to_host
from .progress import report_progress
from .threads import Result

_PRODUCT_ROWS = 512  # rows of one product where there is no double precision
# Limits of the kernels.
_CHUNK_ROWS = 2048  # added up in single precision
_WIDEST = 1024  # columns of a tile
_WIDEST_SQUARE = 128  # columns whose squares fit into the registers
_MOST_CLASSES = 32
_LARGEST_SCALE = 2.0**60  # squares of scaled rows stay within single precision
_DTYPES = (
    "torch.float32",
)  # kernels from half precision to double do not compile on an H200


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device has no room left."""
    if isinstance(error, MemoryError):  # NumPy, CuPy
        return True
    # torch, XLA and Metal raise RuntimeError, or a kind of it; the status is in the text.
    statuses = "RESOURCE_EXHAUSTED", "out of memory"
    return isinstance(error, RuntimeError) and any(
        status in str(error) for status in statuses
    )


@dataclass(frozen=True)
class PlacedRule:
    """A linear rule on a device, moved there once for all blocks of a pass."""

    coef: Any  # (K, d)
    intercept: Any  # (K, 1)
    is_soft: bool
    tie: float

    @classmethod
    def of(cls, rule: LinearRule, place: Place) -> PlacedRule:
        intercept = place.put(rule.intercept[:, None])
        return cls(place.put(rule.coef.T), intercept, rule.is_soft, rule.tie)

    def scores(self, rows: Any, xp: Any) -> Any:
        """Return the scores of all rows, shape (K, n)."""
        return xp.matmul(self.coef, rows.T) + self.intercept


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
        return place.xp.ones(
            (self.rows.shape[0], 1), dtype=place.dtype, device=place.device
        )

    def _weighed(self, values: Any) -> Any:
        """Return (p, n) values times the weights."""
        return values if self.weights is None else values * self.weights

    def _product(self, left: Any, right: Any) -> Any:
        """Return (p, n) x (n, q). Single precision keeps its digits over few rows only."""
        xp, (n_rows, width) = self.place.xp, right.shape
        if self.place.is_double or n_rows <= _PRODUCT_ROWS:
            return xp.matmul(left, right)
        n_whole = n_rows // _PRODUCT_ROWS * _PRODUCT_ROWS
        chunks = xp.reshape(left[:, :n_whole], (left.shape[0], -1, _PRODUCT_ROWS))
        others = xp.reshape(right[:n_whole, :], (-1, _PRODUCT_ROWS, width))
        whole = xp.sum(xp.matmul(xp.permute_dims(chunks, (1, 0, 2)), others), axis=0)
        return whole + xp.matmul(left[:, n_whole:], right[n_whole:, :])

    def label(self, rule: Rule | PlacedRule) -> tuple[Any, Any]:
        """Return (K, n) shares and (n,) log-sum-exp under a rule for rows in the frame."""
        place, xp, none = self.place, self.place.xp, 0 * self.rows[:, 0]
        if isinstance(rule, GivenLabels):
            labels = rule.labels[self.index]
            if labels.ndim == 1:
                labels = labels[:, None] == np.arange(rule.n_classes)
            return place.put(labels.T), none
        if isinstance(rule, LexicographicRule):
            placed = (PlacedRule.of(each, place) for each in (rule.first, rule.second))
            first, second = (each.scores(self.rows, xp) for each in placed)
            return lexicographic_shares(first, second, rule.margin, xp), none
        if isinstance(rule, LinearRule):
            rule = PlacedRule.of(rule, place)
        assert isinstance(rule, PlacedRule)
        scores = rule.scores(self.rows, xp)
        return place.label(scores, is_soft=rule.is_soft, tie=rule.tie)

    def label_sums(self, rule: Rule | PlacedRule, centers: Array | None) -> list[Any]:
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
        best, _ = place.label(shares, is_soft=False)
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


def round_origin(frame: Frame, dtype: Real) -> tuple[Frame, Array]:
    """Return the frame with an origin that the dtype can hold, and that origin in the old frame."""
    used = replace(frame, origin=frame.origin.astype(dtype).astype(np.float64))
    return used, (used.origin - frame.origin) / frame.scale


def label_sums_in(
    dtype: Real,
    label_sums: Callable[..., LabelSums],
    rule: Rule,
    frame: Frame,
    centers: Array | None = None,
) -> LabelSums:
    """Return label sums by a function that computes in a dtype.

    Rounding errors of scores average out; that of the origin, which is common to all rows, does
    not, and is corrected here. For the rule see ``lost_to_rounding``.
    """
    used, offset = round_origin(frame, dtype)
    if isinstance(rule, LinearRule):
        tie = rule.tie * float(np.finfo(dtype).eps / np.finfo(np.float64).eps)
        rule = replace(rule.moved(offset), tie=tie)
    if isinstance(rule, LexicographicRule):
        first, second = rule.first.moved(offset), rule.second.moved(offset)
        rule = replace(rule, first=first, second=second)
    sums = label_sums(rule, used, None if centers is None else centers - offset)
    return replace(sums, sums=sums.sums + sums.counts[:, None] * offset)


def lost_to_rounding(
    rule: LinearRule, sums: LabelSums, dtype: Real = np.float32
) -> float:
    """Return the change of the sum of log-sum-exp, whose slope is the class sums, by rounding."""
    coef = rule.coef - rule.coef.astype(dtype)
    intercept = np.where(np.isfinite(rule.intercept), rule.intercept, 0.0)
    intercept = intercept - intercept.astype(dtype)
    return float((coef.T * sums.sums).sum() + intercept @ sums.counts)


# Kernels.


@dataclass(frozen=True)
class Cut:
    """Columns and rows of a tile, programs per processor and their warps."""

    width: int
    tile: int
    per_processor: int
    warps: int
    stages: int  # tiles being loaded


def padded_to(n: int) -> int:
    """Return the next power of two >= n, at least 16: the smallest side of a product of tiles."""
    return max(16, 1 << (n - 1).bit_length())


def n_chunks(X: Any) -> int:
    return int(-(-X.shape[0] // _CHUNK_ROWS))


def cut_rows(n_features: int, X: Any) -> Cut:
    """Return the cut for one score a row: small tiles, of which several are being loaded."""
    width = padded_to(n_features)
    # Rows that do not begin at a multiple of 16 bytes load in small pieces, too many at a time.
    is_aligned = X.stride(0) * X.element_size() % 16 == 0
    tile = max(2, min(32, 2048 // width))
    return Cut(
        width, tile, 8, warps=4 if width <= 64 else 8, stages=4 if is_aligned else 1
    )


def cut_squares(n_features: int) -> Cut:
    """Return the cut for products of a tile with itself, in double precision."""
    width = padded_to(n_features)
    per_processor, warps = (8, 2) if width <= 32 else (2, 4) if width <= 64 else (1, 8)
    return Cut(width, 32, per_processor, warps, stages=3)


def cut_classes(n_features: int) -> Cut:
    """Return the cut for products of a tile with the coefficients of many classes."""
    width = padded_to(n_features)
    tile, per_processor = (128, 4) if width <= 32 else (64, 2)
    return Cut(width, tile, per_processor, warps=4, stages=1)


def can_fuse(X: Any) -> bool:
    """Whether the kernels read rows of this device, dtype and layout."""
    torch = sys.modules.get("torch")
    if (
        torch is None
        or not isinstance(X, torch.Tensor)
        or os.environ.get("ICLDA_FUSED") == "0"
    ):
        return False
    # Triton's interpreter, which checks kernels without a GPU, takes tensors of the CPU.
    is_there = X.is_cuda or os.environ.get("TRITON_INTERPRET") == "1"
    has_shape = X.shape[0] > 0 and 0 < X.shape[1] <= _WIDEST and X.stride(1) == 1
    if not (is_there and has_shape and str(X.dtype) in _DTYPES):
        return False
    return find_spec("triton") is not None


class FusedPasses:
    """Passes over the rows of a tensor that ``can_fuse``; weights in single precision, or None.

    Methods return None where no kernel applies.
    """

    def __init__(self, X: Any, weights: Any) -> None:
        self._X, self._weights = X, weights
        self._n_features = int(X.shape[1])
        self._is_broken = False

    def moments(self, frame: Frame) -> list[Array] | None:
        """Return weighted sums of u and u u'."""
        d = self._n_features
        if d > _WIDEST_SQUARE:
            return None

        def read() -> list[Array]:
            cut = cut_squares(d)
            sums, squares = (
                self._zeros(cut, cut.width),
                self._zeros(cut, cut.width, cut.width),
            )
            in_frame = self._put(frame.origin, 1 / frame.scale, dtype=np.float64)
            self._launch("moments", cut, *in_frame, sums, squares)
            return [_total(sums)[:d], _total(squares)[:d, :d]]

        return self._attempt(read)

    def label_sums(
        self, rule: LinearRule, frame: Frame, moments: Moments
    ) -> LabelSums | None:
        """Return label sums; ``moments`` are those of all rows in the frame."""
        if not self._takes(rule, frame):
            return None

        def label_sums(rule: LinearRule, used: Frame, *_: Any) -> LabelSums:
            if rule.n_classes > 2:
                return self._many_classes(rule, used)
            mean = moments.mean - (used.origin - frame.origin) / frame.scale
            total = moments.weight * np.concatenate([[1.0], mean])
            return self._two_classes(rule, used, total)

        return self._attempt(lambda: label_sums_in(np.float32, label_sums, rule, frame))

    def _takes(self, rule: LinearRule, frame: Frame) -> bool:
        if not np.isfinite(rule.intercept).all() or rule.n_classes > _MOST_CLASSES:
            return False
        if np.abs(np.log2(frame.scale)).max() > np.log2(_LARGEST_SCALE):
            return False
        return self._n_features <= _WIDEST_SQUARE or rule.n_classes == 2

    def _attempt(self, read: Callable[[], Result]) -> Result | None:
        """Return the result of a pass; None, with a warning, if its kernel cannot be run."""
        if self._is_broken:
            return None
        try:
            result = read()
        except Exception as error:
            if is_out_of_memory(error):
                return None
            self._is_broken = True
            reason = str(error).strip().partition("\n")[0][:200]
            warnings.warn(
                f"The GPU kernels could not be used ({type(error).__name__}: {reason}): sums are "
                "formed by array functions, which takes longer. ICLDA_FUSED=0 turns kernels off.",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
        report_progress(self._X.shape[0], self._X.shape[0])
        return result

    def _two_classes(self, rule: LinearRule, frame: Frame, total: Array) -> LabelSums:
        """Return label sums; ``total``: weight and sum of all rows."""
        d = self._n_features
        cut = cut_rows(d, self._X)
        sums = self._zeros(cut, 2 + cut.width)
        lead, intercept = (
            rule.coef[:, 0] - rule.coef[:, 1],
            rule.intercept[0] - rule.intercept[1],
        )
        single = float(np.float32(intercept))
        self._launch(
            "two_classes",
            cut,
            *self._put(frame.origin, 1 / frame.scale, lead),
            sums,
            scalars=(single, rule.tie),
            IS_SOFT=rule.is_soft,
        )
        count, log_sum, *of_rows = _total(sums)
        first = np.array([count, *of_rows[:d]])
        second_rule = np.concatenate([rule.intercept[1:], rule.coef[:, 1]])
        # See lost_to_rounding: here it is the lead that was rounded.
        lost = np.concatenate([[intercept - single], lead - lead.astype(np.float32)])
        by_class = np.array([first, total - first])
        log_sum += second_rule @ total + lost @ first
        return LabelSums(by_class[:, 0], by_class[:, 1:], float(log_sum))

    def _many_classes(self, rule: LinearRule, frame: Frame) -> LabelSums:
        d, n_classes = rule.coef.shape
        padded = padded_to(n_classes)
        cut = cut_classes(d)
        sums, counts = self._zeros(cut, padded, cut.width), self._zeros(cut, 1 + padded)
        arrays = self._put(frame.origin, 1 / frame.scale, rule.coef, rule.intercept)
        settings = {"CLASSES": n_classes, "PADDED": padded}
        self._launch(
            "many_classes", cut, *arrays, sums, counts, IS_SOFT=rule.is_soft, **settings
        )
        log_sum, *weights = _total(counts)[: 1 + n_classes]
        label_sums = LabelSums(
            np.array(weights), _total(sums)[:n_classes, :d], float(log_sum)
        )
        return replace(
            label_sums, log_sum=label_sums.log_sum + lost_to_rounding(rule, label_sums)
        )

    def _launch(
        self, name: str, cut: Cut, *arrays: Any, scalars: Any = (), **settings: Any
    ) -> None:
        """Run a kernel on all rows; ``arrays`` as it takes them after rows and weights."""
        import torch

        from . import kernels

        X, weights = self._X, self._weights
        with torch.cuda.device_of(X):
            getattr(kernels, name)[(arrays[-1].shape[0],)](
                X,
                X if weights is None else weights,
                *arrays,
                X.shape[0],
                n_chunks(X),
                *scalars,
                FEATURES=X.shape[1],
                STRIDE=X.stride(0),
                WIDTH=cut.width,
                TILE=cut.tile,
                TILES=_CHUNK_ROWS // cut.tile,
                STAGES=cut.stages,
                HAS_WEIGHTS=weights is not None,
                num_warps=cut.warps,
                **settings,
            )

    def _zeros(self, cut: Cut, *shape: int) -> Any:
        """Allocate the sums of every program."""
        import torch

        device, n_processors = self._X.device, 2
        if device.type == "cuda":
            n_processors = torch.cuda.get_device_properties(
                device
            ).multi_processor_count
        n_programs = min(n_chunks(self._X), cut.per_processor * n_processors)
        return torch.zeros((n_programs, *shape), dtype=torch.float64, device=device)

    def _put(self, *arrays: Array, dtype: Real = np.float32) -> list[Any]:
        import torch

        return [torch.asarray(a.astype(dtype), device=self._X.device) for a in arrays]


def _total(parts: Any) -> Array:
    """Return the sums of all programs, in memory."""
    return np.asarray(parts.sum(dim=0).cpu().numpy())
