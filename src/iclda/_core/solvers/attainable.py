"""The attainable set: the points (r, B) that soft labelings of the unlabeled rows give.

A point is an array (K, 1 + rank): row k holds the weight of class k and the sum of the
whitened rows z in it, labeled and unlabeled rows together, both over the total weight
N. The set of all attainable points is a convex polytope.

``scores`` c, (K, 1 + rank) too, label a row z by softmax of the K numbers c_k' z~,
where z~ = (1, z). Finite scores give all points of the interior of the set; a face is
reached in the limit of large scores. The maximum of a linear function over the set
labels every row by its largest score, which takes one pass over the rows.

Solvers know an ``AttainableSet`` only by this protocol. It promises the point of a soft
or a hard labeling, the derivative of that point by the scores, and the linear maximum;
``HeldRows`` promises a little more. Whether rows are in memory (``held``), on a device
(``on_device``) or read in every pass (``streamed``), and whether the classes have
quotas (``quota_sets``), is decided in ``sets`` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import AnyArray, Array
from ..rows import near_boundary

# Rows near boundaries are copied if they are fewer than this share of all rows.
_MAX_COPIED_SHARE = 0.6


class Shift(NamedTuple):
    """Numbers added to the first column of scores so that labels fill quotas.

    Attributes
    ----------
    values : (K,) the numbers
    score_range : largest range, over classes, of the scores of a row
    rows : the ``QuotaSet`` on which they were found
    """

    values: Array
    score_range: float
    rows: Any


def shifted(scores: Array, shift: Array) -> Array:
    """Add shifts (..., K) to the first column of scores (..., K, 1 + rank)."""
    moved = scores.copy()
    moved[..., 0] += shift
    return moved


@dataclass(eq=False, kw_only=True)
class SoftLabels:
    """Soft labels of all rows, known by their sums.

    Attributes
    ----------
    scores : (K, 1 + rank) scores whose softmax are the labels, with quotas after the
        shift
    point : (K, 1 + rank) the point that the labels attain
    log_sum : weighted sum over rows of log-sum-exp of the scores, over N; with quotas
        the dual function, which takes its place
    shift : with quotas, where the search for the shift of similar scores starts
    are_filled : False if quotas are left unfilled
    """

    scores: Array
    point: Array
    log_sum: float
    shift: Shift | None = None
    are_filled: bool = True


@dataclass(eq=False, kw_only=True)
class Labeling(SoftLabels):
    """Soft labels with J, the derivative of the point by the scores.

    J is the sum over rows of w (diag g - g g') x z~ z~' (a Kronecker product), with the
    weight w of a row, its shares g (K,) in the classes and z~ = (1, z). Rows whose
    labels are hard add nothing, so that only rows near class boundaries are summed.

    Attributes
    ----------
    rows : the set of the rows that are held, which J is formed from
    shares : (K, n) their shares; of two classes (1, n), the shares in the second
    is_thinned : whether only some rows near boundaries are held, with larger weights
    """

    rows: Any
    shares: Any
    is_thinned: bool = False

    @cached_property
    def near(self) -> tuple[Any, Any, Any]:
        """Rows near a class boundary, their weights and their shares."""
        z = self.rows.z
        weights = self.rows.weights
        near = near_boundary(self.shares)
        if len(near) > _MAX_COPIED_SHARE * len(z):
            # Rows that are far add nothing, but cost less than copies of the others.
            return z, weights, self.shares
        return z[near], weights[near], self.shares[:, near]

    @property
    def n_near(self) -> int:
        """Number of rows near a boundary."""
        return len(self.near[0])

    @property
    def n_read_for_shift(self) -> float:
        """Numbers that were read to find a shift."""
        return 0.0

    @cached_property
    def _weighted_shares(self) -> Any:
        _, weights, shares = self.near
        return shares * weights

    @cached_property
    def _spread_of_two(self) -> Array:
        """w g (1 - g) of every row near the boundary of two classes."""
        _, weights, shares = self.near
        return np.asarray(weights * shares[0] * (1 - shares[0]))

    def product(self, direction: Array) -> Array:
        """Return J times a direction (K, 1 + rank): the change of the point."""
        z, _, shares = self.near
        if len(shares) == 1:
            # What one class wins the other one loses: a product for one is enough.
            lead_changes = z @ (direction[1] - direction[0])
            second = (self._spread_of_two * lead_changes) @ z
            return np.array([-second, second])
        # The change of the scores of every row becomes that of its shares.
        change = np.asarray(direction) @ z.T
        change -= np.einsum("kn,kn->n", shares, change)
        change *= self._weighted_shares
        return np.asarray(change @ z)

    def matrix(self) -> Array:
        """Return J as a matrix, for the scores of all classes but the last."""
        n_free = len(self.point) - 1
        width = self.point.shape[1]
        if n_free == 1:
            return self._between(1, 0)
        # Block (k, j) is minus what classes k and j share; a block of the diagonal is
        # the sum of what its class shares with all others.
        blocks = np.zeros((n_free, width, n_free, width))
        for k in range(n_free + 1):
            for j in range(k):
                between = self._between(k, j)
                blocks[j, :, j] += between
                if k < n_free:
                    blocks[k, :, k] += between
                    blocks[k, :, j] = -between
                    blocks[j, :, k] = -between
        return blocks.reshape(n_free * width, n_free * width)

    def _between(self, k: int, j: int) -> Array:
        """Return the sum over rows of w g_k g_j z~ z~', (1 + rank, 1 + rank)."""
        z, _, shares = self.near
        if len(shares) == 1:
            spread = self._spread_of_two
        else:
            spread = self._weighted_shares[k] * shares[j]
        scaled = z * np.sqrt(spread)[:, None]
        return np.asarray(scaled.T @ scaled)

    def factor(self) -> Array | None:
        """Return C, (m, K, 1 + rank), whose products C C' add up to J: K for each row.

        None if J is not a sum over rows in memory.
        """
        z, weights, shares = self.near
        if len(shares) == 1:
            shares = np.vstack([1 - shares, shares])
        n_classes = len(shares)
        root = np.sqrt(shares)
        # With r = sqrt(g), I - r r' is a projection: diag(r) (I - r r') is a root of
        # diag g - g g', for every row.
        deviations = np.eye(n_classes)[..., None] - root[:, None] * root
        spread = root[:, None] * deviations
        columns = np.einsum("jkn,nd->nkjd", spread * np.sqrt(weights), z)
        return np.asarray(columns.reshape(-1, n_classes, z.shape[1]))

    @cached_property
    def local_set(self) -> Any:
        """The set of the held rows, with the labels of all other rows fixed."""
        return self.rows.with_others_fixed(self)


class AttainableSet(Protocol):
    """The attainable set of some rows, as solvers see it.

    A ``warm_start`` are the labels by similar scores, which save time.
    """

    @property
    def labeled_point(self) -> Array:
        """Contribution (K, 1 + rank) of the labeled rows to every point."""

    @property
    def n_passes(self) -> int:
        """Passes over all rows so far; none if they are held."""

    def label(self, scores: Array, warm_start: SoftLabels | None = None) -> Labeling:
        """Label the rows by softmax of the scores, with the derivative of the point."""

    def soft_labels(
        self, scores: Array, warm_start: SoftLabels | None = None
    ) -> SoftLabels:
        """Label the rows by softmax of the scores."""

    def hard_point(self, scores: Array) -> Array:
        """Return the point of labels by the largest score."""

    def support(self, direction: Array, labels: SoftLabels | None = None) -> float:
        """Return the maximum over the set of direction'(point - labeled point).

        ``labels`` attain the point where the direction is the gradient. With
        quotas on rows that are read in passes it is an upper bound, which is infinite
        without them.
        """


class HeldRows(AttainableSet, Protocol):
    """The attainable set of rows that are held, in memory or on a device.

    The place (``Place`` of the backends) is where arrays with an axis of rows are.
    """

    @property
    def place(self) -> Any:
        """Where the rows are held."""

    @property
    def weights(self) -> Array:
        """Weights (n,) of the rows, over N."""

    @property
    def placed_weights(self) -> Any:
        """The weights, at the place."""

    @property
    def n_read_by_labeling(self) -> int:
        """Numbers that are read to label all rows by softmax."""

    def soft_points(self, scores: Array) -> tuple[Array, Array]:
        """Return the points and the log sums of a stack of scores (S, K, 1 + rank)."""

    def scores_of_rows(self, scores: Array) -> Array:
        """Return the score of every row in each class, (K, n)."""

    def placed_scores(self, scores: Array) -> Any:
        """Return the same (..., K, n) of scores (..., K, 1 + rank), at the place."""

    def shares(self, scores: Array) -> Array:
        """Return the soft shares (K, n) of the rows.

        For two classes they are (1, n), the shares in the second.
        """

    def spread(self, gradient: Array) -> float:
        """Return the spread of a gradient.

        It is the root mean square over rows of the range over classes of
        gradient_k' z~.
        """

    def label_among(self, labels: SoftLabels, *, is_thinned: bool) -> Labeling:
        """Return given labels of all rows with J, formed from the held rows."""


def gap(
    rows: AttainableSet, point: Array, gradient: Array, labels: SoftLabels | None = None
) -> float:
    """Return the first-order gap: the maximum over the set of gradient'(v - point).

    It is zero at a stationary point, and never negative. ``labels`` attain the point,
    if they are known.
    """
    attained = float(np.vdot(gradient, point - rows.labeled_point))
    return max(0.0, rows.support(gradient, labels) - attained)


def weighted_spread(ranges: AnyArray, weights: Array) -> float:
    """Return the weighted root mean square over rows."""
    return float(np.sqrt(weights @ ranges**2 / weights.sum()))
