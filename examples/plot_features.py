"""
How far do a few labels go on features of a frozen network?
===========================================================

2,000 pictures of clothes in ten classes passed through a network that was trained on
other pictures. 1 to 16 labels a class are drawn ten times; all other pictures are
unlabeled, and the error is that of these. Bars are one standard deviation over the
draws. :class:`~iclda.AutoLDA` fits in a second or less.

The features are shipped with the package. Features of your own pictures come from any
network, taken before its layer of classes:

.. code-block:: python

    import torch
    from PIL import Image
    from torchvision.models import EfficientNet_B0_Weights, efficientnet_b0

    weights = EfficientNet_B0_Weights.DEFAULT
    network = efficientnet_b0(weights=weights).eval()
    network.classifier = torch.nn.Identity()
    prepare = weights.transforms()
    features = []
    with torch.inference_mode():
        for i in range(0, len(paths), 64):  # paths of picture files
            pictures = [prepare(Image.open(path).convert("RGB")) for path in paths[i : i
            + 64]] features.append(network(torch.stack(pictures)))
    X = torch.cat(features)

:doc:`/features` says when this helps, and when it does not.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from iclda import AutoLDA
from iclda.datasets import load_fashion_features
from iclda.model_selection import mask_labels
from iclda.plots import LearningCurveDisplay

X, names = load_fashion_features()
y_true = np.unique(names, return_inverse=True)[1]
methods = {
    "AutoLDA": AutoLDA(),
    "LogisticRegression": LogisticRegression(max_iter=1000),
    "SelfTrainingClassifier": SelfTrainingClassifier(LogisticRegression(max_iter=1000)),
    "LabelSpreading": LabelSpreading(kernel="knn", n_neighbors=15),
}
# Fits warn of classes with a single label.
warnings.simplefilter("ignore", UserWarning)
numbers = np.array([1, 2, 4, 8, 16])
n_draws = 10
# Errors in percent.
errors = {name: np.empty((len(numbers), n_draws)) for name in methods}
for i, n_labels in enumerate(numbers):
    for draw in range(n_draws):
        y = mask_labels(
            y_true, 10 * n_labels, min_per_class=n_labels, random_state=draw
        )
        for name, clf in methods.items():
            used = y != -1 if name == "LogisticRegression" else slice(None)
            predicted = clf.fit(X[used], y[used]).predict(X)
            errors[name][i, draw] = 100 * np.mean((predicted != y_true)[y == -1])

figure, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
ax.set_ylim(0, 60)
ax.spines[["top", "right"]].set_visible(False)
display = LearningCurveDisplay(
    sizes={
        name: numbers * 1.04**place for place, name in enumerate(methods)
    },  # side by side
    means={name: each.mean(axis=1) for name, each in errors.items()},
    varied="Labels a class",
    score_name="error in %",
).plot(ax=ax, marker="o", markersize=4)
for name, line in display.lines_.items():
    spread = errors[name].std(axis=1, ddof=1)
    ax.errorbar(*line.get_data(), spread, fmt="none", color=line.get_color(), alpha=0.6)
display.lines_["AutoLDA"].set_linewidth(3)
ax.set_xticks(numbers, numbers)
plt.show()
