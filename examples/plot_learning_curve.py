"""
How many unlabeled rows are enough?
===================================

The plot shows the error against the number of unlabeled rows, with 20 labels. All
methods are fitted to the same labeled rows and tested on the same rows at every point,
so that the lines can be compared point by point. Bands are one standard error.
"""

import matplotlib.pyplot as plt
import numpy as np

from iclda import (
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    MomentConstrainedLDA,
    SelfLearningLDA,
    SupervisedLDA,
)
from iclda.model_selection import SemiSupervisedKFold, semi_supervised_learning_curve
from iclda.plots import LearningCurveDisplay

rng = np.random.default_rng(0)
y = np.arange(1400) % 2
X = rng.normal(size=(1400, 8)) + 0.8 * y[:, None]

methods = {
    "SupervisedLDA": SupervisedLDA(),
    "SelfLearningLDA": SelfLearningLDA(),
    "ExpectationMaximizationLDA": ExpectationMaximizationLDA(tol=1e-7),
    "MomentConstrainedLDA": MomentConstrainedLDA(),
    "ImplicitlyConstrainedLDA": ImplicitlyConstrainedLDA(n_starts=4),
}
settings = {
    "n_labeled": 20,
    "n_unlabeled": [0, 10, 40, 160, 640],
    "cv": SemiSupervisedKFold(2, n_repeats=5, random_state=0),
    "random_state": 0,
}
curves = {
    name: semi_supervised_learning_curve(method, X, y, **settings)
    for name, method in methods.items()
}
LearningCurveDisplay.from_curve(curves, as_error=True)
plt.show()
