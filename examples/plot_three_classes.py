"""
What do three classes, and seven, look like?
============================================

Nothing changes in the code: all classifiers take any number of classes. With more than
two features the display draws the plane of the two discriminants that separate the
classes best. For up to three classes the regions in that plane are exact; for more they
are a slice through it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from iclda import ImplicitlyConstrainedLDA
from iclda.model_selection import mask_labels
from iclda.plots import DecisionBoundaryDisplay

wine = load_wine()
rng = np.random.default_rng(7)
y_seven = np.arange(700) % 7
around = np.column_stack(
    [np.cos(2 * np.pi * y_seven / 7), np.sin(2 * np.pi * y_seven / 7)]
)
X_seven = np.column_stack([3.2 * around, np.zeros((700, 2))]) + rng.normal(
    size=(700, 4)
)
problems = {
    "Wines of three growers, 15 labels": (wine.data, wine.target, 15),
    "Seven classes in four dimensions, 35 labels": (X_seven, y_seven, 35),
}

figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained")
for ax, (title, (X, y_true, n_labeled)) in zip(axes, problems.items(), strict=True):
    y = mask_labels(y_true, n_labeled, min_per_class=4, random_state=0)
    pipeline = make_pipeline(
        StandardScaler(), ImplicitlyConstrainedLDA(shrinkage=0.1)
    ).fit(X, y)
    DecisionBoundaryDisplay.from_estimator(pipeline, X, y, ax=ax)
    error = 1 - pipeline.score(X, y_true)
    ax.set_title(f"{title}: {100 * error:.1f} % wrong", loc="left", fontsize=10)
plt.show()
