"""Experiments on many splits: those of the paper, and comparisons on users' tables.

Both studies, ``paper`` and ``compare``, share the modules of this folder:

- ``engine`` fits the methods on many splits, on several processes.
- ``store`` keeps the rows, one for each fit, in an SQLite file.
- ``measures`` lists what is measured on the test rows of a fit.
- ``page`` makes reports and figures.

``evaluation`` judges a fitted model on the rows of a file, for ``iclda evaluate``.
"""
