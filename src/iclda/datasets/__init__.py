"""Toy problems, and the benchmark sets of the paper with their sources and licenses."""

from .benchmarks import (
    BENCHMARKS,
    Benchmark,
    Dataset,
    find_benchmark,
    load_benchmark,
    load_fashion_features,
    make_gaussians,
    make_violated_gaussians,
)

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
