"""A fitted linear model, which predicts rows wherever they are.

``LinearModel`` is what remains of a fit: linear scores of the classes, in the frame of
the fit, and the view that maps rows first. It says what to compute of a block of rows
(``RowFunction``), also of rows far from those of the fit and of rows on a device. It
has two forms. ``GaussianModel`` has Gaussian classes with one covariance, and therefore
densities, discriminants and deviations. ``LeastSquaresModel`` has functions that
predict 0 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn import get_config

from .._core import AnyArray, Array
from .._core.frame import Frame
from .._core.gaussian import Gaussians
from .._core.labelsums import LinearRule
from .._rows.kinds import is_device_array
from .._rows.places import place_of
from .._rows.views import View
from . import predictions
from .predictions import RowFunction


@dataclass(frozen=True)
class LinearModel:
    """Linear scores of classes. Subclasses say where they come from.

    ``view`` is how rows are mapped before they are scored; None: not at all.
    """

    classes: AnyArray
    view: View | None

    @property
    def frame(self) -> Frame:
        """Frame of the rows that the scores take."""
        raise NotImplementedError

    @property
    def score_rule(self) -> LinearRule:
        """Scores of all classes."""
        raise NotImplementedError

    @property
    def lead_rule(self) -> LinearRule:
        """Scores of all classes; of two classes, the lead of the second."""
        rule = self.score_rule
        if rule.n_classes > 2:
            return rule
        coef, intercept = rule.ahead_of_first
        return replace(rule, coef=coef, intercept=intercept)

    def fitted_attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of a classifier that follow from the model."""
        rule = self.lead_rule.folded(self.frame)
        return {"coef_": rule.coef.T.copy(), "intercept_": rule.intercept}

    # Functions of rows.

    def labels(self) -> RowFunction:
        """Return the most probable class, (n,)."""

        def label(scores: Any) -> Any:
            return predictions.most_probable(self.classes, scores)

        return self._scores_by(self.lead_rule).then(label)

    def probabilities(self) -> RowFunction:
        """Return the probabilities of the classes, (n, K)."""
        raise NotImplementedError

    def log_probabilities(self) -> RowFunction:
        """Return the logarithms of the probabilities, (n, K)."""
        raise NotImplementedError

    def decisions(self) -> RowFunction:
        """Return the scores, (n, K), or the lead of the second of two classes, (n,)."""
        return self._scores_by(self.lead_rule).then(predictions.one_or_all)

    def class_scores(self) -> RowFunction:
        """Return the scores of all classes, (n, K)."""
        return self._scores_by(self.score_rule)

    def _scores_by(self, rule: LinearRule) -> RowFunction:
        return predictions.linear_scores(rule, self.frame).of_viewed(self.view)


