"""Shading and lines of the regions in which each class is the most probable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.types import Array
from ._look import class_color, excess_of, foreground, to_rgb

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHADE = 0.3  # opacity where the class is sure
_DEEP = 1e3  # log odds beyond which a class is out of the question, also where they are infinite


def shade(ax: Axes, grid: tuple[Array, Array], log_probabilities: Array, kwargs: Any) -> Any:
    """An image in the colors of the classes, fading where none is sure."""
    across, up = grid
    kwargs = {"interpolation": "bilinear", "zorder": 0, **kwargs}
    image = shading(np.exp(log_probabilities), kwargs.pop("alpha", _SHADE))
    limits = (across[0], across[-1], up[0], up[-1])
    drawn = ax.imshow(image, extent=limits, origin="lower", aspect="auto", **kwargs)
    ax.set(xlim=limits[:2], ylim=limits[2:])
    return drawn


def shading(shares: Array, alpha: float) -> Array:
    """(..., 4): red, green, blue and opacity for these shares (..., K) in classes."""
    excess = excess_of(shares)
    total = excess.sum(axis=-1, keepdims=True)
    pure = np.array([to_rgb(class_color(code)) for code in range(shares.shape[-1])])
    colors = np.divide(excess @ pure, total, out=np.ones((*shares.shape[:-1], 3)), where=total > 0)
    return np.concatenate([colors, alpha * excess.max(axis=-1, keepdims=True)], axis=-1)


def draw_lines(ax: Axes, grid: tuple[Array, Array], log_probabilities: Array, kwargs: Any) -> Any:
    """Lines on which two classes are equally probable and no other is more so."""
    style = {"colors": [foreground()], "linewidths": 1.3, "zorder": 2, **kwargs}
    n_classes = log_probabilities.shape[-1]
    drawn = []
    for code in range(1 if n_classes == 2 else n_classes):
        margin = _margin(log_probabilities, code)
        if margin.min() < 0 < margin.max():
            drawn.append(ax.contour(*grid, margin, levels=[0.0], **style))
    return drawn


def _margin(log_probabilities: Array, code: int) -> Array:
    """How much likelier the class is than the likeliest other one, in log odds."""
    with np.errstate(invalid="ignore"):
        others = np.delete(log_probabilities, code, axis=-1).max(axis=-1)
        margin = log_probabilities[..., code] - others
    return np.clip(margin, -_DEEP, _DEEP)
