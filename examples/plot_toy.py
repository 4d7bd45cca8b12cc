"""
When do unlabeled rows help, and when do they mislead?
======================================================

The toy problem of the paper: two clusters, ten labeled rows, 990 unlabeled ones. In the
upper row the clusters are the classes, and the unlabeled rows show where they end. In
the lower row the class boundary runs across the clusters. Expectation maximization (EM)
trusts the clusters, and there gets 36 % of the rows wrong on average, 48 % in the
median sample. Implicitly constrained LDA (ICLDA) chooses the labeling that makes the
*labeled* rows likeliest: it gains less where the clusters are the classes, and loses
nothing to speak of where they are not.

The drawn sample is the one of 100 whose errors are nearest to the medians. Below it are
the means over all 100 samples.
"""

import matplotlib.pyplot as plt
import numpy as np

from iclda import ExpectationMaximizationLDA, ImplicitlyConstrainedLDA, SupervisedLDA
from iclda.datasets import make_gaussians, make_violated_gaussians
from iclda.plots import DecisionBoundaryDisplay

CLASSIFIERS = {
    "Supervised LDA": SupervisedLDA(),
    "ICLDA": ImplicitlyConstrainedLDA(),
    "EM": ExpectationMaximizationLDA(),
}
PROBLEMS = {
    "Boundary between the clusters": make_gaussians,
    "Boundary across the clusters": make_violated_gaussians,
}
N_SAMPLES = 100


def draw_sample(make, sample):
    """Return rows, their classes, and the classes with -1 for all rows but ten."""
    X, y_true = make(1000, np.random.default_rng(sample))
    labeled = np.concatenate([np.flatnonzero(y_true == k)[:5] for k in (0, 1)])
    y = np.full(1000, -1)
    y[labeled] = y_true[labeled]
    return X, y_true, y


# Errors in percent by problem, classifier and sample.
errors = np.empty((len(PROBLEMS), len(CLASSIFIERS), N_SAMPLES))
for i, make in enumerate(PROBLEMS.values()):
    for sample in range(N_SAMPLES):
        X, y_true, y = draw_sample(make, sample)
        for j, clf in enumerate(CLASSIFIERS.values()):
            errors[i, j, sample] = 100 * (1 - clf.fit(X, y).score(X, y_true))
means = errors.mean(axis=2)
medians = np.median(errors, axis=2)
typical = np.abs(errors - medians[:, :, None]).max(axis=(0, 1)).argmin()

figure, axes = plt.subplots(2, 3, figsize=(9.6, 6.9), layout="constrained")
for i, (title, make) in enumerate(PROBLEMS.items()):
    X, y_true, y = draw_sample(make, typical)
    for j, (name, clf) in enumerate(CLASSIFIERS.items()):
        ax = axes[i, j]
        DecisionBoundaryDisplay.from_estimator(clf.fit(X, y), X, y, ax=ax, legend=False)
        ax.set_title(f"{name}: {errors[i, j, typical]:.1f} % wrong", fontsize=13)
        ax.set(xlabel=f"mean of 100 samples: {means[i, j]:.1f} %", ylabel="")
        ax.set(xticks=[], yticks=[])
    axes[i, 0].set_ylabel(title, fontsize=13)
plt.show()
