"""
What if new rows come from another source?
==========================================

Eight speakers say eleven vowels, and a classifier has to recognize those of seven
others. Every voice moves all vowels, so that supervised LDA gets more than half of them
wrong. ``adapt`` moves the classifier to each new speaker by the mean of the rows, which
need no labels: new speakers say the vowels as often as the others did.
``fit(groups=...)`` also removes the offsets of the speakers that it is fitted to. The
lines are the speakers; the bars are their mean.

:doc:`/sources` says when the mean misleads, and what is checked.
"""

import matplotlib.pyplot as plt
import numpy as np

from iclda import SupervisedLDA
from iclda.datasets import load_vowels

X, y, speakers, is_new = load_vowels()
train = X[~is_new], y[~is_new]
plain = SupervisedLDA(shrinkage=0.3).fit(*train)
with_groups = SupervisedLDA(shrinkage=0.3).fit(*train, groups=speakers[~is_new])


def percent_wrong(classifier, is_adapted):
    """Errors on every new speaker."""
    errors = []
    for speaker in np.unique(speakers[is_new]):
        own = speakers == speaker
        fitted = classifier.adapt(X[own]) if is_adapted else classifier
        errors.append(100 * (1 - fitted.score(X[own], y[own])))
    return errors


names = ("as fitted", "adapted", "fitted without offsets,\nadapted")
errors = np.array(
    [
        percent_wrong(plain, is_adapted=False),
        percent_wrong(plain, is_adapted=True),
        percent_wrong(with_groups, is_adapted=True),
    ]
)
figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
bars = ax.bar(names, errors.mean(axis=1), width=0.5, color="#9bbfdd")
ax.bar_label(bars, fmt="{:.1f} %", label_type="center")
ax.plot(errors, color="0.4", linewidth=0.8, marker="o", markersize=3)
ax.set_ylabel("vowels of a new speaker that are wrong, %")
plt.show()
