"""
Does the exported model predict the same?
=========================================

``to_onnx`` turns a fitted classifier into an ONNX graph, which programs in other
languages run without Python. It computes in double precision relative to the center of
the rows, so that probabilities agree to rounding even for features far from zero, as
here (temperatures in kelvin, years). With float32 as input type the rows themselves are
rounded first, and that is all the difference there is. No class changes.
"""

import matplotlib.pyplot as plt
import numpy as np
from onnx.reference import ReferenceEvaluator

from iclda import ImplicitlyConstrainedLDA

rng = np.random.default_rng(0)
y_true = np.arange(3000) % 3
X = rng.normal(size=(3000, 4)) + 2 * np.eye(3, 4)[y_true] + [293.0, 2020.0, 0.0, 1013.0]
y = np.where(np.arange(3000) < 60, y_true, -1)
clf = ImplicitlyConstrainedLDA().fit(X, y)

figure, ax = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
bins = np.logspace(-18, -2, 65)
for dtype, color in (("float64", "#0b5394"), ("float32", "#e8890c")):
    session = ReferenceEvaluator(clf.to_onnx(dtype=dtype))
    label, probabilities = session.run(None, {"X": X.astype(dtype)})
    gap = np.abs(probabilities - clf.predict_proba(X)).max(axis=1)
    n_same = int(np.sum(label == clf.predict(X)))
    text = f"{dtype}: {n_same} of {len(X)} classes agree"
    ax.hist(np.maximum(gap, 2e-18), bins, color=color, alpha=0.75, label=text)
ax.set_xscale("log")
ax.set(
    xlabel="largest difference of a probability to that of the library", ylabel="rows"
)
ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
