"""The experiments of the paper, run again and compared with its numbers.

- ``design`` has the data sets, methods and sizes of its experiments.
- ``published`` reads its numbers.
- ``run`` draws the splits, fits the methods and stores a row for each fit.
- ``stored_settings`` reads the settings that a run stores with its rows.
- ``summary`` turns rows into the cells of the tables and the points of the curves.
- ``report`` draws the figures and writes the report.

The folder ``research`` of the repository builds on ``run`` to answer the questions that
the paper leaves open.
"""
