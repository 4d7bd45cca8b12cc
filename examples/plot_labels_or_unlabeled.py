"""
More labels, or more unlabeled rows?
====================================

Each line has a fixed number of labels; along it the number of unlabeled rows grows.
Read across for what an unlabeled row is worth, and down for what a label is worth: here
40 labels with 640 unlabeled rows do better than 80 labels alone, and with 160 labels
unlabeled rows hardly matter. ``semi_supervised_learning_curve`` computes the same for
your data, as far as its labels reach.
"""

import matplotlib.pyplot as plt
import numpy as np

from iclda import ExpectationMaximizationLDA
from iclda.model_selection import SemiSupervisedKFold, semi_supervised_learning_curve

rng = np.random.default_rng(0)
y = np.arange(1600) % 2
X = rng.normal(size=(1600, 10)) + 0.7 * y[:, None]

figure, ax = plt.subplots(figsize=(7.6, 4.4), layout="constrained")
sizes = [0, 40, 80, 160, 320, 640]
for shade, n_labeled in zip((0.25, 0.45, 0.7, 1.0), (20, 40, 80, 160), strict=True):
    curve = semi_supervised_learning_curve(
        ExpectationMaximizationLDA(tol=1e-7),
        X,
        y,
        n_labeled=n_labeled,
        n_unlabeled=sizes,
        cv=SemiSupervisedKFold(2, n_repeats=12, random_state=0),
        random_state=0,
    )
    error = 1 - curve.mean
    band = curve.standard_error
    ax.plot(range(len(sizes)), error, "o-", color="#d55e00", alpha=shade, linewidth=2)
    ax.fill_between(
        range(len(sizes)), error - band, error + band, color="#d55e00", alpha=0.07
    )
    ax.text(len(sizes) - 0.85, error[-1], f"{n_labeled} labels", va="center")
ax.set_xticks(range(len(sizes)), sizes)
ax.set_yscale("log")
ax.set_yticks([0.14, 0.16, 0.2, 0.25], ["0.14", "0.16", "0.20", "0.25"], minor=False)
ax.yaxis.set_minor_locator(plt.NullLocator())
ax.set(xlabel="unlabeled rows", ylabel="error on other rows", xlim=(-0.2, len(sizes)))
ax.spines[["top", "right"]].set_visible(False)
plt.show()
