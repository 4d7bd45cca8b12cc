"""
How few labels do frozen image features need?
=============================================

A common case: images pass through an extractor that stays as it is, and somebody labels a few of
them. Here the extractor is a projection of scikit-learn's 8 x 8 digits on 40 principal directions,
found without any label. With three labels a digit, the unlabeled images more than halve the error.
Below are digits that supervised LDA gets wrong with 30 labels and self-learning gets right.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from iclda import ExpectationMaximizationLDA, SelfLearningLDA, SupervisedLDA
from iclda.model_selection import mask_labels
from iclda.plots import LearningCurveDisplay

digits = load_digits()
features = PCA(40, random_state=0).fit_transform(digits.data)
y_true = digits.target
methods = {
    "LDA": SupervisedLDA(shrinkage="auto"),
    "SLLDA": SelfLearningLDA(shrinkage="auto"),
    "EMLDA": ExpectationMaximizationLDA(shrinkage="auto", tol=1e-7),
}
numbers, repeats = [30, 50, 100, 200, 400], 5
scores = {name: np.empty((len(numbers), repeats)) for name in methods}
for i, n_labeled in enumerate(numbers):
    for repeat in range(repeats):
        y = mask_labels(y_true, n_labeled, min_per_class=3, random_state=repeat)
        for name, clf in methods.items():
            predicted = clf.fit(features, y).predict(features)
            scores[name][i, repeat] = np.mean((predicted == y_true)[y == -1])
            if (i, repeat) == (0, 0):
                methods[name].first_ = predicted

figure = plt.figure(figsize=(8.6, 5.4), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[3, 1])
LearningCurveDisplay(
    sizes=dict.fromkeys(methods, np.array(numbers)),
    means={name: 1 - one.mean(axis=1) for name, one in scores.items()},
    standard_errors={n: one.std(axis=1, ddof=1) / np.sqrt(repeats) for n, one in scores.items()},
    varied="n_labeled",
    score_name="error",
).plot(ax=top.subplots())
saved = (methods["LDA"].first_ != y_true) & (methods["SLLDA"].first_ == y_true)
for ax, i in zip(bottom.subplots(1, 10), np.flatnonzero(saved)[:10], strict=True):
    ax.imshow(digits.images[i], cmap="gray_r")
    ax.set(xticks=[], yticks=[], title=f"{y_true[i]}, not {methods['LDA'].first_[i]}")
    ax.title.set_fontsize(8)
plt.show()
