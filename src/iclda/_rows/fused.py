"""Passes over rows on a GPU that read every row once, by kernels of ``kernels``.

An optional way to the sums of ``device_passes``: where torch and Triton are installed, the rows lie
on a GPU in single or half precision, and there are not too many columns or classes. Everything else
goes the other way, and so does everything after a kernel that could not be built.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np

from .._core.frame import Frame
from .._core.labelsums import LabelSums, LinearRule
from .._core.moments import Moments
from .._core.types import Array
from .device_passes import in_single, lost_to_rounding
from .devices import is_out_of_memory

Result = TypeVar("Result")

_WIDEST = 1024  # columns that a tile can have
_WIDEST_SQUARE = 128  # columns whose squares fit into the registers
_MOST_CLASSES = 32
_CHUNK_ROWS = 2048  # added up in single precision
_LARGEST_SCALE = 2.0**60  # squares of scaled rows stay within single precision


@dataclass(frozen=True)
class Cut:
    """How a kernel cuts the rows: columns and rows of a tile, tiles of a chunk, programs.

    Chosen by trial on an NVIDIA H200.
    """

    width: int
    tile: int
    tiles: int
    per_processor: int
    warps: int
    stages: int  # tiles on their way from memory


def can_fuse(X: Any) -> bool:
    """Whether rows are in a place and of a kind that the kernels read."""
    if os.environ.get("ICLDA_FUSED") == "0" or not _kernels_import():
        return False
    tensor = _as_tensor(X)
    if tensor is None or tensor.shape[0] == 0 or not 0 < tensor.shape[1] <= _WIDEST:
        return False
    kinds = "torch.float32", "torch.float16", "torch.bfloat16"
    return str(tensor.dtype) in kinds and tensor.stride(1) == 1


@cache
def _kernels_import() -> bool:
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
    except (BufferError, RuntimeError, TypeError, ValueError, AttributeError):
        return None
    is_interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    return tensor if tensor.is_cuda or is_interpreted else None


class FusedPasses:
    """The rows of a GPU array and their weights (single precision, or None). See ``can_fuse``."""

    def __init__(self, X: Any, weights: Any) -> None:
        self._X = _as_tensor(X)
        self._weights = None if weights is None else _as_tensor(weights)
        self._is_broken = False

    def moments_from_one(self, frame: Frame) -> Array | None:
        """(1 + d, 1 + d): weighted sum of (1, u)(1, u)', less the first entry; None: cannot."""
        n_features = self._X.shape[1]
        if n_features > _WIDEST_SQUARE:
            return None
        return self._attempt(lambda: self._moments(frame))

    def label_sums(
        self, rule: LinearRule, frame: Frame, moments: Moments, *, curvature: bool
    ) -> LabelSums | None:
        """Label sums; ``moments`` are those of all rows in the frame. None: cannot."""
        if not self._takes(rule, frame, curvature=curvature):
            return None
        total = np.concatenate([[moments.weight], moments.weight * moments.mean])

        def label_sums(rule: LinearRule, used: Frame, *_: Any, curvature: bool) -> LabelSums:
            if rule.n_classes > 2:
                return self._many_classes(rule, used)
            offset = (used.origin - frame.origin) / frame.scale
            moved = np.concatenate([total[:1], total[1:] - total[0] * offset])
            return self._two_classes(rule, used, moved, curvature=curvature)

        return self._attempt(lambda: in_single(label_sums, rule, frame, None, curvature=curvature))

    def _takes(self, rule: LinearRule, frame: Frame, *, curvature: bool) -> bool:
        if not np.isfinite(rule.intercept).all() or rule.n_classes > _MOST_CLASSES:
            return False
        if np.abs(np.log2(frame.scale)).max() > np.log2(_LARGEST_SCALE):
            return False
        if rule.n_classes == 2 and not curvature:
            return True
        can_bend = rule.n_classes == 2 and rule.is_soft
        return self._X.shape[1] <= _WIDEST_SQUARE and (can_bend or not curvature)

    def _attempt(self, read: Callable[[], Result]) -> Result | None:
        """The result of a pass; None, with a warning, if its kernel cannot be built or run."""
        if self._is_broken:
            return None
        try:
            return read()
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

    def _moments(self, frame: Frame) -> Array:
        cut = _cut_squares(self._X.shape[1])
        sums, squares = self._zeros(cut, cut.width), self._zeros(cut, cut.width, cut.width)
        frame_parts = self._put(frame.origin, 1 / frame.scale, dtype=np.float64)
        self._launch("moments", cut, *frame_parts, sums, squares)
        n_features = self._X.shape[1]
        found = np.zeros((1 + n_features, 1 + n_features))
        found[0, 1:] = found[1:, 0] = _added(sums)[:n_features]
        found[1:, 1:] = _added(squares)[:n_features, :n_features]
        return found

    def _two_classes(
        self, rule: LinearRule, frame: Frame, total: Array, *, curvature: bool
    ) -> LabelSums:
        """``total``: weight and sum of all rows in the frame."""
        n_features = self._X.shape[1]
        cut = _cut_squares(n_features) if curvature else _cut_rows(n_features)
        sums = self._zeros(cut, 3 + 2 * cut.width)
        squares = self._zeros(cut, cut.width, cut.width) if curvature else sums
        lead, intercept = rule.coef[:, 0] - rule.coef[:, 1], rule.intercept[0] - rule.intercept[1]
        single = np.float32(intercept)
        self._launch(
            "two_classes",
            cut,
            *self._put(frame.origin, 1 / frame.scale, lead),
            sums,
            squares,
            scalars=(float(single), rule.tie),
            IS_SOFT=rule.is_soft,
            CURVATURE=curvature,
        )
        found = _added(sums)
        first = np.concatenate([found[:1], found[3 : 3 + n_features]])
        by_class = np.array([first, total - first])
        second = np.concatenate([rule.intercept[1:], rule.coef[:, 1]])
        lost = np.concatenate([[intercept - float(single)], lead - lead.astype(np.float32)])
        log_sum = float(found[1] + second @ total + lost @ first)
        bend = None
        if curvature:
            inner = _added(squares)[:n_features, :n_features]
            sums_of_spread = found[3 + cut.width :][:n_features]
            edge = np.concatenate([found[2:3], sums_of_spread])
            bend = np.block([[edge[None]], [sums_of_spread[:, None], inner]])[None, :, None, :]
        return LabelSums(by_class[:, 0], by_class[:, 1:], log_sum, curvature=bend)

    def _many_classes(self, rule: LinearRule, frame: Frame) -> LabelSums:
        n_features, n_classes = rule.coef.shape
        cut = _cut_classes(n_features)
        padded = max(16, _power_of_two(n_classes))
        sums, counts = self._zeros(cut, padded, cut.width), self._zeros(cut, 1 + padded)
        self._launch(
            "many_classes",
            cut,
            *self._put(frame.origin, 1 / frame.scale, rule.coef, rule.intercept),
            sums,
            counts,
            n_classes=n_classes,
            CLASSES=padded,
            IS_SOFT=rule.is_soft,
        )
        log_sum, *weights = _added(counts)[: 1 + n_classes]
        by_class = _added(sums)[:n_classes, :n_features]
        found = LabelSums(np.array(weights), by_class, float(log_sum))
        return replace(found, log_sum=found.log_sum + lost_to_rounding(rule, found))

    def _launch(
        self, name: str, cut: Cut, *arrays: Any, scalars: Any = (), **settings: Any
    ) -> None:
        """Run a kernel on all rows; ``arrays`` as it takes them after rows and weights."""
        import torch

        from . import kernels

        X, weights = self._X, self._weights
        n_rows, n_features = X.shape
        n_chunks = -(-n_rows // (cut.tile * cut.tiles))
        n_classes = [settings.pop("n_classes")] if "n_classes" in settings else []
        with torch.cuda.device_of(X):
            getattr(kernels, name)[(arrays[-1].shape[0],)](
                X,
                X if weights is None else weights,
                *arrays,
                n_rows,
                n_chunks,
                n_features,
                *n_classes,
                X.stride(0),
                *scalars,
                WIDTH=cut.width,
                TILE=cut.tile,
                TILES=cut.tiles,
                STAGES=cut.stages,
                HAS_WEIGHTS=weights is not None,
                num_warps=cut.warps,
                **settings,
            )

    def _zeros(self, cut: Cut, *shape: int) -> Any:
        """Room for the sums of every program."""
        import torch

        n_chunks = -(-self._X.shape[0] // (cut.tile * cut.tiles))
        n_programs = min(n_chunks, cut.per_processor * _n_processors(self._X.device))
        return torch.zeros((n_programs, *shape), dtype=torch.float64, device=self._X.device)

    def _put(self, *arrays: Array, dtype: type[np.floating[Any]] = np.float32) -> list[Any]:
        import torch

        return [torch.asarray(a.astype(dtype), device=self._X.device) for a in arrays]


def _added(parts: Any) -> Array:
    """Sums of all programs, in memory."""
    found: Array = parts.sum(dim=0).cpu().numpy()
    return found


def _n_processors(device: Any) -> int:
    import torch

    if device.type != "cuda":
        return 2
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _cut_rows(n_features: int) -> Cut:
    """For one score a row: small tiles, and several of them on their way from memory."""
    width = max(16, _power_of_two(n_features))
    warps = 4 if width <= 64 else 8
    tile = max(2, min(32, 2048 // width))
    return Cut(width, tile, _CHUNK_ROWS // tile, per_processor=8, warps=warps, stages=4)


def _cut_squares(n_features: int) -> Cut:
    """For products of a tile with itself, whose sides must be 16 at least."""
    width = max(16, _power_of_two(n_features))
    if width <= 32:
        return Cut(width, 32, _CHUNK_ROWS // 32, per_processor=8, warps=2, stages=3)
    return Cut(width, 16, _CHUNK_ROWS // 16, per_processor=1, warps=8, stages=1)


def _cut_classes(n_features: int) -> Cut:
    """For products of a tile with scores of many classes."""
    width = max(16, _power_of_two(n_features))
    tile, per_processor = (128, 4) if width <= 32 else (64, 2)
    return Cut(width, tile, _CHUNK_ROWS // tile, per_processor, warps=4, stages=1)
