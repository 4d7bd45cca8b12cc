"""Paired differences of one method to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._core.types import Array
from .._statistics import corrected_standard_error, mean_interval
from ._look import is_supervised


@dataclass(frozen=True)
class PairedDifference:
    """Scores of a method less those of the baseline in the same repeats."""

    values: Array
    greater_is_better: bool = True

    @cached_property
    def mean(self) -> float:
        """Mean difference."""
        return float(np.mean(self.values))

    @cached_property
    def standard_error(self) -> float:
        """Its standard error; NaN below two differences."""
        return corrected_standard_error(self.values)

    @property
    def gain(self) -> float:
        """Mean difference for the better."""
        return self.mean if self.greater_is_better else -self.mean

    @property
    def n_worse(self) -> int:
        """Number of differences for the worse."""
        losses = self.values < 0 if self.greater_is_better else self.values > 0
        return int(losses.sum())

    def interval(self, confidence: float) -> tuple[float, float]:
        """Confidence interval of the mean, by Student's t; one point below two differences."""
        return mean_interval(self.values, confidence)


def pair(scores: Mapping[str, Any], baseline: str | None) -> tuple[str, dict[str, Array]]:
    """The baseline, and by method the differences to it that are finite."""
    values = {str(name): np.asarray(one, dtype=np.float64) for name, one in scores.items()}
    baseline = _baseline(list(values), baseline)
    differences = {}
    for name, one in values.items():
        if one.ndim != 1 or len(one) != len(values[baseline]):
            raise ValueError(
                "scores must hold one number a repeat for every method, paired with the "
                f"{len(values[baseline])} of {baseline!r}; {name!r} has shape {one.shape}."
            )
        if name != baseline:
            difference = one - values[baseline]
            differences[name] = difference[np.isfinite(difference)]
            if differences[name].size == 0:
                raise ValueError(
                    f"{name!r} has no finite score in a repeat in which {baseline!r} has one."
                )
    return baseline, differences


def _baseline(methods: list[str], given: str | None) -> str:
    if len(methods) < 2:
        raise ValueError(f"There must be at least 2 methods to compare, got {methods}.")
    if given is None:
        return next((name for name in methods if is_supervised(name)), methods[0])
    if given not in methods:
        raise ValueError(f"baseline must be one of {methods}, got {given!r}.")
    return given
