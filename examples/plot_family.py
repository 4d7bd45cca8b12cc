"""
What does each member of the family make of the same rows?
==========================================================

Eight labeled rows of two long classes, and 292 rows without a label. Every panel is one
classifier: rows in the color of the class that it gives them, its boundary, and the
share of all 300 rows that it gets wrong. Eight rows show LDA and least squares the
direction of the classes only roughly, and the other rows correct it, by a little or by
much. Nearest means cannot see a direction, and with EM they find two halves of the long
axis. Neighbors differ by about as much in all directions, which draws SDA toward
nearest means. This is one sample of one problem, and no ranking; ``iclda compare``
makes one of your table.
"""

import matplotlib.pyplot as plt
import numpy as np

from iclda.methods import FITTED, FURTHER
from iclda.plots import DecisionBoundaryDisplay

rng = np.random.default_rng(7)
y_true = np.arange(300) % 2
X = rng.normal(size=(300, 2)) @ [[1.6, 1.2], [0.0, 0.6]] + y_true[:, None] * [1.4, -1.4]
# -1 marks an unlabeled row.
y = np.where(np.arange(300) < 8, y_true, -1)

methods = [
    method for method in (*FITTED, *FURTHER) if method.name != "iclda-proportions"
]
n_columns = 3
n_rows = -(-len(methods) // n_columns)
figure, axes = plt.subplots(
    n_rows,
    n_columns,
    figsize=(9, 2.4 * n_rows),
    layout="constrained",
    sharex=True,
    sharey=True,
)
for ax in axes.flat[len(methods) :]:
    ax.remove()
for ax, method in zip(axes.flat, methods, strict=False):
    clf = method.classifier().fit(X, y)
    DecisionBoundaryDisplay.from_estimator(clf, X, y, ax=ax, legend=False)
    wrong = 1 - clf.score(X, y_true)
    ax.set(xlabel="", ylabel="")
    options = "".join(f", {name}={value!r}" for name, value in method.options)
    text = f"{method.class_name}\n{100 * wrong:.1f} % wrong{options}"
    ax.set_title(text, loc="left", fontsize=8.5)
plt.show()
