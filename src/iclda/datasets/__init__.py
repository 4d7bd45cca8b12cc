"""Toy problems, and the benchmark sets of the paper with their sources and licenses."""

from .benchmark import Dataset, find_benchmark, load_benchmark
from .registry import BENCHMARKS, Benchmark
from .toy import make_gaussians, make_violated_gaussians

__all__ = [
    "BENCHMARKS",
    "Benchmark",
    "Dataset",
    "find_benchmark",
    "load_benchmark",
    "make_gaussians",
    "make_violated_gaussians",
]
