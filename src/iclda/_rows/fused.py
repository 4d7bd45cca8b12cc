"""Passes over rows on a GPU by the Triton kernels of ``kernels``.

A kernel reads every row once, where functions of an array library need several passes
and copies. The kernels are used where torch and Triton are installed, the rows are a
float32 tensor on a GPU, and there are not too many columns or classes. All other sums,
and all sums after a kernel could not be built, are formed block by block.
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from .._core import Array
from .._core.frame import Frame
from .._core.labelsums import LabelSums, LinearRule
from .._core.moments import Moments
from .places import Real, is_out_of_memory
from .precision import label_sums_in, lost_to_rounding
from .progress import report_progress
from .threads import Result

# Rows that a kernel adds up in single precision before it changes to double precision.
_CHUNK_ROWS = 2048
# Columns that a tile of a kernel may have.
_MAX_KERNEL_FEATURES = 1024
# Columns whose products with each other, or with classes, fit into the registers.
_MAX_PRODUCT_FEATURES = 128
_MAX_KERNEL_CLASSES = 32
# Up to this scale, squares of scaled rows stay within single precision.
_MAX_KERNEL_SCALE = 2.0**60
# Kernels from half precision to double do not compile on an H200.
_KERNEL_DTYPE = "torch.float32"
# Characters of the error of a compiler that a warning shows.
_MAX_SHOWN_REASON = 200


# How the rows are cut: see benchmarks/bench_gpu_passes.py for the times of passes.


@dataclass(frozen=True)
class Cut:
    """How a kernel cuts the rows.

    Attributes
    ----------
    width : int
        Columns of a tile, a power of two.
    tile_rows : int
        Rows of a tile, a power of two.
    per_processor : int
        Programs on each processor of the GPU.
    n_warps : int
        Warps of a program.
    n_stages : int
        Tiles that are being loaded at a time.
    """

    width: int
    tile_rows: int
    per_processor: int
    n_warps: int
    n_stages: int


def padded_to(n: int) -> int:
    """Return the next power of two from n on, at least 16.

    That is the smallest side of a product of tiles.
    """
    return max(16, 1 << (n - 1).bit_length())


def cut_rows(n_features: int, X: Any) -> Cut:
    """Return the cut for one score per row: small tiles, several being loaded."""
    width = padded_to(n_features)
    # Rows that do not begin at a multiple of 16 bytes load in small pieces, of which
    # there would be too many at a time.
    is_aligned = X.stride(0) * X.element_size() % 16 == 0
    return Cut(
        width,
        tile_rows=max(2, min(32, 2048 // width)),
        per_processor=8,
        n_warps=4 if width <= 64 else 8,
        n_stages=4 if is_aligned else 1,
    )


def cut_squares(n_features: int) -> Cut:
    """Return the cut for products of a tile with itself, in double precision."""
    width = padded_to(n_features)
    if width <= 32:
        return Cut(width, 32, per_processor=8, n_warps=2, n_stages=3)
    if width <= 64:
        return Cut(width, 32, per_processor=2, n_warps=4, n_stages=3)
    return Cut(width, 32, per_processor=1, n_warps=8, n_stages=3)


def cut_classes(n_features: int) -> Cut:
    """Return the cut for products of a tile with the coefficients of many classes."""
    width = padded_to(n_features)
    if width <= 32:
        return Cut(width, 128, per_processor=4, n_warps=4, n_stages=1)
    return Cut(width, 64, per_processor=2, n_warps=4, n_stages=1)


# Passes.


def can_fuse(X: Any) -> bool:
    """Return whether the kernels read rows of this device, dtype and layout."""
    if os.environ.get("ICLDA_FUSED") == "0":
        return False
    # Where torch was not imported there are no tensors.
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(X, torch.Tensor):
        return False
    # Triton's interpreter, which checks kernels without a GPU, reads main memory.
    if not X.is_cuda and os.environ.get("TRITON_INTERPRET") != "1":
        return False
    n_rows, n_features = X.shape
    if n_rows == 0 or not 0 < n_features <= _MAX_KERNEL_FEATURES:
        return False
    if X.stride(1) != 1 or str(X.dtype) != _KERNEL_DTYPE:
        return False
    return find_spec("triton") is not None


class FusedPasses:
    """Passes over the rows of a tensor that ``can_fuse``.

    Weights are in single precision, or None. Methods return None where no kernel
    applies.
    """

    def __init__(self, X: Any, weights: Any) -> None:
        self._X = X
        self._weights = weights
        self._n_features = int(X.shape[1])
        self._n_chunks = math.ceil(X.shape[0] / _CHUNK_ROWS)
        # Set once a kernel could not be run: no other is tried then.
        self._is_broken = False

    def moments(self, frame: Frame) -> list[Array] | None:
        """Return weighted sums of u and u u'."""
        d = self._n_features
        if d > _MAX_PRODUCT_FEATURES:
            return None

        def read() -> list[Array]:
            from . import kernels

            cut = cut_squares(d)
            sums = self._zeros(cut, cut.width)
            squares = self._zeros(cut, cut.width, cut.width)
            in_frame = self._put(frame.origin, 1 / frame.scale, dtype=np.float64)
            self._launch(kernels.moments, cut, *in_frame, sums, squares)
            return [_total(sums)[:d], _total(squares)[:d, :d]]

        return self._attempt(read)

    def label_sums(
        self, rule: LinearRule, frame: Frame, moments: Moments
    ) -> LabelSums | None:
        """Return label sums; ``moments`` are those of all rows in the frame."""
        if not self._takes(rule, frame):
            return None

        def sums_about(rule: LinearRule, used: Frame, *_: Any) -> LabelSums:
            if rule.n_classes > 2:
                return self._many_classes(rule, used)
            # Weight and sum (1 + d,) of all rows, about the origin that is used.
            mean = moments.mean - (used.origin - frame.origin) / frame.scale
            total = moments.weight * np.concatenate([[1.0], mean])
            return self._two_classes(rule, used, total)

        return self._attempt(lambda: label_sums_in(np.float32, sums_about, rule, frame))

    def _takes(self, rule: LinearRule, frame: Frame) -> bool:
        """Return whether there is a kernel for this rule and these units."""
        # A prior of 0 gives minus infinity, and a lead that is not a number.
        if not np.isfinite(rule.intercept).all():
            return False
        if rule.n_classes > _MAX_KERNEL_CLASSES:
            return False
        if np.abs(np.log2(frame.scale)).max() > np.log2(_MAX_KERNEL_SCALE):
            return False
        return rule.n_classes == 2 or self._n_features <= _MAX_PRODUCT_FEATURES

    def _attempt(self, read: Callable[[], Result]) -> Result | None:
        """Return the result of a pass; None, with a warning, if its kernel fails."""
        if self._is_broken:
            return None
        try:
            result = read()
        except Exception as error:
            if is_out_of_memory(error):
                # The kernel works: there may be room in the next pass.
                return None
            self._is_broken = True
            # Compilers write pages: the first line is enough, and may be long.
            first_line = str(error).strip().partition("\n")[0]
            reason = first_line[:_MAX_SHOWN_REASON]
            warnings.warn(
                f"The GPU kernels could not be used ({type(error).__name__}: "
                f"{reason}): sums are formed by array functions, which takes longer. "
                "ICLDA_FUSED=0 turns kernels off.",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
        # A kernel reads all rows in one call.
        n_rows = self._X.shape[0]
        report_progress(n_rows, n_rows)
        return result

    def _two_classes(self, rule: LinearRule, frame: Frame, total: Array) -> LabelSums:
        """Return label sums of two classes.

        The kernel sums the rows of the first class; those of the second are the rest of
        ``total``, weight and sum of all rows. It labels by the lead of the first class
        over the second, so that the score of the second is added to the log-sum-exp
        here.
        """
        from . import kernels

        d = self._n_features
        cut = cut_rows(d, self._X)
        # Of every program: weight and log-sum-exp, then the sum of the rows.
        sums = self._zeros(cut, 2 + cut.width)
        lead = rule.coef[:, 0] - rule.coef[:, 1]
        intercept = rule.intercept[0] - rule.intercept[1]
        rounded_intercept = float(np.float32(intercept))
        self._launch(
            kernels.two_classes,
            cut,
            *self._put(frame.origin, 1 / frame.scale, lead),
            sums,
            scalars=(rounded_intercept, rule.tie),
            IS_SOFT=rule.is_soft,
        )
        count, log_sum, *row_sums = _total(sums)
        # Weight and sum (1 + d,) of the first class, without the padding columns.
        first = np.array([count, *row_sums[:d]])
        by_class = np.array([first, total - first])

        # The scores of the second class, and what the lead lost when it was rounded:
        # see ``lost_to_rounding``.
        second_rule = np.concatenate([rule.intercept[1:], rule.coef[:, 1]])
        lost_lead = lead - lead.astype(np.float32)
        lost = np.concatenate([[intercept - rounded_intercept], lost_lead])
        log_sum += second_rule @ total + lost @ first
        return LabelSums(by_class[:, 0], by_class[:, 1:], float(log_sum))

    def _many_classes(self, rule: LinearRule, frame: Frame) -> LabelSums:
        from . import kernels

        d, n_classes = rule.coef.shape
        padded = padded_to(n_classes)
        cut = cut_classes(d)
        # Of every program: class sums; the log-sum-exp, and after it class weights.
        sums = self._zeros(cut, padded, cut.width)
        counts = self._zeros(cut, 1 + padded)
        self._launch(
            kernels.many_classes,
            cut,
            *self._put(frame.origin, 1 / frame.scale, rule.coef, rule.intercept),
            sums,
            counts,
            IS_SOFT=rule.is_soft,
            CLASSES=n_classes,
            PADDED=padded,
        )
        log_sum, *weights = _total(counts)[: 1 + n_classes]
        class_sums = _total(sums)[:n_classes, :d]
        label_sums = LabelSums(np.array(weights), class_sums, float(log_sum))
        lost = lost_to_rounding(rule, label_sums)
        return replace(label_sums, log_sum=label_sums.log_sum + lost)

    def _launch(
        self, kernel: Any, cut: Cut, *arrays: Any, scalars: Any = (), **settings: Any
    ) -> None:
        """Run a kernel on all rows.

        ``arrays`` are its arguments after rows and weights. The last one has a sum for
        every program.
        """
        import torch

        X = self._X
        n_programs = arrays[-1].shape[0]
        # Without weights the kernel reads none: any pointer will do.
        weights = X if self._weights is None else self._weights
        with torch.cuda.device_of(X):
            kernel[(n_programs,)](
                X,
                weights,
                *arrays,
                X.shape[0],
                self._n_chunks,
                *scalars,
                FEATURES=X.shape[1],
                STRIDE=X.stride(0),
                WIDTH=cut.width,
                TILE=cut.tile_rows,
                TILES=_CHUNK_ROWS // cut.tile_rows,
                STAGES=cut.n_stages,
                HAS_WEIGHTS=self._weights is not None,
                num_warps=cut.n_warps,
                **settings,
            )

    def _zeros(self, cut: Cut, *shape: int) -> Any:
        """Allocate the sums of every program."""
        import torch

        device = self._X.device
        # Triton's interpreter runs on the CPU, where a few programs are enough.
        n_processors = 2
        if device.type == "cuda":
            properties = torch.cuda.get_device_properties(device)
            n_processors = properties.multi_processor_count
        n_programs = min(self._n_chunks, cut.per_processor * n_processors)
        return torch.zeros((n_programs, *shape), dtype=torch.float64, device=device)

    def _put(self, *arrays: Array, dtype: Real = np.float32) -> list[Any]:
        """Move arrays to the device."""
        import torch

        device = self._X.device
        return [torch.asarray(array.astype(dtype), device=device) for array in arrays]


def _total(parts: Any) -> Array:
    """Return the sums of all programs, in memory."""
    return np.asarray(parts.sum(dim=0).cpu().numpy())
