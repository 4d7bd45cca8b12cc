"""Runs made up for the tests of what is done with them."""

from suite.rows import Row, Run

MACHINE = {"processor": "abacus", "cores": 2, "blas": "beads 1.0"}


def row(seconds=1.0, unit_seconds=0.1, **changes):
    sizes = {
        "n_unlabeled": 1_000_000,
        "n_features": 50,
        "n_classes": 2,
        "n_labeled": 100,
    }
    measured = {"seconds": seconds, "unit_seconds": unit_seconds}
    return Row(**{"case": "large", "method": "ICLDA", **sizes, **measured, **changes})


def run_of(*rows, **machine):
    return Run(
        {**MACHINE, "memory_gib": 24, "system": "x", **machine},
        {"python": "3"},
        rows=list(rows),
    )
