"""
Do the unlabeled rows look as the fit expects?
==============================================

The bars upwards are all unlabeled tumors of the Wisconsin breast cancer data along the
discriminant; the bars downwards are the 40 labeled ones. The curves are what the fit expects for
both classes. Where the gray bars differ from the curves (here for malignant tumors, which vary more
than benign ones) a common covariance for all classes is only a rough description.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from iclda import ImplicitlyConstrainedLDA
from iclda.model_selection import mask_labels
from iclda.plots import DiscriminantHistogramDisplay

data = load_breast_cancer(as_frame=True)
names = data.target_names[data.target].astype(object)
y = mask_labels(names, 40, unlabeled=None, random_state=0)

pipeline = make_pipeline(
    StandardScaler(), ImplicitlyConstrainedLDA(shrinkage=0.1, unlabeled=None)
).fit(data.data, y)
DiscriminantHistogramDisplay.from_estimator(pipeline, data.data, y, bins=40)
plt.show()
