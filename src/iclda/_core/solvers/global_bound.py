"""Prove that a maximum of the likelihood of the labeled rows of two classes is global.

The proof is branch and bound over two numbers, the class weight r and v = 1 - b'b / (r (1 - r)).
For fixed r and v the likelihood is a quadratic function of b, which lies on a sphere and in the
attainable set. Any multipliers of these two constraints give an upper bound, a closed form in r
and v. A cell, an interval of r and one of v, whose bound is not above the maximum holds nothing
better; the others are split. The formulas are in docs/solvers.md.
"""

from __future__ import annotations

import heapq
import math
from itertools import count, pairwise, product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from .. import Array
from ..problem import Problem
from . import settings
from .attainable import hold_all

_COLUMNS = 8  # intervals of r at the beginning
_STEPS = (
    6,
    15,
)  # Newton steps for the multipliers of a cell: of a large one, of a small one
_SMALL = 0.1  # width of small cells, in logit(r) and log(v)
_SMALLEST = 1e-4  # width of cells that are not split
_LEAST_SPREAD = 1e-6  # of the labeled rows in any direction, per unit of weight
_BARRIER = 0.02  # over tau; it keeps the bound concave in b


def is_proved_global(problem: Problem, point: Array) -> bool:
    """Whether no attainable point has a higher likelihood than a maximum, up to a tolerance.

    The tolerance is ``settings.GLOBAL_GAP`` per unit of labeled weight. False says nothing: the
    proof may take too long, or the bounds may be too weak.
    """
    n_rows, width = problem.unlabeled.n_rows, point.shape[1]
    is_small = n_rows <= settings.HELD_ROWS and width <= settings.PROVED_WIDTH
    if len(point) != 2 or problem.proportions is not None or not is_small:
        return False
    bounds = UpperBounds(problem, point)
    most_steps = settings.PROOF_WORK / (n_rows * width**2 + settings.PROOF_OVERHEAD)
    return bounds.are_tight and _Search(bounds).run(most_steps)


class ProofCell(NamedTuple):
    """Intervals of logit(r) and of log(v)."""

    r: tuple[float, float]
    v: tuple[float, float]

    @property
    def ends(self) -> tuple[list[float], list[float]]:
        """Ends of r and of v."""
        return expit(self.r).tolist(), np.exp(self.v).tolist()


class CellBound(NamedTuple):
    """Upper bound of the likelihood in a cell, and where it is attained."""

    value: float
    r: float
    v: float
    error_of_r: float  # part of the bound that is due to the width of the cell in r


class _Softened(NamedTuple):
    """The largest of several bounds, and a smooth upper bound of it with two derivatives."""

    worst: float
    value: float
    gradient: Array
    hessian: Array


