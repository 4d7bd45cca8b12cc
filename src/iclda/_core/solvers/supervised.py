"""The supervised fit: maximum likelihood from labeled rows, shrinkage, gains over it.

Bounds of the gain of a model hold for all labels of the unlabeled rows. Let d(x, k) be
the log of prior times density under the model, less that under the reference. A
labeling of the unlabeled rows changes the log likelihood of all rows by the sum of d
over them. d is affine in x up to a quadratic term common to all classes, which the
moments of all rows give. Its sum is therefore smallest and largest at hard labels by a
linear rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.optimize
from scipy.special import digamma, gammaln

from ..._messages import FitError, say
from .. import Array
from ..frame import Frame, mean_variance_in_frame
from ..gaussian import LOG_2PI, Gaussians, gaussians
from ..labelsums import LinearRule
from ..moments import RANK_TOLERANCE, Moments, safe_whitening, whiten
from ..problem import WITHIN_TOLERANCE, LabeledSummary, Problem, within_rank
from ..rows import differing_share

# Rounding of the distance of two covariances, relative to the square of their size.
_DISTANCE_ROUNDING = 1e-12
# The variance within classes is far from any floor if, in every feature, the variance
# between classes is smaller than this multiple of it.
_MAX_SAFE_VARIANCE_RATIO = 1e3
# The most probable shrinkage s is bracketed among these values of log(s / (1 - s)),
# where s is from 1e-13 to 0.99.
_LOG_ODDS = np.linspace(-30.0, 4.6, 40)
# Accuracy of the root between two of them.
_LOG_ODDS_ROUNDING = 1e-14


def fit_labeled(
    frame: Frame,
    labeled: LabeledSummary,
    log_priors: Array | None = None,
    shrunk_within: Array | None = None,
) -> tuple[Gaussians, int]:
    """Return the model of the labeled rows, and the rank of their scatter in classes.

    The scatter within classes is used directly, never as total minus between.
    ``shrunk_within`` (frame coordinates) replaces it when the covariance is shrunk.
    Directions in which no class varies get the floor of the covariance.
    """
    if shrunk_within is not None:
        labeled = replace(labeled, within=shrunk_within)
    model = _fit_directly(frame, labeled, log_priors)
    if model is not None:
        return model, model.rank
    whitening = whiten(labeled.moments, frame)
    # In coordinates in which the labeled rows have covariance I, eigenvalues within
    # classes are shares of the total: those at rounding are raised to a floor.
    transform = whitening.transform
    weights = labeled.counts / labeled.weight
    means = whitening.points(labeled.means)
    covariance = transform @ labeled.within @ transform.T / labeled.weight
    model = gaussians(
        frame, whitening, weights, means, covariance, log_priors, floor=WITHIN_TOLERANCE
    )
    rank = within_rank(covariance) if model.is_floored else model.rank
    return model, rank


def _fit_directly(
    frame: Frame, labeled: LabeledSummary, log_priors: Array | None
) -> Gaussians | None:
    """Fit by a factor of the scatter within classes, if that is far from any floor.

    None if it is not. One factorization is enough here; otherwise all labeled rows are
    whitened first, which shows the directions without variance.
    """
    weights = labeled.counts / labeled.weight
    mean = weights @ labeled.means
    covariance = (labeled.within + labeled.within.T) / (2 * labeled.weight)
    variances_between = weights @ (labeled.means - mean) ** 2
    max_variances_between = _MAX_SAFE_VARIANCE_RATIO * covariance.diagonal()
    if not (variances_between < max_variances_between).all():
        return None
    whitening = safe_whitening(mean, covariance, frame)
    if whitening is None:
        return None
    if log_priors is None:
        log_priors = np.log(weights)
    return Gaussians(
        frame=frame,
        center=mean,
        class_weights=weights,
        log_priors=log_priors,
        means=labeled.means,
        covariance=covariance,
        projection=whitening.transform,
        class_points=whitening.points(labeled.means),
        log_det=whitening.log_det,
        is_floored=False,
    )


def supervised_reference(problem: Problem) -> Gaussians:
    """Return the supervised fit with priors and shrinkage of the problem.

    Other fits are compared with it; a ValueError says that there is none.
    """
    labeled = problem.labeled
    frame = problem.frame
    shrunk = None
    if problem.shrinkage > 0:
        shrunk = shrink_labeled(labeled, problem.shrinkage, frame, problem.n_left_out)
    model, rank = fit_labeled(frame, labeled, problem.log_priors, shrunk)
    needed = problem.whitening.rank
    if rank < needed:
        sentence = (
            "The labeled rows are too few, or too alike within their classes, for "
            "these columns (they span {rank} of {needed} dimensions): there is no "
            "supervised fit to compare with. Label more rows, or pass {@shrinkage}, "
            "for example 0.1 or 'auto'."
        )
        raise FitError(say(sentence, rank=rank, needed=needed))
    return model


def labeled_log_likelihood(model: Gaussians, labeled: LabeledSummary) -> float:
    """Sum the log of prior times density of their own class over the labeled rows."""
    # Squared distances from the class means of the model: the scatter within classes,
    # and the distances of the labeled means.
    projection = model.projection
    labeled_points = (labeled.means - model.center) @ projection.T
    shift = labeled_points - model.class_points
    spread = np.trace(projection @ labeled.within @ projection.T)
    spread += labeled.counts @ (shift**2).sum(axis=1)
    constant = labeled.weight * (model.rank * LOG_2PI + model.log_det)
    prior_terms = labeled.counts @ model.log_priors
    return float(prior_terms - (spread + constant) / 2)


def oracle_approximating(
    covariance: Array, n_rows: float, n_constant: int = 0
) -> float:
    """Return the oracle approximating shrinkage of a covariance of ``n_rows`` rows.

    It is that of Chen, Wiesel, Eldar and Hero, in [0, 1] (docs/notation.md). It needs
    only the covariance, which is additive over blocks of rows. ``n_constant`` further
    features do not vary.
    """
    n_features = len(covariance) + n_constant
    norm = float((covariance**2).sum())
    trace = float(np.trace(covariance))
    distance = norm - trace**2 / n_features
    if distance <= _DISTANCE_ROUNDING * norm:
        # The covariance is the target itself, as always with one feature.
        return 0.0
    noise = (1 - 2 / n_features) * norm + trace**2
    # Zero for two features and almost no weight.
    signal = (n_rows + 1 - 2 / n_features) * distance
    return noise / signal if signal > noise else 1.0


def most_probable_shrinkage(
    covariance: Array, n_rows: float, n_constant: int = 0
) -> float:
    """Return the shrinkage that makes a covariance of ``n_rows`` rows most probable.

    Before the rows are seen, the covariance has an inverse Wishart distribution about
    its target, which counts like a number of added rows. That number is the one with
    the highest marginal likelihood of the rows (docs/notation.md). It needs only the
    covariance. ``n_constant`` further features do not vary.
    """
    if not np.isfinite(covariance).all():
        # The overflow is reported when the sums are checked.
        return 1.0
    # 1. Choose the directions, and scale their variances so that the target is I.
    n_features = len(covariance) + n_constant
    variances = np.linalg.eigvalsh(covariance)
    varying = variances[variances > RANK_TOLERANCE * variances[-1]]
    if len(varying) < min(n_features, n_rows):
        # There are rows enough to show every direction in which they vary. With other
        # directions the likelihood might have no maximum.
        used = varying
    else:
        used = np.append(np.maximum(variances, 0.0), np.zeros(n_constant))
    scatter = n_rows * used * n_features / variances.sum()
    evidence = _Evidence(scatter, n_rows)

    # 2. Bracket the maximum. A shrinkage s is that of n_rows s / (1 - s) added rows.
    values = [evidence.value(n_rows * np.exp(t)) for t in _LOG_ODDS]
    best = int(np.argmax(values))
    nearby = _LOG_ODDS[max(0, best - 1) : best + 2]
    lowest = nearby[0]
    highest = nearby[-1]

    def slope(log_odds: float) -> float:
        return evidence.slope(n_rows * np.exp(log_odds))

    # 3. Find it. At either end of the range, it may lie beyond, and the end is taken.
    log_odds = float(_LOG_ODDS[best])
    if slope(lowest) > 0 > slope(highest):
        log_odds = scipy.optimize.brentq(
            slope, lowest, highest, xtol=_LOG_ODDS_ROUNDING
        )
    return float(1 / (1 + np.exp(-log_odds)))


@dataclass(frozen=True)
class _Evidence:
    """Log marginal likelihood of a scatter, by the number of rows that the prior has.

    The scatter has these eigenvalues, ``n_rows`` degrees of freedom, and I as target.
    With v added rows the prior is an inverse Wishart distribution with scatter v I and
    v + d + 1 degrees of freedom, so that its mean is I, and the mean after the rows
    are seen is (v I + scatter) / (v + n_rows). Terms without v are left out.
    """

    scatter: Array
    n_rows: float

    def value(self, n_added: float) -> float:
        freedom, halves = self._freedom(n_added)
        gammas = gammaln(halves + self.n_rows / 2) - gammaln(halves)
        log_prior = freedom * len(halves) * np.log(n_added)
        log_det = np.log(n_added + self.scatter).sum()
        log_posterior = (freedom + self.n_rows) * log_det
        return float(gammas.sum() + (log_prior - log_posterior) / 2)

    def slope(self, n_added: float) -> float:
        """Return the derivative with respect to the number of added rows."""
        freedom, halves = self._freedom(n_added)
        gammas = digamma(halves + self.n_rows / 2) - digamma(halves)
        total = n_added + self.scatter
        log_ratios = np.log(n_added) - np.log(total)
        ratios = freedom / n_added - (freedom + self.n_rows) / total
        return float(gammas.sum() + log_ratios.sum() + ratios.sum()) / 2

    def _freedom(self, n_added: float) -> tuple[float, Array]:
        """Return the degrees of freedom of the prior, and arguments of its gammas."""
        n_features = len(self.scatter)
        freedom = n_added + n_features + 1
        halves = (freedom - np.arange(n_features)) / 2
        return freedom, halves


def estimated_shrinkage(covariance: Array, n_rows: float, n_constant: int = 0) -> float:
    """Return the shrinkage of a covariance of ``n_rows`` rows, in [0, 1].

    It is the smaller of two. The oracle approximating one makes the squared error of
    the covariance small, which is that of its largest variances: where features are
    strongly correlated it erases the small ones, in which classes may differ. The most
    probable one keeps these, but is too large where many are small (docs/findings.md).
    """
    shrinkage = oracle_approximating(covariance, n_rows, n_constant)
    if shrinkage == 0:
        return 0.0
    return min(shrinkage, most_probable_shrinkage(covariance, n_rows, n_constant))


def pooled_shrinkage(
    labeled: LabeledSummary, frame: Frame, n_constant: int = 0
) -> float:
    """Return the shrinkage of the covariance within classes of the labeled rows.

    The covariance has as many degrees of freedom as there are rows beyond one for each
    class. Classes without spread leave nothing to estimate, and the shrinkage is 1.
    """
    n_free = labeled.weight - len(labeled.counts)
    if n_free <= 0 or not labeled.has_spread:
        return 1.0
    # The shrinkage does not depend on a common unit, and squares do not overflow.
    units = frame.scale / frame.scale.max()
    covariance = labeled.within / n_free * units[:, None] * units
    return estimated_shrinkage(covariance, n_free, n_constant)


def shrink_labeled(
    labeled: LabeledSummary, shrinkage: float, frame: Frame, n_constant: int = 0
) -> Array:
    """Shrink the scatter within classes toward its mean variance, like scikit-learn.

    ``n_constant`` further features do not vary.
    """
    added = shrinkage * target_of_labeled(labeled, frame, n_constant)
    return (1 - shrinkage) * labeled.within + np.diag(added)


def target_of_labeled(
    labeled: LabeledSummary, frame: Frame, n_constant: int = 0
) -> Array:
    """Return the mean variance within classes times the labeled weight, (d,).

    If the classes have no spread at all, that of all labeled rows sets the scale.
    """
    scatter = labeled.within if labeled.has_spread else labeled.moments.scatter
    return mean_variance_in_frame(scatter, frame, n_constant)


@dataclass(frozen=True)
class Gains:
    """Changes of the log likelihood of all rows, per unit of their weight.

    ``worst`` and ``best`` are the extremes over all labelings of the unlabeled rows,
    ``expected`` is the mean under the posteriors of the model. ``disagreement`` is the
    share of the unlabeled weight that model and reference classify differently.
    """

    worst: float
    best: float
    expected: float
    disagreement: float


def gains_over(problem: Problem, model: Gaussians, reference: Gaussians) -> Gains:
    """Return the gains of a model over a reference, both in the frame of the problem.

    This takes four passes over the unlabeled rows: two with hard labels, one with soft
    ones, and one for the disagreement.
    """
    labeled = problem.labeled
    moments = problem.moments
    rows = problem.unlabeled
    frame = problem.frame
    ahead = lead_over(model, reference)
    labeled_sums = labeled.counts[:, None] * labeled.means
    # The part of the gain that does not depend on labels of the unlabeled rows.
    known = _sum_of_scores(ahead, labeled.counts, labeled_sums)
    known += common_terms(model, moments) - common_terms(reference, moments)
    weight = moments.weight
    if rows.n_rows == 0:
        gain = known / weight
        return Gains(gain, gain, gain, 0.0)
    # Log-sum-exp of hard labels is the largest score: that of ``ahead`` gives the best
    # case, that of its negative the worst one.
    behind = LinearRule(-ahead.coef, -ahead.intercept, is_soft=False)
    largest_fall = rows.label_sums(behind, frame).log_sum
    largest_rise = rows.label_sums(ahead, frame).log_sum
    own = rows.label_sums(model.score_rule(), frame)
    expected_rise = _sum_of_scores(ahead, own.counts, own.sums)
    return Gains(
        worst=(known - largest_fall) / weight,
        best=(known + largest_rise) / weight,
        expected=(known + expected_rise) / weight,
        disagreement=differing_share(
            rows, frame, model.score_rule(), reference.score_rule()
        ),
    )


def lead_over(model: Gaussians, reference: Gaussians) -> LinearRule:
    """Return the hard rule of the scores d(x, k), less what all classes share."""
    no_priors = np.zeros_like(model.log_priors)
    density = replace(model, log_priors=no_priors).score_rule()
    reference_density = replace(reference, log_priors=no_priors).score_rule()
    # A prior of 0, which both have, changes nothing.
    shift = np.zeros_like(no_priors)
    is_possible = np.isfinite(model.log_priors)
    np.subtract(model.log_priors, reference.log_priors, out=shift, where=is_possible)
    coef = density.coef - reference_density.coef
    intercept = density.intercept - reference_density.intercept + shift
    return LinearRule(coef, intercept, is_soft=False)


def common_terms(model: Gaussians, moments: Moments) -> float:
    """Sum the part of the log joint density that all classes share, over all rows."""
    projection = model.projection
    shift = projection @ (moments.mean - model.center)
    spread = np.einsum("rd,de,re->", projection, moments.scatter, projection)
    constant = model.rank * LOG_2PI + model.log_det + float(shift @ shift)
    return -(moments.weight * constant + float(spread)) / 2


def _sum_of_scores(rule: LinearRule, counts: Array, sums: Array) -> float:
    """Sum the scores of rows, weighted by their shares, from their label sums."""
    return float(counts @ rule.intercept + np.vdot(sums, rule.coef.T))
