"""Log likelihood of the labeled rows as a function of the point (r, B), and its derivatives.

A point is an array (..., K, 1 + rank): class weight r_k, then class sum b_k of z, both over N.
All functions take stacks of points. Notation and formulas: docs/notation.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .types import AnyArray, Array

# Smallest eigenvalue allowed to I - B D^-1 B': below it the likelihood counts as unbounded.
FLOOR = 1e-10


@dataclass(frozen=True)
class LabeledLikelihood:
    """What the likelihood of the labeled rows needs to know of them, in whitened coordinates."""

    counts: Array  # (K,) class weights n_k
    means: Array  # (K, rank)
    within: Array  # (rank, rank) scatter about the class means
    log_priors: Array | None  # (K,) when fixed by the user
    shrinkage: float  # Sigma = (1 - shrinkage) (I - B D^-1 B')
    constant: float  # per unit of labeled weight: 2 pi and the change of units

    @cached_property
    def weight(self) -> float:
        return float(self.counts.sum())

    @cached_property
    def _trace_within(self) -> float:
        return float(np.trace(self.within))

    def value(self, point: Array) -> Array:
        return self.value_and_gradient(point)[0]

    def value_and_gradient(self, point: Array) -> tuple[Array, Array]:
        """Log likelihood, minus infinity at the floor, and gradient with respect to the point."""
        is_floored = smallest_eigenvalue(point) <= FLOOR
        if is_floored.any():
            point = _lifted(point, is_floored)
        parts = _Parts(self, point)
        r, b = parts.r, parts.b
        keep = 1 - self.shrinkage
        log_priors = np.log(r) if self.log_priors is None else self.log_priors
        distances = (parts.pulled * parts.deviations).sum(axis=(-2, -1))
        spread = self._trace_within + distances + np.einsum("...kd,...kd->...", b, parts.scattered)
        value = (
            (self.counts * log_priors).sum(axis=-1)
            - self.weight / 2 * (log_determinant(point) + b.shape[-1] * np.log(keep))
            - spread / (2 * keep)
            + self.weight * self.constant
        )
        return np.where(is_floored, -np.inf, value), parts.gradient()

    def hessian(self, point: Array) -> Array:
        """Second derivative with respect to all classes but the last, whose row balances them.

        The complex step of the gradient: exact to rounding, no step size to choose.
        """
        n_classes, width = point.shape
        size = (n_classes - 1) * width
        step = np.zeros((size, n_classes, width), dtype=np.complex128)
        each = np.arange(size)
        step[each, each // width, each % width] = 1e-30j
        step[each, -1, each % width] = -1e-30j
        slope = _Parts(self, point + step).gradient().imag / 1e-30
        hessian = (slope[:, :-1] - slope[:, -1:]).reshape(size, size)
        return np.asarray((hessian + hessian.T) / 2)


class _Parts:
    """Shared pieces of value and gradient; complex points are allowed."""

    def __init__(self, labeled: LabeledLikelihood, point: AnyArray) -> None:
        self.labeled = labeled
        self.r, self.b = point[..., 0], point[..., 1:]
        self.mu = self.b / self.r[..., None]
        self.deviations = labeled.means - self.mu
        self.pulled = labeled.counts[:, None] * self.deviations
        # Rows of `precise` are M^-1 mu_k: with M = I - B D^-1 B', M^-1 B D^-1 = B (D - B'B)^-1.
        self.precise = precise_means(point)
        # Rows of `scattered` are S v_k, S the scatter of the labeled rows about the mu_k.
        projected = self.precise @ np.swapaxes(self.pulled, -1, -2)
        self.scattered = self.precise @ labeled.within + projected @ self.deviations

    def _solve(self, rows: AnyArray) -> AnyArray:
        """M^-1 applied to rows: M^-1 = I + B (D - B'B)^-1 B'."""
        return np.asarray(rows + (rows @ np.swapaxes(self.b, -1, -2)) @ self.precise)

    def gradient(self) -> AnyArray:
        labeled, r, mu = self.labeled, self.r, self.mu
        keep = 1 - labeled.shrinkage
        G_mu = self._solve(self.scattered) / (2 * keep) - labeled.weight / 2 * self.precise
        e = self._solve(self.pulled) / keep
        beta = e / r[..., None] - 2 * G_mu
        alpha = (mu * G_mu).sum(axis=-1) - (mu * e).sum(axis=-1) / r
        if labeled.log_priors is None:
            alpha = alpha + labeled.counts / r
        return np.concatenate([alpha[..., None], beta], axis=-1)


def _lifted(point: Array, is_floored: AnyArray) -> Array:
    """Points at the floor moved just above it, where M can be inverted."""
    lifted = point.copy()
    lifted[..., 1:] *= np.where(is_floored, 1 - FLOOR, 1.0)[..., None, None]
    return lifted


def _core_matrix(point: AnyArray) -> AnyArray:
    """D - B'B: (K, K)."""
    r, b = point[..., 0], point[..., 1:]
    core = -(b @ np.swapaxes(b, -1, -2))
    each = np.arange(r.shape[-1])
    core[..., each, each] += r
    return core


def precise_means(point: AnyArray) -> AnyArray:
    """(K, rank): (I - B D^-1 B')^-1 mu_k."""
    return np.linalg.inv(_core_matrix(point)) @ point[..., 1:]


def log_determinant(point: Array) -> Array:
    """log |I - B D^-1 B'|."""
    return np.asarray(
        np.linalg.slogdet(_core_matrix(point))[1] - np.log(point[..., 0]).sum(axis=-1)
    )


def smallest_eigenvalue(point: Array) -> Array:
    """Smallest eigenvalue of I - B D^-1 B'."""
    scaled = point[..., 1:] / np.sqrt(point[..., :1])
    gram = scaled @ np.swapaxes(scaled, -1, -2)
    if gram.shape[-1] == 2:  # the class sums of z balance: one eigenvalue is zero
        return np.asarray(1 - np.trace(gram, axis1=-2, axis2=-1))
    return np.asarray(1 - np.linalg.eigvalsh(gram)[..., -1])
