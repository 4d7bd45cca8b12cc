"""The benchmark suite: cases, timing, rows, tables, figure, comparison."""
