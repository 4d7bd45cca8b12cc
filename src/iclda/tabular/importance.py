"""Which columns matter to a fitted model: coefficients for columns of unit standard deviation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._estimators.base import LinearGaussianClassifier

_MOST_SHOWN = 8  # features of a discriminant


def standardized_coefficients(model: Any) -> list[dict[str, Any]]:
    """Discriminants with the coefficient of every feature, the largest first.

    A coefficient is that of the feature divided by its standard deviation within classes. A high
    value speaks for the class ``high``, a low one for ``low``. Two classes have one discriminant,
    the log odds of the second; K have K - 1, which lie along the directions that separate the class
    means best, with the share of their spread. Nothing for a model that is not a linear one of this
    package.
    """
    classifier = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(classifier, LinearGaussianClassifier):
        return []
    spread = np.sqrt(np.maximum(classifier._variances, 0))
    classes = [str(name) for name in classifier.classes_]
    if len(classes) == 2:
        axes, titles = classifier.coef_ * spread, [f"log odds of {classes[1]}"]
        shares, points = np.ones(1), np.array([[0.0], [1.0]])
    else:
        gaussians = classifier._gaussians_
        scalings = gaussians.discriminants(classifier._n_features_out).T / gaussians.frame.scale
        axes = scalings * spread
        points = (classifier.means_ - classifier.priors_ @ classifier.means_) @ scalings.T
        shares = classifier.priors_ @ points**2
        shares = shares / shares.sum()
        titles = [f"discriminant {number}" for number in range(1, len(axes) + 1)]
    names = getattr(classifier, "feature_names_in_", np.arange(classifier.n_features_in_))
    return [
        {
            "title": title,
            "share": float(share),
            "low": classes[int(ends.argmin())],
            "high": classes[int(ends.argmax())],
            "coefficients": {str(names[k]): float(axis[k]) for k in np.argsort(-np.abs(axis))},
        }
        for title, share, ends, axis in zip(titles, shares, points.T, axes, strict=True)
    ]


def importance_lines(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that matter most, one line a discriminant, below an empty line and a title."""
    lines = ["", "Columns that matter most (coefficients of standardized columns)"] if found else []
    for each in found:
        items = list(each["coefficients"].items())
        shown = ", ".join(f"{name} {value:+.2f}" for name, value in items[:_MOST_SHOWN])
        more = f" and {len(items) - _MOST_SHOWN} more" if len(items) > _MOST_SHOWN else ""
        share = f", {each['share']:.0%} of what separates the classes" if len(found) > 1 else ""
        ends = f"from {each['low']} (-) to {each['high']} (+)"
        lines.append(f"  {each['title']}, {ends}{share}: {shown}{more}")
    return lines
