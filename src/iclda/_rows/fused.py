"""Passes over rows on a GPU that read every row once, by the Triton kernels of ``kernels``.

They apply where torch and Triton are installed, the rows are on a GPU in single or half precision,
and there are not too many columns or classes. All other sums, and all after a kernel that could not
be built, are formed block by block (``device``).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from .._core.frame import Frame
from .._core.labelsums import LabelSums, LinearRule
from .._core.moments import Moments
from .._core.types import Array
from .device_sums import Real, is_out_of_memory, label_sums_in, lost_to_rounding
from .passes import Result, report_progress

_CHUNK_ROWS = 2048  # added up in single precision
_WIDEST = 1024  # columns of a tile
_WIDEST_SQUARE = 128  # columns whose squares fit into the registers
_MOST_CLASSES = 32
_LARGEST_SCALE = 2.0**60  # squares of scaled rows stay within single precision
_DTYPES = "torch.float32", "torch.float16", "torch.bfloat16"


@dataclass(frozen=True)
class Cut:
    """Columns and rows of a tile, programs per processor and their warps."""

    width: int
    tile: int
    per_processor: int
    warps: int
    stages: int  # tiles being loaded


def padded_to(n: int) -> int:
    """Next power of two >= n, at least 16: the smallest side of a product of tiles."""
    return max(16, 1 << (n - 1).bit_length())


def n_chunks(X: Any) -> int:
    return int(-(-X.shape[0] // _CHUNK_ROWS))


def cut_rows(n_features: int, X: Any) -> Cut:
    """For one score a row: small tiles, of which several are being loaded."""
    width = padded_to(n_features)
    # Rows that do not begin at a multiple of 16 bytes load in small pieces, too many at a time.
    is_aligned = X.stride(0) * X.element_size() % 16 == 0
    tile = max(2, min(32, 2048 // width))
    return Cut(width, tile, 8, warps=4 if width <= 64 else 8, stages=4 if is_aligned else 1)


def cut_squares(n_features: int) -> Cut:
    """For products of a tile with itself, in double precision."""
    width = padded_to(n_features)
    per_processor, warps = (8, 2) if width <= 32 else (2, 4) if width <= 64 else (1, 8)
    return Cut(width, 32, per_processor, warps, stages=3)


def cut_classes(n_features: int) -> Cut:
    """For products of a tile with the coefficients of many classes."""
    width = padded_to(n_features)
    tile, per_processor = (128, 4) if width <= 32 else (64, 2)
    return Cut(width, tile, per_processor, warps=4, stages=1)


def can_fuse(X: Any) -> bool:
    """Whether the kernels read rows of this device, dtype and layout."""
    if os.environ.get("ICLDA_FUSED") == "0" or not _has_kernels():
        return False
    tensor = _as_tensor(X)
    if tensor is None or tensor.shape[0] == 0 or not 0 < tensor.shape[1] <= _WIDEST:
        return False
    return str(tensor.dtype) in _DTYPES and tensor.stride(1) == 1


@cache
def _has_kernels() -> bool:
    try:
        import torch  # noqa: F401

        from . import kernels  # noqa: F401
    except ImportError:
        return False
    return True


def _as_tensor(X: Any) -> Any:
    """A GPU array of any library as a torch tensor that shares its memory; None if there is none.

    Triton's interpreter, which checks kernels without a GPU, takes tensors of the CPU.
    """
    import torch

    try:
        tensor = X if isinstance(X, torch.Tensor) else torch.from_dlpack(X)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        return None
    is_interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    return tensor if tensor.is_cuda or is_interpreted else None


class FusedPasses:
    """The rows of a GPU array and their weights (single precision, or None). See ``can_fuse``.

    Methods return None where no kernel applies.
    """

    def __init__(self, X: Any, weights: Any) -> None:
        self._X = _as_tensor(X)
        self._weights = None if weights is None else _as_tensor(weights)
        self._is_broken = False

    @property
    def _n_features(self) -> int:
        return int(self._X.shape[1])

    def moments(self, frame: Frame) -> list[Array] | None:
        """Weighted sums of u and u u'."""
        d = self._n_features
        if d > _WIDEST_SQUARE:
            return None

        def read() -> list[Array]:
            cut = cut_squares(d)
            sums, squares = self._zeros(cut, cut.width), self._zeros(cut, cut.width, cut.width)
            in_frame = self._put(frame.origin, 1 / frame.scale, dtype=np.float64)
            self._launch("moments", cut, *in_frame, sums, squares)
            return [_total(sums)[:d], _total(squares)[:d, :d]]

        return self._attempt(read)

    def label_sums(self, rule: LinearRule, frame: Frame, moments: Moments) -> LabelSums | None:
        """Label sums; ``moments`` are those of all rows in the frame."""
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
        """The result of a pass; None, with a warning, if its kernel cannot be built or run."""
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
        """``total``: weight and sum of all rows, of which the second class gets the rest."""
        d = self._n_features
        cut = cut_rows(d, self._X)
        sums = self._zeros(cut, 2 + cut.width)
        lead, intercept = rule.coef[:, 0] - rule.coef[:, 1], rule.intercept[0] - rule.intercept[1]
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
        self._launch("many_classes", cut, *arrays, sums, counts, IS_SOFT=rule.is_soft, **settings)
        log_sum, *weights = _total(counts)[: 1 + n_classes]
        label_sums = LabelSums(np.array(weights), _total(sums)[:n_classes, :d], float(log_sum))
        return replace(label_sums, log_sum=label_sums.log_sum + lost_to_rounding(rule, label_sums))

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
        """Room for the sums of every program."""
        import torch

        device, n_processors = self._X.device, 2
        if device.type == "cuda":
            n_processors = torch.cuda.get_device_properties(device).multi_processor_count
        n_programs = min(n_chunks(self._X), cut.per_processor * n_processors)
        return torch.zeros((n_programs, *shape), dtype=torch.float64, device=device)

    def _put(self, *arrays: Array, dtype: Real = np.float32) -> list[Any]:
        import torch

        return [torch.asarray(a.astype(dtype), device=self._X.device) for a in arrays]


def _total(parts: Any) -> Array:
    """Sums of all programs, in memory."""
    total: Array = parts.sum(dim=0).cpu().numpy()
    return total
