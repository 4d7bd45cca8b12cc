"""What a fitted model says about other rows than those of its fit.

``adapt_gaussians`` moves the classes of a model to rows of another source, such as a
new speaker or instrument, whose rows lie elsewhere or have other class shares. With m
the mean of the new rows, mu the class means and s the class shares of the source, the
offset that maximizes the likelihood is m - s mu: it follows from the shares. They are
those of the training rows ("offset"), or come from EM (Saerens, Latinne and
Decaestecker, 2002), without an offset ("shares") or with it ("both").

``estimate_class_shares`` says how many of some rows belong to each class. Held-out
labels of the fit calibrate its probabilities, EM finds the shares under which they are
most likely, and labels drawn at random among the rows correct the count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from .._core import AnyArray, Array
from .._core.gaussian import Gaussians
from .._core.rows import Rows
from .._error_estimate import CONFIDENCE
from .._messages import ParameterError, plural, say
from .._rows.kinds import in_memory
from .._rows.memory import MemoryRows
from .._rows.views import KernelMap, View, steps_of
from .predictions import posteriors
from .rows_reader import RowSource

# What an adaptation may change.
OFFSET = "offset"
SHARES = "shares"
BOTH = "both"
_ASSUMPTIONS = {
    OFFSET: "the class shares are assumed to be those of the training rows",
    SHARES: "the classes are assumed to lie where they lay in the training rows",
    BOTH: "the classes are assumed to be Gaussian, with the covariance of the fit",
}
# The change that may look like another one.
_RIVALS = {OFFSET: SHARES, SHARES: OFFSET}
# Class shares are learned, and changes are checked, on at most this many rows.
MAX_SAMPLE_ROWS = 16_384
# Rounds of EM ...
_MAX_ROUNDS = 500
# ... until no share moves by more than this.
_SHARE_TOLERANCE = 1e-6
# Stands in for zero in a logarithm.
_TINY_SHARE = 1e-300
# Smaller probabilities count as this one where labels correct them.
_MIN_PROBABILITY = 1e-12

# What a calibration is expected to be before any label is seen: a slope of 1 and biases
# of 0, with these standard deviations. They were chosen on two sets of features.
_SLOPE_DEVIATION = 0.5
_BIAS_DEVIATION = 1.0
_MIN_SLOPE = 0.05
_MAX_NEWTON_ROUNDS = 50
_NEWTON_TOLERANCE = 1e-8
# Class shares are estimated from at most this many rows, drawn at random.
_MAX_MIXED_ROWS = 65_536
# Intervals are quantiles of this many draws, each by EM on at most this many rows from
# the shares of all rows.
_N_DRAWS = 200
_MAX_BOOTSTRAP_ROWS = 2_048
_ROUNDS_OF_DRAW = 40
# A count is corrected by this many labels or more.
_MIN_RANDOM_LABELS = 2
_Z = float(stats.norm.ppf((1 + CONFIDENCE) / 2))
_CALIBRATED = (
    "The intervals cover chance in the rows and in the held-out labels of the fit."
)
_UNCALIBRATED = (
    "The fit held out no labels, so the intervals assume that its probabilities are "
    "right, and are too narrow."
)
_CORRECTED = (
    "The count is corrected by labels drawn at random, and valid whatever the model is."
)


@dataclass(frozen=True, eq=False)
class Adaptation:
    """What ``adapt`` found in the rows of a new source, and what it made of it.

    Attributes
    ----------
    change : str
        The change that was asked for: "offset", "shares" or "both".
    is_kept : bool
        Whether the new rows support it. Otherwise nothing was changed.
    offset : ndarray of shape (n_features,)
        What the classes were moved by, in the columns of the view if there is one.
    shares : ndarray of shape (n_classes,)
        Class shares of the source, as the adapted classifier takes them.
    gains : dict
        For every change, how much it raises the log likelihood per row, of rows that
        it was not learned from. Empty if that could not be computed.
    reason : str
        All of that in a sentence.
    """

    change: str
    is_kept: bool
    offset: Array
    shares: Array
    gains: Mapping[str, float]
    reason: str

    def __str__(self) -> str:
        return self.reason


def adapt_gaussians(
    source: RowSource, gaussians: Gaussians, change: str, view: View | None = None
) -> tuple[Gaussians, Adaptation]:
    """Return a model for the rows of a new source, and what speaks for it.

    ``view`` is the view by which the rows are mapped.
    """
    if change not in _ASSUMPTIONS:
        raise ParameterError(
            f"change must be one of {', '.join(_ASSUMPTIONS)}, got {change!r}.",
            parameter="change",
            value=change,
        )
    has_kernel = view is not None and any(
        isinstance(step, KernelMap) for step in steps_of(view)
    )
    if has_kernel and change != SHARES:
        raise ParameterError(
            say(
                "An offset of the rows is not one of their features in a kernel view, "
                "which {@change} = {change!r} would move: pass {@change=shares}, fit "
                "with another view, or subtract the offset from the rows.",
                change=change,
            ),
            parameter="change",
            value=change,
        )
    rows = source.rows
    sampled, weights = rows.sample(MAX_SAMPLE_ROWS, 0)
    changes = [SHARES] if has_kernel else list(_ASSUMPTIONS)
    gains = _held_out_gains(sampled, weights, gaussians, changes)
    refusal = _why_not(change, gains, len(sampled))
    adapted = gaussians
    if not refusal:
        mean = rows.moments(gaussians.frame).mean
        density = _density(gaussians, change)
        changed = _changed(MemoryRows(sampled, weights), mean, density, change)
        adapted = gaussians.moved(changed.center - density.center, changed.log_priors)
    offset = adapted.center - gaussians.center
    n_deviations = np.linalg.norm(gaussians.projection @ offset)
    reason = refusal or (
        f"Adapted to {plural(len(sampled), 'row')}: the classes moved by "
        f"{n_deviations:.3g} standard deviations, and rows that were held out gain "
        f"{gains[change]:.3g} in log likelihood; {_ASSUMPTIONS[change]}."
    )
    # The mean of classes that have other shares may look like an offset.
    if change == OFFSET and not refusal and gains[BOTH] > gains[OFFSET]:
        reason += (
            f" With other shares as well they would gain {gains[BOTH]:.3g}: if the "
            f"shares may differ, ask for {BOTH}."
        )
    return adapted, Adaptation(
        change=change,
        is_kept=not refusal,
        offset=offset * gaussians.frame.scale,
        shares=np.exp(adapted.log_priors),
        gains=gains,
        reason=reason,
    )


def _why_not(change: str, gains: Mapping[str, float], n_rows: int) -> str:
    """Return why the new rows do not support a change; "" if they do."""
    if not gains:
        rows = plural(n_rows, "row")
        return f"Nothing was changed: {rows} cannot be divided to check a change."
    gain = gains[change]
    if not gain > 0:
        return (
            f"Nothing was changed: {plural(n_rows, 'row')} do not support it. Rows "
            f"that were held out would lose {-gain:.2g} in log likelihood."
        )
    rival = _RIVALS.get(change, "")
    if gains.get(rival, 0.0) > gain:
        what = {OFFSET: "an offset", SHARES: "other class shares"}
        return (
            f"Nothing was changed: {what[rival]} would explain the rows better than "
            f"{what[change]} (rows that were held out gain {gains[rival]:.3g} against "
            f"{gain:.3g} in log likelihood). Ask for {rival}, or for {BOTH}."
        )
    return ""


def _held_out_gains(
    rows: Array, weights: Array, gaussians: Gaussians, changes: list[str]
) -> dict[str, float]:
    """Return what each change adds to the log likelihood per held-out row.

    Each half of the rows is scored by what was learned from the other half.
    """
    half = np.random.default_rng(0).permutation(len(rows)) % 2
    halves = [MemoryRows(rows, weights, half == k) for k in range(2)]
    moments = [each.moments(gaussians.frame) for each in halves]
    if not all(each.weight > 0 for each in moments):
        return {}
    gains = dict.fromkeys(changes, 0.0)
    total = moments[0].weight + moments[1].weight
    for learned, tested in ((0, 1), (1, 0)):
        mean = moments[tested].mean
        for change in changes:
            density = _density(gaussians, change)
            changed = _changed(halves[learned], moments[learned].mean, density, change)
            before = _log_likelihood(halves[tested], mean, density)
            after = _log_likelihood(halves[tested], mean, changed)
            gains[change] += (after - before) / total
    return gains


def _density(gaussians: Gaussians, change: str) -> Gaussians:
    """Return the model whose likelihood says what a change is worth.

    Shares are learned from posteriors alone. An offset is relative to the rows of the
    fit, which the means of an average do not follow.
    """
    return gaussians if change == SHARES else gaussians.at_rows()


def _log_likelihood(rows: Rows, mean: Array, gaussians: Gaussians) -> float:
    """Return the log likelihood of rows, but for a term that no change alters.

    With z a row in standardized coordinates it is the sum of logsumexp(scores) less
    that of |z|^2 / 2, of which only the part of the mean depends on where z = 0 lies.
    """
    frame = gaussians.frame
    sums = rows.label_sums(gaussians.score_rule(), frame)
    from_center = gaussians.projection @ (mean - gaussians.center)
    squared_distance = from_center @ from_center
    complement = gaussians.complement
    if complement is not None:
        outside = complement.outside(frame.restore(mean[None]))
        squared_distance += (outside**2).sum() / complement.variance
    weight = sums.counts.sum()
    return float(sums.log_sum - weight * squared_distance / 2)


def _changed(rows: Rows, mean: Array, gaussians: Gaussians, change: str) -> Gaussians:
    """Return the model with the offset or the shares that rows of a mean show."""
    changed = gaussians
    if change != SHARES:
        changed = gaussians.moved(mean - gaussians.center)
    if change == OFFSET:
        return changed
    shares = np.exp(gaussians.log_priors)
    for _ in range(_MAX_ROUNDS):
        earlier = shares
        counts = rows.label_sums(changed.score_rule(), gaussians.frame).counts
        shares = counts / counts.sum()
        offset = np.zeros_like(mean)
        if change == BOTH:
            offset = mean - shares @ gaussians.means
        log_priors = np.log(np.maximum(shares, _TINY_SHARE))
        changed = gaussians.moved(offset, log_priors)
        if np.abs(shares - earlier).max() <= _SHARE_TOLERANCE:
            break
    return changed


@dataclass(frozen=True, eq=False)
class Calibration:
    """How held-out labels correct probabilities: softmax(slope log p + biases).

    Attributes
    ----------
    parameters : ndarray of shape (1 + n_classes,)
        The slope and the biases.
    covariance : ndarray of shape (1 + n_classes, 1 + n_classes)
        How sure the held-out labels are of them.
    shares : ndarray of shape (n_classes,)
        Class shares of the held-out labels.
    """

    parameters: Array
    covariance: Array
    shares: Array

    @classmethod
    def of_held_out(cls, probabilities: Array, codes: AnyArray) -> Calibration | None:
        """Calibrate by labels with these codes; None if no row was held out.

        Rows that could not be tested have the probability NaN.
        """
        is_tested = np.isfinite(probabilities).all(axis=1)
        if not is_tested.any():
            return None
        logs = _logarithms(probabilities[is_tested])
        tested_codes = codes[is_tested]
        n_rows, n_classes = logs.shape
        counts = np.bincount(tested_codes, minlength=n_classes)
        sum_of_own_logs = logs[np.arange(n_rows), tested_codes].sum()
        expected = np.concatenate([[1.0], np.zeros(n_classes)])
        deviations = [_SLOPE_DEVIATION, *np.full(n_classes, _BIAS_DEVIATION)]
        precision = np.diag(1 / np.square(deviations))
        parameters = expected
        # Newton's method: the negative log posterior is convex. With many classes,
        # sums of products are formed without the products, which would be large.
        for _ in range(_MAX_NEWTON_ROUNDS):
            shares = _calibrated(logs, parameters)
            sums = shares.sum(axis=0)
            mean_logs = np.einsum("nk,nk->n", shares, logs)
            slope_of_slope = mean_logs.sum() - sum_of_own_logs
            slopes = np.concatenate([[slope_of_slope], sums - counts])
            slopes += precision @ (parameters - expected)
            curvature = np.diag([0.0, *sums])
            curvature[1:, 1:] -= shares.T @ shares
            mean_squares = np.einsum("nk,nk,nk->n", shares, logs, logs)
            curvature[0, 0] = (mean_squares - mean_logs**2).sum()
            curvature[0, 1:] = np.einsum("nk,nk->k", shares, logs) - mean_logs @ shares
            curvature[1:, 0] = curvature[0, 1:]
            covariance = np.linalg.inv(curvature + precision)
            step = covariance @ slopes
            parameters = parameters - step
            if np.abs(step).max() <= _NEWTON_TOLERANCE:
                break
        return cls(parameters, np.asarray(covariance), counts / n_rows)

    def ratios(self, logs: Array, parameters: Array) -> Array:
        """Return the densities (n, K) of the classes, up to a factor of each row."""
        # A class without a held-out label has a share of 0, and keeps its probability.
        shares = np.where(self.shares > 0, self.shares, 1.0)
        return _calibrated(logs, parameters) / shares


def _calibrated(logs: Array, parameters: Array) -> Array:
    return posteriors(parameters[0] * logs + parameters[1:])


def _logarithms(probabilities: Array) -> Array:
    return np.log(np.maximum(probabilities, _MIN_PROBABILITY))


@dataclass(frozen=True, eq=False)
class ClassShareEstimate:
    """Shares of the classes among some rows, with 90 % intervals.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    shares, low, high : ndarray of shape (n_classes,)
    n_rows : int
    n_random : int
        Rows with labels drawn at random, by which the count was corrected.
    how : str
        What the intervals rest on, in a sentence.
    """

    classes: AnyArray
    shares: Array
    low: Array
    high: Array
    n_rows: int
    n_random: int
    how: str

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as values that JSON has."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }


def estimate_class_shares(
    classifier: Any, probabilities: Array, codes: AnyArray | None = None
) -> ClassShareEstimate:
    """Estimate the class shares of rows from their probabilities (n, K).

    ``codes`` are the classes of rows that were drawn at random, n_classes for none of
    them, and -1 of other rows.
    """
    n_rows, n_classes = probabilities.shape
    is_random = np.zeros(n_rows, dtype=bool) if codes is None else codes >= 0
    n_random = int(is_random.sum())
    calibration = getattr(classifier, "calibration_", None)
    how = _CALIBRATED
    if calibration is None:
        # Adapted shares have taken the place of a calibration under earlier ones.
        adaptation = getattr(classifier, "adaptation_", None)
        adapted_shares = None if adaptation is None else adaptation.shares
        priors = getattr(classifier, "priors_", adapted_shares)
        if priors is None and n_random < _MIN_RANDOM_LABELS:
            raise ValueError(
                f"{type(classifier).__name__} held out no labels and has no class "
                "priors, so its probabilities show no class shares: fit AverageLDA or "
                f"AutoLDA, or label at least {_MIN_RANDOM_LABELS} of the rows, drawn "
                f"at random (now {n_random})."
            )
        how = _UNCALIBRATED
        shares = probabilities.mean(axis=0) if priors is None else in_memory(priors)
        parameters = np.concatenate([[1.0], np.zeros(n_classes)])
        no_spread = np.zeros((n_classes + 1, n_classes + 1))
        calibration = Calibration(parameters, no_spread, shares)
    shares, low, high, turned = _shares_by_em(probabilities, calibration)
    if n_random >= _MIN_RANDOM_LABELS:
        assert codes is not None
        how = _CORRECTED
        truth = np.eye(n_classes + 1, n_classes)[codes[is_random]]
        errors = truth - turned[is_random]
        shares = turned.mean(axis=0) + errors.mean(axis=0)
        # The second term, that of Wilson's interval, holds where no error was seen.
        # Rows that are labeled have no error any more.
        variance = errors.var(axis=0, ddof=1) / n_random + (_Z / n_random) ** 2 / 4
        half = _Z * np.sqrt(variance * (1 - n_random / n_rows))
        low = shares - half
        high = shares + half
    return ClassShareEstimate(
        classes=in_memory(classifier.classes_),
        shares=np.clip(shares, 0.0, 1.0),
        low=np.clip(low, 0.0, 1.0),
        high=np.clip(high, 0.0, 1.0),
        n_rows=n_rows,
        n_random=n_random,
        how=how,
    )


def _shares_by_em(
    probabilities: Array, calibration: Calibration
) -> tuple[Array, Array, Array, Array]:
    """Return shares, both ends of their intervals, and probabilities under the shares.

    Intervals are quantiles over draws of rows and of the calibration.
    """
    rng = np.random.default_rng(0)
    logs = _logarithms(probabilities)
    ratios = calibration.ratios(logs, calibration.parameters)
    n_rows, n_classes = logs.shape
    order = rng.permutation(n_rows)
    start = np.full(n_classes, 1 / n_classes)
    shares = mixture_shares(ratios[order[:_MAX_MIXED_ROWS]], start)
    drawn_rows = logs[order[:_MAX_BOOTSTRAP_ROWS]]
    n_drawn = len(drawn_rows)
    # No share may start at 0, where EM would leave it.
    start = (shares + 1 / n_drawn) / (1 + n_classes / n_drawn)
    draws = []
    for _ in range(_N_DRAWS):
        parameters = rng.multivariate_normal(
            calibration.parameters, calibration.covariance
        )
        parameters[0] = max(parameters[0], _MIN_SLOPE)
        weights = rng.multinomial(n_drawn, np.full(n_drawn, 1 / n_drawn))
        drawn = calibration.ratios(drawn_rows, parameters)
        draws.append(mixture_shares(drawn, start, weights, _ROUNDS_OF_DRAW))
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    turned = ratios * shares
    turned /= turned.sum(axis=1, keepdims=True)
    return shares, np.minimum(low, shares), np.maximum(high, shares), turned


def mixture_shares(
    densities: Array,
    shares: Array,
    weights: AnyArray | None = None,
    max_rounds: int = _MAX_ROUNDS,
) -> Array:
    """Return the shares of a mixture of known densities (n, K), by EM."""
    if weights is None:
        weights = np.ones(len(densities))
    for _ in range(max_rounds):
        earlier = shares
        mixed = np.maximum(densities @ shares, _TINY_SHARE)
        shares = shares * ((weights / mixed) @ densities)
        shares = shares / shares.sum()
        if np.abs(shares - earlier).max() <= _SHARE_TOLERANCE:
            break
    return shares
