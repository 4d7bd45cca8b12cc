"""
What can a fit lose?
====================

Nobody knows the labels of the unlabeled rows, but the worst case over all of them can
be computed: ``gain_bounds`` gives the smallest and the largest change of the likelihood
of the training rows from supervised LDA to a fit, over all labelings. The bars span
both, the dot is the change with the true labels, which only this example knows.
``PessimisticLDA`` is the fit whose worst case is best: its bar never begins below 0.
The bounds are about the training rows, and about likelihood, not error.
"""

import matplotlib.pyplot as plt
import numpy as np

import iclda
from iclda.methods import METHODS

rng = np.random.default_rng(3)
y_true = np.arange(1000) % 2
X = rng.normal(size=(1000, 4)) + y_true[:, None]

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, n_labeled in zip(axes, (12, 60), strict=True):
    y = np.where(np.arange(1000) < n_labeled, y_true, -1)
    before = iclda.SupervisedLDA().fit(X, y).log_likelihood(X, y_true).mean()
    methods = [method for method in METHODS if method.uses_unlabeled]
    for place, method in enumerate(methods):
        clf = method.classifier().fit(X, y)
        bounds = clf.gain_bounds(X, y)
        color = {"color": method.color, "solid_capstyle": "butt"}
        ax.plot(
            [bounds.worst, bounds.best], [place, place], linewidth=9, alpha=0.5, **color
        )
        ax.plot(
            clf.log_likelihood(X, y_true).mean() - before,
            place,
            "o",
            color=method.color,
        )
    ax.axvline(0, color="k", linewidth=0.8)
    ax.set_yticks(range(len(methods)), [method.class_name for method in methods])
    ax.locator_params(axis="x", nbins=6)
    ax.set_xlabel("change of the log likelihood per training row")
    ax.set_title(
        f"{n_labeled} labels: from worst to best labels", loc="left", fontsize=10
    )
plt.show()
