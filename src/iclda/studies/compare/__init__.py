"""Comparisons of methods on people's tables: ``iclda compare``.

A plan (what was asked for) and its table give the settings and the splits; cells are
fitted and stored; a summary, a recommendation and a verdict follow from the stored rows
alone; the terminal and the report show them. ``api`` has all of it as one function.
"""
