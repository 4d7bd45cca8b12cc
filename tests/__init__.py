"""Tests of the package; what several of them share is in ``helpers``."""
