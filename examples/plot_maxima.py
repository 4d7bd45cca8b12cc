"""
How many maxima has one problem?
================================

Every labeling of the unlabeled rows gives a fit, and a likelihood of the labeled rows
under it. The picture shows this likelihood for all labelings by a half plane: its
direction on one axis, the number of rows in class 1 on the other. With two labels a
class there are several hills; dots mark the highest. A single start climbs the one on
which it happens to stand; ``ImplicitlyConstrainedLDA`` starts from 32 places, and
``n_optima_`` counts the maxima that it followed to the end. The star is the fit that it
returns, the best of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import center_of_mass, label, maximum_filter

from iclda import ImplicitlyConstrainedLDA, SupervisedLDA

rng = np.random.default_rng(40)
y_true = np.arange(24) % 2
X = rng.normal(size=(24, 2)) + 0.5 * y_true[:, None]
# -1 marks an unlabeled row.
y = np.where(np.arange(24) < 4, y_true, -1)
labeled = X[:4]
unlabeled = X[4:]
clf = ImplicitlyConstrainedLDA().fit(X, y)


def likelihood(labels):
    """Log likelihood of the labeled rows, per row, if the others have these labels."""
    fit = SupervisedLDA().fit(X, np.concatenate([y[:4], labels]))
    return fit.log_likelihood(labeled, y[:4]).mean()


angles = np.arange(0, 360, 3)
counts = np.arange(21)
height = np.empty((len(counts), len(angles)))
for i, angle in enumerate(np.radians(angles)):
    order = np.argsort(unlabeled @ [np.cos(angle), np.sin(angle)])
    for count in counts:
        labels = np.zeros(20, dtype=int)
        labels[order[20 - count :]] = 1
        height[count, i] = likelihood(labels)

figure, ax = plt.subplots(figsize=(8.4, 4.6), layout="constrained")
levels = np.linspace(height.max() - 1.5, height.max(), 31)
drawn = ax.contourf(angles, counts, height, levels, cmap="cividis", extend="min")
figure.colorbar(
    drawn, label="log likelihood of the labeled rows, per row", format="%.1f"
)
is_top = maximum_filter(height, size=(5, 15), mode=("nearest", "wrap")) == height
plateaus, n_hills = label(is_top & (height > height.max() - 0.7))
tops = np.array(center_of_mass(plateaus > 0, plateaus, range(1, n_hills + 1)))
ax.scatter(3 * tops[:, 1], tops[:, 0], s=60, color="w", edgecolor="k")
share = clf.responsibilities_[:, 1]
x, up = share @ (unlabeled - unlabeled.mean(axis=0))
angle = np.degrees(np.arctan2(up, x)) % 360
ax.scatter(angle, share.sum(), s=260, marker="*", color="w", edgecolor="k", zorder=3)
ax.set_yticks(range(0, 21, 5))
ax.set(xlabel="direction of class 1 (degrees)", ylabel="unlabeled rows in class 1")
ax.set_title(
    f"n_optima_ = {clf.n_optima_}, objective_ = {clf.objective_:.2f}", loc="left"
)
plt.show()
