"""
Do the unlabeled rows look as the fit expects?
==============================================

The bars are all unlabeled tumors of the Wisconsin breast cancer data along the
discriminant; the marks below them are the 40 labeled ones. The curves are what the fit
expects for both classes. Where the bars differ from the curves (here for malignant
tumors, which vary more than benign ones) a common covariance for all classes is only a
rough description.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from iclda import ImplicitlyConstrainedLDA
from iclda.model_selection import mask_labels

data = load_breast_cancer(as_frame=True)
names = data.target_names[data.target].astype(object)
y = mask_labels(names, 40, unlabeled=None, random_state=0)

lda = ImplicitlyConstrainedLDA(shrinkage=0.1, unlabeled=None)
pipeline = make_pipeline(StandardScaler(), lda).fit(data.data, y)
places = pipeline.transform(data.data)[:, 0]
is_unlabeled = np.equal(y, None)

counts, edges, _ = plt.hist(
    places[is_unlabeled], bins=40, color="lightgray", label="unlabeled"
)
along = np.linspace(edges[0], edges[-1], 400)
means = lda.transform(lda.means_)[:, 0]
for k, name in enumerate(lda.classes_):
    # Along the discriminant every class of the fit has variance 1.
    expected = (
        lda.priors_[k]
        * counts.sum()
        * (edges[1] - edges[0])
        * norm.pdf(along, means[k])
    )
    (line,) = plt.plot(along, expected, label=f"{name}, expected")
    labeled = places[y == name]
    plt.plot(labeled, np.full(len(labeled), -3.0), "|", color=line.get_color())
plt.xlabel("Discriminant")
plt.ylabel("Rows")
plt.legend()
plt.show()
