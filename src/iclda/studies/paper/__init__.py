"""The experiments of the paper, run again and compared with its numbers.

- ``design`` has the data sets, methods and sizes of its experiments.
- ``published`` reads its numbers.
- ``splits`` loads the data sets and splits them into labeled, unlabeled and test rows.
- ``fits`` fits the methods.
- ``run`` does both for every cell, and stores a row for each fit.
- ``stored_settings`` reads the settings that a run stores with its rows.
- ``summary`` turns rows into the cells of the tables and the points of the curves.
- ``marks`` has the rule by which the paper sets cells in bold and underlines them.
- ``sentences`` checks what the paper says about its tables.
- ``surrogate`` compares differences in loss with differences in error.
- ``report`` draws the figures and writes the report.

The folder ``research`` of the repository builds on these to answer the questions that
the paper leaves open.
"""
