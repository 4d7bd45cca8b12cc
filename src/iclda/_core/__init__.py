"""The mathematics of all methods, and the array types that every module uses.

Nothing here knows scikit-learn, files or devices. Which module to open for what:

    frame        the origin and the unit of every feature, in which all sums are formed
    moments      weight, mean and scatter of rows; whitened coordinates
    labelsums    rules that label rows, and the class weights and class sums they give
    rows         the protocol of a backend; which rows lie near class boundaries
    problem      one fit to solve: labeled rows in summary, unlabeled rows to be read
    likelihood   the labeled likelihood of a point (r, B), with two derivatives
    gaussian     a fitted model: its linear scores and densities
    rowspace     few rows of many features: solve in their span, lift the model
    solvers      one method per module; ``solvers/__init__`` says how iterations end

The symbols are those of docs/notation.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
AnyArray = NDArray[Any]
