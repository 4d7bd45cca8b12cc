"""The cost model of docs/performance.md: prices of passes in units of X'X."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from .rows import Row

# For the moments.
_OTHER_PASSES = 1


def pass_costs(rows: Sequence[Row], case: str = "large") -> dict[str, float]:
    """Moments, a hard and a soft labeling pass, and what ICLDA spends besides.

    The moment-constrained fit is one pass for the moments and next to nothing else; all
    further passes of self-learning label hard, all of EM softly. Medians over seeds.
    """
    prices: dict[str, list[float]] = {
        "moments": [],
        "hard pass": [],
        "soft pass": [],
        "rest": [],
    }
    for seed in {row.seed for row in rows if row.case == case}:
        chosen = {
            r.method: r for r in rows if (r.case, r.seed) == (case, seed) and r.ratio
        }
        if {"MCLDA", "SLLDA", "EMLDA", "ICLDA"} <= chosen.keys():
            for name, price in _prices(chosen).items():
                prices[name].append(price)
    return {
        name: statistics.median(values) for name, values in prices.items() if values
    }


def _prices(fits: dict[str, Row]) -> dict[str, float]:
    units = {method: row.ratio or 0.0 for method, row in fits.items()}
    labeling = {
        method: (row.n_passes or 0) - _OTHER_PASSES for method, row in fits.items()
    }
    moments = units["MCLDA"]
    soft = (units["EMLDA"] - moments) / max(1, labeling["EMLDA"])
    return {
        "moments": moments,
        "hard pass": (units["SLLDA"] - moments) / max(1, labeling["SLLDA"]),
        "soft pass": soft,
        "rest": units["ICLDA"] - moments - max(0, labeling["ICLDA"]) * soft,
    }