class UpperBounds:
    """Upper bounds of the likelihood by multipliers (1 + rank + 1,): scores, and one for b'b.

    Coordinates of b are those in which the square term of the likelihood is diagonal.
    """

    def __init__(self, problem: Problem, point: Array) -> None:
        likelihood, held = problem.likelihood, hold_all(problem)
        counts, means = likelihood.counts, likelihood.means
        self.weight, self._keep = likelihood.weight, 1 - likelihood.shrinkage
        self._n, self._m = counts.tolist()
        self._prior = (
            (self._n, self._m) if likelihood.log_priors is None else (0.0, 0.0)
        )
        self._curvatures, axes = np.linalg.eigh(
            likelihood.within + (counts * means.T) @ means
        )
        self._first, self._total = counts[0] * means[0] @ axes, counts @ means @ axes
        self._row_weights, self._z = held.weights, held.z.copy()
        self._z[:, 1:] = held.z[:, 1:] @ axes
        self._labeled = np.append(
            held.labeled_point[0, 0], held.labeled_point[0, 1:] @ axes
        )
        value, gradient = likelihood.value_and_gradient(point)
        self.found, self.r, b = float(value), float(point[0, 0]), point[0, 1:] @ axes
        free = self.r * (1 - self.r) - float(b @ b)
        self.v = free / (self.r * (1 - self.r))
        loss = float(self._loss(self.r) + b @ (self._curvatures * b))
        loss -= 2 * float(b @ (self._first - self.r * self._total))
        self._constant = 0.0
        self._constant = (
            self.found + self.weight / 2 * math.log(self.v) - self._level(self.r)
        )
        self._constant += loss / (2 * self._keep * free)
        least = _LEAST_SPREAD * self.weight
        lead, pull = gradient[0] - gradient[1], loss / free - self._keep * self.weight
        self.start = np.concatenate([lead[:1], lead[1:] @ axes, [pull]])
        gram = np.diag(np.append(self.weight, self._curvatures.clip(least)))
        gram[0, 1:] = gram[1:, 0] = self._total
        along = np.append(self._n, self._first)
        self._least_loss = self._n - float(along @ np.linalg.solve(gram, along))
        # At the maximum the bound has to be concave in b.
        smallest = float(self._curvatures[0])
        self.are_tight = min(self._least_loss, smallest) > least and smallest + pull > 0

    def _loss(self, r: Any) -> Any:
        """Squared residuals of the constant r for the indicator of the first class."""
        return self.weight * r**2 - 2 * self._n * r + self._n

    def _level(self, r: Any) -> Any:
        """Part of the likelihood that depends on r alone."""
        (n, m), near = self._prior, self._n / r + self._m / (1 - r)
        return (
            self._constant + n * np.log(r) + m * np.log(1 - r) + near / (2 * self._keep)
        )

    def cells(self, target: float) -> list[ProofCell]:
        """Cells that cover all attainable points with a likelihood above ``target``."""
        ends = logit([self._labeled[0], self._labeled[0] + self._row_weights.sum()])
        middle = np.clip(logit(self.r), *ends)
        loss = 2 * self._least_loss / self._keep
        cells = []
        for cut in pairwise(
            np.unique([middle, *np.linspace(ends[0], ends[1], _COLUMNS + 1)])
        ):
            # The least loss bounds the likelihood for small v.
            first, last = expit(cut).tolist()
            most = self._constant + (self._n / first + self._m / (1 - last)) / (
                2 * self._keep
            )
            most += self._prior[0] * math.log(last) + self._prior[1] * math.log(
                1 - first
            )
            v = math.log(min(1.0, 2 * loss / self.weight))
            while most - self.weight / 2 * v - loss * math.exp(-v) > target:
                v -= 0.2
            cells += [
                ProofCell(cut, pair)
                for pair in pairwise(np.linspace(v, 0, 2 + int(-v)))
            ]
        return cells

    def at_places(
        self, multipliers: Array, r: Array, v: Array, tau: float
    ) -> _Softened:
        """Largest bound at places (r, v); tau softens the attainable set and the maximum."""
        scores, given = multipliers[:-1], self._curvatures + multipliers[-1]
        if not given[0] > 0:
            return _Softened(math.inf, math.inf, multipliers, multipliers)
        q, size = r * (1 - r), len(scores)
        k = 2 * self._keep * q * v
        b = self._first - np.outer(r, self._total) - np.outer(k, scores[1:] / 2)
        b /= given
        by_pull = q * (1 - v) / k
        values = self._level(r) - self.weight / 2 * np.log(v) - scores[0] * r
        values += (b**2 @ given - self._loss(r)) / k + multipliers[-1] * by_pull
        leads = self._z @ scores
        support = float(
            scores @ self._labeled + self._row_weights @ np.maximum(leads, 0)
        )
        decay, top = np.exp(-np.abs(leads) / tau), float(values.max())
        shares, barrier = np.exp((values - top) / tau), _BARRIER * tau
        value = support + top + tau * float(self._row_weights @ np.log1p(decay))
        value += tau * math.log(shares.sum()) - barrier * math.log(
            given[0] / self.weight
        )
        shares /= shares.sum()
        by_place = np.column_stack([-r, -b, by_pull - (b**2).sum(axis=1) / k])
        gradient = shares @ by_place
        apart = (by_place - gradient) * np.sqrt(shares / tau)[:, None]
        labels = np.where(leads >= 0, 1, decay) / (1 + decay)
        gradient[:size] += self._labeled + (self._row_weights * labels) @ self._z
        gradient[size] -= barrier / given[0]
        spread = self._row_weights * decay / (1 + decay) ** 2 / tau
        hessian, inner = apart.T @ apart, np.arange(1, size)
        hessian[:size, :size] += (self._z * spread[:, None]).T @ self._z
        hessian[inner, inner] += shares @ k / (2 * given)
        hessian[inner, size] += shares @ b / given
        hessian[size, inner] += shares @ b / given
        hessian[size, size] += shares @ (2 / k * (b**2 / given).sum(axis=1))
        hessian[size, size] += barrier / given[0] ** 2
        return _Softened(support + top, value, gradient, hessian)

    def improve(
        self, now: Array, r: Array, v: Array, target: float, most_steps: int
    ) -> tuple[float, Array, int]:
        """Lower the largest bound at places by Newton steps, to ``target`` if they suffice.

        Return the bound, its multipliers and the number of steps.
        """
        unit, damping = self.weight, 1e-9
        lack = max(self.at_places(now, r, v, unit).worst - target, 1e-6 * unit)
        least = min(max(0.03 * lack, 2e-7 * unit), 0.03 * unit)
        at, tau = self.at_places(now, r, v, lack), lack
        best, n_steps = (at.worst, now), 0
        while best[0] > target and n_steps < most_steps:
            n_steps += 1
            diagonal = at.hessian.diagonal()
            scale = np.append(np.full(len(now) - 1, diagonal[:-1].max()), diagonal[-1])
            step = -np.linalg.solve(at.hessian + np.diag(damping * scale), at.gradient)
            slope, ahead = (
                float(at.gradient @ step),
                self.at_places(now + step, r, v, tau),
            )
            if not ahead.value <= at.value + 0.1 * slope:
                damping = max(10 * damping, 1e-5)
                continue
            now, at, damping = now + step, ahead, max(0.1 * damping, 1e-9)
            best = min(best, (at.worst, now), key=lambda pair: pair[0])
            if -slope < 0.2 * (at.value + slope - tau - target):
                break
            if damping <= 1e-5 and tau > least:
                tau = max(least, 0.3 * tau)
                at = self.at_places(now, r, v, tau)
        return *best, n_steps

    def bound(self, multipliers: Array, cell: ProofCell) -> CellBound:
        """Upper bound in a cell by multipliers at which it is concave in b."""
        scores, pull, (n, m), keep = (
            multipliers[:-1],
            multipliers[-1],
            self._prior,
            self._keep,
        )
        given = self._curvatures + pull
        over, across = self._first / given, self._total / given
        # level(r) - N/2 log v + (a + b r + c r^2) / k + intercept + slope r + rise k bounds L.
        a, b = self._first @ over - self._n, 2 * (self._n - self._first @ across) + pull
        c = self._total @ across - self.weight - pull
        intercept = scores @ self._labeled - scores[1:] @ over - pull / (2 * keep)
        intercept += self._row_weights @ np.maximum(self._z @ scores, 0)
        slope, rise = (
            scores[1:] @ across - scores[0],
            scores[1:] @ (scores[1:] / given) / 4,
        )
        # Above its chord from end to end of r the bound is curved by a part that is constant in
        # v, one over v and one times v.
        (first, last), ends_of_v = cell.ends
        bend = (last - first) ** 2 / 8
        near = (self._n / last**3 + self._m / (1 - first) ** 3) / keep
        fixed = bend * max(0.0, n / first**2 + m / (1 - last) ** 2 - near)
        over_v = max(0.0, -a) / first**3 + max(0.0, -a - b - c) / (1 - last) ** 3
        over_v, times_v = bend * over_v / keep, bend * 4 * keep * rise
        found = []
        for r in (first, last):
            k = 2 * keep * r * (1 - r)
            level = self._level(r) + intercept + slope * r + fixed
            fall, growth = (a + b * r + c * r**2) / k + over_v, k * rise + times_v
            root = self.weight**2 / 4 + 4 * growth * fall
            peak = -2 * fall / (self.weight / 2 + math.sqrt(root)) if root >= 0 else 0.0
            for v in (*ends_of_v, min(max(peak, ends_of_v[0]), ends_of_v[1])):
                value = level - self.weight / 2 * math.log(v) + fall / v + growth * v
                found.append((float(value), r, v))
        value, r, v = max(found)
        return CellBound(value, r, v, fixed + over_v / v + times_v * v)


