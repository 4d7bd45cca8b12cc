"""Experiments on the questions that the paper leaves open; see ``README.md``."""
