"""Backends: sums over rows in memory, in files, on a device or on a cluster."""
