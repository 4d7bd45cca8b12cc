"""
Can the probabilities be believed?
==================================

Of the rows to which a classifier assigns a probability of 0.9, nine in ten should
belong to the class. With 20 labels for 10 features the supervised fit is overconfident;
expectation maximization uses the unlabeled rows to estimate how far the classes
overlap.
"""

import matplotlib.pyplot as plt
import numpy as np

from iclda import ExpectationMaximizationLDA, ImplicitlyConstrainedLDA, SupervisedLDA
from iclda.plots import ReliabilityDisplay

rng = np.random.default_rng(0)
y = np.arange(5000) % 2
X = rng.normal(size=(5000, 10)) + 0.6 * y[:, None]
y_train = np.where(np.arange(1000) < 20, y[:1000], -1)

fitted = {
    "SupervisedLDA": SupervisedLDA().fit(X[:1000], y_train),
    "ExpectationMaximizationLDA": ExpectationMaximizationLDA().fit(X[:1000], y_train),
    "ImplicitlyConstrainedLDA": ImplicitlyConstrainedLDA().fit(X[:1000], y_train),
}
ReliabilityDisplay.from_estimator(fitted, X[1000:], y[1000:])
plt.show()