@dataclass(frozen=True)
class GaussianModel(LinearModel):
    """Gaussian classes that share one covariance."""

    gaussians: Gaussians

    @property
    def frame(self) -> Frame:
        return self.gaussians.frame

    @property
    def score_rule(self) -> LinearRule:
        return self.gaussians.score_rule()

    def fitted_attributes(self) -> dict[str, Any]:
        if len(self.classes) == 2:
            attributes = super().fitted_attributes()
        else:
            coef, intercept = self.gaussians.linear_scores
            attributes = {"coef_": coef, "intercept_": intercept}
        attributes["priors_"] = self.priors
        attributes["class_weights_"] = self.gaussians.class_weights
        attributes["means_"] = self.means
        if self.gaussians.covariance is not None:
            attributes["covariance_"] = self.covariance
        return attributes

    @property
    def n_components(self) -> int:
        """Number of discriminants."""
        return min(len(self.classes) - 1, len(self.frame.scale))

    # In the user's units.

    @property
    def priors(self) -> Array:
        return np.asarray(np.exp(self.gaussians.log_priors))

    @property
    def means(self) -> Array:
        return np.asarray(self.frame.restore(self.gaussians.means))

    @property
    def covariance(self) -> Array:
        """Covariance (d, d) within classes; few rows of many features never need it."""
        scale = self.frame.scale
        in_frame = self.gaussians.full_covariance()
        return np.asarray(in_frame * scale[:, None] * scale)

    @property
    def variances(self) -> Array:
        """The diagonal (d,) of the covariance, which is not formed for it."""
        return np.asarray(self.gaussians.variances * self.frame.scale**2)

    def standardized_coefficients(self) -> StandardizedCoefficients:
        """Return the discriminants for features divided by their deviations."""
        # Rounding may leave a variance below zero.
        deviations = np.sqrt(np.maximum(self.variances, 0))
        if len(self.classes) == 2:
            coef = self.fitted_attributes()["coef_"]
            shares = np.ones(1)
            # The log odds rise from the first class to the second.
            positions = np.array([[0.0], [1.0]])
            return StandardizedCoefficients(coef * deviations, shares, positions)
        # Directions (m, d) in the user's units, and the class means (K, m) along them.
        in_frame = self.gaussians.discriminants(self.n_components)
        scalings = in_frame.T / self.frame.scale
        mean = self.priors @ self.means
        positions = (self.means - mean) @ scalings.T
        spread = self.priors @ positions**2
        shares = spread / spread.sum()
        return StandardizedCoefficients(scalings * deviations, shares, positions)

    # Functions of rows.

    def probabilities(self) -> RowFunction:
        return self._scores_by(self.lead_rule).then(predictions.posteriors)

    def log_probabilities(self) -> RowFunction:
        return self._scores_by(self.lead_rule).then(predictions.log_posteriors)

    def decisions(self) -> RowFunction:
        if len(self.classes) == 2 or not self.frame.is_foldable:
            return super().decisions()
        # Scores are those of ``coef_`` and ``intercept_``.
        coef, intercept = self.gaussians.linear_scores
        rule = LinearRule(coef.T, intercept, is_soft=True)
        return predictions.scores(rule).of_viewed(self.view)

    def discriminants(self) -> RowFunction:
        """Return coordinates along the directions that separate the classes best."""
        coef = self.gaussians.discriminants(self.n_components)
        intercept = -self.gaussians.center @ coef
        return self._scores_by(LinearRule(coef, intercept, is_soft=True))

    def log_joint(self) -> RowFunction:
        """Return the log of prior times density in every class, (n, K)."""
        return predictions.log_joint(self.gaussians).of_viewed(self.view)

    def log_density(self) -> RowFunction:
        """Return the log of the sum over classes of prior times density, (n,)."""
        return self.log_joint().then(predictions.logsumexp)


@dataclass(frozen=True)
class LeastSquaresModel(LinearModel):
    """Linear functions that predict 1 for rows of their own class and 0 for others."""

    rule: LinearRule
    rule_frame: Frame

    @property
    def frame(self) -> Frame:
        return self.rule_frame

    @property
    def score_rule(self) -> LinearRule:
        return self.rule

    def probabilities(self) -> RowFunction:
        return self._scores_by(self.lead_rule).then(predictions.clipped_shares)

    def log_probabilities(self) -> RowFunction:
        return self._scores_by(self.lead_rule).then(predictions.log_clipped_shares)


@dataclass(frozen=True)
class StandardizedCoefficients:
    """Discriminants, whose coefficients are those of standardized features.

    A feature is divided by its standard deviation within classes. Two classes have one
    discriminant, the log odds of the second; K classes have K - 1, which lie along the
    directions that separate the class means best.

    Attributes
    ----------
    coefficients : (m, d)
    shares : (m,), of the spread of the class means, along each discriminant
    positions : (K, m), of the class means
    """

    coefficients: Array
    shares: Array
    positions: Array


def gaussian_model_of(classifier: Any) -> GaussianModel | None:
    """Return the model of a fitted classifier; None if it has no Gaussian classes."""
    model = getattr(classifier, "_model_", None)
    return model if isinstance(model, GaussianModel) else None


def moved_like(X: Any, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return fitted arrays, but ``classes_``, on the device of X and of its library.

    Without array API dispatch there are none: fitted arrays are NumPy's, whatever X is.
    Predictions need neither.
    """
    if not get_config()["array_api_dispatch"] or not is_device_array(X):
        return {}
    place = place_of(X)
    moved = {}
    for name, value in attributes.items():
        is_number = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
        if is_number and name.endswith("_") and name != "classes_":
            is_real = value.dtype.kind == "f"
            moved[name] = place.put(value) if is_real else place.put_as_is(value)
    return moved
