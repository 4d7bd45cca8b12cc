"""Toy problems, benchmark sets of the paper, pictures, vowels, and customers."""

from ._benchmarks import (
    BENCHMARKS,
    Benchmark,
    Dataset,
    find_benchmark,
    load_benchmark,
)
from ._customers import load_customers
from ._features import load_fashion_features
from ._gaussians import make_gaussians, make_violated_gaussians
from ._vowels import load_vowels

__all__ = [
    "BENCHMARKS",
    "Benchmark",
    "Dataset",
    "find_benchmark",
    "load_benchmark",
    "load_customers",
    "load_fashion_features",
    "load_vowels",
    "make_gaussians",
    "make_violated_gaussians",
]