class _Search:
    """Cells whose bounds are above the target, the largest bound first."""

    def __init__(self, bounds: UpperBounds) -> None:
        self._bounds, self._nothing = bounds, np.zeros(len(bounds.start))
        self._tolerance = settings.GLOBAL_GAP * bounds.weight
        self._target, self._order = bounds.found + self._tolerance, count()
        self._cells: list[tuple[float, int, ProofCell, Array, CellBound]] = []
        for cell in bounds.cells(self._target):
            self._add(cell, bounds.start)

    def _add(self, cell: ProofCell, multipliers: Array) -> None:
        bound = self._bounds.bound(multipliers, cell)
        if not bound.value <= self._target:
            entry = -bound.value, next(self._order), cell, multipliers, bound
            heapq.heappush(self._cells, entry)

    def run(self, most_steps: float) -> bool:
        """Split cells until none is left; False if that takes too many steps."""
        while self._cells and most_steps > 0:
            _, _, cell, multipliers, bound = heapq.heappop(self._cells)
            widths = np.ptp(cell, axis=1)
            is_small = bool(widths.max() < _SMALL)
            multipliers, n_steps = self._improved(
                cell, multipliers, bound, is_small=is_small
            )
            most_steps -= 1 + n_steps
            bound = self._bounds.bound(multipliers, cell)
            lack = bound.value - self._target
            if lack <= 0:
                continue
            if widths.max() < _SMALLEST:
                return False
            kind = (
                "r" if bound.error_of_r > 0.5 * lack or widths[0] > widths[1] else "v"
            )
            low, high = getattr(cell, kind)
            for half in pairwise((low, (low + high) / 2, high)):
                self._add(cell._replace(**{kind: half}), multipliers)
        return not self._cells

    def _improved(
        self, cell: ProofCell, multipliers: Array, bound: CellBound, *, is_small: bool
    ) -> tuple[Array, int]:
        """Multipliers that bound a cell better, and the number of Newton steps to them."""
        places = dict.fromkeys([*product(*cell.ends), (bound.r, bound.v)])
        r, v = (np.array(each) for each in zip(*places, strict=True))
        choices = [multipliers, self._bounds.start, self._nothing]
        values = [
            self._bounds.at_places(x, r, v, self._tolerance).worst for x in choices
        ]
        aim, worst, n_all = self._target - 0.1 * self._tolerance, math.inf, 0
        for i in np.argsort(values):
            lack = worst - self._target
            if lack <= 0 or (not is_small and values[i] - self._target > 5 * lack):
                break
            lowered, changed, n_steps = self._bounds.improve(
                choices[i], r, v, aim, _STEPS[is_small]
            )
            n_all += n_steps
            if lowered < worst:
                worst, multipliers = lowered, changed
        return multipliers, n_all
