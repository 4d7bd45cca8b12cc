"""Experiments on many splits: planned, run, kept and reported."""
