"""What a backend supplies: three sums over its rows, and the shares of every row."""

from __future__ import annotations

from typing import Protocol

from .frame import Frame
from .labelsums import LabelSums, Rule
from .moments import Moments
from .types import AnyArray, Array


class Rows(Protocol):
    """Weighted rows that can be read again and again. Sums come back in frame coordinates."""

    @property
    def n_rows(self) -> int:
        """A large guess until the first pass where only a read tells; 0 once nothing was found."""
        ...

    @property
    def n_features(self) -> int: ...

    def moments(self, frame: Frame) -> Moments:
        """Weight, mean and scatter of all rows."""
        ...

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        curvature: int | AnyArray = 0,
    ) -> LabelSums:
        """Class weights and sums under a rule; on request scatter about centers, or curvature.

        ``curvature`` n > 0: from about every n-th of the rows near a boundary, which stands for n;
        or (K, K) such numbers for any two classes, zero if rows between them may be left out.
        """
        ...

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        """At most ``n`` rows in the user's units, with weights that add up to those of all.

        With n of ``n_rows`` or more: all of them, in their order, with their own weights. NaN and
        infinity in what is read are a ValueError that names row and column.
        """
        ...

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        """Shares of every row in each class, in the order of the rows."""
        ...
