"""
Which labels does the fit choose, and what separates them?
==========================================================

Implicitly constrained LDA gives every unlabeled row the label that makes the labeled
rows likelier. The gain of a label is an affine function of the row, so at the optimum a
hyperplane separates the labels, and only the few rows that lie on it belong to both
classes. That hyperplane is not the decision boundary: the labels say how the covariance
and the means should be, not which class a row probably has.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from iclda import ImplicitlyConstrainedLDA
from iclda.plots import DecisionBoundaryDisplay

rng = np.random.default_rng(2)
y_true = np.arange(400) % 2
X = rng.normal(size=(400, 2)) @ [[1.6, 1.2], [0.0, 0.6]] + y_true[:, None] * [1.4, -1.4]
# -1 marks an unlabeled row.
y = np.where(np.arange(400) < 8, y_true, -1)

clf = ImplicitlyConstrainedLDA().fit(X, y)
unlabeled = X[y == -1]
is_hard = clf.responsibilities_.max(axis=1) > 0.999
labels = clf.responsibilities_.argmax(axis=1)
separator = SVC(kernel="linear", C=1e9).fit(unlabeled[is_hard], labels[is_hard])
n_right = np.sum(separator.predict(unlabeled[is_hard]) == labels[is_hard])
print(f"The hyperplane separates {n_right} of {is_hard.sum()} rows with a hard label;")
print(f"both classes share {np.sum(~is_hard)} rows, with a ring.")

ax = DecisionBoundaryDisplay.from_estimator(clf, X, y).ax_
limits = ax.get_xlim(), ax.get_ylim()
ends = np.array(limits[1])
a, b = separator.coef_[0]
c = separator.intercept_[0]
ax.plot(-(c + b * ends) / a, ends, "k--", linewidth=1.2)
ax.scatter(
    *unlabeled[~is_hard].T, s=90, facecolors="none", edgecolors="k", linewidths=1.4
)
ax.set(xlim=limits[0], ylim=limits[1])
ax.set_title(
    "Dashed: between the labels. Solid: decision boundary.", loc="left", fontsize=10
)
plt.show()
