"""What is fast, measured against what: cases, timing, rows, tables, figure, comparison."""
