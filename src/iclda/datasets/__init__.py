"""Toy problems, benchmark sets of the paper, and features of pictures."""

from ._benchmarks import (
    BENCHMARKS,
    Benchmark,
    Dataset,
    find_benchmark,
    load_benchmark,
)
from ._features import load_fashion_features
from ._gaussians import make_gaussians, make_violated_gaussians

__all__ = [
    "BENCHMARKS",
    "Benchmark",
    "Dataset",
    "find_benchmark",
    "load_benchmark",
    "load_fashion_features",
    "make_gaussians",
    "make_violated_gaussians",
]
