"""
Where do unlabeled rows move the boundary?
==========================================

Six labeled rows give a poor estimate of the covariance of two long, narrow classes. The
supervised fit uses these rows only. Implicitly constrained LDA chooses among the fits
that some labeling of the other rows would give, and these fits reflect the direction in
which the classes are long. Its error is lower in 41 of 60 samples like this one, and
0.032 instead of 0.066 on average.
"""

import matplotlib.pyplot as plt
import numpy as np

from iclda import ImplicitlyConstrainedLDA, SupervisedLDA
from iclda.plots import DecisionBoundaryDisplay

rng = np.random.default_rng(2)
y_true = np.arange(600) % 2
X = rng.normal(size=(600, 2)) @ [[1.6, 1.2], [0.0, 0.6]] + y_true[:, None] * [1.4, -1.4]
# -1 marks an unlabeled row.
y = np.where(np.arange(600) < 6, y_true, -1)

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.0), layout="constrained", sharey=True)
for ax, classifier in zip(
    axes, (SupervisedLDA(), ImplicitlyConstrainedLDA()), strict=True
):
    classifier.fit(X, y)
    DecisionBoundaryDisplay.from_estimator(
        classifier, X, y, ax=ax, legend=ax is axes[-1]
    )
    error = 1 - classifier.score(X, y_true)
    ax.set_title(
        f"{type(classifier).__name__}: error {error:.3f}", loc="left", fontsize=10
    )
axes[1].set_ylabel("")
plt.show()
